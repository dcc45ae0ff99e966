//! A wrapper that makes any store fail, by rates or by script.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::{
    Capabilities, Growth, Isolation, KeyValue, RangeQuery, ReadTransaction, Savepoint, Store,
    StoreError, StoreFuture, Transaction, Watched,
};
use quoin_base::random::Random;

/// Batches that fit into one transaction if a test limits its size.
const BATCHES_PER_TRANSACTION: usize = 4;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The commit conflicts. Nothing is applied.
    Conflict,
    /// The commit is applied, and its result is not known.
    UnknownApplied,
    /// The commit is not applied, and its result is not known.
    UnknownNotApplied,
    /// The transaction is too old, at a read or at the commit. Nothing is applied.
    TooOld,
    /// The store is unavailable, at the beginning of a transaction or at a commit. Nothing is
    /// applied.
    Unavailable,
}

/// Points at which a fault may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultPoint {
    /// A read or write transaction, or a watch, begins.
    Begin,
    /// A key or a range is read.
    Read,
    /// A transaction with writes commits. One without writes cannot fail on a real store.
    Commit,
}

/// How often each fault happens, in parts per million.
#[derive(Debug, Clone, Copy, Default)]
pub struct FaultRates {
    /// Rate of commits that end with [`Fault::Conflict`].
    pub conflict_ppm: u32,
    /// Rate of commits that end with [`Fault::UnknownApplied`].
    pub unknown_applied_ppm: u32,
    /// Rate of commits that end with [`Fault::UnknownNotApplied`].
    pub unknown_not_applied_ppm: u32,
    /// Rate of reads that end with [`Fault::TooOld`].
    pub too_old_ppm: u32,
    /// Rate of begins that end with [`Fault::Unavailable`].
    pub unavailable_ppm: u32,
}

/// How many faults of each kind have happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Injected [`Fault::Conflict`].
    pub conflict: u64,
    /// Injected [`Fault::UnknownApplied`].
    pub unknown_applied: u64,
    /// Injected [`Fault::UnknownNotApplied`].
    pub unknown_not_applied: u64,
    /// Injected [`Fault::TooOld`].
    pub too_old: u64,
    /// Injected [`Fault::Unavailable`].
    pub unavailable: u64,
}

impl FaultCounts {
    /// All together.
    pub fn total(&self) -> u64 {
        self.conflict
            + self.unknown_applied
            + self.unknown_not_applied
            + self.too_old
            + self.unavailable
    }
}

/// The reason inside an injected [`StoreError::Unavailable`].
#[derive(Debug, thiserror::Error)]
#[error("injected fault")]
pub struct Injected;

/// A store that fails sometimes.
///
/// At each [`FaultPoint`] the next entry of the point's script decides. If the script is empty, the rates
/// decide.
pub struct FaultyStore<S> {
    inner: S,
    faults: Faults,
    transaction_bytes_max: AtomicUsize,
}

struct Faults {
    random: Arc<dyn Random>,
    state: Mutex<FaultState>,
    conflict: AtomicU64,
    unknown_applied: AtomicU64,
    unknown_not_applied: AtomicU64,
    too_old: AtomicU64,
    unavailable: AtomicU64,
}

#[derive(Default)]
struct FaultState {
    rates: FaultRates,
    begin: VecDeque<Option<Fault>>,
    read: VecDeque<Option<Fault>>,
    commit: VecDeque<Option<Fault>>,
}

impl<S: Store> FaultyStore<S> {
    /// Makes `inner` fail. With all rates at 0 it behaves like `inner`.
    pub fn new(inner: S, rates: FaultRates, random: Arc<dyn Random>) -> Self {
        let transaction_bytes_max = inner.capabilities().transaction_bytes_max;
        Self {
            inner,
            faults: Faults {
                random,
                state: Mutex::new(FaultState {
                    rates,
                    ..FaultState::default()
                }),
                conflict: AtomicU64::new(0),
                unknown_applied: AtomicU64::new(0),
                unknown_not_applied: AtomicU64::new(0),
                too_old: AtomicU64::new(0),
                unavailable: AtomicU64::new(0),
            },
            transaction_bytes_max: AtomicUsize::new(transaction_bytes_max),
        }
    }

    /// The wrapped store.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Changes the rates from now on.
    pub fn set_rates(&self, rates: FaultRates) {
        self.faults.lock().rates = rates;
    }

    /// Decides what happens the next times at `point`, one entry each. `None` means no fault, and
    /// so does a fault that cannot happen at the point.
    pub fn script(&self, point: FaultPoint, faults: impl IntoIterator<Item = Option<Fault>>) {
        self.faults.lock().queue(point).extend(faults);
    }

