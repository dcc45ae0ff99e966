//! Keys and values of layers.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Bytes that layers share.
pub(super) type Blob = Arc<[u8]>;

/// Bytes of a key that are stored inside its entry. This is enough for a sorted set's member of 36
/// bytes, such as a UUID. An entry then takes 80 bytes.
const INLINE_BYTES: usize = 62;

/// The key of an entry in a layer. Most keys are short and are stored inside the entry: a search
/// compares adjacent keys, and would wait for the memory of each one if it were elsewhere. Keys are
/// cheap to copy, because a change copies neighbouring entries that a snapshot shares.
#[derive(Clone)]
pub(super) struct Key(Bytes);

#[derive(Clone)]
enum Bytes {
    Inline {
        length: u8,
        bytes: [u8; INLINE_BYTES],
    },
    Shared(Arc<[u8]>),
}

impl From<&[u8]> for Key {
    fn from(key: &[u8]) -> Self {
        let mut bytes = [0; INLINE_BYTES];
        Self(
            match (bytes.get_mut(..key.len()), u8::try_from(key.len())) {
                (Some(inline), Ok(length)) => {
                    inline.copy_from_slice(key);
                    Bytes::Inline { length, bytes }
                }
                _ => Bytes::Shared(key.into()),
            },
        )
    }
}

impl Key {
    /// Bytes of memory outside the entry.
    pub(super) fn bytes_elsewhere(&self) -> usize {
        match &self.0 {
            Bytes::Inline { .. } => 0,
            Bytes::Shared(bytes) => bytes.len(),
        }
    }
}

impl Deref for Key {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            // `length` never exceeds the array.
            Bytes::Inline { length, bytes } => {
                bytes.get(..usize::from(*length)).unwrap_or_default()
            }
            Bytes::Shared(bytes) => bytes,
        }
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_any_length_is_what_it_was_made_of() {
        for length in 0..3 * INLINE_BYTES {
            let bytes: Vec<u8> = (0_u8..).take(length).collect();
            let key = Key::from(bytes.as_slice());
            assert_eq!(*key, *bytes);
            assert_eq!(*key.clone(), *bytes);
        }
    }

    #[test]
    fn keys_are_in_the_order_of_their_bytes() {
        let mut bytes = vec![b'x'; INLINE_BYTES + 1];
        let long = Key::from(bytes.as_slice());
        bytes.pop();
        let short = Key::from(bytes.as_slice());
        bytes.push(b'y');
        let other = Key::from(bytes.as_slice());
        assert!(short < long && long < other && long == long.clone());
    }

    #[test]
    fn an_entry_is_small() {
        assert_eq!(size_of::<(Key, Blob)>(), 80);
    }
}
