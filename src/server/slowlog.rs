//! The slow log: the last commands that took longer than `slowlog-log-slower-than`.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::clients::ClientRecord;
use crate::commands::arguments::is_word;
use crate::limits::{SLOWLOG_ARGUMENT_BYTES_MAX, SLOWLOG_ARGUMENTS_MAX};

/// A slow command.
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
    pub(super) fn record(
        &self,
        arguments: &[Bytes],
        client: &ClientRecord,
        time_s: i64,
        duration_us: i64,
        entries_max: u64,
    ) {
        let arguments = trimmed(&without_secrets(arguments));
        let name = client.details().name.clone();
        let mut state = self.lock();
        let id = state.next_id;
        state.next_id += 1;
        state.entries.push_front(SlowlogEntry {
            id,
            time_s,
            duration_us,
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

/// The arguments with `(redacted)` instead of passwords, as in Redis.
fn without_secrets(arguments: &[Bytes]) -> Cow<'_, [Bytes]> {
    let word = |at: usize| arguments.get(at).map_or(&b""[..], Bytes::as_ref);
    let is_secret: &dyn Fn(usize) -> bool = if is_word(word(0), "auth") {
        &|at| at >= 1
    } else if is_word(word(0), "hello") {
        &|at| (1..=2).any(|back| at >= back && is_word(word(at - back), "auth"))
    } else if is_word(word(0), "config") && is_word(word(1), "set") {
        &|at| {
            at >= 3
                && SECRET_PARAMETERS
                    .iter()
                    .any(|name| is_word(word(at - 1), name))
        }
    } else {
        return Cow::Borrowed(arguments);
    };
    let shown = arguments.iter().enumerate().map(|(at, argument)| {
        if is_secret(at) {
            Bytes::from_static(b"(redacted)")
        } else {
            argument.clone()
        }
    });
    Cow::Owned(shown.collect())
}

/// Parameters whose values are redacted in CONFIG SET.
const SECRET_PARAMETERS: &[&str] = &["requirepass", "masterauth", "masteruser"];

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
    fn passwords_are_not_shown() {
        for (given, shown) in [
            ("AUTH a b", "AUTH (redacted) (redacted)"),
            (
                "HELLO 3 AUTH u p SETNAME n",
                "HELLO 3 AUTH (redacted) (redacted) SETNAME n",
            ),
            (
                "CONFIG SET timeout 1 requirepass p",
                "CONFIG SET timeout 1 requirepass (redacted)",
            ),
            ("LPUSH auth a", "LPUSH auth a"),
        ] {
            let words: Vec<Bytes> = given
                .split(' ')
                .map(|word| word.to_owned().into())
                .collect();
            let words: Vec<_> = without_secrets(&words).iter().cloned().collect();
            assert_eq!(words.join(&b' '), shown.as_bytes());
        }
    }

    #[test]
    fn arguments_at_the_limits_are_kept_whole() {
        let whole = Bytes::from(vec![b'x'; 128]);
        let many: Vec<Bytes> = std::iter::repeat_n(whole, 32).collect();
        assert_eq!(trimmed(&many), many);
    }
}
