//! Pushes, pops, and the return of popped elements.

use bytes::Bytes;

use super::{End, ListMut};
use crate::cluster::delegation::row_key;
use crate::rows::runs::{ElementsRow, ElementsRows, Pushing};
use quoin_layout::{ElementsValue, PoppedElement, Position, successor};
use quoin_store::{Isolation, KeyValue, StoreError};

impl ListMut<'_, '_> {
    /// Pushes values at one end, in their order (after LPUSH a b, b is the head). Returns the
    /// resulting length as this transaction sees it.
    pub async fn push<'v>(
        &self,
        values: impl IntoIterator<Item = &'v Bytes>,
        end: End,
    ) -> Result<i64, StoreError> {
        let (context, key) = (self.context, self.key);
        let (range, prefix_length) = self.rows();
        let outermost = context
            .outermost(&range, end == End::Right, Isolation::Snapshot)
            .await?;
        let next_index = match &outermost {
            // The ends differ: if two servers push to an empty list at the same time, the elements
            // for the head come before those for the tail.
            None if end == End::Left => -1,
            None => 0,
            Some(row) => end.beyond(Position::read_index(prefix_length, &row.key)?),
        };
        let random = context.unit_position_random();
        let row_key = |index, start| {
            let mut row = context.layout().elements_prefix(key.data());
            Position::pack_pushed(index, random, start, &mut row);
            row
        };
        let mut pushing = Pushing::new(context, key, end == End::Left, next_index, row_key);
        if let Some(row) = outermost
            && self.is_pushed_by_unit(prefix_length, &row, random)?
        {
            pushing.resume(row)?;
        }
        let mut count = 0;
        for value in values {
            count += 1;
            pushing.push(value);
        }
        pushing.end();
        context.add_length(key, count);
        context.length(key, Isolation::Snapshot).await
    }

    /// Whether this unit of work pushed the row, so that nobody else has seen it. `random` is the
    /// random number of the unit's pushes.
    fn is_pushed_by_unit(
        &self,
        prefix_length: usize,
        row: &KeyValue,
        random: i64,
    ) -> Result<bool, StoreError> {
        // With a single writer, the rows of all units have the same random number. Commands run one
        // after another.
        if !self.context.environment.capabilities.has_other_writers {
            return Ok(false);
        }
        let layout = self.context.layout();
        let position = layout.read_position(prefix_length, &row.key)?;
        Ok(matches!(position.0[..], [_, of_row, _] if of_row == random))
    }

    /// Pops up to `count` elements from one end, the outermost first. The caller ends with
    /// [`remove_if_empty`](crate::unit::context::WriteContext::remove_if_empty).
    pub async fn pop(&self, count: usize, end: End) -> Result<Vec<Bytes>, StoreError> {
        let (context, key) = (self.context, self.key);
        let (range, _) = self.rows();
        let from_end = end == End::Right;
        let taken = context.elements_to_take(&range, count, from_end).await?;
        let is_covered = context.conflict_on_taken(&range, &taken, from_end);
        context
            .take_off(key, taken, (is_covered, from_end), |_, value| Ok(value))
            .await
    }

    /// Puts elements of a grant back at their old positions. If the list became empty meanwhile and its
    /// new elements are at or outside of those positions, pushes them instead.
    pub(super) async fn put_back(
        &self,
        elements: &[PoppedElement],
        end: End,
    ) -> Result<(), StoreError> {
        let (context, key) = (self.context, self.key);
        let (range, prefix_length) = self.rows();
        let mut rows =
            ElementsRows::new(context, range, end == End::Right).in_isolation(Isolation::Snapshot);
        let outermost = rows.next(1).await?.and_then(|page| page.into_iter().next());
        let last = elements.last().map(|last| {
            let mut name = &last.name[..];
            Position::take_all(&mut name)
        });
        let are_outside = match (&outermost, last.transpose()?) {
            (Some(row), Some(last)) => match end {
                End::Left => last < self.place(row, prefix_length, 0)?,
                End::Right => last > self.place(row, prefix_length, row.count() - 1)?,
            },
            _ => true,
        };
        if !are_outside {
            let values = elements.iter().rev().map(|element| element.value.clone());
            self.push(&values.collect::<Vec<_>>(), end).await?;
            return Ok(());
        }
        if end == End::Left
            && let Some(row) = &outermost
        {
            self.free_places(row, prefix_length)?;
        }
        let prefix = context.layout().elements_prefix(key.data());
        for element in elements {
            let row = row_key(&prefix, element);
            // An LINSERT between the same neighbours gets the same position.
            context
                .transaction
                .add_read_conflict_range(&row, &successor(&row));
            self.write_row(&row, &element.value);
        }
        context.add_length(key, i64::try_from(elements.len()).unwrap_or(i64::MAX));
        Ok(())
    }

    /// Writes an element into a row of its own.
    pub(super) fn write_row(&self, row: &[u8], value: &[u8]) {
        let stored = self.context.store_value(self.key.data(), value);
        self.context.transaction.set(row, &stored);
        self.context.note_elements(self.key, row, 0, 1);
    }

    /// Makes room for elements that were popped from the list's first run.
    fn free_places(&self, row: &ElementsRow, prefix_length: usize) -> Result<(), StoreError> {
        if let ElementsValue::Run(run) = &row.value
            && run.skipped() > 0
        {
            let place = self.place(row, prefix_length, 0)?;
            let moved = self.context.layout().element_key(self.key.data(), &place);
            self.context.free_places(self.key, row, &moved);
        }
        Ok(())
    }
}
