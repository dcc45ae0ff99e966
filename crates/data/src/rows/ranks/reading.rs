//! Finding ranks.

use super::SCANNED_ELEMENTS_MAX;
use super::block::Block;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::TypeKind;
use crate::rows::pages::Pages;
use crate::unit::context::ReadContext;
use quoin_layout::{KeyRange, successor};
use quoin_store::StoreError;

/// Blocks that are read first: ranks are often asked for near the beginning.
const FIRST_LOOK_BLOCKS: usize = 64;

/// The end of a block, or the beginning of the value.
#[derive(Debug)]
pub(crate) struct RankStart {
    /// The rows after that.
    pub(crate) rows: KeyRange,
    /// Elements before that.
    pub(crate) elements: i64,
}

/// Rows up to which a value needs no blocks: many elements may lie in few rows, which cost little.
const PASSED_ROWS_MAX: usize = 512;

impl ReadContext<'_> {
    /// To be called where so many rows of a key were passed to find a rank, which hold so many elements.
    pub(crate) fn note_rows_passed_for_rank(&self, key: &OpenKey, rows: usize, elements: usize) {
        if rows > PASSED_ROWS_MAX {
            self.note_passed_for_rank(key, elements);
        }
    }

    /// To be called where so many elements of a key, or blocks, were passed to find a rank.
    pub(crate) fn note_passed_for_rank(&self, key: &OpenKey, passed: usize) {
        if passed > SCANNED_ELEMENTS_MAX
            && key.meta.value_type.kind().ranked_section().is_some()
            && let Some(key) = key.client_key()
        {
            self.environment.rank_wants.add(key);
        }
    }

    /// The end of the last block that ends at the key of a row or before it. `all`: the range of all
    /// rows.
    pub(crate) async fn rank_start_by_key(
        &self,
        key: &OpenKey,
        all: KeyRange,
        row_key: &[u8],
    ) -> Result<RankStart, StoreError> {
        let place = self.rank_place(key, row_key);
        self.rank_start(key, all, |end, _| end <= place).await
    }

    /// The end of the last block before which there are at most `rank` elements. `all`: the range of
    /// all rows.
    pub(crate) async fn rank_start_by_rank(
        &self,
        key: &OpenKey,
        all: KeyRange,
        rank: i64,
    ) -> Result<RankStart, StoreError> {
        self.rank_start(key, all, |_, elements| elements <= rank)
            .await
    }

    /// Goes over blocks as long as `passes` where they end, with that many elements before it.
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
        // Those that are not in the counts, in the order of places.
        let changes = self.namespaces.rank_changes.uncounted_of(data);
        for level in (1..=key.meta.rank_levels).rev() {
            let (_, mut uncounted) = split_at_place(&changes, &place);
            let range = KeyRange {
                begin: successor(&layout.rank_count_key(data, level, &place)),
                end: layout.rank_counts(data, level).end,
            };
            let mut pages = Pages::new(self, range, false, FIRST_LOOK_BLOCKS);
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

/// Changes that are not in the counts, in the order of their places.
type Uncounted<'c> = &'c [(Vec<u8>, i64)];

/// The changes before a place, and the others.
fn split_at_place<'c>(changes: Uncounted<'c>, place: &[u8]) -> (Uncounted<'c>, Uncounted<'c>) {
    changes.split_at(changes.partition_point(|(at, _)| at.as_slice() < place))
}
