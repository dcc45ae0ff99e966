//! The embedded store's transactions.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use heed::{RoTxn, RwTxn, WithoutTls};

use super::error::store_error;
use super::journal::{APPLIED_KEY, AppendError, Appended, Record, Write};
use super::watch::Touched;
use super::{EmbeddedStore, rows};
use crate::limits;
use crate::store::rules::{added, lowered};
use crate::store::{
    Isolation, KeyValue, RangeQuery, ReadTransaction, StoreError, StoreFuture, Transaction,
};

/// How long a transaction waits before it looks again whether the journal has room.
const JOURNAL_WAIT: Duration = Duration::from_millis(5);

/// A snapshot of the embedded store.
pub(super) struct EmbeddedSnapshot<'s> {
    store: &'s EmbeddedStore,
    transaction: RoTxn<'s, WithoutTls>,
}

impl<'s> EmbeddedSnapshot<'s> {
    pub(super) fn begin(store: &'s EmbeddedStore) -> Result<Self, StoreError> {
        let transaction = store.environment.read_txn().map_err(store_error)?;
        Ok(Self { store, transaction })
    }

    pub(super) fn value(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let found = rows::get(&self.store.rows, &self.transaction, key)?;
        Ok(found.map(Bytes::copy_from_slice))
    }
}

impl ReadTransaction for EmbeddedSnapshot<'_> {
    fn get<'t>(&'t self, key: &[u8], _isolation: Isolation) -> StoreFuture<'t, Option<Bytes>> {
        StoreFuture::ready(self.value(key))
    }

    fn get_range<'t>(&'t self, query: RangeQuery<'_>) -> StoreFuture<'t, Vec<KeyValue>> {
        StoreFuture::ready(rows::get_range(&self.store.rows, &self.transaction, &query))
    }
}

/// The embedded store's one writer.
pub(super) struct EmbeddedTransaction<'s> {
    store: &'s EmbeddedStore,
    state: RefCell<WriteState<'s>>,
}

struct WriteState<'s> {
    transaction: RwTxn<'s>,
    /// Additions that are not yet in the rows: a counter that a whole batch adds to is written
    /// once. In order, for LMDB writes neighbours faster than strangers.
    pending_adds: BTreeMap<Box<[u8]>, i64>,
    /// The first write that failed; the commit tells it.
    failure: Option<StoreError>,
    touched: Touched,
    /// The writes so far, where there is a journal.
    record: Option<Record>,
    size_bytes: usize,
    mutation_count: u64,
}

impl<'s> EmbeddedTransaction<'s> {
    /// Waits for the writer before this one.
    pub(super) fn begin(store: &'s EmbeddedStore) -> Result<Self, StoreError> {
        wait_for_room(store)?;
        let transaction = store.environment.write_txn().map_err(store_error)?;
        // The wait may have been for a writer whose commit broke the store.
        store.shared.check()?;
        Ok(Self {
            store,
            state: RefCell::new(WriteState {
                transaction,
                pending_adds: BTreeMap::new(),
                failure: None,
                touched: Touched::new(store.shared.watches.is_used()),
                record: store.journal.is_some().then(Record::new),
                size_bytes: 0,
                mutation_count: 0,
            }),
        })
    }

    fn value(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let state = self.state.borrow();
        state.check()?;
        let found = rows::get(&self.store.rows, &state.transaction, key)?;
        Ok(match state.pending_add(key) {
            Some(delta) => Some(Bytes::copy_from_slice(&added(found, delta))),
            None => found.map(Bytes::copy_from_slice),
        })
    }

    fn rows_of(&self, query: &RangeQuery<'_>) -> Result<Vec<KeyValue>, StoreError> {
        let mut state = self.state.borrow_mut();
        state.write_adds(self.store, query.begin, Some(query.end));
        state.check()?;
        rows::get_range(&self.store.rows, &state.transaction, query)
    }

