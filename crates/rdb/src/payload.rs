//! The outside of a payload: type, version, checksum; and the strings and counts inside.

use bytes::Bytes;

use super::own::{MODULE, OwnType};
use super::reader::Reader;
use super::{DumpError, checksum};
use quoin_base::number::parse_i64;

/// The newest RDB version of Redis that is read: that of Redis 8.6. Redis 7.2 writes 11, 7.4 to 8.4
/// write 12.
pub(super) const VERSION_READ_MAX: u16 = 13;
/// The RDB version of Valkey 9, which has left Redis's numbers.
pub(super) const VERSION_OF_VALKEY: u16 = 80;
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

    /// Whether Valkey 9 or later wrote it, which gives other meanings to the numbers of later types.
    pub(super) fn is_of_valkey(&self) -> bool {
        self.version == VERSION_OF_VALKEY
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
            0xf3 => "value about which a module keeps data",
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
    if !is_read(version) || checksum(&checked) != expected {
        return Err(DumpError::VersionOrChecksum);
    }
    Ok(version)
}

/// Whether values of this RDB version are read.
pub(super) fn is_read(version: u16) -> bool {
    version <= VERSION_READ_MAX || version == VERSION_OF_VALKEY
}

/// Adds version and checksum to what stands in `bytes` from `start` on, and leaves out the rest.
pub(super) fn seal(bytes: Vec<u8>, start: usize) -> Bytes {
    seal_as(VERSION_WRITTEN, bytes, start)
}

/// The same with this version.
pub(super) fn seal_as(version: u16, mut bytes: Vec<u8>, start: usize) -> Bytes {
    bytes.extend(version.to_le_bytes());
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
