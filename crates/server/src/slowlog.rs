//! The slow log: the last commands that took longer than `slowlog-log-slower-than`.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::audit::without_secrets;
use crate::clients::{ClientRecord, cut};
use quoin_base::limits::{LOG_TEXT_BYTES_MAX, SLOWLOG_ARGUMENT_BYTES_MAX, SLOWLOG_ARGUMENTS_MAX};
use quoin_data::command::row::Row;

/// A slow command, as it ends.
pub(super) struct SlowCommand<'c> {
    /// Its row.
    pub(super) row: &'static Row,
    /// How long it took.
    pub(super) duration_us: i64,
    /// Its arguments, the command's name first.
    pub(super) arguments: &'c [Bytes],
    /// Who sent it.
    pub(super) client: &'c ClientRecord,
    /// The number of the client's database.
    pub(super) database: u32,
    /// The error that it replied.
    pub(super) error: Option<&'c str>,
}

/// A slow command in the log.
#[derive(Debug, Clone)]
pub(super) struct SlowlogEntry {
    /// Its number, unique until the server restarts.
    pub(super) id: i64,
    /// When it ended, in seconds since the Unix epoch.
    pub(super) time_s: i64,
    /// How long it took.
    pub(super) duration_us: i64,
    /// Its arguments, trimmed as Redis trims them.
    pub(super) arguments: Vec<Bytes>,
    /// The client's address.
    pub(super) address: String,
    /// The client's name.
    pub(super) name: String,
}

/// The slow log.
#[derive(Debug, Default)]
pub(super) struct Slowlog {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next_id: i64,
    /// The newest first.
    entries: VecDeque<SlowlogEntry>,
}

impl Slowlog {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a command and forgets the oldest beyond `entries_max`.
    pub(super) fn record(&self, command: &SlowCommand<'_>, time_s: i64, entries_max: u64) {
        let client = command.client;
        let arguments = trimmed(&without_secrets(command.arguments));
        // Copied, because the entry outlives the client.
        let name = cut(&client.details().name, LOG_TEXT_BYTES_MAX).to_owned();
        let mut state = self.lock();
        let id = state.next_id;
        state.next_id += 1;
        state.entries.push_front(SlowlogEntry {
            id,
            time_s,
            duration_us: command.duration_us,
            arguments,
            address: client.address.to_string(),
            name,
        });
        state
            .entries
            .truncate(usize::try_from(entries_max).unwrap_or(usize::MAX));
    }

    /// The newest entries, the newest first.
    pub(super) fn newest(&self, count: usize) -> Vec<SlowlogEntry> {
        self.lock().entries.iter().take(count).cloned().collect()
    }

    /// The number of entries.
    pub(super) fn count(&self) -> usize {
        self.lock().entries.len()
    }

    /// Forgets all entries.
    pub(super) fn reset(&self) {
        self.lock().entries.clear();
    }
}

/// Arguments as Redis's `slowlogCreateEntry` keeps them: their number and lengths are limited.
fn trimmed(arguments: &[Bytes]) -> Vec<Bytes> {
    let kept = if arguments.len() > SLOWLOG_ARGUMENTS_MAX {
        SLOWLOG_ARGUMENTS_MAX - 1
    } else {
        arguments.len()
    };
    let mut trimmed: Vec<Bytes> = arguments
        .iter()
        .take(kept)
        .map(
            |argument| match argument.get(..SLOWLOG_ARGUMENT_BYTES_MAX) {
                Some(beginning) if argument.len() > beginning.len() => {
                    let more = argument.len() - beginning.len();
                    let mut text = beginning.to_vec();
                    text.extend(format!("... ({more} more bytes)").into_bytes());
                    Bytes::from(text)
                }
                // A copy: the original may keep a large buffer alive.
                _ => Bytes::copy_from_slice(argument),
            },
        )
        .collect();
    if kept < arguments.len() {
        let more = arguments.len() - kept;
        trimmed.push(Bytes::from(format!("... ({more} more arguments)")));
    }
    trimmed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_arguments_and_many_arguments_are_trimmed() {
        let long = Bytes::from(vec![b'x'; 130]);
        let many: Vec<Bytes> = std::iter::repeat_n(long, 40).collect();
        let kept = trimmed(&many);
        assert_eq!(kept.len(), 32);
        assert!(kept[0].ends_with(b"xxx... (2 more bytes)"));
        assert_eq!(kept[31], "... (9 more arguments)");
    }

    #[test]
    fn arguments_at_the_limits_are_kept_whole() {
        let whole = Bytes::from(vec![b'x'; 128]);
        let many: Vec<Bytes> = std::iter::repeat_n(whole, 32).collect();
        assert_eq!(trimmed(&many), many);
    }
}
