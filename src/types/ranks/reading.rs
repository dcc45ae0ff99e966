//! Finding ranks.

use super::SCANNED_ROWS_MAX;
use super::block::Block;
use crate::layout::{KeyRange, ValueType, successor};
use crate::store::StoreError;
use crate::types::context::ReadContext;
use crate::types::key::OpenKey;
use crate::types::pages::Pages;

/// Blocks that are read first: ranks are often asked for near the beginning.
const FIRST_LOOK_BLOCKS: usize = 64;

/// The end of a block, or the beginning of the set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RankStart {
    /// The place where it ends.
    pub place: Vec<u8>,
    /// Members before that.
    pub members: i64,
}

impl ReadContext<'_> {
    /// To be called where so many rows of a key were read to find a rank.
    pub(in crate::types) fn note_rows_for_rank(&self, key: &OpenKey, rows: usize) {
        if rows > SCANNED_ROWS_MAX
            && key.meta.value_type == ValueType::SortedSet
            && let Some(key) = key.client_key()
        {
            self.environment.rank_wants.add(key);
        }
    }

    /// The end of the last block that ends at a place or before it.
    ///
    /// # Errors
    /// When the store fails.
    pub(in crate::types) async fn rank_start_by_place(
        &self,
        key: &OpenKey,
        place: &[u8],
    ) -> Result<RankStart, StoreError> {
        self.rank_start(key, |end, _| end <= place).await
    }

    /// The end of the last block before which there are at most `rank` members.
    ///
    /// # Errors
    /// When the store fails.
    pub(in crate::types) async fn rank_start_by_rank(
        &self,
        key: &OpenKey,
        rank: i64,
    ) -> Result<RankStart, StoreError> {
        self.rank_start(key, |_, members| members <= rank).await
    }

    /// Goes over blocks as long as `passes` where they end, with that many members before it.
    async fn rank_start(
        &self,
        key: &OpenKey,
        passes: impl Fn(&[u8], i64) -> bool,
    ) -> Result<RankStart, StoreError> {
        let data = key.data();
        let layout = self.layout();
        let mut start = RankStart::default();
        let mut blocks = 0;
        // Those that are not in the counts, in the order of places.
        let changes = self.namespaces.rank_changes.uncounted_of(data);
        for level in (1..=key.meta.rank_levels).rev() {
            let (_, mut uncounted) = split_at_place(&changes, &start.place);
            let range = KeyRange {
                begin: successor(&layout.rank_count_key(data, level, &start.place)),
                end: layout.rank_counts(data, level).end,
            };
            let mut pages = Pages::new(self, range, false, FIRST_LOOK_BLOCKS);
            'blocks: while let Some(rows) = pages.next().await? {
                for row in rows {
                    let Block { end, count } = Block::read(layout, data, &row)?;
                    let (inside, after) = split_at_place(uncounted, &end);
                    uncounted = after;
                    let changed: i64 = inside.iter().map(|(_, delta)| delta).sum();
                    let members = start.members + count + changed;
                    if !passes(&end, members) {
                        break 'blocks;
                    }
                    start = RankStart {
                        place: end.to_vec(),
                        members,
                    };
                    blocks += 1;
                }
            }
        }
        self.note_rows_for_rank(key, blocks);
        Ok(start)
    }
}

/// Changes that are not in the counts, in the order of their places.
type Uncounted<'c> = &'c [(Vec<u8>, i64)];

/// The changes before a place, and the others.
fn split_at_place<'c>(changes: Uncounted<'c>, place: &[u8]) -> (Uncounted<'c>, Uncounted<'c>) {
    changes.split_at(changes.partition_point(|(at, _)| at.as_slice() < place))
}
