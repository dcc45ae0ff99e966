//! Random bitmap commands, on strings.

use crate::resp::Words;
use crate::words::Dice;

type Arguments = Vec<Vec<u8>>;

pub fn command(dice: &mut Dice) -> Words {
    let (name, arguments): (&str, Arguments) = match dice.below(30) {
        0..6 => {
            let bit = match dice.below(20) {
                0 => dice.integer(),
                other => (other % 2).to_string().into_bytes(),
            };
            ("SETBIT", vec![dice.key('t'), bit_offset(dice), bit])
        }
        6..9 => ("GETBIT", vec![dice.key('t'), bit_offset(dice)]),
        9..13 => {
            let mut arguments = vec![dice.key('t')];
            range(dice, &mut arguments);
            ("BITCOUNT", arguments)
        }
        13..18 => {
            let bit = match dice.below(20) {
                0 => dice.integer(),
                other => (other % 2).to_string().into_bytes(),
            };
            let mut arguments = vec![dice.key('t'), bit];
            range(dice, &mut arguments);
            ("BITPOS", arguments)
        }
        18..22 => {
            let operation = dice.pick(&["AND", "OR", "XOR", "NOT", "AND", "OR", "XOR", "NAND"]);
            let count = if operation == "NOT" { 1 } else { 3 };
            let mut arguments = vec![dice.word(operation), dice.key('t')];
            arguments.extend((0..=dice.below(count)).map(|_| dice.key('t')));
            ("BITOP", arguments)
        }
        22..28 => ("BITFIELD", fields(dice, true)),
        _ => ("BITFIELD_RO", fields(dice, false)),
    };
    std::iter::once(dice.word(name)).chain(arguments).collect()
}

/// An offset that makes no server reserve much memory, or one that is refused.
fn bit_offset(dice: &mut Dice) -> Vec<u8> {
    match dice.below(20) {
        0 => dice
            .pick(&[
                "-1",
                "4294967296",
                "9223372036854775807",
                "abc",
                "",
                "1.0",
                "#1",
            ])
            .into(),
        1..10 => dice.between(0, 100).to_string().into_bytes(),
        _ => {
            let bits = dice.length() * 8;
            dice.between(bits, bits + 9).to_string().into_bytes()
        }
    }
}

/// Nothing, or a start, with an end, with a unit.
fn range(dice: &mut Dice, arguments: &mut Arguments) {
    let words = dice.below(5);
    for _ in 0..words.min(2) {
        arguments.push(match dice.below(5) {
            0 => dice.length().to_string().into_bytes(),
            1 => format!("-{}", dice.length()).into_bytes(),
            2 => (dice.length() * 8 + 3).to_string().into_bytes(),
            _ => dice.integer(),
        });
    }
    if words > 2 {
        arguments.push(dice.choose_word(&["BIT", "BYTE", "BIT", "BYTE", "BITS"]));
    }
}

fn fields(dice: &mut Dice, writes: bool) -> Arguments {
    let mut arguments = vec![dice.key('t')];
    // A command whose writes all fail is one of the known differences.
    let (mut may_fail, mut fails) = (false, false);
    for _ in 0..dice.below(5) {
        let what = match dice.below(8) {
            0..3 if writes => "SET",
            3..6 if writes => "INCRBY",
            6 if writes || dice.one_in(10) => "OVERFLOW",
            _ => "GET",
        };
        arguments.push(dice.word(what));
        if what == "OVERFLOW" {
            fails = may_fail && dice.one_in(2);
            arguments.push(match fails {
                true => dice.word("FAIL"),
                false => dice.choose_word(&["WRAP", "SAT", "NONE"]),
            });
            continue;
        }
        arguments.push(field_type(dice));
        arguments.push(match dice.below(3) {
            0 => format!("#{}", dice.between(0, 30)).into_bytes(),
            _ => bit_offset(dice),
        });
        if what != "GET" {
            arguments.push(number(dice));
            may_fail |= !fails;
        }
    }
    arguments
}

fn field_type(dice: &mut Dice) -> Vec<u8> {
    match dice.below(25) {
        0 => dice
            .pick(&["u64", "i65", "i0", "u0", "x8", "", "i", "u-1", "i08"])
            .into(),
        1..4 => dice.pick(&["i64", "u63", "i63", "i1", "u1"]).into(),
        _ => {
            let sign = dice.pick(&['i', 'u']);
            format!("{sign}{}", dice.between(1, 63)).into_bytes()
        }
    }
}

fn number(dice: &mut Dice) -> Vec<u8> {
    match dice.below(5) {
        0 => {
            let shift = dice.below(64);
            let number = (i64::MIN >> shift) ^ dice.between(-2, 2);
            number.to_string().into_bytes()
        }
        1 => dice.between(i64::MIN, i64::MAX).to_string().into_bytes(),
        _ => dice.integer(),
    }
}
