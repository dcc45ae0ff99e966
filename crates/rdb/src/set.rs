//! Sets in Redis's serialization.

use bytes::Bytes;

use super::DumpError;
use super::packed::{Packed, write_intset};
use super::payload::{Payload, put_length, put_string, seal};
use super::string::Strings;
use quoin_base::number::parse_i64;

/// Most members of a set of integers that DUMP writes in the compact encoding (Redis:
/// `set-max-intset-entries`).
pub const SMALL_SET_NUMBERS_MAX: usize = 512;

/// The encodings that are written, with their numbers in RDB files. The listpacks of Redis 7.2 are
/// not among them, because Redis 7.0 cannot read them.
const STRINGS: u8 = 2;
const INTSET: u8 = 11;

/// Another encoding that can be read.
const LISTPACK: u8 = 20;

/// The members of a set. Ends after the first error. The caller must check for repeated members.
#[derive(Debug, Clone)]
pub struct SetMembers(Strings);

impl SetMembers {
    /// Whether values of this RDB type are sets.
    pub fn reads(rdb_type: u8) -> bool {
        matches!(rdb_type, STRINGS | INTSET | LISTPACK)
    }

    /// Begins to read a payload.
    ///
    /// # Errors
    /// If it is not a set, or ends too early.
    pub fn new(payload: Payload) -> Result<Self, DumpError> {
        let rdb_type = payload.rdb_type();
        let mut value = payload.value;
        Ok(Self(match rdb_type {
            STRINGS => {
                let members = value.length()?;
                Strings::plain(value, members)
            }
            INTSET => Strings::packed(Packed::intset(&value.string()?)?),
            LISTPACK => Strings::packed(Packed::listpack(&value.string()?)?),
            _ => return Err(DumpError::Format),
        }))
    }
}

impl Iterator for SetMembers {
    type Item = Result<Bytes, DumpError>;

    fn next(&mut self) -> Option<Self::Item> {
        let member = self.0.next();
        if member.is_err() {
            self.0.end();
        }
        member.transpose()
    }
}

/// The payload of a set of integers. `None` if there are too many members, or any that is not an
/// integer. They must be distinct.
pub fn small_set<'m>(members: impl ExactSizeIterator<Item = &'m Bytes>) -> Option<Bytes> {
    if members.len() > SMALL_SET_NUMBERS_MAX {
        return None;
    }
    let numbers: Option<Vec<i64>> = members.map(|member| parse_i64(member)).collect();
    let mut numbers = numbers?;
    numbers.sort_unstable();
    let mut bytes = vec![INTSET];
    put_string(&mut bytes, &write_intset(&numbers));
    Some(seal(bytes, 0))
}

/// Writes a set of any members.
#[derive(Debug)]
pub struct SetWriter {
    bytes: Vec<u8>,
}

impl SetWriter {
    /// For `count` members.
    pub fn new(count: u64) -> Self {
        let mut bytes = vec![STRINGS];
        put_length(&mut bytes, count);
        Self { bytes }
    }

    /// Adds a member.
    pub fn push(&mut self, member: &[u8]) {
        put_string(&mut self.bytes, member);
    }

    /// How many bytes the payload has so far.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The payload.
    pub fn finish(self) -> Bytes {
        seal(self.bytes, 0)
    }
}
