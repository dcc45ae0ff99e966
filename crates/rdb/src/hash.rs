//! Hashes in Redis's serialization.

use bytes::Bytes;
use quoin_base::number::parse_i64;

use super::DumpError;
use super::packed::{ListpackWriter, Packed};
use super::payload::{Payload, Reader, VERSION_WRITTEN_MAX, put_length, put_string, seal, seal_as};
use super::string::Strings;

/// Most fields of a hash that DUMP writes in the compact encoding (Redis: `hash-max-listpack-entries`).
pub const SMALL_HASH_FIELDS_MAX: usize = 128;

/// Longest field or value in the compact encoding, in bytes (Redis: `hash-max-listpack-value`).
const SMALL_HASH_PART_BYTES_MAX: usize = 64;

/// The encodings that are written, as RDB files number them.
const FIELDS_AND_VALUES: u8 = 4;
const LISTPACK: u8 = 16;

/// The same with an expiry for each field, as written by release candidates of Redis 7.4, and by
/// Redis 7.4 and later. In Valkey 9 the first of these numbers means another form.
const EXPIRING_EARLY: u8 = 22;
const EXPIRING_LISTPACK_EARLY: u8 = 23;
const EXPIRING: u8 = 24;
const EXPIRING_LISTPACK: u8 = 25;

/// The latest expiry of a field (Redis: `EB_EXPIRE_TIME_MAX`).
const EXPIRE_AT_MS_MAX: u64 = (1 << 48) - 2;

/// How a field without an expiry is written: as a length, in a listpack, and as a Valkey time.
const NO_EXPIRY: u64 = 0;
const NO_EXPIRY_PACKED: &[u8] = b"0";
const NO_EXPIRY_OF_VALKEY: i64 = -1;

/// A field of a hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashField {
    /// Its name.
    pub name: Bytes,
    /// Its value.
    pub value: Bytes,
    /// When it expires, in milliseconds since the Unix epoch.
    pub expire_at_ms: Option<i64>,
}

/// The fields of a hash with their values. Ends after the first error. The caller must check for
/// repeated fields.
#[derive(Debug, Clone)]
pub struct HashFields(Form);

/// The form of fields and values in a payload.
#[derive(Debug, Clone)]
enum Form {
    /// Alternating.
    Pairs(Strings),
    /// Each field's expiry, field, value. Expiries count from the second number, plus 1.
    Expiring(Reader, u64, u64),
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
        let first_ms = match rdb_type {
            EXPIRING | EXPIRING_LISTPACK => u64::from_le_bytes(value.array()?),
            _ => 1,
        };
        if first_ms > EXPIRE_AT_MS_MAX + 1 {
            return Err(DumpError::Format);
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
                Form::Expiring(value, fields, first_ms)
            }
            EXPIRING_LISTPACK_EARLY | EXPIRING_LISTPACK => {
                Form::ExpiringPacked(Packed::listpack(&value.string()?)?)
            }
            _ => return Err(DumpError::Format),
        }))
    }

    fn step(&mut self) -> Result<Option<HashField>, DumpError> {
        let (name, value, expire_at_ms) = match &mut self.0 {
            Form::Pairs(strings) => {
                let Some(field) = strings.next()? else {
                    return Ok(None);
                };
                (field, strings.next()?.ok_or(DumpError::Format)?, None)
            }
            Form::ExpiringPacked(packed) => {
                let Some(field) = packed.next()? else {
                    return Ok(None);
                };
                let value = packed.next()?.ok_or(DumpError::Format)?;
                let expiry = packed.next()?.ok_or(DumpError::Format)?;
                let at_ms = match &expiry[..] {
                    NO_EXPIRY_PACKED => None,
                    text => Some(parse_i64(text).ok_or(DumpError::Format)?),
                };
                (field, value, at_ms)
            }
            Form::Expiring(_, 0, _) | Form::ExpiringOfValkey(_, 0) | Form::End => return Ok(None),
            Form::Expiring(reader, left, first_ms) => {
                *left -= 1;
                let at_ms = match reader.length()? {
                    NO_EXPIRY => None,
                    behind => {
                        let at_ms = behind.checked_add(*first_ms);
                        let at_ms = at_ms.and_then(|at_ms| at_ms.checked_sub(1));
                        let at_ms = at_ms.and_then(|at_ms| i64::try_from(at_ms).ok());
                        Some(at_ms.ok_or(DumpError::Format)?)
                    }
                };
                (reader.string()?, reader.string()?, at_ms)
            }
            Form::ExpiringOfValkey(reader, left) => {
                *left -= 1;
                let (field, value) = (reader.string()?, reader.string()?);
                let expiry = i64::from_le_bytes(reader.array()?);
                (
                    field,
                    value,
                    (expiry != NO_EXPIRY_OF_VALKEY).then_some(expiry),
                )
            }
        };
        let is_sound =
            |at_ms: i64| u64::try_from(at_ms).is_ok_and(|at_ms| at_ms <= EXPIRE_AT_MS_MAX);
        match expire_at_ms.is_none_or(is_sound) {
            true => Ok(Some(HashField {
                name,
                value,
                expire_at_ms,
            })),
            false => Err(DumpError::Format),
        }
    }
}

