//! What this server knows about the first nodes of streams, for approximate trimming (`stream::trim`).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quoin_layout::Id;

/// Most streams to remember.
const STREAMS_MAX: usize = 1_000;

/// A first node: the numbers of its first entry and of the entry after its last. Entries are numbered from the first
/// one ever added to the stream.
type Node = (u64, u64);

/// The first nodes of streams. If the end of a node is unknown, the node ends with the last entry examined. A node may
/// be out of date after a change other than an addition, which does no harm.
#[derive(Debug, Default)]
pub struct FirstNodes {
    known: Mutex<HashMap<Id, Node>>,
}

impl FirstNodes {
    fn lock(&self) -> MutexGuard<'_, HashMap<Id, Node>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The minimum number of entries left in the first node, after `removed` entries of the stream were removed.
    pub(crate) fn entries_left(&self, data: Id, removed: u64) -> Option<u64> {
        self.node(data, removed).map(|(_, end)| end - removed)
    }

    /// The number of the first node's first entry, which may have been removed.
    pub(crate) fn first(&self, data: Id, removed: u64) -> Option<u64> {
        self.node(data, removed).map(|(first, _)| first)
    }

    fn node(&self, data: Id, removed: u64) -> Option<Node> {
        let node = self.lock().get(&data).copied();
        node.filter(|(first, end)| (*first..*end).contains(&removed))
    }

    pub(crate) fn remember(&self, data: Id, first: u64, end: u64) {
        let mut known = self.lock();
        if known.len() >= STREAMS_MAX {
            known.clear();
        }
        known.insert(data, (first, end));
    }
}
