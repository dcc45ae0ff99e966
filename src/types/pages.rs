//! Long range reads, a page at a time.

use crate::layout::{KeyRange, successor};
use crate::limits::RANGE_PAGE_ROWS;
use crate::store::{Isolation, KeyValue, RangeQuery, StoreError};

use super::context::{ReadContext, WriteContext};
use super::key::OpenKey;

/// Reads a range page by page, forwards or backwards.
pub struct Pages<'c, 't> {
    context: &'c ReadContext<'t>,
    range: KeyRange,
    reverse: bool,
    isolation: Isolation,
    page_rows: usize,
    page_rows_max: usize,
    is_done: bool,
}

impl<'c, 't> Pages<'c, 't> {
    /// Pages of `range`, in the context's isolation. `expected_rows` (0: not known) keeps the
    /// first page from being larger than needed.
    pub fn new(
        context: &'c ReadContext<'t>,
        range: KeyRange,
        reverse: bool,
        expected_rows: usize,
    ) -> Self {
        Self {
            context,
            range,
            reverse,
            isolation: context.isolation,
            page_rows: if expected_rows == 0 {
                RANGE_PAGE_ROWS
            } else {
                expected_rows.min(RANGE_PAGE_ROWS)
            },
            page_rows_max: RANGE_PAGE_ROWS,
            is_done: false,
        }
    }

    /// The same pages without taking part in conflict detection; the caller adds the conflicts
    /// that it needs.
    pub fn with_snapshot_reads(self) -> Self {
        self.in_isolation(Isolation::Snapshot)
    }

    /// The same pages in another isolation than the context's.
    pub fn in_isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// The same in pages of at most so many rows, where rows are large.
    pub fn of_rows(mut self, page_rows_max: usize) -> Self {
        self.page_rows_max = page_rows_max;
        self.page_rows = self.page_rows.min(page_rows_max);
        self
    }

    /// The next rows, at most so many; `None` after the last.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn next_of(&mut self, rows: usize) -> Result<Option<Vec<KeyValue>>, StoreError> {
        self.page_rows = rows.clamp(1, self.page_rows_max);
        self.next().await
    }

    /// The next rows; `None` after the last. A page is never empty.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn next(&mut self) -> Result<Option<Vec<KeyValue>>, StoreError> {
        if self.is_done {
            return Ok(None);
        }
        let rows = self
            .context
            .transaction
            .get_range(RangeQuery {
                begin: &self.range.begin,
                end: &self.range.end,
                limit: self.page_rows,
                reverse: self.reverse,
                isolation: self.isolation,
            })
            .await?;
        self.is_done = rows.len() < self.page_rows;
        match rows.last() {
            None => return Ok(None),
            Some(last) if self.reverse => self.range.end = last.key.to_vec(),
            Some(last) => self.range.begin = successor(&last.key),
        }
        self.page_rows = self.page_rows_max;
        Ok(Some(rows))
    }

    /// Up to `count` rows behind the first `offset`.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn slice(
        mut self,
        mut offset: usize,
        count: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let mut slice = Vec::new();
        while slice.len() < count {
            let Some(rows) = self.next().await? else {
                break;
            };
            let skipped = offset.min(rows.len());
            offset -= skipped;
            let missing = count - slice.len();
            slice.extend(rows.into_iter().skip(skipped).take(missing));
        }
        Ok(slice)
    }
}

