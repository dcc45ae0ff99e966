//! Rows of ordered elements. Each row holds one element, or a run of elements that one unit of work pushed one after
//! the other. Lists and priority queues consist of such rows (docs/understand/decisions/029-runs.md).
//!
//! A run is written by the unit that pushes its elements. Afterwards it only gets shorter.
//!
//! This module finds an element by its rank, from the nearer end or from the end of a counted block. It pushes
//! elements in runs, takes elements off an end, and makes room for elements that return.

use bytes::Bytes;
use quoin_base::limits::RANGE_PAGE_ROWS;
use quoin_layout::{
    DecodeError, ElementsValue, KeyRange, RUN_BYTES_MAX, RUN_ELEMENT_BYTES_MAX, RUN_ELEMENTS_MAX,
    Run, StoredValue, successor,
};
use quoin_store::{Isolation, KeyValue, StoreError};

use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::{ElementRow, plain_element};
use crate::rows::pages::Pages;
use crate::rows::ranks::NEAR_ELEMENTS_MAX;
use crate::unit::context::{ReadContext, WriteContext};

/// Reads a row for the descriptor of a type.
///
/// # Errors
/// If the bytes are not such a row.
pub(crate) fn element_row(row: &Bytes) -> Result<ElementRow, DecodeError> {
    match ElementsValue::decode(row)? {
        ElementsValue::One(_) => plain_element(row),
        ElementsValue::Run(run) => Ok(ElementRow {
            value: None,
            group: 0,
            count: run.count(),
        }),
    }
}

/// A position from which some elements can be read next.
pub(crate) struct ElementsPlace<'c, 't> {
    pub(crate) rows: ElementsRows<'c, 't>,
    /// Whether to read from the last row to the first.
    pub(crate) reverse: bool,
    /// Number of elements to skip in the rows read before these elements.
    pub(crate) skip: usize,
}

impl ElementsPlace<'_, '_> {
    /// The row in which the elements begin, and rows after it, if possible with `wanted` elements. `None` if the
    /// value ends before. Afterwards `skip` is relative to that row.
    pub(crate) async fn arrive(
        &mut self,
        context: &ReadContext<'_>,
        key: &OpenKey,
        wanted: usize,
    ) -> Result<Option<Vec<ElementsRow>>, StoreError> {
        let elements = self.skip;
        let mut passed_rows = 0;
        while let Some(mut page) = self.rows.next_after(self.skip, wanted).await? {
            let mut passed = 0;
            for count in page.iter().map(ElementsRow::count) {
                if self.skip < count {
                    break;
                }
                self.skip -= count;
                passed += 1;
            }
            passed_rows += passed;
            page.drain(..passed);
            if !page.is_empty() {
                context.note_rows_passed_for_rank(key, passed_rows, elements - self.skip);
                return Ok(Some(page));
            }
        }
        Ok(None)
    }
}

impl<'t> ReadContext<'t> {
    /// The position of `count` elements from `offset` on in a value with `length` elements. `range`: all its rows.
    pub(crate) async fn elements_place<'c>(
        &'c self,
        key: &OpenKey,
        mut range: KeyRange,
        length: i64,
        offset: usize,
        count: usize,
    ) -> Result<ElementsPlace<'c, 't>, StoreError> {
        let length = usize::try_from(length).unwrap_or(0);
        let after = length.saturating_sub(offset.saturating_add(count));
        let mut before = offset;
        if key.meta.rank_levels > 0 && before.min(after) > NEAR_ELEMENTS_MAX {
            let rank = i64::try_from(offset).unwrap_or(i64::MAX);
            let start = self.rank_start_by_rank(key, range, rank).await?;
            before -= usize::try_from(start.elements).unwrap_or(0).min(before);
            range = start.rows;
        }
        let reverse = after < before;
        Ok(ElementsPlace {
            rows: ElementsRows::new(self, range, reverse),
            reverse,
            skip: before.min(after),
        })
    }
}

/// The last number in the place of a run that grows to the left. Its rightmost element is at 0.
const LEFT_RUN_START: i64 = 1 - RUN_ELEMENTS_MAX as i64;

/// The rows of one push.
pub(crate) struct Pushing<'c, 't, K> {
    context: &'c WriteContext<'t>,
    key: &'c OpenKey,
    to_start: bool,
    next_index: i64,
    /// Makes the key of a row from its index and the last number of its place.
    row_key: K,
    run: PushedRun,
}

