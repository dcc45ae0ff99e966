//! ZRANK, ZREVRANK, ZCOUNT, ZLEXCOUNT.

use bytes::Bytes;

use super::bounds::{lex_selection, score_selection};
use crate::command::arguments::{argument, is_word};
use crate::error::CommandError;
use crate::unit::context::ReadContext;
use crate::zset::Selection;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `ZRANK key member [WITHSCORE]` → rank.
pub(super) async fn zrank(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    rank(context, arguments, false, "zrank").await
}

/// `ZREVRANK key member [WITHSCORE]` → rank, from the highest score.
pub(super) async fn zrevrank(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    rank(context, arguments, true, "zrevrank").await
}

async fn rank(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
    reverse: bool,
    name: &'static str,
) -> Result<Reply, CommandError> {
    if arguments.len() > 4 {
        return Err(CommandError::WrongArity(name.to_owned()));
    }
    let with_score = match arguments.get(3) {
        None => false,
        Some(word) if is_word(word, "withscore") => true,
        Some(_) => return Err(CommandError::Syntax),
    };
    let key = context
        .find(argument(arguments, 1)?, ValueType::SortedSet)
        .await?;
    let found = match key {
        Some(key) => {
            context
                .zset_rank(&key, argument(arguments, 2)?, reverse)
                .await?
        }
        None => None,
    };
    Ok(match (found, with_score) {
        (Some((rank, _)), false) => Reply::Integer(rank),
        (Some((rank, score)), true) => {
            Reply::Array(vec![Reply::Integer(rank), Reply::Double(score)])
        }
        (None, false) => Reply::Null,
        (None, true) => Reply::NullArray,
    })
}

/// `ZCOUNT key min max` → number of members.
pub(super) async fn zcount(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let selection = score_selection(argument(arguments, 2)?, argument(arguments, 3)?)?;
    count(context, arguments, &selection).await
}

/// `ZLEXCOUNT key min max` → number of members.
pub(super) async fn zlexcount(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let selection = lex_selection(argument(arguments, 2)?, argument(arguments, 3)?)?;
    count(context, arguments, &selection).await
}

async fn count(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
    selection: &Selection,
) -> Result<Reply, CommandError> {
    let key = context
        .find(argument(arguments, 1)?, ValueType::SortedSet)
        .await?;
    Ok(Reply::Integer(match key {
        Some(key) => context.zset_count(&key, selection).await?,
        None => 0,
    }))
}
