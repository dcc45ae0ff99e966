//! Finds ranks and counts elements. Uses blocks, and reads the shorter side of the elements that are in no block.

use bytes::Bytes;
use quoin_layout::{DecodeError, Id, KeyRange, Layout, decode_counter, successor};
use quoin_store::{KeyValue, StoreError};

use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::TypeKind;
use crate::rows::pages::Pages;
use crate::rows::ranks::{NEAR_ELEMENTS_MAX, SCANNED_ELEMENTS_MAX};
use crate::unit::context::ReadContext;

/// How many blocks are read first. Ranks are often near the beginning.
const BLOCKS_READ_FIRST: usize = 64;

/// The end of a block, or the beginning of the value.
#[derive(Debug)]
pub(crate) struct RankStart {
    /// The rows after it.
    pub(crate) rows: KeyRange,
    /// Number of elements before it.
    pub(crate) elements: i64,
}

/// Passing at most this many rows needs no blocks. Few rows are cheap, even if they have many elements.
const PASSED_ROWS_MAX: usize = 512;

impl ReadContext<'_> {
    /// Records how many rows of a key, and how many elements in them, were passed to find a rank.
    pub(crate) fn note_rows_passed_for_rank(&self, key: &OpenKey, rows: usize, elements: usize) {
        if rows > PASSED_ROWS_MAX {
            self.note_passed_for_rank(key, elements);
        }
    }

    /// Records how many elements or blocks of a key were passed to find a rank.
    pub(crate) fn note_passed_for_rank(&self, key: &OpenKey, passed: usize) {
        if passed > SCANNED_ELEMENTS_MAX
            && key.meta.value_type.kind().ranked_section().is_some()
            && let Some(key) = key.client_key()
        {
            self.environment.rank_wants.add(key);
        }
    }

    /// The end of the last block that ends at or before the key of a row. `all`: the range of all rows.
    pub(crate) async fn rank_start_by_key(
        &self,
        key: &OpenKey,
        all: KeyRange,
        row_key: &[u8],
    ) -> Result<RankStart, StoreError> {
        let place = self.rank_place(key, row_key);
        self.rank_start(key, all, |end, _| end <= place).await
    }

    /// The end of the last block with at most `rank` elements before its end. `all`: the range of all rows.
    pub(crate) async fn rank_start_by_rank(
        &self,
        key: &OpenKey,
        all: KeyRange,
        rank: i64,
    ) -> Result<RankStart, StoreError> {
        self.rank_start(key, all, |_, elements| elements <= rank)
            .await
    }

    /// Goes over blocks while `passes` holds for their end and the number of elements before it.
    async fn rank_start(
        &self,
        key: &OpenKey,
        mut rows: KeyRange,
        passes: impl Fn(&[u8], i64) -> bool,
    ) -> Result<RankStart, StoreError> {
        let data = key.data();
        let layout = self.layout();
        let (mut place, mut elements) = (Vec::new(), 0);
        let mut blocks = 0;
        // Changes that are not in the counts, sorted by place.
        let changes = self.namespaces.rank_changes.uncounted_of(data);
        for level in (1..=key.meta.rank_levels).rev() {
            let (_, mut uncounted) = split_at_place(&changes, &place);
            let range = KeyRange {
                begin: successor(&layout.rank_count_key(data, level, &place)),
                end: layout.rank_counts(data, level).end,
            };
            let mut pages = Pages::new(self, range, false, BLOCKS_READ_FIRST);
            'blocks: while let Some(counts) = pages.next().await? {
                for row in counts {
                    let Block { end, count } = Block::read(layout, data, &row)?;
                    let (inside, after) = split_at_place(uncounted, &end);
                    uncounted = after;
                    let changed: i64 = inside.iter().map(|(_, delta)| delta).sum();
                    let elements_then = elements + count + changed;
                    if !passes(&end, elements_then) {
                        break 'blocks;
                    }
                    (place, elements) = (end.to_vec(), elements_then);
                    blocks += 1;
                }
            }
        }
        self.note_passed_for_rank(key, blocks);
        if !place.is_empty()
            && let Some(section) = key.meta.value_type.kind().ranked_section()
        {
            rows.begin = layout.rows_from(data, section, &place);
        }
        Ok(RankStart { rows, elements })
    }

    /// The place of a row.
    pub(super) fn rank_place<'k>(&self, key: &OpenKey, row_key: &'k [u8]) -> &'k [u8] {
        let section = key.meta.value_type.kind().ranked_section();
        let prefix = section.map(|section| self.layout().section_prefix(key.data(), section));
        let place = row_key.get(prefix.map_or(0, |prefix| prefix.len())..);
        place.unwrap_or_default()
    }
}

