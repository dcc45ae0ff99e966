//! EXPIRE, TTL and their variants, PERSIST.

use bytes::Bytes;

use crate::command::arguments::{argument, integer, rest};
use crate::command::expiry_conditions::Conditions;
use crate::error::CommandError;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_resp::reply::Reply;

const MS_PER_SECOND: i64 = 1000;
const HALF_SECOND_MS: u64 = 500;

/// How one of the four expiry commands expresses a time.
struct TimeForm {
    command: &'static str,
    is_relative: bool,
    unit_ms: i64,
}

/// `EXPIRE key seconds [NX|XX|GT|LT …]` → 1, or 0 if nothing was done.
pub(super) async fn expire(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let form = TimeForm {
        command: "expire",
        is_relative: true,
        unit_ms: MS_PER_SECOND,
    };
    set_expiry(context, arguments, &form).await
}

/// `PEXPIRE key milliseconds [NX|XX|GT|LT …]`, like [`expire`].
pub(super) async fn pexpire(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let form = TimeForm {
        command: "pexpire",
        is_relative: true,
        unit_ms: 1,
    };
    set_expiry(context, arguments, &form).await
}

/// `EXPIREAT key unix-time-seconds [NX|XX|GT|LT …]`, like [`expire`].
pub(super) async fn expireat(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let form = TimeForm {
        command: "expireat",
        is_relative: false,
        unit_ms: MS_PER_SECOND,
    };
    set_expiry(context, arguments, &form).await
}

/// `PEXPIREAT key unix-time-milliseconds [NX|XX|GT|LT …]`, like [`expire`].
pub(super) async fn pexpireat(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let form = TimeForm {
        command: "pexpireat",
        is_relative: false,
        unit_ms: 1,
    };
    set_expiry(context, arguments, &form).await
}

async fn set_expiry(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    form: &TimeForm,
) -> Result<Reply, CommandError> {
    let conditions = Conditions::parse(rest(arguments, 3))?;
    let time = integer(argument(arguments, 2)?)?;
    let base_ms = if form.is_relative { context.now_ms } else { 0 };
    let at_ms = time
        .checked_mul(form.unit_ms)
        .and_then(|time_ms| time_ms.checked_add(base_ms))
        .ok_or_else(|| {
            CommandError::Text(
                format!("ERR invalid expire time in '{}' command", form.command).into(),
            )
        })?;
    let Some(mut key) = context.find_any(argument(arguments, 1)?).await? else {
        return Ok(Reply::Integer(0));
    };
    if !conditions.allow(key.meta.expire_at_ms, at_ms) {
        return Ok(Reply::Integer(0));
    }
    let event = if at_ms <= context.now_ms {
        context.remove(&key);
        "del"
    } else {
        context.return_grants(&key).await?;
        context.set_expiry(&mut key, Some(at_ms));
        "expire"
    };
    context.notify(EventClasses::GENERIC, event, argument(arguments, 1)?);
    Ok(Reply::Integer(1))
}

/// `PERSIST key` → 1, or 0 if there is no key or it has no expiry.
pub(super) async fn persist(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    match context.find_any(argument(arguments, 1)?).await? {
        Some(mut key) if key.meta.expire_at_ms.is_some() => {
            context.set_expiry(&mut key, None);
            context.notify(EventClasses::GENERIC, "persist", argument(arguments, 1)?);
            Ok(Reply::Integer(1))
        }
        _ => Ok(Reply::Integer(0)),
    }
}

/// `TTL key` → seconds left, rounded; −1 without an expiry, −2 without a key.
pub(super) async fn ttl(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let left_ms = read_expiry(context, arguments, context.now_ms).await?;
    Ok(Reply::Integer(left_ms.map_or_else(|code| code, to_seconds)))
}

/// `PTTL key` → milliseconds left, like [`ttl`].
pub(super) async fn pttl(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let left_ms = read_expiry(context, arguments, context.now_ms).await?;
    Ok(Reply::Integer(left_ms.unwrap_or_else(|code| code)))
}

/// `EXPIRETIME key` → Unix time in seconds, like [`ttl`].
pub(super) async fn expiretime(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let at_ms = read_expiry(context, arguments, 0).await?;
    Ok(Reply::Integer(at_ms.map_or_else(|code| code, to_seconds)))
}

/// `PEXPIRETIME key` → Unix time in milliseconds, like [`ttl`].
pub(super) async fn pexpiretime(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let at_ms = read_expiry(context, arguments, 0).await?;
    Ok(Reply::Integer(at_ms.unwrap_or_else(|code| code)))
}

/// The expiry relative to `since_ms`, or the reply code of a key that does not exist or does not expire.
async fn read_expiry(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
    since_ms: i64,
) -> Result<Result<i64, i64>, CommandError> {
    Ok(match context.find_any(argument(arguments, 1)?).await? {
        None => Err(-2),
        Some(key) => match key.meta.expire_at_ms {
            None => Err(-1),
            Some(at_ms) => Ok((at_ms - since_ms).max(0)),
        },
    })
}

/// Rounds half a second or more up, as Redis does unless its sum overflows.
fn to_seconds(time_ms: i64) -> i64 {
    let seconds = (time_ms.unsigned_abs() + HALF_SECOND_MS) / MS_PER_SECOND.unsigned_abs();
    i64::try_from(seconds).unwrap_or(i64::MAX)
}
