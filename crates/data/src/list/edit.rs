//! What changes a list in the middle: LSET, LINSERT, LREM, LTRIM. A run is split where that takes
//! place.

use bytes::Bytes;

use super::rows::rows_of;
use super::{End, Side, clamp_range};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::rows::runs::{ElementsRow, ElementsRows};
use crate::unit::context::WriteContext;
use quoin_layout::{
    ElementsValue, KeyRange, Position, RUN_ELEMENT_BYTES_MAX, Run, Section, successor,
};
use quoin_store::{Isolation, StoreError};

/// Elements that LTRIM takes away up to which it reads them to count them. If it takes more, it drops all
/// blocks of the list.
const COUNTED_TRIM_MAX: usize = 4_096;
/// The same in bytes.
const COUNTED_TRIM_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Rows that it reads together. Long elements may make each of them large.
const COUNTED_ROWS_PER_READ: usize = 128;

impl WriteContext<'_> {
    /// Replaces the element at `index`; false where there is none.
    pub async fn list_set(
        &self,
        key: &OpenKey,
        index: i64,
        value: &Bytes,
    ) -> Result<bool, StoreError> {
        let Some((row, number)) = self.list_find(key, index).await? else {
            return Ok(false);
        };
        self.mark_changed(key);
        let (_, prefix_length) = rows_of(self, key.data());
        match &row.value {
            ElementsValue::One(old) => {
                self.discard_stored(key.data(), old);
                let stored = self.store_value(key.data(), value);
                self.transaction.set(&row.key, &stored);
            }
            ElementsValue::Run(run) if value.len() <= RUN_ELEMENT_BYTES_MAX => {
                let mut elements: Vec<Bytes> = run.elements().collect();
                if let Some(element) = elements.get_mut(number) {
                    *element = value.clone();
                }
                let changed = Run::new(run.skipped(), &elements);
                self.write_run(key, &row.key, row.count(), &changed);
            }
            ElementsValue::Run(_) => {
                let place = row.place(self, prefix_length, number)?;
                self.list_split(key, prefix_length, &row, number, 1)?;
                let stored = self.store_value(key.data(), value);
                let own_row = self.layout().element_key(key.data(), &place);
                self.transaction.set(&own_row, &stored);
                self.note_elements(key, &own_row, 0, 1);
            }
        }
        Ok(true)
    }

    /// Divides a run in front of element `number`, and leaves out `removed` elements from there on.
    fn list_split(
        &self,
        key: &OpenKey,
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
        self.write_run(key, &row.key, row.count(), &before);
        if !after.is_empty() {
            let place = row.place(self, prefix_length, number + removed)?;
            let row = self.layout().element_key(key.data(), &place);
            self.write_run(key, &row, 0, &Run::new(0, &after));
        }
        Ok(())
    }

    /// Inserts beside the first element that equals `pivot`, and answers the new length; `None`
    /// where there is no such element.
    ///
    /// # Errors
    /// `Text` where a million of alternating insertions at one spot have used up the room that
    /// a key has for positions.
    pub async fn list_insert(
        &self,
        key: &OpenKey,
        side: Side,
        pivot: &[u8],
        value: &[u8],
    ) -> Result<Option<i64>, CommandError> {
        let Some(gap) = self.list_find_gap(key, side, pivot).await? else {
            return Ok(None);
        };
        let (_, prefix_length) = rows_of(self, key.data());
        let position = Position::between(gap.before.as_ref(), gap.after.as_ref());
        let element_key = self.layout().element_key(key.data(), &position);
        if element_key.len() > quoin_base::limits::ELEMENT_KEY_BYTES_MAX {
            return Err(CommandError::text(
                "ERR too many insertions between the same two elements",
            ));
        }
        if let Some((row, number)) = &gap.within {
            self.list_split(key, prefix_length, row, *number, 0)?;
        }
        let row = self.store_value(key.data(), value);
        self.transaction.set(&element_key, &row);
        self.note_elements(key, &element_key, 0, 1);
        self.add_length(key, 1);
        Ok(Some(self.length(key, Isolation::Snapshot).await?))
    }

    /// The gap beside the first element that equals `pivot`.
    async fn list_find_gap(
        &self,
        key: &OpenKey,
        side: Side,
        pivot: &[u8],
    ) -> Result<Option<Gap>, StoreError> {
        let (range, prefix_length) = rows_of(self, key.data());
        let mut rows = ElementsRows::new(self, range, false);
        // Of the element before, once the row of the pivot is passed: of the pivot.
        let mut previous: Option<Position> = None;
        let mut is_found = false;
        while let Some(page) = rows.next(usize::MAX).await? {
            for row in page {
                let position = row.position(self, prefix_length)?;
                if is_found {
                    return Ok(Some(Gap {
                        before: previous,
                        after: Some(position),
                        within: None,
                    }));
                }
                for (number, value) in row.elements(false) {
                    if self.load_stored(key.data(), value).await? != pivot {
                        continue;
                    }
                    let split = match side {
                        Side::Before => number,
                        Side::After => number + 1,
                    };
                    if split == 0 {
                        return Ok(Some(Gap {
                            before: previous,
                            // No row may come to lie between that of a run and its first element.
                            after: Some(position),
                            within: None,
                        }));
                    }
                    if split < row.count() {
                        return Ok(Some(Gap {
                            before: Some(row.place(self, prefix_length, split - 1)?),
                            after: Some(row.place(self, prefix_length, split)?),
                            within: Some((row.clone(), split)),
                        }));
                    }
                    is_found = true;
                    break;
                }
                previous = Some(row.place(self, prefix_length, row.count() - 1)?);
            }
        }
        Ok(is_found.then_some(Gap {
            before: previous,
            after: None,
            within: None,
        }))
    }

    /// Removes up to `count` elements (`None`: all) that equal `value`, searching from one end,
    /// and answers how many. The caller ends with [`WriteContext::remove_if_empty`].
    pub async fn list_remove(
        &self,
        key: &OpenKey,
        value: &[u8],
        count: Option<usize>,
        from: End,
    ) -> Result<i64, StoreError> {
        let (range, _) = rows_of(self, key.data());
        let mut rows = ElementsRows::new(self, range, from == End::Right);
        let mut left = count.unwrap_or(usize::MAX);
        let mut removed = 0;
        // Workers take what they have done off the end where it is likely to be.
        let mut wanted = match self.environment.capabilities.single_writer {
            true => left,
            // Another read would be another round trip.
            false => usize::MAX,
        };
        'search: while let Some(page) = rows.next(wanted).await? {
            wanted = usize::MAX;
            for row in page {
                let mut found = Vec::new();
                for (number, element) in row.elements(from == End::Right) {
                    if left > 0 && self.load_stored(key.data(), element).await? == value {
                        found.push(number);
                        left -= 1;
                    }
                }
                removed += i64::try_from(found.len()).unwrap_or(i64::MAX);
                self.list_remove_from(key, &row, &found);
                if left == 0 {
                    break 'search;
                }
            }
        }
        self.add_length(key, -removed);
        Ok(removed)
    }

    /// Removes elements of a row. Those after them move up.
    fn list_remove_from(&self, key: &OpenKey, row: &ElementsRow, numbers: &[usize]) {
        if numbers.is_empty() {
            return;
        }
        let ElementsValue::Run(run) = &row.value else {
            self.clear_elements_row(key, row);
            return;
        };
        let elements = run.elements().enumerate();
        let left = elements.filter(|(number, _)| !numbers.contains(number));
        let left: Vec<Bytes> = left.map(|(_, element)| element).collect();
        self.write_run(key, &row.key, row.count(), &Run::new(run.skipped(), &left));
    }

    /// Keeps only the elements of an index range. The caller ends with
    /// [`WriteContext::remove_if_empty`].
    pub async fn list_trim(&self, key: &OpenKey, start: i64, stop: i64) -> Result<(), StoreError> {
        let length = self.length(key, Isolation::Serializable).await?;
        let (range, _) = rows_of(self, key.data());
        let Some((offset, count)) = clamp_range(start, stop, length) else {
            self.drop_blocks(key);
            self.list_clear_range(key, &range).await?;
            self.add_length(key, -length);
            return Ok(());
        };
        let kept = i64::try_from(count).unwrap_or(i64::MAX);
        let first = self.list_at(key, length, offset).await?;
        let last = self.list_at(key, length, offset + count - 1).await?;
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
        if removed > COUNTED_TRIM_MAX || !self.list_note_all(key, &outside).await? {
            self.drop_blocks(key);
        }
        for outside in outside {
            self.list_clear_range(key, &outside).await?;
        }
        if first.key == last.key {
            self.list_trim_row(key, &first, first_kept, last_kept);
        } else {
            self.list_trim_row(key, &first, first_kept, first.count() - 1);
            self.list_trim_row(key, &last, 0, last_kept);
        }
        if kept == length {
            // Redis tells WATCH of an LTRIM that takes nothing away too.
            self.mark_changed(key);
        }
        self.add_length(key, kept - length);
        Ok(())
    }

    /// Keeps only these elements of a row.
    fn list_trim_row(&self, key: &OpenKey, row: &ElementsRow, first: usize, last: usize) {
        let ElementsValue::Run(run) = &row.value else {
            return;
        };
        if first > 0 || last + 1 < run.count() {
            let mut kept = run.clone();
            kept.take_last(run.count().saturating_sub(last + 1));
            kept.take_first(first);
            self.write_run(key, &row.key, row.count(), &kept);
        }
    }

    /// Notes that all elements of some ranges go. Answers false where that would read too much.
    async fn list_note_all(&self, key: &OpenKey, ranges: &[KeyRange]) -> Result<bool, StoreError> {
        if key.meta.rank_levels == 0 {
            return Ok(true);
        }
        let mut bytes = 0;
        for range in ranges {
            let mut pages =
                Pages::new(self, range.clone(), false, 0).of_rows(COUNTED_ROWS_PER_READ);
            while let Some(rows) = pages.next().await? {
                for row in rows {
                    bytes += row.value.len();
                    let count = ElementsValue::decode(&row.value)?.count();
                    self.note_elements(key, &row.key, count, 0);
                }
                if bytes > COUNTED_TRIM_BYTES_MAX {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Clears elements without reading them, unless some of the list's values are split and
    /// their chunks have to be found.
    async fn list_clear_range(&self, key: &OpenKey, range: &KeyRange) -> Result<(), StoreError> {
        let chunks = KeyRange::children(&self.layout().section_prefix(key.data(), Section::Chunks));
        let chunk = self.outermost(&chunks, false, Isolation::Serializable);
        if chunk.await?.is_some() {
            let mut rows = ElementsRows::new(self, range.clone(), false);
            while let Some(page) = rows.next(usize::MAX).await? {
                for row in &page {
                    if let ElementsValue::One(value) = &row.value {
                        self.discard_stored(key.data(), value);
                    }
                }
            }
        }
        self.transaction.clear_range(&range.begin, &range.end);
        Ok(())
    }
}

/// Where LINSERT puts an element.
struct Gap {
    /// The place of the element before, if there is one.
    before: Option<Position>,
    /// The place of what comes after.
    after: Option<Position>,
    /// The run that has to be divided, and in front of which of its elements.
    within: Option<(ElementsRow, usize)>,
}
