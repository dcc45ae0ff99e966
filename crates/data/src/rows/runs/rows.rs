//! The rows.

use bytes::Bytes;

use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::limits::RANGE_PAGE_ROWS;
use quoin_layout::{ElementsValue, KeyRange, Run, StoredValue};
use quoin_store::{Isolation, KeyValue, StoreError};

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
            first_rows_max: match context.environment.capabilities.single_writer {
                true => FIRST_ROWS_MAX,
                false => FIRST_ROWS_CLUSTER_MAX,
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
