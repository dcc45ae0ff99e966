//! Commands on streams and consumer groups, with the replies and refusals that they share.

use std::io::Write;

use bytes::Bytes;

use quoin_layout::{StreamId, ValueType};
use quoin_resp::reply::Reply;
use quoin_store::Isolation;

use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::stream::group::OpenGroup;
use crate::stream::{Stream, StreamEntry};
use crate::unit::context::ReadContext;

mod add;
mod claim;
mod delete;
mod group;
pub(in crate::stream) mod ids;
mod info;
mod pending;
mod read;
mod read_group;
mod rows;

pub(crate) use read::refusal_in_script;
pub use rows::ROWS;

/// Bytes of the longest id.
const ID_BYTES_MAX: usize = 41;

/// An id. A range has many, so each is allocated once and with its exact length.
fn id_reply(id: StreamId) -> Reply {
    let mut text = [0; ID_BYTES_MAX];
    let mut rest = text.as_mut_slice();
    // The buffer has room for any id.
    let _ = write!(rest, "{id}");
    let bytes = ID_BYTES_MAX - rest.len();
    Reply::Bulk(Bytes::copy_from_slice(
        text.get(..bytes).unwrap_or_default(),
    ))
}

/// An entry: its id, and its alternating names and values.
fn entry_reply(entry: StreamEntry) -> Reply {
    let fields = entry.fields.into_iter().map(Reply::Bulk);
    Reply::Array(vec![id_reply(entry.id), Reply::Array(fields.collect())])
}

/// Entries in their order.
fn entries_reply(entries: Vec<StreamEntry>) -> Reply {
    Reply::Array(entries.into_iter().map(entry_reply).collect())
}

/// A name as Redis formats it: as a C string, which ends at a zero byte.
fn shown(name: &[u8]) -> String {
    let mut parts = name.split(|byte| *byte == 0);
    String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned()
}

/// The error of XREADGROUP, XPENDING, XCLAIM, XAUTOCLAIM and XNACK for a missing key or group. It
/// ends with `whence`.
fn no_key_or_group(key: &[u8], group: &[u8], whence: &str) -> CommandError {
    let (key, group) = (shown(key), shown(group));
    CommandError::Text(
        format!("NOGROUP No such key '{key}' or consumer group '{group}'{whence}").into(),
    )
}

/// The refusal of XGROUP and XINFO if the group is missing.
fn no_group(key: &[u8], group: &[u8]) -> CommandError {
    let (key, group) = (shown(key), shown(group));
    CommandError::Text(
        format!("NOGROUP No such consumer group '{group}' for key name '{key}'").into(),
    )
}

/// The refusal of XGROUP and XINFO of an option that they do not have.
fn subcommand_syntax(container: &str, subcommand: &[u8]) -> CommandError {
    let subcommand = shown(subcommand);
    CommandError::Text(
        format!(
            "ERR unknown subcommand or wrong number of arguments for '{subcommand}'. Try {container} \
             HELP."
        )
        .into(),
    )
}

/// A key and its group.
///
/// # Errors
/// NOGROUP if one is missing; `WrongType`.
async fn find_group(
    context: &ReadContext<'_>,
    key_name: &Bytes,
    name: &Bytes,
    isolation: Isolation,
) -> Result<(OpenKey, OpenGroup), CommandError> {
    let missing = || no_key_or_group(key_name, name, "");
    let key = context.find(key_name, ValueType::Stream).await?;
    let key = key.ok_or_else(missing)?;
    let group = Stream::open(context, &key).group(name, isolation).await?;
    Ok((key, group.ok_or_else(missing)?))
}
