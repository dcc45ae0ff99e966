//! Reads in order: the elements at an end, a range of ranks, the number of elements in a range of
//! priorities.
//!
//! Within a priority the oldest element comes first, also from the highest priority down. Keys
//! ascend with both, so neither direction of reading gives that order. So a page is read backwards,
//! and each priority that is complete on the page is reversed in memory. A priority that is cut off
//! at the end of the page is read again from its oldest element.

use crate::command::arguments::clamp_range;
use crate::rows::runs::{ElementsRow, ElementsRows, RowsExpected};
use quoin_layout::KeyRange;
use quoin_store::{Isolation, KeyValue, RangeQuery, StoreError};

use super::{Extreme, PriorityBound, PriorityQueue, QueuedValue, rows_of};

/// Some rows of a queue in pop order. Within a row, too, the oldest element comes first.
#[derive(Default)]
pub(super) struct QueueSlice {
    pub(super) rows: Vec<ElementsRow>,
    /// Elements of the first row before the first wanted one.
    pub(super) skip: usize,
}

impl QueueSlice {
    /// The next rows, with up to `count` elements after the first `skip` of the first row.
    pub(super) async fn read(
        rows: &mut ElementsRows<'_, '_>,
        skip: usize,
        count: usize,
    ) -> Result<Self, StoreError> {
        let mut slice = Self {
            rows: Vec::new(),
            skip,
        };
        let all = skip.saturating_add(count);
        let mut elements = 0;
        while elements < all
            && let Some(page) = rows.next(all - elements).await?
        {
            slice.add(page, &mut elements, all);
        }
        Ok(slice)
    }

    /// Adds rows until there are `all` elements.
    fn add(&mut self, page: Vec<ElementsRow>, elements: &mut usize, all: usize) {
        for row in page {
            if *elements >= all {
                break;
            }
            *elements += row.count();
            self.rows.push(row);
        }
    }
}

/// Skips some elements, and takes the ones after them.
struct Taken {
    slice: QueueSlice,
    /// Elements to take.
    count: usize,
    /// Elements of the rows that were taken.
    elements: usize,
}

impl Taken {
    fn is_done(&self) -> bool {
        self.wanted() == 0
    }

    /// Elements still to be skipped or taken.
    fn wanted(&self) -> usize {
        let all = self.slice.skip.saturating_add(self.count);
        all.saturating_sub(self.elements)
    }

    fn offer(&mut self, rows: impl IntoIterator<Item = ElementsRow>) {
        for row in rows {
            if self.is_done() {
                break;
            }
            let count = row.count();
            if self.slice.rows.is_empty() && self.slice.skip >= count {
                self.slice.skip -= count;
                continue;
            }
            self.elements += count;
            self.slice.rows.push(row);
        }
    }
}

impl PriorityQueue<'_, '_> {
    /// Up to `count` elements from one end, in the order of pops.
    pub(super) async fn peek(
        &self,
        count: usize,
        end: Extreme,
    ) -> Result<Vec<QueuedValue>, StoreError> {
        let slice = match end {
            Extreme::Min => {
                let (range, _) = rows_of(self.context, self.key.data());
                let mut rows = ElementsRows::new(self.context, range, false);
                QueueSlice::read(&mut rows, 0, count).await?
            }
            Extreme::Max => self.descending(0, count, self.context.isolation).await?,
        };
        self.values(&slice, count).await
    }

    /// The elements from rank `start` to rank `stop`, both included. Negative ranks count from the last element.
    /// Priorities ascend, or descend if `reverse`; the oldest element of a priority comes first either way.
    pub(super) async fn range(
        &self,
        start: i64,
        stop: i64,
        reverse: bool,
    ) -> Result<Vec<QueuedValue>, StoreError> {
        let isolation = self.context.isolation;
        let length = self.context.length(self.key, isolation).await?;
        let Some((offset, count)) = clamp_range(start, stop, length) else {
            return Ok(Vec::new());
        };
        let slice = if reverse {
            self.descending(offset, count, isolation).await?
        } else {
            self.ascending(length, offset, count).await?
        };
        self.values(&slice, count).await
    }

    /// The number of elements whose priority is within bounds.
    pub(super) async fn count(
        &self,
        min: PriorityBound,
        max: PriorityBound,
    ) -> Result<i64, StoreError> {
        let context = self.context;
        let of = |bound: PriorityBound| {
            let layout = context.layout();
            let prefix = layout.priority_prefix(self.key.data(), &bound.priority);
            KeyRange::children(&prefix)
        };
        let (min_rows, max_rows) = (of(min), of(max));
        let inside = KeyRange {
            begin: if min.is_exclusive {
                min_rows.end
            } else {
                min_rows.begin
            },
            end: if max.is_exclusive {
                max_rows.begin
            } else {
                max_rows.end
            },
        };
        if inside.begin >= inside.end {
            return Ok(0);
        }
        let (all, _) = rows_of(context, self.key.data());
        context.count_between(self.key, all, inside).await
    }

