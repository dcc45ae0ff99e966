//! PQ.LIST and PQ.REM: elements by their places.
//!
//! An element keeps its place as long as it exists. A cursor is the place of the last element that
//! was returned. So every other element is returned exactly once, whatever is pushed and popped
//! meanwhile.

use bytes::Bytes;

use crate::command::arguments::{INVALID_CURSOR, ListOptions};
use crate::error::CommandError;
use crate::rows::runs::{ElementsRow, ElementsRows};
use quoin_base::limits::DELIVERED_BYTES_MAX;
use quoin_layout::{ElementsValue, KeyRange, Priority, Run, successor};
use quoin_store::StoreError;

use super::{PriorityQueue, PriorityQueueMut, QueuedValue, rows_of};

impl PriorityQueue<'_, '_> {
    /// Elements from the lowest priority up, oldest first within a priority, with up to
    /// [`DELIVERED_BYTES_MAX`] bytes of values. Also returns the place to continue after. `None` if
    /// the list is complete.
    ///
    /// # Errors
    /// `Text` if the cursor is not one of such a list.
    pub(super) async fn list(
        &self,
        options: &ListOptions,
    ) -> Result<(Vec<QueuedValue>, Option<Bytes>), CommandError> {
        let (mut range, prefix_length) = rows_of(self.context, self.key.data());
        if let Some(after) = &options.after {
            if self.context.layout().read_queue_key(0, after).is_err() {
                return Err(INVALID_CURSOR);
            }
            let prefix = self.context.layout().queue_prefix(self.key.data());
            let end = successor(&[prefix.as_slice(), after].concat());
            // A run with elements after this place may begin before it.
            let before = KeyRange {
                begin: range.begin,
                end: end.clone(),
            };
            let isolation = self.context.isolation;
            let row = self.context.outermost(&before, true, isolation).await?;
            range.begin = row.map_or(end, |row| row.key.to_vec());
        }
        let mut rows = ElementsRows::new(self.context, range, false);
        let (mut values, mut last, mut bytes) = (Vec::new(), None, 0_usize);
        while let Some(page) = rows.next(options.count.saturating_add(1)).await? {
            for row in page {
                let (place, _) = row.queue_place(self.context, prefix_length)?;
                for (number, value) in row.elements(false) {
                    let name = self.element_name(&row, number, prefix_length)?;
                    if options.after.as_ref().is_some_and(|after| name <= *after) {
                        continue;
                    }
                    if values.len() >= options.count || bytes >= DELIVERED_BYTES_MAX {
                        return Ok((values, last));
                    }
                    let value = self.context.load_stored(self.key.data(), value).await?;
                    bytes = bytes.saturating_add(value.len());
                    values.push(QueuedValue {
                        value,
                        priority: place.priority,
                    });
                    last = Some(name);
                }
            }
        }
        Ok((values, None))
    }

    /// The place of an element of a row, in the form that keys of rows use.
    fn element_name(
        &self,
        row: &ElementsRow,
        number: usize,
        prefix_length: usize,
    ) -> Result<Bytes, StoreError> {
        let ElementsValue::Run(run) = &row.value else {
            return Ok(row.key.slice(prefix_length.min(row.key.len())..));
        };
        let (place, _) = row.queue_place(self.context, prefix_length)?;
        let mut name = Vec::new();
        place.raised_by(run.skipped() + number).pack_into(&mut name);
        Ok(name.into())
    }
}

impl PriorityQueueMut<'_, '_> {
    /// Removes up to `count` elements of a priority that equal `value`, the oldest first. Returns
    /// how many. The caller calls
    /// [`remove_if_empty`](crate::unit::context::WriteContext::remove_if_empty) afterwards.
    ///
    /// Conflicts with pushes to this priority only if it reads to the priority's end.
    pub(super) async fn remove(
        &self,
        priority: &Priority,
        value: &[u8],
        count: usize,
    ) -> Result<i64, StoreError> {
        let prefix = self.context.layout();
        let prefix = prefix.priority_prefix(self.key.data(), priority);
        let mut rows = ElementsRows::new(self.context, KeyRange::children(&prefix), false);
        let mut left = count;
        let mut removed = 0;
        'search: while let Some(page) = rows.next(usize::MAX).await? {
            for row in page {
                let mut found = Vec::new();
                for (number, element) in row.elements(false) {
                    if left > 0
                        && self.context.load_stored(self.key.data(), element).await? == value
                    {
                        found.push(number);
                        left -= 1;
                    }
                }
                removed += i64::try_from(found.len()).unwrap_or(i64::MAX);
                self.remove_from_row(&row, &found)?;
                if left == 0 {
                    break 'search;
                }
            }
        }
        self.context.add_length(self.key, -removed);
        Ok(removed)
    }

    /// Removes these elements of a row. The others keep their places: each part between removed elements gets a row.
    fn remove_from_row(&self, row: &ElementsRow, numbers: &[usize]) -> Result<(), StoreError> {
        if numbers.is_empty() {
            return Ok(());
        }
        let ElementsValue::Run(run) = &row.value else {
            self.context.clear_elements_row(self.key, row);
            return Ok(());
        };
        let elements: Vec<Bytes> = run.elements().collect();
        let mut parts = Vec::new();
        let mut begin = 0;
        for end in numbers.iter().copied().chain([elements.len()]) {
            if let Some(part) = elements.get(begin..end).filter(|part| !part.is_empty()) {
                parts.push((run.skipped() + begin, part));
            }
            begin = end + 1;
        }
        let mut parts = parts.into_iter();
        // The first part stays in the row, whose place is at or before that part.
        let first = parts.next();
        let first = first.map_or_else(Run::default, |(skipped, part)| Run::new(skipped, part));
        self.context
            .write_run(self.key, &row.key, row.count(), &first);
        let prefix_length = self.context.layout().queue_prefix(self.key.data()).len();
        let (place, _) = row.queue_place(self.context, prefix_length)?;
        for (skipped, part) in parts {
            let place = place.raised_by(skipped);
            let key = self.context.layout().queue_key(self.key.data(), &place);
            self.context
                .write_run(self.key, &key, 0, &Run::new(0, part));
        }
        Ok(())
    }
}
