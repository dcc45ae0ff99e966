//! What a unit of work knows about keys without reading them.

use std::cell::{Cell, RefCell};
use std::collections::{HashSet, VecDeque};

use bytes::Bytes;
use quoin_layout::{DecodeError, Id, KeyName, Meta};

/// Number of keys to remember.
const SLOTS: usize = 16;
/// Number of bytes at the end of a name that determine its slot.
const HASHED_BYTES: usize = 16;

/// How many of the locations that were kept ahead are searched.
const AHEAD_SEARCHED: usize = 4;

/// The location of a key that may or may not exist.
#[derive(Debug, Clone)]
pub(crate) struct KeyLocation {
    pub(crate) database: u32,
    pub(crate) namespace: Id,
    pub(crate) name: KeyName,
    pub(crate) meta_key: Vec<u8>,
}

/// Locations of keys in a transaction, in the namespaces that it sees.
#[derive(Debug, Default)]
pub(crate) struct LocatedKeys {
    /// For each slot, the hash of the name that was last located.
    seen: [Cell<usize>; SLOTS],
    /// One slot per name. Empty until something is remembered.
    known: RefCell<Vec<Option<(Bytes, KeyLocation)>>>,
    /// Locations of keys that the next commands look up, in their order.
    ahead: RefCell<VecDeque<(Bytes, KeyLocation)>>,
    /// The metadata that was last decoded, with its row.
    decoded: RefCell<Option<(Bytes, Meta)>>,
}

fn hash_of(name: &[u8]) -> usize {
    let from = name.len().saturating_sub(HASHED_BYTES);
    let hashed = name.get(from..).unwrap_or_default().iter();
    hashed.fold(1, |hash: usize, byte| {
        hash.wrapping_mul(31).wrapping_add(usize::from(*byte))
    })
}

impl LocatedKeys {
    /// Forgets all locations, because a database shows another namespace.
    pub(crate) fn forget(&self) {
        self.known.borrow_mut().clear();
        self.forget_ahead();
    }

    /// Keeps the location of a key for the command that will look it up.
    pub(crate) fn keep_ahead(&self, name: &Bytes, location: KeyLocation) {
        self.ahead.borrow_mut().push_back((name.clone(), location));
    }

    /// Takes a location that was kept, if that key is one of the next. Those before it were not looked up.
    pub(crate) fn take_ahead(&self, database: u32, name: &[u8]) -> Option<KeyLocation> {
        let mut ahead = self.ahead.borrow_mut();
        let mut next = ahead.iter().take(AHEAD_SEARCHED);
        let at = next.position(|(one, kept)| kept.database == database && one == name)?;
        let (_, location) = ahead.drain(..=at).next_back()?;
        Some(location)
    }

    /// Forgets the locations that were kept.
    pub(crate) fn forget_ahead(&self) {
        self.ahead.borrow_mut().clear();
    }

    /// The location of a key, if remembered.
    pub(crate) fn find(&self, database: u32, name: &[u8]) -> Option<KeyLocation> {
        let known = self.known.borrow();
        let (known, location) = known.get(hash_of(name) % SLOTS)?.as_ref()?;
        (location.database == database && known == name).then(|| location.clone())
    }

    /// Remembers the location of a key if the key is located for the second time.
    pub(crate) fn remember(&self, name: &Bytes, location: &KeyLocation) {
        let hash = hash_of(name);
        let seen = self.seen.get(hash % SLOTS);
        if seen.is_none_or(|seen| seen.replace(hash) != hash) {
            return;
        }
        let mut known = self.known.borrow_mut();
        known.resize(SLOTS, None);
        if let Some(slot) = known.get_mut(hash % SLOTS) {
            *slot = Some((name.clone(), location.clone()));
        }
    }

    /// Decodes metadata, unless the row is the same as last time.
    ///
    /// # Errors
    /// If the row is not valid metadata.
    pub(crate) fn decode(&self, row: Bytes) -> Result<Meta, DecodeError> {
        let mut decoded = self.decoded.borrow_mut();
        if let Some((known, meta)) = &*decoded
            && *known == row
        {
            return Ok(meta.clone());
        }
        let meta = Meta::decode(&row)?;
        *decoded = Some((row, meta.clone()));
        Ok(meta)
    }
}

/// What is known about a command's keys before execution. The command looks up anything else.
#[derive(Debug, Clone, Copy, Default)]
pub enum KnownKeys<'k> {
    /// Nothing.
    #[default]
    Nothing,
    /// Only these may have elements. The command skips the others.
    OnlyThese(&'k HashSet<Bytes>),
    /// These are empty. The command skips them.
    Empty(&'k HashSet<Bytes>),
}

impl KnownKeys<'_> {
    /// Whether the command skips a key.
    pub fn leaves_out(self, key: &Bytes) -> bool {
        match self {
            KnownKeys::OnlyThese(keys) => !keys.contains(key),
            KnownKeys::Empty(keys) => keys.contains(key),
            KnownKeys::Nothing => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(database: u32, name: &Bytes) -> KeyLocation {
        KeyLocation {
            database,
            namespace: Id {
                instance: 0,
                sequence: u64::from(database),
            },
            name: KeyName::new(name),
            meta_key: name.to_vec(),
        }
    }

    #[test]
    fn a_key_is_known_in_its_database_until_all_are_forgotten() {
        let keys = LocatedKeys::default();
        // More names than slots.
        let names: Vec<Bytes> = (0..50_u32).map(|n| n.to_string().into()).collect();
        for name in &names {
            keys.remember(name, &location(3, name));
            keys.remember(name, &location(3, name));
            let found = keys.find(3, name).unwrap();
            assert_eq!((found.database, found.meta_key), (3, name.to_vec()));
            assert!(keys.find(0, name).is_none());
        }
        let known = names
            .iter()
            .filter_map(|name| Some((name, keys.find(3, name)?)));
        assert!(known.clone().count() > 0);
        assert!(
            known
                .into_iter()
                .all(|(name, found)| found.meta_key == *name)
        );
        keys.forget();
        assert!(names.iter().all(|name| keys.find(3, name).is_none()));
    }

    #[test]
    fn a_location_that_was_kept_ahead_is_taken_once_and_by_its_key() {
        let keys = LocatedKeys::default();
        let names: Vec<Bytes> = (0..9_u32).map(|n| n.to_string().into()).collect();
        for name in &names {
            keys.keep_ahead(name, location(3, name));
        }
        let take = |at: usize, database| keys.take_ahead(database, &names[at]);
        assert!(take(0, 0).is_none());
        assert_eq!(take(0, 3).unwrap().meta_key, names[0]);
        assert!(take(0, 3).is_none());
        // Its command did not look it up.
        assert_eq!(take(2, 3).unwrap().meta_key, names[2]);
        assert!(take(1, 3).is_none());
        keys.forget();
        assert!((3..9).all(|at| take(at, 3).is_none()));
    }

    #[test]
    fn metadata_is_what_its_row_says() {
        let keys = LocatedKeys::default();
        let meta = |sequence| Meta {
            value_type: quoin_layout::ValueType::List,
            data: Id {
                instance: 7,
                sequence,
            },
            expire_at_ms: None,
            long_name: None,
            inline: None,
            rank_levels: 0,
            fields_expire: false,
            is_kept: false,
        };
        for sequence in [1, 1, 2, 1] {
            let row = Bytes::from(meta(sequence).encode());
            assert_eq!(keys.decode(row).unwrap(), meta(sequence));
        }
        assert!(keys.decode(Bytes::from_static(b"\xff")).is_err());
    }
}
