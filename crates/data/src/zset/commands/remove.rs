//! Removing members: ZREM, ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX, and how the commands
//! that pop (ZPOPMIN, BZMPOP, …) pop from sorted sets.

use bytes::Bytes;

use super::bounds::{lex_selection, rank_selection, score_selection};
use super::member_and_score;
use crate::command::arguments::{argument, is_word, rest};
use crate::command::popping::{FIRST, LAST, Numbered, Poppable, numbered_reply};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use crate::zset::{Extreme, ScoredMember, Selection, SortedSetMut, SortedSetType};
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

/// `ZREM key member [member …]` → number of removed members.
pub(super) async fn zrem(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let remove = async |set: &SortedSetMut<'_, '_>| set.remove(rest(arguments, 2)).await;
    remove_from(context, arguments, "zrem", remove).await
}

/// `ZREMRANGEBYRANK key start stop` → number of removed members.
pub(super) async fn zremrangebyrank(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let selection = rank_selection(argument(arguments, 2)?, argument(arguments, 3)?)?;
    remove_range(context, arguments, &selection, "zremrangebyrank").await
}

/// `ZREMRANGEBYSCORE key min max` → number of removed members.
pub(super) async fn zremrangebyscore(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let selection = score_selection(argument(arguments, 2)?, argument(arguments, 3)?)?;
    remove_range(context, arguments, &selection, "zremrangebyscore").await
}

/// `ZREMRANGEBYLEX key min max` → number of removed members.
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
    let remove = async |set: &SortedSetMut<'_, '_>| set.remove_range(selection).await;
    remove_from(context, arguments, event, remove).await
}

async fn remove_from(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    event: &'static str,
    remove: impl AsyncFnOnce(&SortedSetMut<'_, '_>) -> Result<i64, StoreError>,
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::SortedSet).await? else {
        return Ok(Reply::Integer(0));
    };
    let removed = remove(&SortedSetMut::open(context, &key)).await?;
    if removed > 0 {
        context.notify(EventClasses::SORTED_SET, event, name);
        context.remove_if_empty(&key).await?;
    }
    Ok(Reply::Integer(removed))
}

impl Poppable for SortedSetType {
    type Element = ScoredMember;
    const VALUE_TYPE: ValueType = ValueType::SortedSet;
    const EVENTS: EventClasses = EventClasses::SORTED_SET;

    fn from_end(word: &[u8]) -> Result<bool, CommandError> {
        is_max(word)
    }

    fn pop_event(from_end: bool) -> &'static str {
        if from_end { "zpopmax" } else { "zpopmin" }
    }

    async fn pop(
        context: &WriteContext<'_>,
        key: &OpenKey,
        count: usize,
        from_end: bool,
    ) -> Result<Vec<ScoredMember>, StoreError> {
        SortedSetMut::open(context, key)
            .pop(count, extreme(from_end))
            .await
    }

    fn reply(element: ScoredMember) -> Reply {
        // ZMPOP nests member and score in both versions of the protocol.
        let (member, score) = member_and_score(element);
        Reply::Array(vec![member, score])
    }

    fn popped_reply(elements: impl Iterator<Item = ScoredMember>, limit: Option<usize>) -> Reply {
        numbered_reply::<Self>(elements, limit)
    }
}

impl Numbered for SortedSetType {
    fn with_number(element: ScoredMember) -> (Reply, Reply) {
        member_and_score(element)
    }
}

/// The end to pop from.
pub(crate) fn extreme(is_max: bool) -> Extreme {
    match is_max {
        false => Extreme::Min,
        true => Extreme::Max,
    }
}

/// Reads `MIN` or `MAX`.
pub(crate) fn is_max(word: &[u8]) -> Result<bool, CommandError> {
    if is_word(word, "min") {
        Ok(FIRST)
    } else if is_word(word, "max") {
        Ok(LAST)
    } else {
        Err(CommandError::Syntax)
    }
}
