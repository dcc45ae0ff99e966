//! The embedded store's transactions.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::ops::Bound;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use heed::MdbError;

use super::EmbeddedStore;
use super::error::store_error;
use super::journal::{AppendError, JournalFailure, Record, Write};
use super::ranges::{Before, RANGE_BYTES};
use super::resident::EVICTION_ROWS;
use super::row::{Origin, Row};
use super::snapshot::{Reader, Working};
use super::tree::Span;
use super::watch::Touched;
use super::writer::Writer;
use quoin_base::limits;
use quoin_store::rules::{STAMP_BYTES, added, key_after, lowered, stamp_after, stamped_key};
use quoin_store::savepoints::UndoLog;
use quoin_store::{
    Growth, Isolation, KeyValue, RangeQuery, ReadTransaction, Savepoint, SoonRead, Store,
    StoreError, StoreFuture, Transaction,
};

/// Rows are counted in pieces of this many bytes.
const COUNTED_BYTES: usize = 1024 * 1024;
/// A journal with more bytes than this causes an early checkpoint.
const JOURNAL_CHECKPOINT_BYTES: u64 = 256 * 1024 * 1024;

/// How long a transaction waits before it checks for room again.
const ROOM_WAIT: Duration = Duration::from_millis(2);
/// Room for a record, in bytes, that the journal must have before a transaction begins. This is
/// enough for a command that removes thousands of elements.
const RECORD_ROOM_BYTES: u64 = 512 * 1024;
/// Maximum number of pending additions. Before there are more, they are written, while their rows
/// are in the processor's cache. Tests have few in a transaction.
const PENDING_ADDS_MAX: usize = if cfg!(test) { 3 } else { 32 };
/// Number of checkpoints that a transaction waits for to get room for its record.
const CHECKPOINTS_FOR_ROOM: u64 = 2;

/// The journal is full but must not be overwritten.
#[derive(Debug, thiserror::Error)]
#[error("the journal is full, because commits cannot be archived: {0}")]
struct ArchiveBlocked(String);

/// The embedded store's write transaction. Only one exists at a time.
pub(super) struct EmbeddedTransaction<'s> {
    growth: Growth,
    state: RefCell<WriteState<'s>>,
}

struct WriteState<'s> {
    /// Its rows have the transaction's own writes.
    reader: Reader<'s>,
    /// Dropped after the rows, so that the next writer finds them unlocked.
    writer: MutexGuard<'s, Writer>,
    /// Additions that are not yet in the rows. They let a whole batch write a counter once.
    pending_adds: BTreeMap<Key, i64>,
    /// The first error of a write. The commit returns it.
    failure: Option<StoreError>,
    touched: Touched,
    /// Estimated memory of its writes, in bytes.
    write_bytes: usize,
    /// Estimated memory of the ranges that it clears in the data file, in bytes.
    range_bytes: usize,
    size_bytes: usize,
    mutation_count: u64,
    counts_growth: bool,
    /// Bytes by which its rows exceed what they replace, if that is counted.
    grown_bytes: i64,
    /// What to undo if it is not committed. The outermost savepoint is that of its beginning.
    log: Log,
    begin: Savepoint,
    is_committed: bool,
}

type Key = Arc<[u8]>;

/// The undo log of a transaction.
type Log = UndoLog<Mark, Undo>;

/// What a write changed.
#[derive(Debug)]
enum Undo {
    /// It added this row.
    Added(Row),
    /// It replaced this row.
    Replaced(Row),
    /// It removed this row.
    Removed(Row),
    /// Where memory is complete.
    Complete(Before),
    /// The ranges that the generation clears.
    Cleared(Before),
    /// A key that it clears.
    ClearedKey(Row),
    /// A pending addition.
    Add(Key, Option<i64>),
}

/// Other state that a rollback restores.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    record_bytes: usize,
    write_bytes: usize,
    range_bytes: usize,
    size_bytes: usize,
    mutation_count: u64,
    grown_bytes: i64,
    has_failed: bool,
}

