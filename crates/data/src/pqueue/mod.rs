//! Priority queues.
//!
//! A row is `(…, priority, count, random, sequence) = element`, or a run: elements of one priority
//! that one unit of work pushed one after another ([`runs`](crate::rows::runs)). Values may repeat.
//! A push takes the count after the last row of its priority in its snapshot, and its unit's random
//! number, so pushes never conflict. Within a priority the oldest element comes first, from either
//! end of the queue. A pop conflicts with pops of the same rows and with pushes before them.

pub mod commands;
mod dumping;
mod kind;
mod list;
mod push_pop;
mod range;
#[cfg(test)]
mod tests;

use bytes::Bytes;

use crate::keyspace::handle::{Value, ValueMut};
use crate::rows::runs::ElementsRow;
use crate::unit::context::ReadContext;
use quoin_layout::{ElementsValue, Id, KeyRange, Priority, QueuePlace};
use quoin_store::StoreError;

pub use crate::zset::Extreme;
pub use kind::KIND;

/// Marks handles of priority queues.
pub enum PriorityQueueType {}

/// A priority queue, for reading.
pub type PriorityQueue<'c, 't> = Value<'c, 't, PriorityQueueType>;

/// A priority queue, for writing.
pub type PriorityQueueMut<'c, 't> = ValueMut<'c, 't, PriorityQueueType>;

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
    /// Whether the range excludes elements of this priority.
    pub is_exclusive: bool,
}

/// All rows of a queue, and the length of the prefix that their keys share.
fn rows_of(context: &ReadContext<'_>, data: Id) -> (KeyRange, usize) {
    let prefix = context.layout().queue_prefix(data);
    (KeyRange::children(&prefix), prefix.len())
}

impl ElementsRow {
    /// The place in the key of a queue's row, and the length of the prefix that all rows of its
    /// priority share.
    fn queue_place(
        &self,
        context: &ReadContext<'_>,
        prefix_length: usize,
    ) -> Result<(QueuePlace, usize), StoreError> {
        Ok(context.layout().read_queue_key(prefix_length, &self.key)?)
    }

    /// The place of the first element of a queue's row: the place in the key, unless the first
    /// elements of a run were removed.
    fn first_queue_place(
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
