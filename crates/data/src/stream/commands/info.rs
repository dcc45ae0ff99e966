//! XINFO STREAM.

use bytes::Bytes;

use super::groups::{group_count, groups_in_full};
use super::replies::{entries_reply, entry_reply, id_reply};
use crate::command::arguments::{argument, integer, is_word, rest, to_usize};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::stream::{IdRange, StreamEntry, StreamFacts};
use crate::unit::context::{Environment, ReadContext};
use quoin_layout::{StreamId, ValueType};
use quoin_resp::reply::Reply;

/// Entries that FULL shows where COUNT does not say.
const FULL_COUNT_DEFAULT: usize = 10;

const HELP_TITLE: &str = "XINFO <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";
const HELP: &[&str] = &[
    "CONSUMERS <key> <groupname>",
    "    Show consumers of <groupname>.",
    "GROUPS <key>",
    "    Show the stream consumer groups.",
    "STREAM <key> [FULL [COUNT <count>]",
    "    Show information about the stream.",
];

/// `XINFO HELP`.
pub(super) fn help(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(crate::command::help::help(HELP_TITLE, HELP))
}

/// `XINFO STREAM key [FULL [COUNT count]]` → what there is to know of a stream.
pub(super) async fn xinfo_stream(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 2)?;
    let key = context.find(name, ValueType::Stream).await?;
    let key = key.ok_or(CommandError::NoSuchKey)?;
    let full = full_count(arguments)?;
    let length = context.length(&key, context.isolation).await?;
    let head = context.stream_head(&key).await?;
    let deleted = context.stream_deleted(&key).await?;
    let first = end_entry(context, &key, false).await?;
    let first_id = first.as_ref().map_or(StreamId::MIN, |entry| entry.id);
    let nodes = context.stream_nodes(length, head);
    let mut fields = vec![
        ("length", Reply::Integer(length)),
        ("radix-tree-keys", Reply::Integer(nodes)),
        ("radix-tree-nodes", Reply::Integer(nodes + 1)),
        ("last-generated-id", id_reply(head.last)),
        ("max-deleted-entry-id", id_reply(deleted)),
        (
            "entries-added",
            Reply::Integer(i64::try_from(head.added).unwrap_or(i64::MAX)),
        ),
        ("recorded-first-entry-id", id_reply(first_id)),
    ];
    match full {
        None => {
            let shown = |entry: Option<StreamEntry>| entry.map_or(Reply::Null, entry_reply);
            let last = end_entry(context, &key, true).await?;
            fields.push(("groups", group_count(context, &key).await?));
            fields.push(("first-entry", shown(first)));
            fields.push(("last-entry", shown(last)));
        }
        Some(count) => {
            let entries = context
                .stream_range(&key, IdRange::ALL, false, count)
                .await?;
            fields.push(("entries", entries_reply(entries)));
            let facts = StreamFacts {
                head,
                length,
                first: first_id,
                deleted,
            };
            let groups = groups_in_full(context, &key, &facts, count).await?;
            fields.push(("groups", groups));
        }
    }
    let fields = fields.into_iter();
    Ok(Reply::Map(
        fields
            .map(|(name, value)| (Reply::bulk(name), value))
            .collect(),
    ))
}

/// The first or the last entry.
async fn end_entry(
    context: &ReadContext<'_>,
    key: &OpenKey,
    from_end: bool,
) -> Result<Option<StreamEntry>, CommandError> {
    let entries = context.stream_range(key, IdRange::ALL, from_end, 1);
    Ok(entries.await?.pop())
}

/// `[FULL [COUNT count]]`: how many entries are shown; `None` without FULL.
fn full_count(arguments: &[Bytes]) -> Result<Option<usize>, CommandError> {
    match rest(arguments, 3) {
        [] => Ok(None),
        [full] if is_word(full, "full") => Ok(Some(FULL_COUNT_DEFAULT)),
        [full, word, count] if is_word(full, "full") && is_word(word, "count") => {
            Ok(Some(match integer(count)? {
                ..0 => FULL_COUNT_DEFAULT,
                0 => usize::MAX,
                count => to_usize(count),
            }))
        }
        _ => {
            let subcommand = String::from_utf8_lossy(argument(arguments, 1)?);
            Err(CommandError::Text(
                format!(
                    "ERR unknown subcommand or wrong number of arguments for '{subcommand}'. Try \
                     XINFO HELP."
                )
                .into(),
            ))
        }
    }
}
