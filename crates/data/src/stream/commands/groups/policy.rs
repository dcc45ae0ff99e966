//! XGROUP SETPOLICY.

use bytes::Bytes;

use super::errors::subcommand_syntax;
use super::manage::group_of;
use crate::command::arguments::{argument, integer, is_word, rest};
use crate::error::CommandError;
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_base::limits::{STREAM_MIN_IDLE_MS_MAX, STREAM_NAME_BYTES_MAX};
use quoin_layout::{StreamPolicy, ValueType};
use quoin_resp::reply::Reply;

/// `XGROUP SETPOLICY key group [MAXTRIES n] [MINIDLE ms] [DEADLETTER key]` → OK. Without options the
/// group has no policy any more.
pub(super) async fn set_policy(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let policy = policy(arguments)?;
    let (key, mut group) = group_of(context, arguments, context.isolation).await?;
    let dead_letter = policy
        .as_ref()
        .and_then(|policy| policy.dead_letter.as_ref());
    if let Some(name) = dead_letter {
        context.find(name, ValueType::Stream).await?;
    }
    context.stream_set_policy(&key, &mut group, policy).await?;
    let name = argument(arguments, 2)?;
    context.notify(EventClasses::STREAM, "xgroup-setpolicy", name);
    Ok(Reply::OK)
}

fn policy(arguments: &[Bytes]) -> Result<Option<StreamPolicy>, CommandError> {
    let mut min_idle_ms = None;
    let mut max_tries = None;
    let mut dead_letter = None;
    let mut left = rest(arguments, 4);
    while let [option, following @ ..] = left {
        left = match following {
            [count, rest @ ..] if max_tries.is_none() && is_word(option, "maxtries") => {
                let count = u64::try_from(integer(count)?).ok();
                let count = count.filter(|count| *count > 0);
                max_tries = Some(count.ok_or(CommandError::text("ERR MAXTRIES must be > 0"))?);
                rest
            }
            [idle, rest @ ..] if min_idle_ms.is_none() && is_word(option, "minidle") => {
                let idle_ms = integer(idle)?;
                if !(1..=STREAM_MIN_IDLE_MS_MAX).contains(&idle_ms) {
                    return Err(CommandError::Text(
                        format!("ERR MINIDLE must be from 1 to {STREAM_MIN_IDLE_MS_MAX}").into(),
                    ));
                }
                min_idle_ms = Some(idle_ms);
                rest
            }
            [name, rest @ ..] if dead_letter.is_none() && is_word(option, "deadletter") => {
                dead_letter = Some(name.clone());
                rest
            }
            _ => return Err(subcommand_syntax("XGROUP", argument(arguments, 1)?)),
        };
    }
    if dead_letter.is_some() && max_tries.is_none() {
        return Err(CommandError::text("ERR DEADLETTER needs MAXTRIES"));
    }
    if dead_letter.as_ref() == Some(argument(arguments, 2)?) {
        return Err(CommandError::text(
            "ERR DEADLETTER must be another key than the stream's",
        ));
    }
    if dead_letter
        .as_ref()
        .is_some_and(|name| name.len() > STREAM_NAME_BYTES_MAX)
    {
        return Err(CommandError::Text(
            format!("ERR DEADLETTER is longer than {STREAM_NAME_BYTES_MAX} bytes").into(),
        ));
    }
    match (min_idle_ms, max_tries) {
        (Some(min_idle_ms), max_tries) => Ok(Some(StreamPolicy {
            min_idle_ms,
            max_tries,
            dead_letter,
        })),
        (None, Some(_)) => Err(CommandError::text("ERR MAXTRIES needs MINIDLE")),
        (None, None) => Ok(None),
    }
}
