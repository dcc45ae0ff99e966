//! Signposts: copies of a queue's metadata at the ends of its elements.
//!
//! Who pops from a queue wants its metadata and its outermost elements, which lie far apart: two
//! reads. A signpost lies at the outside of the elements and is read together with them. It says
//! what the metadata's row holds, and what writes that row writes its signposts in the same
//! transaction, so a transaction that has read one knows the other
//! (docs/understand/decisions/006-reads-of-a-transaction.md).

use bytes::Bytes;
use foundationdb_tuple::Bytes as TupleBytes;

use super::{
    DecodeError, Id, KeyRange, Layout, Section, Space, corrupt, successor, take, take_id, with_byte,
};

/// Follows a section's prefix in the key of the signpost behind its last row. No tuple element
/// begins with it.
const BEHIND_ALL: u8 = 0xff;

/// A copy of a queue's metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signpost {
    /// Where the metadata lies.
    pub meta_key: Bytes,
    /// What lies there.
    pub meta: Bytes,
}

impl Signpost {
    /// The stored form: the tuple (key, value).
    pub fn encode(&self) -> Vec<u8> {
        let [meta_key, meta] = [&self.meta_key, &self.meta].map(|bytes| TupleBytes::from(&**bytes));
        foundationdb_tuple::pack(&(meta_key, meta))
    }

    /// Reads [`Self::encode`].
    ///
    /// # Errors
    /// Where the bytes are no signpost.
    pub fn decode(mut value: &[u8]) -> Result<Self, DecodeError> {
        let mut next = || take::<TupleBytes<'_>>(&mut value, "signpost");
        let (meta_key, meta) = (next()?, next()?);
        match value {
            [] => Ok(Self {
                meta_key: Bytes::copy_from_slice(&meta_key),
                meta: Bytes::copy_from_slice(&meta),
            }),
            _ => corrupt("signpost"),
        }
    }
}

impl Layout {
    /// Key of the signpost in front of a section, or behind it.
    pub fn signpost_key(&self, data: Id, section: Section, from_end: bool) -> Vec<u8> {
        let prefix = self.section_prefix(data, section);
        match from_end {
            false => prefix,
            true => with_byte(&prefix, BEHIND_ALL),
        }
    }

    /// A section with the signpost at one end of it.
    pub fn section_and_signpost(&self, data: Id, section: Section, from_end: bool) -> KeyRange {
        let signpost = self.signpost_key(data, section, from_end);
        let KeyRange { begin, end } = self.section(data, section);
        match from_end {
            false => KeyRange {
                begin: signpost,
                end,
            },
            true => KeyRange {
                begin,
                end: successor(&signpost),
            },
        }
    }

    /// Whether a row of [`Space::Data`] is a signpost.
    pub fn is_signpost(&self, key: &[u8]) -> bool {
        let behind_section = |key| -> Result<_, DecodeError> {
            let mut rest = self.strip(Space::Data, key)?;
            take_id(&mut rest, "data id")?;
            take::<u64>(&mut rest, "section")?;
            Ok(rest)
        };
        matches!(behind_section(key), Ok([] | [BEHIND_ALL]))
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
        fn a_signpost_is_read_as_it_was_written(meta_key: Vec<u8>, meta: Vec<u8>) {
            let signpost = Signpost { meta_key: meta_key.into(), meta: meta.into() };
            prop_assert_eq!(Signpost::decode(&signpost.encode()).unwrap(), signpost);
        }

        #[test]
        fn whatever_is_no_signpost_is_corrupt(value: Vec<u8>) {
            if let Ok(signpost) = Signpost::decode(&value) {
                prop_assert_eq!(signpost.encode(), value);
            }
        }
    }

    #[test]
    fn signposts_lie_next_to_their_section_and_not_in_it() {
        let layout = Layout::new("test");
        let all = KeyRange::children(&layout.data_prefix(DATA));
        for section in Section::ALL {
            let rows = layout.section(DATA, *section);
            let keys = [false, true].map(|from_end| layout.signpost_key(DATA, *section, from_end));
            assert_eq!(successor(&keys[0]), rows.begin);
            assert_eq!(keys[1], rows.end);
            assert!(!layout.is_signpost(&rows.begin));
            for key in keys {
                assert!(layout.is_signpost(&key));
                // So they go when the data is cleared.
                assert!(all.begin < key && key < all.end);
            }
        }
    }
}