    /// Refuses larger transactions with `TooLarge` from now on. The capabilities say so.
    pub fn set_transaction_bytes_max(&self, bytes: usize) {
        self.transaction_bytes_max.store(bytes, Ordering::SeqCst);
    }

    /// The faults so far.
    pub fn counts(&self) -> FaultCounts {
        FaultCounts {
            conflict: self.faults.conflict.load(Ordering::SeqCst),
            unknown_applied: self.faults.unknown_applied.load(Ordering::SeqCst),
            unknown_not_applied: self.faults.unknown_not_applied.load(Ordering::SeqCst),
            too_old: self.faults.too_old.load(Ordering::SeqCst),
            unavailable: self.faults.unavailable.load(Ordering::SeqCst),
        }
    }
}

impl FaultState {
    fn queue(&mut self, point: FaultPoint) -> &mut VecDeque<Option<Fault>> {
        match point {
            FaultPoint::Begin => &mut self.begin,
            FaultPoint::Read => &mut self.read,
            FaultPoint::Commit => &mut self.commit,
        }
    }
}

impl Faults {
    fn lock(&self) -> MutexGuard<'_, FaultState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault that happens this time. Counts it.
    fn next(&self, point: FaultPoint) -> Option<Fault> {
        let fault = {
            let mut state = self.lock();
            match state.queue(point).pop_front() {
                Some(scripted) => scripted.filter(|fault| is_possible(point, *fault)),
                None => self.by_rate(point, state.rates),
            }
        }?;
        let counter = match fault {
            Fault::Conflict => &self.conflict,
            Fault::UnknownApplied => &self.unknown_applied,
            Fault::UnknownNotApplied => &self.unknown_not_applied,
            Fault::TooOld => &self.too_old,
            Fault::Unavailable => &self.unavailable,
        };
        counter.fetch_add(1, Ordering::SeqCst);
        Some(fault)
    }

    fn by_rate(&self, point: FaultPoint, rates: FaultRates) -> Option<Fault> {
        let of_point: &[(u32, Fault)] = match point {
            FaultPoint::Begin => &[(rates.unavailable_ppm, Fault::Unavailable)],
            FaultPoint::Read => &[(rates.too_old_ppm, Fault::TooOld)],
            FaultPoint::Commit => &[
                (rates.conflict_ppm, Fault::Conflict),
                (rates.unknown_applied_ppm, Fault::UnknownApplied),
                (rates.unknown_not_applied_ppm, Fault::UnknownNotApplied),
            ],
        };
        let mut drawn = self.random.below(1_000_000);
        for (rate_ppm, fault) in of_point {
            let rate_ppm = u64::from(*rate_ppm);
            if drawn < rate_ppm {
                return Some(*fault);
            }
            drawn -= rate_ppm;
        }
        None
    }

    fn begin(&self) -> Result<(), StoreError> {
        match self.next(FaultPoint::Begin) {
            Some(_) => Err(StoreError::Unavailable(Arc::new(Injected))),
            None => Ok(()),
        }
    }

    fn read(&self) -> Result<(), StoreError> {
        match self.next(FaultPoint::Read) {
            Some(_) => Err(StoreError::TooOld),
            None => Ok(()),
        }
    }
}

fn is_possible(point: FaultPoint, fault: Fault) -> bool {
    match point {
        FaultPoint::Begin => fault == Fault::Unavailable,
        FaultPoint::Read => fault == Fault::TooOld,
        FaultPoint::Commit => true,
    }
}

struct FaultyRead<'s> {
    faults: &'s Faults,
    inner: Box<dyn ReadTransaction + 's>,
}

impl ReadTransaction for FaultyRead<'_> {
    fn get<'t>(&'t self, key: &[u8], isolation: Isolation) -> StoreFuture<'t, Option<Bytes>> {
        match self.faults.read() {
            Ok(()) => self.inner.get(key, isolation),
            Err(error) => StoreFuture::ready(Err(error)),
        }
    }

    fn get_range<'t>(&'t self, query: RangeQuery<'_>) -> StoreFuture<'t, Vec<KeyValue>> {
        match self.faults.read() {
            Ok(()) => self.inner.get_range(query),
            Err(error) => StoreFuture::ready(Err(error)),
        }
    }

    fn cache_value(&self, key: &[u8], value: &Bytes) {
        self.inner.cache_value(key, value);
    }
}

struct FaultyTransaction<'s> {
    faults: &'s Faults,
    transaction_bytes_max: usize,
    inner: Box<dyn Transaction + 's>,
}