impl Iterator for HashFields {
    type Item = Result<HashField, DumpError>;

    fn next(&mut self) -> Option<Self::Item> {
        let field = self.step();
        if field.is_err() {
            self.0 = Form::End;
        }
        field.transpose()
    }
}

/// The payload of a hash in the compact encoding. `None` if there are too many fields or some are
/// too long. They must be distinct.
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

/// The payload of a hash with fields that expire, in the compact encoding. `None` if there are too
/// many fields or some are too long. They must be distinct. As in Redis, those that expire first
/// come first.
pub fn small_expiring_hash(mut fields: Vec<HashField>) -> Option<Bytes> {
    if fields.len() > SMALL_HASH_FIELDS_MAX {
        return None;
    }
    fields.sort_by_key(|field| field.expire_at_ms.unwrap_or(i64::MAX));
    let mut listpack = ListpackWriter::new();
    for field in &fields {
        if field.name.len().max(field.value.len()) > SMALL_HASH_PART_BYTES_MAX {
            return None;
        }
        listpack.push(&field.name);
        listpack.push(&field.value);
        listpack.push(field.expire_at_ms.unwrap_or(0).to_string().as_bytes());
    }
    let first_ms = fields.first().and_then(|field| field.expire_at_ms);
    let mut bytes = vec![EXPIRING_LISTPACK];
    bytes.extend(first_ms.unwrap_or(0).to_le_bytes());
    put_string(&mut bytes, &listpack.finish());
    Some(seal_as(VERSION_WRITTEN_MAX, bytes, 0))
}

/// Writes a hash of any size.
#[derive(Debug)]
pub struct HashWriter {
    bytes: Vec<u8>,
    /// The first expiry, if fields expire.
    first_ms: Option<i64>,
}

impl HashWriter {
    /// For `count` fields.
    pub fn new(count: u64) -> Self {
        let mut bytes = vec![FIELDS_AND_VALUES];
        put_length(&mut bytes, count);
        Self {
            bytes,
            first_ms: None,
        }
    }

    /// For `count` fields, the first of which expires at `first_ms`.
    pub fn expiring(count: u64, first_ms: i64) -> Self {
        let mut bytes = vec![EXPIRING];
        bytes.extend(first_ms.to_le_bytes());
        put_length(&mut bytes, count);
        Self {
            bytes,
            first_ms: Some(first_ms),
        }
    }

    /// Adds a field. Its expiry is written if fields expire.
    pub fn push(&mut self, field: &[u8], value: &[u8], expire_at_ms: Option<i64>) {
        if let Some(first_ms) = self.first_ms {
            let behind =
                expire_at_ms.map_or(0, |at_ms| at_ms.saturating_sub(first_ms).saturating_add(1));
            put_length(&mut self.bytes, behind.unsigned_abs());
        }
        put_string(&mut self.bytes, field);
        put_string(&mut self.bytes, value);
    }

    /// How many bytes the payload has so far.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The payload.
    pub fn finish(self) -> Bytes {
        match self.first_ms {
            None => seal(self.bytes, 0),
            Some(_) => seal_as(VERSION_WRITTEN_MAX, self.bytes, 0),
        }
    }
}
