//! ZPOPMIN, ZPOPMAX, ZMPOP.

use bytes::Bytes;

use super::{member_and_score, members_reply};
use crate::commands::arguments::{argument, is_word, optional_count};
use crate::commands::multi_pop::MultiPop;
use crate::error::CommandError;
use crate::events::EventClasses;
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::types::sorted_set::{Extreme, ScoredMember};
use crate::types::{OpenKey, WriteContext};

/// `ZPOPMIN key [count]` → members with scores.
pub(super) async fn zpopmin(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    pop(context, arguments, Extreme::Min).await
}

/// `ZPOPMAX key [count]` → members with scores.
pub(super) async fn zpopmax(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    pop(context, arguments, Extreme::Max).await
}

async fn pop(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    end: Extreme,
) -> Result<Reply, CommandError> {
    let limit = optional_count(arguments)?;
    let name = argument(arguments, 1)?;
    let members = match context.find(name, ValueType::SortedSet).await? {
        Some(key) => take(context, name, &key, limit.unwrap_or(1), end).await?,
        None => Vec::new(),
    };
    Ok(match limit {
        Some(_) => members_reply(members, true),
        // Without a count flat in both versions of the protocol.
        None => Reply::Array(
            members
                .into_iter()
                .map(member_and_score)
                .flat_map(|(member, score)| [member, score])
                .collect(),
        ),
    })
}

/// Pops, and removes the key when that was the last member.
pub(super) async fn take(
    context: &WriteContext<'_>,
    name: &Bytes,
    key: &OpenKey,
    limit: usize,
    end: Extreme,
) -> Result<Vec<ScoredMember>, CommandError> {
    let members = context.zset_pop(key, limit, end).await?;
    if !members.is_empty() {
        let event = match end {
            Extreme::Min => "zpopmin",
            Extreme::Max => "zpopmax",
        };
        context.notify(EventClasses::SORTED_SET, event, name);
        context.remove_if_empty(key).await?;
    }
    Ok(members)
}

/// `ZMPOP numkeys key [key …] MIN|MAX [COUNT count]` → the first key that has members, and those
/// popped.
pub(super) async fn zmpop(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    pop_from_first(context, &MultiPop::parse(arguments, 1, extreme)?).await
}

/// Pops from the first key that has members.
pub(super) async fn pop_from_first(
    context: &WriteContext<'_>,
    query: &MultiPop<'_, Extreme>,
) -> Result<Reply, CommandError> {
    for name in query.keys {
        let Some(key) = context.find(name, ValueType::SortedSet).await? else {
            continue;
        };
        let members = take(context, name, &key, query.limit, query.end).await?;
        if !members.is_empty() {
            // Nested in both versions of the protocol.
            let pairs = members
                .into_iter()
                .map(member_and_score)
                .map(|(member, score)| Reply::Array(vec![member, score]))
                .collect();
            return Ok(Reply::Array(vec![
                Reply::Bulk(name.clone()),
                Reply::Array(pairs),
            ]));
        }
    }
    Ok(Reply::NullArray)
}

/// `MIN` or `MAX`.
pub(in crate::commands) fn extreme(argument: &[u8]) -> Result<Extreme, CommandError> {
    if is_word(argument, "min") {
        Ok(Extreme::Min)
    } else if is_word(argument, "max") {
        Ok(Extreme::Max)
    } else {
        Err(CommandError::Syntax)
    }
}
