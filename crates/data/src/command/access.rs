//! What a command will do to its keys, told from its row and its arguments before it runs. The
//! executor plans by it: what is missing here costs time and nothing else.

use std::collections::HashSet;

use bytes::Bytes;

use crate::cluster::delegation::Demand;
use crate::command::call::Invocation;
use crate::command::locks::KeyLocks;
use crate::command::plan::Plan;
use crate::command::row::Row;
use crate::keyspace::key::ClientKey;
use crate::prefetch::Prefetch;

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

#[cfg(test)]
mod tests;
