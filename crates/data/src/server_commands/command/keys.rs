//! COMMAND GETKEYS and GETKEYSANDFLAGS.

use bytes::Bytes;

use crate::command::arguments::rest;
use crate::command::flags::Flags;
use crate::command::key_specs::KeyFlags;
use crate::error::CommandError;
use crate::server_commands::command;
use crate::table;
use crate::unit::context::Environment;
use quoin_resp::reply::Reply;

/// `COMMAND GETKEYS command [arg …]`.
pub(super) fn keys(_: &Environment, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    keys_of(rest(arguments, 2), |key, _| key)
}

/// `COMMAND GETKEYSANDFLAGS command [arg …]`: the keys and how the command uses them.
pub(super) fn keys_and_flags(_: &Environment, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    keys_of(rest(arguments, 2), |key, flags| {
        Reply::Array(vec![key, command::flags(flags)])
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
    let found = command::keys(row, command);
    if found.is_empty() && !row.flags.contains(Flags::NO_MANDATORY_KEYS) {
        return Err(CommandError::text(
            "ERR Invalid arguments specified for command",
        ));
    }
    let items = found.into_iter().filter_map(|found| {
        let key = command.get(found.at)?;
        Some(item(Reply::Bulk(key.clone()), found.flags))
    });
    Ok(Reply::Array(items.collect()))
}
