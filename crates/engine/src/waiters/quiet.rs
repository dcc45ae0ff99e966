//! Keys that the server knows to be empty without reading them.
//!
//! On a cluster, the servers report to each other which keys have become ready, in a log
//! ([`quoin_data::cluster::relay`]) that a server *hears* while its clients wait. A key is *quiet*
//! if a batch of this server found it empty or left it empty, and nothing has been heard or done
//! that may have filled it since. A client that begins to wait for a quiet key need not read it.
//!
//! A server hears of a push a moment later. So a batch that has to know which key comes first also
//! reads the end of the log that has not been heard yet, in its own transaction. Without that, a
//! quiet key may decide that a client waits, but never that it gets nothing, or which key serves
//! it.
//!
//! If this server is the only writer, it hears nothing, and no key is quiet.

use std::collections::HashMap;

use quoin_base::sparse::Sparse;
use quoin_data::cluster::relay::LogReader;
use quoin_data::keyspace::key::ClientKey;

/// What is known of keys that clients wait for, or did recently.
#[derive(Default)]
pub(super) struct QuietKeys {
    keys: HashMap<ClientKey, Known>,
    /// How far this server has heard the log. `None` if it does not listen.
    heard: Option<LogReader>,
    /// How often a key may have been filled so far. Each time has a number.
    alarms: u64,
    /// The last alarm of all keys.
    alarm_of_all: u64,
}

#[derive(Default)]
struct Known {
    is_quiet: bool,
    /// The key's last alarm.
    alarm: u64,
    /// Whether a client has waited for it since keys were last forgotten.
    is_recent: bool,
}

impl QuietKeys {
    /// The number of alarms so far.
    pub(super) fn alarms(&self) -> u64 {
        self.alarms
    }

    /// How far the log was heard. `None` if this server does not listen.
    pub(super) fn heard(&self) -> Option<&LogReader> {
        self.heard.as_ref()
    }

    /// Whether alarms of any key are noted.
    pub(super) fn is_any_known(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Records alarms of a key from now on. Call it before a client's command reads the key, and
    /// when the client begins to wait. A key that was not known gets an alarm, because it may have
    /// been filled before.
    pub(super) fn expect(&mut self, key: ClientKey) {
        let alarms = &mut self.alarms;
        let known = self.keys.entry(key).or_insert_with(|| {
            *alarms += 1;
            Known {
                alarm: *alarms,
                ..Known::default()
            }
        });
        known.is_recent = true;
    }

    pub(super) fn is_quiet(&self, key: &ClientKey) -> bool {
        self.heard.is_some() && self.keys.get(key).is_some_and(|key| key.is_quiet)
    }

    /// Whether a key may have been filled after the first `alarms`.
    pub(super) fn has_alarm_since(&self, key: &ClientKey, alarms: u64) -> bool {
        let known = self.keys.get(key);
        self.alarm_of_all > alarms || known.is_none_or(|known| known.alarm > alarms)
    }

    /// Records that a batch found or left a key empty. The batch began after the first `alarms`.
    pub(super) fn note_empty(&mut self, key: &ClientKey, alarms: u64) {
        if self.heard.is_none() || self.has_alarm_since(key, alarms) {
            return;
        }
        if let Some(known) = self.keys.get_mut(key) {
            known.is_quiet = true;
        }
    }

    /// Records that a key may have been filled.
    pub(super) fn alarm(&mut self, key: &ClientKey) {
        if let Some(known) = self.keys.get_mut(key) {
            self.alarms += 1;
            known.alarm = self.alarms;
            known.is_quiet = false;
        }
    }

    /// Records that these keys may have been filled.
    pub(super) fn alarm_where(&mut self, may_be_filled: impl Fn(&ClientKey) -> bool) {
        self.alarms += 1;
        for (key, known) in &mut self.keys {
            if may_be_filled(key) {
                known.alarm = self.alarms;
                known.is_quiet = false;
            }
        }
    }

    /// Records that any key may have been filled.
    pub(super) fn alarm_all(&mut self) {
        self.alarms += 1;
        self.alarm_of_all = self.alarms;
        for known in self.keys.values_mut() {
            known.is_quiet = false;
        }
    }

    /// Records how far the log was heard.
    pub(super) fn note_heard(&mut self, reader: &LogReader) {
        if self.heard.is_some() {
            self.heard = Some(reader.clone());
        }
    }

    /// Begins to listen. All keys may have been filled before.
    pub(super) fn begin_hearing(&mut self, reader: &LogReader) {
        self.heard = Some(reader.clone());
        self.alarm_all();
    }

    /// Ends listening.
    pub(super) fn end_hearing(&mut self) {
        self.heard = None;
    }

    /// Forgets keys that no client waits for, and that none has waited for since the previous call.
    pub(super) fn forget_unawaited(&mut self, is_awaited: impl Fn(&ClientKey) -> bool) {
        self.keys.retain(|key, known| {
            let is_awaited = is_awaited(key);
            std::mem::replace(&mut known.is_recent, is_awaited) || is_awaited
        });
        self.keys.shrink_if_sparse();
    }
}
