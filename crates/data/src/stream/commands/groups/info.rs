//! XINFO GROUPS, XINFO CONSUMERS, and what XINFO STREAM shows of groups.

use bytes::Bytes;
use std::collections::HashMap;

use super::errors::no_group;
use crate::command::arguments::argument;
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::stream::commands::replies::id_reply;
use crate::stream::{IdRange, OpenConsumer, OpenGroup, StreamFacts};
use crate::unit::context::ReadContext;
use quoin_layout::{Id, StreamConsumer, ValueType};
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

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

fn entries_read_reply(group: &OpenGroup) -> Reply {
    group.row.entries_read.map_or(Reply::Null, count_reply)
}

fn lag_reply(group: &OpenGroup, facts: &StreamFacts) -> Reply {
    facts.lag(&group.row).map_or(Reply::Null, Reply::Integer)
}

/// How many groups a stream has.
pub(in crate::stream::commands) async fn group_count(
    context: &ReadContext<'_>,
    key: &OpenKey,
) -> Result<Reply, CommandError> {
    Ok(Reply::count(context.stream_groups(key).await?.len()))
}

/// `XINFO GROUPS key` → what there is to know of each group.
pub(in crate::stream::commands) async fn xinfo_groups(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let key = context.find(argument(arguments, 2)?, ValueType::Stream);
    let key = key.await?.ok_or(CommandError::NoSuchKey)?;
    let facts = context.stream_facts(&key).await?;
    let mut shown = Vec::new();
    for group in context.stream_groups(&key).await? {
        let consumers = context.stream_consumers(&key, &group).await?;
        let pending = context.stream_pending_count(&key, &group, None).await?;
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

/// `XINFO CONSUMERS key group` → what there is to know of each consumer.
pub(in crate::stream::commands) async fn xinfo_consumers(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (name, group_name) = (argument(arguments, 2)?, argument(arguments, 3)?);
    let key = context.find(name, ValueType::Stream).await?;
    let key = key.ok_or(CommandError::NoSuchKey)?;
    let group = context.stream_group(&key, group_name, context.isolation);
    let group = group.await?.ok_or_else(|| no_group(name, group_name))?;
    let consumers = context.stream_consumers(&key, &group).await?;
    let ids = consumers.iter().map(|consumer| consumer.row.id);
    let counts = context.stream_pending_counts(&key, &group, ids).await?;
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

/// What XINFO STREAM FULL shows of groups, with up to `count` pending entries of each group and each
/// consumer.
pub(in crate::stream::commands) async fn groups_in_full(
    context: &ReadContext<'_>,
    key: &OpenKey,
    facts: &StreamFacts,
    count: usize,
) -> Result<Reply, CommandError> {
    let mut shown = Vec::new();
    for group in context.stream_groups(key).await? {
        let names = context.stream_consumer_names(key, &group).await?;
        let pending = context.stream_pending_range(key, &group, IdRange::ALL, false, count);
        let pending = pending.await?.into_iter().map(|entry| {
            Ok(Reply::Array(vec![
                id_reply(entry.id),
                Reply::Bulk(name_of(&names, entry.row.consumer)?),
                Reply::Integer(entry.row.delivered_at_ms),
                count_reply(entry.row.deliveries),
            ]))
        });
        let pending = pending.collect::<Result<_, StoreError>>()?;
        let pending_count = context.stream_pending_count(key, &group, None).await?;
        let mut consumers = Vec::new();
        for consumer in context.stream_consumers(key, &group).await? {
            consumers.push(consumer_in_full(context, key, &group, consumer, count).await?);
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

/// The name of a pending entry's consumer; it is empty where XNACK has released the entry, as in
/// Redis 8.8.
pub(super) fn name_of(
    names: &HashMap<Id, Bytes>,
    consumer: Option<Id>,
) -> Result<Bytes, StoreError> {
    let Some(consumer) = consumer else {
        return Ok(Bytes::new());
    };
    names
        .get(&consumer)
        .cloned()
        .ok_or(StoreError::Corrupt("a pending entry without its consumer"))
}

async fn consumer_in_full(
    context: &ReadContext<'_>,
    key: &OpenKey,
    group: &OpenGroup,
    consumer: OpenConsumer,
    count: usize,
) -> Result<Reply, CommandError> {
    let id = consumer.row.id;
    let pending = context.stream_consumer_pending(key, group, id, IdRange::ALL, count);
    let pending = pending.await?.into_iter().map(|entry| {
        Reply::Array(vec![
            id_reply(entry.id),
            Reply::Integer(entry.row.delivered_at_ms),
            count_reply(entry.row.deliveries),
        ])
    });
    let pending = pending.collect();
    let pending_count = context.stream_pending_count(key, group, Some(id)).await?;
    let active_at_ms = consumer.row.active_at_ms.unwrap_or(-1);
    Ok(named(vec![
        ("name", Reply::Bulk(consumer.name)),
        ("seen-time", Reply::Integer(consumer.row.seen_at_ms)),
        ("active-time", Reply::Integer(active_at_ms)),
        ("pel-count", Reply::Integer(pending_count)),
        ("pending", Reply::Array(pending)),
    ]))
}
