//! Streams: entries in the order of their ids.
//!
//! Each entry is a row under its id, and the key's length counts them. Every XADD reads and writes
//! the head, which holds the last id. So ids grow in the order of commits whatever server adds, and a
//! reader that has seen an id never misses a smaller one. All XADDs of a server that wait go into one
//! batch, so one transaction conflicts with those of another server at most.
//!
//! A stream exists while it has no entries. What consumer groups build on:
//!
//! - [`stream_head`](ReadContext::stream_head) and [`stream_deleted`](ReadContext::stream_deleted):
//!   what a stream knows of itself;
//! - [`stream_pages`](ReadContext::stream_pages): entries of a range page by page, and the two
//!   shorthands [`stream_range`](ReadContext::stream_range) and
//!   [`stream_entry`](ReadContext::stream_entry);
//! - [`stream_append`](WriteContext::stream_append): adding an entry.

pub mod commands;

use std::collections::VecDeque;

use bytes::Bytes;

use quoin_base::limits::RANGE_PAGE_BYTES;
use quoin_layout::stream::{decode_stream_deleted, decode_stream_fields, read_stream_entry_key};
use quoin_layout::{StreamHead, StreamId, successor};
use quoin_store::{Isolation, KeyValue, StoreError};

use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::ReadContext;

mod append;
mod delete;
mod dumping;
mod group;
mod kind;
mod nodes;
mod trim;

pub use append::{Appending, NewId};
pub use delete::StreamSettings;
pub use group::{
    AutoClaim, Claim, Claimed, Deletion, Delivering, HistoryEntry, OpenConsumer, OpenGroup,
    PendingEntry, References, Release, ReleaseMode, StreamFacts,
};
pub use kind::KIND;
pub use trim::{Trim, TrimTo};

/// An entry of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEntry {
    /// Its id.
    pub id: StreamId,
    /// Names and values in turns.
    pub fields: Vec<Bytes>,
}

impl StreamEntry {
    /// Bytes of its names and values.
    pub fn size_bytes(&self) -> usize {
        self.fields.iter().map(Bytes::len).sum()
    }
}

/// Ids from one to another, both included. Empty where the first is above the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdRange {
    /// The first.
    pub first: StreamId,
    /// The last.
    pub last: StreamId,
}

impl IdRange {
    /// All ids.
    pub const ALL: Self = Self {
        first: StreamId::MIN,
        last: StreamId::MAX,
    };

    /// All ids after this one; `None` after the greatest.
    pub fn after(id: StreamId) -> Option<Self> {
        id.next().map(|first| Self {
            first,
            last: StreamId::MAX,
        })
    }
}

/// Entries of a range, page by page.
pub struct EntryPages<'c, 't> {
    context: &'c ReadContext<'t>,
    key: &'c OpenKey,
    /// What the keys of entries begin with.
    prefix: Vec<u8>,
    pages: Pages<'c, 't>,
    /// Rows of the last page, of whose entries the next ones are.
    rows: VecDeque<KeyValue>,
}

impl EntryPages<'_, '_> {
    /// The next entries, of about [`RANGE_PAGE_BYTES`]; `None` after the last. A page is never empty.
    pub async fn next(&mut self) -> Result<Option<Vec<StreamEntry>>, StoreError> {
        let mut entries = Vec::new();
        let mut bytes = 0;
        while bytes < RANGE_PAGE_BYTES
            && let Some(entry) = self.next_entry(entries.is_empty()).await?
        {
            bytes += entry.size_bytes();
            entries.push(entry);
        }
        Ok((!entries.is_empty()).then_some(entries))
    }

    /// The next entry; with `reads` also of rows that were not read yet.
    async fn next_entry(&mut self, reads: bool) -> Result<Option<StreamEntry>, StoreError> {
        if self.rows.is_empty()
            && reads
            && let Some(rows) = self.pages.next().await?
        {
            self.rows = rows.into();
        }
        match self.rows.pop_front() {
            Some(row) => Ok(Some(self.entry(&row).await?)),
            None => Ok(None),
        }
    }

