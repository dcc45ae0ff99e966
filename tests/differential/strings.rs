//! Random string commands.

use crate::resp::Words;
use crate::words::Dice;

type Arguments = Vec<Vec<u8>>;

pub fn command(dice: &mut Dice) -> Words {
    let (name, arguments): (&str, Arguments) = match dice.below(40) {
        0..5 => ("SET", set(dice)),
        5 => (
            dice.pick(&["SETNX", "GETSET"]),
            vec![dice.key('t'), dice.string()],
        ),
        6 => {
            let name = dice.pick(&["SETEX", "PSETEX"]);
            let time = time(dice, if name == "PSETEX" { "PX" } else { "EX" });
            (name, vec![dice.key('t'), time, dice.string()])
        }
        7..10 => ("GET", vec![dice.key('t')]),
        10 => (dice.pick(&["GETDEL", "STRLEN"]), vec![dice.key('t')]),
        11 | 12 => ("GETEX", getex(dice)),
        13 | 14 => ("MGET", keys(dice)),
        15 | 16 => {
            let keys = keys(dice);
            let pairs = keys.into_iter().flat_map(|key| [key, dice.string()]);
            let pairs = pairs.collect();
            (dice.pick(&["MSET", "MSETNX"]), pairs)
        }
        17..21 => ("APPEND", vec![dice.key('t'), dice.string()]),
        21..25 => {
            let (key, offset) = (dice.key('t'), offset(dice));
            ("SETRANGE", vec![key, offset, dice.string()])
        }
        25..28 => {
            let name = dice.pick(&["GETRANGE", "GETRANGE", "SUBSTR"]);
            (name, vec![dice.key('t'), place(dice), place(dice)])
        }
        28..31 => (dice.pick(&["INCR", "DECR"]), vec![dice.key('t')]),
        31..34 => (
            dice.pick(&["INCRBY", "DECRBY"]),
            vec![dice.key('t'), dice.integer()],
        ),
        34..36 => ("INCRBYFLOAT", vec![dice.key('t'), dice.score()]),
        36 => ("LCS", lcs(dice)),
        37 => (
            "SET",
            vec![dice.key('t'), dice.between(-50, 50).to_string().into()],
        ),
        _ => ("SET", vec![dice.key('t'), dice.score()]),
    };
    std::iter::once(dice.word(name)).chain(arguments).collect()
}

fn set(dice: &mut Dice) -> Arguments {
    let mut arguments = vec![dice.key('t'), dice.string()];
    for option in ["NX", "XX", "GET", "KEEPTTL"] {
        if dice.one_in(6) {
            arguments.push(dice.word(option));
        }
    }
    if dice.one_in(4) {
        arguments.extend(expiry(dice));
    }
    arguments
}

fn getex(dice: &mut Dice) -> Arguments {
    let mut arguments = vec![dice.key('t')];
    match dice.below(6) {
        0 | 1 => arguments.push(dice.word("PERSIST")),
        2 | 3 => arguments.extend(expiry(dice)),
        4 => arguments.extend([dice.choose_word(&["EXAT", "PXAT"]), b"1".to_vec()]),
        _ => {}
    }
    if dice.one_in(20) {
        arguments.push(dice.choose_word(&["PERSIST", "KEEPTTL", "NX"]));
    }
    arguments
}

fn expiry(dice: &mut Dice) -> Arguments {
    let form = dice.pick(&["EX", "PX", "EXAT", "PXAT"]);
    vec![dice.word(form), time(dice, form)]
}

/// A time so far away that both servers see the same, or none. (SET with a past time leaves a key
/// in Redis that DBSIZE counts for a while.)
fn time(dice: &mut Dice, form: &str) -> Vec<u8> {
    if dice.one_in(10) {
        return dice
            .pick(&[
                "0",
                "-1",
                "abc",
                "",
                "9223372036854775807",
                "99999999999999999999",
            ])
            .into();
    }
    let now = if form.ends_with("AT") {
        2_000_000_000
    } else {
        0
    };
    let per_unit = if form.starts_with('P') { 1_000 } else { 1 };
    let seconds = dice.between(10_000, 1_000_000_000);
    ((now + seconds) * per_unit).to_string().into_bytes()
}

fn keys(dice: &mut Dice) -> Arguments {
    (0..=dice.below(4)).map(|_| dice.key('t')).collect()
}

/// An offset within a string, near the bounds of the storage forms of strings, or one that is
/// refused.
fn offset(dice: &mut Dice) -> Vec<u8> {
    match dice.below(20) {
        0 => dice
            .pick(&[
                "-1",
                "536870912",
                "9223372036854775807",
                "abc",
                "",
                "1.0",
                "4294967296",
            ])
            .into(),
        1..12 => dice.between(0, 40).to_string().into_bytes(),
        _ => dice.length().to_string().into_bytes(),
    }
}

/// A position in a string from the beginning or the end.
fn place(dice: &mut Dice) -> Vec<u8> {
    match dice.below(4) {
        0 => dice.length().to_string().into_bytes(),
        1 => format!("-{}", dice.length()).into_bytes(),
        _ => dice.integer(),
    }
}

fn lcs(dice: &mut Dice) -> Arguments {
    let mut arguments = vec![dice.key('t'), dice.key('t')];
    for option in ["LEN", "IDX", "WITHMATCHLEN"] {
        if dice.one_in(3) {
            arguments.push(dice.word(option));
        }
    }
    if dice.one_in(4) {
        arguments.extend([dice.word("MINMATCHLEN"), dice.integer()]);
    }
    arguments
}
