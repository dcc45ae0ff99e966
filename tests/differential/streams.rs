//! Random stream commands. Ids are explicit, because generated ids depend on the time.

use crate::resp::Words;
use crate::words::Dice;

type Arguments = Vec<Vec<u8>>;

/// Invalid ids, and ids at the ends of what exists.
const ODD_IDS: &[&str] = &[
    "0",
    "0-0",
    "-",
    "+",
    "*",
    "$",
    ">",
    "",
    "abc",
    "1-",
    "-1",
    "1-2-3",
    "+5-3",
    "007-01",
    " 5",
    "18446744073709551615",
    "18446744073709551615-18446744073709551614",
    "18446744073709551616",
    "99999999999999999999-1",
];

/// From this many milliseconds on, Redis increments the sequence instead of using the time.
const FAR_MS: i64 = 99_999_999_999_999;

pub fn command(dice: &mut Dice) -> Words {
    if dice.one_in(5) {
        return approximate(dice);
    }
    let (name, arguments): (&str, Arguments) = match dice.below(40) {
        0..16 => ("XADD", add(dice)),
        16..20 => ("XRANGE", range(dice, ["-", "+"])),
        20..24 => ("XREVRANGE", range(dice, ["+", "-"])),
        24 | 25 => ("XLEN", vec![dice.key('s')]),
        26..29 => {
            let ids = (0..=dice.below(3)).map(|_| id(dice)).collect();
            ("XDEL", [vec![dice.key('s')], ids].concat())
        }
        29..32 => {
            let trim = trim(dice);
            ("XTRIM", [vec![dice.key('s')], trim].concat())
        }
        32..37 => ("XREAD", read(dice, None)),
        37 => ("XSETID", set_id(dice)),
        _ => ("XINFO", info(dice)),
    };
    std::iter::once(dice.word(name)).chain(arguments).collect()
}

/// An XREAD that waits for up to a timeout if it finds nothing.
pub fn blocking(dice: &mut Dice, timeout_ms: &str) -> Words {
    let name = dice.word("XREAD");
    std::iter::once(name)
        .chain(read(dice, Some(timeout_ms)))
        .collect()
}

/// An id, usually one that an entry has.
pub fn id(dice: &mut Dice) -> Vec<u8> {
    match dice.below(20) {
        0 => dice.pick(ODD_IDS).into(),
        1 => format!("{FAR_MS}-{}", dice.below(3)).into_bytes(),
        2..8 => dice.below(60).to_string().into_bytes(),
        _ => format!("{}-{}", dice.below(60), dice.below(3)).into_bytes(),
    }
}

fn new_id(dice: &mut Dice) -> Vec<u8> {
    match dice.below(12) {
        0..4 => format!("{}-*", dice.below(60)).into_bytes(),
        _ => match id(dice) {
            // A server would take the time.
            id if id == b"*" => b"7-7".to_vec(),
            id => id,
        },
    }
}

fn fields(dice: &mut Dice) -> Arguments {
    let count = match dice.below(8) {
        0 => dice.below(12) + 1,
        _ => dice.below(2) + 1,
    };
    (0..2 * count).map(|_| dice.value()).collect()
}

fn add(dice: &mut Dice) -> Arguments {
    let mut arguments = vec![dice.key('s')];
    if dice.one_in(12) {
        arguments.push(dice.word("NOMKSTREAM"));
    }
    if dice.one_in(4) {
        arguments.extend(trim(dice));
    }
    arguments.push(new_id(dice));
    arguments.extend(fields(dice));
    arguments
}

/// How a stream is trimmed exactly.
fn trim(dice: &mut Dice) -> Arguments {
    let is_maxlen = dice.one_in(2);
    let mut arguments = vec![dice.word(if is_maxlen { "MAXLEN" } else { "MINID" })];
    if dice.one_in(3) {
        arguments.push(b"=".to_vec());
    }
    arguments.push(if is_maxlen { dice.integer() } else { id(dice) });
    if dice.one_in(15) {
        arguments.push(dice.word("LIMIT"));
        arguments.push(dice.integer());
    }
    arguments
}

/// Commands on streams from which entries are removed only in whole nodes, and never all of them.
/// If others delete entries, the nodes depend on Redis's memory.
fn approximate(dice: &mut Dice) -> Words {
    let key = format!("nodes{}", dice.below(2)).into_bytes();
    let (name, arguments): (&str, Arguments) = match dice.below(12) {
        0 => ("XLEN", vec![key]),
        1 => ("XRANGE", vec![key, b"-".to_vec(), b"+".to_vec()]),
        2 => ("XTRIM", [vec![key], approximate_trim(dice)].concat()),
        _ => {
            let new = vec![
                format!("{FAR_MS}-*").into_bytes(),
                b"f".to_vec(),
                dice.value(),
            ];
            let trim = match dice.one_in(2) {
                true => approximate_trim(dice),
                false => Vec::new(),
            };
            ("XADD", [vec![key], trim, new].concat())
        }
    };
    std::iter::once(dice.word(name)).chain(arguments).collect()
}

fn approximate_trim(dice: &mut Dice) -> Arguments {
    let kept = dice.between(1, 12).to_string().into_bytes();
    let mut trim = vec![dice.word("MAXLEN"), b"~".to_vec(), kept];
    if dice.one_in(3) {
        trim.push(dice.word("LIMIT"));
        trim.push(dice.between(0, 12).to_string().into_bytes());
    }
    trim
}

fn range(dice: &mut Dice, ends: [&str; 2]) -> Arguments {
    let mut arguments = vec![dice.key('s')];
    for end in ends {
        arguments.push(match dice.below(6) {
            0..3 => end.into(),
            3 => [b"(".to_vec(), id(dice)].concat(),
            _ => id(dice),
        });
    }
    if dice.one_in(3) {
        arguments.push(dice.word("COUNT"));
        arguments.push(dice.integer());
    }
    arguments
}

fn read(dice: &mut Dice, timeout_ms: Option<&str>) -> Arguments {
    let mut arguments = Vec::new();
    if dice.one_in(2) {
        arguments.push(dice.word("COUNT"));
        arguments.push(dice.integer());
    }
    if let Some(timeout_ms) = timeout_ms {
        arguments.push(dice.word("BLOCK"));
        arguments.push(timeout_ms.into());
    }
    if dice.one_in(40) {
        arguments.push(dice.choose_word(&["NOACK", "GROUP", "NOSUCH"]));
    }
    arguments.push(dice.word("STREAMS"));
    let count = dice.below(3) + 1;
    arguments.extend((0..count).map(|_| dice.key('s')));
    let ids = (0..count).map(|_| match dice.below(5) {
        0 => b"$".to_vec(),
        _ => match id(dice) {
            // Redis knows it since 7.4.
            id if id == b"+" => b"7-7".to_vec(),
            id => id,
        },
    });
    arguments.extend(ids);
    arguments
}

fn set_id(dice: &mut Dice) -> Arguments {
    let mut arguments = vec![dice.key('s'), id(dice)];
    if dice.one_in(3) {
        arguments.push(dice.word("ENTRIESADDED"));
        arguments.push(dice.integer());
    }
    if dice.one_in(3) {
        arguments.push(dice.word("MAXDELETEDID"));
        arguments.push(id(dice));
    }
    arguments
}

fn info(dice: &mut Dice) -> Arguments {
    let mut arguments = vec![dice.word("STREAM"), dice.key('s')];
    if dice.one_in(2) {
        arguments.push(dice.word("FULL"));
        if dice.one_in(2) {
            arguments.push(dice.word("COUNT"));
            arguments.push(dice.integer());
        }
    }
    arguments
}
