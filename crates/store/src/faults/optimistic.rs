//! A store with many writers on top of one with a single writer, after FoundationDB's model: a
//! transaction reads a snapshot, keeps its writes until the commit, and is then checked against
//! later commits.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tokio::sync::watch;

use crate::read_your_writes::{BaseTransaction, ReadYourWrites};
use crate::rules::{STAMP_BYTES, key_after, stamped_key};
use crate::{
    Capabilities, Growth, Isolation, KeyValue, RangeQuery, ReadTransaction, Store, StoreError,
    StoreFuture, Transaction, Watched,
};
use quoin_base::limits;

/// Number of write transactions that should be in flight at once, as on FoundationDB.
const PARALLEL_BATCHES: usize = 8;

/// Commits that are remembered. A transaction that began before them is too old.
pub const HISTORY_COMMITS_MAX: usize = 10_000;

/// Makes a store that responds immediately and has one writer (the embedded one) behave like a
/// FoundationDB cluster. Transactions run concurrently and conflict. Every read and commit is ready
/// at its second poll. The limits are FoundationDB's.
pub struct OptimisticStore<S> {
    inner: S,
    history: Mutex<History>,
    is_paused: watch::Sender<bool>,
}

/// What the last commits wrote.
#[derive(Default)]
struct History {
    /// Commits so far.
    version: u64,
    /// The last entry is that of `version`.
    written: VecDeque<Vec<KeyRange>>,
}

impl History {
    /// Whether anything in `read` was written after `version`.
    fn check(&self, version: u64, read: &[KeyRange]) -> Result<(), StoreError> {
        if read.is_empty() {
            return Ok(());
        }
        let later = usize::try_from(self.version - version).unwrap_or(usize::MAX);
        if later > self.written.len() {
            return Err(StoreError::TooOld);
        }
        let conflicts = self
            .written
            .iter()
            .rev()
            .take(later)
            .flatten()
            .any(|write| read.iter().any(|read| read.0 < write.1 && write.0 < read.1));
        if conflicts {
            return Err(StoreError::Conflict);
        }
        Ok(())
    }

    fn push(&mut self, written: Vec<KeyRange>) {
        self.version += 1;
        self.written.push_back(written);
        if self.written.len() > HISTORY_COMMITS_MAX {
            self.written.pop_front();
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the store below does not answer at once")]
struct NotAtOnce;

/// Takes a result that must be ready.
fn now<T: Unpin>(mut future: StoreFuture<'_, T>) -> Result<T, StoreError> {
    match Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => Err(StoreError::Fatal(Arc::new(NotAtOnce))),
    }
}

impl<S: Store> OptimisticStore<S> {
    /// Makes `inner` behave like a cluster.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            history: Mutex::default(),
            is_paused: watch::Sender::new(false),
        }
    }

    /// Pauses or resumes the store. While it is paused nothing completes, as if the cluster had
    /// stalled.
    pub fn pause(&self, is_paused: bool) {
        self.is_paused.send_replace(is_paused);
    }

    /// Returns a result at the second poll, so that other tasks run in between, and not while the
    /// store is paused.
    fn later<'t, T: 't>(&self, answer: Result<T, StoreError>) -> StoreFuture<'t, T> {
        let mut is_paused = self.is_paused.subscribe();
        StoreFuture::Pending(Box::pin(async move {
            let mut is_first = true;
            std::future::poll_fn(|context| {
                if std::mem::take(&mut is_first) {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Ready(())
            })
            .await;
            // It fails if the store is gone.
            let _ = is_paused.wait_for(|is_paused| !is_paused).await;
            answer
        }))
    }

    /// The store below.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Adds an empty commit.
    pub fn history_push_for_test(&self) {
        self.history().push(Vec::new());
    }

