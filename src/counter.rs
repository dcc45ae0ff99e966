//! Counters of what a server has done, for INFO and for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

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
