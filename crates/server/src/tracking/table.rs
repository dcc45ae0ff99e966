//! Who tracks which keys and prefixes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;

use super::keys::Keys;
use super::recent::Recent;
use crate::clients::{ClientRecord, TrackingMode};
use quoin_data::unit::tracking::Change;

/// Changed keys of one prefix, each with the client that changed it last.
pub(super) type Broadcast = BTreeMap<Bytes, u64>;

/// What INFO says.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct TrackingCounts {
    /// Clients that track keys.
    pub(crate) clients: usize,
    /// Keys that are remembered.
    pub(crate) keys: usize,
    /// Clients of all these keys together.
    pub(crate) items: usize,
    /// Prefixes.
    pub(crate) prefixes: usize,
}

/// A client that tracks keys.
struct Tracker {
    record: Arc<ClientRecord>,
    mode: TrackingMode,
    prefixes: BTreeSet<Bytes>,
}

/// Who tracks which keys and prefixes.
#[derive(Default)]
pub(super) struct Table {
    clients: HashMap<u64, Tracker>,
    /// The clients of each prefix.
    prefixes: BTreeMap<Bytes, BTreeSet<u64>>,
    /// The keys that clients have read. Those of clients that track no more stay, as in Redis.
    pub(super) keys: Keys,
    /// Keys that change while clients read.
    pub(super) recent: Recent,
}

impl Table {
    pub(super) fn add_client(
        &mut self,
        record: &Arc<ClientRecord>,
        mode: TrackingMode,
        prefixes: &[Bytes],
    ) {
        let tracker = self.clients.entry(record.id).or_insert_with(|| Tracker {
            record: Arc::clone(record),
            mode,
            prefixes: BTreeSet::new(),
        });
        tracker.mode = mode;
        for prefix in prefixes {
            let known = self.prefixes.get_key_value(prefix);
            // A copy: the argument may keep a whole request in memory.
            let prefix = known.map_or_else(
                || Bytes::copy_from_slice(prefix),
                |(prefix, _)| prefix.clone(),
            );
            let clients = self.prefixes.entry(prefix.clone()).or_default();
            clients.insert(record.id);
            tracker.prefixes.insert(prefix);
        }
    }

    pub(super) fn remove_client(&mut self, id: u64) {
        let Some(tracker) = self.clients.remove(&id) else {
            return;
        };
        for prefix in tracker.prefixes {
            if let Some(clients) = self.prefixes.get_mut(&prefix) {
                clients.remove(&id);
                if clients.is_empty() {
                    self.prefixes.remove(&prefix);
                }
            }
        }
        if self.clients.is_empty() {
            self.keys.clear();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    pub(super) fn client(&self, id: u64) -> Option<(&ClientRecord, TrackingMode)> {
        let tracker = self.clients.get(&id)?;
        Some((&tracker.record, tracker.mode))
    }

    /// All clients, oldest first.
    pub(super) fn client_ids(&self) -> BTreeSet<u64> {
        self.clients.keys().copied().collect()
    }

    pub(super) fn prefixes_of(&self, id: u64) -> Vec<Bytes> {
        let tracker = self.clients.get(&id);
        let prefixes = tracker.into_iter().flat_map(|tracker| &tracker.prefixes);
        prefixes.cloned().collect()
    }

    pub(super) fn clients_of(&self, prefix: &[u8]) -> Vec<u64> {
        let clients = self.prefixes.get(prefix);
        clients.into_iter().flatten().copied().collect()
    }

    pub(super) fn is_noloop(&self, id: u64) -> bool {
        self.clients.get(&id).is_some_and(|one| one.mode.is_noloop)
    }

    /// Whether a client that has read a key is told of its change by another client, or by itself.
    pub(super) fn is_told_of(&self, reader: u64, changer: u64) -> bool {
        let Some(one) = self.clients.get(&reader) else {
            return false;
        };
        let is_spared = one.mode.is_noloop && reader == changer;
        !one.mode.is_broadcast && !is_spared
    }

    /// Remembers that a client has read a key.
    pub(super) fn remember(&mut self, key: &Bytes, client: u64) {
        let clients = &self.clients;
        self.keys
            .remember(key, client, |id| clients.contains_key(&id));
    }

    /// The reads, by their place among the changes, of keys that have changed since the window was
    /// opened.
    pub(super) fn outdated_reads(&self, changes: &[Change], window: Option<u64>) -> HashSet<usize> {
        let Some(window) = window else {
            return HashSet::new();
        };
        let is_outdated = |change: &Change| matches!(change, Change::Read { key, .. } if self.recent.has_changed(key, window));
        let changes = changes.iter().enumerate();
        let outdated = changes.filter(|(_, change)| is_outdated(change));
        outdated.map(|(at, _)| at).collect()
    }

    /// Notes that a client has changed a key, for windows and for the clients with prefixes of it.
    pub(super) fn note_change(
        &mut self,
        key: &Bytes,
        client: u64,
        broadcasts: &mut BTreeMap<Bytes, Broadcast>,
    ) {
        self.recent.note(key);
        for prefix in self.prefixes.keys() {
            if key.starts_with(prefix) {
                let broadcast = broadcasts.entry(prefix.clone()).or_default();
                broadcast.insert(key.clone(), client);
            }
        }
    }

    pub(super) fn counts(&self) -> TrackingCounts {
        TrackingCounts {
            clients: self.clients.len(),
            keys: self.keys.len(),
            items: self.keys.items(),
            prefixes: self.prefixes.len(),
        }
    }
}
