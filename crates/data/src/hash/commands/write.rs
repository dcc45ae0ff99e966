//! HSET, HMSET, HSETNX, HDEL.

use bytes::Bytes;

use crate::command::arguments::{argument, rest};
use crate::command::plan::Plan;
use crate::command::put_series::put_series;
use crate::error::CommandError;
use crate::fields::Changed;
use crate::keyspace::key::OpenKey;
use crate::prefetch::Prefetch;
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_layout::{Entry, ValueType};
use quoin_resp::reply::Reply;

/// `HSET key field value [field value …]` → how many fields are new.
pub(super) async fn hset(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    Ok(Reply::Integer(put(context, arguments, "hset").await?))
}

/// Several HSETs of one hash.
pub(super) async fn hset_series(
    context: &WriteContext<'_>,
    commands: &[&[Bytes]],
) -> Result<Vec<Reply>, CommandError> {
    let put = async |name: &Bytes, found, arguments: &[Bytes]| {
        put_entries(context, name, found, entries(arguments, "hset")?).await
    };
    put_series(context, commands, ValueType::Hash, put).await
}

/// `HMSET key field value [field value …]` → OK.
pub(super) async fn hmset(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    put(context, arguments, "hmset").await?;
    Ok(Reply::OK)
}

async fn put(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    command: &str,
) -> Result<i64, CommandError> {
    let entries = entries(arguments, command)?;
    let name = argument(arguments, 1)?;
    let found = context.find(name, ValueType::Hash).await?;
    let changed = put_entries(context, name, found, entries).await?;
    Ok(changed.added)
}

/// The fields and values among the arguments of a command.
fn entries(arguments: &[Bytes], command: &str) -> Result<Vec<Entry>, CommandError> {
    let (pairs, odd) = rest(arguments, 2).as_chunks::<2>();
    if !odd.is_empty() {
        return Err(CommandError::WrongArity(command.to_owned()));
    }
    let entries = pairs.iter().map(|[name, value]| Entry {
        name: name.clone(),
        value: value.clone(),
    });
    Ok(entries.collect())
}

async fn put_entries(
    context: &WriteContext<'_>,
    name: &Bytes,
    found: Option<OpenKey>,
    entries: Vec<Entry>,
) -> Result<Changed, CommandError> {
    let changed = context
        .fields_put(name, ValueType::Hash, found, entries)
        .await?;
    context.notify(EventClasses::HASH, "hset", name);
    Ok(changed)
}

/// `HSETNX key field value` → 1, or 0 where the field is there.
pub(super) async fn hsetnx(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (name, field) = (argument(arguments, 1)?, argument(arguments, 2)?);
    let found = context.find(name, ValueType::Hash).await?;
    if let Some(key) = &found {
        let present = context
            .fields_exist(key, std::slice::from_ref(field))
            .await?;
        if present.contains(&true) {
            return Ok(Reply::Integer(0));
        }
    }
    let entry = Entry {
        name: field.clone(),
        value: argument(arguments, 3)?.clone(),
    };
    context
        .fields_put(name, ValueType::Hash, found, vec![entry])
        .await?;
    context.notify(EventClasses::HASH, "hset", name);
    Ok(Reply::Integer(1))
}

/// `HDEL key field [field …]` → how many were removed.
pub(super) async fn hdel(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(mut key) = context.find(name, ValueType::Hash).await? else {
        return Ok(Reply::Integer(0));
    };
    let removed = context.fields_remove(&mut key, rest(arguments, 2)).await?;
    if removed > 0 {
        context.notify(EventClasses::HASH, "hdel", name);
        context.remove_if_empty(&key).await?;
    }
    Ok(Reply::Integer(removed))
}

/// The plan of HSET and HMSET, which look their fields up.
pub(super) fn plan_put(arguments: &[Bytes]) -> Option<Plan> {
    let (pairs, _) = rest(arguments, 2).as_chunks::<2>();
    let fields = pairs.iter().map(|[field, _]| field);
    Some(Plan::Read(vec![Prefetch::members(ValueType::Hash, fields)]))
}
