//! A block, or a part of one, by where it ends.

use bytes::Bytes;

use quoin_layout::{DecodeError, Id, Layout, decode_counter};
use quoin_store::KeyValue;

/// A block. A part that blocks are made of is one too: a row, or a block of the level below.
pub(super) struct Block {
    /// The place where it ends.
    pub(super) end: Bytes,
    /// Its elements.
    pub(super) count: i64,
}

impl Block {
    /// What the row of a count says.
    ///
    /// # Errors
    /// Where the row is none of a count.
    pub(super) fn read(layout: &Layout, data: Id, row: &KeyValue) -> Result<Self, DecodeError> {
        Ok(Self {
            end: layout.read_rank_count_key(data, &row.key)?.1,
            count: decode_counter(Some(&row.value))?,
        })
    }
}
