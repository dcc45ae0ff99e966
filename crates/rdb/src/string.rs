//! Strings, and the sequences of strings that represent hashes and sets.

use bytes::Bytes;

use super::DumpError;
use super::packed::Packed;
use super::payload::{Payload, Reader, put_string, seal};
use quoin_base::limits::STRING_BYTES_MAX;

/// The only encoding, as RDB files number it.
const STRING: u8 = 0;

/// Whether values of this RDB type are strings.
pub fn reads_string(rdb_type: u8) -> bool {
    rdb_type == STRING
}

/// Reads a string.
///
/// # Errors
/// If it ends too early, is not encoded as a string, or is longer than a string can be.
pub fn read_string(mut payload: Payload) -> Result<Bytes, DumpError> {
    let string = payload.value.string()?;
    if string.len() > STRING_BYTES_MAX {
        return Err(DumpError::Format);
    }
    Ok(string)
}

/// The payload of a string.
pub fn string_payload(string: &[u8]) -> Bytes {
    let mut bytes = vec![STRING];
    put_string(&mut bytes, string);
    seal(bytes, 0)
}

/// Hands out strings.
#[derive(Debug, Clone)]
pub(super) struct Strings {
    value: Reader,
    /// Remaining strings outside of `packed`.
    left: u64,
    packed: Option<Packed>,
}

impl Strings {
    /// `count` strings in the form of RDB files.
    pub(super) fn plain(value: Reader, count: u64) -> Self {
        Self {
            value,
            left: count,
            packed: None,
        }
    }

    /// The strings of a compact encoding.
    pub(super) fn packed(packed: Packed) -> Self {
        Self {
            value: Reader::new(Bytes::new()),
            left: 0,
            packed: Some(packed),
        }
    }

    /// The next string; `None` after the last.
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

    /// Returns nothing more.
    pub(super) fn end(&mut self) {
        self.left = 0;
        self.packed = None;
    }
}
