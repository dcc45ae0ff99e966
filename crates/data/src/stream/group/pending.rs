//! Rows and counters of pending entries.

use std::collections::HashMap;

use futures_util::future::try_join_all;

use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::limits::KEY_READS_AT_ONCE;
use quoin_layout::{Id, StreamId, StreamPending, decode_counter};
use quoin_store::{Isolation, StoreError};

use super::OpenGroup;
use crate::stream::IdRange;

/// A pending entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingEntry {
    /// The entry's id.
    pub id: StreamId,
    /// Who has it, since when, and how often it was delivered.
    pub row: StreamPending,
}

/// How many pending entries a group and its consumers have more than before.
#[derive(Debug, Default)]
pub(super) struct PendingChanges {
    /// Entries without a consumer count too.
    by_consumer: HashMap<Option<Id>, i64>,
    /// When the first of those that were delivered was.
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

impl ReadContext<'_> {
    /// How many pending entries a group has, or one of its consumers.
    pub async fn stream_pending_count(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        consumer: Option<Id>,
    ) -> Result<i64, StoreError> {
        let row = self
            .layout()
            .stream_pending_count_key(key.data(), group.row.id, consumer);
        let value = self.transaction.get(&row, self.isolation).await?;
        Ok(decode_counter(value.as_ref())?)
    }

    /// How many pending entries each of some consumers has.
    pub async fn stream_pending_counts(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        consumers: impl Iterator<Item = Id>,
    ) -> Result<Vec<i64>, StoreError> {
        let consumers: Vec<Id> = consumers.collect();
        let mut counts = Vec::with_capacity(consumers.len());
        for some in consumers.chunks(KEY_READS_AT_ONCE) {
            let reads = some
                .iter()
                .map(|consumer| self.stream_pending_count(key, group, Some(*consumer)));
            counts.extend(try_join_all(reads).await?);
        }
        Ok(counts)
    }

    /// The pending entry with an id.
    pub(super) async fn stream_pending_entry(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        id: StreamId,
        isolation: Isolation,
    ) -> Result<Option<PendingEntry>, StoreError> {
        let row = self
            .layout()
            .stream_pending_key(key.data(), group.row.id, id);
        let Some(value) = self.transaction.get(&row, isolation).await? else {
            return Ok(None);
        };
        let row = StreamPending::decode(&value)?;
        Ok(Some(PendingEntry { id, row }))
    }

    /// [`Self::stream_pending_entry`] of several ids, read side by side.
    pub(super) async fn stream_pending_each(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        ids: &[StreamId],
        isolation: Isolation,
    ) -> Result<Vec<Option<PendingEntry>>, StoreError> {
        if let [id] = ids {
            let entry = self.stream_pending_entry(key, group, *id, isolation);
            return Ok(vec![entry.await?]);
        }
        let mut found = Vec::with_capacity(ids.len());
        for some in ids.chunks(KEY_READS_AT_ONCE) {
            let reads = some
                .iter()
                .map(|id| self.stream_pending_entry(key, group, *id, isolation));
            found.extend(try_join_all(reads).await?);
        }
        Ok(found)
    }

    /// The first `count` pending entries of a group within a range; the last where `reverse`.
    pub async fn stream_pending_range(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        range: IdRange,
        reverse: bool,
        count: usize,
    ) -> Result<Vec<PendingEntry>, StoreError> {
        self.pending_range_at(key, group, range, reverse, count, self.isolation)
            .await
    }

    /// [`Self::stream_pending_range`] in this isolation.
    pub(super) async fn pending_range_at(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        range: IdRange,
        reverse: bool,
        count: usize,
        isolation: Isolation,
    ) -> Result<Vec<PendingEntry>, StoreError> {
        if range.first > range.last {
            return Ok(Vec::new());
        }
        let (layout, data) = (self.layout(), key.data());
        let rows = layout.stream_pending(data, group.row.id, range.first, range.last);
        let mut pages = Pages::new(self, rows, reverse, count);
        if isolation == Isolation::Snapshot {
            pages = pages.with_snapshot_reads();
        }
        let rows = pages.slice(0, count).await?;
        let entries = rows.iter().map(|row| {
            let (_, id) = layout.read_stream_pending_key(data, &row.key)?;
            let row = StreamPending::decode(&row.value)?;
            Ok(PendingEntry { id, row })
        });
        entries.collect()
    }

