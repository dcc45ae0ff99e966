//! The way to an element by its rank: from the nearer end, or from the end of a block that is counted.

use super::rows::{ElementsRow, ElementsRows};
use crate::keyspace::key::OpenKey;
use crate::rows::ranks::NEAR_ELEMENTS_MAX;
use crate::unit::context::ReadContext;
use quoin_layout::KeyRange;
use quoin_store::StoreError;

/// From where to read so that some elements come next.
pub(crate) struct ElementsPlace<'c, 't> {
    pub(crate) rows: ElementsRows<'c, 't>,
    /// From the last to the first.
    pub(crate) reverse: bool,
    /// Elements of the rows that come before those.
    pub(crate) skip: usize,
}

impl ElementsPlace<'_, '_> {
    /// The row in which the elements begin, and others after it, if possible with so many elements;
    /// `None` where the value has ended before. `skip` is of that row then.
    pub(crate) async fn arrive(
        &mut self,
        context: &ReadContext<'_>,
        key: &OpenKey,
        wanted: usize,
    ) -> Result<Option<Vec<ElementsRow>>, StoreError> {
        let elements = self.skip;
        let mut passed_rows = 0;
        while let Some(mut page) = self.rows.next_after(self.skip, wanted).await? {
            let mut passed = 0;
            for count in page.iter().map(ElementsRow::count) {
                if self.skip < count {
                    break;
                }
                self.skip -= count;
                passed += 1;
            }
            passed_rows += passed;
            page.drain(..passed);
            if !page.is_empty() {
                context.note_rows_passed_for_rank(key, passed_rows, elements - self.skip);
                return Ok(Some(page));
            }
        }
        Ok(None)
    }
}

impl<'t> ReadContext<'t> {
    /// Where `count` elements from `offset` on are in a value that has `length`. `range`: all its rows.
    pub(crate) async fn elements_place<'c>(
        &'c self,
        key: &OpenKey,
        mut range: KeyRange,
        length: i64,
        offset: usize,
        count: usize,
    ) -> Result<ElementsPlace<'c, 't>, StoreError> {
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
        Ok(ElementsPlace {
            rows: ElementsRows::new(self, range, reverse),
            reverse,
            skip: before.min(after),
        })
    }
}
