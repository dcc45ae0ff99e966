//! XINFO.

use bytes::Bytes;

use quoin_layout::{StreamConsumer, StreamId, ValueType};
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

use super::pending::name_of;
use super::{entries_reply, entry_reply, id_reply, no_group, subcommand_syntax};
use crate::command::arguments::{argument, integer, is_word, rest, to_usize};
use crate::error::CommandError;
use crate::stream::group::consumers::OpenConsumer;
use crate::stream::group::{Group, StreamFacts};
use crate::stream::{IdRange, Stream, StreamEntry};
use crate::unit::context::{Environment, ReadContext};

/// Entries that FULL shows without COUNT.
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

/// `XINFO STREAM key [FULL [COUNT count]]` → information about a stream.
pub(super) async fn xinfo_stream(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 2)?;
    let key = context.find(name, ValueType::Stream).await?;
    let key = key.ok_or(CommandError::NoSuchKey)?;
    let full = full_count(arguments)?;
    let stream = Stream::open(context, &key);
    let length = context.length(&key, context.isolation).await?;
    let head = stream.head().await?;
    let deleted = stream.max_deleted_id().await?;
    let first = stream.range(IdRange::ALL, false, 1).await?.pop();
    let first_id = first.as_ref().map_or(StreamId::MIN, |entry| entry.id);
    let nodes = stream.node_count(length, head);
    let mut fields = vec![
        ("length", Reply::Integer(length)),
        ("radix-tree-keys", Reply::Integer(nodes)),
        ("radix-tree-nodes", Reply::Integer(nodes + 1)),
        ("last-generated-id", id_reply(head.last)),
        ("max-deleted-entry-id", id_reply(deleted)),
        ("entries-added", count_reply(head.added)),
        ("recorded-first-entry-id", id_reply(first_id)),
    ];
    if let Some(facts) = stream.producer_facts().await? {
        fields.extend([
            ("idmp-duration", count_reply(facts.settings.duration_s)),
            ("idmp-maxsize", count_reply(facts.settings.entries_max)),
            ("pids-tracked", count_reply(facts.producers)),
            ("iids-tracked", count_reply(facts.entries)),
            ("iids-added", Reply::Integer(facts.added)),
            ("iids-duplicates", Reply::Integer(facts.duplicates)),
        ]);
    }
    match full {
        None => {
            let shown = |entry: Option<StreamEntry>| entry.map_or(Reply::Null, entry_reply);
            let last = stream.range(IdRange::ALL, true, 1).await?.pop();
            fields.push(("groups", Reply::count(stream.groups().await?.len())));
            fields.push(("first-entry", shown(first)));
            fields.push(("last-entry", shown(last)));
        }
        Some(count) => {
            let entries = stream.range(IdRange::ALL, false, count).await?;
            fields.push(("entries", entries_reply(entries)));
            let facts = StreamFacts {
                head,
                length,
                first: first_id,
                deleted,
            };
            let groups = groups_in_full(&stream, &facts, count).await?;
            fields.push(("groups", groups));
        }
    }
    Ok(named(fields))
}

/// The number of entries that `[FULL [COUNT count]]` shows; `None` without FULL.
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
        _ => Err(subcommand_syntax("XINFO", argument(arguments, 1)?)),
    }
}

