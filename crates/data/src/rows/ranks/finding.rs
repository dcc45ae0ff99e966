//! Ranks of elements that have a row each, and counts of any: by blocks, and by reading what lies on the shorter
//! side of what is in none.

use super::NEAR_ELEMENTS_MAX;
use super::reading::RankStart;
use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::ReadContext;
use quoin_layout::KeyRange;
use quoin_store::{KeyValue, StoreError};

/// Elements up to which a range is counted one by one though there are blocks.
const FIRST_LOOK_ROWS: usize = 128;

impl ReadContext<'_> {
    /// How many elements come before a key of a row. `all`: the range of all rows.
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

    /// The rows from a rank on in one direction. There are `offset` before them and `count` of them
    /// in a value that has `length`. `all`: the range of all rows.
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

    /// How many elements have keys in a range. `all`: the range of all rows.
    pub(crate) async fn count_between(
        &self,
        key: &OpenKey,
        all: KeyRange,
        keys: KeyRange,
    ) -> Result<i64, StoreError> {
        if key.meta.rank_levels == 0 {
            return self.count_elements(key, all, 0, keys).await;
        }
        let pages = Pages::new(self, keys.clone(), false, FIRST_LOOK_ROWS);
        let rows = pages.slice(0, FIRST_LOOK_ROWS).await?;
        if rows.len() < FIRST_LOOK_ROWS {
            return Ok(signed(self.elements_in(key, &rows)));
        }
        let before = self.rank_of(key, all.clone(), keys.begin).await?;
        Ok(self.rank_of(key, all, keys.end).await? - before)
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
