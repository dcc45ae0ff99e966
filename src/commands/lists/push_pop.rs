//! LPUSH, RPUSH, LPUSHX, RPUSHX, LPOP, RPOP, LMPOP.

use bytes::Bytes;

use super::List;
use crate::commands::arguments::{argument, optional_count, rest};
use crate::commands::plan::Plan;
use crate::commands::popping::{Movable, multi_pop, take};
use crate::error::CommandError;
use crate::events::EventClasses;
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::types::WriteContext;
use crate::types::list::End;
use crate::types::prefetch::Prefetch;

/// `LPUSH key element [element …]` → length.
pub(super) async fn lpush(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    push(context, arguments, End::Left).await
}

/// `RPUSH key element [element …]` → length.
pub(super) async fn rpush(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    push(context, arguments, End::Right).await
}

async fn push(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    end: End,
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let key = context.find_or_create(name, ValueType::List).await?;
    let length = context.list_push(&key, rest(arguments, 2), end).await?;
    context.notify(EventClasses::LIST, List::push_event(end), name);
    Ok(Reply::Integer(length))
}

/// `LPUSHX key element [element …]` → length, or 0 where there is no list.
pub(super) async fn lpushx(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    push_existing(context, arguments, End::Left).await
}

/// `RPUSHX key element [element …]` → length, or 0 where there is no list.
pub(super) async fn rpushx(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    push_existing(context, arguments, End::Right).await
}

async fn push_existing(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    end: End,
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::List).await? else {
        return Ok(Reply::Integer(0));
    };
    if !context.has_elements(&key).await? {
        return Ok(Reply::Integer(0));
    }
    let length = context.list_push(&key, rest(arguments, 2), end).await?;
    context.notify(EventClasses::LIST, List::push_event(end), name);
    Ok(Reply::Integer(length))
}

/// `LPOP key [count]` → element, or elements where a count is given.
pub(super) async fn lpop(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    pop(context, arguments, End::Left, "lpop").await
}

/// `RPOP key [count]` → element, or elements where a count is given.
pub(super) async fn rpop(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    pop(context, arguments, End::Right, "rpop").await
}

async fn pop(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    end: End,
    name: &'static str,
) -> Result<Reply, CommandError> {
    if arguments.len() > 3 {
        return Err(CommandError::WrongArity(name.to_owned()));
    }
    let limit = optional_count(arguments)?;
    let absent = if limit.is_some() {
        Reply::NullArray
    } else {
        Reply::Null
    };
    let key_name = argument(arguments, 1)?;
    let Some(key) = context.find(key_name, ValueType::List).await? else {
        return Ok(absent);
    };
    if limit == Some(0) {
        return Ok(if context.has_elements(&key).await? {
            Reply::Array(Vec::new())
        } else {
            absent
        });
    }
    let values = take::<List>(context, key_name, &key, limit.unwrap_or(1), end).await?;
    if values.is_empty() {
        return Ok(absent);
    }
    Ok(match limit {
        Some(_) => Reply::Array(values.into_iter().map(Reply::Bulk).collect()),
        None => values.into_iter().next().map_or(Reply::Null, Reply::Bulk),
    })
}

/// `LMPOP numkeys key [key …] LEFT|RIGHT [COUNT count]` → the first key that has elements, and
/// those popped.
pub(super) async fn lmpop(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    multi_pop::<List>(context, arguments).await
}

/// The plan of a push, which answers the length.
pub(super) fn plan_push(end: End) -> Option<Plan> {
    Some(Plan::Read(vec![prefetch_end(end, 0)]))
}

/// What a command reads that takes so many elements from an end, or puts some there.
pub(super) fn prefetch_end(end: End, count: usize) -> Prefetch {
    Prefetch::End {
        value_type: ValueType::List,
        from_end: end == End::Right,
        count,
        with_length: true,
    }
}
