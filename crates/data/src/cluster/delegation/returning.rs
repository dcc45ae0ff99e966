//! Returns granted elements to their queue, and answers the questions that commands, keyspace and types have for
//! delegation.

use bytes::Bytes;
use quoin_layout::{Id, Layout, Meta, ValueType};
use quoin_store::{Isolation, RangeQuery, ReadTransaction, StoreError};

use crate::cluster::delegation::held::{HeldGrant, HeldGrants};
use crate::cluster::delegation::{Grant, PoppedElement};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::{RankLengthFn, TypeKind};
use crate::rows::pages::Pages;
use crate::unit::context::{ReadContext, WriteContext};

impl WriteContext<'_> {
    /// Ends all requests for a queue and all grants, whose elements return. Call it before the queue gets another
    /// name or an expiry, because they could not find it afterwards. The commands that wanted the elements pop from
    /// the queue itself.
    pub async fn return_grants(&self, key: &OpenKey) -> Result<(), CommandError> {
        if !self.environment.capabilities.has_other_writers {
            return Ok(());
        }
        let requests = self.layout().pop_requests(key.data());
        self.transaction
            .add_read_conflict_range(&requests.begin, &requests.end);
        self.transaction.clear_range(&requests.begin, &requests.end);
        let own = self.grants.and_then(|held| held.take_rest(key.data()));
        let mut returning: Vec<_> = own.into_iter().collect();
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

    /// Puts back the elements of the unit's grants that no command has popped, because the commands did not run.
    pub async fn return_rest(&self) -> Result<(), CommandError> {
        let Some(held) = self.grants else {
            return Ok(());
        };
        for key in held.with_rest() {
            if let Some((elements, from_end)) = held.take_rest(key.data()) {
                self.give_back(&key, elements, from_end).await?;
            }
        }
        Ok(())
    }

    /// Puts elements of a grant back to the end from which they were popped, if the queue still exists. If the queue
    /// was deleted meanwhile, the elements are deleted with it.
    pub(super) async fn give_back(
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
}

/// Where a grant's elements were popped.
pub(super) struct GrantPlace<'g> {
    pub(super) data: Id,
    pub(super) value_type: ValueType,
    pub(super) from_end: bool,
    /// The name of its first element.
    pub(super) first: Option<&'g Bytes>,
}

/// Sorts grants so that, for each queue, the innermost elements return first. The others are then put in front of
/// them.
pub(super) fn innermost_first<T>(grants: &mut [T], place: impl Fn(&T) -> GrantPlace<'_>) {
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

impl<'t> ReadContext<'t> {
    /// The grants that the command pops from, if it is a popping command.
    fn popped_grants(&self) -> Option<&'t HeldGrants> {
        self.grants.filter(|_| self.pops_grants)
    }

    /// A queue with a grant, in the state in which the elements were popped.
    pub(crate) fn find_granted(&self, meta_key: &[u8]) -> Option<OpenKey> {
        let is_it = |held: &HeldGrant| held.key.meta_key == meta_key;
        let mut key = self.popped_grants()?.ask(is_it, |held| held.key.clone())?;
        key.database = Some(self.database);
        Some(key)
    }

    /// Whether a grant has elements left. `None` if there is no grant.
    pub(crate) fn has_granted(&self, key: &OpenKey) -> Option<bool> {
        let is_it = |held: &HeldGrant| held.key.data() == key.data();
        self.popped_grants()?
            .ask(is_it, |held| !held.rest().is_empty())
    }

    /// Whether a grant lacks elements that a command wants but the queue may have. The command must then wait for its
    /// own grant.
    pub fn is_granted_too_little(&self, key: &OpenKey, count: usize) -> bool {
        let is_it = |held: &HeldGrant| held.key.data() == key.data();
        let grants = self.popped_grants();
        let is_short = |held: &mut HeldGrant| held.rest().len() < count && !held.is_exhausted;
        grants
            .and_then(|grants| grants.ask(is_it, is_short))
            .unwrap_or(false)
    }
}

impl WriteContext<'_> {
    /// Pops up to `count` elements from an end of a queue of any type: from the unit's grant if there is one,
    /// otherwise from the queue itself.
    pub async fn pop_elements(
        &self,
        key: &OpenKey,
        from_end: bool,
        count: usize,
    ) -> Result<Vec<PoppedElement>, StoreError> {
        let is_it = |held: &HeldGrant| held.key.data() == key.data() && held.from_end == from_end;
        let granted = self.popped_grants();
        let granted = granted.and_then(|grants| grants.ask(is_it, |held| held.take(count)));
        match granted {
            Some(elements) => {
                self.count_out(key, elements.len());
                Ok(elements)
            }
            None if self.has_granted(key).is_some() => {
                let key = self.as_it_is_now(key).await?;
                self.take_elements(&key, from_end, count).await
            }
            None => self.take_elements(key, from_end, count).await,
        }
    }

    /// A queue with a grant, with its current metadata instead of that from when the elements were popped.
    async fn as_it_is_now(&self, key: &OpenKey) -> Result<OpenKey, StoreError> {
        let row = self.transaction.get(&key.meta_key, self.isolation).await?;
        let meta = row.map(|row| Meta::decode(&row)).transpose()?;
        Ok(OpenKey {
            meta: meta
                .filter(|meta| meta.data == key.data())
                .unwrap_or_else(|| key.meta.clone()),
            ..key.clone()
        })
    }

    /// Checks whether a key without elements may be replaced by another key. Elements of an empty queue may be
    /// granted to a server that has requested them. If that server does not fetch them, they belong to the queue, and
    /// the key does exist.
    ///
    /// # Errors
    /// `GrantsOutstanding` if there are such elements. They return, and the command runs again.
    pub(crate) async fn before_replacing(
        &self,
        database: u32,
        old: &OpenKey,
    ) -> Result<(), CommandError> {
        let isolation = Isolation::Serializable;
        if !self
            .is_retained(&old.meta_key, &old.meta, isolation)
            .await?
            || !self.has_grants(old).await?
        {
            return Ok(());
        }
        if let Some(grants) = self.grants {
            grants.note_met(OpenKey {
                database: Some(database),
                ..old.clone()
            });
        }
        Err(CommandError::GrantsOutstanding)
    }

    /// Whether granted elements of a queue have not been popped by a command yet. Conflicts with servers that grant
    /// some.
    pub(crate) async fn has_grants(&self, key: &OpenKey) -> Result<bool, StoreError> {
        let held = self
            .grants
            .is_some_and(|grants| grants.has_rest(key.data()));
        Ok(held || has_grants(self.layout(), self.transaction, key.data()).await?)
    }
}
