//! LSET, LINSERT, LREM, LTRIM: changes in the middle of a list. They split runs where necessary.

use bytes::Bytes;

use super::{End, ListMut};
use crate::command::arguments::clamp_range;
use crate::error::CommandError;
use crate::rows::pages::Pages;
use crate::rows::runs::{ElementsRow, ElementsRows};
use quoin_layout::{
    ElementsValue, KeyRange, Position, RUN_ELEMENT_BYTES_MAX, Run, Section, successor,
};
use quoin_store::{Isolation, StoreError};

/// The side of the pivot where LINSERT puts the new element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Nearer to the head than the pivot.
    Before,
    /// Nearer to the tail than the pivot.
    After,
}

/// Maximum number of elements that LTRIM reads to count what it removes. If it removes more, it
/// drops all blocks of the list.
const COUNTED_TRIM_MAX: usize = 4_096;
/// The same limit in bytes.
const COUNTED_TRIM_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Rows of one such read. A row of long elements is large.
const COUNTED_ROWS_PER_READ: usize = 128;

impl ListMut<'_, '_> {
    /// Replaces the element at `index`. False if the list has no such index.
    pub async fn set(&self, index: i64, value: &Bytes) -> Result<bool, StoreError> {
        let Some((row, number)) = self.find(index).await? else {
            return Ok(false);
        };
        self.context.mark_changed(self.key);
        let (_, prefix_length) = self.rows();
        match &row.value {
            ElementsValue::One(old) => {
                self.context.discard_stored(self.key.data(), old);
                let stored = self.context.store_value(self.key.data(), value);
                self.context.transaction.set(&row.key, &stored);
            }
            ElementsValue::Run(run) if value.len() <= RUN_ELEMENT_BYTES_MAX => {
                let mut elements: Vec<Bytes> = run.elements().collect();
                if let Some(element) = elements.get_mut(number) {
                    *element = value.clone();
                }
                let changed = Run::new(run.skipped(), &elements);
                self.rewrite(&row, &changed);
            }
            ElementsValue::Run(_) => {
                let place = self.place(&row, prefix_length, number)?;
                self.split(prefix_length, &row, number, 1)?;
                let own_row = self.context.layout().element_key(self.key.data(), &place);
                self.write_row(&own_row, value);
            }
        }
        Ok(true)
    }

    /// Splits a run before element `number`. Drops `removed` elements from there on.
    fn split(
        &self,
        prefix_length: usize,
        row: &ElementsRow,
        number: usize,
        removed: usize,
    ) -> Result<(), StoreError> {
        let ElementsValue::Run(run) = &row.value else {
            return Ok(());
        };
        let mut before = run.clone();
        let mut after = before.take_last(run.count().saturating_sub(number + removed));
        after.reverse();
        before.take_last(removed);
        self.rewrite(row, &before);
        if !after.is_empty() {
            let place = self.place(row, prefix_length, number + removed)?;
            let row = self.context.layout().element_key(self.key.data(), &place);
            self.context
                .write_run(self.key, &row, 0, &Run::new(0, &after));
        }
        Ok(())
    }

    /// Inserts `value` next to the first element that equals `pivot`, and returns the new length.
    /// `None` if no element equals it.
    ///
    /// # Errors
    /// `Text` if no position between the two neighbours fits into a key of the store: after about a
    /// million alternating insertions at one spot.
    pub(super) async fn insert(
        &self,
        side: Side,
        pivot: &[u8],
        value: &[u8],
    ) -> Result<Option<i64>, CommandError> {
        let Some(gap) = self.find_gap(side, pivot).await? else {
            return Ok(None);
        };
        let (_, prefix_length) = self.rows();
        let position = Position::between(gap.before.as_ref(), gap.after.as_ref());
        let element_key = self
            .context
            .layout()
            .element_key(self.key.data(), &position);
        if element_key.len() > quoin_base::limits::ELEMENT_KEY_BYTES_MAX {
            return Err(CommandError::text(
                "ERR too many insertions between the same two elements",
            ));
        }
        if let Some((row, number)) = &gap.within {
            self.split(prefix_length, row, *number, 0)?;
        }
        self.write_row(&element_key, value);
        self.context.add_length(self.key, 1);
        Ok(Some(
            self.context.length(self.key, Isolation::Snapshot).await?,
        ))
    }

