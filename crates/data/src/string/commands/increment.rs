//! INCR, DECR, INCRBY, DECRBY, INCRBYFLOAT.

use bytes::Bytes;

use crate::command::arguments::{argument, integer};
use crate::error::CommandError;
use crate::string::{self, StringValue};
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_base::number::LongDouble;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `INCR key` → the new number.
pub(super) async fn incr(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    add(context, argument(arguments, 1)?, 1).await
}

/// `DECR key` → the new number.
pub(super) async fn decr(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    add(context, argument(arguments, 1)?, -1).await
}

/// `INCRBY key increment` → the new number.
pub(super) async fn incrby(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let increment = integer(argument(arguments, 2)?)?;
    add(context, argument(arguments, 1)?, increment).await
}

/// `DECRBY key decrement` → the new number.
pub(super) async fn decrby(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let increment = integer(argument(arguments, 2)?)?
        .checked_neg()
        .ok_or(CommandError::text("ERR decrement would overflow"))?;
    add(context, argument(arguments, 1)?, increment).await
}

/// Reads the number, because the reply needs the sum. So concurrent increments conflict.
async fn add(
    context: &WriteContext<'_>,
    name: &Bytes,
    increment: i64,
) -> Result<Reply, CommandError> {
    let key = context.find(name, ValueType::String).await?;
    let number = match &key {
        Some(key) => integer(&StringValue::open(context, key).get().await?)?,
        None => 0,
    };
    let sum = number.checked_add(increment).ok_or(CommandError::text(
        "ERR increment or decrement would overflow",
    ))?;
    string::put(context, name, key, &sum.to_string().into()).await?;
    context.notify(EventClasses::STRING, "incrby", name);
    Ok(Reply::Integer(sum))
}

/// `INCRBYFLOAT key increment` → the new number.
pub(super) async fn incrbyfloat(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let key = context.find(name, ValueType::String).await?;
    let number = match &key {
        Some(key) => float(&StringValue::open(context, key).get().await?)?,
        None => LongDouble::ZERO,
    };
    let sum = number + float(argument(arguments, 2)?)?;
    if !sum.is_finite() {
        return Err(CommandError::text(
            "ERR increment would produce NaN or Infinity",
        ));
    }
    let sum = Bytes::from(sum.to_string());
    string::put(context, name, key, &sum).await?;
    context.notify(EventClasses::STRING, "incrbyfloat", name);
    Ok(Reply::Bulk(sum))
}

fn float(text: &[u8]) -> Result<LongDouble, CommandError> {
    LongDouble::parse(text).ok_or(CommandError::NotAFloat)
}
