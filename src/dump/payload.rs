//! The outside of a payload: type, version, checksum; and the strings and counts inside.

use bytes::Bytes;

use super::own::{MODULE, OwnType};
use super::reader::Reader;
use super::{DumpError, checksum};
use crate::number::parse_i64;

/// The newest RDB version that is read: that of Redis 7.2.
pub(super) const VERSION_READ_MAX: u16 = 11;
/// The RDB version that is written: that of Redis 7.0, which refuses a later one. Nothing that is
/// written here has changed since.
pub const VERSION_WRITTEN: u16 = 10;
/// Bytes after the value: version and checksum.
pub(super) const FOOTER_BYTES: usize = 10;
/// Bytes of the checksum.
const CHECKSUM_BYTES: usize = 8;
/// Length of a string up to which it may be written as an integer.
const INTEGER_TEXT_BYTES_MAX: usize = 11;

/// A payload that is sound on the outside. What is inside is checked as it is read.
#[derive(Debug, Clone)]
pub struct Payload {
    version: u16,
    rdb_type: u8,
    pub(super) value: Reader,
}

impl Payload {
    /// The RDB version that the payload names.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// The value, as it lies in an RDB file too. To be asked before anything is read.
    pub fn bytes(&self) -> Bytes {
        self.value.rest()
    }

    /// The type and encoding of the value, as RDB files number them.
    pub fn rdb_type(&self) -> u8 {
        self.rdb_type
    }

    /// The type of a value of Quoin's own; `None` of Redis's, of modules' and of later versions.
    pub fn own_type(&self) -> Option<OwnType> {
        OwnType::of(self.module_id()?)
    }

    /// What the value of a module begins with.
    fn module_id(&self) -> Option<u64> {
        let mut value = self.value.clone();
        { value.length().ok() }.filter(|_| self.rdb_type == MODULE)
    }

    /// Why a value of this type is not read, if no reader takes it.
    pub fn refusal(&self) -> DumpError {
        if self
            .module_id()
            .is_some_and(|id| OwnType::of_other_version(id).is_some())
        {
            return DumpError::OtherVersion;
        }
        DumpError::OtherType(match self.rdb_type {
            6 | 7 => "module value",
            _ => return DumpError::Format,
        })
    }
}

/// Opens a payload. Bytes after the value are not looked at, as in Redis.
///
/// # Errors
/// Where version or checksum are wrong.
pub fn open(payload: &Bytes) -> Result<Payload, DumpError> {
    let version = check(payload)?;
    let mut value = Reader::new(payload.slice(..payload.len() - FOOTER_BYTES));
    Ok(Payload {
        version,
        rdb_type: value.byte()?,
        value,
    })
}

/// Checks what stands after the value, and answers the version.
pub(super) fn check(payload: &Bytes) -> Result<u16, DumpError> {
    let Some(value_bytes) = payload.len().checked_sub(FOOTER_BYTES) else {
        return Err(DumpError::VersionOrChecksum);
    };
    let mut footer = Reader::new(payload.slice(value_bytes..));
    let version = u16::from_le_bytes(footer.array()?);
    let expected = u64::from_le_bytes(footer.array()?);
    let checked = payload.slice(..payload.len() - CHECKSUM_BYTES);
    if version > VERSION_READ_MAX || checksum(&checked) != expected {
        return Err(DumpError::VersionOrChecksum);
    }
    Ok(version)
}

/// Adds version and checksum to what stands in `bytes` from `start` on, and leaves out the rest.
pub(super) fn seal(mut bytes: Vec<u8>, start: usize) -> Bytes {
    bytes.extend(VERSION_WRITTEN.to_le_bytes());
    let sum = checksum(bytes.get(start..).unwrap_or_default());
    bytes.extend(sum.to_le_bytes());
    Bytes::from(bytes).slice(start..)
}

/// Writes a length as RDB files do.
pub fn put_length(bytes: &mut Vec<u8>, length: u64) {
    let [.., b, a] = length.to_be_bytes();
    if length < 1 << 6 {
        bytes.push(a);
    } else if length < 1 << 14 {
        bytes.extend([0x40 | b, a]);
    } else if let Ok(length) = u32::try_from(length) {
        bytes.push(0x80);
        bytes.extend(length.to_be_bytes());
    } else {
        bytes.push(0x81);
        bytes.extend(length.to_be_bytes());
    }
}

/// Writes a string as RDB files do: one that is a short integer as that.
pub fn put_string(bytes: &mut Vec<u8>, string: &[u8]) {
    let integer = if string.len() <= INTEGER_TEXT_BYTES_MAX {
        parse_i64(string).and_then(|integer| i32::try_from(integer).ok())
    } else {
        None
    };
    let Some(integer) = integer else {
        put_length(bytes, string.len() as u64);
        bytes.extend_from_slice(string);
        return;
    };
    let [a, b, c, d] = integer.to_le_bytes();
    match integer {
        -128..128 => bytes.extend([0xc0, a]),
        -32_768..32_768 => bytes.extend([0xc1, a, b]),
        _ => bytes.extend([0xc2, a, b, c, d]),
    }
}
