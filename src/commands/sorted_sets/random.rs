//! ZRANDMEMBER.

use bytes::Bytes;

use super::members_reply;
use crate::commands::arguments::{argument, is_word, symmetric_integer};
use crate::error::CommandError;
use crate::layout::ValueType;
use crate::limits::RANDOM_MEMBERS_MAX;
use crate::reply::Reply;
use crate::types::ReadContext;

/// `ZRANDMEMBER key [count [WITHSCORES]]` → member, or members where a count is given.
pub(super) async fn zrandmember(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(word) = arguments.get(2) else {
        let Some(key) = context.find(name, ValueType::SortedSet).await? else {
            return Ok(Reply::Null);
        };
        let member = context.zset_random(&key, 1).await?.pop();
        return Ok(member.map_or(Reply::Null, |one| Reply::Bulk(one.member)));
    };
    let count = symmetric_integer(word)?;
    let with_scores = match (arguments.get(3), arguments.get(4)) {
        (None, _) => false,
        (Some(word), None) if is_word(word, "withscores") => true,
        _ => return Err(CommandError::Syntax),
    };
    if with_scores && count.unsigned_abs() > i64::MAX.unsigned_abs() / 2 {
        return Err(CommandError::text("ERR value is out of range"));
    }
    let Some(key) = context.find(name, ValueType::SortedSet).await? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let number = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let members = if count >= 0 {
        context.zset_random_distinct(&key, number).await?
    } else if number <= RANDOM_MEMBERS_MAX {
        context.zset_random(&key, number).await?
    } else if context.has_elements(&key).await? {
        // Redis would begin to answer and run out of memory.
        return Err(CommandError::text("ERR value is out of range"));
    } else {
        Vec::new()
    };
    Ok(members_reply(members, with_scores))
}
