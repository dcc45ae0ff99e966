//! Values of list elements and full bytes of long members.

use bytes::Bytes;
use foundationdb_tuple::pack_into;

use super::{DecodeError, Id, corrupt, take};
use quoin_base::limits::VALUE_CHUNK_BYTES_MAX;

const PLAIN: u8 = 0;
const SPLIT: u8 = 1;

/// A value as its row holds it. The first byte is the format; 2 is a [field with an
/// expiry](super::FieldValue), 3 is a [run](super::run), and numbers from 4 on are free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredValue {
    /// The bytes themselves.
    Plain(Bytes),
    /// The bytes are in chunk rows under this id.
    Split {
        /// Names the chunks within the data id.
        chunks: Id,
        /// Length of the whole value in bytes.
        length: u64,
    },
}

impl StoredValue {
    /// Whether a value of this length is split.
    pub fn needs_split(length: usize) -> bool {
        length > VALUE_CHUNK_BYTES_MAX
    }

    /// Length of the value in bytes.
    pub fn length(&self) -> usize {
        match self {
            Self::Plain(bytes) => bytes.len(),
            Self::Split { length, .. } => usize::try_from(*length).unwrap_or(usize::MAX),
        }
    }

    /// The row's value for bytes that are not split.
    pub fn encode_plain(bytes: &[u8]) -> Vec<u8> {
        let mut value = Vec::with_capacity(bytes.len() + 1);
        value.push(PLAIN);
        value.extend_from_slice(bytes);
        value
    }

    /// The row's value for bytes whose chunks are stored under `chunks`.
    pub fn encode_split(chunks: Id, length: usize) -> Vec<u8> {
        let mut value = vec![SPLIT];
        pack_into(
            &(chunks.instance, chunks.sequence, length as u64),
            &mut value,
        );
        value
    }

    /// Reads a row's value.
    ///
    /// # Errors
    /// If the format is unknown.
    pub fn decode(value: &Bytes) -> Result<Self, DecodeError> {
        match value.split_first() {
            Some((&PLAIN, _)) => Ok(StoredValue::Plain(value.slice(1..))),
            Some((&SPLIT, mut rest)) => Ok(StoredValue::Split {
                chunks: Id {
                    instance: take(&mut rest, "chunks id")?,
                    sequence: take(&mut rest, "chunks id")?,
                },
                length: take(&mut rest, "length of a split value")?,
            }),
            _ => corrupt("value format"),
        }
    }
}
