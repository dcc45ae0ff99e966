//! Counters of the executor, for INFO and for metrics.

use quoin_base::counter::{Counter, Durations};
use quoin_store::StoreError;

/// What the executor has done since the start.
#[derive(Debug, Default)]
pub struct ExecutorStatistics {
    /// Finished write batches.
    pub batches: Counter,
    /// Total duration of those batches in microseconds, from their formation to their last commit. Divided by a
    /// period of time, it gives the number of batches in flight.
    pub batches_duration_us: Counter,
    /// Commands in those batches.
    pub batched_commands: Counter,
    /// Committed transactions that contained writes.
    pub commits: Counter,
    /// How long these commits took, including the sync.
    pub commit_durations: Durations,
    /// Commits and reads that failed because of a conflict with another server.
    pub conflicts: Counter,
    /// Commits whose result was unknown at first. Each is also counted in one of the next three.
    pub unknown_results: Counter,
    /// Of these, commits that turned out to have been applied.
    pub unknown_results_applied: Counter,
    /// Of these, commits that turned out not to have been applied. Their batches ran again.
    pub unknown_results_not_applied: Counter,
    /// Of these, commits whose result the store did not report in time. Clients got `UNKNOWN`.
    pub unknown_results_unresolved: Counter,
    /// Batches and reads that failed because their transaction had become too old.
    pub too_old: Counter,
    /// Write batches and groups of reads that were answered with an error of the store.
    pub store_errors: Counter,
    /// Batches that ran again, for any reason.
    pub retries: Counter,
    /// Commands that other servers have run for this one's clients.
    pub forwarded_commands: Counter,
    /// Submissions whose owner was lost before it answered. Clients got `UNKNOWN`.
    pub forwarded_unknown: Counter,
    /// How often a command's writes were undone because it failed midway or did not fit in the transaction.
    pub commands_rolled_back: Counter,
    /// Keys removed because they expired.
    pub expired_keys: Counter,
    /// Fields of hashes removed because they expired.
    pub expired_fields: Counter,
    /// Tasks returned for another try because their lease ended or was given back.
    pub task_retries: Counter,
    /// Tasks that died because their last try failed.
    pub task_deaths: Counter,
}

impl ExecutorStatistics {
    /// Counts a failed transaction, if its kind of failure has a counter.
    pub(super) fn count_failure(&self, error: &StoreError) {
        match error {
            StoreError::Conflict => self.conflicts.add(1),
            StoreError::TooOld => self.too_old.add(1),
            _ => {}
        }
    }

    /// Resets all counters to 0 (CONFIG RESETSTAT).
    pub fn reset(&self) {
        for counter in [
            &self.batches,
            &self.batches_duration_us,
            &self.batched_commands,
            &self.commits,
            &self.conflicts,
            &self.unknown_results,
            &self.unknown_results_applied,
            &self.unknown_results_not_applied,
            &self.unknown_results_unresolved,
            &self.too_old,
            &self.store_errors,
            &self.retries,
            &self.forwarded_commands,
            &self.forwarded_unknown,
            &self.commands_rolled_back,
            &self.expired_keys,
            &self.expired_fields,
            &self.task_retries,
            &self.task_deaths,
        ] {
            counter.reset();
        }
        self.commit_durations.reset();
    }
}
