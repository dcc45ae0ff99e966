//! COMMAND DOCS. The grammar of arguments, which Redis tells too, is left out.

use bytes::Bytes;

use super::entries::{commands, find, subcommands};
use crate::commands::details;
use crate::commands::table::Entry;
use crate::reply::Reply;

/// Documents of these commands, or of all where none is named. Unknown ones are left out.
pub(super) fn docs(names: &[Bytes]) -> Reply {
    let pair = |entry: &'static Entry| (Reply::bulk(entry.full_name.as_str()), document(entry));
    Reply::Map(match names {
        [] => commands().map(pair).collect(),
        names => names
            .iter()
            .filter_map(|name| find(name))
            .map(pair)
            .collect(),
    })
}

fn document(entry: &'static Entry) -> Reply {
    let row = entry.row;
    let details = details::find(&entry.full_name);
    let mut fields = Vec::new();
    let mut put = |name: &'static str, value: Reply| fields.push((Reply::bulk(name), value));
    put("summary", Reply::bulk(row.summary));
    put("since", Reply::bulk(row.since));
    put("group", Reply::bulk(row.group.name()));
    if !row.complexity.is_empty() {
        put("complexity", Reply::bulk(row.complexity));
    }
    let mut flags = Vec::new();
    if details.deprecated.is_some() {
        flags.push(Reply::Simple("deprecated"));
    }
    if details.is_system {
        flags.push(Reply::Simple("syscmd"));
    }
    if !flags.is_empty() {
        put("doc_flags", Reply::Set(flags));
    }
    if let Some((since, replaced_by)) = details.deprecated {
        put("deprecated_since", Reply::bulk(since));
        if !replaced_by.is_empty() {
            put("replaced_by", Reply::bulk(replaced_by));
        }
    }
    if !details.history.is_empty() {
        let changes = details
            .history
            .iter()
            .map(|(since, change)| Reply::Array(vec![Reply::bulk(*since), Reply::bulk(*change)]));
        put("history", Reply::Set(changes.collect()));
    }
    if !row.subcommands.is_empty() {
        let pairs =
            subcommands(entry).map(|one| (Reply::bulk(one.full_name.as_str()), document(one)));
        put("subcommands", Reply::Map(pairs.collect()));
    }
    Reply::Map(fields)
}
