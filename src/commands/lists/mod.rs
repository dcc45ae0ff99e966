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

use crate::commands::arguments::is_word;
use crate::commands::popping::{Movable, Poppable};
use crate::error::CommandError;
use crate::events::EventClasses;
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::store::StoreError;
use crate::types::list::End;
use crate::types::{OpenKey, WriteContext};

/// Lists, for the commands that pop.
enum List {}

impl Poppable for List {
    type End = End;
    type Element = Bytes;
    const VALUE_TYPE: ValueType = ValueType::List;
    const LAST: End = End::Right;
    const EVENTS: EventClasses = EventClasses::LIST;

    fn end(word: &[u8]) -> Result<End, CommandError> {
        if is_word(word, "left") {
            Ok(End::Left)
        } else if is_word(word, "right") {
            Ok(End::Right)
        } else {
            Err(CommandError::Syntax)
        }
    }

    fn pop_event(end: End) -> &'static str {
        match end {
            End::Left => "lpop",
            End::Right => "rpop",
        }
    }

    async fn pop(
        context: &WriteContext<'_>,
        key: &OpenKey,
        count: usize,
        end: End,
    ) -> Result<Vec<Bytes>, StoreError> {
        context.list_pop(key, count, end).await
    }

    fn reply(element: Bytes) -> Reply {
        Reply::Bulk(element)
    }
}

impl Movable for List {
    fn push_event(end: End) -> &'static str {
        match end {
            End::Left => "lpush",
            End::Right => "rpush",
        }
    }

    async fn push(
        context: &WriteContext<'_>,
        key: &OpenKey,
        elements: &[Bytes],
        end: End,
    ) -> Result<(), CommandError> {
        context.list_push(key, elements, end).await?;
        Ok(())
    }
}
