//! Redis's serialization of values: payloads of DUMP and RESTORE, and RDB files. Types that Redis
//! does not have are written in the form of Redis's modules ([`own`]).
//!
//! A payload is a byte for the type and encoding, the value as in an RDB file, the RDB version in
//! two bytes, and a CRC-64 of all that in eight. Version and CRC are little-endian. Each type has a
//! file. It reads every encoding that Redis up to 8.6 and Valkey up to 9 write and that Quoin can
//! store, except values of modules. It writes encodings that both Redis 7.0 and 7.2 can read.
//! [`RdbReader`] reads whole RDB files.
//!
//! Payloads come from clients: reading one neither panics nor recurses, reserves no more memory
//! than its bytes justify, and returns elements one by one.
//!
//! The crate knows bytes, and neither keys nor the store.

mod file;
mod functions;
mod hash;
mod input;
mod list;
mod own;
mod packed;
mod payload;
mod set;
mod sorted_set;
mod stream;
mod string;
#[cfg(feature = "testing")]
// Only tests call it, and a panic fails the test. clippy.toml exempts `#[cfg(test)]`, not features.
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
pub mod testing;

#[cfg(test)]
mod tests;

pub use file::{
    AofRole, HEADER, OPCODE_END, OPCODE_EXPIRE_AT_MS, OPCODE_SELECT, RdbItem, RdbKey, RdbReader,
    RdbValue,
};
pub use functions::{LIBRARY, LibrariesError, libraries_payload, read_libraries};
pub use hash::{
    HashField, HashFields, HashWriter, SMALL_HASH_FIELDS_MAX, small_expiring_hash, small_hash,
};
pub use input::RdbError;
pub use list::{ListElements, ListWriter};
pub use own::{
    Chunks, DumpedItem, DumpedKept, DumpedKeptKind, DumpedOptions, DumpedPriority, DumpedState,
    DumpedTask, PriorityQueueReader, PriorityQueueWriter, TaskQueueReader, TaskQueueWriter,
    elements_in_chunks,
};
pub use payload::{
    OwnType, Payload, VERSION_WRITTEN, VERSION_WRITTEN_MAX, open, put_length, put_string,
};
pub use set::{SMALL_SET_NUMBERS_MAX, SetMembers, SetWriter, small_set};
pub use sorted_set::{
    SMALL_SORTED_SET_MEMBERS_MAX, SortedSetMembers, SortedSetWriter, small_sorted_set,
};
pub use stream::{
    DumpedConsumer, DumpedEntry, DumpedGroup, DumpedPending, DumpedStream, EntryId, StreamNode,
    StreamReader, StreamWriter,
};
pub use string::{read_string, reads_string, string_payload};

use crc::{CRC_64_REDIS, Crc};

static CHECKSUM: Crc<u64, crc::Table<16>> = Crc::<u64, crc::Table<16>>::new(&CRC_64_REDIS);

/// The checksum of an RDB file, computed over consecutive parts.
pub struct Checksum(crc::Digest<'static, u64, crc::Table<16>>);

impl Checksum {
    /// The checksum of nothing.
    pub fn begin() -> Self {
        Self(CHECKSUM.digest())
    }

    /// Adds a part.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Of all parts.
    pub fn value(self) -> u64 {
        self.0.finalize()
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    CHECKSUM.checksum(bytes)
}

/// Why a payload is not read. The texts are Redis's, except the last two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// Too short, of an unsupported later version, or changed in transit.
    #[error("DUMP payload version or checksum are wrong")]
    VersionOrChecksum,
    /// Not a value of its type, or an empty one.
    #[error("Bad data format")]
    Format,
    /// A value of a kind that Redis has and Quoin does not have.
    #[error("Bad data format: Quoin does not keep a {0}")]
    OtherType(&'static str),
    /// A value of one of Quoin's own types, in a form that this version does not read.
    #[error("Bad data format: written by another version of Quoin")]
    OtherVersion,
}
