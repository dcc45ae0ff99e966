//! Rows of elements that come in an order: each holds one element, or a run of those that one unit of
//! work has pushed one after the other. Lists and priority queues consist of them
//! (docs/understand/decisions/029-runs.md).
//!
//! A run is written by the unit that pushes its elements, and afterwards only gets shorter.

use bytes::Bytes;

use quoin_layout::{DecodeError, ElementsValue};

use crate::keyspace::kind::{ElementRow, plain_element};

mod place;
mod push;
mod rows;
mod take;

pub(crate) use push::Pushing;
pub(crate) use rows::{ElementsRow, ElementsRows, RowsExpected};
pub(crate) use take::Taken;

/// Reads a row for the descriptor of a type.
///
/// # Errors
/// Where the bytes are of no such row.
pub(crate) fn element_row(row: &Bytes) -> Result<ElementRow, DecodeError> {
    match ElementsValue::decode(row)? {
        ElementsValue::One(_) => plain_element(row),
        ElementsValue::Run(run) => Ok(ElementRow {
            value: None,
            group: 0,
            count: run.count(),
        }),
    }
}
