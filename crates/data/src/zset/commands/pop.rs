//! How sorted sets are popped from: ZPOPMIN, ZPOPMAX, ZMPOP.

use super::member_and_score;
use crate::command::arguments::is_word;
use crate::command::popping::{FIRST, LAST, Numbered, Poppable, numbered_reply};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use crate::zset::{Extreme, ScoredMember};
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

/// Sorted sets, for the commands that pop.
pub(super) enum SortedSet {}

impl Poppable for SortedSet {
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
        context.zset_pop(key, count, extreme(from_end)).await
    }

    fn reply(element: ScoredMember) -> Reply {
        // ZMPOP nests them in both versions of the protocol.
        let (member, score) = member_and_score(element);
        Reply::Array(vec![member, score])
    }

    fn popped_reply(elements: impl Iterator<Item = ScoredMember>, limit: Option<usize>) -> Reply {
        numbered_reply::<Self>(elements, limit)
    }
}

impl Numbered for SortedSet {
    fn with_number(element: ScoredMember) -> (Reply, Reply) {
        member_and_score(element)
    }
}

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
