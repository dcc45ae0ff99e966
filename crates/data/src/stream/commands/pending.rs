//! XPENDING and XACK.

use std::collections::HashMap;

use bytes::Bytes;

use quoin_base::limits::RANGE_PAGE_ROWS;
use quoin_layout::{Id, StreamId, ValueType};
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

use super::ids::{interval_first, interval_last, strict_id, strict_ids};
use super::{find_group, id_reply};
use crate::command::arguments::{argument, integer, is_word, rest, to_usize};
use crate::command::plan::Plan;
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::prefetch::{GroupPrefetch, Prefetch};
use crate::stream::group::pending::PendingEntry;
use crate::stream::group::{Group, GroupMut, OpenGroup};
use crate::stream::{IdRange, Stream};
use crate::unit::context::{ReadContext, WriteContext};

/// The idle time that Redis 8.8 shows of an entry that XNACK has released.
const RELEASED_IDLE_MS: i64 = -1;

/// `[IDLE min-idle-time] start end count [consumer]`.
struct Filter<'a> {
    min_idle_ms: i64,
    range: IdRange,
    count: usize,
    consumer: Option<&'a Bytes>,
}

/// Reads the arguments after the group, checking them in Redis's order.
fn filter(arguments: &[Bytes]) -> Result<Filter<'_>, CommandError> {
    let options = match arguments.len() {
        6..=9 => rest(arguments, 3),
        _ => return Err(CommandError::Syntax),
    };
    let (min_idle_ms, options) = match options {
        [word, idle, options @ ..] if is_word(word, "idle") => {
            let idle = integer(idle)?;
            if arguments.len() < 8 {
                return Err(CommandError::Syntax);
            }
            (idle, options)
        }
        options => (0, options),
    };
    let count = to_usize(integer(argument(options, 2)?)?);
    let range = IdRange {
        first: interval_first(argument(options, 0)?)?,
        last: interval_last(argument(options, 1)?)?,
    };
    Ok(Filter {
        min_idle_ms,
        range,
        count,
        consumer: options.get(3),
    })
}

/// `XPENDING key group [[IDLE min-idle-time] start end count [consumer]]` → the pending entries.
pub(super) async fn xpending(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let filter = match arguments {
        [_, _, _] => None,
        arguments => Some(filter(arguments)?),
    };
    let (name, group_name) = (argument(arguments, 1)?, argument(arguments, 2)?);
    let (key, group) = find_group(context, name, group_name, context.isolation).await?;
    let group = Group::open(context, &key, group);
    match filter {
        None => summary(&group).await,
        Some(filter) => list(&group, &filter).await,
    }
}

/// The number of pending entries, the first and the last id, and the number of each consumer.
async fn summary(group: &Group<'_, '_>) -> Result<Reply, CommandError> {
    let end_id = async |from_end| {
        let mut entries = group.pending_range(IdRange::ALL, from_end, 1).await?;
        Ok::<_, StoreError>(entries.pop().map(|entry| id_reply(entry.id)))
    };
    let count = group.pending_count(None, group.context.isolation).await?;
    let ends = (end_id(false).await?, end_id(true).await?);
    let (Some(first), Some(last)) = ends else {
        let nothing = [Reply::Null, Reply::Null, Reply::NullArray];
        let all = std::iter::once(Reply::Integer(0)).chain(nothing);
        return Ok(Reply::Array(all.collect()));
    };
    let consumers = group.consumers().await?;
    let ids = consumers.iter().map(|consumer| consumer.row.id);
    let counts = group.pending_counts(ids).await?;
    let of_each = consumers.into_iter().zip(counts);
    let of_each = of_each.filter(|(_, count)| *count != 0);
    let of_each = of_each.map(|(consumer, count)| {
        Reply::Array(vec![
            Reply::Bulk(consumer.name),
            Reply::bulk(count.to_string()),
        ])
    });
    Ok(Reply::Array(vec![
        Reply::Integer(count),
        first,
        last,
        Reply::Array(of_each.collect()),
    ]))
}

