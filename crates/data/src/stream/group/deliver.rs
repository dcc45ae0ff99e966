//! Delivering entries: XREADGROUP.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

use quoin_base::limits::{
    DELIVERED_BYTES_MAX, KEY_READS_AT_ONCE, LARGE_READS_AT_ONCE, STREAM_DELIVERED_MAX,
};
use quoin_layout::StreamId;
use quoin_store::StoreError;

use super::GroupMut;
use super::consumers::OpenConsumer;
use super::pending::{PendingChanges, PendingEntry};
use super::policy::IdleEntry;
use crate::error::CommandError;
use crate::stream::{IdRange, Stream, StreamEntry};

/// An entry that is delivered to a consumer again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HistoryEntry {
    /// Its id.
    pub id: StreamId,
    /// Alternating names and values. `None` if the entry no longer exists in the stream.
    pub fields: Option<Vec<Bytes>>,
}

/// What a consumer gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// Entries that were pending.
    pub idle: Vec<IdleEntry>,
    /// Entries that are new to the group.
    pub new: Vec<StreamEntry>,
}

impl GroupMut<'_, '_> {
    /// Delivers entries of the group to a consumer, up to `count`, [`STREAM_DELIVERED_MAX`] and
    /// [`DELIVERED_BYTES_MAX`]. With CLAIM, or if the group has a policy, entries that have been
    /// idle for too long come first, then new ones. They become pending. With `no_ack` the policy
    /// hands out none, and new entries do not become pending. The group must have been read
    /// serializably.
    ///
    /// # Errors
    /// `Text` if an entry cannot become a dead letter.
    pub(crate) async fn deliver(
        &mut self,
        key_name: &Bytes,
        consumer: &mut OpenConsumer,
        count: usize,
        no_ack: bool,
        claim: Option<i64>,
    ) -> Result<Delivered, CommandError> {
        let context = self.context;
        let count = count.min(STREAM_DELIVERED_MAX);
        let written = context.transaction.mutation_count();
        if claim.is_some() {
            self.keep_idle_rows().await?;
        }
        let idle = match no_ack && claim.is_none() {
            true => Vec::new(),
            false => self.deliver_idle(key_name, consumer, count, claim).await?,
        };
        let mut count = count - idle.len().min(count);
        if context.transaction.mutation_count() > written && context.is_full() {
            // Idle entries and dead letters may have filled most of the transaction.
            count = count.min(KEY_READS_AT_ONCE);
        }
        // A concurrently added entry comes after these, so it is not a conflict.
        let view = context.relaxed_view();
        let bytes: usize = idle.iter().map(|one| one.entry.size_bytes()).sum();
        let entries = match IdRange::after(self.row.last) {
            Some(range) if count > 0 => {
                let pages = Stream::open(&view, self.key).pages(range, false, count);
                let left_bytes = DELIVERED_BYTES_MAX.saturating_sub(bytes);
                pages.take_within(count, left_bytes).await?
            }
            _ => Vec::new(),
        };
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            self.note_seen(consumer, !idle.is_empty());
            return Ok(Delivered { idle, new: entries });
        };
        self.advance(entries.iter().map(|entry| entry.id), last.id)
            .await?;
        if !no_ack {
            let range = IdRange {
                first: first.id,
                last: last.id,
            };
            self.put_delivered(consumer, range, &entries).await?;
        } else {
            context.count_out(self.key, entries.len());
        }
        self.note_seen(consumer, !no_ack || !idle.is_empty());
        Ok(Delivered { idle, new: entries })
    }

    /// Records that the group has read these entries, the last of which is `last`.
    async fn advance(
        &mut self,
        ids: impl ExactSizeIterator<Item = StreamId>,
        last: StreamId,
    ) -> Result<(), StoreError> {
        let entries_read = self.read_after(ids).await?;
        let row = self.change();
        row.entries_read = entries_read;
        row.last = last;
        self.save();
        Ok(())
    }

    /// How many entries the group has read after it was given these.
    async fn read_after(
        &self,
        ids: impl ExactSizeIterator<Item = StreamId>,
    ) -> Result<Option<u64>, StoreError> {
        let view = self.context.relaxed_view();
        let stream = Stream::open(&view, self.key);
        let mut read = self.row.entries_read;
        if let Some(read) = read
            && stream.max_deleted_id().await? == StreamId::MIN
        {
            return Ok(Some(read.saturating_add(ids.len() as u64)));
        }
        let facts = stream.facts().await?;
        for id in ids {
            read = facts.read_after(read, id);
        }
        Ok(read)
    }

    /// Makes entries pending. Some may already be: XGROUP SETID lets a group read entries again,
    /// and XCLAIM with FORCE takes entries that were not read yet.
    async fn put_delivered(
        &self,
        consumer: &OpenConsumer,
        range: IdRange,
        entries: &[StreamEntry],
    ) -> Result<(), StoreError> {
        // If nothing is pending from here on, the transaction's cache knows that for all commands
        // of a batch, because each reads a later part of the same range.
        let onwards = self.pending_range(IdRange::from(range.first), false, 1);
        let before = match onwards.await?.first() {
            Some(first) if first.id <= range.last => {
                self.pending_range(range, false, usize::MAX).await?
            }
            _ => Vec::new(),
        };
        let before: HashMap<StreamId, PendingEntry> =
            before.into_iter().map(|entry| (entry.id, entry)).collect();
        let mut changes = PendingChanges::default();
        for entry in entries {
            let pending = PendingEntry::first(entry.id, consumer.row.id, self.context.now_ms);
            self.put_pending(pending, before.get(&entry.id), &mut changes);
        }
        self.count_pending(changes);
        Ok(())
    }

    /// Gives a consumer its own pending entries after an id once more, up to `count`,
    /// [`STREAM_DELIVERED_MAX`] and [`DELIVERED_BYTES_MAX`].
    pub(crate) async fn deliver_again(
        &self,
        consumer: &mut OpenConsumer,
        after: StreamId,
        count: usize,
    ) -> Result<Vec<HistoryEntry>, StoreError> {
        self.note_seen(consumer, false);
        let Some(range) = IdRange::after(after) else {
            return Ok(Vec::new());
        };
        let count = count.min(STREAM_DELIVERED_MAX);
        let pending = self.consumer_pending(consumer.row.id, range, count).await?;
        let stream = self.stream();
        let mut history = Vec::with_capacity(pending.len());
        let mut changes = PendingChanges::default();
        let mut bytes = 0_usize;
        'pending: for some in pending.chunks(LARGE_READS_AT_ONCE) {
            let ids: Vec<StreamId> = some.iter().map(|entry| entry.id).collect();
            let mut entries = stream.entries_ahead(&ids).await?;
            for before in some {
                if bytes >= DELIVERED_BYTES_MAX {
                    break 'pending;
                }
                let entry = stream.next_entry(before.id, &mut entries).await?;
                if let Some(entry) = &entry {
                    bytes = bytes.saturating_add(entry.size_bytes());
                    let again = before.again(before.row.consumer, self.context.now_ms);
                    self.put_pending(again, Some(before), &mut changes);
                }
                history.push(HistoryEntry {
                    id: before.id,
                    fields: entry.map(|entry| entry.fields),
                });
            }
        }
        self.count_pending(changes);
        Ok(history)
    }
}

