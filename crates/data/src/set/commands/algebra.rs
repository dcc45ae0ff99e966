//! SINTER, SUNION, SDIFF, their STORE forms and their CARD forms.

use std::collections::HashSet;

use bytes::Bytes;

use crate::command::arguments::{argument, integer_at_least, is_word, rest, to_usize};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::set::{self, algebra};
use crate::string::hyperloglog::HyperLogLog;
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
    let (names, options) = counted_names(arguments)?;
    let limit = CardOptions::parse(options, false)?.limit;
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

/// `SDIFFCARD numkeys key [key …] [LIMIT limit]` → number of members.
pub(super) async fn sdiffcard(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (names, options) = counted_names(arguments)?;
    let limit = CardOptions::parse(options, false)?.limit;
    let mut sets = find_sets(context, names).await?.into_iter();
    let mut count = 0;
    if let Some(first) = sets.next().flatten() {
        let others: Vec<OpenKey> = sets.flatten().collect();
        let visit = &mut |_: Bytes| -> Result<bool, CommandError> {
            count += 1;
            Ok(limit.is_none_or(|limit| count < limit))
        };
        algebra::difference(context, &first, &others, visit).await?;
    }
    Ok(Reply::count(count))
}

/// `SUNIONCARD numkeys key [key …] [APPROX] [LIMIT limit]` → number of members.
pub(super) async fn sunioncard(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (names, options) = counted_names(arguments)?;
    let options = CardOptions::parse(options, true)?;
    let sets = find_sets(context, names).await?;
    let sets: Vec<OpenKey> = sets.into_iter().flatten().collect();
    let count = match options.is_approximate {
        true => estimated_union(context, &sets).await?,
        false => counted_union(context, &sets, options.limit).await?,
    };
    Ok(Reply::count(
        options.limit.map_or(count, |limit| count.min(limit)),
    ))
}

/// The members of the union, up to the limit.
async fn counted_union(
    context: &ReadContext<'_>,
    sets: &[OpenKey],
    limit: Option<usize>,
) -> Result<usize, CommandError> {
    let mut seen: HashSet<Bytes> = HashSet::new();
    let visit = &mut |member: Bytes| -> Result<bool, CommandError> {
        seen.insert(member);
        Ok(limit.is_none_or(|limit| seen.len() < limit))
    };
    algebra::each(context, sets, visit).await?;
    Ok(seen.len())
}

/// About the number of members of the union, as Redis estimates it. Takes a fixed amount of memory.
async fn estimated_union(
    context: &ReadContext<'_>,
    sets: &[OpenKey],
) -> Result<usize, CommandError> {
    let mut estimate = HyperLogLog::empty();
    estimate.make_dense()?;
    let visit = &mut |member: Bytes| -> Result<bool, CommandError> {
        estimate.add(&member, 0)?;
        Ok(true)
    };
    algebra::each(context, sets, visit).await?;
    Ok(usize::try_from(estimate.count()?).unwrap_or(usize::MAX))
}

/// The keys of `numkeys key [key …]`, and the words after them.
fn counted_names(arguments: &[Bytes]) -> Result<(&[Bytes], &[Bytes]), CommandError> {
    let number = integer_at_least(
        argument(arguments, 1)?,
        1,
        "ERR numkeys should be greater than 0",
    )?;
    rest(arguments, 2)
        .split_at_checked(to_usize(number))
        .ok_or(CommandError::text(
            "ERR Number of keys can't be greater than number of args",
        ))
}

/// The options of SINTERCARD, SUNIONCARD and SDIFFCARD.
#[derive(Debug, Default)]
struct CardOptions {
    /// APPROX.
    is_approximate: bool,
    limit: Option<usize>,
}

impl CardOptions {
    /// `[APPROX] [LIMIT limit]`, any number of times. 0 is no limit. Only SUNIONCARD has APPROX.
    fn parse(mut options: &[Bytes], has_approx: bool) -> Result<Self, CommandError> {
        let mut parsed = Self::default();
        loop {
            options = match options {
                [] => return Ok(parsed),
                [option, number, others @ ..] if is_word(option, "limit") => {
                    let number = integer_at_least(number, 0, "ERR LIMIT can't be negative")?;
                    parsed.limit = (number > 0).then(|| to_usize(number));
                    others
                }
                [option, others @ ..] if has_approx && is_word(option, "approx") => {
                    parsed.is_approximate = true;
                    others
                }
                _ => return Err(CommandError::Syntax),
            };
        }
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

/// The sets. `None` for a name without a key. As in Redis, the types of all keys are checked first.
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
