//! SCARD.

use bytes::Bytes;

use crate::commands::arguments::argument;
use crate::error::CommandError;
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::types::ReadContext;

/// `SCARD key` → length.
pub(super) async fn scard(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let key = context
        .find(argument(arguments, 1)?, ValueType::Set)
        .await?;
    Ok(Reply::Integer(match key {
        Some(key) => context.length(&key, context.isolation).await?,
        None => 0,
    }))
}
