//! How syntax is written, and that each row's arguments agree with its arity and its keys.

use super::*;
use crate::command::key_specs::KeyPlace;
use crate::command::row::Row;
use crate::table;

fn syntax(name: &str) -> String {
    let row = table::find_by_full_name(name.as_bytes()).unwrap();
    Syntax(row.arguments).to_string()
}

#[test]
fn syntax_is_written_as_redis_writes_it() {
    for (name, expected) in [
        ("lpush", "key element [element ...]"),
        (
            "lmpop",
            "numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
        ),
        (
            "zadd",
            "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]",
        ),
        (
            "sort",
            "key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] \
             [ALPHA] [STORE destination]",
        ),
        (
            "zunion",
            "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] \
             [WITHSCORES]",
        ),
        (
            "hello",
            "[protover [AUTH username password] [SETNAME clientname]]",
        ),
        ("client|setinfo", "<lib-name libname | lib-ver libver>"),
        ("ssubscribe", "shardchannel [shardchannel ...]"),
        ("multi", ""),
        (
            "task.take",
            "key [COUNT count] [HAVING resource amount [resource amount ...]] [LEASE \
             milliseconds [WORKER name]] [BLOCK milliseconds]",
        ),
    ] {
        assert_eq!(syntax(name), expected, "{name}");
    }
}

/// The minimum number of words of an argument, and whether it always has that number.
fn words(argument: &Argument) -> (usize, bool) {
    let mut parts = argument.parts.iter().map(words);
    let (words, is_fixed) = match argument.kind {
        Kind::PureToken => (0, true),
        Kind::Block => in_turn(argument.parts),
        Kind::OneOf => {
            let least = parts.clone().map(|(words, _)| words).min().unwrap();
            (least, parts.all(|part| part == (least, true)))
        }
        _ => (1, true),
    };
    let words = words + usize::from(argument.token.is_some());
    (words, is_fixed && !argument.is_multiple)
}

/// The same of arguments that follow each other.
fn in_turn(arguments: &[Argument]) -> (usize, bool) {
    let mut all = (0, true);
    for argument in arguments {
        let (words, is_fixed) = words(argument);
        match argument.is_optional {
            true => all.1 = false,
            false => all = (all.0 + words, all.1 && is_fixed),
        }
    }
    all
}

fn names(row: &Row) -> usize {
    1 + usize::from(row.is_subcommand())
}

/// Commands that, as in Redis, accept arguments that they do not describe.
const UNDESCRIBED: &[&str] = &["command", "debug", "psync", "quit", "replconf"];

#[test]
fn arguments_agree_with_the_arity() {
    let described = table::all().iter().filter(|row| row.subcommands.is_empty());
    for row in described.filter(|row| !UNDESCRIBED.contains(&row.name)) {
        let (words, is_fixed) = in_turn(row.arguments);
        let arity = i32::try_from(names(row) + words).unwrap();
        let expected = if is_fixed { arity } else { -arity };
        assert_eq!(row.arity, expected, "{}", row.name);
    }
}

#[test]
fn arguments_agree_with_the_key_specifications() {
    for row in table::all() {
        let mut specs_seen = Vec::new();
        // The argument's position, as long as the arguments before it have a fixed length.
        let mut at = Some(names(row));
        let mut before: Option<&Argument> = None;
        for argument in row.arguments {
            // STORE and STOREDIST are alternatives.
            let alternatives = match argument.kind {
                Kind::OneOf => argument.parts,
                _ => std::slice::from_ref(argument),
            };
            for argument in alternatives {
                // In a repeated block, or one after STREAMS, the key comes first.
                let is_block_of_keys = argument.is_multiple || argument.token == Some("STREAMS");
                let key = match argument.parts {
                    [first, ..] if is_block_of_keys && first.key_spec.is_some() => first,
                    _ => argument,
                };
                let Some(number) = key.key_spec else {
                    assert_ne!(argument.kind, Kind::Key, "{}: {argument}", row.name);
                    continue;
                };
                let spec = row.keys[usize::try_from(number).unwrap()];
                let place = (key.kind, at, argument.is_multiple);
                let fits = match spec.place {
                    KeyPlace::Range { first, last, step } => {
                        let end = first + 1 + usize::try_from(last).unwrap_or(0);
                        let is_there = at.is_some_and(|at| (first..end).contains(&at));
                        let words = argument.parts.len().max(1);
                        let is_fit = argument.is_multiple == (last < 0) && words == step;
                        key.kind == Kind::Key && is_there && is_fit
                    }
                    KeyPlace::Counted { count, step } => {
                        let number = before.map(|one| (one.kind, one.name()));
                        place == (Kind::Key, Some(count + 1), true)
                            && argument.parts.len().max(1) == step
                            && number == Some((Kind::Integer, "numkeys".into()))
                    }
                    KeyPlace::NamedByElements => argument.kind == Kind::Pattern,
                    KeyPlace::AfterStore => {
                        argument.kind == Kind::Key && argument.token == Some("STORE")
                    }
                    KeyPlace::AfterWord { word, from } => {
                        argument.kind == Kind::Key
                            && argument.token == Some(word)
                            // The word may be one of the required arguments.
                            && i32::try_from(from).is_ok_and(|from| from <= -row.arity)
                    }
                    KeyPlace::AllAfterWord { word, .. } => {
                        argument.token == Some(word) && argument.is_multiple
                    }
                    KeyPlace::Streams { .. } => argument.token == Some("STREAMS"),
                };
                assert!(fits, "{}: {argument}", row.name);
                specs_seen.push(number);
            }
            let (words, is_fixed) = words(argument);
            at = at.filter(|_| is_fixed && !argument.is_optional);
            at = at.map(|at| at + words);
            before = Some(argument);
        }
        specs_seen.dedup();
        let keys = row.keys.iter().filter(|spec| spec.is_key()).count();
        match row.name {
            // BY and GET have one specification, and STORE comes after both.
            "sort" => assert_eq!(specs_seen, [0, 1, 2]),
            _ => assert_eq!(specs_seen.len(), keys, "{}", row.name),
        }
    }
}
