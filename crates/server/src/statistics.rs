//! Counters, rates and the latency monitor, for INFO, LATENCY and metrics.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quoin_base::counter::{Counter, Durations};
use quoin_base::limits::{ERROR_CODES_MAX, LATENCY_SAMPLES_MAX};
use quoin_data::command::row::Row;
use quoin_data::table;

/// Counters of one command or subcommand since the start or since CONFIG RESETSTAT.
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

/// Counters of the server since the start or since CONFIG RESETSTAT.
#[derive(Debug, Default)]
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
    /// Commands that were run for clients of other servers.
    pub(super) forwarded_here: Counter,
    /// Reads from sockets.
    pub(super) reads_processed: Counter,
    /// Writes to sockets.
    pub(super) writes_processed: Counter,
    commands: PerCommand,
    errors: Mutex<BTreeMap<String, u64>>,
}

/// One entry for each row of [`table::all`].
#[derive(Debug)]
struct PerCommand(Vec<CommandStatistics>);

impl Default for PerCommand {
    fn default() -> Self {
        let rows = table::of_all_ports().iter();
        Self(rows.map(|_| CommandStatistics::default()).collect())
    }
}

impl ServerStatistics {
    /// A command (by its place in [`table::all`]) was executed.
    pub(super) fn record_call(&self, slot: usize, duration: Duration, is_failed: bool) {
        if let Some(command) = self.commands.0.get(slot) {
            command.record(duration, is_failed);
        }
    }

    /// A command was refused before it was executed.
    pub(super) fn record_rejection(&self, slot: usize) {
        if let Some(command) = self.commands.0.get(slot) {
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

    /// Commands and subcommands with their counters.
    pub(super) fn commands(&self) -> impl Iterator<Item = (&'static Row, &CommandStatistics)> {
        table::of_all_ports().iter().zip(&self.commands.0)
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
            &self.forwarded_here,
            &self.reads_processed,
            &self.writes_processed,
        ] {
            counter.reset();
        }
        for command in &self.commands.0 {
            command.reset();
        }
        self.errors().clear();
    }
}

/// Number of samples that a rate averages (Redis: `STATS_METRIC_SAMPLES`).
const RATE_SAMPLES: usize = 16;

/// Rates, and the peak of memory.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// Commands in a second.
    pub(super) commands: Rate,
    /// Bytes from clients in a second.
    pub(super) input_bytes: Rate,
    /// Bytes to clients in a second.
    pub(super) output_bytes: Rate,
    /// The highest use of memory at any sample.
    memory_peak_bytes: AtomicU64,
}

impl Samples {
    /// The highest use of memory so far, including the current use of `bytes`.
    pub(super) fn memory_peak_bytes(&self, bytes: u64) -> u64 {
        self.memory_peak_bytes
            .fetch_max(bytes, Ordering::Relaxed)
            .max(bytes)
    }
}

/// The growth of a counter in a second: the mean of the last samples.
#[derive(Debug, Default)]
pub(super) struct Rate {
    state: Mutex<RateState>,
}

#[derive(Debug, Default)]
struct RateState {
    last: Option<(Instant, u64)>,
    per_second: VecDeque<u64>,
}

impl Rate {
    /// Adds a sample: the counter at `now`.
    pub(super) fn sample(&self, count: u64, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, before)) = state.last {
            let elapsed_ms = now.duration_since(at).as_millis().max(1) as u64;
            let per_second = count.saturating_sub(before).saturating_mul(1000) / elapsed_ms;
            state.per_second.push_front(per_second);
            state.per_second.truncate(RATE_SAMPLES);
        }
        state.last = Some((now, count));
    }

    /// The mean of the last samples.
    pub(super) fn per_second(&self) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.per_second.iter().sum::<u64>() / RATE_SAMPLES as u64
    }
}

/// One second in which an event was slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LatencySample {
    /// The time, in seconds since the Unix epoch.
    pub(super) time_s: i64,
    /// The longest latency in that second.
    pub(super) latency_ms: i64,
}

/// The samples of one event.
#[derive(Debug, Clone, Default)]
pub(super) struct LatencySeries {
    /// The last samples, oldest first.
    pub(super) samples: VecDeque<LatencySample>,
    /// The longest latency ever.
    pub(super) max_ms: i64,
}

/// The latency monitor.
#[derive(Debug, Default)]
pub(super) struct LatencyMonitor {
    series: Mutex<BTreeMap<&'static str, LatencySeries>>,
}

impl LatencyMonitor {
    /// The events, by name.
    pub(super) fn series(&self) -> MutexGuard<'_, BTreeMap<&'static str, LatencySeries>> {
        self.series.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a slow event. Only the longest in each second counts.
    pub(super) fn record(&self, event: &'static str, time_s: i64, latency_ms: i64) {
        let mut series = self.series();
        let series = series.entry(event).or_default();
        series.max_ms = series.max_ms.max(latency_ms);
        if let Some(last) = series.samples.back_mut()
            && last.time_s == time_s
        {
            last.latency_ms = last.latency_ms.max(latency_ms);
            return;
        }
        if series.samples.len() >= LATENCY_SAMPLES_MAX {
            series.samples.pop_front();
        }
        series
            .samples
            .push_back(LatencySample { time_s, latency_ms });
    }

    /// LATENCY RESET: forgets these events, or all if none is named. Returns how many.
    pub(super) fn reset(&self, events: &[&[u8]]) -> usize {
        let mut series = self.series();
        let before = series.len();
        if events.is_empty() {
            series.clear();
        } else {
            series.retain(|name, _| !events.contains(&name.as_bytes()));
        }
        before - series.len()
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

    #[test]
    fn a_rate_is_the_mean_of_the_last_samples() {
        let rate = Rate::default();
        let start = Instant::now();
        for tick in 0..=RATE_SAMPLES as u64 {
            rate.sample(tick * 10, start + Duration::from_millis(tick * 100));
        }
        assert_eq!(rate.per_second(), 100);
    }

    #[test]
    fn a_counter_that_was_reset_counts_nothing() {
        let rate = Rate::default();
        let start = Instant::now();
        rate.sample(1000, start);
        rate.sample(0, start + Duration::from_millis(100));
        assert_eq!(rate.per_second(), 0);
    }

    #[test]
    fn the_longest_of_a_second_counts_and_old_samples_go() {
        let monitor = LatencyMonitor::default();
        monitor.record("command", 0, 5);
        monitor.record("command", 0, 9);
        monitor.record("command", 0, 7);
        assert_eq!(monitor.series()["command"].samples.len(), 1);
        assert_eq!(monitor.series()["command"].max_ms, 9);
        for second in 1..=LATENCY_SAMPLES_MAX as i64 {
            monitor.record("command", second, 1);
        }
        let series = monitor.series();
        let samples = &series["command"].samples;
        assert_eq!(samples.len(), LATENCY_SAMPLES_MAX);
        assert_eq!(samples[0].time_s, 1);
    }

    #[test]
    fn a_reset_names_its_events() {
        let monitor = LatencyMonitor::default();
        monitor.record("command", 0, 5);
        monitor.record("fast-command", 0, 5);
        assert_eq!(monitor.reset(&[b"nosuch"]), 0);
        assert_eq!(monitor.reset(&[b"command"]), 1);
        assert_eq!(monitor.reset(&[]), 1);
    }
}
