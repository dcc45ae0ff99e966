//! Finds out whether a commit of unknown result was applied.

use std::time::{Duration, Instant};

use super::{AttemptEnd, BACKOFF_FIRST_MS, BACKOFF_MAX_MS, Batch};
use quoin_base::limits::COMMIT_RETRY_MAX_MS;
use quoin_store::{Isolation, StoreError, Transaction};

impl Batch<'_> {
    /// Writes the batch's number to the slot's row, and makes the batch conflict with the fence that
    /// [`Self::resolve_unknown_result`] may set later.
    pub(super) fn mark_operation(&self, transaction: &dyn Transaction) {
        let key = self.operation_key();
        transaction.add_read_conflict_range(&key, &quoin_layout::successor(&key));
        transaction.set(&key, &self.slot.batches.to_be_bytes());
    }

    fn operation_key(&self) -> Vec<u8> {
        self.environment
            .layout
            .operation_key(self.environment.ids.instance(), self.slot.number)
    }

    /// Finds out whether the commit was applied, before anything runs again. One transaction reads the slot's row and
    /// overwrites it. Once that has committed, the batch was either applied before it, and was seen, or it can never
    /// be applied because it conflicts.
    pub(super) async fn resolve_unknown_result(&mut self) -> AttemptEnd {
        self.statistics.unknown_results.add(1);
        let key = self.operation_key();
        let expected = self.slot.batches.to_be_bytes();
        let mut was_seen = false;
        let started = Instant::now();
        let mut backoff_ms = BACKOFF_FIRST_MS;
        loop {
            match self.fence(&key, &expected).await {
                Ok(is_there) if is_there || was_seen => {
                    self.statistics.unknown_results_applied.add(1);
                    self.statistics.commits.add(1);
                    return AttemptEnd::Committed;
                }
                Ok(_) => {
                    self.statistics.unknown_results_not_applied.add(1);
                    return AttemptEnd::Again { after_pause: true };
                }
                Err((seen, error)) => {
                    // A fence of unknown result may have overwritten the row that it read.
                    was_seen |= seen;
                    let elapsed_ms = started.elapsed().as_millis() as u64;
                    if elapsed_ms >= COMMIT_RETRY_MAX_MS {
                        self.statistics.unknown_results_unresolved.add(1);
                        tracing::warn!(%error, "the result of a commit stays unknown");
                        return AttemptEnd::Failed(StoreError::UnknownResult);
                    }
                    let pause_ms = self.environment.random.below(backoff_ms + 1);
                    tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                    backoff_ms = (backoff_ms * 2).min(BACKOFF_MAX_MS);
                }
            }
        }
    }

    /// Whether the slot's row names this batch, once that can no longer change. An error carries what was read before
    /// the failure.
    async fn fence(&self, key: &[u8], expected: &[u8]) -> Result<bool, (bool, StoreError)> {
        let transaction = self.store.begin_write().map_err(|error| (false, error))?;
        let row = transaction
            .get(key, Isolation::Serializable)
            .await
            .map_err(|error| (false, error))?;
        let is_there = row.as_deref() == Some(expected);
        transaction.set(key, b"");
        match transaction.commit().await {
            Ok(()) => Ok(is_there),
            Err(error) => Err((is_there, error)),
        }
    }
}