impl<'s> EmbeddedTransaction<'s> {
    /// A transaction that may take long. It delays only other writers.
    ///
    /// # Errors
    /// If there is no room, or the store is broken.
    pub(super) fn begin(store: &'s EmbeddedStore) -> Result<Self, StoreError> {
        Self::begin_on(store, || {
            Working::Copy(Box::new(store.shared.memory.lock().clone()))
        })
    }

    /// A transaction that delays all others, including readers.
    ///
    /// # Errors
    /// If there is no room, or the store is broken.
    pub(super) fn begin_short(store: &'s EmbeddedStore) -> Result<Self, StoreError> {
        Self::begin_on(store, || Working::Held(store.shared.memory.lock_to_write()))
    }

    /// Waits for the previous writer.
    fn begin_on(
        store: &'s EmbeddedStore,
        working: impl FnOnce() -> Working<'s>,
    ) -> Result<Self, StoreError> {
        wait_for_room(store)?;
        let mut writer = store.shared.writer.lock();
        // The previous writer's commit may have broken the store.
        store.shared.check()?;
        writer.record.reset();
        let reader = Reader::over(store, working());
        let growth = store.growth();
        let mut log = Log::default();
        let begin = log.savepoint(Mark {
            record_bytes: writer.record.len(),
            ..Mark::default()
        });
        Ok(Self {
            growth,
            state: RefCell::new(WriteState {
                reader,
                writer,
                pending_adds: BTreeMap::new(),
                failure: None,
                touched: Touched::new(store.shared.watches.is_used()),
                write_bytes: 0,
                range_bytes: 0,
                size_bytes: 0,
                mutation_count: 0,
                counts_growth: growth == Growth::DiskFull,
                grown_bytes: 0,
                log,
                begin,
                is_committed: false,
            }),
        })
    }

    fn value(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let mut state = self.state.borrow_mut();
        state.check()?;
        let found = state.get(key)?;
        Ok(match state.pending_add(key) {
            Some(delta) => Some(Bytes::copy_from_slice(&added(found.as_deref(), delta))),
            None => found,
        })
    }

    fn rows_of(
        &self,
        query: &RangeQuery<'_>,
        bytes_max: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let mut state = self.state.borrow_mut();
        state.write_adds(query.begin, Some(query.end));
        state.check()?;
        state.page(query, bytes_max)
    }

    /// The key of a log's last row.
    fn last_of_log(&self, prefix: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let [begin, end] = [0, u8::MAX].map(|byte| stamped_key(prefix, &[byte; STAMP_BYTES], 0));
        let last = RangeQuery {
            begin: &begin,
            end: &end,
            limit: 1,
            reverse: true,
            isolation: Isolation::Snapshot,
        };
        let rows = self.rows_of(&last, usize::MAX)?;
        Ok(rows.into_iter().next().map(|row| row.key))
    }

    fn finish(mut self) -> Result<(), StoreError> {
        let state = self.state.get_mut();
        let shared = Arc::clone(&state.reader.store.shared);
        let store = state.reader.store;
        state.write_adds(&[], None);
        if state.size_bytes > limits::EMBEDDED_TRANSACTION_BYTES_MAX {
            state.fail(StoreError::TooLarge);
        }
        state.check()?;
        if state.writer.record.is_empty() {
            return Ok(());
        }
        state.check_room()?;
        let noted = store.standby.before_commit();
        noted.map_err(|error| store_error(error.into()))?;
        let sequence = append(store, &mut state.writer.record)?;
        state.is_committed = true;
        if self.growth == Growth::DiskFull {
            shared.room.spend(state.grown_bytes);
        }
        shared.committed();
        state.publish(sequence);
        let touched = std::mem::take(&mut state.touched);
        drop(self);
        shared.watches.notify(&touched);
        Ok(())
    }
}

/// Whether there is room for a transaction to begin.
pub(super) struct RoomForTransaction {
    is_journal_long: bool,
    is_much_dirty: bool,
    is_tight: bool,
    record: io::Result<()>,
}

impl RoomForTransaction {
    pub(super) fn is_there(&self) -> bool {
        !(self.is_journal_long || self.is_much_dirty || self.is_tight) && self.record.is_ok()
    }
}

