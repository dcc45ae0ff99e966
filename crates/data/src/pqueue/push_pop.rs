//! Pushes, pops, and putting back popped elements.

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::cluster::delegation::row_key;
use crate::rows::runs::{ElementsRow, Pushing, Taken};
use quoin_base::limits::KEY_READS_AT_ONCE;
use quoin_layout::{KeyRange, PoppedElement, Priority, QueuePlace, successor};
use quoin_store::{Isolation, KeyValue, StoreError};

use super::{Extreme, PriorityQueueMut, QueuedValue, rows_of};

impl PriorityQueueMut<'_, '_> {
    /// Adds values, each after all others of its priority. Returns the new length in this transaction.
    pub(super) async fn push(&self, values: &[QueuedValue]) -> Result<i64, StoreError> {
        let mut sorted: Vec<&QueuedValue> = values.iter().collect();
        // A stable sort: it keeps the order within a priority.
        sorted.sort_by(|one, other| one.priority.order(&other.priority));
        let is_of_one =
            |one: &&QueuedValue, other: &&QueuedValue| one.priority.order(&other.priority).is_eq();
        let priorities: Vec<&[&QueuedValue]> = sorted.chunk_by(is_of_one).collect();
        for some in priorities.chunks(KEY_READS_AT_ONCE) {
            let lasts = some.iter().map(async |values| match values.first() {
                Some(first) => self.last_row(&first.priority).await,
                None => Ok(None),
            });
            let lasts = try_join_all(lasts).await?;
            for (values, last) in some.iter().zip(lasts) {
                self.push_priority(values, last)?;
            }
        }
        self.context
            .add_length(self.key, i64::try_from(values.len()).unwrap_or(i64::MAX));
        self.context.length(self.key, Isolation::Snapshot).await
    }

    /// The last row of a priority. A snapshot read, so pushes do not conflict. Two pushes that get the same count
    /// differ in their random numbers.
    async fn last_row(&self, priority: &Priority) -> Result<Option<KeyValue>, StoreError> {
        let prefix = self
            .context
            .layout()
            .priority_prefix(self.key.data(), priority);
        let range = KeyRange::children(&prefix);
        self.context
            .outermost(&range, true, Isolation::Snapshot)
            .await
    }

    /// Adds values of one priority after its last row.
    fn push_priority(
        &self,
        values: &[&QueuedValue],
        mut last: Option<KeyValue>,
    ) -> Result<(), StoreError> {
        let random = self.context.unit_position_random();
        let (_, prefix_length) = rows_of(self.context, self.key.data());
        let place_of = |row: &KeyValue| {
            self.context
                .layout()
                .read_queue_key(prefix_length, &row.key)
        };
        let last_place = last.as_ref().map(place_of).transpose()?;
        let mut next_count = last_place.map_or(0, |(place, _)| place.count.saturating_add(1));
        // 1 and 1.0 are one priority, but replies show each as it was given.
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
                self.context.layout().queue_key(self.key.data(), &place)
            };
            let mut pushing = Pushing::new(self.context, self.key, false, next_count, row_key);
            if let Some(row) = last.take()
                && let Some((place, _)) = last_place
                && place.random == random
                && place.priority.number() == priority.number()
                // With a single writer, all units have the same random number. Commands run one after another.
                && self.context.environment.capabilities.has_other_writers
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

    /// Pops up to `count` elements of the lowest or the highest priorities, the oldest of each first. The caller
    /// calls
    /// [`remove_if_empty`](crate::unit::context::WriteContext::remove_if_empty) afterwards.
    pub(super) async fn pop(
        &self,
        count: usize,
        end: Extreme,
    ) -> Result<Vec<QueuedValue>, StoreError> {
        let (range, prefix_length) = rows_of(self.context, self.key.data());
        let (taken, is_covered) = match end {
            Extreme::Min => {
                let taken = self.context.elements_to_take(&range, count, false).await?;
                let is_covered = self.context.conflict_on_taken(&range, &taken, false);
                (taken, is_covered)
            }
            // The rows are not in the order of their keys.
            Extreme::Max => (self.highest_to_take(count).await?, false),
        };
        let queued = |row: &Bytes, value| {
            let (place, _) = self.context.layout().read_queue_key(prefix_length, row)?;
            Ok(QueuedValue {
                value,
                priority: place.priority,
            })
        };
        self.context
            .take_off(self.key, taken, (is_covered, false), queued)
            .await
    }

