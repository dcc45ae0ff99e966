//! Redis's own serialization of values: what DUMP answers, what RESTORE takes.
//!
//! A payload is a byte for the type and encoding, the value as in an RDB file, the RDB version in
//! two bytes and a CRC-64 of all that in eight, both little-endian. Every encoding is read in
//! which Redis up to 7.2 writes a list or a sorted set; written are those that Redis 7.0 and 7.2
//! both read.
//!
//! A payload comes from whoever sends it: reading it neither panics nor recurses, reserves
//! nothing that its bytes do not bear out, and hands elements out one by one.

mod decode;
mod encode;
mod listpack;
mod lzf;
mod packed;
mod reader;
#[cfg(test)]
#[path = "../../tests/support/payloads.rs"]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod ziplist;

use crc::{CRC_64_REDIS, Crc};

pub use decode::{ListElements, Serialized, SetMembers, open};
pub use encode::{ListWriter, SetWriter, small_set};

/// The newest RDB version that is read: that of Redis 7.2.
const VERSION_READ_MAX: u16 = 11;
/// The RDB version that is written: that of Redis 7.0, which refuses a later one. Nothing that is
/// written here has changed since.
const VERSION_WRITTEN: u16 = 10;
/// Bytes behind the value: version and checksum.
const FOOTER_BYTES: usize = 10;
/// Bytes of the checksum.
const CHECKSUM_BYTES: usize = 8;

/// The types of RDB files that lists and sorted sets have.
mod value_type {
    pub(super) const LIST: u8 = 1;
    pub(super) const SET_WITH_TEXT_SCORES: u8 = 3;
    pub(super) const SET_WITH_BINARY_SCORES: u8 = 5;
    pub(super) const LIST_ZIPLIST: u8 = 10;
    pub(super) const SET_ZIPLIST: u8 = 12;
    pub(super) const LIST_OF_ZIPLISTS: u8 = 14;
    pub(super) const SET_LISTPACK: u8 = 17;
    pub(super) const LIST_OF_LISTPACKS: u8 = 18;
}

static CHECKSUM: Crc<u64, crc::Table<16>> = Crc::<u64, crc::Table<16>>::new(&CRC_64_REDIS);

fn checksum(bytes: &[u8]) -> u64 {
    CHECKSUM.checksum(bytes)
}

/// Why a payload is not read. The texts are Redis's but for the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// Too short, of a later version than Redis 7.2 writes, or changed on its way.
    #[error("DUMP payload version or checksum are wrong")]
    VersionOrChecksum,
    /// Not a value of the type that it says, or an empty one.
    #[error("Bad data format")]
    Format,
    /// A value of a type that Redis has and Quoin has not.
    #[error("Bad data format: Quoin keeps lists and sorted sets, not a {0}")]
    OtherType(&'static str),
}
