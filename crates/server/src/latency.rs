//! The latency monitor: events that took at least `latency-monitor-threshold`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use quoin_base::limits::LATENCY_SAMPLES_MAX;

/// One second in which an event was slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LatencySample {
    /// The time, in seconds since the Unix epoch.
    pub(super) time_s: i64,
    /// The longest latency in that second.
    pub(super) latency_ms: i64,
}

/// What the monitor knows about one event.
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
