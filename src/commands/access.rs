//! What a command will do to its keys, told from its arguments before it runs. The executor plans
//! by it; what is missing here costs time and nothing else.

use bytes::Bytes;

use super::call::Invocation;
use super::locks::KeyLocks;
use super::row::Row;
use super::{ahead, pops};
use crate::types::ahead::Glance;
use crate::types::key::ClientKey;
use crate::types::staging::Demand;

/// What a command will do to its keys.
#[derive(Debug, Clone)]
pub struct Access {
    /// The keys that no other batch of this server may use meanwhile.
    pub locks: KeyLocks,
    /// The one queue that it pops from and how much, where that is known and it writes nothing else
    /// to that queue.
    pub pops: Option<(ClientKey, Demand)>,
    /// What it will read, by key.
    pub prefetch: Vec<(ClientKey, Glance)>,
}

impl Access {
    /// Nothing that the executor can plan by.
    pub const UNKNOWN: Access = Access::locking(KeyLocks::Nothing);

    /// What is known is only what it locks.
    pub const fn locking(locks: KeyLocks) -> Self {
        Self {
            locks,
            pops: None,
            prefetch: Vec::new(),
        }
    }

    /// What the command of a row will do with these arguments.
    pub fn of(row: &Row, database: u32, arguments: &[Bytes]) -> Self {
        let client_key = |key| ClientKey { database, key };
        let prefetch = ahead::of(row, arguments).into_iter();
        Self {
            locks: KeyLocks::of(row, database, arguments),
            pops: pops::of(row, arguments).map(|(key, demand)| (client_key(key), demand)),
            prefetch: prefetch
                .map(|(key, glance)| (client_key(key), glance))
                .collect(),
        }
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
