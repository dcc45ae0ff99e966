//! What a command will read and which keys it locks within its server, derived from its row and arguments before
//! execution. The executor uses it for planning only: missing information costs time and nothing else.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use bytes::Bytes;

use crate::command::call::Invocation;
use crate::command::flags::Flags;
use crate::command::plan::Plan;
use crate::command::row::Row;
use crate::keyspace::key::ClientKey;
use crate::prefetch::Prefetch;

#[cfg(test)]
mod tests;

/// What a command will do to its keys.
#[derive(Debug, Clone)]
pub struct Access {
    /// The keys that no other batch of this server may use at the same time.
    pub locks: KeyLocks,
    /// What it will read, by key.
    pub prefetch: Vec<(ClientKey, Prefetch)>,
}

impl Access {
    /// Nothing that helps the executor.
    pub const UNKNOWN: Access = Access::locking(KeyLocks::Nothing);

    /// Only the locks are known.
    pub const fn locking(locks: KeyLocks) -> Self {
        Self {
            locks,
            prefetch: Vec::new(),
        }
    }

    /// What a command will do with these arguments.
    pub fn of(row: &Row, database: u32, arguments: &[Bytes]) -> Self {
        let indexes = row.key_indexes(arguments).into_iter();
        let keys: Vec<&Bytes> = indexes.filter_map(|at| arguments.get(at)).collect();
        let client_key = |key: &Bytes| ClientKey {
            database,
            key: key.clone(),
        };
        let mut access = Self::locking(KeyLocks::of(row, database, &keys));
        let plan = row.plan.and_then(|plan| plan(arguments));
        let each = |prefetch| std::iter::repeat_n(prefetch, keys.len()).collect();
        let reads: Vec<Prefetch> = match plan {
            None => each(Prefetch::Meta),
            Some(Plan::Read(reads)) => reads,
            Some(Plan::Each(read)) => each(read),
        };
        let keys = keys.into_iter().map(client_key);
        access.prefetch = keys.zip(reads).collect();
        access
    }

    /// Leaves out keys that a command will probably not access. The lengths of the other keys tell afterwards whether
    /// they are empty.
    pub fn leave_out(&mut self, keys: &HashSet<Bytes>) {
        if keys.is_empty() || self.prefetch.len() < 2 {
            return;
        }
        self.prefetch.retain(|(key, _)| !keys.contains(&key.key));
        for (_, prefetch) in &mut self.prefetch {
            if let Prefetch::End { with_length, .. } = prefetch {
                *with_length = true;
            }
        }
        let locks = self.prefetch.iter();
        let locks = locks.map(|(key, _)| KeyLocks::hash_key(key.database, &key.key));
        self.locks = KeyLocks::Keys(locks.collect());
    }

    /// The combined access of commands that take effect together.
    pub fn of_all(invocations: &[Invocation]) -> Self {
        let each: Vec<Access> = invocations
            .iter()
            .map(|one| Self::of(one.row, one.database, &one.arguments))
            .collect();
        Self {
            locks: KeyLocks::union(each.iter().map(|access| &access.locks)),
            prefetch: each.into_iter().flat_map(|one| one.prefetch).collect(),
        }
    }
}

/// The keys that a command locks. Commands that lock the same key never run in two batches at once, so clients of one
/// server do not conflict with each other. Locks only improve speed; the store's transactions ensure correctness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyLocks {
    /// No keys.
    Nothing,
    /// Hashes of (database, key).
    Keys(Vec<u64>),
    /// Hashes of (database, key), for a batch of its own. The commands read so much that others should not be retried
    /// with them after a conflict.
    Alone(Vec<u64>),
    /// All keys: FLUSHALL, SWAPDB.
    Everything,
}

impl KeyLocks {
    /// The locks of a command with these keys: the keys, or everything if it writes and names no keys.
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

    /// The combined locks of several commands.
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

    /// The locked keys, if they are named.
    pub fn keys(&self) -> &[u64] {
        match self {
            KeyLocks::Keys(keys) | KeyLocks::Alone(keys) => keys,
            KeyLocks::Nothing | KeyLocks::Everything => &[],
        }
    }

    /// The lock of one key: a hash that clients cannot predict.
    pub fn hash_key(database: u32, key: &[u8]) -> u64 {
        static HASHER: OnceLock<RandomState> = OnceLock::new();
        HASHER
            .get_or_init(RandomState::new)
            .hash_one((database, key))
    }
}
