//! COMMAND DOCS.

use std::borrow::Cow;

use bytes::Bytes;

use crate::commands::grammar::{Argument, Kind};
use crate::commands::row::Row;
use crate::commands::table;
use crate::error::CommandError;
use crate::reply::Reply;
use crate::types::Environment;

/// `COMMAND DOCS [name …]`: documents of these commands, or of all where none is named. Unknown
/// ones are left out.
pub(super) fn docs(_: &Environment, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(Reply::Map(match arguments {
        [_, _, names @ ..] if !names.is_empty() => names
            .iter()
            .filter_map(|name| table::find_by_full_name(name))
            .map(named_document)
            .collect(),
        _ => table::commands().map(named_document).collect(),
    }))
}

fn named_document(row: &'static Row) -> (Reply, Reply) {
    (Reply::bulk(row.name), document(row))
}

/// A map under construction. Fields have the order of Redis.
#[derive(Default)]
struct Fields(Vec<(Reply, Reply)>);

impl Fields {
    fn put(&mut self, name: &'static str, value: Reply) {
        self.0.push((Reply::bulk(name), value));
    }

    fn put_text(&mut self, name: &'static str, text: Option<impl Into<Cow<'static, str>>>) {
        match text.map(Into::into) {
            Some(Cow::Borrowed(text)) => self.put(name, Reply::bulk(text)),
            Some(Cow::Owned(text)) => self.put(name, Reply::bulk(text)),
            None => {}
        }
    }

    fn put_flags(&mut self, name: &'static str, flags: &[(&'static str, bool)]) {
        let set: Vec<Reply> = flags
            .iter()
            .filter(|(_, is_set)| *is_set)
            .map(|(flag, _)| Reply::Simple(flag))
            .collect();
        if !set.is_empty() {
            self.put(name, Reply::Set(set));
        }
    }
}

fn document(row: &'static Row) -> Reply {
    let mut fields = Fields::default();
    fields.put_text("summary", Some(row.summary));
    fields.put_text("since", Some(row.since));
    fields.put_text("group", Some(row.group.name()));
    fields.put_text("complexity", Some(row.complexity));
    let flags = [
        ("deprecated", row.deprecated.is_some()),
        ("syscmd", row.is_system),
    ];
    fields.put_flags("doc_flags", &flags);
    if let Some((since, replaced_by)) = row.deprecated {
        fields.put_text("deprecated_since", Some(since));
        fields.put_text("replaced_by", Some(replaced_by));
    }
    if !row.history.is_empty() {
        let change = |(since, change): &(&'static str, &'static str)| {
            Reply::Array(vec![Reply::bulk(*since), Reply::bulk(*change)])
        };
        let changes = row.history.iter().map(change);
        fields.put("history", Reply::Set(changes.collect()));
    }
    if !row.arguments.is_empty() {
        fields.put("arguments", arguments(row.arguments));
    }
    if !row.subcommands.is_empty() {
        let documents = table::subcommands(row).iter().map(named_document);
        fields.put("subcommands", Reply::Map(documents.collect()));
    }
    Reply::Map(fields.0)
}

fn arguments(all: &'static [Argument]) -> Reply {
    Reply::Array(all.iter().map(argument).collect())
}

fn argument(argument: &'static Argument) -> Reply {
    let mut fields = Fields::default();
    fields.put_text("name", Some(argument.name()));
    fields.put_text("type", Some(argument.kind.name()));
    fields.put_text("display_text", argument.display_text());
    if let Some(number) = argument.key_spec {
        fields.put("key_spec_index", Reply::Integer(number));
    }
    fields.put_text("token", argument.token);
    fields.put_text("since", argument.since);
    fields.put_text("deprecated_since", argument.deprecated_since);
    let flags = [
        ("optional", argument.is_optional),
        ("multiple", argument.is_multiple),
        ("multiple_token", argument.repeats_token),
    ];
    fields.put_flags("flags", &flags);
    if matches!(argument.kind, Kind::OneOf | Kind::Block) {
        fields.put("arguments", arguments(argument.parts));
    }
    Reply::Map(fields.0)
}
