//! The embedded store's transactions.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use heed::{MdbError, RoTxn, WithoutTls};

use super::EmbeddedStore;
use super::blob::Key;
use super::error::store_error;
use super::journal::{AppendError, JournalFailure, Record, Write};
use super::layer::{Layer, Lookup};
use super::merge::View;
use super::scan::LastScan;
use super::undo::{Log, Mark, Undo};
use super::watch::Touched;
use super::writer::Writer;
use quoin_base::limits;
use quoin_store::rules::{STAMP_BYTES, added, lowered, stamp_after, stamped_key};
use quoin_store::{
    Growth, Isolation, KeyValue, NotedRead, RangeQuery, ReadTransaction, Savepoint, Store,
    StoreError, StoreFuture, Transaction, page,
};

/// Bytes of the overlay's newest layer above which it is closed and drained into the data file.
const LAYER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// A journal with more bytes than this causes an early checkpoint.
const JOURNAL_CHECKPOINT_BYTES: u64 = 128 * 1024 * 1024;

/// How long a transaction waits before it checks for room again.
const ROOM_WAIT: Duration = Duration::from_millis(2);
/// Room for a record, in bytes, that the journal must have before a transaction begins. This is
/// enough for a command that removes thousands of elements.
const RECORD_ROOM_BYTES: u64 = 512 * 1024;
/// Number of checkpoints that a transaction waits for to get room for its record.
const CHECKPOINTS_FOR_ROOM: u64 = 2;

/// The journal is full but must not be overwritten.
#[derive(Debug, thiserror::Error)]
#[error("the journal is full, as commits cannot be archived: {0}")]
struct ArchiveBlocked(String);

/// A snapshot of the embedded store.
pub(super) struct EmbeddedSnapshot<'s> {
    store: &'s EmbeddedStore,
    layers: Vec<Layer>,
    transaction: RoTxn<'s, WithoutTls>,
}

impl<'s> EmbeddedSnapshot<'s> {
    pub(super) fn begin(store: &'s EmbeddedStore) -> Result<Self, StoreError> {
        let overlay = &store.shared.overlay;
        let snapshot = overlay.snapshot(&store.environment, 0);
        let (layers, transaction) = snapshot.map_err(store_error)?;
        Ok(Self {
            store,
            layers,
            transaction,
        })
    }

    fn view(&self) -> View<'_> {
        View {
            layers: &self.layers,
            rows: &self.store.rows,
            transaction: &self.transaction,
        }
    }

    pub(super) fn value(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        Ok(self.view().get(key)?.map(Bytes::copy_from_slice))
    }
}

impl ReadTransaction for EmbeddedSnapshot<'_> {
    fn get<'t>(&'t self, key: &[u8], _isolation: Isolation) -> StoreFuture<'t, Option<Bytes>> {
        StoreFuture::ready(self.value(key))
    }

    fn get_range<'t>(&'t self, query: RangeQuery<'_>) -> StoreFuture<'t, Vec<KeyValue>> {
        StoreFuture::ready(self.view().get_range(&query))
    }

    fn get_page<'t>(
        &'t self,
        query: RangeQuery<'_>,
        bytes_max: usize,
    ) -> StoreFuture<'t, Vec<KeyValue>> {
        StoreFuture::ready(self.view().get_page(&query, bytes_max))
    }

    fn cache_value(&self, _key: &[u8], _value: &Bytes) {
        // It caches nothing.
    }
}

/// The embedded store's write transaction. Only one exists at a time.
pub(super) struct EmbeddedTransaction<'s> {
    store: &'s EmbeddedStore,
    growth: Growth,
    state: RefCell<WriteState<'s>>,
}

struct WriteState<'s> {
    /// The first layer has the transaction's own writes.
    layers: Vec<Layer>,
    transaction: RoTxn<'s, WithoutTls>,
    /// Dropped last.
    writer: MutexGuard<'s, Writer>,
    /// Additions that are not yet in the rows. They let a whole batch write a counter once.
    pending_adds: BTreeMap<Key, i64>,
    last_scan: LastScan,
    /// The first error of a write. The commit returns it.
    failure: Option<StoreError>,
    touched: Touched,
    size_bytes: usize,
    mutation_count: u64,
    counts_growth: bool,
    /// Bytes by which its rows exceed what they replace, if that is counted.
    grown_bytes: i64,
    log: Log,
}

