//! Counters of what a server has done, for INFO and for metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A counter that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Counts `by` more.
    pub fn add(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    /// The count so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Starts again from 0 (CONFIG RESETSTAT).
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Number of duration buckets. The first ends at [`BUCKET_FIRST_NS`], and each further one at twice
/// the end of the previous one. The last has no end.
pub const DURATION_BUCKETS: usize = 32;

/// Upper end of the first bucket of durations, in nanoseconds.
pub const BUCKET_FIRST_NS: u64 = 1024;

/// A histogram of durations whose buckets double in length.
#[derive(Debug, Default)]
pub struct Durations {
    sum_us: Counter,
    buckets: [Counter; DURATION_BUCKETS],
}

impl Durations {
    /// Counts one duration.
    pub fn record(&self, duration: Duration) {
        let duration_us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.sum_us.add(duration_us);
        let units = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX) / BUCKET_FIRST_NS;
        let bucket = (u64::BITS - units.leading_zeros()) as usize;
        if let Some(counter) = self.buckets.get(bucket.min(DURATION_BUCKETS - 1)) {
            counter.add(1);
        }
    }

    /// All durations together, in microseconds.
    pub fn sum_us(&self) -> u64 {
        self.sum_us.get()
    }

    /// The number of durations in each bucket.
    pub fn counts(&self) -> [u64; DURATION_BUCKETS] {
        std::array::from_fn(|at| self.buckets.get(at).map_or(0, Counter::get))
    }

    /// For each bucket, its upper end in microseconds and the number of durations up to that.
    pub fn cumulative_us(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut count = 0;
        self.buckets.iter().enumerate().map(move |(at, counter)| {
            count += counter.get();
            ((BUCKET_FIRST_NS << at) / 1000, count)
        })
    }

    /// Starts over (CONFIG RESETSTAT).
    pub fn reset(&self) {
        self.sum_us.reset();
        for counter in &self.buckets {
            counter.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_buckets_of_doubling_length() {
        let durations = Durations::default();
        for duration_us in [0, 1, 3, 1000, 1_000_000_000_000] {
            durations.record(Duration::from_micros(duration_us));
        }
        assert_eq!(durations.sum_us(), 1_000_000_001_004);
        let counts: Vec<_> = durations.cumulative_us().collect();
        assert_eq!(&counts[..4], &[(1, 2), (2, 2), (4, 3), (8, 3)]);
        assert_eq!(counts[9], (524, 3));
        assert_eq!(counts[10], (1048, 4));
        assert_eq!(counts.last().map(|last| last.1), Some(5));
        durations.reset();
        assert_eq!((durations.sum_us(), durations.counts()), (0, [0; 32]));
    }
}
