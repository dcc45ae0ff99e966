//! Making blocks and keeping them in shape: background work, a bounded piece in each transaction.
//!
//! A piece reads members or counts at snapshot. It conflicts with transactions that change the part of
//! them that it makes blocks of.

use std::ops::ControlFlow;

use bytes::Bytes;

use super::block::Block;
use super::{LEVELS_MAX, RankShape};
use crate::error::CommandError;
use crate::layout::{Id, KeyRange, ValueType, encode_counter, place_between, successor};
use crate::limits::ELEMENT_KEY_BYTES_MAX;
use crate::store::{Isolation, StoreError};
use crate::types::context::WriteContext;
use crate::types::key::OpenKey;
use crate::types::pages::Pages;

/// Blocks whose counts one transaction looks at.
const BLOCKS_PER_PASS: usize = 256;

/// Rows that are read together. Long members may make each of them large.
const ROWS_PER_READ: usize = 256;
/// Bytes of members after which a piece ends.
const BYTES_PER_PIECE: usize = 4 * 1024 * 1024;

/// How far the work on a set has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RankTending {
    /// The set's data. Another set may have its name meanwhile.
    data: Option<Id>,
    /// These levels are in shape.
    levels_done: u8,
    /// So is the next one, up to here.
    place: Vec<u8>,
}

/// The first parts of a block.
struct Parts {
    /// The range in which they were read.
    range: KeyRange,
    parts: Vec<Block>,
    /// There are no more.
    is_all: bool,
}