    fn finish(self) -> Result<(), StoreError> {
        let store = self.store;
        let mut state = self.state.into_inner();
        state.write_adds(store, &[], None);
        if state.size_bytes > limits::EMBEDDED_TRANSACTION_BYTES_MAX {
            state.fail(StoreError::TooLarge);
        }
        state.check()?;
        let appended = state.journal(store)?;
        if let Err(error) = state.transaction.commit() {
            return Err(store
                .shared
                .failed(refused(store, appended.as_ref(), error)));
        }
        if state.mutation_count > 0 {
            store.shared.committed();
            store.shared.watches.notify(&state.touched);
        }
        Ok(())
    }
}

/// Makes a transaction wait while the journal is much ahead of the data file. Not to be called
/// with a transaction open: the checkpoint that makes room needs one.
fn wait_for_room(store: &EmbeddedStore) -> Result<(), StoreError> {
    let (Some(journal), Some(syncer)) = (&store.journal, &store.syncer) else {
        return Ok(());
    };
    while journal.bytes() > limits::EMBEDDED_JOURNAL_BYTES_MAX {
        store.shared.check()?;
        if store.shared.checkpoints_without_room.load(Ordering::SeqCst) > 0 {
            let full = io::Error::from(io::ErrorKind::StorageFull);
            return Err(StoreError::Unavailable(Arc::new(full)));
        }
        syncer.nudge();
        std::thread::sleep(JOURNAL_WAIT);
    }
    Ok(())
}

/// LMDB did not commit what the journal holds already: without that record nothing was applied;
/// where it cannot be taken back, a restart might apply it.
fn refused(store: &EmbeddedStore, appended: Option<&Appended>, error: heed::Error) -> StoreError {
    let (Some(journal), Some(appended)) = (&store.journal, appended) else {
        return store_error(error);
    };
    match journal.retract(appended) {
        Ok(()) => store_error(error),
        Err(_) => StoreError::Fatal(Arc::new(error)),
    }
}

impl WriteState<'_> {
    /// Puts the transaction's writes into the journal: from then on they survive a crash.
    fn journal(&mut self, store: &EmbeddedStore) -> Result<Option<Appended>, StoreError> {
        let (Some(journal), Some(record)) = (&store.journal, &mut self.record) else {
            return Ok(None);
        };
        if self.mutation_count == 0 {
            return Ok(None);
        }
        let sequence = journal.next_sequence().to_le_bytes();
        if let Err(error) = store
            .rows
            .put(&mut self.transaction, APPLIED_KEY, &sequence)
        {
            return Err(store_error(error));
        }
        match journal.append(record) {
            Ok(appended) => {
                if journal.bytes() > limits::EMBEDDED_JOURNAL_NUDGE_BYTES
                    && let Some(syncer) = &store.syncer
                {
                    syncer.nudge();
                }
                Ok(Some(appended))
            }
            Err(AppendError::NotApplied(error)) => {
                Err(store.shared.failed(store_error(error.into())))
            }
            Err(AppendError::Unknown(error)) => {
                Err(store.shared.failed(StoreError::Fatal(Arc::new(error))))
            }
        }
    }

    fn record(&mut self, write: &Write<'_>) {
        if let Some(record) = &mut self.record {
            record.push(write);
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

    /// The pending addition to a key. The maps' emptiness is asked first: most batches that pop
    /// or read have none, and a lookup compares whole keys.
    fn pending_add(&self, key: &[u8]) -> Option<i64> {
        if self.pending_adds.is_empty() {
            return None;
        }
        self.pending_adds.get(key).copied()
    }

    fn forget_add(&mut self, key: &[u8]) {
        if !self.pending_adds.is_empty() {
            self.pending_adds.remove(key);
        }
    }

    /// Takes the pending additions to keys in `begin..end` (`None`: without end).
    fn take_adds(&mut self, begin: &[u8], end: Option<&[u8]>) -> Vec<(Box<[u8]>, i64)> {
        if self.pending_adds.is_empty() || end.is_some_and(|end| begin >= end) {
            return Vec::new();
        }
        let bounds = (
            Bound::Included(begin),
            end.map_or(Bound::Unbounded, Bound::Excluded),
        );
        let keys: Vec<Box<[u8]>> = self
            .pending_adds
            .range::<[u8], _>(bounds)
            .map(|(key, _)| key.clone())
            .collect();
        keys.into_iter()
            .filter_map(|key| self.pending_adds.remove_entry(&key))
            .collect()
    }

    /// Writes pending additions into the rows, so that a range read finds them there.
    fn write_adds(&mut self, store: &EmbeddedStore, begin: &[u8], end: Option<&[u8]>) {
        if self.failure.is_some() {
            return;
        }
        for (key, delta) in self.take_adds(begin, end) {
            let sum = match rows::get(&store.rows, &self.transaction, &key) {
                Ok(found) => added(found, delta),
                Err(error) => return self.fail(error),
            };
            if let Err(error) = store.rows.put(&mut self.transaction, &key, &sum) {
                return self.fail(store_error(error));
            }
            self.record(&Write::Set(&key, &sum));
        }
    }
}

impl ReadTransaction for EmbeddedTransaction<'_> {
    fn get<'t>(&'t self, key: &[u8], _isolation: Isolation) -> StoreFuture<'t, Option<Bytes>> {
        StoreFuture::ready(self.value(key))
    }

    fn get_range<'t>(&'t self, query: RangeQuery<'_>) -> StoreFuture<'t, Vec<KeyValue>> {
        StoreFuture::ready(self.rows_of(&query))
    }
}

