//! Random commands on consumer groups of streams.

use crate::resp::{Value, Words};
use crate::streams::id;
use crate::words::Dice;

type Arguments = Vec<Vec<u8>>;

const CONSUMERS: &[&str] = &["a", "b", "c", "STREAMS", "", "\0\r\n"];

pub fn command(dice: &mut Dice) -> Words {
    let (name, arguments): (&str, Arguments) = match dice.below(40) {
        0..8 => ("XGROUP", manage(dice)),
        8..20 => ("XREADGROUP", read(dice, None)),
        20..25 => {
            let ids = (0..=dice.below(3)).map(|_| id(dice)).collect();
            ("XACK", [of_group(dice), ids].concat())
        }
        25..29 => ("XPENDING", pending(dice)),
        29..33 => ("XCLAIM", claim(dice)),
        33..36 => ("XAUTOCLAIM", auto_claim(dice)),
        36 => ("XINFO", vec![dice.word("GROUPS"), dice.key('s')]),
        37 => {
            let group = of_group(dice);
            ("XINFO", [vec![dice.word("CONSUMERS")], group].concat())
        }
        38 => (
            "XINFO",
            vec![dice.word("STREAM"), dice.key('s'), dice.word("FULL")],
        ),
        _ => ("DUMP", vec![dice.key('s')]),
    };
    std::iter::once(dice.word(name)).chain(arguments).collect()
}

/// An XREADGROUP that waits for up to a timeout if it finds nothing.
pub fn blocking(dice: &mut Dice, timeout_ms: &str) -> Words {
    let name = dice.word("XREADGROUP");
    std::iter::once(name)
        .chain(read(dice, Some(timeout_ms)))
        .collect()
}

fn group(dice: &mut Dice) -> Vec<u8> {
    dice.pick(&["g", "g", "g", "g", "h", "h", "none"]).into()
}

fn consumer(dice: &mut Dice) -> Vec<u8> {
    match dice.below(12) {
        0 => dice.pick(CONSUMERS).into(),
        1 => vec![b'c'; 1_000],
        _ => dice.pick(&["a", "b", "c"]).into(),
    }
}

fn of_group(dice: &mut Dice) -> Arguments {
    vec![dice.key('s'), group(dice)]
}

fn manage(dice: &mut Dice) -> Arguments {
    let (name, rest): (&str, Arguments) = match dice.below(15) {
        0..7 => {
            let mut rest = vec![last(dice)];
            if !dice.one_in(4) {
                rest.push(dice.word("MKSTREAM"));
            }
            rest.extend(entries_read(dice));
            ("CREATE", rest)
        }
        7..10 => ("SETID", [vec![last(dice)], entries_read(dice)].concat()),
        10 => ("DESTROY", Vec::new()),
        11..14 => ("CREATECONSUMER", vec![consumer(dice)]),
        _ => ("DELCONSUMER", vec![consumer(dice)]),
    };
    [vec![dice.word(name)], of_group(dice), rest].concat()
}

fn last(dice: &mut Dice) -> Vec<u8> {
    match dice.below(4) {
        0 => b"$".to_vec(),
        1 => b"0".to_vec(),
        _ => id(dice),
    }
}

fn entries_read(dice: &mut Dice) -> Arguments {
    match dice.below(4) {
        0 => vec![dice.word("ENTRIESREAD"), dice.integer()],
        _ => Vec::new(),
    }
}

fn read(dice: &mut Dice, timeout_ms: Option<&str>) -> Arguments {
    let mut arguments = vec![dice.word("GROUP"), group(dice), consumer(dice)];
    if dice.one_in(2) {
        arguments.push(dice.word("COUNT"));
        arguments.push(dice.integer());
    }
    if let Some(timeout_ms) = timeout_ms {
        arguments.push(dice.word("BLOCK"));
        arguments.push(timeout_ms.into());
    }
    if dice.one_in(6) {
        arguments.push(dice.word("NOACK"));
    }
    arguments.push(dice.word("STREAMS"));
    let count = match dice.below(4) {
        0 => dice.below(3) + 1,
        _ => 1,
    };
    arguments.extend((0..count).map(|_| dice.key('s')));
    let ids = (0..count).map(|_| match dice.below(5) {
        0..3 => b">".to_vec(),
        3 => b"0".to_vec(),
        _ => id(dice),
    });
    arguments.extend(ids);
    arguments
}

fn pending(dice: &mut Dice) -> Arguments {
    let mut arguments = of_group(dice);
    if dice.one_in(3) {
        return arguments;
    }
    if dice.one_in(4) {
        arguments.push(dice.word("IDLE"));
        // Slow commands leave entries idle for some milliseconds, more on one server than on the
        // other.
        arguments.push(dice.pick(&["0", "100000000", "-1", "x"]).into());
    }
    for end in ["-", "+"] {
        arguments.push(match dice.below(6) {
            0..4 => end.into(),
            4 => [b"(".to_vec(), id(dice)].concat(),
            _ => id(dice),
        });
    }
    arguments.push(match dice.below(2) {
        0 => dice.integer(),
        _ => b"100".to_vec(),
    });
    if dice.one_in(3) {
        arguments.push(consumer(dice));
    }
    arguments
}

