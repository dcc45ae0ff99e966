//! The log of refusals (ACL LOG), and its counters.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::check::Reason;
use quoin_base::counter::Counter;
use quoin_base::limits::ACL_LOG_NAME_BYTES_MAX;

/// Equal events within this time are one entry (Redis: `ACL_LOG_GROUPING_MAX_TIME_DELTA`).
const GROUPING_MAX_MS: i64 = 60_000;
/// Number of newest entries that are searched for an equal one.
const GROUPING_ENTRIES_MAX: usize = 10;

/// The context of a refused command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// A client sent it.
    Toplevel,
    /// It was part of a transaction.
    Multi,
    /// A script called it.
    Lua,
}

impl Context {
    /// Its name in ACL LOG.
    pub fn name(self) -> &'static str {
        match self {
            Context::Toplevel => "toplevel",
            Context::Multi => "multi",
            Context::Lua => "lua",
        }
    }
}

/// A refusal, as it is logged.
#[derive(Debug, Clone)]
pub struct Event {
    /// Why it was refused.
    pub reason: Reason,
    /// The context of the command.
    pub context: Context,
    /// The command, the key or the channel.
    pub object: Bytes,
    /// The user's name.
    pub username: Bytes,
    /// The client's line of CLIENT LIST.
    pub client: String,
}

/// An entry: one or several equal refusals.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The refusal. Its client is the latest one.
    pub event: Event,
    /// Number of refusals.
    pub count: i64,
    /// The number of the entry since the server started.
    pub id: i64,
    /// The first time, in milliseconds since the Unix epoch.
    pub created_ms: i64,
    /// The last time.
    pub updated_ms: i64,
}

impl Entry {
    fn is_same(&self, event: &Event, now_ms: i64) -> bool {
        self.event.reason == event.reason
            && self.event.context == event.context
            && (now_ms - self.updated_ms).abs() <= GROUPING_MAX_MS
            && self.event.object == event.object
            && self.event.username == event.username
    }
}

/// The log of refusals, and its counters for INFO.
#[derive(Debug, Default)]
pub struct AclLog {
    state: Mutex<State>,
    /// Wrong names or passwords.
    pub denied_auth: Counter,
    /// Commands that were refused.
    pub denied_commands: Counter,
    /// Keys that were refused.
    pub denied_keys: Counter,
    /// Channels that were refused.
    pub denied_channels: Counter,
}

#[derive(Debug, Default)]
struct State {
    /// The newest first.
    entries: VecDeque<Entry>,
    next_id: i64,
}

impl AclLog {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an event and adds it to the log, to an equal entry if there is one. Forgets the oldest
    /// entries beyond `entries_max`.
    pub fn record(&self, mut event: Event, now_ms: i64, entries_max: u64) {
        let counter = match event.reason {
            Reason::Auth => &self.denied_auth,
            Reason::Command => &self.denied_commands,
            Reason::Key => &self.denied_keys,
            Reason::Channel => &self.denied_channels,
        };
        counter.add(1);
        event.object = kept(&event.object);
        event.username = kept(&event.username);
        let mut state = self.lock();
        let mut newest = state.entries.iter().take(GROUPING_ENTRIES_MAX);
        let same = newest.position(|entry| entry.is_same(&event, now_ms));
        if let Some(mut entry) = same.and_then(|at| state.entries.remove(at)) {
            entry.event.client = event.client;
            entry.updated_ms = now_ms;
            entry.count += 1;
            state.entries.push_front(entry);
            return;
        }
        let id = state.next_id;
        state.next_id += 1;
        state.entries.push_front(Entry {
            event,
            count: 1,
            id,
            created_ms: now_ms,
            updated_ms: now_ms,
        });
        let entries_max = usize::try_from(entries_max).unwrap_or(usize::MAX);
        state.entries.truncate(entries_max);
    }

    /// The newest entries, the newest first.
    pub fn newest(&self, count: usize) -> Vec<Entry> {
        self.lock().entries.iter().take(count).cloned().collect()
    }

    /// Forgets all entries. The counters stay.
    pub fn reset(&self) {
        self.lock().entries = VecDeque::new();
    }
}

/// A bounded copy of a name. The original may keep a large buffer alive.
fn kept(name: &Bytes) -> Bytes {
    Bytes::copy_from_slice(name.get(..ACL_LOG_NAME_BYTES_MAX).unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_alike_is_one_entry_for_a_minute() {
        let log = AclLog::default();
        let record = |object: &'static str, now_ms: i64| {
            let event = Event {
                reason: Reason::Key,
                context: Context::Toplevel,
                object: object.into(),
                username: "u".into(),
                client: now_ms.to_string(),
            };
            log.record(event, now_ms, 2);
        };
        record("a", 0);
        record("b", 10);
        record("a", 60_000);
        let entries = log.newest(9);
        let seen = entries
            .iter()
            .map(|entry| (entry.id, entry.count, entry.event.client.as_str()));
        assert_eq!(seen.collect::<Vec<_>>(), [(0, 2, "60000"), (1, 1, "10")]);
        record("a", 120_001);
        let ids: Vec<i64> = log.newest(9).iter().map(|entry| entry.id).collect();
        assert_eq!(ids, [2, 0]);
        assert_eq!(log.denied_keys.get(), 4);
    }
}
