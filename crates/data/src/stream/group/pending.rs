//! Pending entries of a group: their rows and counters, and XACK.

use std::collections::{HashMap, HashSet};

use futures_util::future::try_join_all;

use quoin_base::limits::KEY_READS_AT_ONCE;
use quoin_layout::{Id, StreamId, StreamPending, decode_counter};
use quoin_store::{Isolation, StoreError};

use super::{Group, GroupMut};
use crate::command::arguments::to_usize;
use crate::rows::pages::Pages;
use crate::stream::IdRange;

/// A pending entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PendingEntry {
    /// The entry's id.
    pub id: StreamId,
    /// Its consumer, the time of the last delivery, and the number of deliveries.
    pub row: StreamPending,
}

impl PendingEntry {
    /// An entry that its group delivers for the first time.
    pub(super) fn first(id: StreamId, consumer: Id, now_ms: i64) -> Self {
        Self {
            id,
            row: StreamPending {
                consumer: Some(consumer),
                delivered_at_ms: now_ms,
                deliveries: 1,
            },
        }
    }

    /// The same entry, delivered once more.
    pub(super) fn again(&self, consumer: Option<Id>, now_ms: i64) -> Self {
        Self {
            id: self.id,
            row: StreamPending {
                consumer,
                delivered_at_ms: now_ms,
                deliveries: self.row.deliveries.saturating_add(1),
            },
        }
    }
}

/// Changes of the numbers of pending entries of a group and of its consumers.
#[derive(Debug, Default)]
pub(in crate::stream) struct PendingChanges {
    /// `None` has the entries without a consumer.
    by_consumer: HashMap<Option<Id>, i64>,
    /// The earliest time of the deliveries.
    first_delivered_at_ms: Option<i64>,
}

impl PendingChanges {
    fn added(&mut self, consumer: Option<Id>) {
        *self.by_consumer.entry(consumer).or_default() += 1;
    }

    pub(super) fn removed(&mut self, consumer: Option<Id>) {
        *self.by_consumer.entry(consumer).or_default() -= 1;
    }

    fn delivered(&mut self, at_ms: i64) {
        let first = self.first_delivered_at_ms.get_or_insert(at_ms);
        *first = at_ms.min(*first);
    }

    pub(super) fn of_group(&self) -> i64 {
        self.by_consumer.values().sum()
    }
}

impl Group<'_, '_> {
    /// The number of pending entries of the group, or of one of its consumers.
    pub(crate) async fn pending_count(
        &self,
        consumer: Option<Id>,
        isolation: Isolation,
    ) -> Result<i64, StoreError> {
        let (layout, data) = (self.context.layout(), self.key.data());
        let row = layout.stream_pending_count_key(data, self.row.id, consumer);
        let value = self.context.transaction.get(&row, isolation).await?;
        Ok(decode_counter(value.as_ref())?)
    }

    /// The number of pending entries of each of some consumers.
    pub(crate) async fn pending_counts(
        &self,
        consumers: impl Iterator<Item = Id>,
    ) -> Result<Vec<i64>, StoreError> {
        let isolation = self.context.isolation;
        let consumers: Vec<Id> = consumers.collect();
        let mut counts = Vec::with_capacity(consumers.len());
        for some in consumers.chunks(KEY_READS_AT_ONCE) {
            let reads = some
                .iter()
                .map(|consumer| self.pending_count(Some(*consumer), isolation));
            counts.extend(try_join_all(reads).await?);
        }
        Ok(counts)
    }

    /// The pending entry with an id.
    async fn pending_entry(
        &self,
        id: StreamId,
        isolation: Isolation,
    ) -> Result<Option<PendingEntry>, StoreError> {
        let (layout, data) = (self.context.layout(), self.key.data());
        let row = layout.stream_pending_key(data, self.row.id, id);
        let Some(value) = self.context.transaction.get(&row, isolation).await? else {
            return Ok(None);
        };
        let row = StreamPending::decode(&value)?;
        Ok(Some(PendingEntry { id, row }))
    }

    /// The pending entry with each id, read concurrently.
    pub(in crate::stream) async fn pending_each(
        &self,
        ids: &[StreamId],
        isolation: Isolation,
    ) -> Result<Vec<Option<PendingEntry>>, StoreError> {
        if let [id] = ids {
            return Ok(vec![self.pending_entry(*id, isolation).await?]);
        }
        let mut found = Vec::with_capacity(ids.len());
        for some in ids.chunks(KEY_READS_AT_ONCE) {
            let reads = some.iter().map(|id| self.pending_entry(*id, isolation));
            found.extend(try_join_all(reads).await?);
        }
        Ok(found)
    }

    /// The first `count` pending entries of the group within a range; the last if `reverse`.
    pub(crate) async fn pending_range(
        &self,
        range: IdRange,
        reverse: bool,
        count: usize,
    ) -> Result<Vec<PendingEntry>, StoreError> {
        self.pending_range_at(range, reverse, count, self.context.isolation)
            .await
    }

    /// [`Self::pending_range`] in this isolation.
    pub(in crate::stream) async fn pending_range_at(
        &self,
        range: IdRange,
        reverse: bool,
        count: usize,
        isolation: Isolation,
    ) -> Result<Vec<PendingEntry>, StoreError> {
        if range.first > range.last {
            return Ok(Vec::new());
        }
        let (layout, data) = (self.context.layout(), self.key.data());
        let rows = layout.stream_pending(data, self.row.id, range.first, range.last);
        let pages = Pages::new(self.context, rows, reverse, count).in_isolation(isolation);
        let rows = pages.slice(0, count).await?;
        let entries = rows.iter().map(|row| {
            let (_, id) = layout.read_stream_pending_key(data, &row.key)?;
            let row = StreamPending::decode(&row.value)?;
            Ok(PendingEntry { id, row })
        });
        entries.collect()
    }

