//! The last hour of a server's figures, for charts.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use quoin_base::limits::HISTORY_SAMPLES_MAX;

/// Figures at one moment. Counters count from the start, or from CONFIG RESETSTAT.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sample {
    /// In milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Commands that were executed.
    pub commands: u64,
    /// Bytes from clients.
    pub input_bytes: u64,
    /// Bytes to clients.
    pub output_bytes: u64,
    /// Replies that were errors.
    pub errors: u64,
    /// Committed transactions with writes.
    pub commits: u64,
    /// The time that commits of write batches took.
    pub commits_us: u64,
    /// Their number.
    pub commits_timed: u64,
    /// Allocated memory.
    pub memory_bytes: u64,
    /// Connected clients.
    pub clients: u64,
}

/// The samples of the last hour.
#[derive(Debug, Default)]
pub struct History(Mutex<VecDeque<Sample>>);

impl History {
    /// Adds a sample, and drops samples that are too old.
    pub fn add(&self, sample: Sample) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() >= HISTORY_SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// All samples, the oldest first.
    pub fn samples(&self) -> Vec<Sample> {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        samples.iter().copied().collect()
    }
}

/// A counter's growth per second, between each two samples.
pub(crate) fn rates(samples: &[Sample], of: impl Fn(&Sample) -> u64) -> Vec<(i64, f64)> {
    let pairs = samples.iter().zip(samples.iter().skip(1));
    let rate = |(before, after): (&Sample, &Sample)| {
        let seconds = (after.at_ms - before.at_ms).max(1) as f64 / 1_000.0;
        (
            after.at_ms,
            of(after).saturating_sub(of(before)) as f64 / seconds,
        )
    };
    pairs.map(rate).collect()
}

/// A mean in each interval: growth of the sum by growth of the number.
pub(crate) fn means(
    samples: &[Sample],
    sum: impl Fn(&Sample) -> u64,
    number: impl Fn(&Sample) -> u64,
) -> Vec<(i64, f64)> {
    let pairs = samples.iter().zip(samples.iter().skip(1));
    let mean = |(before, after): (&Sample, &Sample)| {
        let grown = number(after).saturating_sub(number(before)).max(1);
        let added = sum(after).saturating_sub(sum(before));
        (after.at_ms, added as f64 / grown as f64)
    };
    pairs.map(mean).collect()
}

/// A figure at each sample.
pub(crate) fn values(samples: &[Sample], of: impl Fn(&Sample) -> u64) -> Vec<(i64, f64)> {
    let value = |sample: &Sample| (sample.at_ms, of(sample) as f64);
    samples.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(second: i64, commands: u64) -> Sample {
        Sample {
            at_ms: second * 1_000,
            commands,
            ..Sample::default()
        }
    }

    #[test]
    fn only_the_last_hour_is_kept() {
        let history = History::default();
        for second in 0..HISTORY_SAMPLES_MAX as i64 + 3 {
            history.add(sample(second, 0));
        }
        let samples = history.samples();
        assert_eq!(samples.len(), HISTORY_SAMPLES_MAX);
        assert_eq!(samples[0].at_ms, 3_000);
    }

    #[test]
    fn a_rate_is_by_the_second_and_a_reset_counts_nothing() {
        let samples = [sample(0, 10), sample(5, 60), sample(10, 0)];
        let rates = rates(&samples, |sample| sample.commands);
        assert_eq!(rates, [(5_000, 10.0), (10_000, 0.0)]);
    }

    #[test]
    fn a_mean_is_of_what_came_between_two_samples() {
        let samples = [sample(0, 10), sample(5, 60), sample(10, 60)];
        let means = means(&samples, |sample| sample.commands, |_| 0);
        assert_eq!(means, [(5_000, 50.0), (10_000, 0.0)]);
    }
}
