//! Where a priority queue's elements are.

use bytes::Bytes;

use crate::keyspace::key::OpenKey;
use crate::rows::runs::{ElementsRow, ElementsRows};
use crate::unit::context::ReadContext;
use quoin_layout::{ElementsValue, Id, KeyRange, Priority, QueuePlace};
use quoin_store::StoreError;

/// A value with its priority.
#[derive(Debug, Clone)]
pub struct QueuedValue {
    /// The value.
    pub value: Bytes,
    /// Its priority.
    pub priority: Priority,
}

/// Some of a queue's rows, in the order in which pops would take them. Within a row, too, the oldest
/// element comes first.
#[derive(Default)]
pub(super) struct QueueSlice {
    pub(super) rows: Vec<ElementsRow>,
    /// Elements of the first row that come before those that are wanted.
    pub(super) skip: usize,
}

impl QueueSlice {
    /// The next rows with up to `count` elements behind the first `skip`, which are of the first row.
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

/// All rows of a queue, and how long the part of their keys is that they share.
pub(super) fn rows_of(context: &ReadContext<'_>, data: Id) -> (KeyRange, usize) {
    let prefix = context.layout().queue_prefix(data);
    (KeyRange::children(&prefix), prefix.len())
}

impl ElementsRow {
    /// The place that the key of a queue's row says, and how long the prefix is that all rows of its
    /// priority share.
    pub(super) fn queue_place(
        &self,
        context: &ReadContext<'_>,
        prefix_length: usize,
    ) -> Result<(QueuePlace, usize), StoreError> {
        Ok(context.layout().read_queue_key(prefix_length, &self.key)?)
    }
}

impl ElementsRow {
    /// The place of the first element of a queue's row: the one that the key says, unless it is a run
    /// whose first elements are gone.
    pub(super) fn first_queue_place(
        &self,
        context: &ReadContext<'_>,
        prefix_length: usize,
    ) -> Result<QueuePlace, StoreError> {
        let (place, _) = self.queue_place(context, prefix_length)?;
        Ok(match &self.value {
            ElementsValue::Run(run) if run.skipped() > 0 => place.raised_by(run.skipped()),
            _ => place,
        })
    }
}

impl ReadContext<'_> {
    /// Rows with up to `count` elements from a rank on, by ascending priority. The queue has `length`.
    pub(super) async fn queue_ascending(
        &self,
        key: &OpenKey,
        length: i64,
        offset: usize,
        count: usize,
    ) -> Result<QueueSlice, StoreError> {
        let (range, _) = rows_of(self, key.data());
        let place = self.elements_place(key, range, length, offset, count);
        let mut place = place.await?;
        let first = place.arrive(self, key, count).await?;
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

    /// The values of a slice, at most `count`.
    pub(super) async fn queued_values(
        &self,
        data: Id,
        slice: &QueueSlice,
        count: usize,
    ) -> Result<Vec<QueuedValue>, StoreError> {
        let (_, prefix_length) = rows_of(self, data);
        let mut values = Vec::new();
        let mut skip = slice.skip;
        for row in &slice.rows {
            let (place, _) = row.queue_place(self, prefix_length)?;
            let missing = count - values.len();
            let skipped = std::mem::take(&mut skip);
            let elements = row.elements(false).into_iter().skip(skipped).take(missing);
            for (_, value) in elements {
                values.push(QueuedValue {
                    value: self.load_stored(data, value).await?,
                    priority: place.priority,
                });
            }
        }
        Ok(values)
    }
}
