//! Which clients track which keys and prefixes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::clients::{ClientRecord, TrackingMode};
use crate::tracking::recent::Recent;
use quoin_base::sparse::Sparse;
use quoin_data::unit::host::Change;

/// Changed keys of one prefix, each with the client that last changed it.
pub(super) type Broadcast = BTreeMap<Bytes, u64>;

/// Figures for INFO.
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

/// Which clients track which keys and prefixes.
#[derive(Default)]
pub(super) struct Table {
    clients: HashMap<u64, Tracker>,
    /// The clients of each prefix.
    prefixes: BTreeMap<Bytes, BTreeSet<u64>>,
    /// The keys that clients have read. As in Redis, keys of clients that have stopped tracking stay.
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
            // Copied, because the argument may keep a whole request in memory.
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

    /// Whether a client that has read a key is notified of a change by `changer`.
    pub(super) fn is_notified_of(&self, reader: u64, changer: u64) -> bool {
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

    /// The indexes in `changes` of reads of keys that have changed since the window was opened.
    pub(super) fn outdated_reads(&self, changes: &[Change], window: Option<u64>) -> HashSet<usize> {
        let Some(window) = window else {
            return HashSet::new();
        };
        let is_outdated = |change: &Change| matches!(change, Change::Read { key, .. } if self.recent.has_changed(key, window));
        let changes = changes.iter().enumerate();
        let outdated = changes.filter(|(_, change)| is_outdated(change));
        outdated.map(|(at, _)| at).collect()
    }

    /// Records that a client has changed a key, for windows and for clients with a matching prefix.
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

/// Number of clients of one key at which clients that have stopped tracking are first removed.
const CLIENTS_BEFORE_PRUNING: usize = 8;

/// Keys that clients have read, by name: as in Redis, whatever their database.
#[derive(Debug, Default)]
pub(super) struct Keys {
    by_name: HashMap<Bytes, Entry>,
    /// All names, so that a random one can be found quickly.
    names: Vec<Bytes>,
    items: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    /// Its index in `names`.
    place: usize,
    /// Sorted.
    clients: Vec<u64>,
    /// Number of clients at which stale ones are next removed.
    pruned_at: usize,
}

impl Keys {
    /// Remembers that a client has read a key. Clients that are not `live` are removed from time to time,
    /// because a client that leaves does not remove itself from its keys.
    pub(super) fn remember(&mut self, key: &Bytes, client: u64, live: impl Fn(u64) -> bool) {
        if !self.by_name.contains_key(key) {
            // Copied, because the argument may keep a whole request in memory.
            let name = Bytes::copy_from_slice(key);
            self.bytes += name.len();
            let entry = Entry {
                place: self.names.len(),
                clients: Vec::with_capacity(1),
                pruned_at: CLIENTS_BEFORE_PRUNING,
            };
            self.names.push(name.clone());
            self.by_name.insert(name, entry);
        }
        let Some(entry) = self.by_name.get_mut(key) else {
            return;
        };
        let Err(at) = entry.clients.binary_search(&client) else {
            return;
        };
        entry.clients.insert(at, client);
        self.items += 1;
        if entry.clients.len() >= entry.pruned_at {
            let before = entry.clients.len();
            entry.clients.retain(|client| live(*client));
            self.items -= before - entry.clients.len();
            entry.pruned_at = CLIENTS_BEFORE_PRUNING.max(2 * entry.clients.len());
        }
    }

    /// Forgets a key. Returns the clients that have read it.
    pub(super) fn forget(&mut self, key: &[u8]) -> Vec<u64> {
        let Some((name, entry)) = self.by_name.remove_entry(key) else {
            return Vec::new();
        };
        self.names.swap_remove(entry.place);
        if let Some(moved) = self.names.get(entry.place)
            && let Some(moved) = self.by_name.get_mut(moved)
        {
            moved.place = entry.place;
        }
        self.items -= entry.clients.len();
        self.bytes -= name.len();
        self.by_name.shrink_if_sparse();
        self.names.shrink_if_sparse();
        entry.clients
    }

    /// Forgets all keys.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The name at an index below [`Self::len`].
    pub(super) fn name_at(&self, place: usize) -> Option<&Bytes> {
        self.names.get(place)
    }

    /// The number of keys.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The number of clients of all keys together.
    pub(super) fn items(&self) -> usize {
        self.items
    }

    /// Bytes of the names.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(key: &'static str) -> Bytes {
        Bytes::from_static(key.as_bytes())
    }

    #[test]
    fn a_key_is_forgotten_with_its_clients() {
        let mut keys = Keys::default();
        for (key, client) in [("a", 2), ("b", 2), ("a", 1), ("a", 2), ("long", 3)] {
            keys.remember(&name(key), client, |_| true);
        }
        assert_eq!((keys.len(), keys.items(), keys.bytes()), (3, 4, 6));
        assert_eq!(keys.forget(b"a"), [1, 2]);
        assert!(keys.forget(b"a").is_empty());
        assert_eq!((keys.len(), keys.items(), keys.bytes()), (2, 2, 5));
        // Another name has taken its place.
        assert_eq!(keys.name_at(0), Some(&name("long")));
        assert_eq!(keys.forget(b"long"), [3]);
        assert_eq!(keys.name_at(0), Some(&name("b")));
        assert_eq!(keys.forget(b"b"), [2]);
        assert_eq!((keys.len(), keys.items(), keys.bytes()), (0, 0, 0));
    }

    #[test]
    fn clients_that_are_gone_do_not_add_up() {
        let mut keys = Keys::default();
        for client in 0..10_000 {
            keys.remember(&name("a"), client, |other| other % 1000 == 0);
            assert!(keys.items() <= 2 * 10 + CLIENTS_BEFORE_PRUNING);
        }
        let clients = keys.forget(b"a");
        assert!((0..10).all(|number| clients.contains(&(number * 1000))));
    }
}
