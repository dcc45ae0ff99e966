//! Rows of elements that come in an order: each holds one element, or a run of those that one unit of
//! work has pushed one after the other. Lists and priority queues consist of them
//! (docs/understand/decisions/029-runs.md).
//!
//! A run is written by the unit that pushes its elements, and afterwards only gets shorter.
//!
//! The way to an element by its rank: from the nearer end, or from the end of a block that is counted.
//!
//! Pushes: elements that one unit of work pushes at one end lie in runs.
//!
//! The rows.
//!
//! Taking elements off an end, and room for those that return.

use bytes::Bytes;
use quoin_base::limits::RANGE_PAGE_ROWS;
use quoin_layout::{
    DecodeError, ElementsValue, KeyRange, PoppedElement, RUN_BYTES_MAX, RUN_ELEMENT_BYTES_MAX,
    RUN_ELEMENTS_MAX, Run, StoredValue, successor,
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
/// Where the bytes are of no such row.
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

/// From where to read so that some elements come next.
pub(crate) struct ElementsPlace<'c, 't> {
    pub(crate) rows: ElementsRows<'c, 't>,
    /// From the last to the first.
    pub(crate) reverse: bool,
    /// Elements of the rows that come before those.
    pub(crate) skip: usize,
}

impl ElementsPlace<'_, '_> {
    /// The row in which the elements begin, and others after it, if possible with so many elements;
    /// `None` where the value has ended before. `skip` is of that row then.
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
    /// Where `count` elements from `offset` on are in a value that has `length`. `range`: all its rows.
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

/// The last number of the place of a run that grows to the left. Its rightmost element is at 0.
const LEFT_RUN_START: i64 = 1 - RUN_ELEMENTS_MAX as i64;

/// The rows of one push.
pub(crate) struct Pushing<'c, 't, K> {
    context: &'c WriteContext<'t>,
    key: &'c OpenKey,
    to_start: bool,
    next_index: i64,
    /// The key of a row, from its index and the last number of its place.
    row_key: K,
    run: PushedRun,
}

/// The run to which elements are being added.
#[derive(Default)]
struct PushedRun {
    /// In the order in which they are pushed: from the last to the first where they go to the start.
    elements: Vec<Bytes>,
    /// What they take in the row.
    bytes: usize,
    /// Places of the run beyond the first of them. They stay free.
    unused: usize,
    /// The key of the run's row, if there is one already, and how many of the elements it holds.
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
    /// A push at the start or at the end of a value. The first row gets `next_index`, and each that
    /// comes after it the one beyond.
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

    /// Goes on with the outermost row, which this unit of work has pushed, so that the commands of a
    /// batch share rows.
    ///
    /// # Errors
    /// Where the row cannot be read.
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

    /// Writes what is not written yet. Returns the index that the next row gets.
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

    /// Writes a row of so many elements beyond the outermost one.
    fn write_row(&mut self, start: i64, value: &[u8], count: usize) {
        let row = (self.row_key)(self.next_index, start);
        self.context.transaction.set(&row, value);
        self.context.note_elements(self.key, &row, 0, count);
        let step = if self.to_start { -1 } else { 1 };
        self.next_index = self.next_index.saturating_add(step);
    }
}

/// Rows that are read first, while it is not known how many elements a row holds, where another read
/// costs little.
const FIRST_ROWS_MAX: usize = 4;
/// The same where it costs a round trip.
const FIRST_ROWS_CLUSTER_MAX: usize = 16;
/// Rows that are read at a time on the way to an element. Runs of them take a megabyte.
const SKIPPED_ROWS_MAX: usize = 512;
/// How many times as many rows as before are read on the way at most: the others may hold more elements.
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

    /// An element, the first of the row being number 0.
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

/// How many rows are to be read to get some elements.
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

    /// Notes rows that were read.
    pub(crate) fn note(&mut self, rows: &[ElementsRow]) {
        self.rows_seen += rows.len();
        self.elements_seen += rows.iter().map(ElementsRow::count).sum::<usize>();
    }

    /// About how many rows hold so many elements, but few while none were read.
    pub(crate) fn rows_of(&self, elements: usize) -> usize {
        // No more elements at a time than of any other type.
        self.rows_after(0, elements.clamp(1, RANGE_PAGE_ROWS))
    }

    /// The same where `skipped` elements before them are only counted.
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

/// Reads rows from one end on, about as many at a time as hold the elements that are wanted.
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

    /// The same with reads that take part in conflict detection or not.
    pub(crate) fn in_isolation(mut self, isolation: Isolation) -> Self {
        self.pages = self.pages.in_isolation(isolation);
        self
    }

    /// The next rows, if possible with so many elements; `None` after the last.
    pub(crate) async fn next(
        &mut self,
        wanted: usize,
    ) -> Result<Option<Vec<ElementsRow>>, StoreError> {
        self.next_after(0, wanted).await
    }

    /// The same where the first `skipped` elements of those that follow are only counted.
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
    /// Writes a run in place of a row that held `before` elements, or clears that if the run has none.
    pub(crate) fn write_run(&self, key: &OpenKey, row: &[u8], before: usize, run: &Run) {
        match run.count() {
            0 => self.transaction.clear(row),
            _ => self.transaction.set(row, &run.encode()),
        }
        self.note_elements(key, row, before, run.count());
    }

    /// Clears a row, and the chunks of its element.
    pub(crate) fn clear_elements_row(&self, key: &OpenKey, row: &ElementsRow) {
        if let ElementsValue::One(value) = &row.value {
            self.discard_stored(key.data(), value);
        }
        self.transaction.clear(&row.key);
        self.note_elements(key, &row.key, row.count(), 0);
    }

    /// Notes how many elements a row held, and holds now.
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
