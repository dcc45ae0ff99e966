//! Counters of the server, for INFO, LATENCY and SLOWLOG.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::commands::{Row, table};
use crate::counter::Counter;
use crate::limits::ERROR_CODES_MAX;

/// Buckets of a command's durations. The first ends at [`BUCKET_FIRST_NS`], each next one at twice the
/// time of the one before it. The last has no end.
pub(super) const DURATION_BUCKETS: usize = 32;

/// Where the first bucket of durations ends, in nanoseconds.
const BUCKET_FIRST_NS: u64 = 1024;

/// What one command or subcommand has done since the start or since CONFIG RESETSTAT.
#[derive(Debug, Default)]
pub(super) struct CommandStatistics {
    /// How often it was executed.
    pub(super) calls: Counter,
    /// Microseconds that all calls took. A command on data counts its share of the time from the
    /// submission of its part of the pipeline to the replies, including the commit.
    pub(super) duration_us: Counter,
    /// How often it was refused before it was executed (arity, authentication).
    pub(super) rejected_calls: Counter,
    /// How often it was executed and replied with an error.
    pub(super) failed_calls: Counter,
    durations: [Counter; DURATION_BUCKETS],
}

impl CommandStatistics {
    fn record(&self, duration: Duration, is_failed: bool) {
        self.calls.add(1);
        self.duration_us.add(duration.as_micros() as u64);
        if is_failed {
            self.failed_calls.add(1);
        }
        let units = (duration.as_nanos() as u64) / BUCKET_FIRST_NS;
        let bucket = (u64::BITS - units.leading_zeros()) as usize;
        if let Some(counter) = self.durations.get(bucket.min(DURATION_BUCKETS - 1)) {
            counter.add(1);
        }
    }

    /// For each bucket its end in microseconds, and the number of calls up to there.
    pub(super) fn durations_us(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut calls = 0;
        self.durations.iter().enumerate().map(move |(at, counter)| {
            calls += counter.get();
            ((BUCKET_FIRST_NS << at) / 1000, calls)
        })
    }

    /// CONFIG RESETSTAT.
    pub(super) fn reset(&self) {
        self.calls.reset();
        self.duration_us.reset();
        self.rejected_calls.reset();
        self.failed_calls.reset();
        for counter in &self.durations {
            counter.reset();
        }
    }
}

/// What the server has seen since the start or since CONFIG RESETSTAT.
#[derive(Debug)]
pub(super) struct ServerStatistics {
    /// Connections that were accepted.
    pub(super) connections_received: Counter,
    /// Connections that were refused because of `maxclients` or protected mode, or without a TLS
    /// handshake.
    pub(super) connections_rejected: Counter,
    /// TLS handshakes that failed or took too long.
    pub(super) failed_handshakes: Counter,
    /// Commands that were executed.
    pub(super) commands_processed: Counter,
    /// Bytes that were read from clients.
    pub(super) input_bytes: Counter,
    /// Bytes that were written to clients.
    pub(super) output_bytes: Counter,
    /// Replies that were errors.
    pub(super) error_replies: Counter,
    /// Reads from sockets.
    pub(super) reads_processed: Counter,
    /// Writes to sockets.
    pub(super) writes_processed: Counter,
    /// In the order of [`table::all`].
    commands: Vec<CommandStatistics>,
    errors: Mutex<BTreeMap<String, u64>>,
}

impl Default for ServerStatistics {
    fn default() -> Self {
        Self {
            connections_received: Counter::default(),
            connections_rejected: Counter::default(),
            failed_handshakes: Counter::default(),
            commands_processed: Counter::default(),
            input_bytes: Counter::default(),
            output_bytes: Counter::default(),
            error_replies: Counter::default(),
            reads_processed: Counter::default(),
            writes_processed: Counter::default(),
            commands: table::all()
                .iter()
                .map(|_| CommandStatistics::default())
                .collect(),
            errors: Mutex::default(),
        }
    }
}

impl ServerStatistics {
    /// A command (by its place in [`table::all`]) was executed.
    pub(super) fn record_call(&self, slot: usize, duration: Duration, is_failed: bool) {
        if let Some(command) = self.commands.get(slot) {
            command.record(duration, is_failed);
        }
    }

    /// A command was refused before it was executed.
    pub(super) fn record_rejection(&self, slot: usize) {
        if let Some(command) = self.commands.get(slot) {
            command.rejected_calls.add(1);
        }
    }

    /// A reply was this error line.
    pub(super) fn record_error(&self, line: &str) {
        self.error_replies.add(1);
        let code = line.split(' ').next().unwrap_or("ERR");
        let mut errors = self.errors();
        if let Some(count) = errors.get_mut(code) {
            *count += 1;
        } else if errors.len() < ERROR_CODES_MAX {
            errors.insert(code.to_owned(), 1);
        }
    }

    /// How often each error code was sent.
    pub(super) fn errors(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commands and subcommands with what they have done.
    pub(super) fn commands(&self) -> impl Iterator<Item = (&'static Row, &CommandStatistics)> {
        table::all().iter().zip(&self.commands)
    }

    /// CONFIG RESETSTAT.
    pub(super) fn reset(&self) {
        for counter in [
            &self.connections_received,
            &self.connections_rejected,
            &self.failed_handshakes,
            &self.commands_processed,
            &self.input_bytes,
            &self.output_bytes,
            &self.error_replies,
            &self.reads_processed,
            &self.writes_processed,
        ] {
            counter.reset();
        }
        for command in &self.commands {
            command.reset();
        }
        self.errors().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_buckets_of_doubling_length() {
        let command = CommandStatistics::default();
        for duration_us in [0, 1, 3, 1000, 1_000_000_000_000] {
            command.record(Duration::from_micros(duration_us), false);
        }
        let durations: Vec<_> = command.durations_us().collect();
        assert_eq!(&durations[..4], &[(1, 2), (2, 2), (4, 3), (8, 3)]);
        assert_eq!(durations[9], (524, 3));
        assert_eq!(durations[10], (1048, 4));
        assert_eq!(durations.last().map(|last| last.1), Some(5));
    }

    #[test]
    fn error_codes_are_counted_up_to_a_number_of_them() {
        let statistics = ServerStatistics::default();
        for number in 0..ERROR_CODES_MAX * 2 {
            statistics.record_error(&format!("CODE{number} text"));
        }
        statistics.record_error("CODE0 other text");
        assert_eq!(statistics.errors().len(), ERROR_CODES_MAX);
        assert_eq!(statistics.errors().get("CODE0"), Some(&2));
    }
}
