//! Taking elements off an end, and room for those that return.

use bytes::Bytes;

use super::rows::{ElementsRow, ElementsRows};
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_layout::{ElementsValue, KeyRange, PoppedElement, Run, successor};
use quoin_store::{Isolation, StoreError};

/// What a pop takes.
#[derive(Default)]
pub(crate) struct Taken {
    /// Whole rows, the outermost first.
    pub(crate) rows: Vec<ElementsRow>,
    /// A run after these, and how many of its elements.
    pub(crate) part: Option<(ElementsRow, usize)>,
    /// There were not as many as were wanted.
    pub(crate) is_all: bool,
}

impl Taken {
    /// Takes a row, or as much of it as is `missing`. Returns how much is missing then.
    pub(crate) fn add(&mut self, row: ElementsRow, missing: usize) -> usize {
        let count = row.count();
        if count > missing {
            self.part = (missing > 0).then_some((row, missing));
            return 0;
        }
        self.rows.push(row);
        missing - count
    }
}

impl WriteContext<'_> {
    /// What to pop: up to `count` elements from one end of a range. Snapshot reads: the caller adds the
    /// conflicts.
    pub(crate) async fn elements_to_take(
        &self,
        range: &KeyRange,
        count: usize,
        from_end: bool,
    ) -> Result<Taken, StoreError> {
        let mut rows =
            ElementsRows::new(self, range.clone(), from_end).in_isolation(Isolation::Snapshot);
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
                missing = taken.add(row, missing);
            }
        }
        Ok(taken)
    }

    /// Conflicts on just what is popped and the way to it: to read on would conflict with every push.
    /// Within EXEC it does, because that there is nothing more may be what the rest depends on.
    /// Returns whether it conflicts on whole rows and all that is between them.
    pub(crate) fn conflict_on_taken(
        &self,
        section: &KeyRange,
        taken: &Taken,
        from_end: bool,
    ) -> bool {
        let (begin, section_end) = (section.begin.as_slice(), section.end.as_slice());
        if self.is_strict && taken.is_all {
            self.transaction.add_read_conflict_range(begin, section_end);
            return true;
        }
        // Whether the part of a run is of this transaction's own pushes is told by the way to it.
        let part = taken.part.as_ref().map(|(row, _)| &row.key);
        let innermost = match (part, taken.rows.last(), from_end) {
            (Some(part), _, false) => part.to_vec(),
            (Some(part), _, true) => successor(part),
            (None, Some(last), false) => successor(&last.key),
            (None, Some(last), true) => last.key.to_vec(),
            (None, None, _) => return false,
        };
        let range = match from_end {
            false => (begin, innermost.as_slice()),
            true => (innermost.as_slice(), section_end),
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

    /// Takes elements off a value: clears their rows (where the transaction conflicts on all between
    /// them, `is_covered`, as one range), and answers them, the outermost first. Of a run, its last
    /// elements `from_end`. An element of its own row is named by the rest of its key after
    /// `prefix_length` bytes. For a run `names` answers, from the row's key, what names an element by its
    /// place in the run. The caller ends with [`WriteContext::remove_if_empty`].
    pub(crate) async fn take_off<N: Fn(usize) -> Bytes>(
        &self,
        key: &OpenKey,
        mut taken: Taken,
        (is_covered, from_end): (bool, bool),
        prefix_length: usize,
        names: impl Fn(&Bytes) -> Result<N, StoreError>,
    ) -> Result<Vec<PoppedElement>, StoreError> {
        for row in &taken.rows {
            self.note_elements(key, &row.key, row.count(), 0);
        }
        let mut popped = Vec::new();
        let whole = taken.rows.iter_mut().map(|row| (row, usize::MAX));
        let part = taken.part.iter_mut().map(|(row, count)| (row, *count));
        for (row, count) in whole.chain(part) {
            match &mut row.value {
                ElementsValue::One(value) => popped.push(PoppedElement {
                    name: row.key.slice(prefix_length.min(row.key.len())..),
                    value: self.load_stored(key.data(), value.clone()).await?,
                }),
                ElementsValue::Run(run) => {
                    let taken = match from_end {
                        false => run.take_first(count),
                        true => run.take_last(count),
                    };
                    // The places of those that were taken are next to those that are left.
                    let (beyond, length) = (run.skipped(), taken.len());
                    let place = |number: usize| match from_end {
                        false => beyond - length + number,
                        true => beyond + run.count() + length - 1 - number,
                    };
                    let name = names(&row.key)?;
                    let named = taken.into_iter().enumerate();
                    popped.extend(named.map(|(number, value)| PoppedElement {
                        name: name(place(number)),
                        value,
                    }));
                }
            }
        }
        self.clear_taken(key, &taken, is_covered);
        self.add_length(key, -i64::try_from(popped.len()).unwrap_or(i64::MAX));
        Ok(popped)
    }

    /// Clears the rows whose elements were taken, and writes what is left of the last.
    fn clear_taken(&self, key: &OpenKey, taken: &Taken, is_covered: bool) {
        for row in &taken.rows {
            if let ElementsValue::One(value) = &row.value {
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
        if let Some((row, count)) = &taken.part
            && let ElementsValue::Run(rest) = &row.value
        {
            self.write_run(key, &row.key, rest.count() + count, rest);
        }
    }

    /// Moves the row of a run from its first place to that of its first element, which is at the key
    /// `moved`. So there is room before it for rows of elements that were popped from the run.
    pub(crate) fn free_places(&self, key: &OpenKey, row: &ElementsRow, moved: &[u8]) {
        let ElementsValue::Run(run) = &row.value else {
            return;
        };
        for row in [&row.key[..], moved] {
            self.transaction
                .add_read_conflict_range(row, &successor(row));
        }
        self.clear_elements_row(key, row);
        let elements: Vec<Bytes> = run.elements().collect();
        self.write_run(key, moved, 0, &Run::new(0, &elements));
    }
}
