//! A list's rows: each an element, or a run of them.

use bytes::Bytes;

use crate::layout::{Id, KeyRange, ListValue, Position, Run, StoredValue};
use crate::limits::RANGE_PAGE_ROWS;
use crate::store::{KeyValue, StoreError};
use crate::types::context::{ReadContext, WriteContext};
use crate::types::key::OpenKey;
use crate::types::pages::Pages;

/// Rows that are read first, while it is not known how many elements a row holds, where another read
/// costs little.
const FIRST_ROWS_MAX: usize = 4;
/// The same where it costs a round trip.
const FIRST_ROWS_CLUSTER_MAX: usize = 16;
/// Rows that are read at a time on the way to an element. Runs of them take a megabyte.
const SKIPPED_ROWS_MAX: usize = 512;
/// How many times as many rows as before are read on the way at most: the others may hold more elements.
const SKIPPED_ROWS_GROWTH: usize = 16;

/// All rows of a list, and how long the part of their keys is that they share.
pub(super) fn rows_of(context: &ReadContext<'_>, data: Id) -> (KeyRange, usize) {
    let prefix = context.layout().elements_prefix(data);
    (KeyRange::children(&prefix), prefix.len())
}

/// A row of a list.
#[derive(Debug, Clone)]
pub(super) struct ListRow {
    pub(super) key: Bytes,
    pub(super) value: ListValue,
}

impl ListRow {
    fn read(row: KeyValue) -> Result<Self, StoreError> {
        Ok(Self {
            key: row.key,
            value: ListValue::decode(&row.value)?,
        })
    }

    pub(super) fn count(&self) -> usize {
        self.value.count()
    }

    /// An element, the leftmost of the row being number 0.
    pub(super) fn element(&self, number: usize) -> Option<StoredValue> {
        match &self.value {
            ListValue::One(value) => (number == 0).then(|| value.clone()),
            ListValue::Run(run) => run.elements().nth(number).map(StoredValue::Plain),
        }
    }

    /// The elements from one end on, with their numbers.
    pub(super) fn elements(&self, reverse: bool) -> Vec<(usize, StoredValue)> {
        let mut elements: Vec<_> = match &self.value {
            ListValue::One(value) => vec![(0, value.clone())],
            ListValue::Run(run) => run.elements().map(StoredValue::Plain).enumerate().collect(),
        };
        if reverse {
            elements.reverse();
        }
        elements
    }

    /// The position that the key says.
    pub(super) fn position(
        &self,
        context: &ReadContext<'_>,
        prefix_length: usize,
    ) -> Result<Position, StoreError> {
        Ok(context.layout().read_position(prefix_length, &self.key)?)
    }

    /// The place of an element.
    pub(super) fn place(
        &self,
        context: &ReadContext<'_>,
        prefix_length: usize,
        number: usize,
    ) -> Result<Position, StoreError> {
        let position = self.position(context, prefix_length)?;
        Ok(match &self.value {
            ListValue::One(_) => position,
            ListValue::Run(run) => run.place_of(&position, number),
        })
    }
}

/// Reads a list's rows from one end on, about as many at a time as hold the elements that are wanted.
pub(super) struct ListRows<'c, 't> {
    pages: Pages<'c, 't>,
    first_rows_max: usize,
    rows_seen: usize,
    elements_seen: usize,
}

impl<'c, 't> ListRows<'c, 't> {
    pub(super) fn new(context: &'c ReadContext<'t>, range: KeyRange, reverse: bool) -> Self {
        Self {
            pages: Pages::new(context, range, reverse, 0),
            first_rows_max: match context.environment.capabilities.single_writer {
                true => FIRST_ROWS_MAX,
                false => FIRST_ROWS_CLUSTER_MAX,
            },
            rows_seen: 0,
            elements_seen: 0,
        }
    }

    pub(super) fn with_snapshot_reads(mut self) -> Self {
        self.pages = self.pages.with_snapshot_reads();
        self
    }

    /// The next rows, if possible with so many elements; `None` after the last.
    pub(super) async fn next(&mut self, wanted: usize) -> Result<Option<Vec<ListRow>>, StoreError> {
        self.next_after(0, wanted).await
    }

    /// The same where the first `skipped` elements of those that follow are only counted.
    pub(super) async fn next_after(
        &mut self,
        skipped: usize,
        wanted: usize,
    ) -> Result<Option<Vec<ListRow>>, StoreError> {
        // No more elements at a time than of any other type.
        let wanted = wanted.clamp(1, RANGE_PAGE_ROWS);
        let rows = match self.elements_seen {
            0 => skipped.saturating_add(wanted).min(self.first_rows_max),
            _ => {
                let skipped_max = self.rows_seen.saturating_mul(SKIPPED_ROWS_GROWTH);
                let skipped = self.rows_of(skipped).min(skipped_max);
                skipped.min(SKIPPED_ROWS_MAX) + self.rows_of(wanted)
            }
        };
        let Some(rows) = self.pages.next_of(rows).await? else {
            return Ok(None);
        };
        let rows: Vec<ListRow> = { rows.into_iter() }
            .map(ListRow::read)
            .collect::<Result<_, _>>()?;
        self.rows_seen += rows.len();
        self.elements_seen += rows.iter().map(ListRow::count).sum::<usize>();
        Ok(Some(rows))
    }

    /// About how many rows hold so many elements, judged by those that were read.
    fn rows_of(&self, elements: usize) -> usize {
        let rows = elements.saturating_mul(self.rows_seen);
        rows.div_ceil(self.elements_seen.max(1))
    }
}

impl WriteContext<'_> {
    /// Writes a run in place of a row that held `before` elements, or clears that if the run has none.
    pub(super) fn list_write_run(&self, key: &OpenKey, row: &[u8], before: usize, run: &Run) {
        match run.count() {
            0 => self.transaction.clear(row),
            _ => self.transaction.set(row, &run.encode()),
        }
        self.list_note(key, row, before, run.count());
    }

    /// Clears a row, and the chunks of its element.
    pub(super) fn list_clear_row(&self, key: &OpenKey, row: &ListRow) {
        if let ListValue::One(value) = &row.value {
            self.discard_stored(key.data(), value);
        }
        self.transaction.clear(&row.key);
        self.list_note(key, &row.key, row.count(), 0);
    }

    /// Notes how many elements a row held, and holds now.
    pub(super) fn list_note(&self, key: &OpenKey, row: &[u8], before: usize, now: usize) {
        if before != now {
            let signed = |count| i64::try_from(count).unwrap_or(i64::MAX);
            self.note_rank_change(key, row, signed(now) - signed(before));
        }
    }
}
