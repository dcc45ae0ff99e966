//! XCLAIM and XAUTOCLAIM.

use bytes::Bytes;

use super::errors::{group_of, shown};
use crate::command::arguments::{argument, integer_or, is_word, rest, to_usize};
use crate::error::CommandError;
use crate::stream::commands::ids::{interval_first, strict_id};
use crate::stream::commands::replies::{entry_reply, id_reply};
use crate::stream::{Claim, Claimed};
use crate::unit::context::WriteContext;
use quoin_layout::StreamId;
use quoin_resp::reply::Reply;

/// Entries that XAUTOCLAIM claims where COUNT does not say.
const COUNT_DEFAULT: usize = 100;
/// The greatest COUNT of XAUTOCLAIM, as in Redis.
const COUNT_MAX: i64 = i64::MAX / 16;

/// `XCLAIM key group consumer min-idle-time id [id …] [IDLE ms] [TIME unix-time-milliseconds]
/// [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID lastid]` → what was claimed.
pub(super) async fn xclaim(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (name, group_name) = (argument(arguments, 1)?, argument(arguments, 2)?);
    let (key, mut group) = group_of(context, name, group_name, context.relaxed()).await?;
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
    // What makes an entry pending must see the group's policy.
    if claim.is_forced || last > group.row.last {
        let again = context.stream_group(&key, group_name, context.isolation);
        group = again.await?.unwrap_or(group);
        context.stream_advance_group(&key, &mut group, last);
    }
    let consumer = argument(arguments, 3)?;
    let consumer = context.stream_find_or_create_consumer(&key, name, &group, consumer);
    let (mut consumer, _) = consumer.await?;
    let claimed = context.stream_claim(&key, &group, &mut consumer, &ids, &claim);
    Ok(claimed_reply(claimed.await?))
}

/// Reads the options of XCLAIM, and answers the id after which the group reads at the earliest.
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
    // What cannot be is now: clients reckon with clocks of their own.
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

/// `XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]` → where to go on, what
/// was claimed, and what was pending and is gone.
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
    let (key, group) = group_of(context, name, group_name, context.relaxed()).await?;
    let consumer = argument(arguments, 3)?;
    let consumer = context.stream_find_or_create_consumer(&key, name, &group, consumer);
    let (mut consumer, _) = consumer.await?;
    let done = context.stream_auto_claim(&key, &group, &mut consumer, start, count, &claim);
    let done = done.await?;
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
