//! Grants that no server has fetched, because theirs has died, and requests that no server waits for.

use std::collections::HashSet;

use bytes::Bytes;

use super::Grant;
use super::fetching::read_granted_elements;
use super::returning::{GrantPlace, innermost_first};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_layout::{Meta, successor};
use quoin_store::{Isolation, StoreError, Transaction};

/// Time after which an element that was popped for a server returns to its queue, in milliseconds.
/// Longer than a batch may be tried ([`COMMIT_RETRY_MAX_MS`](quoin_base::limits::COMMIT_RETRY_MAX_MS)).
pub const GRANT_EXPIRY_MS: i64 = 10_000;
/// Requests older than this are not granted, because no server waits for them any more. A multiple of
/// how long servers wait, and of what their clocks differ by.
pub const REQUEST_AGE_MAX_MS: i64 = 5_000;
/// Expired grants that one pass of background work returns.
const EXPIRED_PER_PASS: usize = 32;
/// Requests and grants that one pass of background work reads.
const ROWS_PER_PASS: usize = 1_000;

/// The grants that one pass has found, by their rows' keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundGrants {
    /// All of them.
    pub all: Vec<Bytes>,
    /// Those that have expired, in the order in which they are to return to their queues.
    pub expired: Vec<Bytes>,
}

impl ReadContext<'_> {
    /// The grants that are there. One has expired when its time has come by this server's clock, or
    /// if it is `overdue`: servers' clocks differ.
    pub async fn find_grants(&self, overdue: &HashSet<Bytes>) -> Result<FoundGrants, StoreError> {
        let mut found = FoundGrants::default();
        let mut expired = Vec::new();
        let grants = self.layout().all_grants();
        for row in self.first_rows(&grants, ROWS_PER_PASS).await? {
            // One that cannot be read must not stop the others. `quoin doctor` reports it.
            let Ok(grant) = Grant::decode(&row.value) else {
                continue;
            };
            found.all.push(row.key.clone());
            let is_expired = grant.expires_at_ms <= self.now_ms || overdue.contains(&row.key);
            if !is_expired || expired.len() >= EXPIRED_PER_PASS {
                continue;
            }
            let (data, id) = self.layout().read_grant_key(&row.key)?;
            match read_granted_elements(self.layout(), self.transaction, data, id).await {
                Ok(elements) => {
                    let first = elements.into_iter().next().map(|first| first.name);
                    expired.push((first, row.key, data, grant));
                }
                Err(StoreError::Corrupt(what)) => {
                    tracing::error!(what, "a grant that has expired cannot be read");
                }
                Err(error) => return Err(error),
            }
        }
        innermost_first(&mut expired, |(first, _, data, grant)| GrantPlace {
            data: *data,
            value_type: grant.value_type,
            from_end: grant.from_end,
            first: first.as_ref(),
        });
        found.expired = expired.into_iter().map(|(_, row, ..)| row).collect();
        Ok(found)
    }
}

impl WriteContext<'_> {
    /// Returns the elements of a grant that has expired to their queue, and answers how many there
    /// were; `None` if the grant was not there any more.
    ///
    /// # Errors
    /// `Corrupt` where the grant, its elements or its queue cannot be read, or when the store fails.
    pub async fn end_grant(&self, row: &[u8]) -> Result<Option<usize>, CommandError> {
        let (data, id) = self.layout().read_grant_key(row)?;
        // Its server may be slow rather than dead: one of the two conflicts.
        let Some(value) = self.transaction.get(row, Isolation::Serializable).await? else {
            return Ok(None);
        };
        let grant = Grant::decode(&value)?;
        let elements = self.take_grant(data, id).await?;
        let count = elements.len();
        let key = OpenKey {
            database: None,
            namespace: grant.namespace,
            meta_key: self.layout().meta_key(grant.namespace, &grant.name),
            name: grant.name,
            meta: Meta {
                value_type: grant.value_type,
                data,
                expire_at_ms: None,
                long_name: grant.long_name,
                body: None,
                rank_levels: 0,
            },
        };
        self.give_back(&key, elements, grant.from_end).await?;
        Ok(Some(count))
    }

    /// Removes requests that no server waits for any more.
    pub async fn remove_old_requests(&self) -> Result<(), StoreError> {
        let requests = self.layout().all_pop_requests();
        for row in self.first_rows(&requests, ROWS_PER_PASS).await? {
            // One that cannot be read must not stop the others. `quoin doctor` reports it.
            let Ok((_, request)) = self.layout().read_pop_request(&row.key, &row.value) else {
                continue;
            };
            let age_ms = self.now_ms.saturating_sub(request.at_ms);
            if age_ms > 2 * REQUEST_AGE_MAX_MS {
                remove_request(self.transaction, &row.key);
            }
        }
        Ok(())
    }
}

/// Removes a request that no server waits for any more. Conflicts with a server that grants it.
pub fn remove_request(transaction: &dyn Transaction, row: &[u8]) {
    transaction.add_read_conflict_range(row, &successor(row));
    transaction.clear(row);
}