/// The run to which elements are being added.
#[derive(Default)]
struct PushedRun {
    /// In push order. If they are pushed at the start, that is from the last to the first.
    elements: Vec<Bytes>,
    /// The bytes that they take in the row.
    bytes: usize,
    /// Number of the run's places beyond its first pushed element. They stay free.
    unused: usize,
    /// The key of the run's row, if it already exists, and how many of the elements it holds.
    row: Option<(Bytes, usize)>,
}

impl PushedRun {
    fn has_room(&self, element: &Bytes) -> bool {
        self.unused + self.elements.len() < RUN_ELEMENTS_MAX
            && self.bytes + Run::bytes_of(element.len()) <= RUN_BYTES_MAX
    }

    fn push(&mut self, element: Bytes) {
        self.bytes += Run::bytes_of(element.len());
        self.elements.push(element);
    }
}

impl<'c, 't, K: Fn(i64, i64) -> Vec<u8>> Pushing<'c, 't, K> {
    /// A push at the start or at the end of a value. The first row gets `next_index`. Each further row gets the next
    /// index outwards.
    pub(crate) fn new(
        context: &'c WriteContext<'t>,
        key: &'c OpenKey,
        to_start: bool,
        next_index: i64,
        row_key: K,
    ) -> Self {
        Self {
            context,
            key,
            to_start,
            next_index,
            row_key,
            run: PushedRun::default(),
        }
    }

    /// Continues the outermost row, which this unit of work has pushed, so that the commands of a batch share rows.
    ///
    /// # Errors
    /// If the row cannot be read.
    pub(crate) fn resume(&mut self, outermost: KeyValue) -> Result<(), StoreError> {
        let (skipped, mut elements) = match ElementsValue::decode(&outermost.value)? {
            ElementsValue::Run(run) => (run.skipped(), run.elements().collect()),
            // There is no place to its left.
            ElementsValue::One(StoredValue::Plain(element))
                if !self.to_start && element.len() <= RUN_ELEMENT_BYTES_MAX =>
            {
                (0, vec![element])
            }
            ElementsValue::One(_) => return Ok(()),
        };
        self.run.row = Some((outermost.key, elements.len()));
        self.run.unused = match self.to_start {
            true => {
                elements.reverse();
                RUN_ELEMENTS_MAX - skipped - elements.len()
            }
            false => skipped,
        };
        for element in elements {
            self.run.push(element);
        }
        Ok(())
    }

    /// Adds an element.
    pub(crate) fn push(&mut self, element: &Bytes) {
        if element.len() > RUN_ELEMENT_BYTES_MAX {
            self.write_run();
            let value = self.context.store_value(self.key.data(), element);
            self.write_row(0, &value, 1);
            return;
        }
        if !self.run.has_room(element) {
            self.write_run();
        }
        self.run.push(element.clone());
    }

    /// Writes what has not been written yet. Returns the index for the next row.
    pub(crate) fn end(mut self) -> i64 {
        self.write_run();
        self.next_index
    }

    /// Writes the run, and begins another.
    fn write_run(&mut self) {
        let PushedRun {
            elements,
            unused,
            row,
            ..
        } = std::mem::take(&mut self.run);
        let count = elements.len();
        let may_grow_left =
            self.to_start && self.context.environment.capabilities.has_other_writers;
        let (start, value) = match (self.to_start, elements.as_slice()) {
            (_, []) => return,
            (_, [element]) if row.is_none() && !may_grow_left => {
                (0, StoredValue::encode_plain(element))
            }
            (false, elements) => (0, Run::new(unused, elements).encode()),
            (true, elements) => {
                let skipped = RUN_ELEMENTS_MAX - unused - elements.len();
                let leftmost_first = elements.iter().rev();
                (LEFT_RUN_START, Run::new(skipped, leftmost_first).encode())
            }
        };
        match row {
            Some((row, before)) => {
                self.context.transaction.set(&row, &value);
                self.context.note_elements(self.key, &row, before, count);
            }
            None => self.write_row(start, &value, count),
        }
    }

    /// Writes a row of `count` elements beyond the outermost one.
    fn write_row(&mut self, start: i64, value: &[u8], count: usize) {
        let row = (self.row_key)(self.next_index, start);
        self.context.transaction.set(&row, value);
        self.context.note_elements(self.key, &row, 0, count);
        let step = if self.to_start { -1 } else { 1 };
        self.next_index = self.next_index.saturating_add(step);
    }
}