/// Entries that a [`Delivering`] reads at once while they are small.
const READ_AT_ONCE_MAX: usize = 64;
/// The number of entries that it reads at once grows by this factor.
const READ_GROWTH: usize = 4;
/// Maximum size of a small entry, in bytes.
const SMALL_ENTRY_BYTES: usize = 1024;

/// Delivers the next entries of a group to several consumers, one after another. Reads and writes
/// the group and each consumer once. Requires a group without a policy, and a transaction that is
/// the only writer.
pub(crate) struct Delivering<'c, 't> {
    group: GroupMut<'c, 't>,
    key_name: &'c Bytes,
    /// By name, with whether it was given an entry.
    consumers: HashMap<Bytes, (OpenConsumer, bool)>,
    /// The entries that were delivered.
    delivered: Vec<StreamId>,
    changes: PendingChanges,
    /// Entries that were read and not delivered yet, each with the pending entry that already has
    /// its id.
    next: VecDeque<(StreamEntry, Option<PendingEntry>)>,
    /// How many are read at once.
    read_at_once: usize,
    /// The last that was read.
    read_to: StreamId,
}

impl<'c, 't> Delivering<'c, 't> {
    /// Begins to deliver. `key_name` is the stream's name in keyspace events.
    pub(crate) fn begin(group: GroupMut<'c, 't>, key_name: &'c Bytes) -> Self {
        Self {
            key_name,
            consumers: HashMap::new(),
            delivered: Vec::new(),
            changes: PendingChanges::default(),
            next: VecDeque::new(),
            read_at_once: 1,
            read_to: group.row.last,
            group,
        }
    }

