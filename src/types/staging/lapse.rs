//! Claims that nobody has fetched: of servers that have died.

use super::claims::{innermost_first, read_claimed_elements};
use crate::error::CommandError;
use crate::layout::{Id, Meta, StagedClaim, successor};
use crate::limits::{STAGED_LAPSES_PER_PASS, STAGED_REQUEST_AGE_MAX_MS, STAGED_ROWS_PER_PASS};
use crate::store::{Isolation, StoreError, Transaction};
use crate::types::context::WriteContext;
use crate::types::keyspace::OpenKey;

impl WriteContext<'_> {
    /// Has the elements of claims that have lapsed go back to their queues, and removes requests
    /// that nobody waits for any more. Answers how many claims those were, and how many elements.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn staging_pass(&self) -> Result<(i64, i64), CommandError> {
        let mut due = Vec::new();
        let claims = self.layout().all_staged_claims();
        for row in self.first_rows(&claims, STAGED_ROWS_PER_PASS).await? {
            // One that cannot be read must not keep the others (`quoin doctor` tells of it).
            let Ok(claim) = StagedClaim::decode(&row.value) else {
                continue;
            };
            // By this server's clock: where it is fast, the one that asked pops anew.
            if claim.lapses_at_ms <= self.now_ms && due.len() < STAGED_LAPSES_PER_PASS {
                let (data, id) = self.layout().read_staged_claim_key(&row.key)?;
                let read = read_claimed_elements(self.layout(), self.transaction, data, id);
                match read.await {
                    Ok(elements) => {
                        let first = elements.into_iter().next().map(|first| first.name);
                        due.push((first, row.key, claim));
                    }
                    Err(StoreError::Corrupt(what)) => {
                        tracing::error!(what, "a claim that has lapsed cannot be read");
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        innermost_first(&mut due, |(first, _, claim)| {
            (first.as_ref(), claim.value_type, claim.from_end)
        });
        let (mut lapsed, mut returned) = (0, 0);
        for (_, row, claim) in due {
            if self.is_full() {
                break;
            }
            if let Some(elements) = self.end_claim(&row, &claim).await? {
                lapsed += 1;
                returned += i64::try_from(elements).unwrap_or(i64::MAX);
            }
        }
        self.remove_old_requests().await?;
        Ok((lapsed, returned))
    }

    /// Has the elements of a claim that has lapsed go back to their queue, and answers how many;
    /// `None` where the claim was not there any more.
    ///
    /// # Errors
    /// `Corrupt` where the elements cannot be read, or when the store fails.
    pub async fn end_claim(
        &self,
        row: &[u8],
        claim: &StagedClaim,
    ) -> Result<Option<usize>, CommandError> {
        let (data, id) = self.layout().read_staged_claim_key(row)?;
        // Its server may be slow rather than dead: one of the two conflicts.
        let is_there = self.transaction.get(row, Isolation::Serializable).await?;
        if is_there.is_none() {
            return Ok(None);
        }
        Ok(Some(self.lapse(claim, data, id).await?))
    }

    async fn lapse(&self, claim: &StagedClaim, data: Id, id: Id) -> Result<usize, CommandError> {
        let elements = self.take_claim(data, id).await?;
        let count = elements.len();
        let key = OpenKey {
            database: None,
            namespace: claim.namespace,
            name: claim.name.clone(),
            meta_key: self.layout().meta_key(claim.namespace, &claim.name),
            meta: Meta {
                value_type: claim.value_type,
                data,
                expire_at_ms: None,
                long_name: claim.long_name.clone(),
            },
        };
        self.give_back(&key, elements, claim.from_end).await?;
        Ok(count)
    }

    async fn remove_old_requests(&self) -> Result<(), StoreError> {
        let requests = self.layout().all_staged_requests();
        for row in self.first_rows(&requests, STAGED_ROWS_PER_PASS).await? {
            let (_, request) = self.layout().read_staged_request(&row.key, &row.value)?;
            let age_ms = self.now_ms.saturating_sub(request.at_ms);
            if age_ms > 2 * STAGED_REQUEST_AGE_MAX_MS {
                remove_request(self.transaction, &row.key);
            }
        }
        Ok(())
    }
}

/// Removes a request that nobody waits for any more. Conflicts with whoever fulfils it.
pub fn remove_request(transaction: &dyn Transaction, row: &[u8]) {
    transaction.add_read_conflict_range(row, &successor(row));
    transaction.clear(row);
}
