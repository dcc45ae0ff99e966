//! ZREM, ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX.

use bytes::Bytes;

use super::bounds::{lex_selection, rank_selection, score_selection};
use crate::command::arguments::{argument, rest};
use crate::error::CommandError;
use crate::unit::context::WriteContext;
use crate::zset::Selection;
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `ZREM key member [member …]` → how many were removed.
pub(super) async fn zrem(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let Some(key) = context
        .find(argument(arguments, 1)?, ValueType::SortedSet)
        .await?
    else {
        return Ok(Reply::Integer(0));
    };
    let removed = context.zset_remove(&key, rest(arguments, 2)).await?;
    if removed > 0 {
        context.notify(EventClasses::SORTED_SET, "zrem", argument(arguments, 1)?);
        context.remove_if_empty(&key).await?;
    }
    Ok(Reply::Integer(removed))
}

/// `ZREMRANGEBYRANK key start stop` → how many were removed.
pub(super) async fn zremrangebyrank(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let selection = rank_selection(argument(arguments, 2)?, argument(arguments, 3)?)?;
    remove_range(context, arguments, &selection, "zremrangebyrank").await
}

/// `ZREMRANGEBYSCORE key min max` → how many were removed.
pub(super) async fn zremrangebyscore(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let selection = score_selection(argument(arguments, 2)?, argument(arguments, 3)?)?;
    remove_range(context, arguments, &selection, "zremrangebyscore").await
}

/// `ZREMRANGEBYLEX key min max` → how many were removed.
pub(super) async fn zremrangebylex(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let selection = lex_selection(argument(arguments, 2)?, argument(arguments, 3)?)?;
    remove_range(context, arguments, &selection, "zremrangebylex").await
}

async fn remove_range(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    selection: &Selection,
    event: &'static str,
) -> Result<Reply, CommandError> {
    let Some(key) = context
        .find(argument(arguments, 1)?, ValueType::SortedSet)
        .await?
    else {
        return Ok(Reply::Integer(0));
    };
    let removed = context.zset_remove_range(&key, selection).await?;
    if removed > 0 {
        context.notify(EventClasses::SORTED_SET, event, argument(arguments, 1)?);
        context.remove_if_empty(&key).await?;
    }
    Ok(Reply::Integer(removed))
}
