//! XLEN, XRANGE, XREVRANGE.

use bytes::Bytes;

use super::ids::{interval_first, interval_last};
use super::replies::entries_reply;
use crate::command::arguments::{argument, integer, is_word, rest, to_usize};
use crate::error::CommandError;
use crate::stream::IdRange;
use crate::unit::context::ReadContext;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `XLEN key` → number of entries.
pub(super) async fn xlen(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    Ok(Reply::Integer(
        match context.find(name, ValueType::Stream).await? {
            Some(key) => context.length(&key, context.isolation).await?,
            None => 0,
        },
    ))
}

/// `XRANGE key start end [COUNT count]` → entries.
pub(super) async fn xrange(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let range = IdRange {
        first: interval_first(argument(arguments, 2)?)?,
        last: interval_last(argument(arguments, 3)?)?,
    };
    entries(context, arguments, range, false).await
}

/// `XREVRANGE key end start [COUNT count]` → entries, the last first.
pub(super) async fn xrevrange(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    // Redis reads the start first.
    let first = interval_first(argument(arguments, 3)?)?;
    let last = interval_last(argument(arguments, 2)?)?;
    entries(context, arguments, IdRange { first, last }, true).await
}

async fn entries(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
    range: IdRange,
    reverse: bool,
) -> Result<Reply, CommandError> {
    let count = count(rest(arguments, 4))?;
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::Stream).await? else {
        return Ok(Reply::Array(Vec::new()));
    };
    if count == Some(0) {
        return Ok(Reply::NullArray);
    }
    let count = count.unwrap_or(usize::MAX);
    let entries = context.stream_range(&key, range, reverse, count).await?;
    Ok(entries_reply(entries))
}

/// `[COUNT count]`, of which Redis takes the last. Less than nothing counts as nothing.
fn count(options: &[Bytes]) -> Result<Option<usize>, CommandError> {
    let mut found = None;
    for option in options.chunks(2) {
        match option {
            [word, count] if is_word(word, "count") => found = Some(to_usize(integer(count)?)),
            _ => return Err(CommandError::Syntax),
        }
    }
    Ok(found)
}
