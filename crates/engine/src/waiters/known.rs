//! What is known about awaited keys without reading them. Arriving clients and batches that wake clients use it, and
//! the wake-up watches learn it ([`super::quiet`]).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tokio::sync::Notify;

use super::waiter::Stage;
use super::{Waiter, Waiters};
use quoin_data::keyspace::key::ClientKey;
use quoin_data::unit::host::Change;

impl Waiters {
    /// Makes a client wait without reading its keys, if all of them are quiet.
    pub(crate) fn park_quietly(&self, waiter: &Arc<Waiter>) -> bool {
        if !self.has_wake_watches || !waiter.spec.takes_first {
            return false;
        }
        let mut queues = self.queues();
        let mut state = waiter.state();
        if state.stage != Stage::Away || state.is_given_up || state.position.is_some() {
            return false;
        }
        if !waiter.client_keys().all(|key| queues.quiet.is_quiet(&key)) {
            return false;
        }
        queues.last_position += 1;
        let position = queues.last_position;
        state.position = Some(position);
        state.stage = Stage::Waiting;
        waiter.note_unseen();
        self.put_in(&mut queues, waiter, position);
        self.parked_quietly.fetch_add(1, Ordering::SeqCst);
        true
    }

    /// Number of clients that have begun to wait without a batch.
    pub(crate) fn parked_quietly(&self) -> u64 {
        self.parked_quietly.load(Ordering::SeqCst)
    }

    /// The keys of a waiter that are known to be empty without reading them.
    pub(crate) fn quiet_keys(&self, waiter: &Waiter) -> HashSet<Bytes> {
        if !self.has_wake_watches || !waiter.spec.takes_first {
            return HashSet::new();
        }
        let queues = self.queues();
        let keys = waiter.client_keys();
        let quiet: HashSet<Bytes> = keys
            .filter(|key| queues.quiet.is_quiet(key))
            .map(|key| key.key)
            .collect();
        if !quiet.is_empty() {
            waiter.note_unseen();
        }
        quiet
    }

    /// Number of alarms so far. A key that turns out not to be quiet raises one.
    pub(crate) fn alarms(&self) -> u64 {
        self.queues().quiet.alarms()
    }

    /// Records that a wake-up watch begins to follow a key. Returns an object that is notified when a batch of this
    /// server commits a change of the key.
    pub(crate) fn follow(&self, key: &ClientKey) -> Arc<Notify> {
        self.queues().quiet.follow(key)
    }

    /// Whether a client waits for a key, or has begun to wait since the previous call.
    pub(crate) fn was_awaited(&self, key: &ClientKey) -> bool {
        let mut queues = self.queues();
        queues.quiet.take_new_awaited(key) || queues.by_key.contains_key(key)
    }

    /// Records that a batch has committed changes of these keys, and which of them are now empty.
    pub(crate) fn note_committed(&self, changes: &HashMap<ClientKey, bool>) {
        if changes.is_empty() {
            return;
        }
        let mut queues = self.queues();
        for (key, is_empty) in changes {
            queues.quiet.note_committed(key, *is_empty);
        }
    }

    /// Records that a batch of this server has given a database a different set of keys.
    pub(crate) fn note_new_namespace(&self, database: u32) {
        self.queues().quiet.note_new_namespace(database);
    }

    /// Records that a wake-up watch is about to read a key.
    pub(crate) fn begin_look(&self, key: &ClientKey) {
        self.queues().quiet.begin_look(key);
    }

    /// Records that a wake-up watch has read a key. `is_quiet`: it has no elements and is watched. Returns whether
    /// the watch must read it again, because it may have done so before this server added something to the key.
    pub(crate) fn end_look(&self, key: &ClientKey, has_elements: bool, is_quiet: bool) -> bool {
        self.queues().quiet.end_look(key, has_elements, is_quiet)
    }

    /// Records that the watch of a key has fired. Returns whether this server's own change of the key may be the
    /// cause.
    pub(crate) fn watch_fired(&self, key: &ClientKey) -> bool {
        self.queues().quiet.fired(key)
    }

    /// Stops following a key, unless a client waits for it.
    pub(crate) fn forget_if_unawaited(&self, key: &ClientKey) -> bool {
        let mut queues = self.queues();
        let is_unawaited = !queues.by_key.contains_key(key);
        if is_unawaited {
            queues.quiet.forget(key);
        }
        is_unawaited
    }

    /// The changed keys that clients wait for now or did recently.
    pub(crate) fn concerned(&self, changes: &[Change]) -> HashSet<ClientKey> {
        if changes.is_empty() || (self.is_empty() && !self.has_wake_watches) {
            return HashSet::new();
        }
        let queues = self.queues();
        let is_concerned =
            |key: &&ClientKey| queues.quiet.is_followed(key) || queues.by_key.contains_key(*key);
        let touched = changes.iter().filter_map(Change::watched_key);
        touched.filter(is_concerned).cloned().collect()
    }

    /// Records that a batch is about to commit changes of these keys, and which of them it leaves empty.
    pub(crate) fn note_changes(&self, changes: &HashMap<ClientKey, bool>) {
        if changes.is_empty() {
            return;
        }
        let mut queues = self.queues();
        for (key, is_empty) in changes {
            queues.quiet.changed_here(key, *is_empty);
            queues.note_change(key, *is_empty);
        }
    }

    /// The command of the oldest waiter of a key.
    pub(crate) fn first_command(&self, key: &ClientKey) -> Option<Arc<Waiter>> {
        let queues = self.queues();
        let mut of_key = queues.by_key.get(key)?.queues.iter();
        of_key.find_map(|queue| queue.waiters.values().next().cloned())
    }

    /// The keys of a waiter that may have something once the keys in `ready` are ready. Includes keys that other
    /// servers may have filled, as far as this server knows.
    pub(crate) fn keys_to_try(
        &self,
        waiter: &Waiter,
        ready: &HashSet<ClientKey>,
    ) -> HashSet<Bytes> {
        let queues = self.queues();
        let keys = waiter.client_keys();
        let may_have = |key: &ClientKey| {
            ready.contains(key)
                || queues.is_suspect(key)
                || (self.has_wake_watches && !queues.quiet.is_quiet(key))
        };
        keys.filter(may_have).map(|key| key.key).collect()
    }
}
