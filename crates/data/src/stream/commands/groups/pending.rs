//! XPENDING.

use bytes::Bytes;

use super::errors::group_of;
use super::info::name_of;
use crate::command::arguments::{argument, integer, is_word, rest, to_usize};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::stream::commands::ids::{interval_first, interval_last};
use crate::stream::commands::replies::id_reply;
use crate::stream::{IdRange, OpenGroup, PendingEntry};
use crate::unit::context::ReadContext;
use quoin_base::limits::RANGE_PAGE_ROWS;
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

/// What Redis 8.8 shows for how long an entry is idle that XNACK has released.
const RELEASED_IDLE_MS: i64 = -1;

/// `[IDLE min-idle-time] start end count [consumer]`.
struct Filter<'a> {
    min_idle_ms: i64,
    range: IdRange,
    count: usize,
    consumer: Option<&'a Bytes>,
}

/// Reads the arguments after the group in the order in which Redis complains of them.
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

/// `XPENDING key group [[IDLE min-idle-time] start end count [consumer]]` → what is pending.
pub(super) async fn xpending(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let filter = match arguments {
        [_, _, _] => None,
        arguments => Some(filter(arguments)?),
    };
    let (name, group_name) = (argument(arguments, 1)?, argument(arguments, 2)?);
    let (key, group) = group_of(context, name, group_name, context.isolation).await?;
    match filter {
        None => summary(context, &key, &group).await,
        Some(filter) => list(context, &key, &group, &filter).await,
    }
}

/// How many entries are pending, the first and the last of them, and how many of each consumer.
async fn summary(
    context: &ReadContext<'_>,
    key: &OpenKey,
    group: &OpenGroup,
) -> Result<Reply, CommandError> {
    let end_id = async |from_end| {
        let entries = context.stream_pending_range(key, group, IdRange::ALL, from_end, 1);
        Ok::<_, StoreError>(entries.await?.pop().map(|entry| id_reply(entry.id)))
    };
    let count = context.stream_pending_count(key, group, None).await?;
    let ends = (end_id(false).await?, end_id(true).await?);
    let (Some(first), Some(last)) = ends else {
        let nothing = [Reply::Null, Reply::Null, Reply::NullArray];
        let all = std::iter::once(Reply::Integer(0)).chain(nothing);
        return Ok(Reply::Array(all.collect()));
    };
    let consumers = context.stream_consumers(key, group).await?;
    let ids = consumers.iter().map(|consumer| consumer.row.id);
    let counts = context.stream_pending_counts(key, group, ids).await?;
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
async fn list(
    context: &ReadContext<'_>,
    key: &OpenKey,
    group: &OpenGroup,
    filter: &Filter<'_>,
) -> Result<Reply, CommandError> {
    let consumer = match filter.consumer {
        None => None,
        Some(name) => match context.stream_consumer(key, group, name).await? {
            None => return Ok(Reply::Array(Vec::new())),
            found => found,
        },
    };
    let consumer = consumer.map(|consumer| consumer.row.id);
    let names = context.stream_consumer_names(key, group).await?;
    let mut shown = Vec::new();
    let mut range = Some(filter.range);
    while let Some(some) = range
        && shown.len() < filter.count
    {
        let missing = (filter.count - shown.len()).min(RANGE_PAGE_ROWS);
        // Most may not be idle for long enough.
        let page = if filter.min_idle_ms == 0 {
            missing
        } else {
            RANGE_PAGE_ROWS
        };
        let entries = match consumer {
            Some(consumer) => {
                let entries = context.stream_consumer_pending(key, group, consumer, some, page);
                entries.await?
            }
            None => {
                let entries = context.stream_pending_range(key, group, some, false, page);
                entries.await?
            }
        };
        let next = entries.last().and_then(|last| last.id.next());
        range = next
            .filter(|_| entries.len() == page)
            .map(|first| IdRange { first, ..some });
        let is_idle = |entry: &&PendingEntry| {
            let idle_ms = context.now_ms.saturating_sub(entry.row.delivered_at_ms);
            let is_released = entry.row.consumer.is_none();
            filter.min_idle_ms == 0 || is_released || idle_ms >= filter.min_idle_ms
        };
        for entry in entries.iter().filter(is_idle).take(missing) {
            let name = name_of(&names, entry.row.consumer)?;
            let idle_ms = context.now_ms.saturating_sub(entry.row.delivered_at_ms);
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
