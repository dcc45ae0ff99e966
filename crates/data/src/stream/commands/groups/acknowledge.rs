//! XACK, XACKDEL, XNACK.

use bytes::Bytes;

use super::errors::group_of;
use crate::command::arguments::{argument, integer, is_word, rest, to_usize};
use crate::command::plan::Plan;
use crate::error::CommandError;
use crate::prefetch::{GroupPrefetch, Prefetch};
use crate::stream::commands::ids::strict_id;
use crate::stream::commands::references::{deletion_replies, references_and_ids};
use crate::stream::{Deletion, Release, ReleaseMode};
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_layout::{StreamId, ValueType};
use quoin_resp::reply::Reply;

/// `XACK key group id [id …]` → how many of these were pending.
pub(super) async fn xack(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::Stream).await? else {
        return Ok(Reply::Integer(0));
    };
    let name = argument(arguments, 2)?;
    let isolation = context.relaxed();
    let Some(group) = context.stream_group(&key, name, isolation).await? else {
        return Ok(Reply::Integer(0));
    };
    let ids = rest(arguments, 3).iter().map(|id| strict_id(id, 0));
    let ids: Vec<StreamId> = ids.collect::<Result<_, _>>()?;
    let count = context.stream_acknowledge(&key, &group, &ids).await?;
    Ok(Reply::Integer(count))
}

/// Whether two of [`xack`] are of one group.
pub(super) fn have_one_group(one: &[Bytes], other: &[Bytes]) -> bool {
    one.get(1..3) == other.get(1..3)
}

/// Several of [`xack`] of one group.
pub(super) async fn xack_series(
    context: &WriteContext<'_>,
    commands: &[&[Bytes]],
) -> Result<Vec<Reply>, CommandError> {
    let first = commands.first().ok_or(CommandError::Syntax)?;
    let key = context.find(argument(first, 1)?, ValueType::Stream).await?;
    let group = match &key {
        Some(key) => {
            let group = context.stream_group(key, argument(first, 2)?, context.relaxed());
            group.await?
        }
        None => None,
    };
    let (Some(key), Some(group)) = (key, group) else {
        return Ok(vec![Reply::Integer(0); commands.len()]);
    };
    let mut ids = Vec::with_capacity(commands.len());
    for arguments in commands {
        let of_one = rest(arguments, 3).iter().map(|id| strict_id(id, 0));
        ids.push(of_one.collect::<Result<Vec<StreamId>, _>>()?);
    }
    let ids: Vec<&[StreamId]> = ids.iter().map(Vec::as_slice).collect();
    let counts = context.stream_acknowledge_each(&key, &group, &ids).await?;
    Ok(counts.into_iter().map(Reply::Integer).collect())
}

/// XACK reads the row of its group, and what is pending of its entries.
pub(super) fn plan(arguments: &[Bytes]) -> Option<Plan> {
    let ids = rest(arguments, 3).iter();
    Some(Plan::Read(vec![Prefetch::Stream {
        head: false,
        group: Some(GroupPrefetch {
            name: arguments.get(2)?.clone(),
            consumer: None,
            pending: ids.map_while(|id| strict_id(id, 0).ok()).collect(),
        }),
    }]))
}

/// `XACKDEL key group [KEEPREF|DELREF|ACKED] IDS numids id [id …]` → of each id what has become of the
/// entry (Redis 8.2).
pub(super) async fn xackdel(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let key = context.find(name, ValueType::Stream).await?;
    let (references, ids) = references_and_ids(rest(arguments, 3))?;
    let missing = || deletion_replies(&vec![Deletion::Missing; ids.len()]);
    let Some(key) = key else {
        return Ok(missing());
    };
    let group_name = argument(arguments, 2)?;
    let group = context.stream_group(&key, group_name, context.relaxed());
    let Some(group) = group.await? else {
        return Ok(missing());
    };
    let ids = ids.iter().map(|id| strict_id(id, 0));
    let ids: Vec<StreamId> = ids.collect::<Result<_, _>>()?;
    let done = context.stream_acknowledge_and_delete(&key, &group, &ids, references);
    let done = done.await?;
    if done.contains(&Deletion::Deleted) {
        context.notify(EventClasses::STREAM, "xdel", name);
    }
    Ok(deletion_replies(&done))
}

/// `XNACK key group SILENT|FAIL|FATAL IDS numids id [id …] [RETRYCOUNT count] [FORCE]` → how many
/// entries were given back (Redis 8.8).
pub(super) async fn xnack(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (release, ids) = release_and_ids(rest(arguments, 3))?;
    let (name, group_name) = (argument(arguments, 1)?, argument(arguments, 2)?);
    // What makes an entry pending must see the group's policy.
    let isolation = match release.is_forced {
        true => context.isolation,
        false => context.relaxed(),
    };
    let (key, group) = group_of(context, name, group_name, isolation).await?;
    let count = context.stream_release(&key, &group, &ids, &release).await?;
    Ok(Reply::Integer(count))
}

fn release_and_ids(arguments: &[Bytes]) -> Result<(Release, Vec<StreamId>), CommandError> {
    let mode = match arguments.first() {
        Some(mode) if is_word(mode, "silent") => ReleaseMode::Silent,
        Some(mode) if is_word(mode, "fail") => ReleaseMode::Fail,
        Some(mode) if is_word(mode, "fatal") => ReleaseMode::Fatal,
        _ => {
            return Err(CommandError::text(
                "ERR mode must be SILENT, FAIL, or FATAL",
            ));
        }
    };
    let mut release = Release {
        mode,
        deliveries: None,
        is_forced: false,
    };
    let mut ids = None;
    let mut left = rest(arguments, 1);
    while let [option, following @ ..] = left {
        left = match following {
            [count, rest @ ..] if is_word(option, "ids") => {
                let count = integer(count)?;
                if count < 1 {
                    return Err(CommandError::text(
                        "ERR Number of IDs must be a positive integer",
                    ));
                }
                let Some((some, rest)) = rest.split_at_checked(to_usize(count)) else {
                    return Err(CommandError::text(
                        "ERR The `numids` parameter must match the number of arguments",
                    ));
                };
                let some = some.iter().map(|id| strict_id(id, 0));
                ids = Some(some.collect::<Result<Vec<StreamId>, _>>()?);
                rest
            }
            [count, rest @ ..] if is_word(option, "retrycount") => {
                let count = u64::try_from(integer(count)?);
                let count = count.map_err(|_| {
                    CommandError::text("ERR Invalid RETRYCOUNT value, must be >= 0")
                })?;
                release.deliveries = Some(count);
                rest
            }
            rest if is_word(option, "force") => {
                release.is_forced = true;
                rest
            }
            _ => return Err(CommandError::Syntax),
        };
    }
    Ok((release, ids.ok_or(CommandError::Syntax)?))
}
