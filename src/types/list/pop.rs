//! Pops, and how popped elements return.

use bytes::Bytes;

use super::End;
use super::rows::{ListRow, ListRows, rows_of};
use crate::layout::{Id, KeyRange, ListValue, PoppedElement, Position, Run, successor};
use crate::store::StoreError;
use crate::types::context::WriteContext;
use crate::types::delegation::row_key;
use crate::types::key::OpenKey;

/// What a pop takes.
#[derive(Default)]
struct Taken {
    /// Whole rows, the outermost first.
    rows: Vec<ListRow>,
    /// A run after these, and how many of its elements.
    part: Option<(ListRow, usize)>,
    /// There were not as many as were wanted.
    is_all: bool,
}

impl WriteContext<'_> {
    /// Takes up to `count` elements off one end, the outermost first. The caller ends with
    /// [`WriteContext::remove_if_empty`].
    ///
    /// # Errors
    /// When the store fails.
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
        let mut taken = self.list_to_pop(&range, count, end).await?;
        let is_covered = self.list_conflict_on(&range, &taken, end);
        for row in &taken.rows {
            self.list_note(key, &row.key, row.count(), 0);
        }
        let popped = self
            .list_taken_elements(key.data(), &mut taken, prefix_length, end)
            .await?;
        self.list_clear_taken(key, &taken, is_covered);
        self.add_length(key, -i64::try_from(popped.len()).unwrap_or(i64::MAX));
        Ok(popped)
    }

    /// What to pop. Snapshot reads: the caller adds the conflicts.
    async fn list_to_pop(
        &self,
        range: &KeyRange,
        count: usize,
        end: End,
    ) -> Result<Taken, StoreError> {
        let mut rows = ListRows::new(self, range.clone(), end == End::Right).with_snapshot_reads();
        let mut taken = Taken::default();
        let mut missing = count;
        while missing > 0 {
            let Some(page) = rows.next(missing).await? else {
                taken.is_all = true;
                break;
            };
            for row in page {
                if missing == 0 {
                    break;
                }
                let count = row.count();
                if count > missing {
                    taken.part = Some((row, missing));
                    missing = 0;
                } else {
                    missing -= count;
                    taken.rows.push(row);
                }
            }
        }
        Ok(taken)
    }

    /// Conflicts on just what is popped and the way to it: to read on would conflict with every push.
    /// Within EXEC it does, because that there is nothing more may be what the rest depends on.
    /// Returns whether it conflicts on whole rows and all that is between them.
    fn list_conflict_on(&self, section: &KeyRange, taken: &Taken, end: End) -> bool {
        let (begin, section_end) = (section.begin.as_slice(), section.end.as_slice());
        if self.is_strict && taken.is_all {
            self.transaction.add_read_conflict_range(begin, section_end);
            return true;
        }
        // Whether the part of a run is of this transaction's own pushes is told by the way to it.
        let part = taken.part.as_ref().map(|(row, _)| &row.key);
        let innermost = match (part, taken.rows.last(), end) {
            (Some(part), _, End::Left) => part.to_vec(),
            (Some(part), _, End::Right) => successor(part),
            (None, Some(last), End::Left) => successor(&last.key),
            (None, Some(last), End::Right) => last.key.to_vec(),
            (None, None, _) => return false,
        };
        let range = match end {
            End::Left => (begin, innermost.as_slice()),
            End::Right => (innermost.as_slice(), section_end),
        };
        let conflicts = if self.is_strict {
            self.transaction.add_read_conflict_range(range.0, range.1);
            true
        } else {
            self.transaction
                .add_conflict_unless_own((begin, section_end), range)
        };
        if conflicts && let Some(part) = part {
            self.transaction
                .add_read_conflict_range(part, &successor(part));
        }
        conflicts
    }

    /// Takes the elements out of the rows, the outermost first.
    async fn list_taken_elements(
        &self,
        data: Id,
        taken: &mut Taken,
        prefix_length: usize,
        end: End,
    ) -> Result<Vec<PoppedElement>, StoreError> {
        // Nothing returns on a store with a single writer.
        let has_names = !self.environment.capabilities.single_writer;
        let whole = taken.rows.iter_mut().map(|row| (row, usize::MAX));
        let part = taken.part.iter_mut().map(|(row, count)| (row, *count));
        let mut popped = Vec::new();
        for (row, count) in whole.chain(part) {
            let position = match has_names {
                true => Some(row.position(self, prefix_length)?),
                false => None,
            };
            match &mut row.value {
                ListValue::One(value) => popped.push(PoppedElement {
                    name: position.map_or_else(Bytes::new, |place| name(&place)),
                    value: self.load_stored(data, value.clone()).await?,
                }),
                ListValue::Run(run) => {
                    let taken = match end {
                        End::Left => run.take_first(count),
                        End::Right => run.take_last(count),
                    };
                    // The places of those that were taken are next to those that are left.
                    let (beyond, length) = (run.skipped(), taken.len());
                    let place = |number: usize| match end {
                        End::Left => beyond - length + number,
                        End::Right => beyond + run.count() + length - 1 - number,
                    };
                    let named = taken.into_iter().enumerate().map(|(number, value)| {
                        let position = position.as_ref();
                        let place = position.map(|position| position.raised_by(place(number)));
                        PoppedElement {
                            name: place.map_or_else(Bytes::new, |place| name(&place)),
                            value,
                        }
                    });
                    popped.extend(named);
                }
            }
        }
        Ok(popped)
    }

    /// Clears the rows whose elements were taken, and writes what is left of the last.
    fn list_clear_taken(&self, key: &OpenKey, taken: &Taken, is_covered: bool) {
        for row in &taken.rows {
            if let ListValue::One(value) = &row.value {
                self.discard_stored(key.data(), value);
            }
        }
        match taken.rows.as_slice() {
            // All at once where that cannot take anything else along.
            [first, .., last] if is_covered => {
                let (first, last) = ((&first.key).min(&last.key), (&first.key).max(&last.key));
                self.transaction.clear_range(first, &successor(last));
            }
            rows => rows.iter().for_each(|row| self.transaction.clear(&row.key)),
        }
        if let Some((
            ListRow {
                key: row,
                value: ListValue::Run(rest),
            },
            count,
        )) = &taken.part
        {
            self.list_write_run(key, row, rest.count() + count, rest);
        }
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
        let mut rows = ListRows::new(self, range, end == End::Right).with_snapshot_reads();
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
            self.list_note(key, &row, 0, 1);
        }
        self.add_length(key, i64::try_from(elements.len()).unwrap_or(i64::MAX));
        Ok(())
    }

    /// Moves the row of the list's first run to the place of its first element, so that there is room
    /// before that for rows of elements that were popped from the run.
    fn list_free_places(
        &self,
        key: &OpenKey,
        row: &ListRow,
        prefix_length: usize,
    ) -> Result<(), StoreError> {
        let ListValue::Run(run) = &row.value else {
            return Ok(());
        };
        if run.skipped() == 0 {
            return Ok(());
        }
        let place = row.place(self, prefix_length, 0)?;
        let moved = self.layout().element_key(key.data(), &place);
        for row in [&row.key[..], &moved] {
            self.transaction
                .add_read_conflict_range(row, &successor(row));
        }
        self.list_clear_row(key, row);
        let elements: Vec<Bytes> = run.elements().collect();
        self.list_write_run(key, &moved, 0, &Run::new(0, &elements));
        Ok(())
    }
}

/// By which a popped element finds its place again.
fn name(place: &Position) -> Bytes {
    let mut name = Vec::new();
    place.pack_into(&mut name);
    name.into()
}
