//! A key's metadata.

use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, pack_into};

use super::{DecodeError, Id, KeyName, ValueType, corrupt, take};

/// Format byte of metadata.
const META_FORMAT: u8 = 1;
/// Format byte of metadata with a body.
const META_WITH_BODY_FORMAT: u8 = 2;
/// Format byte of metadata of a value whose blocks are counted.
const META_WITH_RANKS_FORMAT: u8 = 3;
/// Bytes of the count of changes at the beginning of a body.
const CHANGES_BYTES: usize = 2;

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
    /// The whole value, where it is small; it has no rows and no length counter then.
    pub body: Option<Body>,
    /// Levels of blocks whose elements are counted, for ranks; 0 where none are.
    pub rank_levels: u8,
}

/// A small value, whole, in its key's metadata. What its bytes mean is up to the type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// The value's bytes.
    pub bytes: Bytes,
    /// A number that every change of the value changes, by which WATCH recognises one.
    pub changes: u16,
}

impl Body {
    /// The first body of a value.
    pub fn new(bytes: Bytes) -> Self {
        Self { bytes, changes: 0 }
    }

    /// The body after a change.
    pub fn changed_to(&self, bytes: Bytes) -> Self {
        Self {
            bytes,
            changes: self.changes.wrapping_add(1),
        }
    }
}

impl Meta {
    /// The stored form: format byte, then the tuple (type, data id…, expiry | nil, name | nil),
    /// then the body, if there is one, or the tuple (levels of ranks), if there are any.
    pub fn encode(&self) -> Vec<u8> {
        let body_bytes = self
            .body
            .as_ref()
            .map_or(0, |body| body.bytes.len() + CHANGES_BYTES);
        let mut value = Vec::with_capacity(24 + body_bytes);
        value.push(match (&self.body, self.rank_levels) {
            (Some(_), _) => META_WITH_BODY_FORMAT,
            (None, 0) => META_FORMAT,
            (None, _) => META_WITH_RANKS_FORMAT,
        });
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
        match &self.body {
            Some(body) => {
                value.extend_from_slice(&body.changes.to_be_bytes());
                value.extend_from_slice(&body.bytes);
            }
            None if self.rank_levels > 0 => {
                pack_into(&(u64::from(self.rank_levels),), &mut value);
            }
            None => {}
        }
        value
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// Where it is none, or of a newer format.
    pub fn decode(value: &Bytes) -> Result<Self, DecodeError> {
        let (format, mut rest) = match value.split_first() {
            Some((
                format @ (&META_FORMAT | &META_WITH_BODY_FORMAT | &META_WITH_RANKS_FORMAT),
                rest,
            )) => (*format, rest),
            _ => return corrupt("metadata format"),
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
        let body = match (format, rest.split_first_chunk::<CHANGES_BYTES>()) {
            (META_WITH_BODY_FORMAT, Some((changes, bytes))) => Some(Body {
                bytes: value.slice_ref(bytes),
                changes: u16::from_be_bytes(*changes),
            }),
            (META_WITH_BODY_FORMAT, None) => return corrupt("metadata without its body"),
            _ => None,
        };
        let rank_levels = match format {
            META_WITH_RANKS_FORMAT => take(&mut rest, "levels of ranks")?,
            _ => 0_u64,
        };
        let Ok(rank_levels) = u8::try_from(rank_levels) else {
            return corrupt("levels of ranks");
        };
        Ok(Self {
            value_type,
            data,
            expire_at_ms,
            long_name: long_name.map(|name| Bytes::from(name.into_owned())),
            body,
            rank_levels,
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
