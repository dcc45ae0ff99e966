//! Where a list's elements are.

use crate::rows::runs::ElementsRow;
use crate::unit::context::ReadContext;
use quoin_layout::{ElementsValue, Id, KeyRange, Position};
use quoin_store::StoreError;

/// All rows of a list, and how long the part of their keys is that they share.
pub(super) fn rows_of(context: &ReadContext<'_>, data: Id) -> (KeyRange, usize) {
    let prefix = context.layout().elements_prefix(data);
    (KeyRange::children(&prefix), prefix.len())
}

impl ElementsRow {
    /// The position that the key of a list's row says.
    pub(super) fn position(
        &self,
        context: &ReadContext<'_>,
        prefix_length: usize,
    ) -> Result<Position, StoreError> {
        Ok(context.layout().read_position(prefix_length, &self.key)?)
    }

    /// The place of an element of a list's row.
    pub(super) fn place(
        &self,
        context: &ReadContext<'_>,
        prefix_length: usize,
        number: usize,
    ) -> Result<Position, StoreError> {
        let position = self.position(context, prefix_length)?;
        Ok(match &self.value {
            ElementsValue::One(_) => position,
            ElementsValue::Run(run) => run.place_of(&position, number),
        })
    }
}
