//! Random commands on keys of any type and on databases.

use crate::resp::Words;
use crate::words::Dice;
use quoin_rdb::testing::{hashes, number_sets, old_lists, old_sets, sealed, sets, strings};

type Arguments = Vec<Vec<u8>>;

#[derive(Clone)]
/// What a command asks the driver to do.
pub enum Step {
    /// One request, one reply.
    Command(Words),
    /// SCAN, ZSCAN, HSCAN or SSCAN, called until its cursor is 0 again. The number is the cursor's
    /// index among the words.
    Iteration(Words, usize),
}

pub fn command(dice: &mut Dice) -> Step {
    let (name, arguments): (&str, Arguments) = match dice.below(50) {
        0 | 1 => (dice.pick(&["DEL", "UNLINK"]), some_keys(dice)),
        2 | 3 => (dice.pick(&["EXISTS", "TOUCH"]), some_keys(dice)),
        4 | 5 => ("TYPE", vec![dice.any_key()]),
        6 => ("KEYS", vec![dice.pattern()]),
        7..10 => return scan(dice),
        10 | 49 => return member_scan(dice),
        11 => ("RANDOMKEY", vec![]),
        12..15 => (
            dice.pick(&["RENAME", "RENAMENX"]),
            vec![dice.any_key(), dice.any_key()],
        ),
        15..18 => ("COPY", copy(dice)),
        18 => ("MOVE", vec![dice.any_key(), database(dice)]),
        19 => ("DBSIZE", vec![]),
        20 if dice.one_in(15) => flush(dice),
        21 if dice.one_in(3) => ("SWAPDB", vec![database(dice), database(dice)]),
        22..24 => ("SELECT", vec![database(dice)]),
        24..30 => expire(dice),
        30..33 => {
            let names = ["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"];
            (dice.pick(&names), vec![dice.any_key()])
        }
        33 | 34 => ("PERSIST", vec![dice.any_key()]),
        35..40 => sort(dice),
        40 => (
            "OBJECT",
            vec![
                dice.choose_word(&["REFCOUNT", "ENCODING", "NOSUCH"]),
                dice.any_key(),
            ],
        ),
        41 => ("MEMORY", vec![dice.word("USAGE"), dice.any_key()]),
        42 => ("NOSUCHCOMMAND", some_keys(dice)),
        43 => ("ECHO", vec![dice.value()]),
        44 => ("DUMP", vec![dice.any_key()]),
        45..49 => ("RESTORE", restore(dice)),
        _ => ("EXISTS", some_keys(dice)),
    };
    Step::Command(std::iter::once(dice.word(name)).chain(arguments).collect())
}

fn some_keys(dice: &mut Dice) -> Arguments {
    let count = if dice.one_in(2) { 1 } else { dice.below(3) + 1 };
    (0..count).map(|_| dice.any_key()).collect()
}

fn database(dice: &mut Dice) -> Vec<u8> {
    match dice.below(20) {
        0 => dice
            .pick(&["16", "-1", "abc", "", "1.0", "99999999999999999999"])
            .into(),
        1 => b"15".to_vec(),
        _ => dice.below(3).to_string().into_bytes(),
    }
}

fn copy(dice: &mut Dice) -> Arguments {
    let mut arguments = vec![dice.any_key(), dice.any_key()];
    if dice.one_in(3) {
        arguments.push(dice.word("DB"));
        arguments.push(database(dice));
    }
    if dice.one_in(2) {
        arguments.push(dice.word("REPLACE"));
    }
    arguments
}

fn flush(dice: &mut Dice) -> (&'static str, Arguments) {
    let arguments = match dice.below(4) {
        0 => vec![dice.choose_word(&["SYNC", "ASYNC"])],
        1 => vec![b"LATER".to_vec()],
        _ => vec![],
    };
    (dice.pick(&["FLUSHDB", "FLUSHALL"]), arguments)
}

/// Times so far away, or so long past, that both servers see the same.
fn expire(dice: &mut Dice) -> (&'static str, Arguments) {
    let name = dice.pick(&["EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT"]);
    let per_unit = if name.starts_with('P') { 1_000 } else { 1 };
    let now = if name.ends_with("AT") {
        2_000_000_000
    } else {
        0
    };
    let time = match dice.below(20) {
        0 => dice
            .pick(&["-10", "0", "-9223372036854775808", "-1"])
            .into(),
        1 => dice
            .pick(&[
                "9223372036854775807",
                "9223372036854775",
                "abc",
                "",
                "1.5",
                "99999999999999999999",
            ])
            .into(),
        _ => {
            // Drawn from a range so large that GT and LT never compare two that are almost equal.
            let seconds = dice.between(10_000, 1_000_000_000);
            ((now + seconds) * per_unit).to_string().into_bytes()
        }
    };
    let mut arguments = vec![dice.any_key(), time];
    for option in ["NX", "XX", "GT", "LT"] {
        if dice.one_in(6) {
            arguments.push(dice.word(option));
        }
    }
    (name, arguments)
}

