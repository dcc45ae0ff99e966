//! PQ.PUSH, PQ.POPMIN, PQ.POPMAX, PQ.BPOPMIN, PQ.BPOPMAX, PQ.MOVE, PQ.REM.

use bytes::Bytes;

use super::{PUSH_EVENT, priority, value_and_priority};
use crate::command::arguments::{argument, integer_at_least, is_word, rest, to_usize};
use crate::command::popping::{Movable, Moving, Numbered, Poppable, move_elements, numbered_reply};
use crate::command::put_coalesced::coalesced_lengths;
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::pqueue::{PriorityQueueMut, PriorityQueueType, QueuedValue};
use crate::unit::context::WriteContext;
use crate::zset::commands::{extreme, is_max};
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

/// `PQ.PUSH key priority value [priority value …]` → length.
pub(super) async fn push(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let values = parse_values(rest(arguments, 2))?;
    let name = argument(arguments, 1)?;
    let key = context
        .find_or_create(name, ValueType::PriorityQueue)
        .await?;
    let length = PriorityQueueMut::open(context, &key).push(&values).await?;
    context.notify(EventClasses::MODULE, PUSH_EVENT, name);
    Ok(Reply::Integer(length))
}

/// Several commands of [`push`] at once: pushes all values together.
pub(super) async fn push_coalesced(
    context: &WriteContext<'_>,
    commands: &[&[Bytes]],
) -> Result<Vec<Reply>, CommandError> {
    let name = argument(commands.first().ok_or(CommandError::Syntax)?, 1)?;
    let mut values = Vec::new();
    for arguments in commands {
        values.extend(parse_values(rest(arguments, 2))?);
    }
    let key = context
        .find_or_create(name, ValueType::PriorityQueue)
        .await?;
    let length = PriorityQueueMut::open(context, &key).push(&values).await?;
    let pushed = commands
        .iter()
        .map(|arguments| rest(arguments, 2).len() / 2);
    Ok(coalesced_lengths(length, pushed))
}

fn parse_values(pairs: &[Bytes]) -> Result<Vec<QueuedValue>, CommandError> {
    let mut values = Vec::with_capacity(pairs.len() / 2);
    let pairs = pairs.chunks_exact(2);
    // Checked before the priorities, as ZADD does.
    if !pairs.remainder().is_empty() {
        return Err(CommandError::Syntax);
    }
    for pair in pairs {
        let [number, value] = pair else {
            return Err(CommandError::Syntax);
        };
        values.push(QueuedValue {
            priority: priority(number)?,
            value: value.clone(),
        });
    }
    Ok(values)
}

impl Poppable for PriorityQueueType {
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
        let queue = PriorityQueueMut::open(context, key);
        queue.pop(count, extreme(from_end)).await
    }

    fn reply(element: QueuedValue) -> Reply {
        let (value, priority) = value_and_priority(element);
        Reply::Array(vec![value, priority])
    }

    fn popped_reply(elements: impl Iterator<Item = QueuedValue>, limit: Option<usize>) -> Reply {
        numbered_reply::<Self>(elements, limit)
    }
}

impl Numbered for PriorityQueueType {
    fn with_number(element: QueuedValue) -> (Reply, Reply) {
        value_and_priority(element)
    }
}

impl Movable for PriorityQueueType {
    fn push_event(_: bool) -> &'static str {
        PUSH_EVENT
    }

    async fn push(
        context: &WriteContext<'_>,
        key: &OpenKey,
        elements: &[QueuedValue],
        _: bool,
    ) -> Result<(), CommandError> {
        PriorityQueueMut::open(context, key).push(elements).await?;
        Ok(())
    }
}

/// `PQ.REM key priority value [COUNT count]` → the number of values removed.
pub(in crate::pqueue) async fn rem(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let priority = priority(argument(arguments, 2)?)?;
    let value = argument(arguments, 3)?;
    let count = match rest(arguments, 4) {
        [] => 1,
        [word, count] if is_word(word, "count") => {
            let message = "ERR COUNT is out of range, must be positive";
            to_usize(integer_at_least(count, 1, message)?)
        }
        _ => return Err(CommandError::Syntax),
    };
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::PriorityQueue).await? else {
        return Ok(Reply::Integer(0));
    };
    let queue = PriorityQueueMut::open(context, &key);
    let removed = queue.remove(&priority, value, count).await?;
    if removed > 0 {
        context.notify(EventClasses::MODULE, "pq.rem", name);
        context.remove_if_empty(&key).await?;
    }
    Ok(Reply::Integer(removed))
}

/// `PQ.MOVE source destination MIN|MAX` → the moved value and its priority.
pub(super) async fn move_value(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let from_end = is_max(argument(arguments, 3)?)?;
    let moving = Moving::one(from_end, from_end);
    let moved = move_elements::<PriorityQueueType>(context, arguments, moving).await?;
    let moved = moved.into_iter().next();
    Ok(moved.map_or(Reply::NullArray, PriorityQueueType::reply))
}