    /// The gap next to the first element that equals `pivot`.
    async fn find_gap(&self, side: Side, pivot: &[u8]) -> Result<Option<Gap>, StoreError> {
        let (range, prefix_length) = self.rows();
        let mut rows = ElementsRows::new(self.context, range, false);
        // The position of the element before. After the pivot's row: that of the pivot.
        let mut previous: Option<Position> = None;
        let mut is_found = false;
        while let Some(page) = rows.next(usize::MAX).await? {
            for row in page {
                let position = self.position(&row, prefix_length)?;
                if is_found {
                    return Ok(Some(Gap {
                        before: previous,
                        after: Some(position),
                        within: None,
                    }));
                }
                for (number, value) in row.elements(false) {
                    if self.context.load_stored(self.key.data(), value).await? != pivot {
                        continue;
                    }
                    let split = match side {
                        Side::Before => number,
                        Side::After => number + 1,
                    };
                    if split == 0 {
                        return Ok(Some(Gap {
                            before: previous,
                            // The row's own position: no other row may come between it and the
                            // run's first element.
                            after: Some(position),
                            within: None,
                        }));
                    }
                    if split < row.count() {
                        return Ok(Some(Gap {
                            before: Some(self.place(&row, prefix_length, split - 1)?),
                            after: Some(self.place(&row, prefix_length, split)?),
                            within: Some((row.clone(), split)),
                        }));
                    }
                    is_found = true;
                    break;
                }
                previous = Some(self.place(&row, prefix_length, row.count() - 1)?);
            }
        }
        Ok(is_found.then_some(Gap {
            before: previous,
            after: None,
            within: None,
        }))
    }