    /// Delivers the next entries to a consumer, up to `count` and [`DELIVERED_BYTES_MAX`]. They
    /// become pending.
    ///
    /// # Errors
    /// `Text` if the name is too long.
    pub(crate) async fn deliver(
        &mut self,
        consumer: &Bytes,
        count: usize,
    ) -> Result<Vec<StreamEntry>, CommandError> {
        if !self.consumers.contains_key(consumer) {
            let found = self.group.find_or_create_consumer(self.key_name, consumer);
            let (found, _) = found.await?;
            self.consumers.insert(consumer.clone(), (found, false));
        }
        while self.next.len() < count
            && self.next_bytes() < DELIVERED_BYTES_MAX
            && self.read(count - self.next.len()).await?
        {}
        let mut entries = Vec::with_capacity(count.min(self.next.len()));
        let Some((consumer, is_active)) = self.consumers.get_mut(consumer) else {
            return Ok(entries);
        };
        let mut bytes = 0_usize;
        while entries.len() < count
            && bytes < DELIVERED_BYTES_MAX
            && let Some((entry, before)) = self.next.pop_front()
        {
            bytes = bytes.saturating_add(entry.size_bytes());
            let pending = PendingEntry::first(entry.id, consumer.row.id, self.group.context.now_ms);
            self.group
                .put_pending(pending, before.as_ref(), &mut self.changes);
            self.delivered.push(entry.id);
            entries.push(entry);
            *is_active = true;
        }
        Ok(entries)
    }

    /// Bytes of the entries that were read and not delivered yet.
    fn next_bytes(&self) -> usize {
        let entries = self.next.iter().map(|(entry, _)| entry.size_bytes());
        entries.sum()
    }

    /// Reads at least `missing` entries, or [`DELIVERED_BYTES_MAX`] of them. False if there are no
    /// more.
    async fn read(&mut self, missing: usize) -> Result<bool, StoreError> {
        let Some(range) = IdRange::after(self.read_to) else {
            return Ok(false);
        };
        let wanted = missing.max(self.read_at_once);
        let pages = self.group.stream().pages(range, false, wanted);
        let entries = pages.take_within(wanted, DELIVERED_BYTES_MAX).await?;
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            return Ok(false);
        };
        let range = IdRange {
            first: first.id,
            last: last.id,
        };
        self.read_to = last.id;
        // XGROUP SETID lets a group read entries again.
        let before = self.group.pending_range(range, false, usize::MAX).await?;
        let mut before = before.into_iter().peekable();
        let bytes: usize = entries.iter().map(StreamEntry::size_bytes).sum();
        self.read_at_once = match bytes <= entries.len() * SMALL_ENTRY_BYTES {
            true => (self.read_at_once * READ_GROWTH).min(READ_AT_ONCE_MAX),
            false => 1,
        };
        for entry in entries {
            while before.next_if(|before| before.id < entry.id).is_some() {}
            let before = before.next_if(|before| before.id == entry.id);
            self.next.push_back((entry, before));
        }
        Ok(true)
    }

    /// Writes how far the group has read, and the consumers' new pending entries. Must be called at
    /// the end.
    pub(crate) async fn end(mut self) -> Result<(), StoreError> {
        if let Some(last) = self.delivered.last() {
            let ids = self.delivered.iter().copied();
            self.group.advance(ids, *last).await?;
            self.group.count_pending(self.changes);
        }
        for (consumer, is_active) in self.consumers.values_mut() {
            self.group.note_seen(consumer, *is_active);
        }
        Ok(())
    }
}
