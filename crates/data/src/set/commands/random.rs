//! SPOP and SRANDMEMBER.

use bytes::Bytes;

use crate::command::arguments::{Draw, argument, count, rest, to_usize};
use crate::command::popping::{ForCommand, pop_each};
use crate::error::CommandError;
use crate::set::{Set, SetMut};
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_layout::{Entry, ValueType};
use quoin_resp::reply::Reply;

/// `SPOP key [count]` → a member, or with a count an array of members.
pub(super) async fn spop(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(word) = arguments.get(2) else {
        let taken = take(context, name, 1).await?;
        let taken = taken.into_iter().next();
        return Ok(taken.map_or(Reply::Null, |one| Reply::Bulk(one.name)));
    };
    if arguments.len() > 3 {
        return Err(CommandError::Syntax);
    }
    let taken = take(context, name, to_usize(count(word)?)).await?;
    Ok(Reply::Set(names(taken)))
}

/// Several SPOP commands of one member each on one set.
pub(super) async fn spop_coalesced(
    context: &WriteContext<'_>,
    commands: &[&[Bytes]],
) -> Result<Vec<Reply>, CommandError> {
    let name = argument(commands.first().ok_or(CommandError::Syntax)?, 1)?;
    let mut found = context.find(name, ValueType::Set).await?;
    let pop = async |wanted| {
        let Some(key) = &mut found else {
            return Ok(Vec::new());
        };
        SetMut::open(context, key).take_random(wanted).await
    };
    let reply = |taken: &mut ForCommand<'_, Entry>, _| {
        taken
            .next()
            .map_or(Reply::Null, |one| Reply::Bulk(one.name))
    };
    let (replies, has_popped) = pop_each(&vec![None; commands.len()], pop, reply).await?;
    if let Some(key) = found.filter(|_| has_popped) {
        context.remove_if_empty(&key).await?;
    }
    Ok(replies)
}

async fn take(
    context: &WriteContext<'_>,
    name: &Bytes,
    count: usize,
) -> Result<Vec<Entry>, CommandError> {
    let Some(mut key) = context.find(name, ValueType::Set).await? else {
        return Ok(Vec::new());
    };
    let taken = SetMut::open(context, &mut key).take_random(count).await?;
    if !taken.is_empty() {
        context.notify(EventClasses::SET, "spop", name);
        context.remove_if_empty(&key).await?;
    }
    Ok(taken)
}

fn names(entries: Vec<Entry>) -> Vec<Reply> {
    let entries = entries.into_iter();
    entries.map(|one| Reply::Bulk(one.name)).collect()
}

/// `SRANDMEMBER key [count]` → a member, or with a count an array of members.
pub(super) async fn srandmember(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(word) = arguments.get(2) else {
        let Some(key) = context.find(name, ValueType::Set).await? else {
            return Ok(Reply::Null);
        };
        let member = Set::open(context, &key).random(1).await?.pop();
        return Ok(member.map_or(Reply::Null, |one| Reply::Bulk(one.name)));
    };
    if !rest(arguments, 3).is_empty() {
        return Err(CommandError::Syntax);
    }
    let draw = Draw::parse(word)?;
    let Some(key) = context.find(name, ValueType::Set).await? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let members = Set::open(context, &key).draw(draw).await?;
    Ok(Reply::Array(names(members)))
}