fn min_idle(dice: &mut Dice) -> Vec<u8> {
    dice.pick(&["0", "0", "0", "0", "0", "100000000", "-1", "x"])
        .into()
}

fn claim(dice: &mut Dice) -> Arguments {
    let mut arguments = of_group(dice);
    arguments.extend([consumer(dice), min_idle(dice)]);
    arguments.extend((0..=dice.below(3)).map(|_| id(dice)));
    for _ in 0..dice.below(3) {
        match dice.below(7) {
            0 => arguments.extend([dice.word("IDLE"), dice.integer()]),
            1 => arguments.extend([dice.word("TIME"), dice.integer()]),
            2 => arguments.extend([dice.word("RETRYCOUNT"), dice.count()]),
            3 => arguments.extend([dice.word("LASTID"), id(dice)]),
            4 => arguments.push(dice.word("JUSTID")),
            _ => arguments.push(dice.word("FORCE")),
        }
    }
    arguments
}

fn auto_claim(dice: &mut Dice) -> Arguments {
    let mut arguments = of_group(dice);
    let start = match dice.below(3) {
        0 => id(dice),
        1 => b"-".to_vec(),
        _ => [b"(".to_vec(), id(dice)].concat(),
    };
    arguments.extend([consumer(dice), min_idle(dice), start]);
    if dice.one_in(2) {
        arguments.extend([dice.word("COUNT"), dice.count()]);
    }
    if dice.one_in(4) {
        arguments.push(dice.word("JUSTID"));
    }
    arguments
}

/// A reply about groups, without what differs between any two servers: times and, before Redis 7.2,
/// consumers without pending entries, which that version creates only when they get something.
pub fn without_times(value: &Value, is_before_72: bool) -> Value {
    let Some(items) = value.items() else {
        return value.clone();
    };
    let Value::Aggregate(kind, _) = value else {
        return value.clone();
    };
    let names: Vec<Option<&[u8]>> = items.iter().map(Value::bytes).collect();
    let is_named = |name: &[u8]| names.iter().step_by(2).any(|one| *one == Some(name));
    let mut kept = Vec::new();
    let has_names = is_named(b"name") && items.len().is_multiple_of(2);
    if has_names || is_named(b"length") {
        for field in items.chunks(2) {
            let is_time = [&b"idle"[..], b"inactive", b"seen-time", b"active-time"]
                .contains(&field[0].bytes().unwrap_or_default());
            let is_count = field[0].bytes() == Some(b"consumers") && field[1].integer().is_some();
            let is_of_redis = field[0]
                .bytes()
                .is_some_and(|name| name.starts_with(b"radix-tree-"));
            if !(is_time || is_of_redis || (is_before_72 && is_count)) {
                kept.push(field[0].clone());
                kept.push(without_times(&field[1], is_before_72));
            }
        }
    } else {
        let is_id = |value: &Value| value.bytes().is_some_and(|id| id.contains(&b'-'));
        let is_pending = items.len() > 2 && is_id(&items[0]);
        for (at, item) in items.iter().enumerate() {
            // [id, (consumer,) time, deliveries]
            if is_pending && at == items.len() - 2 && item.integer().is_some() {
                continue;
            }
            if !(is_before_72 && is_idle_consumer(item)) {
                kept.push(without_times(item, is_before_72));
            }
        }
    }
    Value::Aggregate(*kind, Some(kept))
}

/// A reply about groups without how many entries they have read.
pub fn without_lag(value: &Value) -> Value {
    let (Value::Aggregate(kind, _), Some(items)) = (value, value.items()) else {
        return value.clone();
    };
    let is_group = items.first().and_then(Value::bytes) == Some(b"name");
    let mut kept: Vec<Value> = Vec::new();
    for pair in items.chunks(2) {
        let name = pair[0].bytes();
        if !is_group || !matches!(name, Some(b"entries-read" | b"lag")) {
            kept.extend(pair.iter().map(without_lag));
        }
    }
    Value::Aggregate(*kind, Some(kept))
}

fn is_idle_consumer(value: &Value) -> bool {
    let Some(items) = value.items() else {
        return false;
    };
    let field = |name: &[u8]| {
        let mut fields = items.chunks_exact(2);
        let field = fields.find(|field| field[0].bytes() == Some(name))?;
        field[1].integer()
    };
    let is_consumer = items
        .iter()
        .any(|item| matches!(item.bytes(), Some(b"idle" | b"seen-time")));
    is_consumer && (field(b"pending") == Some(0) || field(b"pel-count") == Some(0))
}
