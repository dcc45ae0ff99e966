//! Creates and maintains blocks: background work that does a bounded part in each transaction.
//!
//! A transaction reads elements or counts at snapshot. It conflicts with transactions that change the elements or
//! counts of the blocks that it makes.

use std::ops::ControlFlow;

use bytes::Bytes;

use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::{TypeKind, ValueKind};
use crate::rows::pages::Pages;
use crate::rows::ranks::reading::Block;
use crate::rows::ranks::{LEVELS_MAX, RankShape};
use crate::unit::context::WriteContext;
use quoin_base::limits::ELEMENT_KEY_BYTES_MAX;
use quoin_layout::{Id, KeyRange, Section, encode_counter, place_between, successor};
use quoin_store::{Growth, Isolation, StoreError};

/// How many blocks one transaction checks.
const BLOCKS_PER_PASS: usize = 256;

/// How many rows are read first, while the number of elements in a row is unknown.
const FIRST_ROWS: usize = 32;
/// How many rows are read together. Long elements may make each of them large.
const ROWS_PER_READ_MAX: usize = 256;
/// A transaction stops after this many bytes of elements.
const BYTES_PER_PIECE: usize = 4 * 1024 * 1024;

/// How far the work on a value has progressed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RankMaintenance {
    /// The value's data id. Another value may meanwhile have its name.
    data: Option<Id>,
    /// Number of finished levels.
    levels_done: u8,
    /// The next level is finished up to this place.
    place: Vec<u8>,
}

/// A level of a value's blocks.
#[derive(Clone, Copy)]
struct Level {
    data: Id,
    kind: &'static ValueKind,
    /// The section of the elements.
    section: Section,
    /// 1 for blocks of elements, 2 for blocks of these blocks, and so on.
    number: u8,
}

/// The first parts of a block.
struct Parts {
    /// The range in which they were read.
    range: KeyRange,
    parts: Vec<Block>,
    /// Whether there are no more.
    is_all: bool,
}

