//! Which keys a command locks within its server.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use bytes::Bytes;

use crate::command::flags::Flags;
use crate::command::row::Row;

/// The keys that a command is about. Commands that lock the same key never run in two batches at
/// once, so that clients of one server do not conflict with each other. Locks are about speed only:
/// the store's transactions keep what is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyLocks {
    /// No keys.
    Nothing,
    /// Hashes of (database, key).
    Keys(Vec<u64>),
    /// The same, in a batch with nothing else: what reads so much that others should not run again
    /// with it when it conflicts.
    Alone(Vec<u64>),
    /// All keys: FLUSHALL, SWAPDB.
    Everything,
}

impl KeyLocks {
    /// What the command of a row locks that has these keys: those, or everything where it writes and
    /// does not name keys.
    pub fn of(row: &Row, database: u32, keys: &[&Bytes]) -> Self {
        if !row.has_keys() {
            return if row.flags.contains(Flags::WRITE) {
                KeyLocks::Everything
            } else {
                KeyLocks::Nothing
            };
        }
        let hashes = keys.iter().map(|key| Self::hash_key(database, key));
        KeyLocks::Keys(hashes.collect())
    }

    /// All that several commands lock.
    pub fn union<'c>(all: impl IntoIterator<Item = &'c KeyLocks>) -> KeyLocks {
        let mut keys = Vec::new();
        for locks in all {
            match locks {
                KeyLocks::Nothing => {}
                KeyLocks::Keys(some) | KeyLocks::Alone(some) => keys.extend(some),
                KeyLocks::Everything => return KeyLocks::Everything,
            }
        }
        KeyLocks::Keys(keys)
    }

    /// The locked keys, where they are named.
    pub fn keys(&self) -> &[u64] {
        match self {
            KeyLocks::Keys(keys) | KeyLocks::Alone(keys) => keys,
            KeyLocks::Nothing | KeyLocks::Everything => &[],
        }
    }

    /// The lock of one key: a hash that clients cannot choose.
    pub fn hash_key(database: u32, key: &[u8]) -> u64 {
        static HASHER: OnceLock<RandomState> = OnceLock::new();
        HASHER
            .get_or_init(RandomState::new)
            .hash_one((database, key))
    }
}
