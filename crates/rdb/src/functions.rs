//! Libraries of functions: the payloads of FUNCTION DUMP and FUNCTION RESTORE.

use bytes::Bytes;

use super::payload::{FOOTER_BYTES, Reader, check, put_string, seal};

/// The opcode of a library in an RDB file (Redis: `RDB_OPCODE_FUNCTION2`).
pub const LIBRARY: u8 = 245;

/// The same in release candidates of Redis 7.0.
const EARLY_LIBRARY: u8 = 246;

/// Why libraries are not read. The texts are Redis's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LibrariesError {
    /// Too short, of an unsupported later version, or changed in transit.
    #[error("DUMP payload version or checksum are wrong")]
    VersionOrChecksum,
    /// Written by a release candidate of Redis 7.0.
    #[error("Pre-GA function format not supported")]
    Early,
    /// Not a library.
    #[error("given type is not a function")]
    Other,
    /// A library's code is cut off.
    #[error("Failed loading library payload")]
    Code,
}

/// A payload with the code of libraries.
pub fn libraries_payload<'c>(codes: impl IntoIterator<Item = &'c Bytes>) -> Bytes {
    let mut bytes = Vec::new();
    for code in codes {
        bytes.push(LIBRARY);
        put_string(&mut bytes, code);
    }
    seal(bytes, 0)
}

/// The code of the libraries in a payload.
///
/// # Errors
/// If it is not such a payload.
pub fn read_libraries(payload: &Bytes) -> Result<Vec<Bytes>, LibrariesError> {
    check(payload).map_err(|_| LibrariesError::VersionOrChecksum)?;
    let mut reader = Reader::new(payload.slice(..payload.len() - FOOTER_BYTES));
    let mut codes = Vec::new();
    while let Ok(opcode) = reader.byte() {
        match opcode {
            LIBRARY => codes.push(reader.string().map_err(|_| LibrariesError::Code)?),
            EARLY_LIBRARY => return Err(LibrariesError::Early),
            _ => return Err(LibrariesError::Other),
        }
    }
    Ok(codes)
}
