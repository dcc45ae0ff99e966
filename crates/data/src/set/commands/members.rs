//! SADD, SREM, SMOVE, SISMEMBER, SMISMEMBER, SMEMBERS, SSCAN.

use bytes::Bytes;

use crate::command::arguments::{ScanOptions, argument, rest};
use crate::command::plan::Plan;
use crate::command::put_coalesced::put_coalesced;
use crate::error::CommandError;
use crate::fields::{self, Changed};
use crate::keyspace::key::OpenKey;
use crate::prefetch::Prefetch;
use crate::set::{Set, SetMut, SetType, entry};
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_layout::{Entry, ValueType};
use quoin_resp::reply::Reply;

/// `SADD key member [member …]` → number of new members.
pub(super) async fn sadd(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let found = context.find(name, ValueType::Set).await?;
    let changed = add(context, name, found, arguments).await?;
    Ok(Reply::Integer(changed.added))
}

/// Several SADD commands on one set.
pub(super) async fn sadd_coalesced(
    context: &WriteContext<'_>,
    commands: &[&[Bytes]],
) -> Result<Vec<Reply>, CommandError> {
    let put =
        async |name: &Bytes, found, arguments: &[Bytes]| add(context, name, found, arguments).await;
    put_coalesced(context, commands, ValueType::Set, put).await
}

async fn add(
    context: &WriteContext<'_>,
    name: &Bytes,
    found: Option<OpenKey>,
    arguments: &[Bytes],
) -> Result<Changed, CommandError> {
    let members = rest(arguments, 2).iter().cloned().map(entry).collect();
    let changed = fields::put::<SetType>(context, name, found, members).await?;
    if changed.added > 0 {
        context.notify(EventClasses::SET, "sadd", name);
    }
    Ok(changed)
}

/// `SREM key member [member …]` → number of removed members.
pub(super) async fn srem(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let event = (EventClasses::SET, "srem");
    fields::commands::remove::<SetType>(context, arguments, event).await
}

/// `SISMEMBER key member` → 1 or 0.
pub(super) async fn sismember(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let found = are_members(context, arguments).await?;
    Ok(Reply::Integer(found.contains(&true).into()))
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
        Some(key) => Ok(Set::open(context, &key).contains_each(members).await?),
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
        Some(key) => Set::open(context, &key).all().await?,
        None => Vec::new(),
    };
    let members = members.into_iter();
    Ok(Reply::Set(
        members.map(|one| Reply::Bulk(one.name)).collect(),
    ))
}

/// `SMOVE source destination member` → 1, or 0 if the source has no such member.
pub(super) async fn smove(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (from, to) = (argument(arguments, 1)?, argument(arguments, 2)?);
    let member = argument(arguments, 3)?;
    let Some(mut source) = context.find(from, ValueType::Set).await? else {
        return Ok(Reply::Integer(0));
    };
    let destination = match context.find(to, ValueType::Set).await {
        // Redis checks the destination's type only if the source exists.
        Err(CommandError::WrongType) if !context.has_elements(&source).await? => {
            return Ok(Reply::Integer(0));
        }
        found => found?,
    };
    if from == to {
        let found = Set::open(context, &source).contains(member).await?;
        return Ok(Reply::Integer(found.into()));
    }
    let members = std::slice::from_ref(member);
    let removed = SetMut::open(context, &mut source).remove(members).await?;
    if removed == 0 {
        return Ok(Reply::Integer(0));
    }
    context.notify(EventClasses::SET, "srem", from);
    context.remove_if_empty(&source).await?;
    let members = vec![entry(member.clone())];
    let changed = fields::put::<SetType>(context, to, destination, members).await?;
    if changed.added > 0 {
        context.notify(EventClasses::SET, "sadd", to);
    }
    Ok(Reply::Integer(1))
}

/// `SSCAN key cursor [MATCH pattern] [COUNT count]` → next cursor, members.
pub(super) async fn sscan(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let items = |one: Entry, _: &ScanOptions| [Reply::Bulk(one.name)];
    fields::commands::scan::<SetType, _>(context, arguments, ScanOptions::parse, items).await
}

/// The plan of SMOVE, which looks the member up in both sets.
pub(super) fn plan_move(arguments: &[Bytes]) -> Option<Plan> {
    let read = || Prefetch::members(ValueType::Set, rest(arguments, 3));
    Some(Plan::Read(vec![read(), read()]))
}