impl WriteContext<'_> {
    /// Does a part of the work on a value's blocks, and returns the progress. `None` if all is done or there is no
    /// such value.
    pub async fn maintain_ranks(
        &self,
        name: &Bytes,
        from: &RankMaintenance,
        shape: &RankShape,
    ) -> Result<Option<RankMaintenance>, StoreError> {
        if self.transaction.growth() == Growth::DiskFull {
            // Commands also find ranks without blocks. The next one that needs blocks asks again.
            return Ok(None);
        }
        // Without the length, which every push and pop changes.
        let Some(mut key) = self.look_up(name).await? else {
            return Ok(None);
        };
        let kind = key.meta.value_type.kind();
        let Some(section) = kind.ranked_section() else {
            return Ok(None);
        };
        // Other commands of this batch recorded their changes for the existing blocks.
        self.count_rank_changes().await?;
        let data = Some(key.data());
        let from = match self.goes_on(&key, from).await? {
            true => from.clone(),
            false => RankMaintenance::default(),
        };
        let level = Level {
            data: key.data(),
            kind,
            section,
            number: from.levels_done + 1,
        };
        if level.number > key.meta.rank_levels {
            self.set_rank_levels(&mut key, level.number);
        }
        match self.maintain_rank_level(level, &from.place, shape).await? {
            ControlFlow::Break(place) => Ok(Some(RankMaintenance {
                data,
                levels_done: from.levels_done,
                place,
            })),
            ControlFlow::Continue(())
                if self.has_level_above(&key, level.number, shape).await? =>
            {
                Ok(Some(RankMaintenance {
                    data,
                    levels_done: level.number,
                    place: Vec::new(),
                }))
            }
            ControlFlow::Continue(()) => Ok(None),
        }
    }

    /// Whether the work can continue where it stopped: the value is the same, and a block ends there. Both may have
    /// changed in between. Conflicts with transactions that remove that end.
    async fn goes_on(&self, key: &OpenKey, from: &RankMaintenance) -> Result<bool, StoreError> {
        if from.data != Some(key.data()) || from.levels_done > key.meta.rank_levels {
            return Ok(false);
        }
        if from.place.is_empty() {
            return Ok(true);
        }
        let level = from.levels_done + 1;
        let mark = self.layout().rank_mark_key(key.data(), level, &from.place);
        let mark = self.transaction.get(&mark, Isolation::Serializable).await?;
        Ok(mark.is_some())
    }

    /// Whether there is, or should be, a level above this one.
    async fn has_level_above(
        &self,
        key: &OpenKey,
        level: u8,
        shape: &RankShape,
    ) -> Result<bool, StoreError> {
        if level < key.meta.rank_levels || level == LEVELS_MAX {
            return Ok(level < key.meta.rank_levels);
        }
        let counts = self.layout().rank_counts(key.data(), level);
        let blocks = self.first_rows(&counts, shape.top_blocks_max + 1).await?;
        Ok(blocks.len() > shape.top_blocks_max)
    }

    /// Maintains the blocks of a level from a place on. Breaks if it stops before the last.
    async fn maintain_rank_level(
        &self,
        level: Level,
        from: &[u8],
        shape: &RankShape,
    ) -> Result<ControlFlow<Vec<u8>>, StoreError> {
        let Level { data, number, .. } = level;
        let range = KeyRange {
            begin: successor(&self.layout().rank_count_key(data, number, from)),
            end: self.layout().rank_counts(data, number).end,
        };
        let rows = self.first_rows(&range, BLOCKS_PER_PASS).await?;
        let is_last = rows.len() < BLOCKS_PER_PASS;
        let mut begin = from.to_vec();
        let mut rows = rows.iter().peekable();
        // Elements of blocks that were joined to the next.
        let mut joined = 0;
        while let Some(row) = rows.next() {
            let mut block = Block::read(self.layout(), data, row)?;
            block.count += std::mem::take(&mut joined);
            if block.count > shape.elements_max(number) {
                let made = self.make_blocks(level, &begin, Some(&block), shape).await?;
                return Ok(ControlFlow::Break(match made {
                    ControlFlow::Break(place) => place,
                    ControlFlow::Continue(()) => block.end.to_vec(),
                }));
            }
            if let Some(next) = rows.peek()
                && block.count <= shape.elements_min(number)
                && self.remove_block(data, number, &block, &next.key).await?
            {
                joined = block.count;
                continue;
            }
            begin = block.end.to_vec();
        }
        if !is_last {
            return Ok(ControlFlow::Break(begin));
        }
        self.make_blocks(level, &begin, None, shape).await
    }

    /// Removes the end of a block, whose elements then belong to the next block. Returns whether that was possible: a
    /// block of a higher level may end there too.
    async fn remove_block(
        &self,
        data: Id,
        level: u8,
        block: &Block,
        next: &Bytes,
    ) -> Result<bool, StoreError> {
        let layout = self.layout();
        let above = layout.rank_mark_key(data, level + 1, &block.end);
        let above = self
            .transaction
            .get(&above, Isolation::Serializable)
            .await?;
        if above.is_some() {
            return Ok(false);
        }
        let count_key = layout.rank_count_key(data, level, &block.end);
        self.transaction
            .add_read_conflict_range(&count_key, &successor(&count_key));
        let (_, next_end) = layout.read_rank_count_key(data, next)?;
        self.conflict_on_blocks(data, level, &block.end, Some(&next_end));
        self.transaction.clear(&count_key);
        let mark = layout.rank_mark_key(data, level, &block.end);
        self.transaction.clear(&mark);
        self.transaction.atomic_add(next, block.count);
        Ok(true)
    }

    /// Conflicts with transactions that make or remove an end of a block from `begin` to `end`, both included.
    fn conflict_on_blocks(&self, data: Id, level: u8, begin: &[u8], end: Option<&Bytes>) {
        let layout = self.layout();
        let first = layout.rank_mark_key(data, level, begin);
        let behind = match end {
            Some(end) => successor(&layout.rank_mark_key(data, level, end)),
            None => layout.rank_marks(data, level).end,
        };
        self.transaction.add_read_conflict_range(&first, &behind);
    }

    /// Makes blocks of the parts from `begin` on: those of `block`, or those that are in no block. Breaks with the
    /// place where it stops, if that is before the last.
    async fn make_blocks(
        &self,
        level: Level,
        begin: &[u8],
        block: Option<&Block>,
        shape: &RankShape,
    ) -> Result<ControlFlow<Vec<u8>>, StoreError> {
        let Parts {
            range,
            parts,
            is_all,
        } = self
            .parts(level, begin, block, shape.parts_per_pass)
            .await?;
        let Level { data, number, .. } = level;
        let layout = self.layout();
        let made = divided(&parts, is_all, number, shape, |end| {
            layout.rank_count_key(data, number, end).len() <= ELEMENT_KEY_BYTES_MAX
        });
        let Some(last) = made.last() else {
            return Ok(ControlFlow::Continue(()));
        };
        for made in &made {
            let count_key = layout.rank_count_key(data, number, &made.end);
            self.transaction
                .set(&count_key, &encode_counter(made.count));
            let mark = layout.rank_mark_key(data, number, &made.end);
            self.transaction.set(&mark, b"");
        }
        if let Some(block) = block {
            let count_key = layout.rank_count_key(data, number, &block.end);
            let taken_away: i64 = made.iter().map(|made| made.count).sum();
            self.transaction.atomic_add(&count_key, -taken_away);
        }
        // At higher levels, the range covers the counts of the blocks below, up to that of the last.
        let behind = match number {
            1 => layout.rows_from(data, level.section, &last.end),
            _ => successor(&layout.rank_count_key(data, number - 1, &last.end)),
        };
        self.transaction
            .add_read_conflict_range(&range.begin, &behind);
        self.conflict_on_blocks(data, number, begin, block.map(|block| &block.end));
        Ok(match is_all {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(last.end.to_vec()),
        })
    }

    /// The first parts of a block, or of the elements that are in no block.
    async fn parts(
        &self,
        level: Level,
        begin: &[u8],
        block: Option<&Block>,
        limit: usize,
    ) -> Result<Parts, StoreError> {
        let layout = self.layout();
        let Level { data, section, .. } = level;
        let end = block.map(|block| block.end.as_ref());
        if level.number == 1 {
            let prefix = layout.section_prefix(data, section);
            let range = KeyRange {
                begin: layout.rows_from(data, section, begin),
                end: match end {
                    Some(end) => layout.rows_from(data, section, end),
                    None => KeyRange::children(&prefix).end,
                },
            };
            let (places, is_all) = self.places(level, &range, prefix.len(), limit).await?;
            let pairs = places.iter().zip(places.iter().skip(1));
            let parts = pairs.map(|(place, next)| Block {
                end: place_between(&place.end, &next.end).into(),
                count: place.count,
            });
            return Ok(Parts {
                parts: parts.collect(),
                range,
                is_all,
            });
        }
        let below = level.number - 1;
        let counts = layout.rank_counts(data, below);
        let range = KeyRange {
            begin: successor(&layout.rank_count_key(data, below, begin)),
            // The last of its blocks ends where it does.
            end: end.map_or(counts.end, |end| layout.rank_count_key(data, below, end)),
        };
        let rows = self.first_rows(&range, limit).await?;
        let parts: Result<Vec<Block>, _> = rows
            .iter()
            .map(|row| Block::read(layout, data, row))
            .collect();
        Ok(Parts {
            parts: parts?,
            range,
            is_all: rows.len() < limit,
        })
    }

    /// The first rows of a range, with about `limit` elements, each identified by its place. Also returns whether
    /// these are all.
    async fn places(
        &self,
        level: Level,
        range: &KeyRange,
        prefix_length: usize,
        limit: usize,
    ) -> Result<(Vec<Block>, bool), StoreError> {
        let mut pages = Pages::new(self, range.clone(), false, 0).with_snapshot_reads();
        let mut places = Vec::new();
        let (mut elements, mut bytes) = (0_usize, 0);
        let mut missing_rows = FIRST_ROWS.min(limit);
        while let Some(rows) = pages.next_of(missing_rows.min(ROWS_PER_READ_MAX)).await? {
            for row in rows {
                let count = level.kind.elements_in(level.section, &row);
                elements = elements.saturating_add(count);
                bytes += row.key.len() + row.value.len();
                places.push(Block {
                    end: row.key.slice(prefix_length.min(row.key.len())..),
                    count: i64::try_from(count).unwrap_or(i64::MAX),
                });
            }
            if elements >= limit || bytes >= BYTES_PER_PIECE {
                return Ok((places, false));
            }
            // Assumes that the other rows resemble these.
            let of_elements = (limit - elements).saturating_mul(places.len()) / elements.max(1);
            let of_bytes = (BYTES_PER_PIECE - bytes).saturating_mul(places.len()) / bytes.max(1);
            missing_rows = of_elements.min(of_bytes);
        }
        Ok((places, true))
    }
}

