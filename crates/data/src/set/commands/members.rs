//! SADD, SREM, SISMEMBER, SMISMEMBER, SMEMBERS, SCARD.

use bytes::Bytes;

use crate::command::arguments::{argument, rest};
use crate::command::plan::Plan;
use crate::command::put_series::put_series;
use crate::error::CommandError;
use crate::fields::Changed;
use crate::keyspace::key::OpenKey;
use crate::prefetch::Prefetch;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_layout::{Entry, ValueType};
use quoin_resp::reply::Reply;

/// `SADD key member [member …]` → how many are new.
pub(super) async fn sadd(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let found = context.find(name, ValueType::Set).await?;
    let changed = add(context, name, found, arguments).await?;
    Ok(Reply::Integer(changed.added))
}

/// Several SADDs to one set.
pub(super) async fn sadd_series(
    context: &WriteContext<'_>,
    commands: &[&[Bytes]],
) -> Result<Vec<Reply>, CommandError> {
    let put =
        async |name: &Bytes, found, arguments: &[Bytes]| add(context, name, found, arguments).await;
    put_series(context, commands, ValueType::Set, put).await
}

async fn add(
    context: &WriteContext<'_>,
    name: &Bytes,
    found: Option<OpenKey>,
    arguments: &[Bytes],
) -> Result<Changed, CommandError> {
    let members = rest(arguments, 2).iter().map(entry).collect();
    let changed = context
        .fields_put(name, ValueType::Set, found, members)
        .await?;
    if changed.added > 0 {
        context.notify(EventClasses::SET, "sadd", name);
    }
    Ok(changed)
}

/// A member as an entry.
pub(super) fn entry(member: &Bytes) -> Entry {
    Entry {
        name: member.clone(),
        value: Bytes::new(),
    }
}

/// `SREM key member [member …]` → how many were removed.
pub(super) async fn srem(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(mut key) = context.find(name, ValueType::Set).await? else {
        return Ok(Reply::Integer(0));
    };
    let removed = context.fields_remove(&mut key, rest(arguments, 2)).await?;
    if removed > 0 {
        context.notify(EventClasses::SET, "srem", name);
        context.remove_if_empty(&key).await?;
    }
    Ok(Reply::Integer(removed))
}

/// `SISMEMBER key member` → 1 or 0.
pub(super) async fn sismember(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let found = are_members(context, arguments).await?;
    Ok(Reply::count(
        found.into_iter().filter(|there| *there).count(),
    ))
}

/// `SMISMEMBER key member [member …]` → 1 or 0 for each.
pub(super) async fn smismember(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let found = are_members(context, arguments).await?.into_iter();
    Ok(Reply::Array(
        found.map(|there| Reply::Integer(there.into())).collect(),
    ))
}

async fn are_members(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Vec<bool>, CommandError> {
    let members = rest(arguments, 2);
    let name = argument(arguments, 1)?;
    match context.find(name, ValueType::Set).await? {
        Some(key) => Ok(context.fields_exist(&key, members).await?),
        None => Ok(vec![false; members.len()]),
    }
}

/// `SMEMBERS key` → members.
pub(super) async fn smembers(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let members = match context.find(name, ValueType::Set).await? {
        Some(key) => context.fields_all(&key).await?,
        None => Vec::new(),
    };
    let members = members.into_iter();
    Ok(Reply::Set(
        members.map(|one| Reply::Bulk(one.name)).collect(),
    ))
}

/// `SCARD key` → number of members.
pub(super) async fn scard(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    Ok(Reply::Integer(
        match context.find(name, ValueType::Set).await? {
            Some(key) => context.length(&key, context.isolation).await?,
            None => 0,
        },
    ))
}

/// The plan of commands that look members up which all follow the key.
pub(super) fn plan_members(arguments: &[Bytes]) -> Option<Plan> {
    Some(Plan::Read(vec![Prefetch::members(
        ValueType::Set,
        rest(arguments, 2),
    )]))
}
