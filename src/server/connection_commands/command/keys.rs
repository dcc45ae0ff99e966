//! COMMAND GETKEYS and GETKEYSANDFLAGS.

use bytes::Bytes;

use super::entries::entry;
use super::info;
use crate::commands::details::{self, FindKeys};
use crate::commands::row::{KeyPositions, Row};
use crate::error::CommandError;
use crate::reply::Reply;

/// The keys of a whole command, with what is done to them where that is asked for.
pub(super) fn keys(command: &[Bytes], shows_flags: bool) -> Result<Reply, CommandError> {
    let row = command
        .first()
        .and_then(|name| crate::commands::find(name))
        .and_then(|row| match row.subcommands {
            [] => Some(row),
            _ if command.len() == 1 => Some(row),
            _ => row.subcommand(command),
        })
        .ok_or(CommandError::text("ERR Invalid command specified"))?;
    if matches!(
        row.keys,
        KeyPositions::None | KeyPositions::ShardChannels { .. }
    ) {
        return Err(CommandError::text("ERR The command has no key arguments"));
    }
    if !row.accepts(command.len()) {
        return Err(CommandError::text(
            "ERR Invalid number of arguments specified for command",
        ));
    }
    let indexes = row.key_indexes(command);
    if indexes.is_empty() {
        return Err(CommandError::text(
            "ERR Invalid arguments specified for command",
        ));
    }
    let keys = indexes.into_iter().filter_map(|index| {
        let key = Reply::Bulk(command.get(index)?.clone());
        Some(if shows_flags {
            Reply::Array(vec![key, info::flags(flags_at(row, index))])
        } else {
            key
        })
    });
    Ok(Reply::Array(keys.collect()))
}

/// What is done to the key at an argument: the flags of the last specification that begins at or
/// before it.
fn flags_at(row: &'static Row, index: usize) -> &'static [&'static str] {
    let Some(entry) = entry(row) else {
        return &[];
    };
    let index = i64::try_from(index).unwrap_or(i64::MAX);
    let specifications = details::key_specifications(row, &entry.full_name);
    let covers = |begin: Option<i64>, find: FindKeys| match begin {
        // SORT's STORE, the only key of which the place is not known.
        None => index > 1,
        Some(begin) => begin <= index && (find != FindKeys::Number || begin < index),
    };
    specifications
        .iter()
        .rfind(|one| covers(one.begin, one.find))
        .map_or(&[], |one| one.flags)
}
