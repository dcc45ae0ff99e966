//! The rows in memory, and which other rows the data file may have.
//!
//! Memory is the working copy. It has every row that the data file does not have yet, and rows that
//! were read. Where memory is *complete*, a key without a row in memory has no row at all.
//! Elsewhere, a read also asks the data file. In a new store, memory is complete everywhere until
//! rows are evicted.
//!
//! A clone shares its memory with the original, and later changes to the original do not affect it.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use bytes::Bytes;
use heed::{Env, RoTxn, WithoutTls};
use siphasher::sip::SipHasher13;

use super::dirty::Cleared;
use super::error::store_error;
use super::ranges::{Before, RANGE_BYTES, Ranges};
use super::row::{Origin, Row, SHARED_BYTES_MIN};
use super::table::{OWN_KEYS, Rows};
use super::tree::{Span, Tree};
use quoin_store::page::{self, Row as Pair};
use quoin_store::rules::key_after;
use quoin_store::{KeyValue, RangeQuery, StoreError};

/// Rows of the data file that a read of a range reads ahead.
const READ_AHEAD_ROWS: usize = 32;
/// A read stops reading ahead after this many bytes.
const READ_AHEAD_BYTES: usize = 16 * 1024;
/// Minimum number of rows that one eviction examines.
pub(super) const EVICTION_ROWS: usize = 1024;
/// Maximum number of ranges in which memory is complete. If there are more, an eviction forgets all
/// of them.
const COMPLETE_RANGES_MAX: usize = 1 << 16;

/// All keys but the store's own.
const ALL: Span<'static> = Span {
    begin: b"",
    end: OWN_KEYS,
};

/// Rows in memory.
#[derive(Debug, Clone)]
pub(super) struct Resident {
    pub(super) rows: Tree,
    /// Keys that have no row if `rows` has none.
    pub(super) complete: Ranges,
    /// What each generation clears, for generations that the data file lacks.
    cleared: BTreeMap<u32, Cleared>,
    /// Estimated memory of `rows`, in bytes.
    bytes: usize,
    /// The number of the last commit in it.
    pub(super) sequence: u64,
    /// The key where the next eviction begins.
    hand: Vec<u8>,
    /// Rows are evicted above this estimate of their memory, in bytes.
    bytes_max: usize,
    /// Marks of keys that were recently read from the data file. Snapshots share them.
    seen: Arc<[AtomicU16]>,
}

/// Number of marks for recently read keys.
const SEEN: usize = 1 << 17;

/// A snapshot of the data file. It is opened when it is first needed.
pub(super) struct Disk {
    environment: Env<WithoutTls>,
    transaction: OnceCell<RoTxn<'static, WithoutTls>>,
}

impl Disk {
    /// A snapshot that is opened when first needed. Until it is dropped, no row may be evicted, and
    /// the data file may change only where memory has the rows.
    pub(super) fn when_needed(environment: &Env<WithoutTls>) -> Self {
        Self {
            environment: environment.clone(),
            transaction: OnceCell::new(),
        }
    }

    /// A snapshot of this moment. It may outlive the store.
    ///
    /// # Errors
    /// If too many readers are open.
    pub(super) fn now(environment: &Env<WithoutTls>) -> Result<Self, heed::Error> {
        let disk = Self::when_needed(environment);
        disk.open()?;
        Ok(disk)
    }

    /// Ends the snapshot. If it is needed again, another one is opened.
    pub(super) fn close(&mut self) {
        self.transaction = OnceCell::new();
    }

    /// Opens the snapshot, if it is not open.
    ///
    /// # Errors
    /// If too many readers are open.
    pub(super) fn open(&self) -> Result<&RoTxn<'static, WithoutTls>, heed::Error> {
        match self.transaction.get() {
            Some(transaction) => Ok(transaction),
            None => {
                let transaction = self.environment.clone().static_read_txn()?;
                Ok(self.transaction.get_or_init(|| transaction))
            }
        }
    }
}

