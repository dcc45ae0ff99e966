//! Reading hashes: HGET, HMGET, HSTRLEN, HEXISTS, HGETALL, HKEYS, HVALS, HRANDFIELD, HSCAN.

use bytes::Bytes;

use crate::command::arguments::{Draw, ScanOptions, argument, rest};
use crate::error::CommandError;
use crate::fields;
use crate::hash::{Hash, HashType};
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

/// `HSTRLEN key field` → length of the value in bytes, or 0 if the field does not exist.
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
        Some(key) => {
            let hash = Hash::open(context, &key);
            Ok(hash.get(argument(arguments, 2)?).await?)
        }
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
        Some(key) => Hash::open(context, &key).get_each(fields).await?,
        None => vec![None; fields.len()],
    };
    let replies = { values.into_iter() }.map(|value| value.map_or(Reply::Null, Reply::Bulk));
    Ok(Reply::Array(replies.collect()))
}

/// `HGETALL key` → fields with values.
pub(super) async fn hgetall(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
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

fn pair(field: Entry) -> (Reply, Reply) {
    (Reply::Bulk(field.name), Reply::Bulk(field.value))
}

/// One part of each field's entry.
async fn all<T>(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
    part: impl Fn(Entry) -> T,
) -> Result<Vec<T>, CommandError> {
    let name = argument(arguments, 1)?;
    let mut parts = Vec::new();
    if let Some(key) = context.find(name, ValueType::Hash).await? {
        let mut pages = Hash::open(context, &key).pages()?;
        while let Some(page) = pages.next().await? {
            parts.extend(page.into_iter().map(&part));
        }
    }
    Ok(parts)
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
    let found = Hash::open(context, &key).contains(field).await?;
    Ok(Reply::Integer(found.into()))
}

/// `HRANDFIELD key [count [WITHVALUES]]` → a field, or with a count an array of fields.
pub(super) async fn hrandfield(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(count) = arguments.get(2) else {
        let Some(key) = context.find(name, ValueType::Hash).await? else {
            return Ok(Reply::Null);
        };
        let field = Hash::open(context, &key).random(1).await?.pop();
        return Ok(field.map_or(Reply::Null, |one| Reply::Bulk(one.name)));
    };
    let (draw, with_values) = Draw::parse_with(count, rest(arguments, 3), "withvalues")?;
    let Some(key) = context.find(name, ValueType::Hash).await? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let fields = Hash::open(context, &key).draw(draw).await?.into_iter();
    Ok(match with_values {
        true => Reply::Pairs(fields.map(pair).collect()),
        false => Reply::Array(fields.map(|one| Reply::Bulk(one.name)).collect()),
    })
}

/// `HSCAN key cursor [MATCH pattern] [COUNT count]` → next cursor, fields with values.
pub(super) async fn hscan(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let items = |one: Entry, options: &ScanOptions| {
        let value = (!options.without_values).then_some(one.value);
        [Some(one.name), value]
            .into_iter()
            .flatten()
            .map(Reply::Bulk)
    };
    fields::commands::scan::<HashType, _>(context, arguments, ScanOptions::parse_of_hash, items)
        .await
}
