//! The way to an element of a list by its index: from the nearer end, or from the end of a block that
//! is counted.

use super::rows::{ListRow, ListRows, rows_of};
use crate::store::StoreError;
use crate::types::context::ReadContext;
use crate::types::key::OpenKey;
use crate::types::ranks::NEAR_ELEMENTS_MAX;

/// Rows up to which a list needs no blocks: many elements may lie in few rows, which cost little.
const PASSED_ROWS_MAX: usize = 512;

/// From where to read so that some elements come next.
pub(super) struct ListPlace<'c, 't> {
    pub(super) rows: ListRows<'c, 't>,
    /// From the tail to the head.
    pub(super) reverse: bool,
    /// Elements of the rows that come before those.
    pub(super) skip: usize,
}

impl ListPlace<'_, '_> {
    /// The row in which the elements begin, and others after it, if possible with so many elements;
    /// `None` where the list has ended before. `skip` is of that row then.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn arrive(
        &mut self,
        context: &ReadContext<'_>,
        key: &OpenKey,
        wanted: usize,
    ) -> Result<Option<Vec<ListRow>>, StoreError> {
        let elements = self.skip;
        let mut passed_rows = 0;
        while let Some(mut page) = self.rows.next_after(self.skip, wanted).await? {
            let mut passed = 0;
            for count in page.iter().map(ListRow::count) {
                if self.skip < count {
                    break;
                }
                self.skip -= count;
                passed += 1;
            }
            passed_rows += passed;
            page.drain(..passed);
            if !page.is_empty() {
                if passed_rows > PASSED_ROWS_MAX {
                    context.note_passed_for_rank(key, elements - self.skip);
                }
                return Ok(Some(page));
            }
        }
        Ok(None)
    }
}

impl<'t> ReadContext<'t> {
    /// Where `count` elements from `offset` on are in a list that has `length`.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn list_place<'c>(
        &'c self,
        key: &OpenKey,
        length: i64,
        offset: usize,
        count: usize,
    ) -> Result<ListPlace<'c, 't>, StoreError> {
        let (mut range, _) = rows_of(self, key.data());
        let length = usize::try_from(length).unwrap_or(0);
        let after = length.saturating_sub(offset.saturating_add(count));
        let mut before = offset;
        if key.meta.rank_levels > 0 && before.min(after) > NEAR_ELEMENTS_MAX {
            let rank = i64::try_from(offset).unwrap_or(i64::MAX);
            let start = self.rank_start_by_rank(key, range, rank).await?;
            before -= usize::try_from(start.elements).unwrap_or(0).min(before);
            range = start.rows;
        }
        let reverse = after < before;
        Ok(ListPlace {
            rows: ListRows::new(self, range, reverse),
            reverse,
            skip: before.min(after),
        })
    }
}