/// Changes that are not in the counts, sorted by place.
type Uncounted<'c> = &'c [(Vec<u8>, i64)];

/// The changes before a place, and the others.
fn split_at_place<'c>(changes: Uncounted<'c>, place: &[u8]) -> (Uncounted<'c>, Uncounted<'c>) {
    changes.split_at(changes.partition_point(|(at, _)| at.as_slice() < place))
}

/// A range of at most this many elements is counted one by one even if there are blocks.
const ROWS_COUNTED_SINGLY_MAX: usize = 128;

impl ReadContext<'_> {
    /// Number of elements before the key of a row. `all`: the range of all rows.
    pub(crate) async fn rank_of(
        &self,
        key: &OpenKey,
        all: KeyRange,
        end: Vec<u8>,
    ) -> Result<i64, StoreError> {
        let RankStart { rows, elements } = self.rank_start_by_key(key, all, &end).await?;
        let begin = rows.begin.clone();
        let rest = self
            .count_elements(key, rows, elements, KeyRange { begin, end })
            .await?;
        Ok(elements + rest)
    }

    /// `count` rows from a rank on in one direction, after the first `offset`, of a value with `length` rows. `all`:
    /// the range of all rows.
    pub(crate) async fn rows_from_rank(
        &self,
        key: &OpenKey,
        all: KeyRange,
        length: i64,
        reverse: bool,
        offset: usize,
        count: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let elements = usize::try_from(length).unwrap_or(0);
        let behind = elements.saturating_sub(offset.saturating_add(count));
        if offset.min(behind) <= NEAR_ELEMENTS_MAX {
            return self.rows_by_rank(all, length, reverse, offset, count).await;
        }
        let (signed_offset, signed_count) = (signed(offset), signed(count));
        let first = match reverse {
            false => signed_offset,
            true => length.saturating_sub(signed_offset.saturating_add(signed_count)),
        };
        let start = self.rank_start_by_rank(key, all, first.max(0)).await?;
        let length = length - start.elements;
        let offset = match reverse {
            true => offset,
            false => usize::try_from(signed_offset - start.elements).unwrap_or(0),
        };
        let left = usize::try_from(length).unwrap_or(0);
        let behind = left.saturating_sub(offset.saturating_add(count));
        self.note_passed_for_rank(key, offset.min(behind));
        self.rows_by_rank(start.rows, length, reverse, offset, count)
            .await
    }

    /// Number of elements with keys in a range. `all`: the range of all rows.
    pub(crate) async fn count_between(
        &self,
        key: &OpenKey,
        all: KeyRange,
        keys: KeyRange,
    ) -> Result<i64, StoreError> {
        if key.meta.rank_levels == 0 {
            return self.count_elements(key, all, 0, keys).await;
        }
        let pages = Pages::new(self, keys.clone(), false, ROWS_COUNTED_SINGLY_MAX);
        let rows = pages.slice(0, ROWS_COUNTED_SINGLY_MAX).await?;
        if rows.len() < ROWS_COUNTED_SINGLY_MAX {
            return Ok(signed(self.elements_in(key, &rows)));
        }
        let before = self.rank_of(key, all.clone(), keys.begin).await?;
        Ok(self.rank_of(key, all, keys.end).await? - before)
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A block. Also a part of a block: a row, or a block of the level below.
pub(super) struct Block {
    /// The place where it ends.
    pub(super) end: Bytes,
    /// Number of its elements.
    pub(super) count: i64,
}

impl Block {
    /// Reads a block from the row of its count.
    ///
    /// # Errors
    /// If the row is not a count.
    pub(super) fn read(layout: &Layout, data: Id, row: &KeyValue) -> Result<Self, DecodeError> {
        Ok(Self {
            end: layout.read_rank_count_key(data, &row.key)?.1,
            count: decode_counter(Some(&row.value))?,
        })
    }
}
