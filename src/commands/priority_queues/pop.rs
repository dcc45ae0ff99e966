//! PQ.POPMIN, PQ.POPMAX, PQ.MOVE.

use bytes::Bytes;

use super::push::PUSH_EVENT;
use super::value_and_priority;
use crate::commands::arguments::argument;
use crate::commands::popping::{Movable, Numbered, Poppable, move_one, pop_numbered};
use crate::commands::sorted_sets::extreme;
use crate::error::CommandError;
use crate::events::EventClasses;
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::store::StoreError;
use crate::types::priority_queue::{Extreme, QueuedValue};
use crate::types::{OpenKey, WriteContext};

/// Priority queues, for the commands that pop.
pub(super) enum PriorityQueue {}

impl Poppable for PriorityQueue {
    type End = Extreme;
    type Element = QueuedValue;
    const VALUE_TYPE: ValueType = ValueType::PriorityQueue;
    const LAST: Extreme = Extreme::Max;
    const EVENTS: EventClasses = EventClasses::MODULE;

    fn end(word: &[u8]) -> Result<Extreme, CommandError> {
        extreme(word)
    }

    fn pop_event(end: Extreme) -> &'static str {
        match end {
            Extreme::Min => "pq.popmin",
            Extreme::Max => "pq.popmax",
        }
    }

    async fn pop(
        context: &WriteContext<'_>,
        key: &OpenKey,
        count: usize,
        end: Extreme,
    ) -> Result<Vec<QueuedValue>, StoreError> {
        context.queue_pop(key, count, end).await
    }

    fn reply(element: QueuedValue) -> Reply {
        let (value, priority) = value_and_priority(element);
        Reply::Array(vec![value, priority])
    }
}

impl Numbered for PriorityQueue {
    fn with_number(element: QueuedValue) -> (Reply, Reply) {
        value_and_priority(element)
    }
}

impl Movable for PriorityQueue {
    fn push_event(_: Extreme) -> &'static str {
        PUSH_EVENT
    }

    async fn push(
        context: &WriteContext<'_>,
        key: &OpenKey,
        elements: &[QueuedValue],
        _: Extreme,
    ) -> Result<(), CommandError> {
        context.queue_push(key, elements).await?;
        Ok(())
    }
}

/// `PQ.POPMIN key [count]` → values with priorities.
pub(super) async fn popmin(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    pop_numbered::<PriorityQueue>(context, arguments, Extreme::Min).await
}

/// `PQ.POPMAX key [count]` → values with priorities.
pub(super) async fn popmax(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    pop_numbered::<PriorityQueue>(context, arguments, Extreme::Max).await
}

/// `PQ.MOVE source destination MIN|MAX` → the value moved, with its priority, which it keeps.
pub(super) async fn move_value(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let end = extreme(argument(arguments, 3)?)?;
    let moved = move_one::<PriorityQueue>(context, arguments, end, end).await?;
    Ok(moved.map_or(Reply::NullArray, PriorityQueue::reply))
}
