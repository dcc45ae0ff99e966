//! Keys that the server knows to be empty without reading them.
//!
//! On a cluster each awaited key has a wake-up watch. While its watch is armed and has not fired, the key is
//! unchanged since it was read. If it was empty then, it is *quiet*: a client that comes to wait for it need not read
//! it. This is a belief, not a fact, because a push by another server becomes known a moment later. That is safe,
//! because the watch then wakes the waiting clients. So a belief may decide that a client waits. It must never decide
//! that a client gets nothing, or which key serves it.
//!
//! If this server is the only writer, there are no wake-up watches, and no key is quiet.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Notify;

use quoin_base::sparse::Sparse;
use quoin_data::keyspace::key::ClientKey;

/// The keys that wake-up watches follow.
#[derive(Default)]
pub(super) struct QuietKeys {
    keys: HashMap<ClientKey, Followed>,
    /// How often a key has turned out not to be quiet.
    alarms: u64,
}

/// A key that a wake-up watch follows.
#[derive(Default)]
struct Followed {
    is_quiet: bool,
    /// Whether a batch of this server has changed it since the watch began its latest read.
    is_changed_here: bool,
    /// Whether a client has begun to wait for it since this was last checked.
    is_new_awaited: bool,
    /// Its last alarm.
    alarm: u64,
    /// Its last alarm before the watch began its latest read.
    alarm_before_look: u64,
    /// Notified when a batch of this server has committed a change of it.
    changed: Arc<Notify>,
}

impl Followed {
    fn alarm(&mut self, alarms: &mut u64) {
        *alarms += 1;
        self.is_quiet = false;
        self.alarm = *alarms;
    }
}

impl QuietKeys {
    /// The number of alarms so far.
    pub(super) fn alarms(&self) -> u64 {
        self.alarms
    }

    pub(super) fn is_followed(&self, key: &ClientKey) -> bool {
        self.keys.contains_key(key)
    }

    /// Records that a client begins to wait for a key. Returns whether a wake-up watch follows the key.
    pub(super) fn note_awaited(&mut self, key: &ClientKey) -> bool {
        let followed = self.keys.get_mut(key);
        followed.is_some_and(|followed| {
            followed.is_new_awaited = true;
            true
        })
    }

    /// Whether a client has begun to wait for a key since the previous call.
    pub(super) fn take_new_awaited(&mut self, key: &ClientKey) -> bool {
        let followed = self.keys.get_mut(key);
        followed.is_some_and(|followed| std::mem::take(&mut followed.is_new_awaited))
    }

    pub(super) fn is_quiet(&self, key: &ClientKey) -> bool {
        self.keys.get(key).is_some_and(|key| key.is_quiet)
    }

    /// Whether a key has had an alarm after the first `alarms`.
    pub(super) fn has_alarm_since(&self, key: &ClientKey, alarms: u64) -> bool {
        self.keys.get(key).is_some_and(|key| key.alarm > alarms)
    }

    /// Records that a wake-up watch begins to follow a key. Returns an object that is notified when a batch of this
    /// server commits a change of the key.
    pub(super) fn follow(&mut self, key: &ClientKey) -> Arc<Notify> {
        let followed = self.keys.entry(key.clone()).or_default();
        Arc::clone(&followed.changed)
    }

    /// Records that a wake-up watch is about to read a key.
    pub(super) fn begin_look(&mut self, key: &ClientKey) {
        if let Some(followed) = self.keys.get_mut(key) {
            followed.is_changed_here = false;
            followed.alarm_before_look = followed.alarm;
        }
    }

    /// Records that a wake-up watch has read a key and watches it. Returns whether the watch must read it again,
    /// because it may have done so before this server added something to the key.
    pub(super) fn end_look(&mut self, key: &ClientKey, has_elements: bool, is_quiet: bool) -> bool {
        let Some(followed) = self.keys.get_mut(key) else {
            return false;
        };
        let has_alarm = followed.alarm > followed.alarm_before_look;
        followed.is_quiet = is_quiet && !has_alarm;
        if has_elements {
            followed.alarm(&mut self.alarms);
        }
        is_quiet && has_alarm
    }

    /// Records that the watch of a key has fired. Returns whether this server's own change of the key may be the
    /// cause.
    pub(super) fn fired(&mut self, key: &ClientKey) -> bool {
        let Some(followed) = self.keys.get_mut(key) else {
            return false;
        };
        if !followed.is_changed_here {
            followed.alarm(&mut self.alarms);
        }
        followed.is_changed_here
    }

    /// Records that a batch of this server is about to commit a change of a key.
    pub(super) fn changed_here(&mut self, key: &ClientKey, is_empty: bool) {
        if let Some(followed) = self.keys.get_mut(key) {
            followed.is_changed_here = true;
            if !is_empty {
                followed.alarm(&mut self.alarms);
            }
        }
    }

    /// Records that a batch of this server has committed a change of a key. A read during the commit may have found
    /// the key in its previous state. A client that comes after the reply must not find it quiet.
    pub(super) fn note_committed(&mut self, key: &ClientKey, is_empty: bool) {
        if let Some(followed) = self.keys.get_mut(key) {
            if !is_empty {
                followed.alarm(&mut self.alarms);
            }
            followed.changed.notify_one();
        }
    }

    /// Records that a batch of this server has given a database a different set of keys. The watches learn of it a
    /// moment later, and read again.
    pub(super) fn note_new_namespace(&mut self, database: u32) {
        let keys = self.keys.iter_mut();
        for (_, followed) in keys.filter(|(key, _)| key.database == database) {
            followed.alarm(&mut self.alarms);
        }
    }

    /// Records that no wake-up watch follows a key any more.
    pub(super) fn forget(&mut self, key: &ClientKey) {
        self.keys.remove(key);
        self.keys.shrink_if_sparse();
    }
}
