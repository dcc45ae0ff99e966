//! The return of elements that were popped for a server which has not fetched them.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::commands::KeyLocks;
use crate::error::CommandError;
use crate::executor::Executor;
use crate::executor::jobs::JobError;
use crate::limits::STAGED_CLAIM_LAPSE_MS;
use crate::types::staging::Lapsed;

/// What is known of claims that have lapsed.
#[derive(Debug, Default)]
pub(super) struct LapsedClaims {
    /// Claims that a clock far ahead of this server's seems to have made, and when each was seen
    /// first.
    ahead: HashMap<Bytes, Instant>,
}

impl LapsedClaims {
    /// Makes one pass. Returns how many claims had lapsed.
    pub(super) async fn pass(&mut self, executor: &Executor) -> Result<u64, JobError> {
        let claims = executor
            .read(0, |context| {
                Box::pin(async { Ok(context.lapsed_claims().await?) })
            })
            .await?;
        let (mut lapsed, mut elements) = (0, 0);
        for row in self.due(claims, Instant::now()) {
            // Each in a transaction of its own: one that cannot go back must not stop the others.
            let ended = executor
                .transact(0, KeyLocks::Nothing, move |context| {
                    let row = row.clone();
                    Box::pin(async move { context.end_lapsed_claim(&row).await })
                })
                .await;
            match ended {
                Ok(Some(returned)) => {
                    lapsed += 1;
                    elements += returned;
                }
                Ok(None) => {}
                Err(JobError::Failed(error)) if is_of_this_claim(&error) => {
                    tracing::error!(%error, "elements of a claim that has lapsed do not go back");
                }
                // The store failed. The next pass does the rest.
                Err(error) => return Err(error),
            }
        }
        if lapsed > 0 {
            tracing::warn!(
                elements,
                "a server has not fetched elements that were popped for it: they went back"
            );
        }
        executor
            .transact(0, KeyLocks::Nothing, |context| {
                Box::pin(async { Ok(context.remove_old_requests().await?) })
            })
            .await?;
        Ok(lapsed)
    }

    /// Those of the claims that go back now: of those that a clock far ahead seems to have made, only
    /// what has been there for as long as claims are.
    pub(super) fn due(&mut self, claims: Vec<Lapsed>, now: Instant) -> Vec<Bytes> {
        let lapse = Duration::from_millis(STAGED_CLAIM_LAPSE_MS.unsigned_abs());
        let before = std::mem::take(&mut self.ahead);
        let mut due = Vec::new();
        for claim in claims {
            if !claim.is_far_ahead {
                due.push(claim.row);
                continue;
            }
            let seen_first = before.get(&claim.row).copied().unwrap_or(now);
            if now.duration_since(seen_first) >= lapse {
                due.push(claim.row.clone());
            }
            self.ahead.insert(claim.row, seen_first);
        }
        due
    }
}

/// Whether an error is about one claim, and not about the store as a whole.
fn is_of_this_claim(error: &CommandError) -> bool {
    !matches!(error, CommandError::Store(error) if !error.is_about_rows())
}