    /// The elements to pop from the highest priority down. Adds a conflict on their rows of the lowest of these
    /// priorities, and on all higher priorities. Pushes after these rows do not conflict, nor do lower priorities.
    async fn highest_to_take(&self, count: usize) -> Result<Taken, StoreError> {
        let slice = self.descending(0, count, self.context.relaxed()).await?;
        if !self.context.is_strict
            && let Some(last) = slice.rows.last()
        {
            let (range, prefix_length) = rows_of(self.context, self.key.data());
            let lowest = self.priority_rows(prefix_length, last)?;
            self.context
                .transaction
                .add_read_conflict_range(&lowest.begin, &successor(&last.key));
            self.context
                .transaction
                .add_read_conflict_range(&lowest.end, &range.end);
        }
        let mut taken = Taken::default();
        let mut missing = count;
        for row in slice.rows {
            missing = taken.add(row, missing);
        }
        Ok(taken)
    }

    pub(super) async fn put_back(&self, elements: &[PoppedElement]) -> Result<(), StoreError> {
        for of_one in elements.chunk_by(|one, next| self.is_of_priority(one, next)) {
            self.put_back_priority(of_one).await?;
        }
        Ok(())
    }

    fn is_of_priority(&self, one: &PoppedElement, other: &PoppedElement) -> bool {
        let read = |element: &PoppedElement| {
            let (_, length) = self
                .context
                .layout()
                .read_queue_key(0, &element.name)
                .ok()?;
            element.name.get(..length).map(<[u8]>::to_vec)
        };
        read(one) == read(other)
    }

    /// Puts back popped elements of one priority, the oldest first, at their old places. If the priority was empty in
    /// between and has begun again at lower places, they get new places before these.
    async fn put_back_priority(&self, elements: &[PoppedElement]) -> Result<(), StoreError> {
        let Some(oldest) = elements.first() else {
            return Ok(());
        };
        let (place, _) = self.context.layout().read_queue_key(0, &oldest.name)?;
        let of_priority = self
            .context
            .layout()
            .priority_prefix(self.key.data(), &place.priority);
        let first = self
            .context
            .outermost(
                &KeyRange::children(&of_priority),
                false,
                Isolation::Snapshot,
            )
            .await?;
        let first = first.map(ElementsRow::read).transpose()?;
        let prefix = self.context.layout().queue_prefix(self.key.data());
        let first_place = match &first {
            Some(row) => Some(row.first_queue_place(self.context, prefix.len())?),
            None => None,
        };
        let first_key =
            first_place.map(|place| self.context.layout().queue_key(self.key.data(), &place));
        let last = elements.last().map(|last| row_key(&prefix, last));
        let begun_again = first_place.filter(|_| last >= first_key);
        if let (Some(row), Some(first_key), None) = (&first, &first_key, &begun_again)
            && row.key != *first_key
        {
            self.context.free_places(self.key, row, first_key);
        }
        let random = self.context.environment.position_random();
        let count = i64::try_from(elements.len()).unwrap_or(i64::MAX);
        for (number, element) in (0_i64..).zip(elements) {
            let row = match &begun_again {
                None => row_key(&prefix, element),
                Some(first) => {
                    let (place, _) = self.context.layout().read_queue_key(0, &element.name)?;
                    let place = QueuePlace {
                        count: first.count.saturating_sub(count - number),
                        random,
                        sequence: Some(0),
                        ..place
                    };
                    self.context.layout().queue_key(self.key.data(), &place)
                }
            };
            let value = self.context.store_value(self.key.data(), &element.value);
            self.context.transaction.set(&row, &value);
            self.context.note_rank_change(self.key, &row, 1);
        }
        self.context.add_length(self.key, count);
        Ok(())
    }
}