pub(super) fn room_for_transaction(store: &EmbeddedStore) -> RoomForTransaction {
    let dirty_bytes = store.shared.memory.dirty_bytes();
    RoomForTransaction {
        is_journal_long: store.journal.bytes() > store.journal_bytes_max,
        is_much_dirty: dirty_bytes > store.shared.memory.dirty_bytes_max,
        is_tight: store.shared.room.is_tight(dirty_bytes as u64),
        record: store.journal.make_room(RECORD_ROOM_BYTES),
    }
}

/// Makes a transaction wait while memory or the journal is too far ahead of the data file, or
/// while there is no room for a record. Do not call this with the writer's lock held: making room
/// needs it.
fn wait_for_room(store: &EmbeddedStore) -> Result<(), StoreError> {
    let shared = &store.shared;
    let checkpoints = || shared.checkpoints.load(Ordering::SeqCst);
    let begun_at = checkpoints();
    loop {
        let room = room_for_transaction(store);
        if room.is_there() {
            return Ok(());
        }
        let RoomForTransaction {
            is_journal_long,
            is_much_dirty,
            record,
            ..
        } = room;
        shared.check()?;
        shared.is_drain_awaited.store(true, Ordering::SeqCst);
        if is_journal_long && let Some(error) = store.archive_status().and_then(|one| one.error) {
            let blocked = Arc::new(ArchiveBlocked(error));
            return Err(StoreError::Unavailable(blocked));
        }
        let has_failed = shared.checkpoints_without_room.load(Ordering::SeqCst) > 0;
        let has_waited = checkpoints().saturating_sub(begun_at) >= CHECKPOINTS_FOR_ROOM;
        match record {
            Err(error) if JournalFailure::is(&error) => {
                return Err(shared.failed(StoreError::Fatal(Arc::new(error))));
            }
            // The other file of the journal may have room.
            Err(error) if has_failed || has_waited => {
                return Err(store_error(error.into()));
            }
            Err(_) => {
                // Requested even if nothing was committed since the last checkpoint.
                shared.committed();
                store.wake_checkpoint();
            }
            Ok(()) if is_journal_long || is_much_dirty => {
                if has_failed {
                    let full = io::Error::from_raw_os_error(libc::ENOSPC);
                    return Err(store_error(full.into()));
                }
                store.wake_checkpoint();
            }
            // The available room is known only once the data file has what is in memory.
            Ok(()) if has_failed || has_waited => return Ok(()),
            Ok(()) => store.wake_checkpoint(),
        }
        std::thread::sleep(ROOM_WAIT);
    }
}

