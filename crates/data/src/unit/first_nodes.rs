//! Where the first nodes of streams end.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quoin_layout::Id;

/// Streams of which it is remembered.
const STREAMS_MAX: usize = 1_000;

/// A first node: the numbers of its first entry and of the one after its last, counted from the first
/// entry that the stream was ever given.
type Node = (u64, u64);

/// Where the first nodes of streams end, or the last of their entries that were looked at. What is said
/// of a stream that has changed in other ways than by additions may be out of date, and does no harm.
#[derive(Debug, Default)]
pub struct FirstNodes {
    known: Mutex<HashMap<Id, Node>>,
}

impl FirstNodes {
    fn lock(&self) -> MutexGuard<'_, HashMap<Id, Node>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many entries the first node has at the least, of a stream of which so many are gone.
    pub(crate) fn entries_left(&self, data: Id, gone: u64) -> Option<u64> {
        self.node(data, gone).map(|(_, end)| end - gone)
    }

    /// The number of the first node's first entry, which may be gone.
    pub(crate) fn first(&self, data: Id, gone: u64) -> Option<u64> {
        self.node(data, gone).map(|(first, _)| first)
    }

    fn node(&self, data: Id, gone: u64) -> Option<Node> {
        let node = self.lock().get(&data).copied();
        node.filter(|(first, end)| (*first..*end).contains(&gone))
    }

    pub(crate) fn remember(&self, data: Id, first: u64, end: u64) {
        let mut known = self.lock();
        if known.len() >= STREAMS_MAX {
            known.clear();
        }
        known.insert(data, (first, end));
    }
}
