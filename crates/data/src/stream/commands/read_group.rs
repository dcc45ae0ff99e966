//! XREADGROUP.
//!
//! It returns null if the group has no new entry in any of the streams, and no idle entry for CLAIM
//! or a policy. Outside of MULTI its client then waits: the command runs again until it returns
//! something else (`engine::waiters`). Among the clients that wait for one group of a stream, the
//! oldest runs its command first. The next one runs only if there is something left. If the stream
//! or the group is removed, all of them get a reply.

use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use quoin_layout::{StreamId, ValueType};
use quoin_resp::reply::Reply;

use super::ids::strict_id;
use super::read::{ReadArguments, read_arguments};
use super::{entries_reply, id_reply, no_key_or_group};
use crate::command::plan::Plan;
use crate::command::waits::{WaitSpec, Wake};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::prefetch::{GroupPrefetch, Prefetch};
use crate::stream::group::deliver::{Delivered, Delivering, HistoryEntry};
use crate::stream::group::policy::IdleEntry;
use crate::stream::group::{GroupMut, OpenGroup};
use crate::stream::{Stream, StreamEntry};
use crate::unit::context::WriteContext;
use crate::unit::signals::{Offer, Wants};

/// A stream to read, and its group.
struct Source<'a> {
    name: &'a Bytes,
    key: OpenKey,
    group: OpenGroup,
    /// The consumer reads its own pending entries after this id; `None`: it reads new entries.
    history_after: Option<StreamId>,
}

/// `XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [CLAIM min-idle-time] [NOACK] STREAMS
/// key [key …] id [id …]` → entries by key.
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
            // A stream that is named twice continues where the first read ended.
            let stream = Stream::open(context, &source.key);
            if let Some(group) = stream.group(group_name, context.isolation).await? {
                source.group = group;
            }
        }
        let mut group = GroupMut::open(context, &source.key, source.group.clone());
        let found = group.find_or_create_consumer(source.name, consumer_name);
        let (mut consumer, _) = found.await?;
        let reply = match source.history_after {
            Some(after) => {
                let history = group
                    .deliver_again(&mut consumer, after, read.count)
                    .await?;
                Reply::Array(history.into_iter().map(history_reply).collect())
            }
            None => {
                let (name, no_ack) = (source.name, read.no_ack);
                let delivered = group.deliver(name, &mut consumer, read.count, no_ack, read.claim);
                let delivered = delivered.await?;
                if delivered.idle.is_empty() && delivered.new.is_empty() {
                    continue;
                }
                delivered_reply(delivered, read.claim.map(|_| context.now_ms))
            }
        };
        answer.push((Reply::Bulk(source.name.clone()), reply));
    }
    if answer.is_empty() {
        if read.block.is_some() && (!read.no_ack || read.claim.is_some()) {
            for source in sources {
                let group = GroupMut::open(context, &source.key, source.group);
                group.await_idle(read.claim).await?;
            }
        }
        return Ok(Reply::NullArray);
    }
    Ok(Reply::Keyed(answer))
}

/// The greatest COUNT of an XREADGROUP that may be coalesced.
const COALESCED_COUNT_MAX: usize = 64;
/// No further XREADGROUP is coalesced once the replies have this many bytes.
const COALESCED_REPLY_BYTES_MAX: usize = 64 * 1024;

/// The arguments, key, group and consumer of an XREADGROUP that may be coalesced, because it reads new entries of one
/// stream.
fn coalescing_parts(arguments: &[Bytes]) -> Option<(ReadArguments<'_>, &Bytes, &Bytes, &Bytes)> {
    let read = read_arguments(arguments, 0, true).ok()?;
    let (group, consumer) = read.group?;
    match (read.keys, read.ids) {
        ([key], [id]) => {
            let is_plain =
                !read.no_ack && read.claim.is_none() && read.count <= COALESCED_COUNT_MAX;
            (is_plain && id.as_ref() == b">").then_some((read, key, group, consumer))
        }
        _ => None,
    }
}

/// Whether an XREADGROUP may be coalesced.
pub(super) fn reads_new_entries(arguments: &[Bytes]) -> bool {
    coalescing_parts(arguments).is_some()
}

