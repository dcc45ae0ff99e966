//! Trimming (XTRIM, and the options of XADD) removes the oldest entries.
//!
//! Approximate trimming (`~`) removes whole nodes, as in Redis. This store has no nodes, so entries
//! are read to find where Redis's first node would end: after a number of entries or bytes. The
//! server remembers that place ([`FirstNodes`](crate::unit::first_nodes::FirstNodes)), and reads no
//! entry as long as less than this node would be removed. One command reads a bounded number of
//! entries, and later commands trim the rest.

use quoin_layout::stream::decode_stream_fields;
use quoin_layout::{KeyRange, Section, StoredValue, StreamHead, StreamId, successor};
use quoin_rdb::StreamNode;
use quoin_store::{Isolation, StoreError};

use super::delete::References;
use super::{IdRange, Stream, StreamMut};
use crate::rows::pages::Pages;

/// Maximum number of nodes that one command trims approximately, unless it has LIMIT, as in Redis.
const NODES_MAX: u64 = 100;
/// Maximum number of entries that one command trims approximately, unless it has LIMIT, as in
/// Redis.
const APPROXIMATE_ENTRIES_MAX: u64 = 1_000_000;
/// Maximum number of entries that one command examines to find nodes. If a command may trim more,
/// it trims exactly.
pub(super) const WALKED_ENTRIES_MAX: u64 = 100_000;
/// A command stops searching for nodes once it has examined this many bytes of entries.
const WALKED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How a stream is trimmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trim {
    /// What remains.
    pub to: TrimTo,
    /// Only whole nodes go, so more may be left.
    pub is_approximate: bool,
    /// The most entries that an approximate trim removes; 0: all. `None` is Redis's default.
    pub limit: Option<u64>,
    /// What happens to the pending entries of groups.
    pub references: References,
}

/// What remains of a trimmed stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrimTo {
    /// The last entries, this many.
    Length(u64),
    /// The entries from this id on.
    First(StreamId),
}

impl StreamMut<'_, '_> {
    /// Trims the stream, and returns how many entries it has removed.
    pub async fn trim(&self, trim: &Trim) -> Result<i64, StoreError> {
        if trim.references != References::Keep {
            return self.trim_with_references(trim).await;
        }
        let (exact, relaxed) = (self.context.isolation, self.context.relaxed());
        let count = match (trim.to, trim.is_approximate) {
            (TrimTo::Length(kept), false) => self.length_at(exact).await?.saturating_sub(kept),
            (TrimTo::First(id), false) => self.count_before(id, u64::MAX, usize::MAX).await?,
            (TrimTo::Length(kept), true) => {
                let length = self.length_at(relaxed).await?;
                let excess = length.saturating_sub(kept);
                self.count_in_nodes(length, excess, trim.limit).await?
            }
            (TrimTo::First(id), true) => {
                let limit = self.approximate_limit(trim.limit);
                let before = self.count_before(id, limit, WALKED_BYTES_MAX).await?;
                let length = self.length_at(relaxed).await?;
                self.count_in_nodes(length, before, trim.limit).await?
            }
        };
        match count {
            0 => Ok(0),
            count => self.remove_first(count).await,
        }
    }

    /// Whether trimming a stream of this length may remove entries.
    pub(super) fn may_trim(&self, trim: &Trim, head: StreamHead, length: u64) -> bool {
        let TrimTo::Length(kept) = trim.to else {
            return true;
        };
        let excess = length.saturating_sub(kept);
        if !trim.is_approximate || excess == 0 || trim.references != References::Keep {
            return excess > 0;
        }
        let at_most = excess.min(self.approximate_limit(trim.limit));
        let removed = head.added.saturating_sub(length);
        let nodes = &self.context.environment.stream_first_nodes;
        let left = nodes.entries_left(self.key.data(), removed);
        at_most >= length || left.is_none_or(|left| left <= at_most)
    }

