//! Keys that the server knows to be empty without reading them.
//!
//! On a cluster, the servers report to each other which keys have become ready, in a log
//! ([`quoin_data::cluster::relay`]) that a server *follows* while its clients wait. A key is *quiet*
//! if a batch of this server found it empty or left it empty, and since then neither this server nor
//! the log has named anything that may have filled it. A client that begins to wait for a quiet key
//! need not read it.
//!
//! A server learns of another's push a moment later. So a batch that has to know which key comes
//! first also reads the unread end of the log, in its own transaction. Without that, a quiet key may
//! decide that a client waits, but never that it gets nothing, or which key serves it.
//!
//! If this server is the only writer, it follows no log, and no key is quiet.

use std::collections::HashMap;

use quoin_base::sparse::Sparse;
use quoin_data::cluster::relay::LogReader;
use quoin_data::keyspace::key::ClientKey;

/// What is known of keys that clients wait for, or did recently.
#[derive(Default)]
pub(super) struct QuietKeys {
    keys: HashMap<ClientKey, Known>,
    /// How far this server has read the log. `None` if it does not follow it.
    log_reader: Option<LogReader>,
    /// How often a key may have been filled so far. Each time has a number.
    fills: u64,
    /// The last time that any key may have been filled.
    last_fill_of_all: u64,
}

#[derive(Default)]
struct Known {
    is_quiet: bool,
    /// The last time that the key may have been filled.
    last_fill: u64,
    /// Whether a client has waited for it since keys were last forgotten.
    is_recent: bool,
}

impl QuietKeys {
    /// How often a key may have been filled so far.
    pub(super) fn fills(&self) -> u64 {
        self.fills
    }

    /// How far the log was read. `None` if this server does not follow it.
    pub(super) fn log_reader(&self) -> Option<&LogReader> {
        self.log_reader.as_ref()
    }

    /// Whether any key is watched for fills.
    pub(super) fn is_any_known(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Records fills of a key from now on. Call it before a client's command reads the key, and
    /// when the client begins to wait. A key that was not known counts as just filled, because it may
    /// have been filled before.
    pub(super) fn expect(&mut self, key: ClientKey) {
        let fills = &mut self.fills;
        let known = self.keys.entry(key).or_insert_with(|| {
            *fills += 1;
            Known {
                last_fill: *fills,
                ..Known::default()
            }
        });
        known.is_recent = true;
    }

    pub(super) fn is_quiet(&self, key: &ClientKey) -> bool {
        self.log_reader.is_some() && self.keys.get(key).is_some_and(|key| key.is_quiet)
    }

    /// Whether a key may have been filled after the first `fills`.
    pub(super) fn was_filled_since(&self, key: &ClientKey, fills: u64) -> bool {
        let known = self.keys.get(key);
        self.last_fill_of_all > fills || known.is_none_or(|known| known.last_fill > fills)
    }

    /// Records that a batch found or left a key empty. The batch began after the first `fills`.
    pub(super) fn note_empty(&mut self, key: &ClientKey, fills: u64) {
        if self.log_reader.is_none() || self.was_filled_since(key, fills) {
            return;
        }
        if let Some(known) = self.keys.get_mut(key) {
            known.is_quiet = true;
        }
    }

    /// Records that a key may have been filled.
    pub(super) fn note_filled(&mut self, key: &ClientKey) {
        if let Some(known) = self.keys.get_mut(key) {
            self.fills += 1;
            known.last_fill = self.fills;
            known.is_quiet = false;
        }
    }

    /// Records that these keys may have been filled.
    pub(super) fn note_filled_where(&mut self, may_be_filled: impl Fn(&ClientKey) -> bool) {
        self.fills += 1;
        for (key, known) in &mut self.keys {
            if may_be_filled(key) {
                known.last_fill = self.fills;
                known.is_quiet = false;
            }
        }
    }

    /// Records that any key may have been filled.
    pub(super) fn note_all_filled(&mut self) {
        self.fills += 1;
        self.last_fill_of_all = self.fills;
        for known in self.keys.values_mut() {
            known.is_quiet = false;
        }
    }

    /// Records how far the log was read.
    pub(super) fn note_read(&mut self, reader: &LogReader) {
        if self.log_reader.is_some() {
            self.log_reader = Some(reader.clone());
        }
    }

    /// Begins to follow the log. All keys may have been filled before.
    pub(super) fn begin_following(&mut self, reader: &LogReader) {
        self.log_reader = Some(reader.clone());
        self.note_all_filled();
    }

    /// Stops following the log.
    pub(super) fn end_following(&mut self) {
        self.log_reader = None;
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
