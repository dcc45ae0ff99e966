//! XCLAIM, XAUTOCLAIM and XNACK.

use bytes::Bytes;

use quoin_layout::StreamId;
use quoin_resp::reply::Reply;

use super::ids::{counted_ids, interval_first, strict_id, strict_ids};
use super::{entry_reply, find_group, id_reply, shown};
use crate::command::arguments::{argument, integer, integer_or, is_word, rest, to_usize};
use crate::error::CommandError;
use crate::stream::Stream;
use crate::stream::group::GroupMut;
use crate::stream::group::claim::{Claim, Claimed, Release, ReleaseMode};
use crate::unit::context::WriteContext;

/// Entries that XAUTOCLAIM claims without COUNT.
const COUNT_DEFAULT: usize = 100;
/// The greatest COUNT of XAUTOCLAIM, as in Redis.
const COUNT_MAX: i64 = i64::MAX / 16;

/// `XCLAIM key group consumer min-idle-time id [id …] [IDLE ms] [TIME unix-time-milliseconds] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID lastid]`
/// → the claimed entries.
pub(super) async fn xclaim(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (name, group_name) = (argument(arguments, 1)?, argument(arguments, 2)?);
    let (key, mut group) = find_group(context, name, group_name, context.relaxed()).await?;
    let min_idle_ms = integer_or(
        argument(arguments, 4)?,
        "ERR Invalid min-idle-time argument for XCLAIM",
    )?;
    let mut claim = Claim::idle(min_idle_ms.max(0), context.now_ms, false);
    let ids = rest(arguments, 5)
        .iter()
        .map_while(|id| strict_id(id, 0).ok());
    let ids: Vec<StreamId> = ids.collect();
    let options = rest(arguments, 5 + ids.len());
    let last = claim_options(options, context.now_ms, &mut claim)?;
    if claim.is_forced || last > group.row.last {
        // A command that makes an entry pending must see the group's policy.
        let stream = Stream::open(context, &key);
        let again = stream.group(group_name, context.isolation).await?;
        group = again.unwrap_or(group);
    }
    let mut group = GroupMut::open(context, &key, group);
    group.advance_to(last);
    let consumer = group.find_or_create_consumer(name, argument(arguments, 3)?);
    let (mut consumer, _) = consumer.await?;
    let claimed = group.claim(&mut consumer, &ids, &claim).await?;
    Ok(claimed_reply(claimed))
}

/// Reads the options of XCLAIM, and returns LASTID.
fn claim_options(
    mut options: &[Bytes],
    now_ms: i64,
    claim: &mut Claim,
) -> Result<StreamId, CommandError> {
    let mut last = StreamId::MIN;
    let mut delivered_at_ms = -1;
    while let [option, following @ ..] = options {
        options = match following {
            rest if is_word(option, "force") => {
                claim.is_forced = true;
                rest
            }
            rest if is_word(option, "justid") => {
                claim.only_ids = true;
                rest
            }
            [idle, rest @ ..] if is_word(option, "idle") => {
                let idle_ms = integer_or(idle, "ERR Invalid IDLE option argument for XCLAIM")?;
                delivered_at_ms = now_ms.wrapping_sub(idle_ms);
                rest
            }
            [time, rest @ ..] if is_word(option, "time") => {
                delivered_at_ms = integer_or(time, "ERR Invalid TIME option argument for XCLAIM")?;
                rest
            }
            [count, rest @ ..] if is_word(option, "retrycount") => {
                let text = "ERR Invalid RETRYCOUNT option argument for XCLAIM";
                claim.deliveries = u64::try_from(integer_or(count, text)?).ok();
                rest
            }
            [id, rest @ ..] if is_word(option, "lastid") => {
                last = strict_id(id, 0)?;
                rest
            }
            _ => {
                let option = shown(option);
                return Err(CommandError::Text(
                    format!("ERR Unrecognized XCLAIM option '{option}'").into(),
                ));
            }
        };
    }
    // A time that cannot be is replaced by the current time, because clients have clocks of their own.
    if (0..=now_ms).contains(&delivered_at_ms) {
        claim.delivered_at_ms = delivered_at_ms;
    }
    Ok(last)
}

fn claimed_reply(claimed: Vec<Claimed>) -> Reply {
    let claimed = claimed.into_iter().map(|one| match one {
        Claimed::Id(id) => id_reply(id),
        Claimed::Entry(entry) => entry_reply(entry),
    });
    Reply::Array(claimed.collect())
}

/// `XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]` → the id to continue
/// from, the claimed entries, and the ids of pending entries that no longer exist.
pub(super) async fn xautoclaim(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let min_idle_ms = integer_or(
        argument(arguments, 4)?,
        "ERR Invalid min-idle-time argument for XAUTOCLAIM",
    )?;
    let start = interval_first(argument(arguments, 5)?)?;
    let mut claim = Claim::idle(min_idle_ms.max(0), context.now_ms, false);
    let count = auto_claim_options(rest(arguments, 6), &mut claim)?;
    let (name, group_name) = (argument(arguments, 1)?, argument(arguments, 2)?);
    let (key, group) = find_group(context, name, group_name, context.relaxed()).await?;
    let group = GroupMut::open(context, &key, group);
    let consumer = group.find_or_create_consumer(name, argument(arguments, 3)?);
    let (mut consumer, _) = consumer.await?;
    let done = group
        .auto_claim(&mut consumer, start, count, &claim)
        .await?;
    Ok(Reply::Array(vec![
        id_reply(done.next),
        claimed_reply(done.claimed),
        Reply::Array(done.deleted.into_iter().map(id_reply).collect()),
    ]))
}

fn auto_claim_options(mut options: &[Bytes], claim: &mut Claim) -> Result<usize, CommandError> {
    let mut wanted = COUNT_DEFAULT;
    while let [option, following @ ..] = options {
        options = match following {
            [count, rest @ ..] if is_word(option, "count") => {
                let count = integer_or(count, "ERR COUNT must be > 0")?;
                if !(1..=COUNT_MAX).contains(&count) {
                    return Err(CommandError::text("ERR COUNT must be > 0"));
                }
                wanted = to_usize(count);
                rest
            }
            rest if is_word(option, "justid") => {
                claim.only_ids = true;
                rest
            }
            _ => return Err(CommandError::Syntax),
        };
    }
    Ok(wanted)
}

/// `XNACK key group SILENT|FAIL|FATAL IDS numids id [id …] [RETRYCOUNT count] [FORCE]` → how many
/// entries were given back (Redis 8.8).
pub(super) async fn xnack(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (release, ids) = release_and_ids(rest(arguments, 3))?;
    let (name, group_name) = (argument(arguments, 1)?, argument(arguments, 2)?);
    // A command that makes an entry pending must see the group's policy.
    let isolation = match release.is_forced {
        true => context.isolation,
        false => context.relaxed(),
    };
    let (key, group) = find_group(context, name, group_name, isolation).await?;
    let group = GroupMut::open(context, &key, group);
    Ok(Reply::Integer(group.release(&ids, &release).await?))
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
                let (some, rest) = counted_ids(Some(integer(count)?), rest)?;
                ids = Some(strict_ids(some)?);
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