    /// Rows with up to `count` elements from a rank on, by ascending priority. The queue has `length` elements.
    pub(super) async fn ascending(
        &self,
        length: i64,
        offset: usize,
        count: usize,
    ) -> Result<QueueSlice, StoreError> {
        let (range, _) = rows_of(self.context, self.key.data());
        let place = self.context;
        let place = place.elements_place(self.key, range, length, offset, count);
        let mut place = place.await?;
        let first = place.arrive(self.context, self.key, count).await?;
        let mut slice = QueueSlice {
            rows: Vec::new(),
            skip: place.skip,
        };
        let all = place.skip.saturating_add(count);
        let mut elements = 0;
        slice.add(first.unwrap_or_default(), &mut elements, all);
        while !slice.rows.is_empty()
            && elements < all
            && let Some(page) = place.rows.next(all - elements).await?
        {
            slice.add(page, &mut elements, all);
        }
        if place.reverse {
            slice.rows.reverse();
            slice.skip = elements.saturating_sub(all);
        }
        Ok(slice)
    }

    /// Rows with up to `count` elements after the first `offset`, by descending priority.
    pub(super) async fn descending(
        &self,
        offset: usize,
        count: usize,
        isolation: Isolation,
    ) -> Result<QueueSlice, StoreError> {
        let (mut range, prefix_length) = rows_of(self.context, self.key.data());
        let mut taken = Taken {
            slice: QueueSlice {
                rows: Vec::new(),
                skip: offset,
            },
            count,
            elements: 0,
        };
        let mut expected = RowsExpected::new(self.context);
        while !taken.is_done() {
            // One more row shows whether the previous priority is complete.
            let limit = expected.rows_of(taken.wanted()).saturating_add(1);
            let page = self.page_from_end(&range, limit, isolation).await?;
            let is_last = page.len() < limit;
            let page = { page.into_iter() }
                .map(ElementsRow::read)
                .collect::<Result<Vec<_>, _>>()?;
            expected.note(&page);
            let mut rest = page.as_slice();
            while let Some(first) = rest.first() {
                let priority = self.priority_rows(prefix_length, first)?;
                let size = rest
                    .iter()
                    .take_while(|row| row.key.as_ref() >= priority.begin.as_slice())
                    .count();
                let (rows, after) = rest.split_at(size);
                if !after.is_empty() || is_last {
                    taken.offer(rows.iter().rev().cloned());
                } else {
                    self.offer_priority(&priority, &mut taken, isolation)
                        .await?;
                }
                range.end = priority.begin;
                rest = after;
                if taken.is_done() {
                    break;
                }
            }
            if is_last {
                break;
            }
        }
        Ok(taken.slice)
    }

    /// All keys of the priority of this row.
    pub(super) fn priority_rows(
        &self,
        prefix_length: usize,
        row: &ElementsRow,
    ) -> Result<KeyRange, StoreError> {
        let (_, priority_length) = row.queue_place(self.context, prefix_length)?;
        let prefix = row.key.get(..priority_length).unwrap_or_default();
        Ok(KeyRange::children(prefix))
    }

    async fn offer_priority(
        &self,
        priority: &KeyRange,
        taken: &mut Taken,
        isolation: Isolation,
    ) -> Result<(), StoreError> {
        let rows = ElementsRows::new(self.context, priority.clone(), false);
        let mut rows = rows.in_isolation(isolation);
        while !taken.is_done() {
            match rows.next(taken.wanted()).await? {
                Some(page) => taken.offer(page),
                None => break,
            }
        }
        Ok(())
    }

    async fn page_from_end(
        &self,
        range: &KeyRange,
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let query = RangeQuery {
            begin: &range.begin,
            end: &range.end,
            limit,
            reverse: true,
            isolation,
        };
        self.context.transaction.get_range(query).await
    }

    /// Up to `count` values of a slice.
    async fn values(
        &self,
        slice: &QueueSlice,
        count: usize,
    ) -> Result<Vec<QueuedValue>, StoreError> {
        let data = self.key.data();
        let (_, prefix_length) = rows_of(self.context, data);
        let mut values = Vec::new();
        let mut skip = slice.skip;
        for row in &slice.rows {
            let (place, _) = row.queue_place(self.context, prefix_length)?;
            let missing = count - values.len();
            let skipped = std::mem::take(&mut skip);
            let elements = row.elements(false).into_iter().skip(skipped).take(missing);
            for (_, value) in elements {
                values.push(QueuedValue {
                    value: self.context.load_stored(data, value).await?,
                    priority: place.priority,
                });
            }
        }
        Ok(values)
    }
}