/// A value in one of its encodings, complete or damaged, with options. (A relative time to live is
/// not compared to the millisecond, so there is none.)
fn restore(dice: &mut Dice) -> Arguments {
    let elements: Arguments = (0..dice.below(6)).map(|_| dice.value()).collect();
    let (key, mut forms) = match dice.below(6) {
        5 => (dice.key('t'), strings(&dice.string())),
        0 => (dice.key('l'), old_lists(&elements)),
        1 => {
            // Twice the same member is damage; another order than that of scores Redis just keeps.
            let scores = [-3.0, 0.5, 1.0, 2.5, 7.0];
            let members: Vec<_> = elements.into_iter().zip(scores).collect();
            (dice.key('z'), old_sets(&members))
        }
        2 => {
            let fields = elements.into_iter();
            let fields: Vec<_> = fields.map(|field| (field, dice.value())).collect();
            (dice.key('h'), hashes(&fields))
        }
        // Redis before 7.2 does not read the last.
        3 => (dice.key('m'), sets(&elements)[..1].to_vec()),
        _ => {
            let start = dice.pick(&[-5, 100, -40_000, 1 << 40]);
            let numbers: Vec<i64> = (0..elements.len() as i64).map(|n| start + n * n).collect();
            (dice.key('m'), number_sets(&numbers))
        }
    };
    let (_, mut payload) = forms.swap_remove(dice.below(forms.len()));
    if dice.one_in(8) {
        payload = sealed(14, &payload);
    } else if dice.one_in(8) {
        payload.truncate(dice.below(payload.len()));
    }
    let ttl = match dice.below(8) {
        0 => dice
            .pick(&["-1", "abc", "1.5", "9223372036854775808"])
            .into(),
        1 => b"1000".to_vec(),
        2 => dice
            .between(3_000_000_000_000, 4_000_000_000_000)
            .to_string()
            .into(),
        _ => b"0".to_vec(),
    };
    let mut arguments = vec![key, ttl, payload, dice.word("ABSTTL")];
    if dice.one_in(2) {
        arguments.push(dice.word("REPLACE"));
    }
    for option in ["IDLETIME", "FREQ"] {
        if dice.one_in(8) {
            arguments.push(dice.word(option));
            arguments.push(dice.pick(&["0", "5", "256", "-1", "abc"]).into());
        }
    }
    arguments
}

/// A whole iteration over the keys.
fn scan(dice: &mut Dice) -> Step {
    let mut words = vec![dice.word("SCAN"), b"0".to_vec()];
    options_of_scan(dice, &mut words);
    if dice.one_in(3) {
        words.push(dice.word("TYPE"));
        words
            .push(dice.choose_word(&["list", "zset", "hash", "set", "string", "stream", "nosuch"]));
    }
    Step::Iteration(words, 1)
}

/// A whole iteration over the members or fields of a value.
fn member_scan(dice: &mut Dice) -> Step {
    let (name, family) = dice.pick(&[("ZSCAN", 'z'), ("HSCAN", 'h'), ("SSCAN", 'm')]);
    let mut words = vec![dice.word(name), dice.key(family), b"0".to_vec()];
    options_of_scan(dice, &mut words);
    Step::Iteration(words, 2)
}

fn options_of_scan(dice: &mut Dice, words: &mut Words) {
    if dice.one_in(3) {
        words.push(dice.word("MATCH"));
        words.push(dice.pattern());
    }
    if dice.one_in(2) {
        words.push(dice.word("COUNT"));
        words.push(
            dice.pick(&["1", "3", "10", "1000", "0", "-1", "abc"])
                .into(),
        );
    }
}

fn sort(dice: &mut Dice) -> (&'static str, Arguments) {
    let mut arguments = vec![dice.any_key()];
    let is_alphabetic = dice.one_in(2);
    let is_by = dice.one_in(8);
    if is_by {
        arguments.push(dice.word("BY"));
        let patterns: &[&str] = if is_alphabetic {
            &["nosort"]
        } else {
            &["nosort", "weight_*", "x->y", "s*", "s*"]
        };
        arguments.push(dice.pick(patterns).into());
    }
    if !is_by && dice.one_in(4) {
        arguments.push(dice.word("LIMIT"));
        arguments.push(dice.integer());
        arguments.push(dice.integer());
    }
    while dice.one_in(6) {
        arguments.push(dice.word("GET"));
        arguments.push(dice.pick(&["#", "object_*", "h_*->f", "s*", "*"]).into());
    }
    if dice.one_in(3) {
        arguments.push(dice.choose_word(&["ASC", "DESC"]));
    }
    if is_alphabetic {
        arguments.push(dice.word("ALPHA"));
    }
    if dice.one_in(4) {
        arguments.push(dice.word("STORE"));
        arguments.push(dice.key('l'));
        return ("SORT", arguments);
    }
    (dice.pick(&["SORT", "SORT", "SORT_RO"]), arguments)
}