    /// A transaction below [`ReadYourWrites`].
    fn begin_base(&self) -> Result<Box<OptimisticTransaction<'_, S>>, StoreError> {
        // Under the lock, so that no commit comes between the version and its snapshot.
        let history = self.history();
        Ok(Box::new(OptimisticTransaction {
            store: self,
            snapshot: self.inner.begin_read()?,
            version: history.version,
            state: RefCell::default(),
        }))
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads see the snapshot only and never conflict: [`ReadYourWrites`] does the rest.
struct OptimisticTransaction<'s, S> {
    store: &'s OptimisticStore<S>,
    snapshot: Box<dyn ReadTransaction + 's>,
    version: u64,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    operations: Vec<Operation>,
    read_conflicts: Vec<KeyRange>,
    size_bytes: usize,
    is_too_large: bool,
}

impl State {
    fn add_read_conflict(&mut self, begin: &[u8], end: &[u8]) {
        if begin < end {
            self.size_bytes += begin.len() + end.len();
            self.read_conflicts.push((begin.into(), end.into()));
        }
    }

    fn write(&mut self, operation: Operation) {
        self.size_bytes += operation.size_bytes();
        self.is_too_large |= operation.value_bytes() > limits::FDB_VALUE_BYTES_MAX;
        self.operations.push(operation);
    }
}

impl<S: Store> OptimisticTransaction<'_, S> {
    fn finish(self) -> Result<(), StoreError> {
        let Self {
            store,
            snapshot,
            version,
            state,
        } = self;
        drop(snapshot);
        let state = state.into_inner();
        if state.is_too_large || state.size_bytes > limits::FDB_TRANSACTION_BYTES_MAX {
            return Err(StoreError::TooLarge);
        }
        // Locked until after the commit, so that checks and commits alternate.
        let mut history = store.history();
        history.check(version, &state.read_conflicts)?;
        let transaction = store.inner.begin_write()?;
        let version = history.version + 1;
        for operation in &state.operations {
            operation.replay(transaction.as_ref(), version);
        }
        now(transaction.commit())?;
        let operations = state.operations.iter();
        history.push(operations.map(|one| one.written(version)).collect());
        Ok(())
    }
}

impl<S: Store> BaseTransaction for OptimisticTransaction<'_, S> {
    fn get<'t>(&'t self, key: &[u8]) -> StoreFuture<'t, Option<Bytes>> {
        let found = now(self.snapshot.get(key, Isolation::Snapshot));
        self.store.later(found)
    }

    fn get_range<'t>(&'t self, query: RangeQuery<'_>) -> StoreFuture<'t, Vec<KeyValue>> {
        self.store.later(now(self.snapshot.get_range(query)))
    }

    fn set(&self, key: &[u8], value: &[u8]) {
        self.state
            .borrow_mut()
            .write(Operation::Set(key.into(), Bytes::copy_from_slice(value)));
    }

    fn clear(&self, key: &[u8]) {
        self.state.borrow_mut().write(Operation::Clear(key.into()));
    }

    fn clear_range(&self, begin: &[u8], end: &[u8]) {
        self.state
            .borrow_mut()
            .write(Operation::ClearRange(begin.into(), end.into()));
    }

    fn atomic_add(&self, key: &[u8], delta: i64) {
        self.state
            .borrow_mut()
            .write(Operation::Add(key.into(), delta));
    }

    fn append(&self, prefix: &[u8], values: &[Bytes]) {
        let mut state = self.state.borrow_mut();
        for (number, value) in (0_u16..).zip(values) {
            state.write(Operation::Append(prefix.into(), number, value.clone()));
        }
    }

    fn atomic_min(&self, key: &[u8], value: u64) {
        self.state
            .borrow_mut()
            .write(Operation::Min(key.into(), value));
    }

    fn add_read_conflict_range(&self, begin: &[u8], end: &[u8]) {
        self.state.borrow_mut().add_read_conflict(begin, end);
    }

    fn commit<'t>(self: Box<Self>) -> StoreFuture<'t, ()>
    where
        Self: 't,
    {
        let store = self.store;
        store.later(self.finish())
    }
}

