//! List commands.

mod access;
mod blocking;
mod moves;
mod push_pop;
mod rows;
#[cfg(test)]
mod tests;

pub use blocking::ROWS as BLOCKING_ROWS;
pub use rows::ROWS;

use bytes::Bytes;

use crate::command::arguments::is_word;
use crate::command::popping::{FIRST, LAST, Movable, Poppable};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::list::End;
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

/// Lists, for the commands that pop.
enum List {}

const LEFT: bool = FIRST;
const RIGHT: bool = LAST;

fn end(is_right: bool) -> End {
    match is_right {
        false => End::Left,
        true => End::Right,
    }
}

impl Poppable for List {
    type Element = Bytes;
    const VALUE_TYPE: ValueType = ValueType::List;
    const EVENTS: EventClasses = EventClasses::LIST;

    fn from_end(word: &[u8]) -> Result<bool, CommandError> {
        if is_word(word, "left") {
            Ok(LEFT)
        } else if is_word(word, "right") {
            Ok(RIGHT)
        } else {
            Err(CommandError::Syntax)
        }
    }

    fn pop_event(from_end: bool) -> &'static str {
        if from_end { "rpop" } else { "lpop" }
    }

    async fn pop(
        context: &WriteContext<'_>,
        key: &OpenKey,
        count: usize,
        from_end: bool,
    ) -> Result<Vec<Bytes>, StoreError> {
        context.list_pop(key, count, end(from_end)).await
    }

    fn reply(element: Bytes) -> Reply {
        Reply::Bulk(element)
    }

    fn popped_reply(mut elements: impl Iterator<Item = Bytes>, limit: Option<usize>) -> Reply {
        if limit.is_none() {
            return elements.next().map_or(Reply::Null, Reply::Bulk);
        }
        let replies: Vec<Reply> = elements.map(Reply::Bulk).collect();
        match replies.is_empty() {
            true => Reply::NullArray,
            false => Reply::Array(replies),
        }
    }
}

impl Movable for List {
    fn push_event(at_end: bool) -> &'static str {
        if at_end { "rpush" } else { "lpush" }
    }

    async fn push(
        context: &WriteContext<'_>,
        key: &OpenKey,
        elements: &[Bytes],
        at_end: bool,
    ) -> Result<(), CommandError> {
        context.list_push(key, elements, end(at_end)).await?;
        Ok(())
    }
}
