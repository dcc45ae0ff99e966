//! Trimming: the oldest entries go.
//!
//! Where it is asked to trim approximately, whole nodes of Redis's go ([`nodes`](super::nodes)).

use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_layout::{KeyRange, Section, StreamHead, StreamId, successor};
use quoin_store::{Isolation, StoreError};

use super::IdRange;
use super::nodes::WALKED_BYTES_MAX;

/// Nodes that one command trims approximately, unless it says how many entries (as Redis).
const NODES_MAX: u64 = 100;
/// Entries that one command trims approximately, unless it says how many (as Redis).
const APPROXIMATE_ENTRIES_MAX: u64 = 1_000_000;

/// How a stream is trimmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trim {
    /// Down to what.
    pub to: TrimTo,
    /// Only whole nodes go, so more may be left.
    pub is_approximate: bool,
    /// The most entries that go, where it is approximate; 0: all. `None` is Redis's default.
    pub limit: Option<u64>,
}

/// What is left of a stream that is trimmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrimTo {
    /// The last so many entries.
    Length(u64),
    /// The entries from this id on.
    First(StreamId),
}

impl WriteContext<'_> {
    /// Trims a stream, and answers how many entries went.
    pub async fn stream_trim(&self, key: &OpenKey, trim: &Trim) -> Result<i64, StoreError> {
        let count = match (trim.to, trim.is_approximate) {
            (TrimTo::Length(kept), false) => {
                let length = self.stream_length(key, self.isolation).await?;
                length.saturating_sub(kept)
            }
            (TrimTo::First(id), false) => {
                let (entries_max, bytes_max) = (u64::MAX, usize::MAX);
                self.stream_count_before(key, id, entries_max, bytes_max)
                    .await?
            }
            (TrimTo::Length(kept), true) => {
                let length = self.stream_length(key, self.relaxed()).await?;
                let excess = length.saturating_sub(kept);
                self.whole_nodes(key, length, excess, trim.limit).await?
            }
            (TrimTo::First(id), true) => {
                let limit = self.approximate_limit(trim.limit);
                let before = self.stream_count_before(key, id, limit, WALKED_BYTES_MAX);
                let before = before.await?;
                let length = self.stream_length(key, self.relaxed()).await?;
                self.whole_nodes(key, length, before, trim.limit).await?
            }
        };
        if count == 0 {
            return Ok(0);
        }
        self.stream_drop_first(key, count).await
    }

    async fn stream_length(&self, key: &OpenKey, isolation: Isolation) -> Result<u64, StoreError> {
        let length = self.length(key, isolation).await?;
        Ok(u64::try_from(length).unwrap_or(0))
    }

    /// Counts entries below an id, up to `limit` and about so many bytes.
    async fn stream_count_before(
        &self,
        key: &OpenKey,
        id: StreamId,
        limit: u64,
        bytes_max: usize,
    ) -> Result<u64, StoreError> {
        let Some(last) = id.previous() else {
            return Ok(0);
        };
        let range = IdRange {
            last,
            ..IdRange::ALL
        };
        let rows = self.stream_rows(key, range);
        let node = usize::try_from(self.environment.stream_node_entries()).unwrap_or(0);
        let mut pages = Pages::new(self, rows, false, node.saturating_add(1));
        let mut count = 0;
        let mut bytes = 0;
        while count < limit
            && bytes < bytes_max
            && let Some(rows) = pages.next().await?
        {
            count += rows.len() as u64;
            bytes += rows.iter().map(|row| row.value.len()).sum::<usize>();
        }
        Ok(count.min(limit))
    }

    /// How many entries are in whole nodes, of which at most `excess` entries go.
    async fn whole_nodes(
        &self,
        key: &OpenKey,
        length: u64,
        excess: u64,
        limit: Option<u64>,
    ) -> Result<u64, StoreError> {
        if excess == 0 {
            return Ok(0);
        }
        let at_most = excess.min(self.approximate_limit(limit));
        // The last node is as long as it is.
        if at_most >= length {
            return Ok(length);
        }
        let head = self.stream_head_at(key, self.relaxed()).await?;
        let gone = head.added.saturating_sub(length);
        self.entries_in_whole_nodes(key, gone, at_most).await
    }

    /// Whether trimming a stream of so many entries may take any away.
    pub(super) fn stream_trims(
        &self,
        key: &OpenKey,
        trim: &Trim,
        head: StreamHead,
        length: u64,
    ) -> bool {
        let TrimTo::Length(kept) = trim.to else {
            return true;
        };
        let excess = length.saturating_sub(kept);
        if !trim.is_approximate || excess == 0 {
            return excess > 0;
        }
        let at_most = excess.min(self.approximate_limit(trim.limit));
        let gone = head.added.saturating_sub(length);
        let nodes = &self.environment.stream_first_nodes;
        let left = nodes.entries_left(key.data(), gone);
        at_most >= length || left.is_none_or(|left| left <= at_most)
    }

    fn approximate_limit(&self, limit: Option<u64>) -> u64 {
        match limit {
            Some(0) => u64::MAX,
            Some(limit) => limit,
            None => {
                let limit = NODES_MAX.saturating_mul(self.environment.stream_node_entries());
                limit.min(APPROXIMATE_ENTRIES_MAX)
            }
        }
    }

    /// Removes the first `count` entries, and answers how many there were. Conflicts with every
    /// change of the stream, since otherwise others might remove the same.
    async fn stream_drop_first(&self, key: &OpenKey, count: u64) -> Result<i64, StoreError> {
        let length = self.stream_length(key, Isolation::Serializable).await?;
        let mut rows = self.stream_rows(key, IdRange::ALL);
        let dropped = count.min(length);
        if dropped < length {
            let offset = usize::try_from(dropped - 1).unwrap_or(usize::MAX);
            let signed = i64::try_from(length).unwrap_or(i64::MAX);
            let last = self
                .rows_by_rank(rows.clone(), signed, false, offset, 1)
                .await?;
            let Some(last) = last.first() else {
                return Err(StoreError::Corrupt(
                    "length of a stream disagrees with its entries",
                ));
            };
            rows.end = successor(&last.key);
        }
        self.stream_clear(key, &rows).await?;
        let dropped = i64::try_from(dropped).unwrap_or(i64::MAX);
        self.add_length(key, -dropped);
        Ok(dropped)
    }

    /// Clears entries without reading them, unless some of the stream's entries are split and their
    /// chunks have to be found.
    async fn stream_clear(&self, key: &OpenKey, range: &KeyRange) -> Result<(), StoreError> {
        let chunks = self.layout().section_prefix(key.data(), Section::Chunks);
        let chunks = KeyRange::children(&chunks);
        let chunk = self.outermost(&chunks, false, Isolation::Serializable);
        if chunk.await?.is_some() {
            let mut pages = Pages::new(self, range.clone(), false, 0);
            while let Some(rows) = pages.next().await? {
                for row in &rows {
                    self.discard_value(key.data(), &row.value)?;
                }
            }
        }
        self.transaction.clear_range(&range.begin, &range.end);
        Ok(())
    }

    fn stream_rows(&self, key: &OpenKey, range: IdRange) -> KeyRange {
        self.layout()
            .stream_entries(key.data(), range.first, range.last)
    }
}

impl ReadContext<'_> {
    /// How many nodes Redis would have for a stream of so many small entries.
    pub fn stream_nodes(&self, length: i64, head: StreamHead) -> i64 {
        let length = u64::try_from(length).unwrap_or(0);
        let node = self.environment.stream_node_entries();
        let first = node - head.added.saturating_sub(length) % node;
        let nodes = match length.checked_sub(first) {
            _ if length == 0 => 0,
            None => 1,
            Some(rest) => 1 + rest.div_ceil(node),
        };
        i64::try_from(nodes).unwrap_or(i64::MAX)
    }
}
