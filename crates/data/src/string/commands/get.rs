//! GET, MGET, GETDEL, GETEX, GETRANGE, STRLEN.

use bytes::Bytes;

use super::set::Expiry;
use crate::command::arguments::{argument, integer, is_word, rest};
use crate::error::CommandError;
use crate::string::StringValue;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_base::limits::MGET_ANSWER_BYTES_MAX;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `GET key` → value.
pub(super) async fn get(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let key = context.find(argument(arguments, 1)?, ValueType::String);
    Ok(match key.await? {
        Some(key) => Reply::Bulk(StringValue::open(context, &key).get().await?),
        None => Reply::Null,
    })
}

/// `STRLEN key` → length.
pub(super) async fn strlen(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let key = context.find(argument(arguments, 1)?, ValueType::String);
    Ok(Reply::Integer(match key.await? {
        Some(key) => context.length(&key, context.isolation).await?,
        None => 0,
    }))
}

/// `MGET key [key …]` → values. Null for keys of other types.
pub(super) async fn mget(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let keys = context.find_each(rest(arguments, 1)).await?;
    let mut values = Vec::with_capacity(keys.len());
    let mut left_bytes = MGET_ANSWER_BYTES_MAX as u64;
    for key in keys {
        let string = key.filter(|key| key.meta.value_type == ValueType::String);
        let Some(key) = string else {
            values.push(Reply::Null);
            continue;
        };
        let string = StringValue::open(context, &key);
        let length = string.length().await?;
        // All values are in memory at once.
        left_bytes = left_bytes.checked_sub(length).ok_or_else(|| {
            let line =
                format!("ERR too long an answer of MGET (more than {MGET_ANSWER_BYTES_MAX} bytes)");
            CommandError::Text(line.into())
        })?;
        values.push(Reply::Bulk(string.get().await?));
    }
    Ok(Reply::Array(values))
}

/// `GETRANGE key start end` → the bytes from `start` to `end`. Negative offsets count from the end.
pub(super) async fn getrange(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let start = integer(argument(arguments, 2)?)?;
    let end = integer(argument(arguments, 3)?)?;
    let empty = Reply::Bulk(Bytes::new());
    let key = context.find(argument(arguments, 1)?, ValueType::String);
    let Some(key) = key.await? else {
        return Ok(empty);
    };
    if start < 0 && end < 0 && start > end {
        return Ok(empty);
    }
    let length = context.length(&key, context.isolation).await?;
    let from_start = |at: i64| if at < 0 { (length + at).max(0) } else { at };
    let (start, end) = (from_start(start), from_start(end).min(length - 1));
    if start > end {
        return Ok(empty);
    }
    let (start, end) = (start.unsigned_abs(), end.unsigned_abs());
    Ok(Reply::Bulk(
        StringValue::open(context, &key)
            .range(start, end + 1)
            .await?,
    ))
}

/// `GETDEL key` → the value before.
pub(super) async fn getdel(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::String).await? else {
        return Ok(Reply::Null);
    };
    let value = StringValue::open(context, &key).get().await?;
    context.remove(&key);
    context.notify(EventClasses::GENERIC, "del", name);
    Ok(Reply::Bulk(value))
}

/// `GETEX key [EX seconds|PX ms|EXAT time|PXAT time-ms|PERSIST]` → value.
pub(super) async fn getex(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let expiry = parse_getex(rest(arguments, 2))?;
    let name = argument(arguments, 1)?;
    let Some(mut key) = context.find(name, ValueType::String).await? else {
        return Ok(Reply::Null);
    };
    let value = match expiry {
        Expiry::At(form, text) => {
            let at_ms = form.read(text, context.now_ms, "getex")?;
            let value = StringValue::open(context, &key).get().await?;
            let event = if form.is_absolute() && at_ms <= context.now_ms {
                context.remove(&key);
                "del"
            } else {
                context.set_expiry(&mut key, Some(at_ms));
                "expire"
            };
            context.notify(EventClasses::GENERIC, event, name);
            value
        }
        Expiry::Removed if key.meta.expire_at_ms.is_some() => {
            context.set_expiry(&mut key, None);
            context.notify(EventClasses::GENERIC, "persist", name);
            StringValue::open(context, &key).get().await?
        }
        _ => StringValue::open(context, &key).get().await?,
    };
    Ok(Reply::Bulk(value))
}

fn parse_getex(mut words: &[Bytes]) -> Result<Expiry<'_>, CommandError> {
    let mut expiry = Expiry::Unsaid;
    while let [word, after @ ..] = words {
        words = match expiry {
            Expiry::Unsaid | Expiry::Removed if is_word(word, "persist") => {
                expiry = Expiry::Removed;
                after
            }
            _ => expiry.take(words).ok_or(CommandError::Syntax)?,
        };
    }
    Ok(expiry)
}
