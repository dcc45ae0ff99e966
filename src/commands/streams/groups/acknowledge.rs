//! XACK.

use bytes::Bytes;

use crate::commands::arguments::{argument, rest};
use crate::commands::streams::ids::strict_id;
use crate::error::CommandError;
use crate::layout::{StreamId, ValueType};
use crate::reply::Reply;
use crate::types::WriteContext;

/// `XACK key group id [id …]` → how many of these were pending.
pub(super) async fn xack(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::Stream).await? else {
        return Ok(Reply::Integer(0));
    };
    let name = argument(arguments, 2)?;
    let isolation = context.relaxed();
    let Some(group) = context.stream_group(&key, name, isolation).await? else {
        return Ok(Reply::Integer(0));
    };
    let ids = rest(arguments, 3).iter().map(|id| strict_id(id, 0));
    let ids: Vec<StreamId> = ids.collect::<Result<_, _>>()?;
    let count = context.stream_acknowledge(&key, &group, &ids).await?;
    Ok(Reply::Integer(count))
}