    /// The first `count` pending entries of a consumer within a range.
    pub async fn stream_consumer_pending(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        consumer: Id,
        range: IdRange,
        count: usize,
    ) -> Result<Vec<PendingEntry>, StoreError> {
        if range.first > range.last {
            return Ok(Vec::new());
        }
        let (layout, data) = (self.layout(), key.data());
        let rows =
            layout.stream_consumer_pending(data, group.row.id, consumer, range.first, range.last);
        let rows = Pages::new(self, rows, false, count).slice(0, count).await?;
        let mut ids = Vec::with_capacity(rows.len());
        for row in &rows {
            let (.., id) = layout.read_stream_consumer_pending_key(data, &row.key)?;
            ids.push(id);
        }
        let found = self
            .stream_pending_each(key, group, &ids, self.isolation)
            .await?;
        let found: Option<Vec<PendingEntry>> = found.into_iter().collect();
        found.ok_or(StoreError::Corrupt(
            "a consumer's pending entry is none of its group",
        ))
    }
}

impl WriteContext<'_> {
    /// Gives an entry to a consumer. `before` is what is pending of it so far.
    pub(super) fn put_pending(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        entry: PendingEntry,
        before: Option<&PendingEntry>,
        changes: &mut PendingChanges,
    ) {
        let (layout, data, id) = (self.layout(), key.data(), group.row.id);
        let row = layout.stream_pending_key(data, id, entry.id);
        self.transaction.set(&row, &entry.row.encode());
        if group.row.policy.is_some() {
            let at = |at_ms| layout.stream_idle_key(data, id, at_ms, entry.id);
            if let Some(before) = before {
                self.transaction.clear(&at(before.row.delivered_at_ms));
            }
            self.transaction.set(&at(entry.row.delivered_at_ms), b"");
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
                self.transaction.clear(&by_consumer(consumer));
            }
            changes.removed(before.row.consumer);
        }
        if let Some(consumer) = consumer {
            self.transaction.set(&by_consumer(consumer), b"");
        }
        changes.added(consumer);
    }

    /// An entry is pending no more.
    pub(super) fn remove_pending(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        entry: &PendingEntry,
        changes: &mut PendingChanges,
    ) {
        let (layout, data, group_id) = (self.layout(), key.data(), group.row.id);
        let (id, consumer) = (entry.id, entry.row.consumer);
        self.transaction
            .clear(&layout.stream_pending_key(data, group_id, id));
        if let Some(consumer) = consumer {
            let row = layout.stream_consumer_pending_key(data, group_id, consumer, id);
            self.transaction.clear(&row);
        }
        if group.row.policy.is_some() {
            let at_ms = entry.row.delivered_at_ms;
            let row = layout.stream_idle_key(data, group_id, at_ms, id);
            self.transaction.clear(&row);
        }
        changes.removed(consumer);
    }

    /// Counts what has changed, without a conflict, and has those that wait told when what was
    /// delivered is to be handed out again.
    pub(super) fn count_pending(&self, key: &OpenKey, group: &OpenGroup, changes: PendingChanges) {
        if let (Some(policy), Some(at_ms)) = (&group.row.policy, changes.first_delivered_at_ms) {
            self.set_timer(key, at_ms.saturating_add(policy.min_idle_ms));
        }
        let counter = |consumer| {
            self.layout()
                .stream_pending_count_key(key.data(), group.row.id, consumer)
        };
        let of_group = changes.of_group();
        if of_group != 0 {
            self.transaction.atomic_add(&counter(None), of_group);
        }
        for (consumer, delta) in changes.by_consumer {
            if delta != 0 && consumer.is_some() {
                self.transaction.atomic_add(&counter(consumer), delta);
            }
        }
    }
}