    pub(super) fn approximate_limit(&self, limit: Option<u64>) -> u64 {
        match limit {
            Some(0) => u64::MAX,
            Some(limit) => limit,
            None => {
                let node = self.context.environment.stream_node_entries();
                NODES_MAX.saturating_mul(node).min(APPROXIMATE_ENTRIES_MAX)
            }
        }
    }

    pub(super) async fn length_at(&self, isolation: Isolation) -> Result<u64, StoreError> {
        let length = self.context.length(self.key, isolation).await?;
        Ok(u64::try_from(length).unwrap_or(0))
    }

    /// Counts entries below an id, up to `limit` entries and about `bytes_max` bytes.
    pub(super) async fn count_before(
        &self,
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
        let node = self.context.environment.stream_node_entries();
        let node = usize::try_from(node).unwrap_or(0);
        let rows = self.rows(range);
        let mut pages = Pages::new(self.context, rows, false, node.saturating_add(1));
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

    /// How many entries an approximate trim removes if at most `excess` may go.
    pub(super) async fn count_in_nodes(
        &self,
        length: u64,
        excess: u64,
        limit: Option<u64>,
    ) -> Result<u64, StoreError> {
        if excess == 0 {
            return Ok(0);
        }
        let at_most = excess.min(self.approximate_limit(limit));
        // The last node is whole, however few entries it has.
        if at_most >= length {
            return Ok(length);
        }
        let head = self.head_at(self.context.relaxed()).await?;
        let removed = head.added.saturating_sub(length);
        self.entries_in_whole_nodes(removed, at_most).await
    }

    /// How many of the first `at_most` entries are in whole nodes. `removed` is the number of
    /// entries already removed from the stream. If nodes are large or many, the count ends where
    /// one command stops searching.
    async fn entries_in_whole_nodes(&self, removed: u64, at_most: u64) -> Result<u64, StoreError> {
        let (context, data) = (self.context, self.key.data());
        let nodes = &context.environment.stream_first_nodes;
        let left = nodes.entries_left(data, removed);
        if left.is_some_and(|left| left > at_most) {
            return Ok(0);
        }
        if at_most > WALKED_ENTRIES_MAX {
            return Ok(at_most);
        }
        let entries_max = context.environment.stream_node_entries_max();
        let bytes_max = context.environment.stream_node_bytes_max();
        // Removed entries of the first node count too. If this server has not examined the stream
        // yet, it assumes that all previous nodes had the maximum number of entries.
        let begun = nodes.first(data, removed);
        let begun = begun.unwrap_or(removed - removed % entries_max);
        let mut room = entries_max.saturating_sub(removed - begun);
        let expected = usize::try_from(room.saturating_add(1)).unwrap_or(usize::MAX);
        let pages = Pages::new(context, self.rows(IdRange::ALL), false, expected);
        let mut pages = pages.in_isolation(context.relaxed());
        let mut begun = Some(begun);
        let mut whole = 0;
        let mut node: Option<StreamNode> = None;
        let mut walked_bytes = 0;
        'walk: while let Some(rows) = pages.next().await? {
            for row in rows {
                if walked_bytes >= WALKED_BYTES_MAX {
                    break 'walk;
                }
                walked_bytes += row.value.len();
                let StreamId { ms, seq } =
                    context.layout().read_stream_entry_key(data, &row.key)?;
                let fields = match StoredValue::decode(&row.value)? {
                    StoredValue::Plain(content) => Some(decode_stream_fields(&content)?),
                    // It is so large that it fills a node, so it need not be read.
                    StoredValue::Split { .. } => None,
                };
                match (&mut node, &fields) {
                    (Some(node), Some(fields)) if node.takes(fields, room, bytes_max) => {
                        node.push((ms, seq), fields);
                    }
                    (Some(full), _) if whole + full.entries() > at_most => {
                        let first = begun.unwrap_or(removed + whole);
                        nodes.remember(data, first, removed + whole + full.entries());
                        return Ok(whole);
                    }
                    (ended, fields) => {
                        if let Some(ended) = ended {
                            whole += ended.entries();
                            (begun, room) = (None, entries_max);
                        }
                        *ended = Some(match fields {
                            Some(fields) => StreamNode::begin((ms, seq), fields),
                            None => StreamNode::of_one_large_entry(),
                        });
                    }
                }
            }
        }
        let Some(node) = node else {
            return Ok(whole);
        };
        if walked_bytes >= WALKED_BYTES_MAX && whole == 0 && node.entries() <= at_most {
            // Otherwise a node that is too large for one command to read would never be removed.
            return Ok(node.entries());
        }
        // The last node is not full, or its end was not found.
        let first = begun.unwrap_or(removed + whole);
        nodes.remember(data, first, removed + whole + node.entries());
        Ok(whole)
    }

