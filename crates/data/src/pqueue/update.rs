//! Pushing and popping.

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::keyspace::key::OpenKey;
use crate::rows::runs::{Pushing, Taken};
use crate::unit::context::WriteContext;
use quoin_base::limits::KEY_READS_AT_ONCE;
use quoin_layout::{Id, KeyRange, PoppedElement, Priority, QueuePlace, successor};
use quoin_store::{Isolation, KeyValue, StoreError};

use super::rows::rows_of;
use super::{Extreme, QueuedValue};

impl WriteContext<'_> {
    /// Adds values, each behind all of its priority, and answers the new length as this
    /// transaction sees it.
    pub async fn queue_push(
        &self,
        key: &OpenKey,
        values: &[QueuedValue],
    ) -> Result<i64, StoreError> {
        let mut sorted: Vec<&QueuedValue> = values.iter().collect();
        // Keeps the order within a priority.
        sorted.sort_by(|one, other| one.priority.order(&other.priority));
        let is_of_one =
            |one: &&QueuedValue, other: &&QueuedValue| one.priority.order(&other.priority).is_eq();
        let priorities: Vec<&[&QueuedValue]> = sorted.chunk_by(is_of_one).collect();
        for some in priorities.chunks(KEY_READS_AT_ONCE) {
            let lasts = some.iter().map(async |values| match values.first() {
                Some(first) => self.queue_last(key.data(), &first.priority).await,
                None => Ok(None),
            });
            let lasts = try_join_all(lasts).await?;
            for (values, last) in some.iter().zip(lasts) {
                self.queue_push_priority(key, values, last)?;
            }
        }
        self.add_length(key, i64::try_from(values.len()).unwrap_or(i64::MAX));
        self.length(key, Isolation::Snapshot).await
    }

    /// The last row of a priority. A snapshot read, so that pushes do not conflict; two that come to the
    /// same count differ in their random numbers.
    async fn queue_last(
        &self,
        data: Id,
        priority: &Priority,
    ) -> Result<Option<KeyValue>, StoreError> {
        let prefix = self.layout().priority_prefix(data, priority);
        let range = KeyRange::children(&prefix);
        self.outermost(&range, true, Isolation::Snapshot).await
    }

    /// Adds values of one priority behind its last row.
    fn queue_push_priority(
        &self,
        key: &OpenKey,
        values: &[&QueuedValue],
        mut last: Option<KeyValue>,
    ) -> Result<(), StoreError> {
        let random = self.unit_position_random();
        let (_, prefix_length) = rows_of(self, key.data());
        let place_of = |row: &KeyValue| self.layout().read_queue_key(prefix_length, &row.key);
        let last_place = last.as_ref().map(place_of).transpose()?;
        let mut next_count = last_place.map_or(0, |(place, _)| place.count.saturating_add(1));
        // 1 and 1.0 are one priority, but each is given back as what it was.
        let are_given_alike = |one: &&QueuedValue, other: &&QueuedValue| {
            one.priority.number() == other.priority.number()
        };
        for values in values.chunk_by(are_given_alike) {
            let Some(QueuedValue { priority, .. }) = values.first() else {
                continue;
            };
            let row_key = |count, sequence| {
                let place = QueuePlace {
                    priority: *priority,
                    count,
                    random,
                    sequence: Some(sequence),
                };
                self.layout().queue_key(key.data(), &place)
            };
            let mut pushing = Pushing::new(self, key, false, next_count, row_key);
            if let Some(row) = last.take()
                && let Some((place, _)) = last_place
                && place.random == random
                && place.priority.number() == priority.number()
                // There, all units have the same random number. Commands run in series.
                && !self.environment.capabilities.single_writer
            {
                pushing.resume(row)?;
            }
            for value in values {
                pushing.push(&value.value);
            }
            next_count = pushing.end();
        }
        Ok(())
    }

    /// Takes up to `count` elements from one end: the lowest or the highest priorities, the
    /// oldest of each first. The caller ends with [`WriteContext::remove_if_empty`].
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
    pub(crate) async fn queue_pop_placed(
        &self,
        key: &OpenKey,
        count: usize,
        end: Extreme,
    ) -> Result<Vec<PoppedElement>, StoreError> {
        let (range, prefix_length) = rows_of(self, key.data());
        let (taken, is_covered) = match end {
            Extreme::Min => {
                let taken = self.elements_to_take(&range, count, false).await?;
                let is_covered = self.conflict_on_taken(&range, &taken, false);
                (taken, is_covered)
            }
            // Not in the order of their keys.
            Extreme::Max => (self.highest_to_take(key.data(), count).await?, false),
        };
        let names = |row: &Bytes| {
            let (of_run, _) = self.layout().read_queue_key(prefix_length, row)?;
            Ok(move |place| {
                let mut name = Vec::new();
                of_run.raised_by(place).pack_into(&mut name);
                name.into()
            })
        };
        self.take_off(key, taken, (is_covered, false), prefix_length, names)
            .await
    }

    /// What to pop from the highest priority down, with a conflict on the rows of the lowest priority
    /// among them and on everything above it, but not on what is pushed behind them at that priority,
    /// nor on what is below.
    async fn highest_to_take(&self, data: Id, count: usize) -> Result<Taken, StoreError> {
        let slice = self
            .queue_descending(data, 0, count, self.relaxed())
            .await?;
        if !self.is_strict
            && let Some(last) = slice.rows.last()
        {
            let (range, prefix_length) = rows_of(self, data);
            let lowest = self.group(prefix_length, last)?;
            self.transaction
                .add_read_conflict_range(&lowest.begin, &successor(&last.key));
            self.transaction
                .add_read_conflict_range(&lowest.end, &range.end);
        }
        let mut taken = Taken::default();
        let mut missing = count;
        for row in slice.rows {
            missing = taken.add(row, missing);
        }
        Ok(taken)
    }
}
