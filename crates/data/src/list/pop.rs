//! Pops, and how popped elements return.

use bytes::Bytes;

use super::End;
use super::rows::rows_of;
use crate::cluster::delegation::row_key;
use crate::keyspace::key::OpenKey;
use crate::rows::runs::{ElementsRow, ElementsRows};
use crate::unit::context::WriteContext;
use quoin_layout::{ElementsValue, PoppedElement, Position, successor};
use quoin_store::{Isolation, StoreError};

impl WriteContext<'_> {
    /// Takes up to `count` elements off one end, the outermost first. The caller ends with
    /// [`WriteContext::remove_if_empty`].
    pub async fn list_pop(
        &self,
        key: &OpenKey,
        count: usize,
        end: End,
    ) -> Result<Vec<Bytes>, StoreError> {
        let elements = self.pop_elements(key, end == End::Right, count).await?;
        Ok(elements.into_iter().map(|element| element.value).collect())
    }

    /// Takes elements off the list itself, and tells their places.
    pub(super) async fn list_pop_placed(
        &self,
        key: &OpenKey,
        count: usize,
        end: End,
    ) -> Result<Vec<PoppedElement>, StoreError> {
        let (range, prefix_length) = rows_of(self, key.data());
        let from_end = end == End::Right;
        let taken = self.elements_to_take(&range, count, from_end).await?;
        let is_covered = self.conflict_on_taken(&range, &taken, from_end);
        // Nothing returns on a store with a single writer.
        let has_names = !self.environment.capabilities.single_writer;
        let names = |row: &Bytes| {
            let position = match has_names {
                true => Some(self.layout().read_position(prefix_length, row)?),
                false => None,
            };
            Ok(move |place| {
                let position = position.as_ref();
                position.map_or_else(Bytes::new, |position| name(&position.raised_by(place)))
            })
        };
        self.take_off(key, taken, (is_covered, from_end), prefix_length, names)
            .await
    }

    /// Puts popped elements back at their old places, unless the list was empty meanwhile and has
    /// begun again in front of those.
    pub(super) async fn list_put_back(
        &self,
        key: &OpenKey,
        elements: &[PoppedElement],
        end: End,
    ) -> Result<(), StoreError> {
        let (range, prefix_length) = rows_of(self, key.data());
        let mut rows =
            ElementsRows::new(self, range, end == End::Right).in_isolation(Isolation::Snapshot);
        let outermost = rows.next(1).await?.and_then(|page| page.into_iter().next());
        let last = elements.last().map(|last| {
            let mut name = &last.name[..];
            Position::take_all(&mut name)
        });
        let are_outside = match (&outermost, last.transpose()?) {
            (Some(row), Some(last)) => match end {
                End::Left => last < row.place(self, prefix_length, 0)?,
                End::Right => last > row.place(self, prefix_length, row.count() - 1)?,
            },
            _ => true,
        };
        if !are_outside {
            let values = elements.iter().rev().map(|element| element.value.clone());
            self.list_push(key, &values.collect::<Vec<_>>(), end)
                .await?;
            return Ok(());
        }
        if end == End::Left
            && let Some(row) = &outermost
        {
            self.list_free_places(key, row, prefix_length)?;
        }
        let prefix = self.layout().elements_prefix(key.data());
        for element in elements {
            let row = row_key(&prefix, element);
            // An LINSERT between the same neighbours comes to the same place.
            self.transaction
                .add_read_conflict_range(&row, &successor(&row));
            let value = self.store_value(key.data(), &element.value);
            self.transaction.set(&row, &value);
            self.note_elements(key, &row, 0, 1);
        }
        self.add_length(key, i64::try_from(elements.len()).unwrap_or(i64::MAX));
        Ok(())
    }

    /// Makes room for elements that were popped from the list's first run.
    fn list_free_places(
        &self,
        key: &OpenKey,
        row: &ElementsRow,
        prefix_length: usize,
    ) -> Result<(), StoreError> {
        if let ElementsValue::Run(run) = &row.value
            && run.skipped() > 0
        {
            let place = row.place(self, prefix_length, 0)?;
            let moved = self.layout().element_key(key.data(), &place);
            self.free_places(key, row, &moved);
        }
        Ok(())
    }
}

/// By which a popped element finds its place again.
fn name(place: &Position) -> Bytes {
    let mut name = Vec::new();
    place.pack_into(&mut name);
    name.into()
}