    /// The first `count` pending entries of a consumer within a range.
    pub(crate) async fn consumer_pending(
        &self,
        consumer: Id,
        range: IdRange,
        count: usize,
    ) -> Result<Vec<PendingEntry>, StoreError> {
        if range.first > range.last {
            return Ok(Vec::new());
        }
        let (layout, data) = (self.context.layout(), self.key.data());
        let (first, last) = (range.first, range.last);
        let rows = layout.stream_consumer_pending(data, self.row.id, consumer, first, last);
        let pages = Pages::new(self.context, rows, false, count);
        let rows = pages.slice(0, count).await?;
        let mut ids = Vec::with_capacity(rows.len());
        for row in &rows {
            let (.., id) = layout.read_stream_consumer_pending_key(data, &row.key)?;
            ids.push(id);
        }
        let found = self.pending_each(&ids, self.context.isolation).await?;
        let found: Option<Vec<PendingEntry>> = found.into_iter().collect();
        found.ok_or(StoreError::Corrupt(
            "a consumer's pending entry is none of its group",
        ))
    }
}

impl GroupMut<'_, '_> {
    /// Writes a pending entry, and counts it. `before` is the pending entry that already had its
    /// id.
    pub(super) fn put_pending(
        &self,
        entry: PendingEntry,
        before: Option<&PendingEntry>,
        changes: &mut PendingChanges,
    ) {
        let (layout, transaction) = (self.context.layout(), self.context.transaction);
        let (data, id) = (self.key.data(), self.row.id);
        let row = layout.stream_pending_key(data, id, entry.id);
        transaction.set(&row, &entry.row.encode());
        if self.row.is_by_delivery {
            let at = |at_ms| layout.stream_idle_key(data, id, at_ms, entry.id);
            if let Some(before) = before {
                transaction.clear(&at(before.row.delivered_at_ms));
            }
            transaction.set(&at(entry.row.delivered_at_ms), b"");
            changes.delivered(entry.row.delivered_at_ms);
        }
        let by_consumer =
            |consumer| layout.stream_consumer_pending_key(data, id, consumer, entry.id);
        let consumer = entry.row.consumer;
        if let Some(before) = before {
            if before.row.consumer == consumer {
                return;
            }
            if let Some(consumer) = before.row.consumer {
                transaction.clear(&by_consumer(consumer));
            }
            changes.removed(before.row.consumer);
        }
        if let Some(consumer) = consumer {
            transaction.set(&by_consumer(consumer), b"");
        }
        changes.added(consumer);
    }

    /// Removes a pending entry, and counts it.
    pub(in crate::stream) fn remove_pending(
        &self,
        entry: &PendingEntry,
        changes: &mut PendingChanges,
    ) {
        let (layout, transaction) = (self.context.layout(), self.context.transaction);
        let (data, group_id) = (self.key.data(), self.row.id);
        let (id, consumer) = (entry.id, entry.row.consumer);
        transaction.clear(&layout.stream_pending_key(data, group_id, id));
        if let Some(consumer) = consumer {
            let row = layout.stream_consumer_pending_key(data, group_id, consumer, id);
            transaction.clear(&row);
        }
        if self.row.is_by_delivery {
            self.clear_idle_row(entry);
        }
        changes.removed(consumer);
    }

    /// Writes the counts without causing conflicts. If the group has a policy, sets the timer that
    /// wakes waiting clients when a delivered entry should be handed out again.
    pub(in crate::stream) fn count_pending(&self, changes: PendingChanges) {
        let (layout, data) = (self.context.layout(), self.key.data());
        if let (Some(policy), Some(at_ms)) = (&self.row.policy, changes.first_delivered_at_ms) {
            let due_ms = at_ms.saturating_add(policy.min_idle_ms);
            self.context.set_timer(self.key, due_ms);
        }
        let counter = |consumer| layout.stream_pending_count_key(data, self.row.id, consumer);
        let of_group = changes.of_group();
        if of_group != 0 {
            let counter = counter(None);
            self.context.transaction.atomic_add(&counter, of_group);
        }
        for (consumer, delta) in changes.by_consumer {
            if delta != 0 && consumer.is_some() {
                let counter = counter(consumer);
                self.context.transaction.atomic_add(&counter, delta);
            }
        }
    }

    /// Acknowledges entries, and returns how many were pending. Conflicts only with changes of the same
    /// pending entries.
    pub(crate) async fn acknowledge(&self, ids: &[StreamId]) -> Result<i64, StoreError> {
        let counts = self.acknowledge_each(&[ids]).await?;
        Ok(counts.into_iter().sum())
    }

    /// [`Self::acknowledge`] for several clients, one after another. Writes the counters once.
    /// Returns how many entries of each client were pending.
    pub(crate) async fn acknowledge_each(
        &self,
        ids_of_each: &[&[StreamId]],
    ) -> Result<Vec<i64>, StoreError> {
        let mut seen = HashSet::new();
        let mut changes = PendingChanges::default();
        let mut counts = Vec::with_capacity(ids_of_each.len());
        for ids in ids_of_each {
            let ids: Vec<StreamId> = ids.iter().copied().filter(|id| seen.insert(*id)).collect();
            let found = self.pending_each(&ids, self.context.isolation).await?;
            let mut count = 0;
            for entry in found.iter().flatten() {
                self.remove_pending(entry, &mut changes);
                count += 1;
            }
            counts.push(count);
        }
        self.count_pending(changes);
        let acknowledged: usize = counts.iter().copied().map(to_usize).sum();
        self.context.count_out(self.key, acknowledged);
        Ok(counts)
    }
}
