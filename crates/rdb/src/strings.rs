//! Strings in a row, of which hashes and sets consist: one by one or packed.

use bytes::Bytes;

use super::DumpError;
use super::packed::Packed;
use super::reader::Reader;

/// Hands out strings.
#[derive(Debug, Clone)]
pub(super) struct Strings {
    value: Reader,
    /// Strings outside of `packed` that are still to come.
    left: u64,
    packed: Option<Packed>,
}

impl Strings {
    /// So many strings as they stand in RDB files.
    pub(super) fn plain(value: Reader, count: u64) -> Self {
        Self {
            value,
            left: count,
            packed: None,
        }
    }

    /// Those of a compact encoding.
    pub(super) fn packed(packed: Packed) -> Self {
        Self {
            value: Reader::new(Bytes::new()),
            left: 0,
            packed: Some(packed),
        }
    }

    /// The next string; `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, DumpError> {
        if let Some(packed) = &mut self.packed {
            return packed.next();
        }
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.value.string().map(Some)
    }

    /// Hands out nothing more.
    pub(super) fn end(&mut self) {
        self.left = 0;
        self.packed = None;
    }
}