impl WriteContext<'_> {
    /// Does a piece of the work on a set's blocks, and answers how far it has come; `None` where all
    /// is done, or there is no such set.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn tend_ranks(
        &self,
        name: &Bytes,
        from: &RankTending,
        shape: &RankShape,
    ) -> Result<Option<RankTending>, StoreError> {
        let mut key = match self.find(name, ValueType::SortedSet).await {
            Ok(Some(key)) => key,
            Err(CommandError::Store(error)) => return Err(error),
            Ok(None) | Err(_) => return Ok(None),
        };
        // Those of other commands of this batch were noted by the blocks that there are.
        self.count_rank_changes().await?;
        let data = Some(key.data());
        let from = match self.goes_on(&key, from).await? {
            true => from.clone(),
            false => RankTending::default(),
        };
        let level = from.levels_done + 1;
        if level > key.meta.rank_levels {
            self.set_rank_levels(&mut key, level);
        }
        match self
            .tend_rank_level(key.data(), level, &from.place, shape)
            .await?
        {
            ControlFlow::Break(place) => Ok(Some(RankTending {
                data,
                levels_done: from.levels_done,
                place,
            })),
            ControlFlow::Continue(()) if self.has_level_above(&key, level, shape).await? => {
                Ok(Some(RankTending {
                    data,
                    levels_done: level,
                    place: Vec::new(),
                }))
            }
            ControlFlow::Continue(()) => Ok(None),
        }
    }

    /// Whether the work can go on where it has stopped: the set is the same, and a block ends there. Both
    /// may have changed between two pieces. Conflicts with transactions that remove that end.
    async fn goes_on(&self, key: &OpenKey, from: &RankTending) -> Result<bool, StoreError> {
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

    /// Brings the blocks of a level into shape from a place on. Breaks where it stops before the last.
    async fn tend_rank_level(
        &self,
        data: Id,
        level: u8,
        from: &[u8],
        shape: &RankShape,
    ) -> Result<ControlFlow<Vec<u8>>, StoreError> {
        let range = KeyRange {
            begin: successor(&self.layout().rank_count_key(data, level, from)),
            end: self.layout().rank_counts(data, level).end,
        };
        let rows = self.first_rows(&range, BLOCKS_PER_PASS).await?;
        let is_last = rows.len() < BLOCKS_PER_PASS;
        let mut begin = from.to_vec();
        let mut rows = rows.iter().peekable();
        // Members of blocks that were joined to the next.
        let mut joined = 0;
        while let Some(row) = rows.next() {
            let mut block = Block::read(self.layout(), data, row)?;
            block.count += std::mem::take(&mut joined);
            if block.count > shape.members_max(level) {
                let made = self
                    .make_blocks((data, level), &begin, Some(&block), shape)
                    .await?;
                return Ok(ControlFlow::Break(match made {
                    ControlFlow::Break(place) => place,
                    ControlFlow::Continue(()) => block.end.to_vec(),
                }));
            }
            if let Some(next) = rows.peek()
                && block.count <= shape.members_min(level)
                && self.remove_block(data, level, &block, &next.key).await?
            {
                joined = block.count;
                continue;
            }
            begin = block.end.to_vec();
        }
        if !is_last {
            return Ok(ControlFlow::Break(begin));
        }
        self.make_blocks((data, level), &begin, None, shape).await
    }

    /// Removes the end of a block, whose members are those of the next block from now on. Answers
    /// whether it could: a block of a higher level may end there too.
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

    /// Makes blocks of the parts from `begin` on: of those of `block`, or of those that are in none.
    /// Breaks with the place where it stops, if that is before the last.
    async fn make_blocks(
        &self,
        (data, level): (Id, u8),
        begin: &[u8],
        block: Option<&Block>,
        shape: &RankShape,
    ) -> Result<ControlFlow<Vec<u8>>, StoreError> {
        let Parts {
            range,
            parts,
            is_all,
        } = self
            .parts((data, level), begin, block, shape.parts_per_pass)
            .await?;
        let parts_per_block = if level == 1 {
            shape.block_rows
        } else {
            shape.fan
        };
        let (mut members, mut size) = (0, 0_usize);
        let mut last: Option<&Block> = None;
        for (number, part) in parts.iter().enumerate() {
            size += 1;
            members += part.count;
            // What is left is to be about a block too.
            let left = parts.len() - number - 1;
            let count_key = self.layout().rank_count_key(data, level, &part.end);
            if size < parts_per_block
                || left < parts_per_block
                || count_key.len() > ELEMENT_KEY_BYTES_MAX
            {
                continue;
            }
            self.transaction.set(&count_key, &encode_counter(members));
            let mark = self.layout().rank_mark_key(data, level, &part.end);
            self.transaction.set(&mark, b"");
            if let Some(block) = block {
                let count_key = self.layout().rank_count_key(data, level, &block.end);
                self.transaction.atomic_add(&count_key, -members);
            }
            (size, members) = (0, 0);
            last = Some(part);
        }
        let Some(last) = last else {
            return Ok(ControlFlow::Continue(()));
        };
        // Of blocks it is their counts, up to that of the last.
        let behind = match level {
            1 => self.layout().scores_from(data, &last.end),
            _ => successor(&self.layout().rank_count_key(data, level - 1, &last.end)),
        };
        self.transaction
            .add_read_conflict_range(&range.begin, &behind);
        self.conflict_on_blocks(data, level, begin, block.map(|block| &block.end));
        Ok(match is_all {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(last.end.to_vec()),
        })
    }

    /// The first parts of a block, or of what is in none.
    async fn parts(
        &self,
        (data, level): (Id, u8),
        begin: &[u8],
        block: Option<&Block>,
        limit: usize,
    ) -> Result<Parts, StoreError> {
        let layout = self.layout();
        let end = block.map(|block| block.end.as_ref());
        if level == 1 {
            let prefix = layout.scores_prefix(data);
            let range = KeyRange {
                begin: layout.scores_from(data, begin),
                end: match end {
                    Some(end) => layout.scores_from(data, end),
                    None => KeyRange::children(&prefix).end,
                },
            };
            let (places, is_all) = self.places(&range, prefix.len(), limit).await?;
            let pairs = places.iter().zip(places.iter().skip(1));
            let parts = pairs.map(|(place, next)| Block {
                end: place_between(place, next).into(),
                count: 1,
            });
            return Ok(Parts {
                parts: parts.collect(),
                range,
                is_all,
            });
        }
        let counts = layout.rank_counts(data, level - 1);
        let range = KeyRange {
            begin: successor(&layout.rank_count_key(data, level - 1, begin)),
            // The last of its blocks ends where it does.
            end: end.map_or(counts.end, |end| {
                layout.rank_count_key(data, level - 1, end)
            }),
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

    /// The places of the first members of a range, at most so many, and whether these are all.
    async fn places(
        &self,
        range: &KeyRange,
        prefix_length: usize,
        limit: usize,
    ) -> Result<(Vec<Bytes>, bool), StoreError> {
        let mut pages = Pages::new(self, range.clone(), false, 0)
            .with_snapshot_reads()
            .of_rows(ROWS_PER_READ.min(limit));
        let mut places = Vec::new();
        let mut bytes = 0;
        while let Some(rows) = pages.next().await? {
            for row in rows {
                bytes += row.key.len() + row.value.len();
                places.push(row.key.slice(prefix_length.min(row.key.len())..));
            }
            if places.len() >= limit || bytes >= BYTES_PER_PIECE {
                return Ok((places, false));
            }
        }
        Ok((places, true))
    }
}
