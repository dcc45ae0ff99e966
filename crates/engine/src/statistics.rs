//! Counters of the executor, for INFO and for metrics.

use quoin_base::counter::{Counter, Durations};
use quoin_store::StoreError;

/// What the executor has done since the start.
#[derive(Debug, Default)]
pub struct ExecutorStatistics {
    /// Write batches that were finished.
    pub batches: Counter,
    /// Time that those batches took, from their forming to their last commit, in microseconds.
    /// Over a span of time it says how many were under way at once.
    pub batches_duration_us: Counter,
    /// Commands in those batches.
    pub batched_commands: Counter,
    /// Transactions that were committed with writes in them.
    pub commits: Counter,
    /// How long these commits took, the sync included.
    pub commit_durations: Durations,
    /// Commits and reads that failed because of a conflict with another server.
    pub conflicts: Counter,
    /// Commits whose result was not known at first. Each becomes one of the three below.
    pub unknown_results: Counter,
    /// Of these, commits that were found to have been applied.
    pub unknown_results_applied: Counter,
    /// Of these, commits that were found not to have been applied; their batches ran again.
    pub unknown_results_not_applied: Counter,
    /// Of these, commits of which the store did not tell in time; clients got `UNKNOWN`.
    pub unknown_results_unresolved: Counter,
    /// Batches and reads that failed because their transaction had become too old.
    pub too_old: Counter,
    /// Batches and runs of reads that were answered with an error of the store.
    pub store_errors: Counter,
    /// Batches that were run again, for whatever reason.
    pub retries: Counter,
    /// Requests that were made of other servers to pop for this one.
    pub delegation_requests: Counter,
    /// Of these, requests that were granted.
    pub delegation_requests_granted: Counter,
    /// Requests of other servers that this one has granted.
    pub delegation_grants: Counter,
    /// Times that a command's writes were undone: it failed midway, or the transaction could not hold it.
    pub commands_rolled_back: Counter,
    /// Keys that were removed because their time had come.
    pub expired_keys: Counter,
    /// Tasks whose lease ended or was given back, and that are to be tried again.
    pub task_retries: Counter,
    /// Tasks that died: their last try has failed.
    pub task_deaths: Counter,
}

impl ExecutorStatistics {
    /// Counts a transaction that failed, where there is a counter for its kind.
    pub(super) fn count_failure(&self, error: &StoreError) {
        match error {
            StoreError::Conflict => self.conflicts.add(1),
            StoreError::TooOld => self.too_old.add(1),
            _ => {}
        }
    }

    /// Starts all counters again from 0 (CONFIG RESETSTAT).
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
            &self.delegation_requests,
            &self.delegation_requests_granted,
            &self.delegation_grants,
            &self.commands_rolled_back,
            &self.expired_keys,
            &self.task_retries,
            &self.task_deaths,
        ] {
            counter.reset();
        }
        self.commit_durations.reset();
    }
}