/// How many rows are read first, while the number of elements in a row is unknown and another read is cheap.
const FIRST_ROWS_MAX: usize = 4;
/// The same if another read costs a round trip.
const FIRST_ROWS_CLUSTER_MAX: usize = 16;
/// How many rows are read at a time on the way to an element. If they are runs, they take a megabyte.
const SKIPPED_ROWS_MAX: usize = 512;
/// On the way to an element, each read has at most this many times the rows read before, because other rows may hold
/// more elements.
const SKIPPED_ROWS_GROWTH: usize = 16;

/// A row of elements.
#[derive(Debug, Clone)]
pub(crate) struct ElementsRow {
    pub(crate) key: Bytes,
    pub(crate) value: ElementsValue,
}

impl ElementsRow {
    pub(crate) fn read(row: KeyValue) -> Result<Self, StoreError> {
        Ok(Self {
            key: row.key,
            value: ElementsValue::decode(&row.value)?,
        })
    }

    pub(crate) fn count(&self) -> usize {
        self.value.count()
    }

    /// The element with this number. The first of the row is number 0.
    pub(crate) fn element(&self, number: usize) -> Option<StoredValue> {
        match &self.value {
            ElementsValue::One(value) => (number == 0).then(|| value.clone()),
            ElementsValue::Run(run) => run.elements().nth(number).map(StoredValue::Plain),
        }
    }

    /// The elements from one end on, with their numbers.
    pub(crate) fn elements(&self, reverse: bool) -> Vec<(usize, StoredValue)> {
        let mut elements: Vec<_> = match &self.value {
            ElementsValue::One(value) => vec![(0, value.clone())],
            ElementsValue::Run(run) => run.elements().map(StoredValue::Plain).enumerate().collect(),
        };
        if reverse {
            elements.reverse();
        }
        elements
    }
}

/// Estimates how many rows to read for a number of elements.
pub(crate) struct RowsExpected {
    first_rows_max: usize,
    rows_seen: usize,
    elements_seen: usize,
}

impl RowsExpected {
    pub(crate) fn new(context: &ReadContext<'_>) -> Self {
        Self {
            first_rows_max: match context.environment.capabilities.reads_wait {
                false => FIRST_ROWS_MAX,
                true => FIRST_ROWS_CLUSTER_MAX,
            },
            rows_seen: 0,
            elements_seen: 0,
        }
    }

    /// Records rows that were read.
    pub(crate) fn note(&mut self, rows: &[ElementsRow]) {
        self.rows_seen += rows.len();
        self.elements_seen += rows.iter().map(ElementsRow::count).sum::<usize>();
    }

    /// About how many rows hold this many elements. Few while none have been read.
    pub(crate) fn rows_of(&self, elements: usize) -> usize {
        // At most as many elements at a time as for any other type.
        self.rows_after(0, elements.clamp(1, RANGE_PAGE_ROWS))
    }

    /// The same if `skipped` elements before them are only counted.
    fn rows_after(&self, skipped: usize, wanted: usize) -> usize {
        if self.elements_seen == 0 {
            return skipped.saturating_add(wanted).min(self.first_rows_max);
        }
        let rows = |elements: usize| {
            let rows = elements.saturating_mul(self.rows_seen);
            rows.div_ceil(self.elements_seen)
        };
        let skipped_max = self.rows_seen.saturating_mul(SKIPPED_ROWS_GROWTH);
        rows(skipped).min(skipped_max).min(SKIPPED_ROWS_MAX) + rows(wanted)
    }
}

/// Reads rows from one end on, about as many at a time as hold the wanted elements.
pub(crate) struct ElementsRows<'c, 't> {
    pages: Pages<'c, 't>,
    expected: RowsExpected,
}

impl<'c, 't> ElementsRows<'c, 't> {
    pub(crate) fn new(context: &'c ReadContext<'t>, range: KeyRange, reverse: bool) -> Self {
        Self {
            pages: Pages::new(context, range, reverse, 0),
            expected: RowsExpected::new(context),
        }
    }

    /// The same with another isolation of the reads.
    pub(crate) fn in_isolation(mut self, isolation: Isolation) -> Self {
        self.pages = self.pages.in_isolation(isolation);
        self
    }

    /// The next rows, if possible with `wanted` elements. `None` after the last.
    pub(crate) async fn next(
        &mut self,
        wanted: usize,
    ) -> Result<Option<Vec<ElementsRow>>, StoreError> {
        self.next_after(0, wanted).await
    }

