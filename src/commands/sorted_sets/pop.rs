//! ZPOPMIN, ZPOPMAX, ZMPOP.

use bytes::Bytes;

use super::member_and_score;
use crate::commands::arguments::is_word;
use crate::commands::popping::{Numbered, Poppable, multi_pop, pop_numbered};
use crate::error::CommandError;
use crate::events::EventClasses;
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::store::StoreError;
use crate::types::sorted_set::{Extreme, ScoredMember};
use crate::types::{OpenKey, WriteContext};

/// Sorted sets, for the commands that pop.
pub(super) enum SortedSet {}

impl Poppable for SortedSet {
    type End = Extreme;
    type Element = ScoredMember;
    const VALUE_TYPE: ValueType = ValueType::SortedSet;
    const LAST: Extreme = Extreme::Max;
    const EVENTS: EventClasses = EventClasses::SORTED_SET;

    fn end(word: &[u8]) -> Result<Extreme, CommandError> {
        extreme(word)
    }

    fn pop_event(end: Extreme) -> &'static str {
        match end {
            Extreme::Min => "zpopmin",
            Extreme::Max => "zpopmax",
        }
    }

    async fn pop(
        context: &WriteContext<'_>,
        key: &OpenKey,
        count: usize,
        end: Extreme,
    ) -> Result<Vec<ScoredMember>, StoreError> {
        context.zset_pop(key, count, end).await
    }

    fn reply(element: ScoredMember) -> Reply {
        // ZMPOP nests them in both versions of the protocol.
        let (member, score) = member_and_score(element);
        Reply::Array(vec![member, score])
    }
}

impl Numbered for SortedSet {
    fn with_number(element: ScoredMember) -> (Reply, Reply) {
        member_and_score(element)
    }
}

/// `ZPOPMIN key [count]` → members with scores.
pub(super) async fn zpopmin(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    pop_numbered::<SortedSet>(context, arguments, Extreme::Min).await
}

/// `ZPOPMAX key [count]` → members with scores.
pub(super) async fn zpopmax(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    pop_numbered::<SortedSet>(context, arguments, Extreme::Max).await
}

/// `ZMPOP numkeys key [key …] MIN|MAX [COUNT count]` → the first key that has members, and those
/// popped.
pub(super) async fn zmpop(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    multi_pop::<SortedSet>(context, arguments).await
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
