//! Which batches may be under way at the same time.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::OnceLock;

use crate::sparse::Sparse;

/// The keys that a command is about. Commands that claim the same key never run in two batches
/// at once, so that clients of one server do not conflict with each other. Claims are about
/// speed only; the store keeps what is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claims {
    /// No keys.
    Nothing,
    /// Hashes of (database, key).
    Keys(Vec<u64>),
    /// The same, in a batch with nobody else: what reads so much that others should not have to
    /// be run again with it when it conflicts.
    Alone(Vec<u64>),
    /// All keys: FLUSHALL, SWAPDB.
    Everything,
}

impl Claims {
    /// All that several commands claim.
    pub fn union<'c>(all: impl IntoIterator<Item = &'c Claims>) -> Claims {
        let mut keys = Vec::new();
        for claims in all {
            match claims {
                Claims::Nothing => {}
                Claims::Keys(some) | Claims::Alone(some) => keys.extend(some),
                Claims::Everything => return Claims::Everything,
            }
        }
        Claims::Keys(keys)
    }

    /// The claim on one key.
    pub fn hash_key(database: u32, key: &[u8]) -> u64 {
        static HASHER: OnceLock<RandomState> = OnceLock::new();
        HASHER
            .get_or_init(RandomState::new)
            .hash_one((database, key))
    }
}

/// Takes claims as they are: they are hashes already, with a key that clients do not know.
#[derive(Debug, Default)]
pub(crate) struct ClaimHasher(u64);

impl Hasher for ClaimHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, claim: u64) {
        self.0 = claim;
    }
}

/// For tables of claims.
pub(crate) type BuildClaimHasher = BuildHasherDefault<ClaimHasher>;

/// Claims that are taken.
#[derive(Debug, Default)]
pub(crate) struct ClaimSet {
    keys: HashSet<u64, BuildClaimHasher>,
    everything: bool,
}

impl ClaimSet {
    pub(crate) fn clear(&mut self) {
        // By what was in it the last time.
        self.keys.shrink_if_sparse();
        self.keys.clear();
        self.everything = false;
    }

    fn is_empty(&self) -> bool {
        !self.everything && self.keys.is_empty()
    }

    /// Whether nobody has claimed any of it.
    pub(crate) fn is_free(&self, claims: &Claims) -> bool {
        match claims {
            Claims::Nothing => true,
            Claims::Keys(keys) | Claims::Alone(keys) => {
                !self.everything && !keys.iter().any(|key| self.keys.contains(key))
            }
            Claims::Everything => self.is_empty(),
        }
    }

    pub(crate) fn add(&mut self, claims: &Claims) {
        match claims {
            Claims::Nothing => {}
            Claims::Keys(keys) | Claims::Alone(keys) => self.keys.extend(keys),
            Claims::Everything => self.everything = true,
        }
    }

    pub(crate) fn release(&mut self, claims: &Claims) {
        match claims {
            Claims::Nothing => {}
            Claims::Keys(keys) | Claims::Alone(keys) => {
                for key in keys {
                    self.keys.remove(key);
                }
                self.keys.shrink_if_sparse();
            }
            Claims::Everything => self.everything = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claimed_key_is_not_free_until_released() {
        let mut set = ClaimSet::default();
        let claims = Claims::Keys(vec![1, 2]);
        set.add(&claims);
        assert!(!set.is_free(&Claims::Keys(vec![2, 3])));
        assert!(set.is_free(&Claims::Keys(vec![3])));
        set.release(&claims);
        assert!(set.is_free(&Claims::Keys(vec![2, 3])));
    }

    #[test]
    fn everything_waits_for_every_key_and_holds_up_every_key() {
        let mut set = ClaimSet::default();
        set.add(&Claims::Keys(vec![1]));
        assert!(!set.is_free(&Claims::Everything));
        set.release(&Claims::Keys(vec![1]));
        set.add(&Claims::Everything);
        assert!(!set.is_free(&Claims::Keys(vec![9])));
        assert!(set.is_free(&Claims::Nothing));
    }
}
