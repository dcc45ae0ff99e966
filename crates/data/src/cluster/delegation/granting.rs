//! Requests and grants. A server whose pops conflict makes a request, and a server whose pops do not conflict grants
//! it. The requesting server fetches the grant.
//!
//! This module also takes elements from queues of any type and puts them back. It cleans up grants that no server has
//! fetched because the requester died, and requests that no server waits for.

use std::collections::HashSet;

use bytes::{Bytes, BytesMut};
use quoin_base::limits::RANGE_PAGE_ROWS;
use quoin_layout::{
    Id, KeyRange, Layout, Meta, PopRequest, decode_elements, encode_elements, successor,
};
use quoin_store::{Isolation, KeyValue, RangeQuery, ReadTransaction, StoreError, Transaction};

use crate::cluster::delegation::held::{HeldGrant, HeldGrants};
use crate::cluster::delegation::returning::{GrantPlace, innermost_first};
use crate::cluster::delegation::{Demands, Grant, PoppedElement};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::TypeKind;
use crate::unit::context::{ReadContext, WriteContext};

/// How many requests one batch grants.
const REQUESTS_PER_BATCH_MAX: usize = 64;
/// How many elements are popped for a request at a time.
const ELEMENTS_PER_READ: usize = 128;
/// Once putting a grant's elements back would cost this many bytes in a commit, no further command of the request is
/// granted.
const GRANT_BYTES_SOFT_MAX: usize = 2_000_000;
/// The limit for a whole grant. One transaction has to hold it together with the contents of a batch.
const GRANT_BYTES_MAX: usize = 6_000_000;
/// Bytes for a row and its conflict, in addition to their keys and values.
const PUT_BACK_OVERHEAD_BYTES: usize = 100;

/// What was popped for other servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Granted {
    /// Number of their requests that were granted.
    pub requests: u64,
    /// Number of elements popped for them.
    pub elements: usize,
}

impl ReadContext<'_> {
    /// The oldest requests for elements of a queue. Causes no conflicts.
    pub(crate) async fn read_requests(&self, data: Id) -> Result<Vec<KeyValue>, StoreError> {
        let requests = self.layout().pop_requests(data);
        let query = RangeQuery {
            begin: &requests.begin,
            end: &requests.end,
            limit: REQUESTS_PER_BATCH_MAX,
            reverse: false,
            isolation: Isolation::Snapshot,
        };
        self.transaction.get_range(query).await
    }
}

impl WriteContext<'_> {
    /// Asks other servers to pop for this one, and returns the key of the request's row. Causes no conflicts.
    pub fn make_request(&self, key: &OpenKey, id: Id, demands: &Demands) -> Vec<u8> {
        let request = PopRequest {
            id,
            at_ms: self.now_ms,
            from_end: demands.from_end,
            runs: demands.runs.clone(),
        };
        let row = self.layout().pop_request_key(key.data(), &request);
        self.transaction.set(&row, &request.encode());
        row
    }

    /// Pops for servers that have requested elements from this end of a queue, oldest request first, while `has_room`
    /// holds. Call it after this server's own pops from that end.
    ///
    /// Conflicts with other servers that grant the same request, and with the requesting server if it clears the
    /// request.
    ///
    /// # Errors
    /// `TooLarge` if one command wants more than one transaction could return to the queue should its server die.
    pub async fn grant_requests(
        &self,
        key: &OpenKey,
        from_end: bool,
        has_room: impl Fn() -> bool,
    ) -> Result<Granted, StoreError> {
        // An expiring queue is removed with its last element, but grants would have to outlive it.
        if !self.may_be_retained(&key.meta) {
            return Ok(Granted::default());
        }
        let rows = self.read_requests(key.data()).await?;
        let mut granted = Granted::default();
        for row in rows {
            // An unreadable request must not stop other servers that pop here. `quoin doctor` reports it.
            let Ok((_, request)) = self.layout().read_pop_request(&row.key, &row.value) else {
                continue;
            };
            let is_own = request.id.instance == self.environment.ids.instance();
            let is_old = self.now_ms.saturating_sub(request.at_ms) > REQUEST_AGE_MAX_MS;
            if is_own || (request.from_end != from_end && !is_old) {
                continue;
            }
            if !has_room() {
                break;
            }
            self.transaction
                .add_read_conflict_range(&row.key, &successor(&row.key));
            self.transaction.clear(&row.key);
            if !is_old {
                granted.elements += self.grant(key, &request, &has_room).await?;
                granted.requests += 1;
            }
        }
        if granted.elements > 0 {
            self.invalidate(key);
        }
        Ok(granted)
    }

    /// Pops for the first commands of a request, as many as there is room for. Each gets all elements that it wants,
    /// because pops of others would otherwise come between. Returns the number of elements.
    async fn grant(
        &self,
        key: &OpenKey,
        request: &PopRequest,
        has_room: &impl Fn() -> bool,
    ) -> Result<usize, StoreError> {
        let mut elements: Vec<PoppedElement> = Vec::new();
        let mut is_exhausted = false;
        let prefix_bytes = self.layout().data_prefix(key.data()).len();
        // The other server counts what its clients get.
        let context = self.without_counting();
        let mut bytes = 0_usize;
        'runs: for run in &request.runs {
            // Pop for several commands at a time, because the size of the elements is unknown.
            let at_once = (ELEMENTS_PER_READ / run.count.max(1)).max(1);
            let mut left = run.commands;
            while left > 0 {
                let is_full = || bytes >= GRANT_BYTES_SOFT_MAX || !has_room();
                if !elements.is_empty() && is_full() {
                    break 'runs;
                }
                let commands = left.min(at_once);
                let wanted = commands.saturating_mul(run.count);
                let taken = context.take_elements(key, request.from_end, wanted).await?;
                is_exhausted = taken.len() < wanted;
                bytes += taken
                    .iter()
                    .map(|element| put_back_bytes(prefix_bytes, element))
                    .sum::<usize>();
                if bytes > GRANT_BYTES_MAX {
                    return Err(StoreError::TooLarge);
                }
                elements.extend(taken);
                if is_exhausted {
                    break 'runs;
                }
                left -= commands;
            }
        }
        let grant = Grant {
            namespace: key.namespace,
            name: key.name.clone(),
            long_name: key.meta.long_name.clone(),
            value_type: key.meta.value_type,
            from_end: request.from_end,
            is_exhausted,
            expires_at_ms: self.now_ms.saturating_add(GRANT_EXPIRY_MS),
        };
        let row = self.layout().grant_key(key.data(), request.id);
        self.transaction.set(&row, &grant.encode());
        let pieces: Vec<Bytes> = encode_elements(&elements);
        for (number, piece) in (0_u64..).zip(&pieces) {
            let row = self
                .layout()
                .grant_piece_key(key.data(), request.id, number);
            self.transaction.set(&row, piece);
        }
        Ok(elements.len())
    }
}

