//! ZRANDMEMBER.

use bytes::Bytes;

use super::members_reply;
use crate::command::arguments::{argument, rest};
use crate::command::random_draw::{Draw, OUT_OF_RANGE};
use crate::error::CommandError;
use crate::unit::context::ReadContext;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `ZRANDMEMBER key [count [WITHSCORES]]` → member, or members where a count is given.
pub(super) async fn zrandmember(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(count) = arguments.get(2) else {
        let Some(key) = context.find(name, ValueType::SortedSet).await? else {
            return Ok(Reply::Null);
        };
        let member = context.zset_random(&key, 1).await?.pop();
        return Ok(member.map_or(Reply::Null, |one| Reply::Bulk(one.member)));
    };
    let (draw, with_scores) = Draw::parse_with(count, rest(arguments, 3), "withscores")?;
    let Some(key) = context.find(name, ValueType::SortedSet).await? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let members = match draw {
        Draw::Distinct(count) => context.zset_random_distinct(&key, count).await?,
        Draw::Repeated(count) => context.zset_random(&key, count).await?,
        Draw::TooMany if context.has_elements(&key).await? => return Err(OUT_OF_RANGE),
        Draw::TooMany => Vec::new(),
    };
    Ok(members_reply(members, with_scores))
}
