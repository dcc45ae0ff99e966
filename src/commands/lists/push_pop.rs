//! LPUSH, RPUSH, LPUSHX, RPUSHX, LPOP, RPOP, LMPOP.

use bytes::Bytes;

use super::end;
use crate::commands::arguments::{argument, count, rest, to_usize};
use crate::commands::multi_pop::MultiPop;
use crate::error::CommandError;
use crate::events::EventClasses;
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::types::list::End;
use crate::types::{OpenKey, WriteContext};

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
    context.notify(EventClasses::LIST, push_event(end), name);
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
    context.notify(EventClasses::LIST, push_event(end), name);
    Ok(Reply::Integer(length))
}

/// The event of a push.
pub(super) fn push_event(end: End) -> &'static str {
    match end {
        End::Left => "lpush",
        End::Right => "rpush",
    }
}

/// The event of a pop.
pub(super) fn pop_event(end: End) -> &'static str {
    match end {
        End::Left => "lpop",
        End::Right => "rpop",
    }
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
    let limit = match arguments.get(2) {
        Some(word) => Some(to_usize(count(word)?)),
        None => None,
    };
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
    let values = take(context, key_name, &key, limit.unwrap_or(1), end).await?;
    if values.is_empty() {
        return Ok(absent);
    }
    Ok(match limit {
        Some(_) => Reply::Array(values.into_iter().map(Reply::Bulk).collect()),
        None => values.into_iter().next().map_or(Reply::Null, Reply::Bulk),
    })
}

/// Pops, and removes the key when that was the last element.
pub(super) async fn take(
    context: &WriteContext<'_>,
    name: &Bytes,
    key: &OpenKey,
    limit: usize,
    end: End,
) -> Result<Vec<Bytes>, CommandError> {
    let values = context.list_pop(key, limit, end).await?;
    if !values.is_empty() {
        context.notify(EventClasses::LIST, pop_event(end), name);
        context.remove_if_empty(key).await?;
    }
    Ok(values)
}

/// `LMPOP numkeys key [key …] LEFT|RIGHT [COUNT count]` → the first key that has elements, and
/// those popped.
pub(super) async fn lmpop(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    pop_from_first(context, &MultiPop::parse(arguments, 1, end)?).await
}

/// Pops from the first key that has elements.
pub(super) async fn pop_from_first(
    context: &WriteContext<'_>,
    query: &MultiPop<'_, End>,
) -> Result<Reply, CommandError> {
    for name in query.keys {
        let Some(key) = context.find(name, ValueType::List).await? else {
            continue;
        };
        let values = take(context, name, &key, query.limit, query.end).await?;
        if !values.is_empty() {
            return Ok(Reply::Array(vec![
                Reply::Bulk(name.clone()),
                Reply::Array(values.into_iter().map(Reply::Bulk).collect()),
            ]));
        }
    }
    Ok(Reply::NullArray)
}