impl<S: Store> Store for OptimisticStore<S> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "optimistic",
            has_other_writers: true,
            reads_wait: true,
            bounds_transaction_time: true,
            clears_ranges_at_once: true,
            has_unknown_results: true,
            batch_bytes_soft_max: limits::FDB_BATCH_BYTES_SOFT_MAX,
            transaction_bytes_max: limits::FDB_TRANSACTION_BYTES_MAX,
            key_name_bytes_max: limits::FDB_KEY_NAME_BYTES_MAX,
            parallel_batches: PARALLEL_BATCHES,
        }
    }

    fn begin_read(&self) -> Result<Box<dyn ReadTransaction + '_>, StoreError> {
        Ok(Box::new(ReadYourWrites::for_reading(self.begin_base()?)))
    }

    fn begin_write(&self) -> Result<Box<dyn Transaction + '_>, StoreError> {
        Ok(Box::new(ReadYourWrites::new(self.begin_base()?)))
    }

    fn watch<'t>(&'t self, key: &[u8]) -> StoreFuture<'t, Watched> {
        self.later(now(self.inner.watch(key)))
    }

    fn disk_bytes(&self) -> Option<u64> {
        self.inner.disk_bytes()
    }

    fn disk_free_bytes(&self) -> Option<u64> {
        self.inner.disk_free_bytes()
    }

    fn is_ready(&self) -> bool {
        self.inner.is_ready()
    }

    fn growth(&self) -> Growth {
        self.inner.growth()
    }
}

pub(crate) type KeyRange = (Box<[u8]>, Box<[u8]>);

/// One write.
pub(crate) enum Operation {
    Set(Box<[u8]>, Bytes),
    Clear(Box<[u8]>),
    ClearRange(Box<[u8]>, Box<[u8]>),
    Add(Box<[u8]>, i64),
    Min(Box<[u8]>, u64),
    /// A row of a log: prefix, number, value.
    Append(Box<[u8]>, u16, Bytes),
}

/// The stamp that the commit of this version puts into the keys of logs.
fn stamp(version: u64) -> [u8; STAMP_BYTES] {
    let mut stamp = [0; STAMP_BYTES];
    if let Some(last) = stamp.last_chunk_mut::<8>() {
        *last = version.to_be_bytes();
    }
    stamp
}

impl Operation {
    pub(crate) fn size_bytes(&self) -> usize {
        match self {
            Operation::Set(key, value) => key.len() + value.len(),
            Operation::Clear(key) => key.len(),
            Operation::ClearRange(begin, end) => begin.len() + end.len(),
            Operation::Add(key, _) | Operation::Min(key, _) => key.len() + size_of::<u64>(),
            Operation::Append(prefix, _, value) => prefix.len() + STAMP_BYTES + 2 + value.len(),
        }
    }

    pub(crate) fn value_bytes(&self) -> usize {
        match self {
            Operation::Set(_, value) | Operation::Append(_, _, value) => value.len(),
            _ => 0,
        }
    }

    /// Writes it to `transaction`. `version` is the commit's.
    fn replay(&self, transaction: &dyn Transaction, version: u64) {
        match self {
            Operation::Set(key, value) => transaction.set(key, value),
            Operation::Clear(key) => transaction.clear(key),
            Operation::ClearRange(begin, end) => transaction.clear_range(begin, end),
            Operation::Add(key, delta) => transaction.atomic_add(key, *delta),
            Operation::Min(key, value) => transaction.atomic_min(key, *value),
            Operation::Append(prefix, number, value) => {
                transaction.set(&stamped_key(prefix, &stamp(version), *number), value);
            }
        }
    }

    /// The keys that it writes.
    pub(crate) fn written(&self, version: u64) -> KeyRange {
        match self {
            Operation::Set(key, _)
            | Operation::Clear(key)
            | Operation::Add(key, _)
            | Operation::Min(key, _) => (key.clone(), key_after(key).into()),
            Operation::ClearRange(begin, end) => (begin.clone(), end.clone()),
            Operation::Append(prefix, number, _) => {
                let key = stamped_key(prefix, &stamp(version), *number);
                let after = key_after(&key);
                (key.into(), after.into())
            }
        }
    }
}
