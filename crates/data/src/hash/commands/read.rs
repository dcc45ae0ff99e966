//! HGET, HMGET, HGETALL, HKEYS, HVALS, HLEN, HEXISTS, HSTRLEN.

use bytes::Bytes;

use crate::command::arguments::{argument, rest};
use crate::command::plan::Plan;
use crate::error::CommandError;
use crate::prefetch::Prefetch;
use crate::unit::context::ReadContext;
use quoin_layout::{Entry, ValueType};
use quoin_resp::reply::Reply;

/// `HGET key field` → value.
pub(super) async fn hget(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let value = value_of(context, arguments).await?;
    Ok(value.map_or(Reply::Null, Reply::Bulk))
}

/// `HSTRLEN key field` → bytes of its value, 0 where there is none.
pub(super) async fn hstrlen(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let value = value_of(context, arguments).await?;
    Ok(Reply::count(value.map_or(0, |value| value.len())))
}

async fn value_of(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Option<Bytes>, CommandError> {
    let name = argument(arguments, 1)?;
    match context.find(name, ValueType::Hash).await? {
        Some(key) => Ok(context.field_get(&key, argument(arguments, 2)?).await?),
        None => Ok(None),
    }
}

/// `HMGET key field [field …]` → values.
pub(super) async fn hmget(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let fields = rest(arguments, 2);
    let name = argument(arguments, 1)?;
    let values = match context.find(name, ValueType::Hash).await? {
        Some(key) => context.fields_get(&key, fields).await?,
        None => vec![None; fields.len()],
    };
    let values = values.into_iter();
    Ok(Reply::Array(
        values
            .map(|value| value.map_or(Reply::Null, Reply::Bulk))
            .collect(),
    ))
}

/// `HGETALL key` → fields with values.
pub(super) async fn hgetall(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let pair = |one: Entry| (Reply::Bulk(one.name), Reply::Bulk(one.value));
    Ok(Reply::Map(all(context, arguments, pair).await?))
}

/// `HKEYS key` → fields.
pub(super) async fn hkeys(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let names = all(context, arguments, |one| Reply::Bulk(one.name)).await?;
    Ok(Reply::Array(names))
}

/// `HVALS key` → values.
pub(super) async fn hvals(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let values = all(context, arguments, |one| Reply::Bulk(one.value)).await?;
    Ok(Reply::Array(values))
}

/// What becomes of each field.
async fn all<T>(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
    part: impl Fn(Entry) -> T,
) -> Result<Vec<T>, CommandError> {
    let name = argument(arguments, 1)?;
    let mut parts = Vec::new();
    if let Some(key) = context.find(name, ValueType::Hash).await? {
        let mut pages = context.fields(&key)?;
        while let Some(page) = pages.next().await? {
            parts.extend(page.into_iter().map(&part));
        }
    }
    Ok(parts)
}

/// `HLEN key` → number of fields.
pub(super) async fn hlen(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    Ok(Reply::Integer(
        match context.find(name, ValueType::Hash).await? {
            Some(key) => context.length(&key, context.isolation).await?,
            None => 0,
        },
    ))
}

/// `HEXISTS key field` → 1 or 0.
pub(super) async fn hexists(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::Hash).await? else {
        return Ok(Reply::Integer(0));
    };
    let field = argument(arguments, 2)?;
    let found = context
        .fields_exist(&key, std::slice::from_ref(field))
        .await?;
    Ok(Reply::count(
        found.into_iter().filter(|there| *there).count(),
    ))
}

/// The plan of commands that look fields up which all follow the key.
pub(super) fn plan_fields(arguments: &[Bytes]) -> Option<Plan> {
    Some(Plan::Read(vec![Prefetch::members(
        ValueType::Hash,
        rest(arguments, 2),
    )]))
}

/// The plan of commands that look up the one field after the key.
pub(super) fn plan_field(arguments: &[Bytes]) -> Option<Plan> {
    plan_fields(arguments.get(..3)?)
}
