//! Counts elements that are added and removed.

use futures_util::future::try_join_all;

use super::changes::RankChange;
use crate::keyspace::key::OpenKey;
use crate::rows::ranks::reading::Block;
use crate::unit::context::WriteContext;
use quoin_layout::{Id, KeyRange, Section, encode_counter, successor};
use quoin_store::StoreError;

/// Maximum number of concurrent searches for blocks.
const SEARCHES_AT_ONCE_MAX: usize = 64;
/// Number of concurrent searches for blocks at first.
const SEARCHES_AT_ONCE_FIRST: usize = 16;
/// How many values are counted concurrently.
const VALUES_AT_ONCE_MAX: usize = 32;
/// How many blocks are read together if many consecutive ones have changes.
const BLOCKS_PER_SEARCH_MAX: usize = 256;

/// Changes of one block, or after the last block.
struct BlockChanges {
    block: Option<Block>,
    /// The first of their places.
    first_place: Vec<u8>,
    delta: i64,
}

impl WriteContext<'_> {
    /// Records that elements of the row with this key were added (`delta` is positive) or removed.
    pub(crate) fn note_rank_change(&self, key: &OpenKey, row_key: &[u8], delta: i64) {
        let levels = key.meta.rank_levels;
        if levels == 0 {
            return;
        }
        self.namespaces.rank_changes.add(RankChange {
            data: key.data(),
            place: self.rank_place(key, row_key).to_vec(),
            levels,
            delta,
        });
    }

    /// Drops all blocks of a value, because more elements are removed than can be counted. Commands that pass many
    /// elements ask for new blocks.
    pub(crate) fn drop_blocks(&self, key: &OpenKey) {
        if key.meta.rank_levels > 0 {
            for section in [Section::RankCounts, Section::RankMarks] {
                let blocks = self.layout().section(key.data(), section);
                self.transaction.clear_range(&blocks.begin, &blocks.end);
            }
        }
    }

    /// Counts the recorded changes. Call it at the end of the unit of work.
    pub async fn count_rank_changes(&self) -> Result<(), StoreError> {
        if self.namespaces.rank_changes.uncounted() == 0 {
            return Ok(());
        }
        let changes = self.namespaces.rank_changes.take_uncounted();
        let values: Vec<&[RankChange]> = changes
            .chunk_by(|one, other| one.data == other.data)
            .collect();
        for some in values.chunks(VALUES_AT_ONCE_MAX) {
            try_join_all(some.iter().map(|of_value| self.count_of_value(of_value))).await?;
        }
        Ok(())
    }

    async fn count_of_value(&self, of_value: &[RankChange]) -> Result<(), StoreError> {
        if let Some(first) = of_value.first() {
            let levels = of_value
                .iter()
                .map(|change| change.levels)
                .max()
                .unwrap_or(0);
            let mut rest: Vec<&RankChange> = of_value.iter().collect();
            for level in 1..=levels {
                let blocks = self.blocks_of(first.data, level, &rest).await?;
                for block in &blocks {
                    self.count_in_block(first.data, level, block);
                }
                // Changes outside blocks are outside those of higher levels too.
                let mut counted = blocks.iter().filter_map(|changes| changes.block.as_ref());
                let last = counted.next_back();
                rest.retain(|change| last.is_some_and(|block| change.place < block.end));
            }
        }
        Ok(())
    }

    /// The blocks that contain changes. The changes are sorted by place.
    async fn blocks_of(
        &self,
        data: Id,
        level: u8,
        mut changes: &[&RankChange],
    ) -> Result<Vec<BlockChanges>, StoreError> {
        let mut blocks: Vec<BlockChanges> = Vec::new();
        // Most changes are in one block, at an end of the value, or in many blocks.
        let mut searches = match self.environment.capabilities.reads_wait {
            false => 1,
            true => SEARCHES_AT_ONCE_FIRST,
        };
        let mut blocks_per_search = 1;
        while !changes.is_empty() {
            let some = changes.iter().take(searches);
            let found =
                some.map(|change| self.block_ends(data, level, &change.place, blocks_per_search));
            let found = try_join_all(found).await?;
            let blocks_before = blocks.len();
            for block in found.into_iter().flatten() {
                let is_inside = |change: &&RankChange| {
                    block.as_ref().is_none_or(|block| change.place < block.end)
                };
                let count = changes
                    .iter()
                    .take_while(|change| is_inside(change))
                    .count();
                let (inside, rest) = changes.split_at(count);
                changes = rest;
                if let Some(first) = inside.first() {
                    blocks.push(BlockChanges {
                        block,
                        first_place: first.place.clone(),
                        delta: inside.iter().map(|change| change.delta).sum(),
                    });
                }
            }
            if !self.environment.capabilities.reads_wait {
                // Consecutive blocks are cheaper to read than to search for.
                let used = blocks.len() - blocks_before;
                let is_dense = used * 2 >= blocks_per_search;
                blocks_per_search = if is_dense { blocks_per_search * 2 } else { 1 };
                blocks_per_search = blocks_per_search.min(BLOCKS_PER_SEARCH_MAX);
            } else {
                searches = (searches * 2).min(SEARCHES_AT_ONCE_MAX);
            }
        }
        Ok(blocks)
    }

    /// The block that contains a place and the blocks after it, at most `limit`. `None` after the last. Causes no
    /// conflicts.
    async fn block_ends(
        &self,
        data: Id,
        level: u8,
        place: &[u8],
        limit: usize,
    ) -> Result<Vec<Option<Block>>, StoreError> {
        let layout = self.layout();
        let following = KeyRange {
            begin: successor(&layout.rank_count_key(data, level, place)),
            end: layout.rank_counts(data, level).end,
        };
        let rows = self.first_rows(&following, limit).await?;
        let mut ends = Vec::with_capacity(rows.len() + 1);
        for row in &rows {
            ends.push(Some(Block::read(layout, data, row)?));
        }
        if rows.len() < limit {
            ends.push(None);
        }
        Ok(ends)
    }

    fn count_in_block(&self, data: Id, level: u8, changes: &BlockChanges) {
        let layout = self.layout();
        let block = changes.block.as_ref();
        let count_key = block.map(|block| layout.rank_count_key(data, level, &block.end));
        if !self.environment.capabilities.has_other_writers {
            // Nobody else adds to it, and an addition would search for the row again.
            if let (Some(block), Some(count_key)) = (block, &count_key) {
                let count = encode_counter(block.count + changes.delta);
                self.transaction.set(count_key, &count);
            }
            return;
        }
        let behind = match block {
            Some(block) => successor(&layout.rank_mark_key(data, level, &block.end)),
            None => layout.rank_marks(data, level).end,
        };
        let first = successor(&layout.rank_mark_key(data, level, &changes.first_place));
        self.transaction.add_read_conflict_range(&first, &behind);
        if let Some(count_key) = &count_key
            && changes.delta != 0
        {
            self.transaction.atomic_add(count_key, changes.delta);
        }
    }
}
