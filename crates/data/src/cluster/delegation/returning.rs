//! Granted elements return to their queue.

use bytes::Bytes;

use super::{Grant, PoppedElement};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::RankLengthFn;
use crate::keyspace::kind::TypeKind;
use crate::rows::pages::Pages;
use crate::unit::context::WriteContext;
use quoin_layout::{Id, Layout, Meta, ValueType};
use quoin_store::{Isolation, RangeQuery, ReadTransaction, StoreError};

impl WriteContext<'_> {
    /// Ends all requests for a queue, and all grants, whose elements return: before it gets another
    /// name or an expiry, after which they would not find it. The commands that wanted them pop from
    /// the queue itself.
    pub async fn return_grants(&self, key: &OpenKey) -> Result<(), CommandError> {
        if self.environment.capabilities.single_writer {
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

    /// Puts back what no command has popped of the unit's grants: what was popped for commands that
    /// did not run.
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

    /// Puts elements of a grant back to the end that they came from, if the queue is still there. A
    /// queue that was deleted since then took them along.
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

/// Sorts grants so that of each queue what is further inside returns first, and is not put in front of
/// the rest.
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
                // At both ends the oldest of a rank came first.
                Some(length) if is_at_end => {
                    let ranks = rank(length, one.first).cmp(&rank(length, other.first));
                    ranks.then_with(|| other.first.cmp(&one.first))
                }
                Some(_) => other.first.cmp(&one.first),
            }
        });
    }
}

/// The part of an element's name that all of its rank share.
fn rank(length: RankLengthFn, name: Option<&Bytes>) -> Option<&[u8]> {
    let name = name?;
    name.get(..length(name).ok()?)
}

/// Whether elements of a queue's data are granted and not fetched. Conflicts with servers that grant
/// some.
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
