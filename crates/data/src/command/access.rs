//! What a command will do to its keys, told from its row and its arguments before it runs. The
//! executor plans by it: what is missing here costs time and nothing else.
//!
//! Which keys a command locks within its server.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use bytes::Bytes;

use crate::cluster::delegation::Demand;
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
    /// The keys that no other batch of this server may use meanwhile.
    pub locks: KeyLocks,
    /// The one queue that it pops from and how much, if that is known and the command writes
    /// nothing else to that queue.
    pub pops: Option<(ClientKey, Demand)>,
    /// What it will read, by key.
    pub prefetch: Vec<(ClientKey, Prefetch)>,
}

impl Access {
    /// Nothing that the executor can plan by.
    pub const UNKNOWN: Access = Access::locking(KeyLocks::Nothing);

    /// Only what it locks is known.
    pub const fn locking(locks: KeyLocks) -> Self {
        Self {
            locks,
            pops: None,
            prefetch: Vec::new(),
        }
    }

    /// What the command of a row will do with these arguments.
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
            Some(Plan::Pop(demand)) => {
                if let [key] = keys.as_slice() {
                    access.pops = Some((client_key(key), demand));
                }
                each(Prefetch::End {
                    value_type: demand.value_type,
                    from_end: demand.from_end,
                    count: demand.count,
                    with_length: false,
                })
            }
        };
        let keys = keys.into_iter().map(client_key);
        access.prefetch = keys.zip(reads).collect();
        access
    }

    /// Leaves out keys that a command will probably not look at. The lengths of the others are then of
    /// interest.
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

    /// What commands will do that take effect together.
    pub fn of_all(invocations: &[Invocation]) -> Self {
        let each: Vec<Access> = invocations
            .iter()
            .map(|one| Self::of(one.row, one.database, &one.arguments))
            .collect();
        Self {
            locks: KeyLocks::union(each.iter().map(|access| &access.locks)),
            pops: None,
            prefetch: each.into_iter().flat_map(|one| one.prefetch).collect(),
        }
    }
}

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
