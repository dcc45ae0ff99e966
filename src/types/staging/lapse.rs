//! Claims that nobody has fetched: of servers that have died.

use bytes::Bytes;

use super::claims::{innermost_first, read_claimed_elements};
use crate::error::CommandError;
use crate::layout::{Id, Meta, StagedClaim, successor};
use crate::limits::{
    STAGED_CLAIM_LAPSE_MS, STAGED_LAPSES_PER_PASS, STAGED_REQUEST_AGE_MAX_MS, STAGED_ROWS_PER_PASS,
};
use crate::store::{Isolation, StoreError, Transaction};
use crate::types::context::{ReadContext, WriteContext};
use crate::types::key::OpenKey;

/// A claim that has lapsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lapsed {
    /// Its row.
    pub row: Bytes,
    /// By its own time it lapses long after any claim that is made now: it has to be watched, and has
    /// lapsed if it stays.
    pub is_far_ahead: bool,
}

impl ReadContext<'_> {
    /// The claims that have lapsed, in the order in which they are to go back to their queues; and
    /// among them those that a clock far ahead of this server's has made, or any, if this one's is
    /// behind.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn lapsed_claims(&self) -> Result<Vec<Lapsed>, StoreError> {
        let mut due = Vec::new();
        let claims = self.layout().all_staged_claims();
        for row in self.first_rows(&claims, STAGED_ROWS_PER_PASS).await? {
            // One that cannot be read must not keep the others (`quoin doctor` tells of it).
            let Ok(claim) = StagedClaim::decode(&row.value) else {
                continue;
            };
            // By this server's clock: where it is fast, the one that asked pops anew.
            let left_ms = claim.lapses_at_ms.saturating_sub(self.now_ms);
            let is_far_ahead = left_ms > 2 * STAGED_CLAIM_LAPSE_MS;
            if (left_ms > 0 && !is_far_ahead) || due.len() >= STAGED_LAPSES_PER_PASS {
                continue;
            }
            let (data, id) = self.layout().read_staged_claim_key(&row.key)?;
            match read_claimed_elements(self.layout(), self.transaction, data, id).await {
                Ok(elements) => {
                    let first = elements.into_iter().next().map(|first| first.name);
                    let row = row.key;
                    due.push((first, Lapsed { row, is_far_ahead }, claim));
                }
                Err(StoreError::Corrupt(what)) => {
                    tracing::error!(what, "a claim that has lapsed cannot be read");
                }
                Err(error) => return Err(error),
            }
        }
        innermost_first(&mut due, |(first, _, claim)| {
            (first.as_ref(), claim.value_type, claim.from_end)
        });
        Ok(due.into_iter().map(|(_, lapsed, _)| lapsed).collect())
    }
}

impl WriteContext<'_> {
    /// [`Self::end_claim`] of one of [`ReadContext::lapsed_claims`].
    ///
    /// # Errors
    /// `Corrupt` where the claim, its elements or its queue cannot be read, or when the store fails.
    pub async fn end_lapsed_claim(&self, row: &[u8]) -> Result<Option<usize>, CommandError> {
        let Some(value) = self.transaction.get(row, Isolation::Snapshot).await? else {
            return Ok(None);
        };
        self.end_claim(row, &StagedClaim::decode(&value)?).await
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
                body: None,
            },
        };
        self.give_back(&key, elements, claim.from_end).await?;
        Ok(count)
    }

    /// Removes requests that nobody waits for any more.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn remove_old_requests(&self) -> Result<(), StoreError> {
        let requests = self.layout().all_staged_requests();
        for row in self.first_rows(&requests, STAGED_ROWS_PER_PASS).await? {
            // One that cannot be read must not keep the others (`quoin doctor` tells of it).
            let Ok((_, request)) = self.layout().read_staged_request(&row.key, &row.value) else {
                continue;
            };
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