/// Whether two XREADGROUP commands name the same group.
pub(super) fn have_one_group(one: &[Bytes], other: &[Bytes]) -> bool {
    let group_of = |arguments| coalescing_parts(arguments).map(|(_, key, group, _)| (key, group));
    group_of(one) == group_of(other)
}

/// Several [`xreadgroup`] commands on one group. Does not support groups with a policy, which hand
/// out idle entries first.
pub(super) async fn xreadgroup_coalesced(
    context: &WriteContext<'_>,
    commands: &[&[Bytes]],
) -> Result<Vec<Reply>, CommandError> {
    let first = commands
        .first()
        .and_then(|arguments| coalescing_parts(arguments));
    let (_, name, group, _) = first.ok_or(CommandError::Syntax)?;
    let key = context.find(name, ValueType::Stream).await?;
    let key = key.ok_or(CommandError::Syntax)?;
    let stream = Stream::open(context, &key);
    let group = stream.group(group, context.isolation).await?;
    let group = group.filter(|group| group.row.policy.is_none());
    let group = group.ok_or(CommandError::Syntax)?;
    let mut delivering = Delivering::begin(GroupMut::open(context, &key, group), name);
    let mut replies = Vec::with_capacity(commands.len());
    let mut bytes = 0;
    for arguments in commands {
        if bytes >= COALESCED_REPLY_BYTES_MAX {
            break;
        }
        let (read, _, _, consumer) = coalescing_parts(arguments).ok_or(CommandError::Syntax)?;
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
    // `read_arguments` has checked it.
    read.group.ok_or(CommandError::Syntax)
}

/// Finds all streams and groups before any is read.
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
        let stream = Stream::open(context, &key);
        let group = stream.group(group_name, context.isolation).await?;
        let group = group.ok_or_else(missing)?;
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
        // In Redis the greatest id means the same as `>`.
        id => Ok(Some(strict_id(id, 0)?).filter(|id| *id != StreamId::MAX)),
    }
}

/// Entries that were pending, and then new ones. If CLAIM was given, each has the milliseconds from
/// its last delivery to this time, and the number of its previous deliveries.
fn delivered_reply(delivered: Delivered, claimed_at_ms: Option<i64>) -> Reply {
    let Some(now_ms) = claimed_at_ms else {
        let idle = delivered.idle.into_iter().map(|one| one.entry);
        return entries_reply(idle.chain(delivered.new).collect());
    };
    let shown = |entry: StreamEntry, idle_ms: i64, deliveries: u64| {
        let fields = entry.fields.into_iter().map(Reply::Bulk);
        Reply::Array(vec![
            id_reply(entry.id),
            Reply::Array(fields.collect()),
            Reply::Integer(idle_ms),
            Reply::Integer(i64::try_from(deliveries).unwrap_or(i64::MAX)),
        ])
    };
    let idle = delivered
        .idle
        .into_iter()
        .map(|IdleEntry { entry, before }| {
            let idle_ms = now_ms.saturating_sub(before.row.delivered_at_ms);
            shown(entry, idle_ms, before.row.deliveries)
        });
    let new = delivered.new.into_iter().map(|entry| shown(entry, 0, 0));
    Reply::Array(idle.chain(new).collect())
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

/// With BLOCK, XREADGROUP waits for all its streams.
pub(super) fn wait(arguments: &[Bytes], now_ms: i64) -> Result<Option<WaitSpec>, CommandError> {
    let read = read_arguments(arguments, now_ms, true)?;
    let (group, _) = group_and_consumer(&read)?;
    let wants = Reader {
        group: group.clone(),
        no_ack: read.no_ack,
        claim: read.claim,
    };
    Ok(read.block.map(|timeout| WaitSpec {
        wants: Some(Arc::new(wants)),
        wake: Wake::One,
        needs_key: true,
        ..WaitSpec::to_take(ValueType::Stream, read.keys, timeout)
    }))
}

/// A waiting client. If it finds nothing, neither do equal clients.
#[derive(Debug, PartialEq)]
struct Reader {
    group: Bytes,
    /// The client gets no idle entries by a policy.
    no_ack: bool,
    /// It gets entries that have been idle for this many milliseconds.
    claim: Option<i64>,
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