impl<'s> EmbeddedTransaction<'s> {
    /// Waits for the previous writer.
    pub(super) fn begin(store: &'s EmbeddedStore) -> Result<Self, StoreError> {
        wait_for_room(store)?;
        let mut writer = store.shared.writer.lock();
        // The previous writer's commit may have broken the store.
        store.shared.check()?;
        let snapshot = store.shared.overlay.snapshot(&store.environment, 1);
        let (layers, transaction) = snapshot.map_err(store_error)?;
        writer.reset();
        let growth = store.growth();
        Ok(Self {
            store,
            growth,
            state: RefCell::new(WriteState {
                layers,
                transaction,
                writer,
                pending_adds: BTreeMap::new(),
                last_scan: LastScan::default(),
                failure: None,
                touched: Touched::new(store.shared.watches.is_used()),
                size_bytes: 0,
                mutation_count: 0,
                counts_growth: growth == Growth::DiskFull,
                grown_bytes: 0,
                log: Log::default(),
            }),
        })
    }

    fn value(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let mut state = self.state.borrow_mut();
        state.check()?;
        let found = state.get(self.store, key)?;
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
        state.write_adds(self.store, query.begin, Some(query.end));
        state.check()?;
        let found = match query.limit {
            1 => Vec::from_iter(state.nearest(self.store, query)?),
            _ => state.view(self.store).get_page(query, bytes_max)?,
        };
        state.last_scan.remember(query, &found);
        Ok(found)
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

    fn finish(self) -> Result<(), StoreError> {
        let store = self.store;
        let mut state = self.state.into_inner();
        state.write_adds(store, &[], None);
        if state.size_bytes > limits::EMBEDDED_TRANSACTION_BYTES_MAX {
            state.fail(StoreError::TooLarge);
        }
        state.check()?;
        if state.writer.record.is_empty() {
            return Ok(());
        }
        let mut layers = state.layers.into_iter();
        let Some(writes) = layers.next() else {
            return Ok(());
        };
        check_room(store, &writes)?;
        // Without other references, the newest layer is changed in place.
        drop((layers, state.transaction));
        let sequence = append(store, &mut state.writer.record)?;
        if self.growth == Growth::DiskFull {
            store.shared.room.spend(state.grown_bytes);
        }
        let (newest_bytes, is_draining) = store.shared.overlay.publish(writes, sequence);
        if newest_bytes >= LAYER_BYTES_MAX && !is_draining {
            store.shared.overlay.close_newest();
            store.wake_drain();
        }
        store.shared.committed();
        drop(state.writer);
        store.shared.watches.notify(&state.touched);
        Ok(())
    }
}

/// Whether there is room for a transaction to begin.
pub(super) struct RoomForTransaction {
    is_journal_long: bool,
    is_overlay_large: bool,
    is_tight: bool,
    record: io::Result<()>,
}

impl RoomForTransaction {
    pub(super) fn is_there(&self) -> bool {
        !(self.is_journal_long || self.is_overlay_large || self.is_tight) && self.record.is_ok()
    }
}

pub(super) fn room_for_transaction(store: &EmbeddedStore) -> RoomForTransaction {
    let overlay_bytes = store.shared.overlay.bytes();
    RoomForTransaction {
        is_journal_long: store.journal.bytes() > store.journal_bytes_max,
        is_overlay_large: overlay_bytes > limits::EMBEDDED_OVERLAY_BYTES_MAX,
        is_tight: store.shared.room.is_tight(overlay_bytes as u64),
        record: store.journal.make_room(RECORD_ROOM_BYTES),
    }
}

/// Makes a transaction wait while the journal or the overlay is too far ahead of the data file, or
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
            is_overlay_large,
            record,
            ..
        } = room;
        shared.check()?;
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
            // The journal's other file may have room.
            Err(error) if has_failed || has_waited => {
                return Err(store_error(error.into()));
            }
            Err(_) => {
                // Do this even if nothing was committed since the last checkpoint.
                shared.committed();
                store.wake_checkpoint();
            }
            Ok(()) if is_journal_long || is_overlay_large => {
                if has_failed {
                    let full = io::Error::from_raw_os_error(libc::ENOSPC);
                    return Err(store_error(full.into()));
                }
                if is_journal_long {
                    store.wake_checkpoint();
                } else {
                    store.wake_drain();
                }
            }
            // How much room there is will be known once the data file has what is in memory.
            Ok(()) if has_failed || has_waited => return Ok(()),
            Ok(()) => store.wake_checkpoint(),
        }
        std::thread::sleep(ROOM_WAIT);
    }
}

