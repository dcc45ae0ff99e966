//! APPEND, SETRANGE, GETRANGE.

use bytes::Bytes;

use crate::command::arguments::{argument, integer};
use crate::error::CommandError;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_base::limits::STRING_BYTES_MAX;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `APPEND key value` → length.
pub(super) async fn append(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (name, value) = (argument(arguments, 1)?, argument(arguments, 2)?);
    let length = match context.find(name, ValueType::String).await? {
        None => {
            context.string_set(name, value, None).await?;
            value.len() as u64
        }
        Some(mut key) => {
            let length = context.string_length(&key).await?;
            check_length(length, value.len())?;
            if value.is_empty() {
                context.string_touch(&mut key);
                length
            } else {
                context.string_write(&mut key, length, value).await?
            }
        }
    };
    context.notify(EventClasses::STRING, "append", name);
    Ok(Reply::Integer(i64::try_from(length).unwrap_or(i64::MAX)))
}

/// `SETRANGE key offset value` → length.
pub(super) async fn setrange(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let offset = integer(argument(arguments, 2)?)?;
    let offset =
        u64::try_from(offset).map_err(|_| CommandError::text("ERR offset is out of range"))?;
    let (name, value) = (argument(arguments, 1)?, argument(arguments, 3)?);
    let found = context.find(name, ValueType::String).await?;
    if value.is_empty() {
        return Ok(Reply::Integer(match found {
            Some(key) => context.length(&key, context.isolation).await?,
            None => 0,
        }));
    }
    check_length(offset, value.len())?;
    let mut key = match found {
        Some(key) => key,
        None => context.string_set(name, &Bytes::new(), None).await?,
    };
    let length = context.string_write(&mut key, offset, value).await?;
    context.notify(EventClasses::STRING, "setrange", name);
    Ok(Reply::Integer(i64::try_from(length).unwrap_or(i64::MAX)))
}

fn check_length(offset: u64, added: usize) -> Result<(), CommandError> {
    if offset.saturating_add(added as u64) > STRING_BYTES_MAX as u64 {
        return Err(CommandError::text(
            "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
        ));
    }
    Ok(())
}

/// `GETRANGE key start end` → the bytes from one to the other; negative ones count from the end.
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
        context.string_range(&key, start, end + 1).await?,
    ))
}