impl Transaction for EmbeddedTransaction<'_> {
    fn set(&self, key: &[u8], value: &[u8]) {
        let mut state = self.state.borrow_mut();
        state.count(key.len() + value.len());
        if state.failure.is_some() {
            return;
        }
        state.forget_add(key);
        state.touched.key(key);
        state.record(&Write::Set(key, value));
        if let Err(error) = self.store.rows.put(&mut state.transaction, key, value) {
            state.fail(store_error(error));
        }
    }

    fn clear(&self, key: &[u8]) {
        let mut state = self.state.borrow_mut();
        state.count(key.len());
        if state.failure.is_some() {
            return;
        }
        state.forget_add(key);
        state.touched.key(key);
        match self.store.rows.delete(&mut state.transaction, key) {
            Ok(true) => state.record(&Write::Clear(key)),
            // A key that LMDB does not take cannot be there.
            Ok(_) | Err(heed::Error::Mdb(heed::MdbError::BadValSize)) => {}
            Err(error) => state.fail(store_error(error)),
        }
    }

    fn clear_range(&self, begin: &[u8], end: &[u8]) {
        let mut state = self.state.borrow_mut();
        state.count(begin.len() + end.len());
        if state.failure.is_some() || begin >= end {
            return;
        }
        drop(state.take_adds(begin, Some(end)));
        state.touched.range(begin, end);
        state.record(&Write::ClearRange(begin, end));
        let bounds = (
            if begin.is_empty() {
                Bound::Unbounded
            } else {
                Bound::Included(begin)
            },
            Bound::Excluded(end),
        );
        if let Err(error) = self
            .store
            .rows
            .delete_range(&mut state.transaction, &bounds)
        {
            state.fail(store_error(error));
        }
    }

    fn atomic_add(&self, key: &[u8], delta: i64) {
        let mut state = self.state.borrow_mut();
        state.count(key.len() + size_of::<i64>());
        if state.failure.is_some() {
            return;
        }
        if let Some(pending) = state.pending_adds.get_mut(key) {
            *pending = pending.wrapping_add(delta);
            return;
        }
        state.touched.key(key);
        state.pending_adds.insert(key.into(), delta);
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

    fn add_read_conflict_range(&self, _begin: &[u8], _end: &[u8]) {
        // There is no other writer to conflict with.
    }

    fn size_bytes(&self) -> usize {
        self.state.borrow().size_bytes
    }

    fn mutation_count(&self) -> u64 {
        self.state.borrow().mutation_count
    }

    fn commit<'t>(self: Box<Self>) -> StoreFuture<'t, ()>
    where
        Self: 't,
    {
        StoreFuture::ready(self.finish())
    }
}
