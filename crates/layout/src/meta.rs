//! The metadata of a key, and the copies of a queue's metadata at the ends of its elements.

use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, pack_into};

use super::{
    DecodeError, Id, KeyName, KeyRange, Layout, Section, Space, ValueType, corrupt, successor,
    take, take_id, with_byte,
};

/// Format byte of metadata.
const META_FORMAT: u8 = 1;

/// Format byte of metadata with an inline value.
const META_WITH_INLINE_VALUE_FORMAT: u8 = 2;

/// Format byte of a value's metadata if its blocks are counted.
const META_WITH_RANKS_FORMAT: u8 = 3;

/// Format byte of a hash's metadata if its fields may expire.
const META_WITH_FIELD_EXPIRIES_FORMAT: u8 = 4;

/// Format byte of a key's metadata if the key is kept when empty.
const META_KEPT_FORMAT: u8 = 5;

/// Bytes of the count of changes at the beginning of an inline value.
const CHANGES_BYTES: usize = 2;

/// A key's type, expiry and data id. They are separate from the data, so that RENAME moves no data.
/// Pushes and pops do not change them, so that those of two servers do not conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// The key's type.
    pub value_type: ValueType,
    /// The id of its data.
    pub data: Id,
    /// When it ceases to exist, in milliseconds since the Unix epoch.
    pub expire_at_ms: Option<i64>,
    /// The full name, if the key holds only its digest.
    pub long_name: Option<Bytes>,
    /// The whole value, if it is small. Then it has no rows and no length counter.
    pub inline: Option<InlineValue>,
    /// Levels of counted blocks of elements, for ranks; 0 if none are counted.
    pub rank_levels: u8,
    /// Whether fields of a hash in rows may expire. Remains set when none does any more.
    pub fields_expire: bool,
    /// Whether the key exists without elements, although keys of its type otherwise cease to exist
    /// with the last one. Such a key has no inline value.
    pub is_kept: bool,
}

/// A small value that is stored whole in its key's metadata. The type defines the meaning of its
/// bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlineValue {
    /// The value's bytes.
    pub bytes: Bytes,
    /// A number that every change of the value changes, so that WATCH notices.
    pub changes: u16,
}

impl InlineValue {
    /// The first inline value of a key.
    pub fn new(bytes: Bytes) -> Self {
        Self { bytes, changes: 0 }
    }

    /// The inline value after a change.
    pub fn changed_to(&self, bytes: Bytes) -> Self {
        Self {
            bytes,
            changes: self.changes.wrapping_add(1),
        }
    }
}

