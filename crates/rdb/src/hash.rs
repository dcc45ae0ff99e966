//! Hashes in Redis's serialization.

use bytes::Bytes;

use super::DumpError;
use super::packed::{ListpackWriter, Packed};
use super::payload::{Payload, Reader, put_length, put_string, seal};
use super::string::Strings;

/// Most fields of a hash that DUMP writes in the compact encoding (Redis: `hash-max-listpack-entries`).
pub const SMALL_HASH_FIELDS_MAX: usize = 128;

/// Longest field or value in the compact encoding, in bytes (Redis: `hash-max-listpack-value`).
const SMALL_HASH_PART_BYTES_MAX: usize = 64;

/// The encodings that are written, as RDB files number them.
const FIELDS_AND_VALUES: u8 = 4;
const LISTPACK: u8 = 16;

/// The same with an expiry for each field: as release candidates of Redis 7.4 wrote them, and as
/// Redis 7.4 and later do. Valkey 9 gives the first of these numbers another form.
const EXPIRING_EARLY: u8 = 22;
const EXPIRING_LISTPACK_EARLY: u8 = 23;
const EXPIRING: u8 = 24;
const EXPIRING_LISTPACK: u8 = 25;

/// Values that Quoin does not keep.
const FIELDS_EXPIRE: DumpError = DumpError::OtherType("hash with fields that expire");

/// How a field without an expiry is written: as a length, in a listpack, in Valkey's time.
const NO_EXPIRY: u64 = 0;
const NO_EXPIRY_PACKED: &[u8] = b"0";
const NO_EXPIRY_OF_VALKEY: i64 = -1;

/// The fields of a hash with their values; ends after the first error. Whether a field comes twice
/// is for the caller to see.
#[derive(Debug, Clone)]
pub struct HashFields(Form);

/// The form of fields and values in a payload.
#[derive(Debug, Clone)]
enum Form {
    /// In turns.
    Pairs(Strings),
    /// Each field's expiry, field, value.
    Expiring(Reader, u64),
    /// Triples of field, value and expiry.
    ExpiringPacked(Packed),
    /// The same, one by one, with the expiry as a time.
    ExpiringOfValkey(Reader, u64),
    /// All were read.
    End,
}

impl HashFields {
    /// Whether values of this RDB type are hashes.
    pub fn reads(rdb_type: u8) -> bool {
        matches!(
            rdb_type,
            FIELDS_AND_VALUES | 9 | 13 | LISTPACK | EXPIRING_EARLY..=EXPIRING_LISTPACK
        )
    }

    /// Begins to read a payload.
    ///
    /// # Errors
    /// If it is not a hash, or ends too early.
    pub fn new(payload: Payload) -> Result<Self, DumpError> {
        let rdb_type = payload.rdb_type();
        let is_of_valkey = payload.is_of_valkey();
        let mut value = payload.value;
        if matches!(rdb_type, EXPIRING | EXPIRING_LISTPACK) {
            // The expiry that comes first: each field says its own.
            value.array::<8>()?;
        }
        Ok(Self(match rdb_type {
            FIELDS_AND_VALUES => {
                let fields = value.length()?;
                Form::Pairs(Strings::plain(value, fields.saturating_mul(2)))
            }
            9 => Form::Pairs(Strings::packed(Packed::zipmap(&value.string()?)?)),
            13 => Form::Pairs(Strings::packed(Packed::ziplist(&value.string()?)?)),
            LISTPACK => Form::Pairs(Strings::packed(Packed::listpack(&value.string()?)?)),
            EXPIRING_EARLY if is_of_valkey => {
                let fields = value.length()?;
                Form::ExpiringOfValkey(value, fields)
            }
            EXPIRING_EARLY | EXPIRING => {
                let fields = value.length()?;
                Form::Expiring(value, fields)
            }
            EXPIRING_LISTPACK_EARLY | EXPIRING_LISTPACK => {
                Form::ExpiringPacked(Packed::listpack(&value.string()?)?)
            }
            _ => return Err(DumpError::Format),
        }))
    }

    fn step(&mut self) -> Result<Option<(Bytes, Bytes)>, DumpError> {
        let (field, value, expires) = match &mut self.0 {
            Form::Pairs(strings) => {
                let Some(field) = strings.next()? else {
                    return Ok(None);
                };
                (field, strings.next()?.ok_or(DumpError::Format)?, false)
            }
            Form::ExpiringPacked(packed) => {
                let Some(field) = packed.next()? else {
                    return Ok(None);
                };
                let value = packed.next()?.ok_or(DumpError::Format)?;
                let expiry = packed.next()?.ok_or(DumpError::Format)?;
                (field, value, expiry != NO_EXPIRY_PACKED)
            }
            Form::Expiring(_, 0) | Form::ExpiringOfValkey(_, 0) | Form::End => return Ok(None),
            Form::Expiring(reader, left) => {
                *left -= 1;
                let expires = reader.length()? != NO_EXPIRY;
                (reader.string()?, reader.string()?, expires)
            }
            Form::ExpiringOfValkey(reader, left) => {
                *left -= 1;
                let (field, value) = (reader.string()?, reader.string()?);
                let expiry = i64::from_le_bytes(reader.array()?);
                (field, value, expiry != NO_EXPIRY_OF_VALKEY)
            }
        };
        match expires {
            true => Err(FIELDS_EXPIRE),
            false => Ok(Some((field, value))),
        }
    }
}

impl Iterator for HashFields {
    type Item = Result<(Bytes, Bytes), DumpError>;

    fn next(&mut self) -> Option<Self::Item> {
        let field = self.step();
        if field.is_err() {
            self.0 = Form::End;
        }
        field.transpose()
    }
}

/// The payload of a hash in the compact encoding. `None` if there are too many fields or too long ones. They
/// must be distinct.
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

/// Writes a hash of any size.
#[derive(Debug)]
pub struct HashWriter {
    bytes: Vec<u8>,
}

impl HashWriter {
    /// For `count` fields.
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
