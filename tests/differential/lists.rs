//! Random list commands.

use crate::resp::Words;
use crate::words::Dice;

const ENDS: &[&str] = &["LEFT", "RIGHT"];

pub fn command(dice: &mut Dice) -> Words {
    let (name, arguments): (&str, Vec<Vec<u8>>) = match dice.below(34) {
        0..6 => push(dice),
        6..9 => pop(dice),
        9 => ("LLEN", vec![dice.key('l')]),
        10 | 11 => ("LINDEX", vec![dice.key('l'), dice.integer()]),
        12 | 13 => ("LSET", vec![dice.key('l'), short_index(dice), dice.value()]),
        14..17 => (
            "LRANGE",
            vec![dice.key('l'), dice.integer(), dice.integer()],
        ),
        17..23 => {
            let side = match dice.below(15) {
                0 => b"BESIDE".to_vec(),
                _ => dice.choose_word(&["BEFORE", "AFTER"]),
            };
            let (pivot, value) = (dice.value(), dice.value());
            ("LINSERT", vec![dice.key('l'), side, pivot, value])
        }
        23 | 24 => ("LREM", vec![dice.key('l'), dice.integer(), dice.value()]),
        25 => ("LTRIM", trim(dice)),
        26 | 27 => ("LPOS", positions(dice)),
        28..30 => {
            let (from, to) = (dice.key('l'), dice.key('l'));
            (
                "LMOVE",
                vec![from, to, dice.choose_word(ENDS), dice.choose_word(ENDS)],
            )
        }
        30 => ("RPOPLPUSH", vec![dice.key('l'), dice.key('l')]),
        _ => ("LMPOP", several_pop(dice, 'l', ENDS)),
    };
    std::iter::once(dice.word(name)).chain(arguments).collect()
}

fn push(dice: &mut Dice) -> (&'static str, Vec<Vec<u8>>) {
    let name = dice.pick(&["LPUSH", "RPUSH", "LPUSH", "RPUSH", "LPUSHX", "RPUSHX"]);
    (name, [vec![dice.key('l')], dice.values()].concat())
}

/// An index that Redis does not cut to 32 bits.
fn short_index(dice: &mut Dice) -> Vec<u8> {
    let index = dice.integer();
    let number = std::str::from_utf8(&index)
        .ok()
        .and_then(|text| text.parse::<i64>().ok());
    match number {
        Some(number) if i32::try_from(number).is_err() => b"0".to_vec(),
        _ => index,
    }
}

fn pop(dice: &mut Dice) -> (&'static str, Vec<Vec<u8>>) {
    let mut arguments = vec![dice.key('l')];
    if dice.one_in(2) {
        arguments.push(dice.count());
    }
    (dice.pick(&["LPOP", "RPOP"]), arguments)
}

/// Usually one that leaves something.
fn trim(dice: &mut Dice) -> Vec<Vec<u8>> {
    let key = dice.key('l');
    if dice.one_in(3) {
        return vec![key, dice.integer(), dice.integer()];
    }
    let (start, stop) = (dice.between(0, 2), dice.between(-3, -1));
    vec![key, start.to_string().into(), stop.to_string().into()]
}

fn positions(dice: &mut Dice) -> Vec<Vec<u8>> {
    let mut arguments = vec![dice.key('l'), dice.value()];
    for (name, once_in) in [("RANK", 2), ("COUNT", 2), ("MAXLEN", 3)] {
        if dice.one_in(once_in) {
            arguments.push(dice.word(name));
            let number = dice.integer();
            let is_smallest = number == i64::MIN.to_string().as_bytes();
            arguments.push(if is_smallest { b"0".to_vec() } else { number });
        }
    }
    arguments
}

/// The arguments of LMPOP and ZMPOP.
pub fn several_pop(dice: &mut Dice, family: char, ends: &[&str]) -> Vec<Vec<u8>> {
    let keys: Vec<Vec<u8>> = (0..=dice.below(3)).map(|_| dice.key(family)).collect();
    let mut arguments = vec![number_of(dice, keys.len())];
    arguments.extend(keys);
    arguments.push(dice.choose_word(ends));
    if dice.one_in(2) {
        arguments.push(dice.word("COUNT"));
        arguments.push(dice.count());
    }
    arguments
}

/// The number of keys that follow, sometimes wrong.
pub fn number_of(dice: &mut Dice, keys: usize) -> Vec<u8> {
    match dice.below(25) {
        0 => dice.integer(),
        1 => (keys + 1).to_string().into_bytes(),
        _ => keys.to_string().into_bytes(),
    }
}
