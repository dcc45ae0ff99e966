//! COMMAND INFO: the ten elements of a command.

use bytes::Bytes;

use crate::command::categories::categories;
use crate::command::key_specs::{KeyFlags, KeyPlace, KeySpec, legacy_range};
use crate::command::row::Row;
use crate::error::CommandError;
use crate::table;
use crate::unit::context::Environment;
use quoin_resp::reply::Reply;

/// `COMMAND`, `COMMAND INFO [name …]`: of these commands, or of all where none is named.
pub(super) fn info(_: &Environment, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(Reply::Array(match arguments {
        [_, _, names @ ..] if !names.is_empty() => names
            .iter()
            .map(|name| table::find_by_full_name(name).map_or(Reply::Null, description))
            .collect(),
        _ => table::commands().map(description).collect(),
    }))
}

fn description(row: &'static Row) -> Reply {
    let (first, last, step) = legacy_range(row.keys);
    let subcommands = table::subcommands(row).iter().map(description);
    Reply::Array(vec![
        Reply::bulk(row.name),
        Reply::Integer(row.arity.into()),
        Reply::Set(row.flag_names().map(Reply::Simple).collect()),
        Reply::Integer(first),
        Reply::Integer(last),
        Reply::Integer(step),
        Reply::Set(categories(row).map(Reply::Simple).collect()),
        Reply::Set(row.tips.iter().map(|tip| Reply::bulk(*tip)).collect()),
        Reply::Set(row.keys.iter().map(specification).collect()),
        if row.subcommands.is_empty() {
            Reply::Set(Vec::new())
        } else {
            Reply::Array(subcommands.collect())
        },
    ])
}

fn specification(spec: &KeySpec) -> Reply {
    let name = |name: &'static str| Reply::bulk(name);
    let typed = |kind: &'static str, details: &[(&'static str, i64)]| {
        let details = details.iter();
        let details = details.map(|(field, value)| (name(field), Reply::Integer(*value)));
        Reply::Map(vec![
            (name("type"), name(kind)),
            (name("spec"), Reply::Map(details.collect())),
        ])
    };
    let index = |at: usize| typed("index", &[("index", i64::try_from(at).unwrap_or(i64::MAX))]);
    let limited_range = |last: i32, step: usize, limit: i64| {
        let step = i64::try_from(step).unwrap_or(i64::MAX);
        let details = [
            ("lastkey", last.into()),
            ("keystep", step),
            ("limit", limit),
        ];
        typed("range", &details)
    };
    let range = |last: i32, step: usize| limited_range(last, step, 0);
    let unknown = || typed("unknown", &[]);
    let (begin, find) = match spec.place {
        KeyPlace::Range { first, last, step } => (index(first), range(last, step)),
        KeyPlace::Counted { count } => {
            let details = [("keynumidx", 0), ("firstkey", 1), ("keystep", 1)];
            (index(count), typed("keynum", &details))
        }
        KeyPlace::NamedByElements | KeyPlace::AfterStore => (unknown(), unknown()),
        KeyPlace::AfterWord { word, from } => {
            let from = i64::try_from(from).unwrap_or(i64::MAX);
            (after_word(word, from), range(0, 1))
        }
        // From the end, and a key at least stands after it.
        KeyPlace::AllAfterWord { word, .. } => (after_word(word, -2), range(-1, 1)),
        // Of what follows, the first of two parts.
        KeyPlace::Streams { from } => {
            let from = i64::try_from(from).unwrap_or(i64::MAX);
            (after_word("STREAMS", from), limited_range(-1, 1, 2))
        }
    };
    let mut fields = Vec::new();
    if let Some(notes) = spec.notes {
        fields.push((name("notes"), name(notes)));
    }
    fields.push((name("flags"), flags(spec.flags)));
    fields.push((name("begin_search"), begin));
    fields.push((name("find_keys"), find));
    Reply::Map(fields)
}

fn after_word(word: &'static str, from: i64) -> Reply {
    let details = vec![
        (Reply::bulk("keyword"), Reply::bulk(word)),
        (Reply::bulk("startfrom"), Reply::Integer(from)),
    ];
    Reply::Map(vec![
        (Reply::bulk("type"), Reply::bulk("keyword")),
        (Reply::bulk("spec"), Reply::Map(details)),
    ])
}

/// What is done to keys.
pub(super) fn flags(flags: KeyFlags) -> Reply {
    Reply::Set(flags.iter().copied().map(Reply::Simple).collect())
}