    /// Removes the first `count` entries, and returns how many there were. Conflicts with every
    /// change of the stream, because another server could remove the same entries.
    pub(super) async fn remove_first(&self, count: u64) -> Result<i64, StoreError> {
        let length = self.length_at(Isolation::Serializable).await?;
        let mut rows = self.rows(IdRange::ALL);
        let removed = count.min(length);
        if let Some(last) = self.last_of_first(removed, length).await? {
            let last = self
                .context
                .layout()
                .stream_entry_key(self.key.data(), last);
            rows.end = successor(&last);
        }
        self.clear_entries(&rows).await?;
        let removed = i64::try_from(removed).unwrap_or(i64::MAX);
        self.context.add_length(self.key, -removed);
        Ok(removed)
    }

    /// The last of the first `count` entries of a stream of this length; `None` if these are all.
    pub(super) async fn last_of_first(
        &self,
        count: u64,
        length: u64,
    ) -> Result<Option<StreamId>, StoreError> {
        if count >= length {
            return Ok(None);
        }
        let offset = usize::try_from(count.saturating_sub(1)).unwrap_or(usize::MAX);
        let signed = i64::try_from(length).unwrap_or(i64::MAX);
        let rows = self.rows(IdRange::ALL);
        let last = self.context.rows_by_rank(rows, signed, false, offset, 1);
        match last.await?.first() {
            Some(last) => {
                let id = (self.context.layout()).read_stream_entry_key(self.key.data(), &last.key);
                Ok(Some(id?))
            }
            None => Err(StoreError::Corrupt(
                "length of a stream disagrees with its entries",
            )),
        }
    }

    /// Clears entries. Reads them only if the stream has split entries, to find their chunks.
    pub(super) async fn clear_entries(&self, range: &KeyRange) -> Result<(), StoreError> {
        let (context, data) = (self.context, self.key.data());
        let chunks = context.layout().section_prefix(data, Section::Chunks);
        let chunks = KeyRange::children(&chunks);
        let chunk = context.outermost(&chunks, false, Isolation::Serializable);
        if chunk.await?.is_some() {
            let mut pages = Pages::new(context, range.clone(), false, 0);
            while let Some(rows) = pages.next().await? {
                for row in &rows {
                    context.discard_value(data, &row.value)?;
                }
            }
        }
        context.transaction.clear_range(&range.begin, &range.end);
        Ok(())
    }

    pub(super) fn rows(&self, range: IdRange) -> KeyRange {
        let layout = self.context.layout();
        layout.stream_entries(self.key.data(), range.first, range.last)
    }
}

impl Stream<'_, '_> {
    /// How many nodes Redis would have for a stream of small entries of this length.
    pub fn node_count(&self, length: i64, head: StreamHead) -> i64 {
        let length = u64::try_from(length).unwrap_or(0);
        let node = self.context.environment.stream_node_entries();
        let first = node - head.added.saturating_sub(length) % node;
        let nodes = match length.checked_sub(first) {
            _ if length == 0 => 0,
            None => 1,
            Some(rest) => 1 + rest.div_ceil(node),
        };
        i64::try_from(nodes).unwrap_or(i64::MAX)
    }
}
