//! XREADGROUP.
//!
//! It answers null where a group has no new entry in any of the streams. Outside of MULTI its client
//! then waits until the command is run again and answers something else (`engine::waiters`). Of the
//! clients that wait for one group in a stream the oldest runs its command first, and the next only if
//! that has left something. If the stream or the group goes, all of them are answered.

use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use super::errors::no_key_or_group;
use crate::command::plan::Plan;
use crate::command::waits::{WaitSpec, Wake};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::prefetch::{GroupPrefetch, Prefetch};
use crate::stream::commands::ids::strict_id;
use crate::stream::commands::read_arguments::{ReadArguments, read_arguments};
use crate::stream::commands::replies::{entries_reply, id_reply};
use crate::stream::{Delivering, HistoryEntry, OpenGroup};
use crate::unit::context::WriteContext;
use crate::unit::wants::{Offer, Wants};
use quoin_layout::{StreamId, ValueType};
use quoin_resp::reply::Reply;

/// A stream that is read, its group, and after which of its own entries the consumer reads; `None`
/// reads new entries.
struct Source<'a> {
    name: &'a Bytes,
    key: OpenKey,
    group: OpenGroup,
    history_after: Option<StreamId>,
}

/// `XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key …] id
/// [id …]` → entries by key.
pub(super) async fn xreadgroup(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let read = read_arguments(arguments, context.now_ms, true)?;
    let (group_name, consumer_name) = group_and_consumer(&read)?;
    let mut answer = Vec::new();
    let mut seen = HashSet::new();
    let mut sources = sources(context, &read, group_name).await?;
    for source in &mut sources {
        if !seen.insert(source.name) {
            // A stream that is named twice goes on where it was the first time.
            let group = context.stream_group(&source.key, group_name, context.isolation);
            if let Some(group) = group.await? {
                source.group = group;
            }
        }
        let (key, group) = (&source.key, &mut source.group);
        let found = context.stream_find_or_create_consumer(key, source.name, group, consumer_name);
        let (mut consumer, _) = found.await?;
        let reply = match source.history_after {
            Some(after) => {
                let history =
                    context.stream_deliver_again(key, group, &mut consumer, after, read.count);
                Reply::Array(history.await?.into_iter().map(history_reply).collect())
            }
            None => {
                let entries = context.stream_deliver(
                    key,
                    source.name,
                    group,
                    &mut consumer,
                    read.count,
                    read.no_ack,
                );
                let entries = entries.await?;
                if entries.is_empty() {
                    continue;
                }
                entries_reply(entries)
            }
        };
        answer.push((Reply::Bulk(source.name.clone()), reply));
    }
    if answer.is_empty() {
        if read.block.is_some() && !read.no_ack {
            for source in &sources {
                let awaited = context.stream_await_idle(&source.key, &source.group);
                awaited.await?;
            }
        }
        return Ok(Reply::NullArray);
    }
    Ok(Reply::Keyed(answer))
}

/// Entries that an XREADGROUP asks for at most where it may be part of a series.
const SERIES_COUNT_MAX: usize = 64;
/// Bytes of replies after which a series ends.
const SERIES_REPLY_BYTES_MAX: usize = 64 * 1024;

/// What an XREADGROUP of a series reads: new entries of one stream.
fn of_series(arguments: &[Bytes]) -> Option<(ReadArguments<'_>, &Bytes, &Bytes, &Bytes)> {
    let read = read_arguments(arguments, 0, true).ok()?;
    let (group, consumer) = read.group?;
    match (read.keys, read.ids) {
        ([key], [id]) if id.as_ref() == b">" && !read.no_ack && read.count <= SERIES_COUNT_MAX => {
            Some((read, key, group, consumer))
        }
        _ => None,
    }
}

/// Whether an XREADGROUP may be one of several that run as one.
pub(super) fn reads_new_entries(arguments: &[Bytes]) -> bool {
    of_series(arguments).is_some()
}

/// Whether two XREADGROUPs of series are of one group.
pub(super) fn have_one_group(one: &[Bytes], other: &[Bytes]) -> bool {
    let group_of = |arguments| of_series(arguments).map(|(_, key, group, _)| (key, group));
    group_of(one) == group_of(other)
}

