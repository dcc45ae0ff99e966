//! GET and its like, STRLEN.

use bytes::Bytes;

use super::expiry::Expiry;
use crate::command::arguments::{argument, is_word, rest};
use crate::error::CommandError;
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
        Some(key) => Reply::Bulk(context.string_get(&key).await?),
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

/// `MGET key [key …]` → values; nothing for keys of other types.
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
        let length = context.string_length(&key).await?;
        // One string may be as long; several are in memory at once.
        left_bytes = left_bytes.checked_sub(length).ok_or_else(|| {
            let line =
                format!("ERR too long an answer of MGET (more than {MGET_ANSWER_BYTES_MAX} bytes)");
            CommandError::Text(line.into())
        })?;
        values.push(Reply::Bulk(context.string_get(&key).await?));
    }
    Ok(Reply::Array(values))
}

/// `GETDEL key` → the value that the key had.
pub(super) async fn getdel(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::String).await? else {
        return Ok(Reply::Null);
    };
    let value = context.string_get(&key).await?;
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
            let value = context.string_get(&key).await?;
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
            context.string_get(&key).await?
        }
        _ => context.string_get(&key).await?,
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