impl Meta {
    /// The stored form: format byte, then the tuple (type, data id…, expiry | nil, name | nil),
    /// then the inline value if there is one, or the tuple (levels of ranks) if there are any or the key is
    /// kept.
    pub fn encode(&self) -> Vec<u8> {
        let inline_bytes = self
            .inline
            .as_ref()
            .map_or(0, |inline| inline.bytes.len() + CHANGES_BYTES);
        let mut value = Vec::with_capacity(24 + inline_bytes);
        value.push(match (&self.inline, self.rank_levels) {
            (Some(_), _) => META_WITH_INLINE_VALUE_FORMAT,
            (None, _) if self.is_kept => META_KEPT_FORMAT,
            (None, 0) if self.fields_expire => META_WITH_FIELD_EXPIRIES_FORMAT,
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
        match &self.inline {
            Some(inline) => {
                value.extend_from_slice(&inline.changes.to_be_bytes());
                value.extend_from_slice(&inline.bytes);
            }
            None if self.is_kept || self.rank_levels > 0 => {
                pack_into(&(u64::from(self.rank_levels),), &mut value);
            }
            None => {}
        }
        value
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// If it is not one, or is of a newer format.
    pub fn decode(value: &Bytes) -> Result<Self, DecodeError> {
        let (format, mut rest) = match value.split_first() {
            Some((
                format @ (&META_FORMAT
                | &META_WITH_INLINE_VALUE_FORMAT
                | &META_WITH_RANKS_FORMAT
                | &META_WITH_FIELD_EXPIRIES_FORMAT
                | &META_KEPT_FORMAT),
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
        let inline = match (format, rest.split_first_chunk::<CHANGES_BYTES>()) {
            (META_WITH_INLINE_VALUE_FORMAT, Some((changes, bytes))) => Some(InlineValue {
                bytes: value.slice_ref(bytes),
                changes: u16::from_be_bytes(*changes),
            }),
            (META_WITH_INLINE_VALUE_FORMAT, None) => {
                return corrupt("metadata without its inline value");
            }
            _ => None,
        };
        let rank_levels = match format {
            META_WITH_RANKS_FORMAT | META_KEPT_FORMAT => take(&mut rest, "levels of ranks")?,
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
            inline,
            rank_levels,
            fields_expire: format == META_WITH_FIELD_EXPIRIES_FORMAT,
            is_kept: format == META_KEPT_FORMAT,
        })
    }

    /// The key's full name, from the store key or, if it is long, from here.
    ///
    /// # Errors
    /// If neither has it.
    pub fn full_name<'m>(&'m self, name: &'m KeyName) -> Result<&'m Bytes, DecodeError> {
        match name.inline().or(self.long_name.as_ref()) {
            Some(name) => Ok(name),
            None => corrupt("long name missing"),
        }
    }
}

/// Follows a section's prefix in the key of the metadata copy after its last row. No tuple element
/// begins with it.
const AFTER_ALL: u8 = 0xff;

/// A copy of a queue's metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaCopy {
    /// The key of the metadata.
    pub meta_key: Bytes,
    /// The value of the metadata.
    pub meta: Bytes,
}

impl MetaCopy {
    /// The stored form: the tuple (key, value).
    pub fn encode(&self) -> Vec<u8> {
        let [meta_key, meta] = [&self.meta_key, &self.meta].map(|bytes| TupleBytes::from(&**bytes));
        foundationdb_tuple::pack(&(meta_key, meta))
    }

    /// Reads [`Self::encode`].
    ///
    /// # Errors
    /// If the bytes are not a copy of the metadata.
    pub fn decode(mut value: &[u8]) -> Result<Self, DecodeError> {
        let mut next = || take::<TupleBytes<'_>>(&mut value, "copy of metadata");
        let (meta_key, meta) = (next()?, next()?);
        match value {
            [] => Ok(Self {
                meta_key: Bytes::copy_from_slice(&meta_key),
                meta: Bytes::copy_from_slice(&meta),
            }),
            _ => corrupt("copy of metadata"),
        }
    }
}

impl Layout {
    /// Key of the copy of the metadata before a section, or after it.
    pub fn meta_copy_key(&self, data: Id, section: Section, from_end: bool) -> Vec<u8> {
        let prefix = self.section_prefix(data, section);
        match from_end {
            false => prefix,
            true => with_byte(&prefix, AFTER_ALL),
        }
    }

    /// A section with the metadata copy at one of its ends.
    pub fn section_and_meta_copy(&self, data: Id, section: Section, from_end: bool) -> KeyRange {
        let copy = self.meta_copy_key(data, section, from_end);
        let KeyRange { begin, end } = self.section(data, section);
        match from_end {
            false => KeyRange { begin: copy, end },
            true => KeyRange {
                begin,
                end: successor(&copy),
            },
        }
    }

    /// Whether a row of [`Space::Data`] is a copy of the metadata.
    pub fn is_meta_copy(&self, key: &[u8]) -> bool {
        let after_section = |key| -> Result<_, DecodeError> {
            let mut rest = self.strip(Space::Data, key)?;
            take_id(&mut rest, "data id")?;
            take::<u64>(&mut rest, "section")?;
            Ok(rest)
        };
        matches!(after_section(key), Ok([] | [AFTER_ALL]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DATA: Id = Id {
        instance: 3,
        sequence: 4,
    };

    proptest! {
        #[test]
        fn a_meta_copy_is_read_as_it_was_written(meta_key: Vec<u8>, meta: Vec<u8>) {
            let copy = MetaCopy { meta_key: meta_key.into(), meta: meta.into() };
            prop_assert_eq!(MetaCopy::decode(&copy.encode()).unwrap(), copy);
        }

        #[test]
        fn whatever_is_no_meta_copy_is_corrupt(value: Vec<u8>) {
            if let Ok(copy) = MetaCopy::decode(&value) {
                prop_assert_eq!(copy.encode(), value);
            }
        }
    }

    #[test]
    fn meta_copies_lie_next_to_their_section_and_not_in_it() {
        let layout = Layout::new("test");
        let all = KeyRange::children(&layout.data_prefix(DATA));
        for section in Section::ALL {
            let rows = layout.section(DATA, *section);
            let keys = [false, true].map(|from_end| layout.meta_copy_key(DATA, *section, from_end));
            assert_eq!(successor(&keys[0]), rows.begin);
            assert_eq!(keys[1], rows.end);
            assert!(!layout.is_meta_copy(&rows.begin));
            for key in keys {
                assert!(layout.is_meta_copy(&key));
                // So they go when the data is cleared.
                assert!(all.begin < key && key < all.end);
            }
        }
    }
}
