//! Returns elements that a server of an older version popped for another, which has not fetched them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::Executor;
use crate::jobs::JobError;
use quoin_data::cluster::delegation::GRANT_EXPIRY_MS;
use quoin_data::command::access::KeyLocks;
use quoin_data::error::CommandError;

/// What is known about existing grants.
#[derive(Debug, Default)]
pub(super) struct ExpiredGrants {
    /// When each grant was first seen.
    seen: HashMap<Bytes, Instant>,
}

impl ExpiredGrants {
    /// Makes one pass. Returns how many grants had expired.
    pub(super) async fn pass(&mut self, executor: &Executor) -> Result<u64, JobError> {
        let now = Instant::now();
        let overdue = Arc::new(self.overdue(now));
        let found = executor
            .read(0, move |context| {
                let overdue = Arc::clone(&overdue);
                Box::pin(async move { Ok(context.find_grants(&overdue).await?) })
            })
            .await?;
        self.note(found.all, now);
        let (mut expired, mut elements) = (0, 0);
        for row in found.expired {
            // Each in a separate transaction, so that a grant that cannot be returned does not stop the others.
            let ended = executor
                .transact(0, KeyLocks::Nothing, move |context| {
                    let row = row.clone();
                    Box::pin(async move { context.end_grant(&row).await })
                })
                .await;
            match ended {
                Ok(Some(returned)) => {
                    expired += 1;
                    elements += returned;
                }
                Ok(None) => {}
                Err(JobError::Failed(error)) if is_of_this_grant(&error) => {
                    tracing::error!(%error, "cannot put back the elements of an expired grant");
                }
                // The store failed. The next pass does the rest.
                Err(error) => return Err(error),
            }
        }
        // A grant that was fetched in the meantime has returned nothing.
        if elements > 0 {
            tracing::warn!(
                elements,
                "a server did not fetch elements that were popped for it: they were put back"
            );
        }
        executor
            .transact(0, KeyLocks::Nothing, |context| {
                Box::pin(async { Ok(context.remove_old_requests().await?) })
            })
            .await?;
        Ok(expired)
    }

    /// Grants that this server has seen for the full lifetime of a grant. The clock of the server that made them does
    /// not matter.
    pub(super) fn overdue(&self, now: Instant) -> HashSet<Bytes> {
        let expiry = Duration::from_millis(GRANT_EXPIRY_MS.unsigned_abs());
        let overdue = self
            .seen
            .iter()
            .filter(|(_, first)| now.duration_since(**first) >= expiry);
        overdue.map(|(row, _)| row.clone()).collect()
    }

    /// Records which grants exist.
    pub(super) fn note(&mut self, rows: Vec<Bytes>, now: Instant) {
        let before = std::mem::take(&mut self.seen);
        let first = |row: &Bytes| before.get(row).copied().unwrap_or(now);
        self.seen = rows
            .into_iter()
            .map(|row| (row.clone(), first(&row)))
            .collect();
    }
}

/// Whether an error concerns one grant, not the store as a whole.
fn is_of_this_grant(error: &CommandError) -> bool {
    !matches!(error, CommandError::Store(error) if !error.is_about_rows())
}