/// Divides parts into blocks, leaving out a remainder at the end. `may_end`: whether a block may end at a place.
fn divided(
    parts: &[Block],
    is_all: bool,
    level: u8,
    shape: &RankShape,
    may_end: impl Fn(&[u8]) -> bool,
) -> Vec<Block> {
    // The size of a block is in elements at level 1, and in parts at higher levels.
    let (size_wanted, size_of): (_, fn(&Block) -> i64) = match level {
        1 => (shape.block_elements, |row| row.count),
        _ => (shape.fan, |_| 1),
    };
    let all: i64 = parts.iter().map(size_of).sum();
    // Rows may be so large that less than a block was read.
    let size_wanted = match is_all || all >= size_wanted {
        true => size_wanted,
        false => (all / 2).max(1),
    };
    // What remains after the last block must be about a block too, unless more follows.
    let left_wanted = if is_all { size_wanted } else { 0 };
    let (mut elements, mut size, mut left) = (0, 0, all);
    let mut blocks = Vec::new();
    for part in parts {
        size += size_of(part);
        left -= size_of(part);
        elements += part.count;
        if size >= size_wanted && left >= left_wanted && may_end(&part.end) {
            blocks.push(Block {
                end: part.end.clone(),
                count: elements,
            });
            (size, elements) = (0, 0);
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(count: u8, elements: i64) -> Vec<Block> {
        let row = |number| Block {
            end: Bytes::from(vec![number]),
            count: elements,
        };
        (0..count).map(row).collect()
    }

    fn counts(parts: &[Block], is_all: bool, level: u8) -> Vec<i64> {
        let shape = RankShape {
            block_elements: 10,
            fan: 4,
            ..RankShape::DEFAULT
        };
        let blocks = divided(parts, is_all, level, &shape, |end| end != [3]);
        blocks.iter().map(|block| block.count).collect()
    }

    #[test]
    fn a_block_has_so_many_elements_or_blocks_and_leaves_another() {
        assert_eq!(counts(&rows(30, 1), true, 1), [10, 10]);
        assert_eq!(counts(&rows(29, 1), true, 1), [10]);
        assert_eq!(counts(&rows(9, 7), true, 1), [14, 21, 14]);
        assert_eq!(counts(&rows(13, 100), true, 2), [500, 400]);
        assert!(counts(&rows(19, 1), true, 1).is_empty());
    }

    #[test]
    fn large_rows_of_which_few_were_read_get_smaller_blocks() {
        assert_eq!(counts(&rows(8, 1), false, 1), [5]);
        assert_eq!(counts(&rows(2, 1), false, 1), [1, 1]);
        assert!(counts(&[], false, 1).is_empty());
        let run_across_half = [rows(3, 1), rows(1, 5), rows(1, 1)];
        let run_across_half: Vec<Block> = run_across_half.into_iter().flatten().collect();
        assert_eq!(counts(&run_across_half, false, 1), [8]);
    }

    #[test]
    fn what_is_left_where_more_follows_is_of_any_size() {
        assert_eq!(counts(&rows(12, 1), false, 1), [10]);
        assert_eq!(counts(&rows(20, 1), false, 1), [10, 10]);
    }
}
