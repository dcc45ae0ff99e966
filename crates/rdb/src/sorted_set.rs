//! Sorted sets in Redis's serialization.

use bytes::Bytes;

use super::DumpError;
use super::packed::{ListpackWriter, Packed};
use super::payload::{Payload, Reader, put_length, put_string, seal};
use quoin_base::number::{format_double, parse_double};

/// Most members of a sorted set that DUMP writes in the compact encoding (Redis:
/// `zset-max-listpack-entries`).
pub const SMALL_SORTED_SET_MEMBERS_MAX: usize = 128;

/// Longest member in the compact encoding, in bytes (Redis: `zset-max-listpack-value`).
const SMALL_SORTED_SET_MEMBER_BYTES_MAX: usize = 64;

/// The encodings that are written, as RDB files number them.
const WITH_BINARY_SCORES: u8 = 5;
const LISTPACK: u8 = 17;

/// How a sorted set is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SortedSetForm {
    TextScores,
    BinaryScores,
    Ziplist,
    Listpack,
}

impl SortedSetForm {
    fn of(rdb_type: u8) -> Option<Self> {
        match rdb_type {
            3 => Some(SortedSetForm::TextScores),
            WITH_BINARY_SCORES => Some(SortedSetForm::BinaryScores),
            12 => Some(SortedSetForm::Ziplist),
            LISTPACK => Some(SortedSetForm::Listpack),
            _ => None,
        }
    }
}

/// The members of a sorted set with their scores, which are never NaN. Ends after the first error.
/// The caller must check for repeated members.
#[derive(Debug, Clone)]
pub struct SortedSetMembers {
    value: Reader,
    has_text_scores: bool,
    /// Remaining members outside of `packed`.
    left: u64,
    packed: Option<Packed>,
}

impl SortedSetMembers {
    /// Whether values of this RDB type are sorted sets.
    pub fn reads(rdb_type: u8) -> bool {
        SortedSetForm::of(rdb_type).is_some()
    }

    /// Begins to read a payload.
    ///
    /// # Errors
    /// If it is not a sorted set, or ends too early.
    pub fn new(payload: Payload) -> Result<Self, DumpError> {
        let form = SortedSetForm::of(payload.rdb_type()).ok_or(DumpError::Format)?;
        let mut value = payload.value;
        let (left, packed) = match form {
            SortedSetForm::TextScores | SortedSetForm::BinaryScores => (value.length()?, None),
            SortedSetForm::Ziplist => (0, Some(Packed::ziplist(&value.string()?)?)),
            SortedSetForm::Listpack => (0, Some(Packed::listpack(&value.string()?)?)),
        };
        Ok(Self {
            value,
            has_text_scores: form == SortedSetForm::TextScores,
            left,
            packed,
        })
    }

    fn step(&mut self) -> Result<Option<(Bytes, f64)>, DumpError> {
        if let Some(packed) = &mut self.packed {
            let Some(member) = packed.next()? else {
                return Ok(None);
            };
            let score = packed.next()?.ok_or(DumpError::Format)?;
            let score = parse_double(&score).ok_or(DumpError::Format)?;
            return Ok(Some((member, score)));
        }
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let member = self.value.string()?;
        let score = if self.has_text_scores {
            text_score(&mut self.value)?
        } else {
            f64::from_le_bytes(self.value.array()?)
        };
        if score.is_nan() {
            return Err(DumpError::Format);
        }
        Ok(Some((member, score)))
    }
}

/// A score as Redis before 3.2 writes it: text after a byte for its length, or a byte alone.
fn text_score(value: &mut Reader) -> Result<f64, DumpError> {
    match value.byte()? {
        255 => Ok(f64::NEG_INFINITY),
        254 => Ok(f64::INFINITY),
        253 => Err(DumpError::Format),
        length => parse_double(&value.take(length.into())?).ok_or(DumpError::Format),
    }
}

impl Iterator for SortedSetMembers {
    type Item = Result<(Bytes, f64), DumpError>;

    fn next(&mut self) -> Option<Self::Item> {
        let member = self.step();
        if member.is_err() {
            self.left = 0;
            self.packed = None;
        }
        member.transpose()
    }
}

/// The payload of a sorted set in the compact encoding. `None` if there are too many members or
/// some are too long. They must be distinct and in Redis's order.
pub fn small_sorted_set(members: &[(Bytes, f64)]) -> Option<Bytes> {
    let is_small = members.len() <= SMALL_SORTED_SET_MEMBERS_MAX
        && members
            .iter()
            .all(|(member, _)| member.len() <= SMALL_SORTED_SET_MEMBER_BYTES_MAX);
    if !is_small {
        return None;
    }
    let mut listpack = ListpackWriter::new();
    for (member, score) in members {
        listpack.push(member);
        // An integral score is written as an integer, as in Redis.
        listpack.push(format_double(*score).as_bytes());
    }
    let mut bytes = vec![LISTPACK];
    put_string(&mut bytes, &listpack.finish());
    Some(seal(bytes, 0))
}

/// Writes a sorted set of any size.
#[derive(Debug)]
pub struct SortedSetWriter {
    bytes: Vec<u8>,
}

impl SortedSetWriter {
    /// For `count` members.
    pub fn new(count: u64) -> Self {
        let mut bytes = vec![WITH_BINARY_SCORES];
        put_length(&mut bytes, count);
        Self { bytes }
    }

    /// Adds a member. Redis reads a set fastest from the last of its order to the first.
    pub fn push(&mut self, member: &[u8], score: f64) {
        put_string(&mut self.bytes, member);
        self.bytes.extend(score.to_le_bytes());
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