impl ReadTransaction for FaultyTransaction<'_> {
    fn get<'t>(&'t self, key: &[u8], isolation: Isolation) -> StoreFuture<'t, Option<Bytes>> {
        match self.faults.read() {
            Ok(()) => self.inner.get(key, isolation),
            Err(error) => StoreFuture::ready(Err(error)),
        }
    }

    fn get_range<'t>(&'t self, query: RangeQuery<'_>) -> StoreFuture<'t, Vec<KeyValue>> {
        match self.faults.read() {
            Ok(()) => self.inner.get_range(query),
            Err(error) => StoreFuture::ready(Err(error)),
        }
    }

    fn cache_value(&self, key: &[u8], value: &Bytes) {
        self.inner.cache_value(key, value);
    }
}

impl Transaction for FaultyTransaction<'_> {
    fn set(&self, key: &[u8], value: &[u8]) {
        self.inner.set(key, value);
    }

    fn clear(&self, key: &[u8]) {
        self.inner.clear(key);
    }

    fn clear_range(&self, begin: &[u8], end: &[u8]) {
        self.inner.clear_range(begin, end);
    }

    fn atomic_add(&self, key: &[u8], delta: i64) {
        self.inner.atomic_add(key, delta);
    }

    fn append(&self, prefix: &[u8], values: &[Bytes]) {
        self.inner.append(prefix, values);
    }

    fn atomic_min(&self, key: &[u8], value: u64) {
        self.inner.atomic_min(key, value);
    }

    fn add_read_conflict_range(&self, begin: &[u8], end: &[u8]) {
        self.inner.add_read_conflict_range(begin, end);
    }

    fn add_conflict_unless_own(&self, section: (&[u8], &[u8]), range: (&[u8], &[u8])) -> bool {
        self.inner.add_conflict_unless_own(section, range)
    }

    fn conflict_on_own_rows(&self) {
        self.inner.conflict_on_own_rows();
    }

    fn savepoint(&self) -> Savepoint {
        self.inner.savepoint()
    }

    fn rollback(&self, savepoint: Savepoint) {
        self.inner.rollback(savepoint);
    }

    fn release(&self, savepoint: Savepoint) {
        self.inner.release(savepoint);
    }

    fn size_bytes(&self) -> usize {
        self.inner.size_bytes()
    }

    fn mutation_count(&self) -> u64 {
        self.inner.mutation_count()
    }

    fn commit<'t>(self: Box<Self>) -> StoreFuture<'t, ()>
    where
        Self: 't,
    {
        if self.inner.size_bytes() > self.transaction_bytes_max {
            return StoreFuture::ready(Err(StoreError::TooLarge));
        }
        if self.inner.mutation_count() == 0 {
            return self.inner.commit();
        }
        let error = match self.faults.next(FaultPoint::Commit) {
            None => return self.inner.commit(),
            Some(Fault::UnknownApplied) => {
                let commit = self.inner.commit();
                return StoreFuture::Pending(Box::pin(async move {
                    commit.await?;
                    Err(StoreError::UnknownResult)
                }));
            }
            Some(Fault::UnknownNotApplied) => StoreError::UnknownResult,
            Some(Fault::Conflict) => StoreError::Conflict,
            Some(Fault::TooOld) => StoreError::TooOld,
            Some(Fault::Unavailable) => StoreError::Unavailable(Arc::new(Injected)),
        };
        StoreFuture::ready(Err(error))
    }
}

impl<S: Store> Store for FaultyStore<S> {
    fn capabilities(&self) -> Capabilities {
        let inner = self.inner.capabilities();
        let transaction_bytes_max = self.transaction_bytes_max.load(Ordering::SeqCst);
        Capabilities {
            has_unknown_results: true,
            transaction_bytes_max,
            batch_bytes_soft_max: inner
                .batch_bytes_soft_max
                .min(transaction_bytes_max / BATCHES_PER_TRANSACTION),
            ..inner
        }
    }

    fn begin_read(&self) -> Result<Box<dyn ReadTransaction + '_>, StoreError> {
        self.faults.begin()?;
        Ok(Box::new(FaultyRead {
            faults: &self.faults,
            inner: self.inner.begin_read()?,
        }))
    }

    fn begin_write(&self) -> Result<Box<dyn Transaction + '_>, StoreError> {
        self.faults.begin()?;
        Ok(Box::new(FaultyTransaction {
            faults: &self.faults,
            transaction_bytes_max: self.transaction_bytes_max.load(Ordering::SeqCst),
            inner: self.inner.begin_write()?,
        }))
    }

    fn watch<'t>(&'t self, key: &[u8]) -> StoreFuture<'t, Watched> {
        match self.faults.begin() {
            Ok(()) => self.inner.watch(key),
            Err(error) => StoreFuture::ready(Err(error)),
        }
    }

    fn is_reachable(&self) -> bool {
        self.inner.is_reachable()
    }

    fn id(&self) -> Option<String> {
        self.inner.id()
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
