//! Counters, and the length of a key.

use bytes::Bytes;

use super::tuple::corrupt;
use quoin_base::decode_error::DecodeError;

/// The stored form of a counter: 8 bytes, little-endian, as FoundationDB's atomic add wants.
pub fn encode_counter(count: i64) -> [u8; 8] {
    count.to_le_bytes()
}

/// Reads a counter; absent counts as 0.
///
/// # Errors
/// Where the value has not 8 bytes.
pub fn decode_counter(value: Option<&Bytes>) -> Result<i64, DecodeError> {
    match value {
        None => Ok(0),
        Some(bytes) => match <[u8; 8]>::try_from(bytes.as_ref()) {
            Ok(array) => Ok(i64::from_le_bytes(array)),
            Err(_) => corrupt("counter"),
        },
    }
}

/// Bits of a length counter that hold the length; those above count the key's changes.
const LENGTH_BITS: u32 = 40;
const LENGTH_MASK: i64 = (1 << LENGTH_BITS) - 1;

/// The stored form of a key's length (the low 40 bits) and of a number that every change of the
/// key changes (the high 24), by which WATCH recognises one. A new key begins with any number.
pub fn encode_length(length: i64, changes: u64) -> [u8; 8] {
    let changes = (changes as i64) << LENGTH_BITS;
    encode_counter((length & LENGTH_MASK) | changes)
}

/// What to add to a stored length when a key changes and has `delta` elements more. The sum
/// never borrows from the changes, because a length never becomes negative.
pub fn length_delta(delta: i64) -> i64 {
    delta.wrapping_add(1 << LENGTH_BITS)
}

/// Reads a length; absent counts as 0.
///
/// # Errors
/// Where the value has not 8 bytes.
pub fn decode_length(value: Option<&Bytes>) -> Result<i64, DecodeError> {
    Ok(decode_counter(value)? & LENGTH_MASK)
}
