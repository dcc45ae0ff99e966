//! Elements that servers of older versions popped for each other: requests and grants.
//!
//! Where pops of several servers conflicted on a queue, those servers let one of them pop for the
//! others. A server made a *request*. Another server stored what it popped as a *grant*, which the
//! first one fetched. Servers now hand such pops to the owner of the key
//! (docs/understand/decisions/053-forwarding.md), so this version makes, grants and fetches
//! nothing. But an older server may have died before it fetched a grant, and may still run while
//! the servers of a cluster are replaced. So that no element is lost:
//!
//! - Background work returns the elements of grants that have expired
//!   ([`WriteContext::end_grant`]).
//! - RENAME, MOVE and EXPIRE first return the elements of all grants
//!   ([`WriteContext::return_grants`]).
//! - Code that replaces an empty key calls [`WriteContext::before_replacing`].

use std::collections::HashSet;

use bytes::{Bytes, BytesMut};
use quoin_base::limits::RANGE_PAGE_ROWS;
use quoin_layout::{
    Grant, Id, KeyRange, Layout, Meta, PoppedElement, ValueType, decode_elements, successor,
};
use quoin_store::{Isolation, RangeQuery, ReadTransaction, StoreError, Transaction};

use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::{RankLengthFn, TypeKind};
use crate::rows::pages::Pages;
use crate::unit::context::{ReadContext, WriteContext};

#[cfg(test)]
mod tests;