/// Several of [`xreadgroup`] of one group. A group with a policy, which hands out idle entries first,
/// is not read so.
pub(super) async fn xreadgroup_series(
    context: &WriteContext<'_>,
    commands: &[&[Bytes]],
) -> Result<Vec<Reply>, CommandError> {
    let first = commands.first().and_then(|arguments| of_series(arguments));
    let (_, name, group, _) = first.ok_or(CommandError::Syntax)?;
    let key = context.find(name, ValueType::Stream).await?;
    let key = key.ok_or(CommandError::Syntax)?;
    let group = context.stream_group(&key, group, context.isolation).await?;
    let group = group.filter(|group| group.row.policy.is_none());
    let group = group.ok_or(CommandError::Syntax)?;
    let mut delivering = Delivering::begin(context, &key, name, group);
    let mut replies = Vec::with_capacity(commands.len());
    let mut bytes = 0;
    for arguments in commands {
        if bytes >= SERIES_REPLY_BYTES_MAX {
            break;
        }
        let (read, _, _, consumer) = of_series(arguments).ok_or(CommandError::Syntax)?;
        let entries = delivering.deliver(consumer, read.count).await?;
        let reply = match entries.is_empty() {
            true => Reply::NullArray,
            false => Reply::Keyed(vec![(Reply::Bulk(name.clone()), entries_reply(entries))]),
        };
        bytes += reply.size_hint();
        replies.push(reply);
    }
    delivering.end().await?;
    Ok(replies)
}

fn group_and_consumer<'a>(
    read: &ReadArguments<'a>,
) -> Result<(&'a Bytes, &'a Bytes), CommandError> {
    // `read_arguments` has made sure of it.
    read.group.ok_or(CommandError::Syntax)
}

/// All streams are looked at before any is read.
async fn sources<'a>(
    context: &WriteContext<'_>,
    read: &ReadArguments<'a>,
    group_name: &Bytes,
) -> Result<Vec<Source<'a>>, CommandError> {
    let mut sources = Vec::with_capacity(read.keys.len());
    for (name, id) in read.keys.iter().zip(read.ids) {
        let missing = || no_key_or_group(name, group_name, " in XREADGROUP with GROUP option");
        let key = context.find(name, ValueType::Stream).await?;
        let key = key.ok_or_else(missing)?;
        let group = context.stream_group(&key, group_name, context.isolation);
        let group = group.await?.ok_or_else(missing)?;
        sources.push(Source {
            name,
            key,
            group,
            history_after: history_after(id)?,
        });
    }
    Ok(sources)
}

fn history_after(id: &[u8]) -> Result<Option<StreamId>, CommandError> {
    match id {
        b">" => Ok(None),
        b"$" => Err(CommandError::text(
            "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history \
             of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ \
             ID would just return an empty result set.",
        )),
        // To Redis the greatest id is the same as `>`.
        id => Ok(Some(strict_id(id, 0)?).filter(|id| *id != StreamId::MAX)),
    }
}

fn history_reply(entry: HistoryEntry) -> Reply {
    let fields = match entry.fields {
        Some(fields) => Reply::Array(fields.into_iter().map(Reply::Bulk).collect()),
        None => Reply::NullArray,
    };
    Reply::Array(vec![id_reply(entry.id), fields])
}

/// XREADGROUP reads the rows of its group and its consumer in each of its streams.
pub(super) fn plan(arguments: &[Bytes]) -> Option<Plan> {
    let read = read_arguments(arguments, 0, true).ok()?;
    let (group, consumer) = read.group?;
    let of_each = Prefetch::Stream {
        head: false,
        group: Some(GroupPrefetch {
            name: group.clone(),
            consumer: Some(consumer.clone()),
            pending: Vec::new(),
        }),
    };
    Some(Plan::Read(vec![of_each; read.keys.len()]))
}

/// XREADGROUP waits for all its streams, if it has BLOCK.
pub(super) fn wait(arguments: &[Bytes], now_ms: i64) -> Result<Option<WaitSpec>, CommandError> {
    let read = read_arguments(arguments, now_ms, true)?;
    let (group, _) = group_and_consumer(&read)?;
    let wants = Reader {
        group: group.clone(),
        no_ack: read.no_ack,
    };
    Ok(read.block.map(|timeout| WaitSpec {
        wants: Some(Arc::new(wants)),
        wake: Wake::One,
        needs_key: true,
        ..WaitSpec::to_take(ValueType::Stream, read.keys, timeout)
    }))
}

/// What a client reads as. Where one finds nothing the others that are the same do not either.
#[derive(Debug, PartialEq)]
struct Reader {
    group: Bytes,
    /// It gets no idle entries.
    no_ack: bool,
}

impl Wants for Reader {
    fn accepts(&self, _: &dyn Offer) -> bool {
        // Streams offer no items.
        true
    }

    fn is_same(&self, other: &dyn Wants) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref() == Some(self)
    }
}
