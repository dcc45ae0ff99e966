//! Reading entries, the last id, and what XINFO STREAM reports.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::future::try_join_all;

use quoin_base::limits::RANGE_PAGE_BYTES;
use quoin_layout::stream::{decode_stream_deleted, decode_stream_fields, read_stream_entry_key};
use quoin_layout::{StreamHead, StreamId, successor};
use quoin_store::{Isolation, KeyValue, StoreError};

use super::{IdRange, Stream, StreamEntry};
use crate::rows::pages::Pages;

/// Entries of a range, page by page.
pub struct EntryPages<'c, 't> {
    stream: Stream<'c, 't>,
    /// The start of the keys of all entries.
    prefix: Vec<u8>,
    pages: Pages<'c, 't>,
    /// Rows of the last page that were not returned yet.
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

    /// The next entry of the last page. With `reads`, reads the next page if necessary.
    async fn next_entry(&mut self, reads: bool) -> Result<Option<StreamEntry>, StoreError> {
        if self.rows.is_empty()
            && reads
            && let Some(rows) = self.pages.next().await?
        {
            self.rows = rows.into();
        }
        match self.rows.pop_front() {
            Some(row) => Ok(Some(StreamEntry {
                id: read_stream_entry_key(&self.prefix, &row.key)?,
                fields: self.stream.fields(&row.value).await?,
            })),
            None => Ok(None),
        }
    }

    /// Up to `count` entries.
    pub async fn take(self, count: usize) -> Result<Vec<StreamEntry>, StoreError> {
        self.take_within(count, usize::MAX).await
    }

    /// Up to `count` entries. The first entry that brings them to `bytes_max` is the last.
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

/// Entries that were read ahead, in the order of the ids that were asked for.
pub(super) type EntriesAhead = std::vec::IntoIter<Option<StreamEntry>>;

impl<'c, 't> Stream<'c, 't> {
    /// The last id, and the number of entries that were ever added. In a command that writes this
    /// conflicts with every XADD.
    pub async fn head(&self) -> Result<StreamHead, StoreError> {
        self.head_at(self.context.isolation).await
    }

    /// [`Self::head`] in this isolation.
    pub async fn head_at(&self, isolation: Isolation) -> Result<StreamHead, StoreError> {
        let row = self.context.layout().stream_head_key(self.key.data());
        let row = self.context.transaction.get(&row, isolation).await?;
        Ok(StreamHead::decode(row.as_ref())?)
    }

    /// The greatest id that XDEL has deleted.
    pub async fn max_deleted_id(&self) -> Result<StreamId, StoreError> {
        let row = self.context.layout().stream_deleted_key(self.key.data());
        let row = self.context.transaction.get(&row, self.context.isolation);
        Ok(decode_stream_deleted(row.await?.as_ref())?)
    }

    /// The entries of a range, from its end if `reverse`. `expected` (0 if unknown) keeps the first
    /// page from being larger than needed.
    pub fn pages(&self, range: IdRange, reverse: bool, expected: usize) -> EntryPages<'c, 't> {
        let (layout, data) = (self.context.layout(), self.key.data());
        let mut rows = layout.stream_entries(data, range.first, range.last);
        if let Some(before) = range.first.previous() {
            // Begins where a read up to the previous entry would have ended. So the transaction's
            // cache recognizes a continued read, and reads ahead.
            rows.begin = successor(&layout.stream_entry_key(data, before));
        }
        EntryPages {
            stream: Stream::open(self.context, self.key),
            prefix: layout.stream_entries_prefix(data),
            pages: Pages::new(self.context, rows, reverse, expected),
            rows: VecDeque::new(),
        }
    }

    /// Up to `count` entries of a range, from its end if `reverse`.
    pub async fn range(
        &self,
        range: IdRange,
        reverse: bool,
        count: usize,
    ) -> Result<Vec<StreamEntry>, StoreError> {
        if range.first > range.last {
            return Ok(Vec::new());
        }
        self.pages(range, reverse, count).take(count).await
    }

    /// The entry with an id.
    pub async fn entry(&self, id: StreamId) -> Result<Option<StreamEntry>, StoreError> {
        let row = self.context.layout().stream_entry_key(self.key.data(), id);
        let value = self.context.transaction.get(&row, self.context.isolation);
        let Some(value) = value.await? else {
            return Ok(None);
        };
        let fields = self.fields(&value).await?;
        Ok(Some(StreamEntry { id, fields }))
    }

    async fn fields(&self, row: &Bytes) -> Result<Vec<Bytes>, StoreError> {
        let content = self.context.load_value(self.key.data(), row).await?;
        Ok(decode_stream_fields(&content)?)
    }

    /// The entries with these ids, read concurrently. Causes no conflicts.
    pub(super) async fn entries_with_ids(
        &self,
        ids: &[StreamId],
    ) -> Result<Vec<Option<StreamEntry>>, StoreError> {
        let view = self.context.relaxed_view();
        let stream = Stream::open(&view, self.key);
        try_join_all(ids.iter().map(|id| stream.entry(*id))).await
    }

    /// [`Self::entries_with_ids`] if reads are round trips. Otherwise reads nothing: entries may be
    /// large, so [`Self::next_entry`] reads each when it is needed. Takes at most
    /// [`LARGE_READS_AT_ONCE`](quoin_base::limits::LARGE_READS_AT_ONCE) ids.
    pub(super) async fn entries_ahead(&self, ids: &[StreamId]) -> Result<EntriesAhead, StoreError> {
        match self.context.environment.capabilities.reads_wait {
            false => Ok(EntriesAhead::default()),
            true => Ok(self.entries_with_ids(ids).await?.into_iter()),
        }
    }

    /// The entry with the next of the ids that were given to [`Self::entries_ahead`].
    pub(super) async fn next_entry(
        &self,
        id: StreamId,
        ahead: &mut EntriesAhead,
    ) -> Result<Option<StreamEntry>, StoreError> {
        match ahead.next() {
            Some(entry) => Ok(entry),
            None => {
                let view = self.context.relaxed_view();
                Stream::open(&view, self.key).entry(id).await
            }
        }
    }
}
