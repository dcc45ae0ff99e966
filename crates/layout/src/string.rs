//! Pieces of long strings.
//!
//! A string that does not fit into the metadata of its key is in pieces of [`PIECE_BYTES`], each
//! under its number. The last piece may be shorter. A byte without a piece is zero, so SETBIT far
//! beyond the end of a string writes one piece.

use foundationdb_tuple::pack_into;

use super::{DecodeError, Id, KeyRange, Layout, Section, corrupt, take};

/// Bytes of a piece.
pub const PIECE_BYTES: usize = 16_384;

impl Layout {
    /// Key of a piece of a string.
    pub fn piece_key(&self, data: Id, number: u64) -> Vec<u8> {
        let mut key = self.section_prefix(data, Section::Pieces);
        pack_into(&(number,), &mut key);
        key
    }

    /// The pieces with the numbers `begin..end`.
    pub fn pieces(&self, data: Id, begin: u64, end: u64) -> KeyRange {
        KeyRange {
            begin: self.piece_key(data, begin),
            end: self.piece_key(data, end),
        }
    }

    /// Reads the number of a piece.
    ///
    /// # Errors
    /// If the key is not the key of a piece of `data`.
    pub fn read_piece_key(&self, data: Id, key: &[u8]) -> Result<u64, DecodeError> {
        let prefix = self.section_prefix(data, Section::Pieces);
        match key.strip_prefix(prefix.as_slice()) {
            Some(mut rest) => take(&mut rest, "number of a piece"),
            None => corrupt("key of a piece"),
        }
    }
}