/// Refuses rows for which the disk has no room.
fn check_room(store: &EmbeddedStore, writes: &Layer) -> Result<(), StoreError> {
    let pending = store.shared.overlay.bytes().saturating_add(writes.bytes());
    let room = &store.shared.room;
    // The size of all writes is known. The size of the rows alone must be counted.
    if [Layer::bytes, Layer::row_bytes]
        .iter()
        .any(|count| room.takes(count(writes) as u64, pending as u64))
    {
        return Ok(());
    }
    Err(store_error(heed::Error::Mdb(MdbError::MapFull)))
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

impl WriteState<'_> {
    fn view<'v>(&'v self, store: &'v EmbeddedStore) -> View<'v> {
        View {
            layers: &self.layers,
            rows: &store.rows,
            transaction: &self.transaction,
        }
    }

    /// The value of a key, without pending additions.
    fn get(&mut self, store: &EmbeddedStore, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let Some((own, below)) = self.layers.split_first() else {
            return Ok(None);
        };
        match own.get(key) {
            Lookup::Value(value) => Ok(Some(Bytes::copy_from_slice(value))),
            Lookup::Cleared => Ok(None),
            Lookup::Nothing => {
                let snapshot = View {
                    layers: below,
                    rows: &store.rows,
                    transaction: &self.transaction,
                };
                self.writer.cache.value(&snapshot, key)
            }
        }
    }

    /// The first row of a range, in the order of the query.
    fn nearest(
        &mut self,
        store: &EmbeddedStore,
        query: &RangeQuery<'_>,
    ) -> Result<Option<KeyValue>, StoreError> {
        let Some((own, below)) = self.layers.split_first() else {
            return Ok(None);
        };
        let reverse = query.reverse;
        let (mut edge, bound, own_row) = match reverse {
            true => (query.end, query.begin, own.row_before(query.end)),
            false => (query.begin, query.end, own.row_at_or_after(query.begin)),
        };
        let own_row = own_row.filter(|(key, _)| *key >= query.begin && *key < query.end);
        let snapshot = View {
            layers: below,
            rows: &store.rows,
            transaction: &self.transaction,
        };
        loop {
            // Skip what the transaction has cleared there.
            let further = match reverse {
                true => own.cleared_before(edge),
                false => own.cleared_over(edge).map(|(_, end)| end),
            };
            edge = further.unwrap_or(edge);
            let has_rows = if reverse { edge > bound } else { edge < bound };
            let is_own = own_row.is_some_and(|(key, _)| match reverse {
                true => key >= edge,
                false => key <= edge,
            });
            if !has_rows || is_own {
                break;
            }
            let Some(row) = self.writer.cache.row(&snapshot, edge, bound, reverse)? else {
                break;
            };
            let is_own = own_row.is_some_and(|(key, _)| match reverse {
                true => key >= &*row.key,
                false => key <= &*row.key,
            });
            if is_own {
                break;
            }
            let Some((begin, end)) = own.cleared_over(&row.key) else {
                return Ok(Some(row));
            };
            edge = if reverse { begin } else { end };
        }
        Ok(own_row.and_then(|row| page::pack(&[row]).pop()))
    }

    fn put(&mut self, store: &EmbeddedStore, key: &[u8], value: &[u8]) {
        if self.counts_growth {
            self.grown_bytes += signed(key.len() + value.len()) - self.row_bytes(store, key);
        }
        self.writer.record.push(&Write::Set(key, value));
        if let Some(writes) = self.layers.first_mut() {
            writes.set(key, value, &mut self.log);
        }
    }

    /// Bytes of a row. 0 if it does not exist or cannot be read.
    fn row_bytes(&mut self, store: &EmbeddedStore, key: &[u8]) -> i64 {
        let value = self.get(store, key).ok().flatten();
        value.map_or(0, |value| signed(key.len() + value.len()))
    }

    /// Bytes of the rows in a range, up to the first that cannot be read.
    fn range_bytes(&self, store: &EmbeddedStore, begin: &[u8], end: &[u8]) -> i64 {
        let view = self.view(store);
        let Ok(mut rows) = view.merge(&RangeQuery {
            begin,
            end,
            limit: usize::MAX,
            reverse: false,
            isolation: Isolation::Snapshot,
        }) else {
            return 0;
        };
        let mut bytes = 0;
        while let Ok(Some((key, value))) = rows.next_row() {
            bytes += signed(key.len() + value.len());
        }
        bytes
    }

    fn mark(&self) -> Mark {
        Mark {
            record_bytes: self.writer.record.len(),
            size_bytes: self.size_bytes,
            mutation_count: self.mutation_count,
            grown_bytes: self.grown_bytes,
            has_failed: self.failure.is_some(),
        }
    }

    /// Undoes the writes since a savepoint. Their keys stay in `touched`, because a watch may fire
    /// without a change.
    fn rollback(&mut self, savepoint: Savepoint) {
        let Some(writes) = self.layers.first_mut() else {
            return;
        };
        let pending_adds = &mut self.pending_adds;
        let mark = self.log.rollback(savepoint, |undo| match undo {
            Undo::Row(key, old) => writes.restore_row(key, old),
            Undo::Cleared(begin, old) => writes.restore_cleared(begin, old),
            Undo::Add(key, Some(old)) => drop(pending_adds.insert(key, old)),
            Undo::Add(key, None) => drop(pending_adds.remove(&key)),
        });
        let Some(mark) = mark else { return };
        self.writer.record.truncate(mark.record_bytes);
        self.size_bytes = mark.size_bytes;
        self.mutation_count = mark.mutation_count;
        self.grown_bytes = mark.grown_bytes;
        if !mark.has_failed {
            self.failure = None;
        }
        self.last_scan.forget();
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
    fn write_adds(&mut self, store: &EmbeddedStore, begin: &[u8], end: Option<&[u8]>) {
        if self.failure.is_some() {
            return;
        }
        for (key, delta) in self.take_adds(begin, end) {
            if !store.takes_key(&key) {
                return self.fail(StoreError::TooLarge);
            }
            let sum = match self.get(store, &key) {
                Ok(found) => added(found.as_deref(), delta),
                Err(error) => return self.fail(error),
            };
            self.put(store, &key, &sum);
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
        // It caches nothing.
    }
}

impl Transaction for EmbeddedTransaction<'_> {
    fn set(&self, key: &[u8], value: &[u8]) {
        let mut state = self.state.borrow_mut();
        state.count(key.len() + value.len());
        if state.failure.is_some() {
            return;
        }
        if !self.store.takes_key(key) {
            return state.fail(StoreError::TooLarge);
        }
        state.forget_add(key);
        state.touched.key(key);
        state.put(self.store, key, value);
    }

    fn clear(&self, key: &[u8]) {
        let mut state = self.state.borrow_mut();
        state.count(key.len());
        if state.failure.is_some() {
            return;
        }
        state.forget_add(key);
        state.touched.key(key);
        if self.store.takes_key(key) {
            if state.counts_growth {
                state.grown_bytes -= state.row_bytes(self.store, key);
            }
            state.writer.record.push(&Write::Clear(key));
            let state = &mut *state;
            if let Some(writes) = state.layers.first_mut() {
                state.last_scan.clear(key, writes, &mut state.log);
            }
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
            state.grown_bytes -= state.range_bytes(self.store, begin, end);
        }
        state.touched.range(begin, end);
        state.writer.record.push(&Write::ClearRange(begin, end));
        let state = &mut *state;
        if let Some(writes) = state.layers.first_mut() {
            let log = &mut state.log;
            state.last_scan.clear_range(begin, end, writes, log);
        }
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

    fn note_reads(&self, _max: usize) {}

    fn take_noted_reads(&self) -> Vec<NotedRead> {
        Vec::new()
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
        self.store.shared.room.spare_bytes()
    }

    fn commit<'t>(self: Box<Self>) -> StoreFuture<'t, ()>
    where
        Self: 't,
    {
        StoreFuture::ready(self.finish())
    }
}
