//! How priority queues are popped from: PQ.POPMIN, PQ.POPMAX, PQ.MOVE.

use bytes::Bytes;

use super::push::PUSH_EVENT;
use super::value_and_priority;
use crate::command::arguments::argument;
use crate::command::popping::{Movable, Numbered, Poppable, move_one, numbered_reply};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::pqueue::QueuedValue;
use crate::unit::context::WriteContext;
use crate::zset::commands::{extreme, is_max};
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

/// Priority queues, for the commands that pop.
pub(super) enum PriorityQueue {}

impl Poppable for PriorityQueue {
    type Element = QueuedValue;
    const VALUE_TYPE: ValueType = ValueType::PriorityQueue;
    const EVENTS: EventClasses = EventClasses::MODULE;

    fn from_end(word: &[u8]) -> Result<bool, CommandError> {
        is_max(word)
    }

    fn pop_event(from_end: bool) -> &'static str {
        if from_end { "pq.popmax" } else { "pq.popmin" }
    }

    async fn pop(
        context: &WriteContext<'_>,
        key: &OpenKey,
        count: usize,
        from_end: bool,
    ) -> Result<Vec<QueuedValue>, StoreError> {
        context.queue_pop(key, count, extreme(from_end)).await
    }

    fn reply(element: QueuedValue) -> Reply {
        let (value, priority) = value_and_priority(element);
        Reply::Array(vec![value, priority])
    }

    fn popped_reply(elements: impl Iterator<Item = QueuedValue>, limit: Option<usize>) -> Reply {
        numbered_reply::<Self>(elements, limit)
    }
}

impl Numbered for PriorityQueue {
    fn with_number(element: QueuedValue) -> (Reply, Reply) {
        value_and_priority(element)
    }
}

impl Movable for PriorityQueue {
    fn push_event(_: bool) -> &'static str {
        PUSH_EVENT
    }

    async fn push(
        context: &WriteContext<'_>,
        key: &OpenKey,
        elements: &[QueuedValue],
        _: bool,
    ) -> Result<(), CommandError> {
        context.queue_push(key, elements).await?;
        Ok(())
    }
}

/// `PQ.MOVE source destination MIN|MAX` → the value moved, with its priority, which it keeps.
pub(super) async fn move_value(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let from_end = is_max(argument(arguments, 3)?)?;
    let moved = move_one::<PriorityQueue>(context, arguments, from_end, from_end).await?;
    Ok(moved.map_or(Reply::NullArray, PriorityQueue::reply))
}
