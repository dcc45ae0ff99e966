//! What INFO tells of the moment: rates, and the peak of memory.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Samples whose mean is a rate (Redis: `STATS_METRIC_SAMPLES`).
const RATE_SAMPLES: usize = 16;

/// What the sampler has measured.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

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
}