fn named(fields: Vec<(&'static str, Reply)>) -> Reply {
    let fields = fields.into_iter();
    Reply::Map(
        fields
            .map(|(name, value)| (Reply::bulk(name), value))
            .collect(),
    )
}

fn count_reply(count: u64) -> Reply {
    Reply::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}

fn entries_read_reply(group: &Group<'_, '_>) -> Reply {
    group.row.entries_read.map_or(Reply::Null, count_reply)
}

fn lag_reply(group: &Group<'_, '_>, facts: &StreamFacts) -> Reply {
    facts.lag(&group.row).map_or(Reply::Null, Reply::Integer)
}

/// `XINFO GROUPS key` → information about each group.
pub(super) async fn xinfo_groups(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let key = context.find(argument(arguments, 2)?, ValueType::Stream);
    let key = key.await?.ok_or(CommandError::NoSuchKey)?;
    let stream = Stream::open(context, &key);
    let facts = stream.facts().await?;
    let mut shown = Vec::new();
    for group in stream.groups().await? {
        let group = Group::open(context, &key, group);
        let consumers = group.consumers().await?;
        let pending = group.pending_count(None, context.isolation).await?;
        let mut fields = vec![
            ("name", Reply::Bulk(group.name.clone())),
            ("consumers", Reply::count(consumers.len())),
            ("pending", Reply::Integer(pending)),
            ("last-delivered-id", id_reply(group.row.last)),
            ("entries-read", entries_read_reply(&group)),
            ("lag", lag_reply(&group, &facts)),
        ];
        if let Some(policy) = &group.row.policy {
            let dead_letter = policy.dead_letter.clone();
            fields.push(("min-idle", Reply::Integer(policy.min_idle_ms)));
            fields.push((
                "max-tries",
                policy.max_tries.map_or(Reply::Null, count_reply),
            ));
            fields.push(("dead-letter", dead_letter.map_or(Reply::Null, Reply::Bulk)));
        }
        shown.push(named(fields));
    }
    Ok(Reply::Array(shown))
}

/// `XINFO CONSUMERS key group` → information about each consumer.
pub(super) async fn xinfo_consumers(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (name, group_name) = (argument(arguments, 2)?, argument(arguments, 3)?);
    let key = context.find(name, ValueType::Stream).await?;
    let key = key.ok_or(CommandError::NoSuchKey)?;
    let stream = Stream::open(context, &key);
    let group = stream.group(group_name, context.isolation).await?;
    let group = group.ok_or_else(|| no_group(name, group_name))?;
    let group = Group::open(context, &key, group);
    let consumers = group.consumers().await?;
    let ids = consumers.iter().map(|consumer| consumer.row.id);
    let counts = group.pending_counts(ids).await?;
    let shown = consumers.into_iter().zip(counts);
    let shown = shown.map(|(consumer, pending)| {
        let StreamConsumer {
            seen_at_ms,
            active_at_ms,
            ..
        } = consumer.row;
        let inactive_ms = active_at_ms.map(|at_ms| context.now_ms.saturating_sub(at_ms));
        let idle_ms = context.now_ms.saturating_sub(seen_at_ms);
        named(vec![
            ("name", Reply::Bulk(consumer.name)),
            ("pending", Reply::Integer(pending)),
            ("idle", Reply::Integer(idle_ms.max(0))),
            ("inactive", Reply::Integer(inactive_ms.unwrap_or(-1))),
        ])
    });
    Ok(Reply::Array(shown.collect()))
}

/// The groups in XINFO STREAM FULL, with up to `count` pending entries of each group and each consumer.
async fn groups_in_full(
    stream: &Stream<'_, '_>,
    facts: &StreamFacts,
    count: usize,
) -> Result<Reply, CommandError> {
    let mut shown = Vec::new();
    let isolation = stream.context.isolation;
    for group in stream.groups().await? {
        let group = Group::open(stream.context, stream.key, group);
        let names = group.consumer_names().await?;
        let pending = group.pending_range(IdRange::ALL, false, count).await?;
        let pending = pending.into_iter().map(|entry| {
            Ok(Reply::Array(vec![
                id_reply(entry.id),
                Reply::Bulk(name_of(&names, entry.row.consumer)?),
                Reply::Integer(entry.row.delivered_at_ms),
                count_reply(entry.row.deliveries),
            ]))
        });
        let pending = pending.collect::<Result<_, StoreError>>()?;
        let pending_count = group.pending_count(None, isolation).await?;
        let mut consumers = Vec::new();
        for consumer in group.consumers().await? {
            consumers.push(consumer_in_full(&group, consumer, count).await?);
        }
        shown.push(named(vec![
            ("name", Reply::Bulk(group.name.clone())),
            ("last-delivered-id", id_reply(group.row.last)),
            ("entries-read", entries_read_reply(&group)),
            ("lag", lag_reply(&group, facts)),
            ("pel-count", Reply::Integer(pending_count)),
            ("pending", Reply::Array(pending)),
            ("consumers", Reply::Array(consumers)),
        ]));
    }
    Ok(Reply::Array(shown))
}

async fn consumer_in_full(
    group: &Group<'_, '_>,
    consumer: OpenConsumer,
    count: usize,
) -> Result<Reply, CommandError> {
    let id = consumer.row.id;
    let pending = group.consumer_pending(id, IdRange::ALL, count).await?;
    let pending = pending.into_iter().map(|entry| {
        Reply::Array(vec![
            id_reply(entry.id),
            Reply::Integer(entry.row.delivered_at_ms),
            count_reply(entry.row.deliveries),
        ])
    });
    let pending = pending.collect();
    let pending_count = group
        .pending_count(Some(id), group.context.isolation)
        .await?;
    let active_at_ms = consumer.row.active_at_ms.unwrap_or(-1);
    Ok(named(vec![
        ("name", Reply::Bulk(consumer.name)),
        ("seen-time", Reply::Integer(consumer.row.seen_at_ms)),
        ("active-time", Reply::Integer(active_at_ms)),
        ("pel-count", Reply::Integer(pending_count)),
        ("pending", Reply::Array(pending)),
    ]))
}