/// A conservative estimate of what putting an element back costs in a commit: two rows (as for a member of a sorted
/// set), and a conflict on each.
fn put_back_bytes(prefix_bytes: usize, element: &PoppedElement) -> usize {
    let key_bytes = prefix_bytes + element.name.len();
    let value_bytes = element.value.len() + element.value.len() / 4;
    2 * (5 * key_bytes + PUT_BACK_OVERHEAD_BYTES) + value_bytes
}

impl WriteContext<'_> {
    /// Pops up to `count` elements from the queue itself.
    pub async fn take_elements(
        &self,
        key: &OpenKey,
        from_end: bool,
        count: usize,
    ) -> Result<Vec<PoppedElement>, StoreError> {
        match &key.meta.value_type.kind().queue {
            Some(queue) => (queue.take)(self, key, from_end, count).await,
            None => Ok(Vec::new()),
        }
    }

    /// Puts back elements that were popped in this order, in front of the existing ones. An element that has since
    /// been added to a set again is left unchanged.
    pub async fn put_back(
        &self,
        key: &OpenKey,
        elements: Vec<PoppedElement>,
        from_end: bool,
    ) -> Result<(), CommandError> {
        self.invalidate(key);
        self.signal_returned(key);
        match &key.meta.value_type.kind().queue {
            Some(queue) => {
                let context = self.without_counting();
                (queue.put_back)(&context, key, elements, from_end).await
            }
            None => Ok(()),
        }
    }
}

/// The key of an element's row in its section, if it was popped from a list or priority queue.
pub(crate) fn row_key(section_prefix: &[u8], element: &PoppedElement) -> Vec<u8> {
    [section_prefix, &element.name[..]].concat()
}

/// How long until an element popped for a server returns to its queue, in milliseconds. Longer than a batch may be
/// retried ([`COMMIT_RETRY_MAX_MS`](quoin_base::limits::COMMIT_RETRY_MAX_MS)).
pub const GRANT_EXPIRY_MS: i64 = 10_000;
/// Requests older than this are not granted, because no server waits for them any more. It is a multiple of the time
/// that servers wait and of the difference between their clocks.
pub const REQUEST_AGE_MAX_MS: i64 = 5_000;
/// How many expired grants one pass of background work returns.
const EXPIRED_PER_PASS: usize = 32;
/// How many requests and grants one pass of background work reads.
const ROWS_PER_PASS: usize = 1_000;

/// The grants that one pass found, by the keys of their rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundGrants {
    /// All grants.
    pub all: Vec<Bytes>,
    /// Expired grants, in the order in which they must return to their queues.
    pub expired: Vec<Bytes>,
}