    /// The same if the first `skipped` of the next elements are only counted.
    pub(crate) async fn next_after(
        &mut self,
        skipped: usize,
        wanted: usize,
    ) -> Result<Option<Vec<ElementsRow>>, StoreError> {
        let wanted = wanted.clamp(1, RANGE_PAGE_ROWS);
        let rows = self.expected.rows_after(skipped, wanted);
        let Some(rows) = self.pages.next_of(rows).await? else {
            return Ok(None);
        };
        let rows: Vec<ElementsRow> = { rows.into_iter() }
            .map(ElementsRow::read)
            .collect::<Result<_, _>>()?;
        self.expected.note(&rows);
        Ok(Some(rows))
    }
}

impl WriteContext<'_> {
    /// Replaces a row that held `before` elements with a run, or clears it if the run is empty.
    pub(crate) fn write_run(&self, key: &OpenKey, row: &[u8], before: usize, run: &Run) {
        match run.count() {
            0 => self.transaction.clear(row),
            _ => self.transaction.set(row, &run.encode()),
        }
        self.note_elements(key, row, before, run.count());
    }

    /// Clears a row and the chunks of its element.
    pub(crate) fn clear_elements_row(&self, key: &OpenKey, row: &ElementsRow) {
        if let ElementsValue::One(value) = &row.value {
            self.discard_stored(key.data(), value);
        }
        self.transaction.clear(&row.key);
        self.note_elements(key, &row.key, row.count(), 0);
    }

    /// Records how many elements a row held before and holds now.
    pub(crate) fn note_elements(&self, key: &OpenKey, row: &[u8], before: usize, now: usize) {
        if before != now {
            let signed = |count| i64::try_from(count).unwrap_or(i64::MAX);
            self.note_rank_change(key, row, signed(now) - signed(before));
        }
    }
}

/// What a pop takes.
#[derive(Default)]
pub(crate) struct Taken {
    /// Whole rows, the outermost first.
    pub(crate) rows: Vec<ElementsRow>,
    /// A run after these, and how many of its elements are taken.
    pub(crate) part: Option<(ElementsRow, usize)>,
    /// Whether there were fewer elements than wanted.
    pub(crate) is_all: bool,
}

impl Taken {
    /// Takes a row, or `missing` of its elements. Returns how many are still missing.
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
    /// What to pop: up to `count` elements from one end of a range. Uses snapshot reads. The caller adds the
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

    /// Conflicts only on the popped elements and what is between them and the end, because reading further would
    /// conflict with every push. Within EXEC, a pop that found too few elements conflicts on the whole section,
    /// because other commands may depend on there being nothing more. Returns whether the conflict covers whole rows
    /// and everything between them.
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
        // The range up to the part of a run shows whether this transaction pushed that run.
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

    /// Takes elements off a value: clears their rows and returns the elements, the outermost first. If the
    /// transaction conflicts on everything between the rows (`is_covered`), clears them as one range. `from_end`
    /// takes the last elements of a run. `make` makes what is returned of the key of an element's row and its value. The
    /// caller must finish with [`WriteContext::remove_if_empty`].
    pub(crate) async fn take_off<T>(
        &self,
        key: &OpenKey,
        mut taken: Taken,
        (is_covered, from_end): (bool, bool),
        make: impl Fn(&Bytes, Bytes) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        for row in &taken.rows {
            self.note_elements(key, &row.key, row.count(), 0);
        }
        let mut popped = Vec::new();
        let whole = taken.rows.iter_mut().map(|row| (row, usize::MAX));
        let part = taken.part.iter_mut().map(|(row, count)| (row, *count));
        for (row, count) in whole.chain(part) {
            match &mut row.value {
                ElementsValue::One(value) => {
                    let value = self.load_stored(key.data(), value.clone()).await?;
                    popped.push(make(&row.key, value)?);
                }
                ElementsValue::Run(run) => {
                    let taken = match from_end {
                        false => run.take_first(count),
                        true => run.take_last(count),
                    };
                    for value in taken {
                        popped.push(make(&row.key, value)?);
                    }
                }
            }
        }
        self.clear_taken(key, &taken, is_covered);
        self.add_length(key, -i64::try_from(popped.len()).unwrap_or(i64::MAX));
        Ok(popped)
    }

    /// Clears the rows whose elements were taken, and writes what remains of the last.
    fn clear_taken(&self, key: &OpenKey, taken: &Taken, is_covered: bool) {
        for row in &taken.rows {
            if let ElementsValue::One(value) = &row.value {
                self.discard_stored(key.data(), value);
            }
        }
        match taken.rows.as_slice() {
            // All at once if that cannot clear anything else.
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

    /// Moves the row of a run from its first place to that of its first element, at the key `moved`. This makes room
    /// before it for rows of elements that were popped from the run.
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
