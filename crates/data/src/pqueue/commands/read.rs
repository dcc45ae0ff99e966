//! PQ.PEEKMIN, PQ.PEEKMAX, PQ.LEN, PQ.COUNT, PQ.RANGE, PQ.LIST.

use bytes::Bytes;

use super::{value_and_priority, whole_number};
use crate::command::arguments::{
    ListOptions, argument, integer, is_word, list_reply, optional_count, rest,
};
use crate::command::popping::numbered_reply;
use crate::error::CommandError;
use crate::pqueue::{Extreme, PriorityBound, PriorityQueue, PriorityQueueType};
use crate::unit::context::ReadContext;
use crate::zset::commands::c_double;
use quoin_layout::{Priority, ValueType};
use quoin_resp::reply::Reply;

/// `PQ.PEEKMIN key [count]` → values with priorities.
pub(super) async fn peekmin(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    peek(context, arguments, Extreme::Min).await
}

/// `PQ.PEEKMAX key [count]` → values with priorities.
pub(super) async fn peekmax(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    peek(context, arguments, Extreme::Max).await
}

async fn peek(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
    end: Extreme,
) -> Result<Reply, CommandError> {
    let limit = optional_count(arguments)?;
    let name = argument(arguments, 1)?;
    let values = match context.find(name, ValueType::PriorityQueue).await? {
        Some(key) => {
            PriorityQueue::open(context, &key)
                .peek(limit.unwrap_or(1), end)
                .await?
        }
        None => Vec::new(),
    };
    Ok(numbered_reply::<PriorityQueueType>(
        values.into_iter(),
        limit,
    ))
}

/// `PQ.LEN key` → number of elements.
pub(super) async fn len(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let key = context.find(name, ValueType::PriorityQueue).await?;
    Ok(Reply::Integer(match key {
        Some(key) => context.length(&key, context.isolation).await?,
        None => 0,
    }))
}

/// `PQ.COUNT key min max` → number of elements whose priority is within bounds.
pub(super) async fn count(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (Some(min), Some(max)) = (
        bound(argument(arguments, 2)?),
        bound(argument(arguments, 3)?),
    ) else {
        return Err(CommandError::text("ERR min or max is not a float"));
    };
    let name = argument(arguments, 1)?;
    let key = context.find(name, ValueType::PriorityQueue).await?;
    Ok(Reply::Integer(match key {
        Some(key) => PriorityQueue::open(context, &key).count(min, max).await?,
        None => 0,
    }))
}

/// Parses a bound like `1.5`, `(1.5` or `-inf`, with ZCOUNT's syntax. Integers keep all 64 bits.
fn bound(argument: &[u8]) -> Option<PriorityBound> {
    let (is_exclusive, number) = match argument.strip_prefix(b"(") {
        Some(number) => (true, number),
        None => (false, argument),
    };
    let priority = match whole_number(number) {
        Some(number) => Priority::integer(number),
        None => Priority::double(c_double(number)?)?,
    };
    Some(PriorityBound {
        priority,
        is_exclusive,
    })
}

/// `PQ.LIST key [CURSOR cursor] [COUNT count]` → the next cursor, and values with priorities.
pub(super) async fn list(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let options = ListOptions::parse(rest(arguments, 2))?;
    let name = argument(arguments, 1)?;
    let (values, next) = match context.find(name, ValueType::PriorityQueue).await? {
        Some(key) => PriorityQueue::open(context, &key).list(&options).await?,
        None => (Vec::new(), None),
    };
    let pairs = values.into_iter().map(value_and_priority);
    Ok(list_reply(next.as_deref(), Reply::Pairs(pairs.collect())))
}

/// `PQ.RANGE key start stop [REV]` → values with priorities.
pub(super) async fn range(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let start = integer(argument(arguments, 2)?)?;
    let stop = integer(argument(arguments, 3)?)?;
    let reverse = match rest(arguments, 4) {
        [] => false,
        [word] if is_word(word, "rev") => true,
        _ => return Err(CommandError::Syntax),
    };
    let name = argument(arguments, 1)?;
    let values = match context.find(name, ValueType::PriorityQueue).await? {
        Some(key) => {
            PriorityQueue::open(context, &key)
                .range(start, stop, reverse)
                .await?
        }
        None => Vec::new(),
    };
    let pairs = values.into_iter().map(value_and_priority);
    Ok(Reply::Pairs(pairs.collect()))
}