impl ReadContext<'_> {
    /// The row at one end of a range.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn outermost(
        &self,
        range: &KeyRange,
        reverse: bool,
        isolation: Isolation,
    ) -> Result<Option<KeyValue>, StoreError> {
        let query = RangeQuery {
            begin: &range.begin,
            end: &range.end,
            limit: 1,
            reverse,
            isolation,
        };
        Ok(self.transaction.get_range(query).await?.pop())
    }

    /// Rows of a key with `length` of them from `offset` on in one direction, read from the nearer
    /// end.
    pub(super) async fn rows_by_rank(
        &self,
        range: KeyRange,
        length: i64,
        reverse: bool,
        offset: usize,
        count: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let length = usize::try_from(length).unwrap_or(0);
        let behind = length.saturating_sub(offset.saturating_add(count));
        let is_from_other_end = behind < offset;
        let skipped = if is_from_other_end { behind } else { offset };
        let direction = reverse != is_from_other_end;
        let mut rows = Pages::new(self, range, direction, skipped.saturating_add(count))
            .slice(skipped, count)
            .await?;
        if is_from_other_end {
            rows.reverse();
        }
        Ok(rows)
    }

    /// Counts the elements of those of a key's rows that are inside a range, and in turns of those outside
    /// of it; the first that comes to its end gives the answer, since the length is known. `all`: the
    /// range of the rows of all elements, without the first `left_out`.
    pub(super) async fn count_elements(
        &self,
        key: &OpenKey,
        all: KeyRange,
        left_out: i64,
        inside: KeyRange,
    ) -> Result<i64, StoreError> {
        let before = KeyRange {
            begin: all.begin,
            end: inside.begin.clone(),
        };
        let behind = KeyRange {
            begin: inside.end.clone(),
            end: all.end,
        };
        let mut inside = Pages::new(self, inside, false, 0);
        let mut outside = [
            Pages::new(self, before, false, 0),
            Pages::new(self, behind, false, 0),
        ];
        let (mut count_inside, mut count_outside, mut passed_rows) = (0_usize, 0_usize, 0_usize);
        let counted = loop {
            let rows = inside.next().await?.unwrap_or_default();
            count_inside += self.elements_in(key, &rows);
            passed_rows += rows.len();
            if rows.len() < RANGE_PAGE_ROWS {
                break i64::try_from(count_inside).unwrap_or(i64::MAX);
            }
            let mut has_more = false;
            for pages in &mut outside {
                if let Some(rows) = pages.next().await? {
                    count_outside += self.elements_in(key, &rows);
                    passed_rows += rows.len();
                    has_more = rows.len() == RANGE_PAGE_ROWS;
                    if has_more {
                        break;
                    }
                }
            }
            if !has_more {
                let length = self.length(key, self.isolation).await?;
                let count_outside = i64::try_from(count_outside).unwrap_or(i64::MAX);
                break length - left_out - count_outside;
            }
        };
        self.note_rows_passed_for_rank(key, passed_rows, count_inside + count_outside);
        Ok(counted)
    }
}

impl ReadContext<'_> {
    /// How many elements rows of a key hold.
    pub(super) fn elements_in(&self, key: &OpenKey, rows: &[KeyValue]) -> usize {
        let kind = key.meta.value_type.kind();
        let Some(section) = kind.ranked_section() else {
            return rows.len();
        };
        rows.iter().map(|row| kind.elements_in(section, row)).sum()
    }
}

impl WriteContext<'_> {
    /// The rows to pop: up to `count` from one end of a range. Snapshot reads, and a conflict on
    /// just these rows and the way to them: a read beyond the last would conflict with every push.
    /// Within EXEC it does, because that there is nothing more may be what the rest depends on.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn rows_to_pop(
        &self,
        range: &KeyRange,
        from_end: bool,
        count: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let pages = Pages::new(self, range.clone(), from_end, count);
        if self.is_strict {
            return pages.slice(0, count).await;
        }
        let rows = pages.with_snapshot_reads().slice(0, count).await?;
        let section = (range.begin.as_slice(), range.end.as_slice());
        let range = match rows.last() {
            None => return Ok(rows),
            Some(last) if from_end => (last.key.to_vec(), range.end.clone()),
            Some(last) => (range.begin.clone(), successor(&last.key)),
        };
        self.transaction
            .add_conflict_unless_own(section, (&range.0, &range.1));
        Ok(rows)
    }
}
