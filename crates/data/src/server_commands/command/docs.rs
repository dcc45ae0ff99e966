//! COMMAND DOCS.

use bytes::Bytes;

use crate::command::grammar::{Argument, Kind};
use crate::command::row::Row;
use crate::error::CommandError;
use crate::table;
use crate::unit::context::Environment;
use quoin_resp::reply::Reply;

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

/// A map under construction. Its fields have the order of Redis.
#[derive(Default)]
struct Fields(Vec<(Reply, Reply)>);

impl Fields {
    fn put(&mut self, name: &'static str, value: Reply) {
        self.0.push((Reply::bulk(name), value));
    }

    fn put_text(&mut self, name: &'static str, text: Option<&'static str>) {
        if let Some(text) = text {
            self.put(name, Reply::bulk(text));
        }
    }

    fn put_flags(&mut self, name: &'static str, flags: &[(&'static str, bool)]) {
        let set = flags.iter().filter(|(_, is_set)| *is_set);
        let set: Vec<Reply> = set.map(|(flag, _)| Reply::Simple(flag)).collect();
        if !set.is_empty() {
            self.put(name, Reply::Set(set));
        }
    }
}

fn document(row: &'static Row) -> Reply {
    let mut fields = Fields::default();
    fields.put("summary", Reply::bulk(row.summary));
    fields.put("since", Reply::bulk(row.since));
    fields.put("group", Reply::bulk(row.group.name()));
    fields.put("complexity", Reply::bulk(row.complexity));
    let flags = [
        ("deprecated", row.deprecated.is_some()),
        ("syscmd", row.is_system),
    ];
    fields.put_flags("doc_flags", &flags);
    fields.put_text("deprecated_since", row.deprecated.map(|(since, _)| since));
    fields.put_text("replaced_by", row.deprecated.map(|(_, by)| by));
    if !row.history.is_empty() {
        let changes = row
            .history
            .iter()
            .map(|(since, change)| Reply::Array(vec![Reply::bulk(*since), Reply::bulk(*change)]));
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
    fields.put("name", Reply::bulk(argument.name().into_owned()));
    fields.put("type", Reply::bulk(argument.kind.name()));
    if let Some(text) = argument.display_text() {
        fields.put("display_text", Reply::bulk(text.into_owned()));
    }
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