impl ReadContext<'_> {
    /// The existing grants. A grant has expired if its time has come by this server's clock or if it is `overdue`,
    /// because servers' clocks differ.
    pub async fn find_grants(&self, overdue: &HashSet<Bytes>) -> Result<FoundGrants, StoreError> {
        let mut found = FoundGrants::default();
        let mut expired = Vec::new();
        let grants = self.layout().all_grants();
        for row in self.first_rows(&grants, ROWS_PER_PASS).await? {
            // An unreadable grant must not stop the others. `quoin doctor` reports it.
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
    /// Returns the elements of an expired grant to their queue. Returns their number, or `None` if the grant no
    /// longer existed.
    ///
    /// # Errors
    /// `Corrupt` if the grant, its elements or its queue cannot be read.
    pub async fn end_grant(&self, row: &[u8]) -> Result<Option<usize>, CommandError> {
        let (data, id) = self.layout().read_grant_key(row)?;
        // Its server may be slow rather than dead. Then one of the two conflicts.
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
                fields_expire: false,
                is_kept: false,
            },
        };
        self.give_back(&key, elements, grant.from_end).await?;
        Ok(Some(count))
    }

    /// Removes requests that no server waits for any more.
    pub async fn remove_old_requests(&self) -> Result<(), StoreError> {
        let requests = self.layout().all_pop_requests();
        for row in self.first_rows(&requests, ROWS_PER_PASS).await? {
            // An unreadable request must not stop the others. `quoin doctor` reports it.
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

/// A request that a server made for its clients' commands.
#[derive(Debug, Clone)]
pub struct MadeRequest {
    /// The client's database.
    pub database: u32,
    /// The queue at the time of the request.
    pub key: OpenKey,
    /// Identifies the request and the grant.
    pub id: Id,
    /// The request's row.
    pub row: Vec<u8>,
}

impl WriteContext<'_> {
    /// Fetches what was popped for a request into `held`. Returns whether there was a grant. If not, clears the
    /// request, so that it cannot be granted later.
    pub async fn fetch_grant(
        &self,
        request: &MadeRequest,
        held: &HeldGrants,
    ) -> Result<bool, StoreError> {
        let data = request.key.data();
        let row = self.layout().grant_key(data, request.id);
        // A server that concurrently grants the request writes this row and clears the request, so one of the two
        // conflicts.
        let (grant, elements) = futures_util::try_join!(
            self.transaction.get(&row, Isolation::Serializable),
            read_granted_elements(self.layout(), self.transaction, data, request.id)
        )?;
        let Some(grant) = grant else {
            self.transaction.clear(&request.row);
            return Ok(false);
        };
        let grant = Grant::decode(&grant)?;
        self.clear_grant(data, request.id);
        held.add(HeldGrant {
            key: request.key.clone(),
            from_end: grant.from_end,
            elements,
            taken: 0,
            is_exhausted: grant.is_exhausted,
            has_returned: false,
        });
        Ok(true)
    }

    /// Clears a grant that was read serializably, and returns its elements.
    pub(super) async fn take_grant(
        &self,
        data: Id,
        id: Id,
    ) -> Result<Vec<PoppedElement>, StoreError> {
        let elements = read_granted_elements(self.layout(), self.transaction, data, id).await?;
        self.clear_grant(data, id);
        Ok(elements)
    }

    fn clear_grant(&self, data: Id, id: Id) {
        self.transaction.clear(&self.layout().grant_key(data, id));
        let KeyRange { begin, end } = self.layout().grant_pieces(data, id);
        self.transaction.clear_range(&begin, &end);
    }
}

/// The elements of a grant. Causes no conflicts, because the grant's own row does.
///
/// # Errors
/// `Corrupt` if they cannot be read.
pub async fn read_granted_elements(
    layout: &Layout,
    transaction: &dyn ReadTransaction,
    data: Id,
    id: Id,
) -> Result<Vec<PoppedElement>, StoreError> {
    let KeyRange { mut begin, end } = layout.grant_pieces(data, id);
    let mut text = BytesMut::new();
    loop {
        let rows = transaction
            .get_range(RangeQuery {
                begin: &begin,
                end: &end,
                limit: RANGE_PAGE_ROWS,
                reverse: false,
                isolation: Isolation::Snapshot,
            })
            .await?;
        for row in &rows {
            text.extend_from_slice(&row.value);
        }
        match rows.last() {
            Some(last) if rows.len() >= RANGE_PAGE_ROWS => begin = successor(&last.key),
            _ => break,
        }
    }
    if text.is_empty() {
        return Ok(Vec::new());
    }
    Ok(decode_elements(text.freeze())?)
}
