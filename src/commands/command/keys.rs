//! COMMAND GETKEYS and GETKEYSANDFLAGS.

use bytes::Bytes;

use super::info;
use crate::commands::Row;
use crate::commands::arguments::rest;
use crate::commands::flags::Flags;
use crate::commands::key_specs::KeyFlags;
use crate::commands::table;
use crate::error::CommandError;
use crate::reply::Reply;
use crate::types::Environment;

/// `COMMAND GETKEYS command [arg …]`.
pub(super) fn keys(_: &Environment, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    keys_of(rest(arguments, 2), |key, _| key)
}

/// `COMMAND GETKEYSANDFLAGS command [arg …]`: the keys with what is done to them.
pub(super) fn keys_and_flags(_: &Environment, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    keys_of(rest(arguments, 2), |key, flags| {
        Reply::Array(vec![key, info::flags(flags)])
    })
}

fn keys_of(
    command: &[Bytes],
    item: impl Fn(Reply, KeyFlags) -> Reply,
) -> Result<Reply, CommandError> {
    let row = match command {
        [] => None,
        [name] => table::find(name),
        [name, word, ..] => table::find(name).and_then(|row| match row.subcommands {
            [] => Some(row),
            _ => table::find_subcommand(row, word),
        }),
    };
    let row = row.ok_or(CommandError::text("ERR Invalid command specified"))?;
    if !row.has_keys() {
        return Err(CommandError::text("ERR The command has no key arguments"));
    }
    if !row.accepts(command.len()) {
        return Err(CommandError::text(
            "ERR Invalid number of arguments specified for command",
        ));
    }
    match items_of(row, command, item) {
        Some(items) => Ok(Reply::Array(items)),
        None if row.flags.contains(Flags::NO_MANDATORY_KEYS) => Ok(Reply::Array(Vec::new())),
        None => Err(CommandError::text(
            "ERR Invalid arguments specified for command",
        )),
    }
}

/// `None` where the arguments do not say which keys there are.
fn items_of(
    row: &Row,
    command: &[Bytes],
    item: impl Fn(Reply, KeyFlags) -> Reply,
) -> Option<Vec<Reply>> {
    let mut items = Vec::new();
    for spec in row.keys {
        let indexes = spec.indexes(command)?;
        let flags = spec.flags_of(command);
        let keys = indexes.filter_map(|at| command.get(at));
        items.extend(keys.map(|key| item(Reply::Bulk(key.clone()), flags)));
    }
    Some(items)
}