/// Appends a transaction's writes to the journal. From then on they survive a crash. Returns the
/// record's number.
fn append(store: &EmbeddedStore, record: &mut Record) -> Result<u64, StoreError> {
    let appended = store.journal.append(record).map_err(|error| {
        store.shared.failed(match error {
            AppendError::NotApplied(error) => store_error(error.into()),
            AppendError::Unknown(error) => StoreError::Fatal(Arc::new(error)),
        })
    })?;
    if store.journal.bytes() > JOURNAL_CHECKPOINT_BYTES {
        store.wake_checkpoint();
    }
    Ok(appended)
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Estimated cost of a journal entry in addition to its key and value, in bytes. The data file may
/// have to change a page for each.
const WRITE_BYTES: usize = 180;

impl WriteState<'_> {
    /// The value of a key, without pending additions.
    fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let log = &mut self.log;
        let log = |before| log.log(Undo::Complete(before));
        self.reader.value(key, !self.counts_growth, log)
    }

    fn page(
        &mut self,
        query: &RangeQuery<'_>,
        bytes_max: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let log = &mut self.log;
        let log = |before| log.log(Undo::Complete(before));
        self.reader.page(query, bytes_max, !self.counts_growth, log)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) {
        if self.counts_growth {
            self.grown_bytes += signed(key.len() + value.len()) - self.row_bytes(key);
        }
        self.write_bytes += key.len() + value.len() + WRITE_BYTES;
        let writer = &mut *self.writer;
        writer.record.push(&Write::Set(key, value));
        let (dirty, scratch) = (&mut writer.dirty, &mut writer.scratch);
        let mut added = None;
        let old = self.reader.resident.set(key, |old, complete| {
            let origin = match old.filter(|old| dirty.has(old)) {
                Some(old) => old.origin(),
                None => Origin {
                    generation: dirty.generation(),
                    slot: dirty.new_slot(),
                    may_be_on_disk: old.is_some() || complete.around(key).is_none(),
                },
            };
            let row = Row::new(scratch, key, value, origin);
            dirty.put(&row);
            if old.is_none() {
                added = Some(row.clone());
            }
            row
        });
        if let Some(undo) = old.map(Undo::Replaced).or(added.map(Undo::Added)) {
            self.log.log(undo);
        }
    }

    /// Removes a row from memory. Returns whether the data file may have it.
    fn take_row(&mut self, key: &[u8]) -> Option<bool> {
        let old = self.reader.resident.remove(key)?;
        let dirty = &mut self.writer.dirty;
        let may_be_on_disk = match dirty.has(&old) {
            true => {
                dirty.release(&old);
                old.origin().may_be_on_disk
            }
            false => true,
        };
        self.log.log(Undo::Removed(old));
        Some(may_be_on_disk)
    }

    /// Clears a span of the data file where memory has no rows.
    fn clear_on_disk(&mut self, span: Span<'_>) {
        let log = &mut self.log;
        let dirty = &mut self.writer.dirty;
        let bytes = RANGE_BYTES + span.begin.len() + span.end.len();
        dirty.count_cleared(bytes);
        self.range_bytes += bytes;
        let cleared = &mut self.reader.resident.cleared_by(dirty.generation()).ranges;
        cleared.add(span, |before| log.log(Undo::Cleared(before)));
        let complete = &mut self.reader.resident.complete;
        complete.add(span, |before| log.log(Undo::Complete(before)));
    }

    fn remove(&mut self, key: &[u8]) {
        self.write_bytes += key.len() + WRITE_BYTES;
        self.writer.record.push(&Write::Clear(key));
        let may_be_on_disk = match self.take_row(key) {
            Some(may_be_on_disk) => may_be_on_disk,
            None => self.reader.resident.complete.around(key).is_none(),
        };
        if may_be_on_disk {
            let writer = &mut *self.writer;
            let cleared = &mut self
                .reader
                .resident
                .cleared_by(writer.dirty.generation())
                .keys;
            let scratch = &mut writer.scratch;
            let mut added = None;
            cleared.set(key, |old| {
                old.cloned().unwrap_or_else(|| {
                    let row = Row::new(scratch, key, b"", Origin::DISK);
                    added.insert(row).clone()
                })
            });
            if let Some(row) = added {
                writer.dirty.count_cleared(row.bytes());
                self.log.log(Undo::ClearedKey(row));
            }
        }
    }

    fn remove_range(&mut self, span: Span<'_>) {
        self.write_bytes += span.begin.len() + span.end.len() + WRITE_BYTES;
        let write = Write::ClearRange(span.begin, span.end);
        self.writer.record.push(&write);
        let rows = self.reader.resident.rows.rows_in(span);
        let mut may_be_on_disk = !self.reader.resident.complete.has_all(span);
        for row in rows {
            may_be_on_disk |= self.take_row(row.key()).unwrap_or(false);
        }
        if may_be_on_disk {
            self.clear_on_disk(span);
        }
    }

    /// Bytes of a row. 0 if it does not exist or cannot be read.
    fn row_bytes(&mut self, key: &[u8]) -> i64 {
        let value = self.get(key).ok().flatten();
        value.map_or(0, |value| signed(key.len() + value.len()))
    }

    /// Bytes of the rows in a range, up to the first that cannot be read.
    fn range_bytes(&mut self, begin: &[u8], end: &[u8]) -> i64 {
        let mut bytes = 0;
        let mut begin = begin.to_vec();
        loop {
            let query = RangeQuery {
                begin: &begin,
                end,
                limit: usize::MAX,
                reverse: false,
                isolation: Isolation::Snapshot,
            };
            let rows = self.page(&query, COUNTED_BYTES).unwrap_or_default();
            let Some(last) = rows.last() else {
                return bytes;
            };
            let of = |row: &KeyValue| signed(row.key.len() + row.value.len());
            bytes += rows.iter().map(of).sum::<i64>();
            begin = key_after(&last.key);
        }
    }

    /// Refuses rows if the disk has no room for them.
    fn check_room(&self) -> Result<(), StoreError> {
        let shared = &self.reader.store.shared;
        let before = shared.memory.dirty_bytes();
        let pending = before.saturating_add(self.write_bytes) as u64;
        // The size of all writes is known. The size of the rows alone must be counted.
        if shared.room.takes(self.write_bytes as u64, pending)
            || shared.room.takes(self.added_bytes() as u64, pending)
        {
            return Ok(());
        }
        Err(store_error(heed::Error::Mdb(MdbError::MapFull)))
    }

    /// Bytes of the rows that it has set.
    fn added_bytes(&self) -> usize {
        let mut seen = HashSet::new();
        let mut bytes = 0;
        for undo in self.log.undos() {
            let (Undo::Added(row) | Undo::Replaced(row)) = undo else {
                continue;
            };
            if seen.insert(row.key())
                && let Some(row) = self.reader.resident.rows.get(row.key())
            {
                bytes += row.key().len() + row.value().len();
            }
        }
        bytes
    }

    /// Makes the writes visible. `sequence` is their number in the journal.
    fn publish(&mut self, sequence: u64) {
        let written = self.log.undos().len();
        self.reader.evict(EVICTION_ROWS.max(written * 4));
        self.reader.resident.sequence = sequence;
        let memory = &self.reader.store.shared.memory;
        let dirty = &self.writer.dirty;
        let is_large = dirty.bytes() >= memory.generation_bytes_max;
        if !memory.note_dirty(dirty) && is_large {
            self.reader.store.wake_checkpoint();
        }
        if let Working::Copy(copy) = &mut self.reader.resident {
            std::mem::swap(&mut **copy, &mut memory.lock());
        }
        memory.note_sequence(sequence);
    }

    fn mark(&self) -> Mark {
        Mark {
            record_bytes: self.writer.record.len(),
            write_bytes: self.write_bytes,
            range_bytes: self.range_bytes,
            size_bytes: self.size_bytes,
            mutation_count: self.mutation_count,
            grown_bytes: self.grown_bytes,
            has_failed: self.failure.is_some(),
        }
    }

    /// Undoes the writes since a savepoint. Their keys stay in `touched`, because a watch may fire
    /// without a change.
    fn rollback(&mut self, savepoint: Savepoint) {
        let pending_adds = &mut self.pending_adds;
        let resident = &mut *self.reader.resident;
        let dirty = &mut self.writer.dirty;
        let mark = self.log.rollback(savepoint, |undo| match undo {
            Undo::Added(row) => {
                resident.remove(row.key());
                dirty.release(&row);
            }
            Undo::Replaced(old) => {
                let new = resident.insert(old.clone());
                match new {
                    _ if dirty.has(&old) => dirty.put(&old),
                    Some(new) => dirty.release(&new),
                    None => {}
                }
            }
            Undo::Removed(old) => {
                if dirty.has(&old) {
                    dirty.put_back(&old);
                }
                resident.insert(old);
            }
            Undo::Complete(before) => resident.complete.restore(before),
            Undo::Cleared(before) => {
                let cleared = resident.cleared_by(dirty.generation());
                cleared.ranges.restore(before);
            }
            Undo::ClearedKey(row) => {
                dirty.uncount_cleared(row.bytes());
                let cleared = resident.cleared_by(dirty.generation());
                cleared.keys.remove(row.key());
            }
            Undo::Add(key, Some(old)) => drop(pending_adds.insert(key, old)),
            Undo::Add(key, None) => drop(pending_adds.remove(&key)),
        });
        let Some(mark) = mark else { return };
        self.writer.record.truncate(mark.record_bytes);
        self.write_bytes = mark.write_bytes;
        let bytes = self.range_bytes.saturating_sub(mark.range_bytes);
        self.writer.dirty.uncount_cleared(bytes);
        self.range_bytes = mark.range_bytes;
        self.size_bytes = mark.size_bytes;
        self.mutation_count = mark.mutation_count;
        self.grown_bytes = mark.grown_bytes;
        if !mark.has_failed {
            self.failure = None;
        }
    }

    fn check(&self) -> Result<(), StoreError> {
        match &self.failure {
            Some(failure) => Err(failure.clone()),
            None => Ok(()),
        }
    }

    fn fail(&mut self, error: StoreError) {
        self.failure.get_or_insert(error);
    }

    fn count(&mut self, bytes: usize) {
        self.size_bytes = self.size_bytes.saturating_add(bytes);
        self.mutation_count += 1;
    }

    /// The pending addition to a key. Most batches that pop or read have none, so this checks first
    /// whether the map is empty. A lookup would compare whole keys.
    fn pending_add(&self, key: &[u8]) -> Option<i64> {
        if self.pending_adds.is_empty() {
            return None;
        }
        self.pending_adds.get(key).copied()
    }

    fn forget_add(&mut self, key: &[u8]) {
        if !self.pending_adds.is_empty()
            && let Some((key, delta)) = self.pending_adds.remove_entry(key)
        {
            self.log.log(Undo::Add(key, Some(delta)));
        }
    }

    /// Takes the pending additions to keys in `begin..end`. Without `end`, takes all from `begin`
    /// on.
    fn take_adds(&mut self, begin: &[u8], end: Option<&[u8]>) -> Vec<(Key, i64)> {
        if self.pending_adds.is_empty() || end.is_some_and(|end| begin >= end) {
            return Vec::new();
        }
        let bounds = (
            Bound::Included(begin),
            end.map_or(Bound::Unbounded, Bound::Excluded),
        );
        let inside = self.pending_adds.range::<[u8], _>(bounds);
        let taken: Vec<(Key, i64)> = inside.map(|(key, delta)| (key.clone(), *delta)).collect();
        for (key, _) in &taken {
            self.forget_add(key);
        }
        taken
    }

    /// Writes pending additions into the rows, where a range read finds them.
    fn write_adds(&mut self, begin: &[u8], end: Option<&[u8]>) {
        if self.failure.is_some() {
            return;
        }
        for (key, delta) in self.take_adds(begin, end) {
            if !self.reader.store.takes_key(&key) {
                return self.fail(StoreError::TooLarge);
            }
            let sum = match self.get(&key) {
                Ok(found) => added(found.as_deref(), delta),
                Err(error) => return self.fail(error),
            };
            self.put(&key, &sum);
        }
    }
}

