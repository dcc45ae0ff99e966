//! SINTER, SUNION, SDIFF, their STORE forms, SINTERCARD.

use bytes::Bytes;

use crate::command::arguments::{argument, integer_at_least, is_word, rest, to_usize};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::set::{self, algebra};
use crate::unit::context::{ReadContext, WriteContext};
use crate::unit::size_budget::SizeBudget;
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

const UNION: u8 = 0;
const INTERSECTION: u8 = 1;
const DIFFERENCE: u8 = 2;

/// `SUNION key [key …]` → members.
pub(super) async fn sunion(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    read::<UNION>(context, arguments).await
}

/// `SINTER key [key …]` → members.
pub(super) async fn sinter(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    read::<INTERSECTION>(context, arguments).await
}

/// `SDIFF key [key …]` → members.
pub(super) async fn sdiff(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    read::<DIFFERENCE>(context, arguments).await
}

/// `SUNIONSTORE destination key [key …]` → number of members.
pub(super) async fn sunionstore(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    store::<UNION>(context, arguments, "sunionstore").await
}

/// `SINTERSTORE destination key [key …]` → number of members.
pub(super) async fn sinterstore(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    store::<INTERSECTION>(context, arguments, "sinterstore").await
}

/// `SDIFFSTORE destination key [key …]` → number of members.
pub(super) async fn sdiffstore(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    store::<DIFFERENCE>(context, arguments, "sdiffstore").await
}

/// `SINTERCARD numkeys key [key …] [LIMIT limit]` → number of members.
pub(super) async fn sintercard(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let number_of_keys = integer_at_least(
        argument(arguments, 1)?,
        1,
        "ERR numkeys should be greater than 0",
    )?;
    let words = rest(arguments, 2);
    let Some((names, options)) = words.split_at_checked(to_usize(number_of_keys)) else {
        return Err(CommandError::text(
            "ERR Number of keys can't be greater than number of args",
        ));
    };
    let limit = parse_limit(options)?;
    let mut count = 0;
    if let Some(sets) = all_of(find_sets(context, names).await?) {
        let visit = &mut |_: Bytes| -> Result<bool, CommandError> {
            count += 1;
            Ok(limit.is_none_or(|limit| count < limit))
        };
        algebra::intersection(context, &sets, visit).await?;
    }
    Ok(Reply::count(count))
}

/// `[LIMIT limit]`, any number of times. 0 is no limit.
fn parse_limit(mut options: &[Bytes]) -> Result<Option<usize>, CommandError> {
    let mut limit = None;
    loop {
        options = match options {
            [] => return Ok(limit),
            [option, number, others @ ..] if is_word(option, "limit") => {
                let number = integer_at_least(number, 0, "ERR LIMIT can't be negative")?;
                limit = (number > 0).then(|| to_usize(number));
                others
            }
            _ => return Err(CommandError::Syntax),
        };
    }
}

async fn read<const OPERATION: u8>(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let sets = find_sets(context, rest(arguments, 1)).await?;
    let members = run::<OPERATION>(context, sets, None).await?.into_iter();
    Ok(Reply::Set(members.map(Reply::Bulk).collect()))
}

async fn store<const OPERATION: u8>(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    event: &'static str,
) -> Result<Reply, CommandError> {
    let destination = argument(arguments, 1)?;
    let sets = find_sets(context, rest(arguments, 2)).await?;
    // Refuses a result that one transaction cannot hold before much of it is in memory.
    let budget = context.size_budget();
    let members = run::<OPERATION>(context, sets, Some(budget)).await?;
    let stored = set::store(context, destination, members).await?;
    if stored > 0 {
        context.notify(EventClasses::SET, event, destination);
    }
    Ok(Reply::Integer(stored))
}

/// The sets; `None` for a name without a key. As in Redis, the types of all keys are checked first.
async fn find_sets(
    context: &ReadContext<'_>,
    names: &[Bytes],
) -> Result<Vec<Option<OpenKey>>, CommandError> {
    context.find_each_of(names, &[ValueType::Set]).await
}

/// The sets; `None` if one of them does not exist.
fn all_of(sets: Vec<Option<OpenKey>>) -> Option<Vec<OpenKey>> {
    sets.into_iter().collect()
}

async fn run<const OPERATION: u8>(
    context: &ReadContext<'_>,
    mut sets: Vec<Option<OpenKey>>,
    mut budget: Option<SizeBudget>,
) -> Result<Vec<Bytes>, CommandError> {
    let mut check = |member: &Bytes| match &mut budget {
        Some(budget) => budget.take_field(member.len(), 0),
        None => Ok(()),
    };
    if OPERATION == UNION {
        let sets: Vec<OpenKey> = sets.into_iter().flatten().collect();
        return algebra::union(context, &sets, check).await;
    }
    let mut members = Vec::new();
    let visit = &mut |member: Bytes| -> Result<bool, CommandError> {
        check(&member)?;
        members.push(member);
        Ok(true)
    };
    if OPERATION == INTERSECTION {
        if let Some(sets) = all_of(sets) {
            algebra::intersection(context, &sets, visit).await?;
        }
    } else if let Some(first) = sets.first_mut().and_then(Option::take) {
        let others: Vec<OpenKey> = sets.into_iter().flatten().collect();
        algebra::difference(context, &first, &others, visit).await?;
    }
    Ok(members)
}
