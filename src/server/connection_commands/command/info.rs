//! COMMAND INFO: the ten elements of a command.

use super::entries::subcommands;
use crate::commands::details::{self, FindKeys, KeySpecification};
use crate::commands::table::Entry;
use crate::reply::Reply;

pub(super) fn info(entry: &'static Entry) -> Reply {
    let row = entry.row;
    let (first, last, step) = details::legacy_range(row);
    let specifications = details::key_specifications(row, &entry.full_name);
    Reply::Array(vec![
        Reply::bulk(entry.full_name.as_str()),
        Reply::Integer(row.arity.into()),
        Reply::Set(row.flags.names().map(Reply::Simple).collect()),
        Reply::Integer(first),
        Reply::Integer(last),
        Reply::Integer(step),
        Reply::Set(
            details::categories(entry)
                .into_iter()
                .map(Reply::Simple)
                .collect(),
        ),
        Reply::Set(
            details::find(&entry.full_name)
                .tips
                .iter()
                .map(|tip| Reply::bulk(*tip))
                .collect(),
        ),
        Reply::Set(specifications.iter().map(specification).collect()),
        subcommand_infos(entry),
    ])
}

fn subcommand_infos(entry: &'static Entry) -> Reply {
    if entry.row.subcommands.is_empty() {
        return Reply::Set(Vec::new());
    }
    Reply::Array(subcommands(entry).map(info).collect())
}

fn specification(specification: &KeySpecification) -> Reply {
    let name = |name: &'static str| Reply::bulk(name);
    let typed = |kind: &'static str, details: Vec<(&'static str, i64)>| {
        let details = details
            .into_iter()
            .map(|(field, value)| (name(field), Reply::Integer(value)));
        Reply::Map(vec![
            (name("type"), name(kind)),
            (name("spec"), Reply::Map(details.collect())),
        ])
    };
    let mut fields = Vec::new();
    if let Some(notes) = specification.notes {
        fields.push((name("notes"), name(notes)));
    }
    fields.push((name("flags"), flags(specification.flags)));
    let begin = match specification.begin {
        Some(index) => typed("index", vec![("index", index)]),
        None => typed("unknown", Vec::new()),
    };
    fields.push((name("begin_search"), begin));
    let find = match specification.find {
        FindKeys::Range { last, step } => typed(
            "range",
            vec![("lastkey", last), ("keystep", step), ("limit", 0)],
        ),
        FindKeys::Number => typed(
            "keynum",
            vec![("keynumidx", 0), ("firstkey", 1), ("keystep", 1)],
        ),
        FindKeys::Unknown => typed("unknown", Vec::new()),
    };
    fields.push((name("find_keys"), find));
    Reply::Map(fields)
}

pub(super) fn flags(flags: &'static [&'static str]) -> Reply {
    Reply::Set(flags.iter().copied().map(Reply::Simple).collect())
}