impl ReadTransaction for EmbeddedTransaction<'_> {
    fn get<'t>(&'t self, key: &[u8], _isolation: Isolation) -> StoreFuture<'t, Option<Bytes>> {
        StoreFuture::ready(self.value(key))
    }

    fn get_range<'t>(&'t self, query: RangeQuery<'_>) -> StoreFuture<'t, Vec<KeyValue>> {
        StoreFuture::ready(self.rows_of(&query, usize::MAX))
    }

    fn get_page<'t>(
        &'t self,
        query: RangeQuery<'_>,
        bytes_max: usize,
    ) -> StoreFuture<'t, Vec<KeyValue>> {
        StoreFuture::ready(self.rows_of(&query, bytes_max))
    }

    fn cache_value(&self, _key: &[u8], _value: &Bytes) {
        // It has read only from memory.
    }

    fn warm(&self, soon: &[SoonRead]) {
        self.state.borrow().reader.resident.rows.warm(soon);
    }
}

impl Drop for WriteState<'_> {
    fn drop(&mut self) {
        let has_writes = !self.writer.record.is_empty();
        if !self.is_committed && has_writes {
            self.rollback(self.begin);
        }
        if let Working::Held(_) = self.reader.resident {
            if !self.is_committed {
                self.reader.evict(EVICTION_ROWS);
            }
            self.reader.store.shared.memory.end_write();
        }
    }
}

