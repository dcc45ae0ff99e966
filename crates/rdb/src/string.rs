//! Strings in Redis's serialization.

use bytes::Bytes;

use super::DumpError;
use super::payload::{Payload, put_string, seal};
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
/// Where it ends too soon, is not packed as strings are, or is longer than a string can be.
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
