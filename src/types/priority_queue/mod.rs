//! Priority queues: FoundationDB's recipe with Redis's manners.
//!
//! An element is `(…, priority, count, random) = value`; values may repeat. A push takes for each
//! element the count behind the last one of its priority that its snapshot shows, and a random
//! number of its own, so that pushes never conflict. Within a priority the oldest comes first,
//! whichever end of the queue is asked for. A pop conflicts with pops of the same elements, and
//! with pushes in front of them.

use bytes::Bytes;

use crate::layout::{Id, KeyRange, Priority};
use crate::store::{KeyValue, StoreError};

use super::context::ReadContext;
use super::key::OpenKey;
use super::list::clamp_range;

mod descending;
mod kind;
mod update;

pub use super::sorted_set::Extreme;
pub use kind::KIND;

/// A value with its priority.
#[derive(Debug, Clone)]
pub struct QueuedValue {
    /// The value.
    pub value: Bytes,
    /// Its priority.
    pub priority: Priority,
}

/// A bound of a range of priorities.
#[derive(Debug, Clone, Copy)]
pub struct PriorityBound {
    /// The priority.
    pub priority: Priority,
    /// Whether elements of just that priority are outside.
    pub is_exclusive: bool,
}

/// A queue's elements, and the length of the prefix that their keys share.
fn queue_rows(context: &ReadContext<'_>, data: Id) -> (KeyRange, usize) {
    let prefix = context.layout().queue_prefix(data);
    (KeyRange::children(&prefix), prefix.len())
}

impl ReadContext<'_> {
    /// Up to `count` elements from one end, as pops would take them.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn queue_peek(
        &self,
        key: &OpenKey,
        count: usize,
        end: Extreme,
    ) -> Result<Vec<QueuedValue>, StoreError> {
        let (range, _) = queue_rows(self, key.data());
        let rows = match end {
            Extreme::Min => {
                let pages = super::pages::Pages::new(self, range, false, count);
                pages.slice(0, count).await?
            }
            Extreme::Max => {
                self.queue_descending(key.data(), 0, count, self.isolation)
                    .await?
            }
        };
        self.queued_values(key.data(), &rows).await
    }

    /// The elements of a range by rank, both ends included and negative ones counted from the
    /// last: by ascending priority, or (`reverse`) by descending priority; in either case the
    /// oldest of a priority first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn queue_range(
        &self,
        key: &OpenKey,
        start: i64,
        stop: i64,
        reverse: bool,
    ) -> Result<Vec<QueuedValue>, StoreError> {
        let length = self.length(key, self.isolation).await?;
        let Some((offset, count)) = clamp_range(start, stop, length) else {
            return Ok(Vec::new());
        };
        let rows = if reverse {
            self.queue_descending(key.data(), offset, count, self.isolation)
                .await?
        } else {
            let (range, _) = queue_rows(self, key.data());
            self.rows_from_rank(key, range, length, false, offset, count)
                .await?
        };
        self.queued_values(key.data(), &rows).await
    }

    /// How many elements have a priority within bounds.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn queue_count(
        &self,
        key: &OpenKey,
        min: PriorityBound,
        max: PriorityBound,
    ) -> Result<i64, StoreError> {
        let of = |bound: PriorityBound| {
            let prefix = self.layout().priority_prefix(key.data(), &bound.priority);
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
        let (all, _) = queue_rows(self, key.data());
        self.count_between(key, all, inside).await
    }

    async fn queued_values(
        &self,
        data: Id,
        rows: &[KeyValue],
    ) -> Result<Vec<QueuedValue>, StoreError> {
        let (_, prefix_length) = queue_rows(self, data);
        let mut values = Vec::with_capacity(rows.len());
        for row in rows {
            let (place, _) = self.layout().read_queue_key(prefix_length, &row.key)?;
            values.push(QueuedValue {
                value: self.load_value(data, &row.value).await?,
                priority: place.priority,
            });
        }
        Ok(values)
    }
}
