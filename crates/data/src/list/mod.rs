//! Lists: FoundationDB's queue recipe with Redis's operations.
//!
//! A row is `(…, index, random, sequence) = element`, or a run: consecutive elements that one unit
//! of work pushed. A push takes the index next to the last one that its snapshot shows, and its
//! unit's random number, so pushes never conflict. A pop conflicts with pops of the same rows and
//! with pushes in front of them, but not with pushes at the other end.

pub mod commands;

mod edit;
mod kind;
mod push_pop;
mod read;
#[cfg(test)]
mod tests;

pub(crate) use edit::Side;
pub use kind::KIND;
pub(crate) use read::PositionQuery;

use quoin_layout::{ElementsValue, KeyRange, Position};
use quoin_store::StoreError;

use crate::keyspace::handle::{Value, ValueMut};
use crate::rows::runs::{ElementsRow, ElementsRows};

/// Marks the handles of lists.
pub enum ListType {}
/// A list, for reading.
pub type List<'c, 't> = Value<'c, 't, ListType>;
/// A list, for writing.
pub type ListMut<'c, 't> = ValueMut<'c, 't, ListType>;

/// One of a list's two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The head: index 0.
    Left,
    /// The tail: index −1.
    Right,
}

impl End {
    /// The tail if `is_right`, else the head.
    fn new(is_right: bool) -> Self {
        if is_right { Self::Right } else { Self::Left }
    }

    /// The next index outwards.
    fn beyond(self, index: i64) -> i64 {
        match self {
            Self::Left => index - 1,
            Self::Right => index + 1,
        }
    }
}

impl<'c, 't> List<'c, 't> {
    /// All rows of the list, and the length of the prefix that their keys share.
    fn rows(&self) -> (KeyRange, usize) {
        let prefix = self.context.layout().elements_prefix(self.key.data());
        (KeyRange::children(&prefix), prefix.len())
    }

    /// Reads all rows, from one end to the other.
    fn elements_rows(&self, from: End) -> ElementsRows<'c, 't> {
        ElementsRows::new(self.context, self.rows().0, from == End::Right)
    }

    /// The position in a row's key.
    fn position(&self, row: &ElementsRow, prefix_length: usize) -> Result<Position, StoreError> {
        let layout = self.context.layout();
        Ok(layout.read_position(prefix_length, &row.key)?)
    }

    /// The position of element `number` of a row.
    fn place(
        &self,
        row: &ElementsRow,
        prefix_length: usize,
        number: usize,
    ) -> Result<Position, StoreError> {
        let position = self.position(row, prefix_length)?;
        Ok(match &row.value {
            ElementsValue::One(_) => position,
            ElementsValue::Run(run) => run.place_of(&position, number),
        })
    }
}
