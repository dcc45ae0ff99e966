//! The tracked keys: which clients are to be told when a key changes.

use std::collections::HashMap;

use bytes::Bytes;

use quoin_base::sparse::Sparse;

/// Clients of one key from which those that track no more are removed first.
const CLIENTS_BEFORE_PRUNING: usize = 8;

/// Keys that clients have read, by name: as in Redis, whatever their database.
#[derive(Debug, Default)]
pub(super) struct Keys {
    by_name: HashMap<Bytes, Entry>,
    /// All names, so that a random one is found quickly.
    names: Vec<Bytes>,
    items: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    /// Its place in `names`.
    place: usize,
    /// In order.
    clients: Vec<u64>,
    /// Before it has so many clients, none are removed.
    pruned_at: usize,
}

impl Keys {
    /// Remembers that a client has read a key. Clients of the key that are not `live` are forgotten now
    /// and then: those that are gone are not looked for when they leave.
    pub(super) fn remember(&mut self, key: &Bytes, client: u64, live: impl Fn(u64) -> bool) {
        if !self.by_name.contains_key(key) {
            // A copy: the argument may keep a whole request in memory.
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

    /// The name at a place, of as many as there are keys.
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
