//! WATCH within one server: marks the clients whose watched keys have changed.
//!
//! At EXEC the store decides, by comparing fingerprints
//! ([`fingerprint`](quoin_data::unit::context::ReadContext::fingerprint)), because that covers the changes of all
//! servers. A fingerprint does not show a key that was created and removed between WATCH and EXEC, which Redis counts
//! as a change. This registry shows it for changes by this server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;

use quoin_base::sparse::Sparse;
use quoin_data::keyspace::key::ClientKey;
use quoin_data::unit::signals::{Exchanged, WatchedKeys};

/// Set when a key that the client watches has changed.
pub type Touched = Arc<AtomicBool>;

/// All watched keys of this server's clients.
#[derive(Debug, Default)]
pub struct Watchers {
    by_key: Mutex<HashMap<ClientKey, Vec<Weak<AtomicBool>>>>,
    /// Number of watched keys. Read without the lock.
    count: AtomicUsize,
}

impl Watchers {
    fn by_key(&self) -> MutexGuard<'_, HashMap<ClientKey, Vec<Weak<AtomicBool>>>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets `touched` on each change of a key from now on, until [`Self::forget`].
    pub fn watch(&self, key: ClientKey, touched: &Touched) {
        let mut by_key = self.by_key();
        by_key.entry(key).or_default().push(Arc::downgrade(touched));
        self.count.store(by_key.len(), Ordering::SeqCst);
    }

    /// Stops watching keys for the client of `touched`.
    pub fn forget(&self, keys: impl IntoIterator<Item = ClientKey>, touched: &Touched) {
        let mut by_key = self.by_key();
        for key in keys {
            if let Some(flags) = by_key.get_mut(&key) {
                flags.retain(|flag| {
                    flag.strong_count() > 0 && !std::ptr::eq(flag.as_ptr(), Arc::as_ptr(touched))
                });
                if flags.is_empty() {
                    by_key.remove(&key);
                }
            }
        }
        by_key.shrink_if_sparse();
        self.count.store(by_key.len(), Ordering::SeqCst);
    }

    /// Whether no key is watched.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Marks the clients that watch these changed keys.
    pub(super) fn touch<'k>(&self, keys: impl Iterator<Item = &'k ClientKey>) {
        let by_key = self.by_key();
        for flag in keys.filter_map(|key| by_key.get(key)).flatten() {
            if let Some(flag) = flag.upgrade() {
                flag.store(true, Ordering::SeqCst);
            }
        }
    }

    /// Marks clients after a database got another namespace (FLUSHDB, SWAPDB). The command itself has compared the
    /// keys that were watched when it ran. Keys watched since then all count as changed, because their previous state
    /// is unknown.
    pub(super) fn touch_later(&self, exchanged: &Exchanged) {
        let by_key = self.by_key();
        let is_later = |key: &ClientKey| {
            key.database == exchanged.database && !exchanged.checked.contains(&key.key)
        };
        let later = by_key.iter().filter(|(key, _)| is_later(key));
        for flag in later.flat_map(|(_, flags)| flags) {
            if let Some(flag) = flag.upgrade() {
                flag.store(true, Ordering::SeqCst);
            }
        }
    }
}

impl WatchedKeys for Watchers {
    fn of_database(&self, database: u32) -> Vec<Bytes> {
        if self.is_empty() {
            return Vec::new();
        }
        let by_key = self.by_key();
        let keys = by_key.keys().filter(|key| key.database == database);
        keys.map(|key| key.key.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn key(name: &'static str) -> ClientKey {
        ClientKey {
            database: 0,
            key: Bytes::from_static(name.as_bytes()),
        }
    }

    #[test]
    fn a_change_is_noted_by_those_who_watch_the_key() {
        let watchers = Watchers::default();
        let (first, second) = (Touched::default(), Touched::default());
        watchers.watch(key("a"), &first);
        watchers.watch(key("b"), &second);
        watchers.touch([key("a"), key("c")].iter());
        assert!(first.load(Ordering::SeqCst));
        assert!(!second.load(Ordering::SeqCst));
    }

    #[test]
    fn keys_that_are_watched_while_their_database_is_exchanged_count_as_changed() {
        let watchers = Watchers::default();
        let (before, meanwhile) = (Touched::default(), Touched::default());
        watchers.watch(key("a"), &before);
        let checked = watchers.of_database(0).into_iter().collect();
        watchers.watch(key("b"), &meanwhile);
        let exchanged = |database, checked| Exchanged { database, checked };
        watchers.touch_later(&exchanged(1, Default::default()));
        assert!(!meanwhile.load(Ordering::SeqCst));
        watchers.touch_later(&exchanged(0, checked));
        assert!(!before.load(Ordering::SeqCst));
        assert!(meanwhile.load(Ordering::SeqCst));
    }

    #[test]
    fn a_key_that_was_forgotten_is_not_watched_any_more() {
        let watchers = Watchers::default();
        let (first, second) = (Touched::default(), Touched::default());
        watchers.watch(key("a"), &first);
        watchers.watch(key("a"), &second);
        watchers.forget([key("a")], &first);
        watchers.touch([key("a")].iter());
        assert!(!first.load(Ordering::SeqCst));
        assert!(second.load(Ordering::SeqCst));
        watchers.forget([key("a")], &second);
        assert!(watchers.is_empty());
    }
}
