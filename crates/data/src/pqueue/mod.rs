//! Priority queues: FoundationDB's recipe with Redis's manners.
//!
//! A row is `(…, priority, count, random, sequence) = element`, or a run: elements of one priority that
//! one unit of work has pushed one after the other ([`runs`](crate::rows::runs)); values may repeat. A push
//! takes the count behind the last row of its priority that its snapshot shows, and a random number of
//! its unit, so that pushes never conflict. Within a priority the oldest comes first, whichever end of
//! the queue is asked for. A pop conflicts with pops of the same rows, and with pushes in front of them.

pub mod commands;

use quoin_layout::{KeyRange, Priority};
use quoin_store::StoreError;

use crate::keyspace::key::OpenKey;
use crate::list::clamp_range;
use crate::rows::runs::ElementsRows;
use crate::unit::context::ReadContext;
use rows::{QueueSlice, rows_of};

mod descending;
mod dumping;
mod kind;
mod rows;
mod update;

pub use crate::zset::Extreme;
pub use kind::KIND;
pub use rows::QueuedValue;

/// A bound of a range of priorities.
#[derive(Debug, Clone, Copy)]
pub struct PriorityBound {
    /// The priority.
    pub priority: Priority,
    /// Whether elements of just that priority are outside.
    pub is_exclusive: bool,
}

impl ReadContext<'_> {
    /// Up to `count` elements from one end, as pops would take them.
    pub async fn queue_peek(
        &self,
        key: &OpenKey,
        count: usize,
        end: Extreme,
    ) -> Result<Vec<QueuedValue>, StoreError> {
        let slice = match end {
            Extreme::Min => {
                let (range, _) = rows_of(self, key.data());
                let mut rows = ElementsRows::new(self, range, false);
                QueueSlice::read(&mut rows, 0, count).await?
            }
            Extreme::Max => {
                self.queue_descending(key.data(), 0, count, self.isolation)
                    .await?
            }
        };
        self.queued_values(key.data(), &slice, count).await
    }

    /// The elements of a range by rank, both ends included and negative ones counted from the
    /// last: by ascending priority, or (`reverse`) by descending priority; in either case the
    /// oldest of a priority first.
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
        let slice = if reverse {
            self.queue_descending(key.data(), offset, count, self.isolation)
                .await?
        } else {
            self.queue_ascending(key, length, offset, count).await?
        };
        self.queued_values(key.data(), &slice, count).await
    }

    /// How many elements have a priority within bounds.
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
        let (all, _) = rows_of(self, key.data());
        self.count_between(key, all, inside).await
    }
}