/// How long until an element popped for a server returns to its queue, in milliseconds. The reaper waits as long for a
/// grant by a clock that is ahead.
pub const GRANT_EXPIRY_MS: i64 = 10_000;
/// Requests older than this are removed, because no server waits for them any more. It is a multiple of the time that
/// servers wait and of the difference between their clocks.
const REQUEST_AGE_MAX_MS: i64 = 10_000;
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
        // Its server may only be slow. Then one of the two transactions conflicts.
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
                inline: None,
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
            if age_ms > REQUEST_AGE_MAX_MS {
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

impl WriteContext<'_> {
    /// Ends all requests for a queue, and all grants, whose elements return. Call it before the
    /// queue is renamed or gets an expiry, because the elements could not find the queue
    /// afterwards. Servers that wanted them pop from the queue themselves.
    pub async fn return_grants(&self, key: &OpenKey) -> Result<(), CommandError> {
        if !self.environment.capabilities.has_other_writers {
            return Ok(());
        }
        let requests = self.layout().pop_requests(key.data());
        self.transaction
            .add_read_conflict_range(&requests.begin, &requests.end);
        self.transaction.clear_range(&requests.begin, &requests.end);
        let mut returning: Vec<(Vec<PoppedElement>, bool)> = Vec::new();
        let mut pages = Pages::new(self, self.layout().grants(key.data()), false, 0);
        while let Some(rows) = pages.next().await? {
            for row in rows {
                let (data, id) = self.layout().read_grant_key(&row.key)?;
                let from_end = Grant::decode(&row.value)?.from_end;
                returning.push((self.take_grant(data, id).await?, from_end));
            }
        }
        innermost_first(&mut returning, |(elements, from_end)| GrantPlace {
            data: key.data(),
            value_type: key.meta.value_type,
            from_end: *from_end,
            first: elements.first().map(|first| &first.name),
        });
        for (elements, from_end) in returning {
            self.give_back(key, elements, from_end).await?;
        }
        Ok(())
    }

    /// [`Self::return_grants`] of the queue with this name.
    pub(crate) async fn return_grants_of(&self, name: &Bytes) -> Result<(), CommandError> {
        match self.look_up(name).await? {
            Some(key) => self.return_grants(&key).await,
            None => Ok(()),
        }
    }

    /// Puts elements of a grant back to the end from which they were popped, if the queue still exists. If the queue
    /// was deleted meanwhile, the elements are deleted with it.
    async fn give_back(
        &self,
        key: &OpenKey,
        elements: Vec<PoppedElement>,
        from_end: bool,
    ) -> Result<(), CommandError> {
        if elements.is_empty() {
            return Ok(());
        }
        let meta = self
            .transaction
            .get(&key.meta_key, Isolation::Serializable)
            .await?;
        let meta = meta.map(|value| Meta::decode(&value)).transpose()?;
        match meta {
            Some(meta) if meta.data == key.data() && !self.is_expired(&meta) => {
                let key = OpenKey {
                    meta,
                    ..key.clone()
                };
                self.put_back(&key, elements, from_end).await
            }
            _ => {
                tracing::debug!("elements of a grant belong to no queue any more");
                Ok(())
            }
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

    /// Clears a grant that was read serializably, and returns its elements.
    async fn take_grant(&self, data: Id, id: Id) -> Result<Vec<PoppedElement>, StoreError> {
        let elements = read_granted_elements(self.layout(), self.transaction, data, id).await?;
        self.transaction.clear(&self.layout().grant_key(data, id));
        let KeyRange { begin, end } = self.layout().grant_pieces(data, id);
        self.transaction.clear_range(&begin, &end);
        Ok(elements)
    }

    /// Checks whether a key without elements may be replaced by another key. Elements of an empty queue may be
    /// granted to a server. If that server does not fetch them, they belong to the queue, and the key does exist.
    ///
    /// # Errors
    /// `GrantsOutstanding` if there are such elements. They return, and the command runs again.
    pub(crate) async fn before_replacing(
        &self,
        name: &Bytes,
        old: &OpenKey,
    ) -> Result<(), CommandError> {
        let isolation = Isolation::Serializable;
        let is_retained = self.is_retained(&old.meta_key, &old.meta, isolation);
        if !is_retained.await? || !self.has_grants(old).await? {
            return Ok(());
        }
        Err(CommandError::GrantsOutstanding {
            database: self.database,
            key: name.clone(),
        })
    }

    /// Whether elements of a queue are granted and not yet fetched. Conflicts with servers that grant some.
    pub(crate) async fn has_grants(&self, key: &OpenKey) -> Result<bool, StoreError> {
        has_grants(self.layout(), self.transaction, key.data()).await
    }
}

/// The key of an element's row in its section, if it was popped from a list or priority queue.
pub(crate) fn row_key(section_prefix: &[u8], element: &PoppedElement) -> Vec<u8> {
    [section_prefix, &element.name[..]].concat()
}

/// Where a grant's elements were popped.
struct GrantPlace<'g> {
    data: Id,
    value_type: ValueType,
    from_end: bool,
    /// The name of its first element.
    first: Option<&'g Bytes>,
}

/// Sorts grants so that, for each queue, the innermost elements return first. The others are then put in front of
/// them.
fn innermost_first<T>(grants: &mut [T], place: impl Fn(&T) -> GrantPlace<'_>) {
    grants.sort_by_key(|grant| {
        let place = place(grant);
        (place.data, place.from_end)
    });
    for of_queue in grants.chunk_by_mut(|one, other| place(one).data == place(other).data) {
        let is_at_end = of_queue.iter().all(|grant| place(grant).from_end);
        of_queue.sort_by(|one, other| {
            let (one, other) = (place(one), place(other));
            let queue = one.value_type.kind().queue.as_ref();
            let ends = one.from_end.cmp(&other.from_end);
            match queue.and_then(|queue| queue.rank_length) {
                None => ends.then_with(|| match one.from_end {
                    true => one.first.cmp(&other.first),
                    false => other.first.cmp(&one.first),
                }),
                // At both ends, the oldest element of a rank was popped first.
                Some(length) if is_at_end => {
                    let ranks = rank(length, one.first).cmp(&rank(length, other.first));
                    ranks.then_with(|| other.first.cmp(&one.first))
                }
                Some(_) => other.first.cmp(&one.first),
            }
        });
    }
}

/// The part of an element's name that all elements of its rank share.
fn rank(length: RankLengthFn, name: Option<&Bytes>) -> Option<&[u8]> {
    let name = name?;
    name.get(..length(name).ok()?)
}

/// Whether elements of a queue are granted and not yet fetched. Conflicts with servers that grant some.
pub async fn has_grants(
    layout: &Layout,
    transaction: &dyn ReadTransaction,
    data: Id,
) -> Result<bool, StoreError> {
    let grants = layout.grants(data);
    let rows = transaction
        .get_range(RangeQuery {
            begin: &grants.begin,
            end: &grants.end,
            limit: 1,
            reverse: false,
            isolation: Isolation::Serializable,
        })
        .await?;
    Ok(!rows.is_empty())
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
