//! LPUSH, RPUSH, LPUSHX, RPUSHX, LPOP, RPOP.

use std::iter;

use bytes::Bytes;

use super::{List, end};
use crate::command::arguments::{argument, optional_count, rest};
use crate::command::plan::Plan;
use crate::command::popping::{Movable, Poppable, take};
use crate::command::put_series::lengths_of_series;
use crate::error::CommandError;
use crate::prefetch::Prefetch;
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `LPUSH key element [element …]` → length.
pub(super) async fn push<const AT_END: bool>(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let key = context.find_or_create(name, ValueType::List).await?;
    let elements = rest(arguments, 2);
    let length = context.list_push(&key, elements, end(AT_END)).await?;
    context.notify(EventClasses::LIST, List::push_event(AT_END), name);
    Ok(Reply::Integer(length))
}

/// Several of [`push`]: one push of all elements.
pub(super) async fn push_series<const AT_END: bool>(
    context: &WriteContext<'_>,
    commands: &[&[Bytes]],
) -> Result<Vec<Reply>, CommandError> {
    let name = commands.first().ok_or(CommandError::Syntax)?;
    let name = argument(name, 1)?;
    let key = context.find_or_create(name, ValueType::List).await?;
    let elements = commands.iter().flat_map(|arguments| rest(arguments, 2));
    let length = context.list_push(&key, elements, end(AT_END)).await?;
    let pushed = commands.iter().map(|arguments| rest(arguments, 2).len());
    Ok(lengths_of_series(length, pushed))
}

/// `LPUSHX key element [element …]` → length, or 0 where there is no list.
pub(super) async fn push_existing<const AT_END: bool>(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::List).await? else {
        return Ok(Reply::Integer(0));
    };
    if !context.has_elements(&key).await? {
        return Ok(Reply::Integer(0));
    }
    let elements = rest(arguments, 2);
    let length = context.list_push(&key, elements, end(AT_END)).await?;
    context.notify(EventClasses::LIST, List::push_event(AT_END), name);
    Ok(Reply::Integer(length))
}

/// The plan of a push, which answers the length.
pub(super) fn plan_push<const AT_END: bool>(_: &[Bytes]) -> Option<Plan> {
    Some(Plan::Read(vec![prefetch_end(AT_END, 0)]))
}

/// What a command reads that takes so many elements from an end, or puts some there.
pub(super) fn prefetch_end(from_end: bool, count: usize) -> Prefetch {
    Prefetch::End {
        value_type: ValueType::List,
        from_end,
        count,
        with_length: true,
    }
}

/// `LPOP key [count]` → element, or elements where a count is given.
pub(super) async fn pop<const FROM_END: bool>(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    if arguments.len() > 3 {
        // The event is named after the command.
        let name = List::pop_event(FROM_END).to_owned();
        return Err(CommandError::WrongArity(name));
    }
    let limit = optional_count(arguments)?;
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::List).await? else {
        return Ok(List::popped_reply(iter::empty(), limit));
    };
    if limit == Some(0) && context.has_elements(&key).await? {
        return Ok(Reply::Array(Vec::new()));
    }
    let elements = take::<List>(context, name, &key, limit.unwrap_or(1), FROM_END).await?;
    Ok(List::popped_reply(elements.into_iter(), limit))
}
