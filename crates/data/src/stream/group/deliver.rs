//! Delivering entries: XREADGROUP.

use std::collections::HashMap;

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::stream::{IdRange, StreamEntry};
use crate::unit::context::WriteContext;
use quoin_base::limits::{
    DELIVERED_BYTES_MAX, KEY_READS_AT_ONCE, LARGE_READS_AT_ONCE, STREAM_DELIVERED_MAX,
};
use quoin_layout::{StreamId, StreamPending};
use quoin_store::StoreError;

use super::pending::{PendingChanges, PendingEntry};
use super::{OpenConsumer, OpenGroup};

/// An entry that a consumer is given again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Its id.
    pub id: StreamId,
    /// Names and values in turns; `None` where the stream has it no more.
    pub fields: Option<Vec<Bytes>>,
}

impl WriteContext<'_> {
    /// Gives a consumer entries of its group, up to `count`, [`STREAM_DELIVERED_MAX`] and
    /// [`DELIVERED_BYTES_MAX`]: first those
    /// that are idle for too long, where the group has a policy, then the next. They are pending from
    /// now on, unless with `no_ack`, which gives only the next. The group must have been read
    /// serializably.
    ///
    /// # Errors
    /// `Text` where an entry cannot become a dead letter.
    pub async fn stream_deliver(
        &self,
        key: &OpenKey,
        key_name: &Bytes,
        group: &mut OpenGroup,
        consumer: &mut OpenConsumer,
        count: usize,
        no_ack: bool,
    ) -> Result<Vec<StreamEntry>, CommandError> {
        let count = count.min(STREAM_DELIVERED_MAX);
        let written = self.transaction.mutation_count();
        let mut delivered = match no_ack {
            true => Vec::new(),
            false => {
                let idle = self.stream_deliver_idle(key, key_name, group, consumer, count);
                idle.await?
            }
        };
        let mut count = count - delivered.len().min(count);
        if self.transaction.mutation_count() > written && self.is_full() {
            // Idle entries and dead letters may have filled most of the transaction.
            count = count.min(KEY_READS_AT_ONCE);
        }
        // What commits meanwhile comes after these, so it is no conflict.
        let view = self.relaxed_view();
        let bytes: usize = delivered.iter().map(StreamEntry::size_bytes).sum();
        let entries = match IdRange::after(group.row.last) {
            Some(range) if count > 0 => {
                let pages = view.stream_pages(key, range, false, count);
                let left_bytes = DELIVERED_BYTES_MAX.saturating_sub(bytes);
                pages.take_within(count, left_bytes).await?
            }
            _ => Vec::new(),
        };
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            self.stream_consumer_seen(key, group, consumer, !delivered.is_empty());
            return Ok(delivered);
        };
        let ids = entries.iter().map(|entry| entry.id);
        group.row.entries_read = self.read_after(key, group, ids).await?;
        group.row.last = last.id;
        self.set_stream_group(key, group);
        if !no_ack {
            let range = IdRange {
                first: first.id,
                last: last.id,
            };
            self.put_delivered(key, group, consumer, range, &entries)
                .await?;
        }
        self.stream_consumer_seen(key, group, consumer, !no_ack);
        delivered.extend(entries);
        Ok(delivered)
    }

    /// How many entries a group has read when it has been given these.
    pub(super) async fn read_after(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        ids: impl ExactSizeIterator<Item = StreamId>,
    ) -> Result<Option<u64>, StoreError> {
        let view = self.relaxed_view();
        let mut read = group.row.entries_read;
        if let Some(read) = read
            && view.stream_deleted(key).await? == StreamId::MIN
        {
            return Ok(Some(read.saturating_add(ids.len() as u64)));
        }
        let facts = view.stream_facts(key).await?;
        for id in ids {
            read = facts.read_after(read, id);
        }
        Ok(read)
    }

    /// Makes entries pending. Some may be so already: XGROUP SETID lets a group read entries again, and
    /// XCLAIM with FORCE takes one that was not read.
    async fn put_delivered(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        consumer: &OpenConsumer,
        range: IdRange,
        entries: &[StreamEntry],
    ) -> Result<(), StoreError> {
        // Where nothing is pending from here on, the transaction's cache knows that for all commands
        // of a batch: each asks for a later part of what the first one has read.
        let onwards = IdRange {
            last: StreamId::MAX,
            ..range
        };
        let first = self.stream_pending_range(key, group, onwards, false, 1);
        let before = match first.await?.first() {
            Some(first) if first.id <= range.last => {
                let all = self.stream_pending_range(key, group, range, false, usize::MAX);
                all.await?
            }
            _ => Vec::new(),
        };
        let before: HashMap<StreamId, PendingEntry> =
            before.into_iter().map(|entry| (entry.id, entry)).collect();
        let mut changes = PendingChanges::default();
        for entry in entries {
            let pending = first_delivery(entry.id, consumer, self.now_ms);
            let before = before.get(&entry.id);
            self.put_pending(key, group, pending, before, &mut changes);
        }
        self.count_pending(key, group, changes);
        Ok(())
    }

    /// Gives a consumer its own pending entries after an id once more, up to `count`,
    /// [`STREAM_DELIVERED_MAX`] and [`DELIVERED_BYTES_MAX`].
    pub async fn stream_deliver_again(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        consumer: &mut OpenConsumer,
        after: StreamId,
        count: usize,
    ) -> Result<Vec<HistoryEntry>, StoreError> {
        self.stream_consumer_seen(key, group, consumer, false);
        let Some(range) = IdRange::after(after) else {
            return Ok(Vec::new());
        };
        let count = count.min(STREAM_DELIVERED_MAX);
        let pending = self
            .stream_consumer_pending(key, group, consumer.row.id, range, count)
            .await?;
        let mut history = Vec::with_capacity(pending.len());
        let mut changes = PendingChanges::default();
        let mut bytes = 0_usize;
        'pending: for some in pending.chunks(LARGE_READS_AT_ONCE) {
            let ids: Vec<StreamId> = some.iter().map(|entry| entry.id).collect();
            let mut entries = self.entries_ahead(key, &ids).await?;
            for before in some {
                if bytes >= DELIVERED_BYTES_MAX {
                    break 'pending;
                }
                let entry = self.next_entry(key, before.id, &mut entries).await?;
                if let Some(entry) = &entry {
                    bytes = bytes.saturating_add(entry.size_bytes());
                    let mut again = *before;
                    again.row.delivered_at_ms = self.now_ms;
                    again.row.deliveries = again.row.deliveries.saturating_add(1);
                    self.put_pending(key, group, again, Some(before), &mut changes);
                }
                history.push(HistoryEntry {
                    id: before.id,
                    fields: entry.map(|entry| entry.fields),
                });
            }
        }
        self.count_pending(key, group, changes);
        Ok(history)
    }
}

/// An entry once its group gives it to a consumer.
pub(super) fn first_delivery(id: StreamId, consumer: &OpenConsumer, now_ms: i64) -> PendingEntry {
    PendingEntry {
        id,
        row: StreamPending {
            consumer: Some(consumer.row.id),
            delivered_at_ms: now_ms,
            deliveries: 1,
        },
    }
}