/// The pending entries themselves.
async fn list(group: &Group<'_, '_>, filter: &Filter<'_>) -> Result<Reply, CommandError> {
    let now_ms = group.context.now_ms;
    let consumer = match filter.consumer {
        None => None,
        Some(name) => match group.consumer(name).await? {
            None => return Ok(Reply::Array(Vec::new())),
            found => found,
        },
    };
    let consumer = consumer.map(|consumer| consumer.row.id);
    let names = group.consumer_names().await?;
    let mut shown = Vec::new();
    let mut range = Some(filter.range);
    while let Some(some) = range
        && shown.len() < filter.count
    {
        let missing = (filter.count - shown.len()).min(RANGE_PAGE_ROWS);
        // With IDLE, most of a page may not be shown.
        let page = if filter.min_idle_ms == 0 {
            missing
        } else {
            RANGE_PAGE_ROWS
        };
        let entries = match consumer {
            Some(consumer) => group.consumer_pending(consumer, some, page).await?,
            None => group.pending_range(some, false, page).await?,
        };
        let next = entries.last().and_then(|last| last.id.next());
        range = next
            .filter(|_| entries.len() == page)
            .map(|first| IdRange { first, ..some });
        let is_idle = |entry: &&PendingEntry| {
            let idle_ms = now_ms.saturating_sub(entry.row.delivered_at_ms);
            let is_released = entry.row.consumer.is_none();
            filter.min_idle_ms == 0 || is_released || idle_ms >= filter.min_idle_ms
        };
        for entry in entries.iter().filter(is_idle).take(missing) {
            let name = name_of(&names, entry.row.consumer)?;
            let idle_ms = now_ms.saturating_sub(entry.row.delivered_at_ms);
            let idle_ms = match entry.row.consumer {
                Some(_) => idle_ms.max(0),
                None => RELEASED_IDLE_MS,
            };
            shown.push(Reply::Array(vec![
                id_reply(entry.id),
                Reply::Bulk(name),
                Reply::Integer(idle_ms),
                Reply::Integer(i64::try_from(entry.row.deliveries).unwrap_or(i64::MAX)),
            ]));
        }
    }
    Ok(Reply::Array(shown))
}

/// The name of a pending entry's consumer. As in Redis 8.8, it is empty if XNACK has released the
/// entry.
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

/// `XACK key group id [id …]` → how many of these were pending.
pub(super) async fn xack(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let Some((key, group)) = group_if_any(context, arguments).await? else {
        return Ok(Reply::Integer(0));
    };
    let ids = strict_ids(rest(arguments, 3))?;
    let group = GroupMut::open(context, &key, group);
    Ok(Reply::Integer(group.acknowledge(&ids).await?))
}

/// Whether two [`xack`] commands name the same group.
pub(super) fn have_one_group(one: &[Bytes], other: &[Bytes]) -> bool {
    one.get(1..3) == other.get(1..3)
}

/// Several [`xack`] commands on one group.
pub(super) async fn xack_coalesced(
    context: &WriteContext<'_>,
    commands: &[&[Bytes]],
) -> Result<Vec<Reply>, CommandError> {
    let first = commands.first().ok_or(CommandError::Syntax)?;
    let Some((key, group)) = group_if_any(context, first).await? else {
        return Ok(vec![Reply::Integer(0); commands.len()]);
    };
    let mut ids = Vec::with_capacity(commands.len());
    for arguments in commands {
        ids.push(strict_ids(rest(arguments, 3))?);
    }
    let ids: Vec<&[StreamId]> = ids.iter().map(Vec::as_slice).collect();
    let group = GroupMut::open(context, &key, group);
    let counts = group.acknowledge_each(&ids).await?;
    Ok(counts.into_iter().map(Reply::Integer).collect())
}

/// XACK reads the row of its group and its pending entries.
pub(super) fn plan(arguments: &[Bytes]) -> Option<Plan> {
    let ids = rest(arguments, 3).iter();
    Some(Plan::Read(vec![Prefetch::Stream {
        head: false,
        group: Some(GroupPrefetch {
            name: arguments.get(2)?.clone(),
            consumer: None,
            pending: ids.map_while(|id| strict_id(id, 0).ok()).collect(),
        }),
    }]))
}

/// The stream and the group of the first two arguments, if they exist.
pub(super) async fn group_if_any(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Option<(OpenKey, OpenGroup)>, CommandError> {
    let key = context.find(argument(arguments, 1)?, ValueType::Stream);
    let Some(key) = key.await? else {
        return Ok(None);
    };
    let stream = Stream::open(context, &key);
    let group = stream.group(argument(arguments, 2)?, context.relaxed());
    Ok(group.await?.map(|group| (key, group)))
}