impl Transaction for EmbeddedTransaction<'_> {
    fn set(&self, key: &[u8], value: &[u8]) {
        let mut state = self.state.borrow_mut();
        state.count(key.len() + value.len());
        if state.failure.is_some() {
            return;
        }
        if !state.reader.store.takes_key(key) {
            return state.fail(StoreError::TooLarge);
        }
        state.forget_add(key);
        state.touched.key(key);
        state.put(key, value);
    }

    fn clear(&self, key: &[u8]) {
        let mut state = self.state.borrow_mut();
        state.count(key.len());
        if state.failure.is_some() {
            return;
        }
        state.forget_add(key);
        state.touched.key(key);
        if state.reader.store.takes_key(key) {
            if state.counts_growth {
                state.grown_bytes -= state.row_bytes(key);
            }
            state.remove(key);
        }
    }

    fn clear_range(&self, begin: &[u8], end: &[u8]) {
        let mut state = self.state.borrow_mut();
        state.count(begin.len() + end.len());
        if state.failure.is_some() || begin >= end {
            return;
        }
        drop(state.take_adds(begin, Some(end)));
        if state.counts_growth {
            state.grown_bytes -= state.range_bytes(begin, end);
        }
        state.touched.range(begin, end);
        state.remove_range(Span { begin, end });
    }

    fn atomic_add(&self, key: &[u8], delta: i64) {
        let mut state = self.state.borrow_mut();
        state.count(key.len() + size_of::<i64>());
        if state.failure.is_some() {
            return;
        }
        let state = &mut *state;
        let this_key = (Bound::Included(key), Bound::Included(key));
        if let Some((key, pending)) = state.pending_adds.range_mut::<[u8], _>(this_key).next() {
            if state.log.is_open() {
                state.log.log(Undo::Add(key.clone(), Some(*pending)));
            }
            *pending = pending.wrapping_add(delta);
            return;
        }
        state.touched.key(key);
        if state.pending_adds.len() >= PENDING_ADDS_MAX {
            state.write_adds(&[], None);
        }
        let key = Key::from(key);
        if state.log.is_open() {
            state.log.log(Undo::Add(key.clone(), None));
        }
        state.pending_adds.insert(key, delta);
    }

    fn atomic_min(&self, key: &[u8], value: u64) {
        let found = match self.value(key) {
            Ok(found) => found,
            Err(error) => return self.state.borrow_mut().fail(error),
        };
        let least = lowered(found.as_deref(), value);
        if found.as_deref() != Some(&least) {
            return self.set(key, &least);
        }
        let mut state = self.state.borrow_mut();
        state.count(key.len() + size_of::<u64>());
    }

    fn append(&self, prefix: &[u8], values: &[Bytes]) {
        let last = match self.last_of_log(prefix) {
            Ok(last) => last,
            Err(error) => return self.state.borrow_mut().fail(error),
        };
        let stamp = stamp_after(prefix, last.as_deref());
        for (number, value) in (0_u16..).zip(values) {
            self.set(&stamped_key(prefix, &stamp, number), value);
        }
    }

    fn add_read_conflict_range(&self, _begin: &[u8], _end: &[u8]) {
        // There is no other writer to conflict with.
    }

    fn add_conflict_unless_own(&self, _section: (&[u8], &[u8]), _range: (&[u8], &[u8])) -> bool {
        // No other writer can change the range, so the result is the same as with a conflict range.
        true
    }

    fn conflict_on_own_rows(&self) {
        // It never conflicts.
    }

    fn savepoint(&self) -> Savepoint {
        let mut state = self.state.borrow_mut();
        let mark = state.mark();
        state.log.savepoint(mark)
    }

    fn rollback(&self, savepoint: Savepoint) {
        self.state.borrow_mut().rollback(savepoint);
    }

    fn release(&self, savepoint: Savepoint) {
        self.state.borrow_mut().log.release(savepoint);
    }

    fn size_bytes(&self) -> usize {
        self.state.borrow().size_bytes
    }

    fn mutation_count(&self) -> u64 {
        self.state.borrow().mutation_count
    }

    fn growth(&self) -> Growth {
        self.growth
    }

    fn grown_bytes(&self) -> i64 {
        self.state.borrow().grown_bytes
    }

    fn spare_bytes(&self) -> i64 {
        self.state.borrow().reader.store.shared.room.spare_bytes()
    }

    fn commit<'t>(self: Box<Self>) -> StoreFuture<'t, ()>
    where
        Self: 't,
    {
        StoreFuture::ready(self.finish())
    }
}
