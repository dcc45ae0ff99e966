//! Counters of the executor, for INFO.

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

/// What the executor has done since the start.
#[derive(Debug, Default)]
pub struct ExecutorStatistics {
    /// Write batches that were finished.
    pub batches: Counter,
    /// Commands in those batches.
    pub batched_commands: Counter,
    /// Transactions that were committed with writes in them.
    pub commits: Counter,
    /// Commits and reads that failed because of a conflict with another server.
    pub conflicts: Counter,
    /// Commits whose result was not known at first.
    pub unknown_results: Counter,
    /// Batches that were run again, for whatever reason.
    pub retries: Counter,
    /// Commands that failed midway and were taken out of their batch.
    pub commands_rolled_back: Counter,
    /// Keys that were removed because their time had come.
    pub expired_keys: Counter,
}

impl ExecutorStatistics {
    /// Starts all counters again from 0 (CONFIG RESETSTAT).
    pub fn reset(&self) {
        for counter in [
            &self.batches,
            &self.batched_commands,
            &self.commits,
            &self.conflicts,
            &self.unknown_results,
            &self.retries,
            &self.commands_rolled_back,
            &self.expired_keys,
        ] {
            counter.reset();
        }
    }
}