    async fn entry(&self, row: &KeyValue) -> Result<StreamEntry, StoreError> {
        Ok(StreamEntry {
            id: read_stream_entry_key(&self.prefix, &row.key)?,
            fields: self.context.stream_fields(self.key, &row.value).await?,
        })
    }

    /// The next up to `count` entries of them.
    pub async fn take(self, count: usize) -> Result<Vec<StreamEntry>, StoreError> {
        self.take_within(count, usize::MAX).await
    }

    /// The same up to the entry with which they have so many bytes.
    pub async fn take_within(
        mut self,
        count: usize,
        bytes_max: usize,
    ) -> Result<Vec<StreamEntry>, StoreError> {
        let mut taken = Vec::new();
        let mut bytes = 0;
        while taken.len() < count
            && bytes < bytes_max
            && let Some(entry) = self.next_entry(true).await?
        {
            bytes = entry.size_bytes().saturating_add(bytes);
            taken.push(entry);
        }
        Ok(taken)
    }
}

impl ReadContext<'_> {
    /// The last id of a stream, and how many entries it was ever given. In a command that writes this
    /// conflicts with every XADD.
    pub async fn stream_head(&self, key: &OpenKey) -> Result<StreamHead, StoreError> {
        self.stream_head_at(key, self.isolation).await
    }

    /// [`Self::stream_head`], read in this isolation.
    pub async fn stream_head_at(
        &self,
        key: &OpenKey,
        isolation: Isolation,
    ) -> Result<StreamHead, StoreError> {
        let row = self.layout().stream_head_key(key.data());
        let row = self.transaction.get(&row, isolation).await?;
        Ok(StreamHead::decode(row.as_ref())?)
    }

    /// The greatest id that XDEL has deleted.
    pub async fn stream_deleted(&self, key: &OpenKey) -> Result<StreamId, StoreError> {
        let row = self.layout().stream_deleted_key(key.data());
        let row = self.transaction.get(&row, self.isolation).await?;
        Ok(decode_stream_deleted(row.as_ref())?)
    }

    /// The entries of a range, from its end where `reverse`. `expected` (0: not known) keeps the
    /// first page from being larger than needed.
    pub fn stream_pages<'c>(
        &'c self,
        key: &'c OpenKey,
        range: IdRange,
        reverse: bool,
        expected: usize,
    ) -> EntryPages<'c, 'c> {
        let layout = self.layout();
        let mut rows = layout.stream_entries(key.data(), range.first, range.last);
        if let Some(before) = range.first.previous() {
            // Where a read up to the entry before has ended. So the transaction's cache sees that
            // this one continues it, and reads ahead.
            rows.begin = successor(&layout.stream_entry_key(key.data(), before));
        }
        EntryPages {
            context: self,
            key,
            prefix: self.layout().stream_entries_prefix(key.data()),
            pages: Pages::new(self, rows, reverse, expected),
            rows: VecDeque::new(),
        }
    }

    /// Up to `count` entries of a range, from its end where `reverse`.
    pub async fn stream_range(
        &self,
        key: &OpenKey,
        range: IdRange,
        reverse: bool,
        count: usize,
    ) -> Result<Vec<StreamEntry>, StoreError> {
        if range.first > range.last {
            return Ok(Vec::new());
        }
        let pages = self.stream_pages(key, range, reverse, count);
        pages.take(count).await
    }

    /// The entry with an id.
    pub async fn stream_entry(
        &self,
        key: &OpenKey,
        id: StreamId,
    ) -> Result<Option<StreamEntry>, StoreError> {
        let row = self.layout().stream_entry_key(key.data(), id);
        let Some(value) = self.transaction.get(&row, self.isolation).await? else {
            return Ok(None);
        };
        let fields = self.stream_fields(key, &value).await?;
        Ok(Some(StreamEntry { id, fields }))
    }

    async fn stream_fields(&self, key: &OpenKey, row: &Bytes) -> Result<Vec<Bytes>, StoreError> {
        let content = self.load_value(key.data(), row).await?;
        Ok(decode_stream_fields(&content)?)
    }
}
