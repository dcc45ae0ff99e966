//! Hashes in Redis's serialization.

use bytes::Bytes;

use super::DumpError;
use super::listpack::ListpackWriter;
use super::packed::Packed;
use super::payload::{Payload, put_length, put_string, seal};
use super::strings::Strings;

/// Fields up to which DUMP writes a hash compactly (Redis: `hash-max-listpack-entries`).
pub const SMALL_HASH_FIELDS_MAX: usize = 128;
/// Bytes of a field or value up to which it does (Redis: `hash-max-listpack-value`).
const SMALL_HASH_PART_BYTES_MAX: usize = 64;

/// The encodings that are written, as RDB files number them.
const FIELDS_AND_VALUES: u8 = 4;
const LISTPACK: u8 = 16;

/// The fields of a hash with their values; ends after the first error. Whether a field comes twice
/// is for the caller to see.
#[derive(Debug, Clone)]
pub struct HashFields(Strings);

impl HashFields {
    /// Whether values of this RDB type are hashes.
    pub fn reads(rdb_type: u8) -> bool {
        matches!(rdb_type, FIELDS_AND_VALUES | 9 | 13 | LISTPACK)
    }

    /// Begins to read a payload.
    ///
    /// # Errors
    /// Where it is no hash, or ends too soon.
    pub fn new(payload: Payload) -> Result<Self, DumpError> {
        let rdb_type = payload.rdb_type();
        let mut value = payload.value;
        Ok(Self(match rdb_type {
            FIELDS_AND_VALUES => {
                let fields = value.length()?;
                Strings::plain(value, fields.saturating_mul(2))
            }
            9 => Strings::packed(Packed::zipmap(&value.string()?)?),
            13 => Strings::packed(Packed::ziplist(&value.string()?)?),
            LISTPACK => Strings::packed(Packed::listpack(&value.string()?)?),
            _ => return Err(DumpError::Format),
        }))
    }

    fn step(&mut self) -> Result<Option<(Bytes, Bytes)>, DumpError> {
        let Some(field) = self.0.next()? else {
            return Ok(None);
        };
        let value = self.0.next()?.ok_or(DumpError::Format)?;
        Ok(Some((field, value)))
    }
}

impl Iterator for HashFields {
    type Item = Result<(Bytes, Bytes), DumpError>;

    fn next(&mut self) -> Option<Self::Item> {
        let field = self.step();
        if field.is_err() {
            self.0.end();
        }
        field.transpose()
    }
}

/// The payload of a hash that Redis would keep in its compact encoding; `None` where there are too
/// many fields or too long ones. They must be distinct.
pub fn small_hash<'f>(
    fields: impl ExactSizeIterator<Item = (&'f Bytes, &'f Bytes)>,
) -> Option<Bytes> {
    if fields.len() > SMALL_HASH_FIELDS_MAX {
        return None;
    }
    let mut listpack = ListpackWriter::new();
    for (field, value) in fields {
        if field.len().max(value.len()) > SMALL_HASH_PART_BYTES_MAX {
            return None;
        }
        listpack.push(field);
        listpack.push(value);
    }
    let mut bytes = vec![LISTPACK];
    put_string(&mut bytes, &listpack.finish());
    Some(seal(bytes, 0))
}

/// Writes a hash of whatever size.
#[derive(Debug)]
pub struct HashWriter {
    bytes: Vec<u8>,
}

impl HashWriter {
    /// For so many fields.
    pub fn new(count: u64) -> Self {
        let mut bytes = vec![FIELDS_AND_VALUES];
        put_length(&mut bytes, count);
        Self { bytes }
    }

    /// Adds a field.
    pub fn push(&mut self, field: &[u8], value: &[u8]) {
        put_string(&mut self.bytes, field);
        put_string(&mut self.bytes, value);
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
