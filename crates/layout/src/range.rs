//! Ranges of keys.

/// A half-open key range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// First key inside.
    pub begin: Vec<u8>,
    /// First key behind.
    pub end: Vec<u8>,
}

impl KeyRange {
    /// Every key that has `prefix` followed by at least one more tuple element.
    pub fn children(prefix: &[u8]) -> Self {
        Self {
            begin: with_byte(prefix, 0x00),
            end: with_byte(prefix, 0xff),
        }
    }
}

pub(super) fn with_byte(prefix: &[u8], byte: u8) -> Vec<u8> {
    let mut key = Vec::with_capacity(prefix.len() + 1);
    key.extend_from_slice(prefix);
    key.push(byte);
    key
}
