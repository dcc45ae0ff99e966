//! Delivering the next entries of a group to several consumers, one after the other.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::stream::{IdRange, StreamEntry};
use crate::unit::context::WriteContext;
use quoin_base::limits::DELIVERED_BYTES_MAX;
use quoin_layout::StreamId;
use quoin_store::StoreError;

use super::deliver::first_delivery;
use super::pending::{PendingChanges, PendingEntry};
use super::{OpenConsumer, OpenGroup};

/// Entries that are read at once, while they are small.
const READ_AT_ONCE_MAX: usize = 64;
/// How many times more entries are read at once than before.
const READ_GROWTH: usize = 4;
/// Bytes of an entry that is small.
const SMALL_ENTRY_BYTES: usize = 1024;

/// Gives entries to several consumers of one group: the group and each consumer are read and written
/// once. For a group without a policy, in a transaction that alone writes.
pub struct Delivering<'c, 't> {
    context: &'c WriteContext<'t>,
    key: &'c OpenKey,
    key_name: &'c Bytes,
    group: OpenGroup,
    /// By name, with whether it was given an entry.
    consumers: HashMap<Bytes, (OpenConsumer, bool)>,
    /// The entries that were delivered.
    delivered: Vec<StreamId>,
    changes: PendingChanges,
    /// Entries that are read and not delivered yet, with what is pending of them.
    next: VecDeque<(StreamEntry, Option<PendingEntry>)>,
    /// How many are read at once.
    read_at_once: usize,
    /// The last that was read.
    read_to: StreamId,
}

impl<'c, 't> Delivering<'c, 't> {
    /// Begins to deliver. `key_name` is what keyspace events call the stream.
    pub fn begin(
        context: &'c WriteContext<'t>,
        key: &'c OpenKey,
        key_name: &'c Bytes,
        group: OpenGroup,
    ) -> Self {
        Self {
            context,
            key,
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

    /// Gives a consumer the next entries, up to `count` and [`DELIVERED_BYTES_MAX`]. They are pending from
    /// now on.
    ///
    /// # Errors
    /// `Text` for a name that is too long.
    pub async fn deliver(
        &mut self,
        consumer: &Bytes,
        count: usize,
    ) -> Result<Vec<StreamEntry>, CommandError> {
        if !self.consumers.contains_key(consumer) {
            let (context, group) = (self.context, &self.group);
            let found =
                context.stream_find_or_create_consumer(self.key, self.key_name, group, consumer);
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
            let pending = first_delivery(entry.id, consumer, self.context.now_ms);
            let (key, changes) = (self.key, &mut self.changes);
            self.context
                .put_pending(key, &self.group, pending, before.as_ref(), changes);
            self.delivered.push(entry.id);
            entries.push(entry);
            *is_active = true;
        }
        Ok(entries)
    }

    /// Bytes of the entries that are read and not delivered yet.
    fn next_bytes(&self) -> usize {
        let entries = self.next.iter().map(|(entry, _)| entry.size_bytes());
        entries.sum()
    }

    /// Reads at least `missing` entries, or [`DELIVERED_BYTES_MAX`] of them; false where there are no more.
    async fn read(&mut self, missing: usize) -> Result<bool, StoreError> {
        let Some(range) = IdRange::after(self.read_to) else {
            return Ok(false);
        };
        let (context, key) = (self.context, self.key);
        let wanted = missing.max(self.read_at_once);
        let pages = context.stream_pages(key, range, false, wanted);
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
        let before = context.stream_pending_range(key, &self.group, range, false, usize::MAX);
        let mut before = before.await?.into_iter().peekable();
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

    /// Writes down how far the group has read, and what its consumers were given. To be called at the
    /// end.
    pub async fn end(mut self) -> Result<(), StoreError> {
        let (context, key) = (self.context, self.key);
        if let Some(last) = self.delivered.last() {
            let ids = self.delivered.iter().copied();
            self.group.row.entries_read = context.read_after(key, &self.group, ids).await?;
            self.group.row.last = *last;
            context.set_stream_group(key, &self.group);
            context.count_pending(key, &self.group, self.changes);
        }
        for (consumer, is_active) in self.consumers.values_mut() {
            context.stream_consumer_seen(key, &self.group, consumer, *is_active);
        }
        Ok(())
    }
}
