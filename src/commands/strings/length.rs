//! STRLEN.

use bytes::Bytes;

use crate::commands::arguments::argument;
use crate::error::CommandError;
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::types::ReadContext;

/// `STRLEN key` → length.
pub(super) async fn strlen(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let key = context
        .find(argument(arguments, 1)?, ValueType::String)
        .await?;
    Ok(Reply::Integer(match key {
        Some(key) => context.length(&key, context.isolation).await?,
        None => 0,
    }))
}