/// Where a read finds rows that memory lacks.
#[derive(Clone, Copy)]
pub(super) struct Below<'a> {
    pub(super) rows: &'a Rows,
    pub(super) disk: &'a Disk,
    /// Whether memory may keep what is found.
    pub(super) is_taken: bool,
}

/// What a read found in the data file. Memory may keep it.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    rows: Vec<Row>,
    /// Spans of which all rows were found.
    complete: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Resident {
    /// Over a data file. `is_empty` if that has no rows.
    pub(super) fn over(sequence: u64, is_empty: bool, bytes_max: usize) -> Self {
        Self {
            rows: Tree::default(),
            complete: match is_empty {
                true => Ranges::of(ALL),
                false => Ranges::default(),
            },
            cleared: BTreeMap::new(),
            bytes: 0,
            sequence,
            hand: Vec::new(),
            bytes_max,
            seen: (0..SEEN).map(|_| AtomicU16::new(0)).collect(),
        }
    }

    /// Estimated memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.complete.len() * RANGE_BYTES
    }

    /// Sets a row. Returns the row that it replaces.
    pub(super) fn insert(&mut self, row: Row) -> Option<Row> {
        let key = row.clone();
        self.set(key.key(), |_, _| row)
    }

    /// Sets the row of a key to the result of `make`, which gets the row to replace and the ranges
    /// where memory is complete. Returns the replaced row.
    pub(super) fn set(
        &mut self,
        key: &[u8],
        make: impl FnOnce(Option<&Row>, &Ranges) -> Row,
    ) -> Option<Row> {
        let mut bytes = self.bytes;
        let complete = &self.complete;
        let old = self.rows.set(key, |old| {
            let row = make(old, complete);
            bytes += row.bytes();
            row
        });
        self.bytes = bytes.saturating_sub(old.as_ref().map_or(0, Row::bytes));
        old
    }

    /// Removes a row from memory. Returns it.
    pub(super) fn remove(&mut self, key: &[u8]) -> Option<Row> {
        let old = self.rows.remove(key)?;
        self.bytes = self.bytes.saturating_sub(old.bytes());
        Some(old)
    }

    /// What a generation clears.
    pub(super) fn cleared_by(&mut self, generation: u32) -> &mut Cleared {
        self.cleared.entry(generation).or_default()
    }

    /// A copy of what a generation clears.
    pub(super) fn cleared_in(&self, generation: u32) -> Cleared {
        let cleared = self.cleared.get(&generation);
        cleared.cloned().unwrap_or_default()
    }

    /// Takes out cleared keys that have been cleared in the data file too. `drained` is the last
    /// generation in it. No older snapshot of the data file may be used afterwards. Freeing what
    /// this returns may take long.
    pub(super) fn take_cleared(&mut self, drained: u32) -> BTreeMap<u32, Cleared> {
        let oldest = self.cleared.first_key_value();
        match oldest.is_some_and(|(generation, _)| *generation <= drained) {
            true => {
                let later = self.cleared.split_off(&drained.saturating_add(1));
                std::mem::replace(&mut self.cleared, later)
            }
            false => BTreeMap::new(),
        }
    }

    /// Whether a generation clears the row that the data file may have for a key.
    fn is_cleared(&self, key: &[u8]) -> bool {
        self.cleared.values().any(|cleared| cleared.has(key))
    }

    /// The end of the cleared range around a key. In reverse, its beginning.
    fn cleared_until(&self, key: &[u8], reverse: bool) -> Option<&[u8]> {
        self.cleared.values().find_map(|cleared| {
            let around = cleared.ranges.around(key)?;
            Some(if reverse { around.begin } else { around.end })
        })
    }

    /// The value of a key.
    ///
    /// # Errors
    /// If the data file cannot be read.
    pub(super) fn value(
        &self,
        below: Below<'_>,
        key: &[u8],
        loaded: &mut Loaded,
    ) -> Result<Option<Bytes>, StoreError> {
        if let Some(row) = self.rows.get(key) {
            row.note_use();
            return Ok(Some(match row.length() < SHARED_BYTES_MIN {
                true => Bytes::copy_from_slice(row.value()),
                false => row.share().1,
            }));
        }
        if self.complete.around(key).is_some() || self.is_cleared(key) {
            return Ok(None);
        }
        let transaction = below.disk.open().map_err(store_error)?;
        match below.rows.get(transaction, key) {
            Ok(Some(value)) => {
                if below.is_taken && self.takes(key) {
                    loaded.push(key, value);
                }
                Ok(Some(Bytes::copy_from_slice(value)))
            }
            Ok(None) => Ok(None),
            // No row has a key that is empty or too long.
            Err(heed::Error::Mdb(heed::MdbError::BadValSize)) => Ok(None),
            Err(error) => Err(store_error(error)),
        }
    }

    /// Whether memory keeps a row that was read from the data file. When memory is full, it keeps
    /// only rows that were read before. So a single scan of everything does not displace what is
    /// read often.
    fn takes(&self, key: &[u8]) -> bool {
        if self.bytes() < self.bytes_max / 8 * 7 {
            return true;
        }
        let hash = SipHasher13::new().hash(key);
        let place = hash as usize % SEEN;
        let mark = (hash >> 48) as u16;
        self.seen
            .get(place)
            .is_some_and(|seen| seen.swap(mark, Ordering::Relaxed) == mark)
    }

    /// The rows of a range, in the order of the query. Ends with the row at which keys and values
    /// reach `bytes_max`.
    ///
    /// # Errors
    /// If the data file cannot be read.
    pub(super) fn page(
        &self,
        below: Below<'_>,
        query: &RangeQuery<'_>,
        bytes_max: usize,
        loaded: &mut Loaded,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let mut found = Page {
            rows: Vec::new(),
            bytes: 0,
            limit: query.limit,
            bytes_max,
        };
        let reverse = query.reverse;
        let mut rest = Span {
            begin: query.begin,
            end: query.end.min(OWN_KEYS),
        };
        while rest.begin < rest.end && !found.is_full() {
            let (part, is_complete) = self.next_part(rest, reverse);
            if is_complete {
                let _ = self.rows.walk(part, reverse, &mut |row| {
                    row.note_use();
                    found.push(Found::Memory(row))
                });
            } else {
                self.merge(below, part, reverse, &mut found, loaded)?;
            }
            match reverse {
                true => rest.end = part.begin,
                false => rest.begin = part.end,
            }
        }
        Ok(found.into_rows())
    }

    /// The first part of a span, in reading order, in which memory is either complete everywhere or
    /// nowhere complete.
    fn next_part<'s>(&'s self, rest: Span<'s>, reverse: bool) -> (Span<'s>, bool) {
        let complete = &self.complete;
        let Span { mut begin, mut end } = rest;
        let around = match reverse {
            true => complete.around_before(end),
            false => complete.around(begin),
        };
        // Where memory is not complete, the part ends where the next complete range begins.
        match (around, reverse) {
            (Some(around), true) => begin = begin.max(around.begin),
            (Some(around), false) => end = end.min(around.end),
            (None, true) => {
                let before = complete.last_before(end).map_or(begin, |last| last.end);
                begin = begin.max(before);
            }
            (None, false) => {
                let after = complete.first_from(begin).map_or(end, |next| next.begin);
                end = end.min(after);
            }
        }
        (Span { begin, end }, around.is_some())
    }

    /// Finds rows where memory is not complete. Rows in memory are newer than those of the data
    /// file.
    fn merge<'s>(
        &'s self,
        below: Below<'s>,
        part: Span<'_>,
        reverse: bool,
        found: &mut Page<'s>,
        loaded: &mut Loaded,
    ) -> Result<(), StoreError> {
        // Keyed by where the part begins, because further pages of the same scan begin elsewhere.
        let edge = if reverse { part.end } else { part.begin };
        let mut takes = below.is_taken && self.takes(edge);
        let mut own = Vec::new();
        let rows_max = found.limit.saturating_sub(found.rows.len());
        let bytes_max = found.bytes_max.saturating_sub(found.bytes);
        let mut own_bytes = 0;
        let _ = self.rows.walk(part, reverse, &mut |row| {
            own.push(row);
            own_bytes += row.key().len() + row.value().len();
            match own.len() < rows_max && own_bytes < bytes_max {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
        let mut own = own.into_iter().peekable();
        let transaction = below.disk.open().map_err(store_error)?;
        let mut stored = Stored::new(below.rows, transaction, part, reverse)?;
        let mut bytes = 0;
        while !found.is_full() {
            // A large range does not fit.
            takes &= self.bytes.saturating_add(bytes) < self.bytes_max;
            self.skip_cleared(&mut stored)?;
            let is_own = match (own.peek(), stored.head) {
                (None, None) => break,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some(row), Some((key, _))) => match reverse {
                    true => row.key() >= key,
                    false => row.key() <= key,
                },
            };
            if !is_own && let Some(pair) = stored.head {
                if takes {
                    bytes += loaded.push(pair.0, pair.1);
                }
                let _ = found.push(Found::Disk(pair));
                let stepped = stored.step();
                // Only a read that needs the next row gets its error.
                if !found.is_full() {
                    stepped?;
                }
            } else if let Some(row) = own.next() {
                row.note_use();
                if stored.head.is_some_and(|(key, _)| key == row.key()) {
                    stored.step()?;
                }
                let _ = found.push(Found::Memory(row));
            }
        }
        if !takes || stored.has_failed {
            return Ok(());
        }
        for _ in 0..READ_AHEAD_ROWS {
            if self.skip_cleared(&mut stored).is_err() {
                return Ok(());
            }
            let Some((key, value)) = stored.head.filter(|_| bytes < READ_AHEAD_BYTES) else {
                break;
            };
            bytes += loaded.push(key, value);
            if stored.step().is_err() {
                return Ok(());
            }
        }
        loaded.complete.push(stored.read());
        Ok(())
    }

    /// Moves to a row that is not cleared.
    fn skip_cleared(&self, stored: &mut Stored<'_, '_>) -> Result<(), StoreError> {
        if self.cleared.is_empty() {
            return Ok(());
        }
        while let Some((key, _)) = stored.head {
            if let Some(until) = self.cleared_until(key, stored.reverse) {
                stored.seek(until)?;
            } else if self.is_cleared(key) {
                stored.step()?;
            } else {
                break;
            }
        }
        Ok(())
    }

    /// Puts rows that were read from the data file into memory. `log` receives other changes.
    pub(super) fn take(&mut self, loaded: &mut Loaded, mut log: impl FnMut(Before)) {
        for row in loaded.rows.drain(..) {
            if self.rows.get(row.key()).is_none() && self.complete.around(row.key()).is_none() {
                self.insert(row);
            }
        }
        for (begin, end) in loaded.complete.drain(..) {
            let span = Span {
                begin: &begin,
                end: &end,
            };
            self.complete.add(span, &mut log);
        }
    }

    /// Whether rows must be evicted. `dirty_bytes` is the memory of rows that the data file lacks,
    /// which cannot be evicted.
    pub(super) fn is_over(&self, dirty_bytes: usize) -> bool {
        let bytes = self.bytes();
        bytes > self.bytes_max && bytes - dirty_bytes.min(bytes) > self.bytes_max / 2
    }

    /// Drops rows that were not read recently and that the data file has, until memory has few
    /// enough. Examines only some rows, so it may take several calls.
    ///
    /// `drained` is the last generation in the data file.
    pub(super) fn evict(&mut self, drained: u32, rows_max: usize) {
        // Otherwise, cleared keys of these generations would hide rows written by later ones.
        drop(self.take_cleared(drained));
        if self.complete.len() > COMPLETE_RANGES_MAX {
            self.complete = Ranges::default();
        }
        let mut excess_bytes = self.bytes().saturating_sub(self.bytes_max);
        let span = Span {
            begin: &self.hand,
            end: OWN_KEYS,
        };
        let mut examined = 0;
        let mut last = None;
        // Consecutive rows are forgotten as one range.
        let mut runs: Vec<Vec<Row>> = Vec::new();
        let mut is_next = false;
        let _ = self.rows.walk(span, false, &mut |row| {
            examined += 1;
            last = Some(row);
            let may_go = row.origin().generation <= drained && !row.take_use();
            if may_go {
                excess_bytes = excess_bytes.saturating_sub(row.bytes());
                match runs.last_mut().filter(|_| is_next) {
                    Some(run) => run.push(row.clone()),
                    None => runs.push(vec![row.clone()]),
                }
            }
            is_next = may_go;
            match excess_bytes > 0 && examined < rows_max {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
        self.hand = match last {
            Some(last) if examined == rows_max || excess_bytes == 0 => key_after(last.key()),
            _ => Vec::new(),
        };
        for run in runs {
            for row in &run {
                self.remove(row.key());
            }
            if let (Some(first), Some(last)) = (run.first(), run.last()) {
                let end = key_after(last.key());
                self.complete.remove(Span {
                    begin: first.key(),
                    end: &end,
                });
            }
        }
    }
}

impl Loaded {
    /// Whether there is nothing to keep.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.complete.is_empty()
    }

    fn push(&mut self, key: &[u8], value: &[u8]) -> usize {
        let mut scratch = Vec::with_capacity(key.len() + value.len());
        self.rows
            .push(Row::new(&mut scratch, key, value, Origin::DISK));
        scratch.len()
    }
}

/// Rows that a read has found so far.
struct Page<'s> {
    rows: Vec<Found<'s>>,
    bytes: usize,
    limit: usize,
    bytes_max: usize,
}

#[derive(Clone, Copy)]
enum Found<'s> {
    Memory(&'s Row),
    Disk(Pair<'s>),
}

impl<'s> Found<'s> {
    fn pair(self) -> Pair<'s> {
        match self {
            Found::Memory(row) => row.split(),
            Found::Disk(pair) => pair,
        }
    }

    /// The row, if the reader shares its memory.
    fn shared(self) -> Option<&'s Row> {
        match self {
            Found::Memory(row) if row.length() >= SHARED_BYTES_MIN => Some(row),
            _ => None,
        }
    }
}

impl<'s> Page<'s> {
    fn is_full(&self) -> bool {
        self.rows.len() >= self.limit || self.bytes >= self.bytes_max
    }

    fn push(&mut self, row: Found<'s>) -> ControlFlow<()> {
        let (key, value) = row.pair();
        self.bytes += key.len() + value.len();
        self.rows.push(row);
        match self.is_full() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// The rows. Rows that are not shared are copied together.
    fn into_rows(self) -> Vec<KeyValue> {
        let copied = self.rows.iter().filter(|row| row.shared().is_none());
        let copied = page::pack(copied.map(|row| row.pair()));
        if copied.len() == self.rows.len() {
            return copied;
        }
        let mut copied = copied.into_iter();
        let rows = self.rows.iter().filter_map(|row| match row.shared() {
            Some(row) => {
                let (key, value) = row.share();
                Some(KeyValue { key, value })
            }
            None => copied.next(),
        });
        rows.collect()
    }
}

/// The rows of a span in the data file, one by one.
struct Stored<'s, 'k> {
    head: Option<Pair<'s>>,
    rows: &'s Rows,
    transaction: &'s RoTxn<'s, WithoutTls>,
    /// Created at the second row, because most reads need only one.
    steps: Option<super::table::Walk<'s>>,
    span: Span<'k>,
    reverse: bool,
    /// Moves to the first row at or after `edge`. In reverse, to the last one before it.
    has_failed: bool,
}

impl<'s, 'k> Stored<'s, 'k> {
    fn new(
        rows: &'s Rows,
        transaction: &'s RoTxn<'s, WithoutTls>,
        span: Span<'k>,
        reverse: bool,
    ) -> Result<Self, StoreError> {
        let edge = if reverse { span.end } else { span.begin };
        let first = rows.next_to(transaction, edge, reverse);
        let mut stored = Self {
            head: None,
            rows,
            transaction,
            steps: None,
            span,
            reverse,
            has_failed: false,
        };
        stored.accept(first.map_err(store_error)?);
        Ok(stored)
    }

    /// Moves to the next row.
    fn seek(&mut self, edge: &[u8]) -> Result<(), StoreError> {
        self.steps = None;
        self.head = None;
        let row = self.rows.next_to(self.transaction, edge, self.reverse);
        self.has_failed = row.is_err();
        self.accept(row.map_err(store_error)?);
        Ok(())
    }

    fn accept(&mut self, row: Option<Pair<'s>>) {
        let is_inside = |row: &Pair<'_>| row.0 >= self.span.begin && row.0 < self.span.end;
        self.head = row.filter(is_inside);
    }

    /// Goes on to the next row.
    fn step(&mut self) -> Result<(), StoreError> {
        let Some((key, _)) = self.head.take() else {
            return Ok(());
        };
        self.has_failed = true;
        let mut steps = match self.steps.take() {
            Some(steps) => steps,
            None => {
                let steps = self.rows.walk(self.transaction, key, self.reverse);
                steps.map_err(store_error)?
            }
        };
        let next = steps.next().transpose();
        self.has_failed = next.is_err();
        self.steps = Some(steps);
        self.accept(next.map_err(store_error)?);
        Ok(())
    }

    /// The span whose rows have all been passed.
    fn read(&self) -> (Vec<u8>, Vec<u8>) {
        let Span { begin, end } = self.span;
        let (mut begin, mut end) = (begin.to_vec(), end.to_vec());
        match (self.head, self.reverse) {
            // All rows.
            (None, _) => {}
            (Some((key, _)), true) => begin = key_after(key),
            (Some((key, _)), false) => end = key.to_vec(),
        }
        (begin, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_rows(keys: &[&[u8]]) -> Resident {
        let mut resident = Resident::over(0, true, 0);
        for key in keys {
            let row = Row::new(&mut Vec::new(), key, b"value", Origin::DISK);
            resident.insert(row);
        }
        resident
    }

    /// Twice, because recently read rows are spared once.
    fn evict_all(resident: &mut Resident, drained: u32) {
        for _ in 0..2 {
            resident.evict(drained, EVICTION_ROWS);
        }
    }

    #[test]
    fn where_rows_were_evicted_the_data_file_is_asked() {
        let mut resident = with_rows(&[b"a", b"c", b"e"]);
        evict_all(&mut resident, 0);
        assert!(resident.rows.is_empty());
        for gone in [b"a".as_slice(), b"c", b"d", b"e"] {
            assert!(resident.complete.around(gone).is_none(), "{gone:?}");
        }
        assert!(resident.complete.around(b"f").is_some());
    }

    #[test]
    fn rows_that_the_data_file_lacks_stay() {
        let mut resident = with_rows(&[b"a", b"c"]);
        let origin = Origin {
            generation: 1,
            ..Origin::DISK
        };
        resident.insert(Row::new(&mut Vec::new(), b"b", b"value", origin));
        evict_all(&mut resident, 0);
        let left: Vec<&[u8]> = { resident.rows.all() }.into_iter().map(Row::key).collect();
        assert_eq!(left, [b"b"]);
        assert!(resident.complete.around(b"b").is_some());
    }

    #[test]
    fn what_a_generation_clears_is_hidden_until_the_data_file_has_it() {
        let mut resident = Resident::over(0, false, 0);
        let row = Row::new(&mut Vec::new(), b"k", b"", Origin::DISK);
        resident.cleared_by(1).keys.insert(row);
        let span = Span {
            begin: b"m",
            end: b"p",
        };
        resident.cleared_by(2).ranges.add(span, |_| {});
        assert!(resident.is_cleared(b"k") && resident.is_cleared(b"n"));
        assert!(!resident.is_cleared(b"p"));
        resident.evict(1, EVICTION_ROWS);
        assert!(!resident.is_cleared(b"k") && resident.is_cleared(b"n"));
        drop(resident.take_cleared(2));
        assert!(!resident.is_cleared(b"n"));
    }
}
