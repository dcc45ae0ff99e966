//! PQ.POPMIN, PQ.POPMAX, PQ.MOVE.

use bytes::Bytes;

use super::push::PUSH_EVENT;
use super::{flat_reply, pairs_reply};
use crate::commands::arguments::{argument, optional_count};
use crate::commands::sorted_sets::extreme;
use crate::error::CommandError;
use crate::events::EventClasses;
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::types::priority_queue::{Extreme, QueuedValue};
use crate::types::{OpenKey, WriteContext};

/// `PQ.POPMIN key [count]` → values with priorities.
pub(super) async fn popmin(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    pop(context, arguments, Extreme::Min).await
}

/// `PQ.POPMAX key [count]` → values with priorities.
pub(super) async fn popmax(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    pop(context, arguments, Extreme::Max).await
}

async fn pop(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    end: Extreme,
) -> Result<Reply, CommandError> {
    let limit = optional_count(arguments)?;
    let name = argument(arguments, 1)?;
    let values = match context.find(name, ValueType::PriorityQueue).await? {
        Some(key) => take(context, name, &key, limit.unwrap_or(1), end).await?,
        None => Vec::new(),
    };
    Ok(some_or_one_reply(values, limit))
}

/// As ZPOPMIN answers: pairs where there is a count, else flat.
pub(super) fn some_or_one_reply(values: Vec<QueuedValue>, limit: Option<usize>) -> Reply {
    match limit {
        Some(_) => pairs_reply(values),
        None => flat_reply(values),
    }
}

/// Pops, and removes the key when that was the last element.
pub(super) async fn take(
    context: &WriteContext<'_>,
    name: &Bytes,
    key: &OpenKey,
    limit: usize,
    end: Extreme,
) -> Result<Vec<QueuedValue>, CommandError> {
    let values = context.queue_pop(key, limit, end).await?;
    if !values.is_empty() {
        context.notify(EventClasses::MODULE, pop_event(end), name);
        context.remove_if_empty(key).await?;
    }
    Ok(values)
}

fn pop_event(end: Extreme) -> &'static str {
    match end {
        Extreme::Min => "pq.popmin",
        Extreme::Max => "pq.popmax",
    }
}

/// `PQ.MOVE source destination MIN|MAX` → the value moved, with its priority, which it keeps.
pub(super) async fn move_value(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let end = extreme(argument(arguments, 3)?)?;
    let source_name = argument(arguments, 1)?;
    let destination_name = argument(arguments, 2)?;
    let Some(source) = context.find(source_name, ValueType::PriorityQueue).await? else {
        return Ok(Reply::NullArray);
    };
    // As LMOVE: a destination of another type is refused before anything is taken, but only
    // where there is something to take.
    let destination = match context
        .find(destination_name, ValueType::PriorityQueue)
        .await
    {
        Err(CommandError::WrongType) if !context.has_elements(&source).await? => {
            return Ok(Reply::NullArray);
        }
        found => found?,
    };
    context.transaction.conflict_on_own_rows();
    let values = context.queue_pop(&source, 1, end).await?;
    if values.is_empty() {
        return Ok(Reply::NullArray);
    }
    let destination = match destination {
        Some(destination) => {
            if destination.meta_key != source.meta_key {
                context
                    .notify_if_reborn(&destination, destination_name)
                    .await?;
            }
            destination
        }
        None => {
            context
                .create(destination_name, ValueType::PriorityQueue, None)
                .await?
        }
    };
    context.queue_push(&destination, &values).await?;
    context.notify(EventClasses::MODULE, PUSH_EVENT, destination_name);
    context.notify(EventClasses::MODULE, pop_event(end), source_name);
    // After the push: a queue that is moved onto itself never ceases to exist, and keeps its
    // expiry.
    context.remove_if_empty(&source).await?;
    Ok(flat_reply(values))
}