    /// Removes up to `count` elements (`None`: all) that equal `value`. The search begins at `from`.
    /// Returns how many it removed. The caller ends with
    /// [`remove_if_empty`](crate::unit::context::WriteContext::remove_if_empty).
    pub async fn remove(
        &self,
        value: &[u8],
        count: Option<usize>,
        from: End,
    ) -> Result<i64, StoreError> {
        let mut rows = self.elements_rows(from);
        let mut left = count.unwrap_or(usize::MAX);
        let mut removed = 0;
        // Workers remove finished elements, which are usually near the end that they search from.
        let mut wanted = match self.context.environment.capabilities.reads_wait {
            false => left,
            // A second read would be another round trip.
            true => usize::MAX,
        };
        'search: while let Some(page) = rows.next(wanted).await? {
            wanted = usize::MAX;
            for row in page {
                let mut found = Vec::new();
                for (number, element) in row.elements(from == End::Right) {
                    if left > 0
                        && self.context.load_stored(self.key.data(), element).await? == value
                    {
                        found.push(number);
                        left -= 1;
                    }
                }
                removed += i64::try_from(found.len()).unwrap_or(i64::MAX);
                self.remove_from_row(&row, &found);
                if left == 0 {
                    break 'search;
                }
            }
        }
        self.context.add_length(self.key, -removed);
        Ok(removed)
    }

    /// Removes these elements of a row. The elements after them move up.
    fn remove_from_row(&self, row: &ElementsRow, numbers: &[usize]) {
        if numbers.is_empty() {
            return;
        }
        let ElementsValue::Run(run) = &row.value else {
            self.context.clear_elements_row(self.key, row);
            return;
        };
        let elements = run.elements().enumerate();
        let left = elements.filter(|(number, _)| !numbers.contains(number));
        let left: Vec<Bytes> = left.map(|(_, element)| element).collect();
        self.rewrite(row, &Run::new(run.skipped(), &left));
    }

    /// Keeps only the elements of an index range. The caller ends with
    /// [`remove_if_empty`](crate::unit::context::WriteContext::remove_if_empty).
    pub async fn trim(&self, start: i64, stop: i64) -> Result<(), StoreError> {
        let length = self
            .context
            .length(self.key, Isolation::Serializable)
            .await?;
        let (range, _) = self.rows();
        let Some((offset, count)) = clamp_range(start, stop, length) else {
            self.context.drop_blocks(self.key);
            self.clear_elements(&range).await?;
            self.context.add_length(self.key, -length);
            return Ok(());
        };
        let kept = i64::try_from(count).unwrap_or(i64::MAX);
        let first = self.find_offset(length, offset).await?;
        let last = self.find_offset(length, offset + count - 1).await?;
        let (Some((first, first_kept)), Some((last, last_kept))) = (first, last) else {
            return Err(StoreError::Corrupt(
                "length of a list disagrees with its elements",
            ));
        };
        let outside = [
            KeyRange {
                begin: range.begin.clone(),
                end: first.key.to_vec(),
            },
            KeyRange {
                begin: successor(&last.key),
                end: range.end.clone(),
            },
        ];
        let removed = usize::try_from(length - kept).unwrap_or(usize::MAX);
        if removed > COUNTED_TRIM_MAX || !self.note_all(&outside).await? {
            self.context.drop_blocks(self.key);
        }
        for outside in outside {
            self.clear_elements(&outside).await?;
        }
        if first.key == last.key {
            self.trim_row(&first, first_kept, last_kept);
        } else {
            self.trim_row(&first, first_kept, first.count() - 1);
            self.trim_row(&last, 0, last_kept);
        }
        if kept == length {
            // As in Redis, WATCH sees an LTRIM that removes nothing.
            self.context.mark_changed(self.key);
        }
        self.context.add_length(self.key, kept - length);
        Ok(())
    }

    /// Keeps only these elements of a row.
    fn trim_row(&self, row: &ElementsRow, first: usize, last: usize) {
        let ElementsValue::Run(run) = &row.value else {
            return;
        };
        if first > 0 || last + 1 < run.count() {
            let mut kept = run.clone();
            kept.take_last(run.count().saturating_sub(last + 1));
            kept.take_first(first);
            self.rewrite(row, &kept);
        }
    }

    /// Records the removal of all elements in these ranges from the counts of blocks. Returns false
    /// if that would take too many reads.
    async fn note_all(&self, ranges: &[KeyRange]) -> Result<bool, StoreError> {
        if self.key.meta.rank_levels == 0 {
            return Ok(true);
        }
        let mut bytes = 0;
        for range in ranges {
            let mut pages =
                Pages::new(self.context, range.clone(), false, 0).of_rows(COUNTED_ROWS_PER_READ);
            while let Some(rows) = pages.next().await? {
                for row in rows {
                    bytes += row.value.len();
                    let count = ElementsValue::decode(&row.value)?.count();
                    self.context.note_elements(self.key, &row.key, count, 0);
                }
                if bytes > COUNTED_TRIM_BYTES_MAX {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Clears elements. Reads them only if the list has values in chunks, to clear those chunks too.
    async fn clear_elements(&self, range: &KeyRange) -> Result<(), StoreError> {
        let chunks = KeyRange::children(
            &self
                .context
                .layout()
                .section_prefix(self.key.data(), Section::Chunks),
        );
        let chunk = self
            .context
            .outermost(&chunks, false, Isolation::Serializable);
        if chunk.await?.is_some() {
            let mut rows = ElementsRows::new(self.context, range.clone(), false);
            while let Some(page) = rows.next(usize::MAX).await? {
                for row in &page {
                    if let ElementsValue::One(value) = &row.value {
                        self.context.discard_stored(self.key.data(), value);
                    }
                }
            }
        }
        self.context
            .transaction
            .clear_range(&range.begin, &range.end);
        Ok(())
    }

    /// Writes a run in place of a row.
    fn rewrite(&self, row: &ElementsRow, run: &Run) {
        self.context.write_run(self.key, &row.key, row.count(), run);
    }
}

/// The gap into which LINSERT puts an element.
struct Gap {
    /// The position of the element before it, if there is one.
    before: Option<Position>,
    /// The position of the element or row after it, if there is one.
    after: Option<Position>,
    /// The run to split, and the element before which to split it.
    within: Option<(ElementsRow, usize)>,
}
