//! What is known about awaited keys without reading them ([`super::quiet`]). Arriving clients and
//! batches that wake clients use it. Batches and the relay, which follows the log of other servers, update
//! it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::waiter::Stage;
use super::{Cursor, Waiter, Waiters};
use quoin_data::cluster::relay::{LogReader, News};
use quoin_data::keyspace::key::ClientKey;
use quoin_data::unit::host::Change;

impl Waiters {
    /// Makes a client wait without reading its keys, if all of them are quiet.
    pub(crate) fn park_quietly(&self, waiter: &Arc<Waiter>) -> bool {
        if !self.has_other_writers || !waiter.spec.takes_first {
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

    /// Records from now on what may fill the keys of a waiter. Call it before its command first
    /// runs.
    pub(crate) fn expect(&self, waiter: &Waiter) {
        if self.has_other_writers {
            let mut queues = self.queues();
            for key in waiter.client_keys() {
                queues.quiet.expect(key);
            }
        }
    }

    /// The quiet keys of a waiter.
    pub(crate) fn quiet_keys(&self, waiter: &Waiter) -> HashSet<Bytes> {
        if !self.has_other_writers || !waiter.spec.takes_first {
            return HashSet::new();
        }
        let queues = self.queues();
        let keys = waiter.client_keys();
        let quiet = keys.filter(|key| queues.quiet.is_quiet(key));
        quiet.map(|key| key.key).collect()
    }

    /// How far this server has read the log. `None` if it does not follow it.
    pub(crate) fn log_reader(&self) -> Option<LogReader> {
        self.queues().quiet.log_reader().cloned()
    }

    /// How often an awaited key may have been filled so far.
    pub(crate) fn fills(&self) -> u64 {
        self.queues().quiet.fills()
    }

    /// Returns when a client waits and this server does not follow the log.
    pub(crate) async fn log_wanted(&self) {
        self.log_wanted.notified().await;
    }

    /// Whether a client waits, or did recently, so that the log is needed.
    pub(crate) fn need_log(&self) -> bool {
        let queues = self.queues();
        queues.quiet.log_reader().is_some() || !queues.by_key.is_empty()
    }

    /// Whether this server must begin to follow the log.
    pub(crate) fn must_follow_log(&self) -> bool {
        let queues = self.queues();
        queues.quiet.log_reader().is_none() && !queues.by_key.is_empty()
    }

    /// Records that this server follows the log from here on, so that other servers report every key that
    /// they make ready.
    pub(crate) fn begin_following(&self, reader: &LogReader) {
        let mut queues = self.queues();
        queues.quiet.begin_following(reader);
        self.schedule_all(&mut queues, |_| true);
    }

    /// Forgets keys that no client has waited for recently. Stops following the log if none are left, and returns
    /// whether this server still follows it.
    pub(crate) fn keep_following(&self) -> bool {
        let mut queues = self.queues();
        let queues = &mut *queues;
        let by_key = &queues.by_key;
        queues
            .quiet
            .forget_unawaited(|key| by_key.contains_key(key));
        if !queues.quiet.is_any_known() {
            queues.quiet.end_following();
        }
        queues.quiet.log_reader().is_some()
    }

    /// Processes what other servers have reported, up to here.
    pub(crate) fn process_news(&self, news: &News, reader: &LogReader) {
        let mut queues = self.queues();
        if news.ready_databases.is_empty() && !news.is_any_ready {
            for key in &news.ready {
                queues.quiet.note_filled(key);
                if queues.by_key.contains_key(key) {
                    queues.schedule(key.clone(), Cursor::START);
                    self.scheduled.notify_one();
                }
            }
        } else {
            queues.quiet.note_filled_where(|key| news.concerns(key));
            self.schedule_all(&mut queues, |key| news.concerns(key));
        }
        queues.quiet.note_read(reader);
    }

    /// Records that other servers may have made keys ready without reporting it.
    pub(crate) fn note_missed(&self) {
        let mut queues = self.queues();
        queues.quiet.note_all_filled();
        self.schedule_all(&mut queues, |_| true);
    }

    /// Records that a batch is about to commit a change that makes these keys ready, or has just
    /// done so. A batch that checked meanwhile may have found them as they were.
    pub(crate) fn note_ready<'k>(&self, keys: impl Iterator<Item = &'k ClientKey>) {
        if !self.has_other_writers {
            return;
        }
        let mut queues = self.queues();
        for key in keys {
            queues.quiet.note_filled(key);
        }
    }

    /// Records that a batch has committed changes of these keys, and which of them it left empty. The batch began after
    /// the first `fills`.
    pub(crate) fn note_committed(&self, changes: &HashMap<ClientKey, bool>, fills: u64) {
        if changes.is_empty() {
            return;
        }
        let mut queues = self.queues();
        for (key, is_empty) in changes {
            match is_empty {
                true => queues.quiet.note_empty(key, fills),
                // Again: a batch that began during the commit may have found the key as it was.
                false => queues.quiet.note_filled(key),
            }
        }
    }

    /// Records that a batch has found keys empty. It began after the first `fills`.
    pub(crate) fn note_empty(&self, keys: &[ClientKey], fills: u64) {
        if keys.is_empty() {
            return;
        }
        let mut queues = self.queues();
        for key in keys {
            queues.quiet.note_empty(key, fills);
        }
    }

    /// Records that a batch of this server has given a database a different set of keys.
    pub(crate) fn note_new_namespace(&self, database: u32) {
        let mut queues = self.queues();
        queues
            .quiet
            .note_filled_where(|key| key.database == database);
    }

    /// The changed keys that clients wait for or that are quiet.
    pub(crate) fn concerned(&self, changes: &[Change]) -> HashSet<ClientKey> {
        if changes.is_empty() || (self.is_empty() && !self.has_other_writers) {
            return HashSet::new();
        }
        let queues = self.queues();
        let is_concerned =
            |key: &&ClientKey| queues.quiet.is_quiet(key) || queues.by_key.contains_key(*key);
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
            if !is_empty {
                queues.quiet.note_filled(key);
            }
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
                || (self.has_other_writers && !queues.quiet.is_quiet(key))
        };
        keys.filter(may_have).map(|key| key.key).collect()
    }
}
