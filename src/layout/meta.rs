//! A key's metadata.

use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, pack_into};

use super::{DecodeError, Id, KeyName, ValueType, corrupt, take};

/// Format byte of a metadata value.
const META_FORMAT: u8 = 1;

/// A key's type, expiry and data id. Apart from the data, so that RENAME moves no data; and not
/// touched by pushes and pops, so that those of two servers do not conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// What the key holds.
    pub value_type: ValueType,
    /// Where its data lies.
    pub data: Id,
    /// When it ceases to exist, in milliseconds since the Unix epoch.
    pub expire_at_ms: Option<i64>,
    /// The full name, where the key holds only its digest.
    pub long_name: Option<Bytes>,
}

impl Meta {
    /// The stored form: format byte, then the tuple (type, data id…, expiry | nil, name | nil).
    pub fn encode(&self) -> Vec<u8> {
        let mut value = Vec::with_capacity(16);
        value.push(META_FORMAT);
        pack_into(
            &(
                self.value_type as u64,
                self.data.instance,
                self.data.sequence,
                self.expire_at_ms,
                self.long_name.as_deref(),
            ),
            &mut value,
        );
        value
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// Where it is none, or of a newer format.
    pub fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let Some((&META_FORMAT, mut rest)) = value.split_first() else {
            return corrupt("metadata format");
        };
        let code: u64 = take(&mut rest, "type")?;
        let Some(value_type) = ValueType::from_number(code) else {
            return corrupt("unknown type");
        };
        let data = Id {
            instance: take(&mut rest, "data id")?,
            sequence: take(&mut rest, "data id")?,
        };
        let expire_at_ms = take(&mut rest, "expiry")?;
        let long_name: Option<TupleBytes<'_>> = take(&mut rest, "long name")?;
        Ok(Self {
            value_type,
            data,
            expire_at_ms,
            long_name: long_name.map(|name| Bytes::from(name.into_owned())),
        })
    }

    /// The key's full name, from the store key or, for a long one, from here.
    ///
    /// # Errors
    /// Where neither holds it.
    pub fn full_name<'m>(&'m self, name: &'m KeyName) -> Result<&'m Bytes, DecodeError> {
        match name.inline().or(self.long_name.as_ref()) {
            Some(name) => Ok(name),
            None => corrupt("long name missing"),
        }
    }
}
