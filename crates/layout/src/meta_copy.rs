//! Copies of metadata: copies of a queue's metadata at the ends of its elements.
//!
//! Who pops from a queue wants its metadata and its outermost elements, which lie far apart: two
//! reads. A copy of the metadata lies at the outside of the elements and is read together with
//! them. It says what the metadata's row holds, and what writes that row writes its copies of
//! metadata in the same transaction, so a transaction that has read one knows the other
//! (docs/understand/decisions/006-reads-of-a-transaction.md).

use bytes::Bytes;
use foundationdb_tuple::Bytes as TupleBytes;

use super::{
    DecodeError, Id, KeyRange, Layout, Section, Space, corrupt, successor, take, take_id, with_byte,
};

/// Follows a section's prefix in the key of the copy of the metadata after its last row. No tuple
/// element begins with it.
const AFTER_ALL: u8 = 0xff;

/// A copy of a queue's metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaCopy {
    /// Where the metadata lies.
    pub meta_key: Bytes,
    /// What lies there.
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
    /// Where the bytes are no copy of the metadata.
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

    /// A section with the copy of the metadata at one end of it.
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
