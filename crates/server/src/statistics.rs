//! Counters of the server, for INFO, LATENCY and SLOWLOG.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quoin_base::counter::{Counter, Durations};
use quoin_base::limits::ERROR_CODES_MAX;
use quoin_data::command::row::Row;
use quoin_data::table;

/// What one command or subcommand has done since the start or since CONFIG RESETSTAT.
#[derive(Debug, Default)]
pub(super) struct CommandStatistics {
    /// How often it was executed.
    pub(super) calls: Counter,
    /// How long the calls took. A command on data counts its share of the time from the submission
    /// of its part of the pipeline to the replies, including the commit.
    pub(super) durations: Durations,
    /// How often it was refused before it was executed (arity, authentication).
    pub(super) rejected_calls: Counter,
    /// How often it was executed and replied with an error.
    pub(super) failed_calls: Counter,
}

impl CommandStatistics {
    fn record(&self, duration: Duration, is_failed: bool) {
        self.calls.add(1);
        self.durations.record(duration);
        if is_failed {
            self.failed_calls.add(1);
        }
    }

    /// CONFIG RESETSTAT.
    pub(super) fn reset(&self) {
        self.calls.reset();
        self.durations.reset();
        self.rejected_calls.reset();
        self.failed_calls.reset();
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
