//! ZCARD, ZSCORE, ZMSCORE.

use bytes::Bytes;

use crate::command::arguments::{argument, rest};
use crate::error::CommandError;
use crate::unit::context::ReadContext;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `ZCARD key` → number of members.
pub(super) async fn zcard(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let key = context
        .find(argument(arguments, 1)?, ValueType::SortedSet)
        .await?;
    Ok(Reply::Integer(match key {
        Some(key) => context.length(&key, context.isolation).await?,
        None => 0,
    }))
}

/// `ZSCORE key member` → score.
pub(super) async fn zscore(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let Some(key) = context
        .find(argument(arguments, 1)?, ValueType::SortedSet)
        .await?
    else {
        return Ok(Reply::Null);
    };
    let score = context.zset_score(&key, argument(arguments, 2)?).await?;
    Ok(score.map_or(Reply::Null, Reply::Double))
}

/// `ZMSCORE key member [member …]` → scores.
pub(super) async fn zmscore(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let scores = scores(context, arguments).await?.into_iter();
    let replies = scores.map(|score| score.map_or(Reply::Null, Reply::Double));
    Ok(Reply::Array(replies.collect()))
}

/// The scores of the members of `name key [member …]`.
pub(crate) async fn scores(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Vec<Option<f64>>, CommandError> {
    let members = rest(arguments, 2);
    let key = context
        .find(argument(arguments, 1)?, ValueType::SortedSet)
        .await?;
    match key {
        Some(key) => Ok(context.zset_scores(&key, members).await?),
        None => Ok(vec![None; members.len()]),
    }
}
