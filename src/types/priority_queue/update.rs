//! Pushing and popping.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;

use crate::layout::{Id, KeyRange, PoppedElement, QueuePlace, successor};
use crate::limits::KEY_READS_AT_ONCE;
use crate::store::{Isolation, KeyValue, StoreError};
use crate::types::context::WriteContext;
use crate::types::key::OpenKey;
use crate::types::pages::RowsToPop;

use super::{Extreme, QueuedValue, queue_rows};

impl WriteContext<'_> {
    /// Adds values, each behind all of its priority, and answers the new length as this
    /// transaction sees it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn queue_push(
        &self,
        key: &OpenKey,
        values: &[QueuedValue],
    ) -> Result<i64, StoreError> {
        let prefix =
            |value: &QueuedValue| self.layout().priority_prefix(key.data(), &value.priority);
        let mut next_counts: BTreeMap<Vec<u8>, i64> =
            values.iter().map(|value| (prefix(value), 0)).collect();
        let mut counts: Vec<_> = next_counts.iter_mut().collect();
        for some in counts.chunks_mut(KEY_READS_AT_ONCE) {
            let reads = some
                .iter()
                .map(|(prefix, _)| self.queue_next_count(key.data(), prefix));
            let reads = try_join_all(reads).await?;
            for ((_, next), read) in some.iter_mut().zip(reads) {
                **next = read;
            }
        }
        let random = self.environment.position_random();
        for value in values {
            let next = next_counts.entry(prefix(value)).or_default();
            let place = QueuePlace {
                priority: value.priority,
                count: *next,
                random,
            };
            *next = next.saturating_add(1);
            let row = self.store_value(key.data(), &value.value);
            let row_key = self.layout().queue_key(key.data(), &place);
            self.transaction.set(&row_key, &row);
            self.note_rank_change(key, &row_key, 1);
        }
        self.add_length(key, i64::try_from(values.len()).unwrap_or(i64::MAX));
        self.length(key, Isolation::Snapshot).await
    }

    /// The count behind the last of a priority. A snapshot read, so that pushes do not conflict;
    /// two that come to the same count differ in their random numbers.
    async fn queue_next_count(&self, data: Id, priority_prefix: &[u8]) -> Result<i64, StoreError> {
        let range = KeyRange::children(priority_prefix);
        let last = self.outermost(&range, true, Isolation::Snapshot).await?;
        let Some(row) = last else {
            return Ok(0);
        };
        let (_, prefix_length) = queue_rows(self, data);
        let (place, _) = self.layout().read_queue_key(prefix_length, &row.key)?;
        Ok(place.count.saturating_add(1))
    }

    /// Takes up to `count` elements from one end: the lowest or the highest priorities, the
    /// oldest of each first. The caller ends with [`WriteContext::remove_if_empty`].
    ///
    /// # Errors
    /// When the store fails.
    pub async fn queue_pop(
        &self,
        key: &OpenKey,
        count: usize,
        end: Extreme,
    ) -> Result<Vec<QueuedValue>, StoreError> {
        let elements = self.pop_elements(key, end == Extreme::Max, count).await?;
        let queued = elements.into_iter().map(|element| {
            let (place, _) = self.layout().read_queue_key(0, &element.name)?;
            Ok(QueuedValue {
                value: element.value,
                priority: place.priority,
            })
        });
        queued.collect()
    }

    /// Takes elements off the queue itself, and tells their places.
    pub(in crate::types) async fn queue_pop_placed(
        &self,
        key: &OpenKey,
        count: usize,
        end: Extreme,
    ) -> Result<Vec<PoppedElement>, StoreError> {
        let (range, prefix_length) = queue_rows(self, key.data());
        let to_pop = match end {
            Extreme::Min => self.rows_to_pop(&range, false, count).await?,
            Extreme::Max => RowsToPop {
                rows: self.highest_to_pop(key.data(), count).await?,
                // Not in the order of their keys.
                is_covered: false,
            },
        };
        self.pop_rows(key, &to_pop, prefix_length).await
    }

    /// As [`WriteContext::rows_to_pop`], from the highest priority down: a conflict on the rows of
    /// the lowest priority among them and on everything above it, but not on what is pushed
    /// behind them at that priority, nor on what is below.
    async fn highest_to_pop(&self, data: Id, count: usize) -> Result<Vec<KeyValue>, StoreError> {
        let rows = self
            .queue_descending(data, 0, count, self.relaxed())
            .await?;
        if !self.is_strict
            && let Some(last) = rows.last()
        {
            let (range, prefix_length) = queue_rows(self, data);
            let lowest = self.group(prefix_length, last)?;
            self.transaction
                .add_read_conflict_range(&lowest.begin, &successor(&last.key));
            self.transaction
                .add_read_conflict_range(&lowest.end, &range.end);
        }
        Ok(rows)
    }
}
