//! A transaction over one of the store's own.

use std::cell::RefCell;

use bytes::Bytes;

use super::cache::{CachedKey, Lookup, OwnedQuery, ReadCache};
use super::entry::AtomicOp;
use super::notes::Notes;
use super::state::State;
use crate::rules::key_after;
use crate::{
    Isolation, KeyValue, NotedRead, RangeQuery, ReadTransaction, Savepoint, StoreError,
    StoreFuture, Transaction,
};

/// A store's own transaction, below [`ReadYourWrites`]. It reads one snapshot. Then it gets all
/// conflicts and at least one write, and is committed. There is no read after the first write.
pub trait BaseTransaction {
    /// The value of one key in the snapshot. Conflicts with nothing.
    fn get<'t>(&'t self, key: &[u8]) -> StoreFuture<'t, Option<Bytes>>;

    /// The rows of a range in the snapshot. The query's isolation is always
    /// [`Isolation::Snapshot`].
    fn get_range<'t>(&'t self, query: RangeQuery<'_>) -> StoreFuture<'t, Vec<KeyValue>>;

    /// As [`Transaction::add_read_conflict_range`].
    fn add_read_conflict_range(&self, begin: &[u8], end: &[u8]);

    /// As [`Transaction::set`].
    fn set(&self, key: &[u8], value: &[u8]);

    /// As [`Transaction::clear`].
    fn clear(&self, key: &[u8]);

    /// As [`Transaction::clear_range`].
    fn clear_range(&self, begin: &[u8], end: &[u8]);

    /// As [`Transaction::atomic_add`].
    fn atomic_add(&self, key: &[u8], delta: i64);

    /// As [`Transaction::atomic_min`].
    fn atomic_min(&self, key: &[u8], value: u64);

    /// As [`Transaction::append`].
    fn append(&self, prefix: &[u8], values: &[Bytes]);

    /// As [`Transaction::commit`].
    fn commit<'t>(self: Box<Self>) -> StoreFuture<'t, ()>
    where
        Self: 't;
}

/// A transaction that keeps its writes and caches its reads.
pub struct ReadYourWrites<'t> {
    inner: Box<dyn BaseTransaction + 't>,
    state: RefCell<State>,
    notes: Notes,
}

impl<'t> ReadYourWrites<'t> {
    /// A transaction that reads the snapshot of `inner` and commits through it.
    pub fn new(inner: Box<dyn BaseTransaction + 't>) -> Self {
        Self {
            inner,
            state: RefCell::default(),
            notes: Notes::default(),
        }
    }

    /// The same for a transaction that only reads and never commits.
    pub fn for_reading(inner: Box<dyn BaseTransaction + 't>) -> Self {
        let transaction = Self::new(inner);
        transaction.state.borrow_mut().cache = ReadCache::for_reading();
        transaction
    }

    async fn read_key(
        &self,
        key: Vec<u8>,
        isolation: Isolation,
    ) -> Result<Option<Bytes>, StoreError> {
        let value = self.inner.get(&key).await?;
        let mut state = self.state.borrow_mut();
        let seen = state.writes.written(&key).apply_to(value.as_ref());
        let has_conflict = isolation == Isolation::Serializable;
        if has_conflict {
            state.conflicts.add(&key, &key_after(&key));
        }
        let read = CachedKey {
            value,
            has_conflict,
        };
        state.cache.add_key(key, read);
        Ok(seen)
    }

    async fn read_range(&self, query: OwnedQuery) -> Result<Vec<KeyValue>, StoreError> {
        loop {
            let fetch = match self.state.borrow_mut().rows(&query.query()) {
                Lookup::Found(rows) => return Ok(rows),
                Lookup::Missing(fetch) => fetch,
            };
            let rows = self.inner.get_range(fetch.query()).await?;
            let State { cache, writes, .. } = &mut *self.state.borrow_mut();
            cache.add_rows(&fetch, rows, writes);
        }
    }
}

impl ReadTransaction for ReadYourWrites<'_> {
    fn get<'t>(&'t self, key: &[u8], isolation: Isolation) -> StoreFuture<'t, Option<Bytes>> {
        self.notes.note_key(key);
        let mut state = self.state.borrow_mut();
        state.cache.make_room();
        match state.value(key, isolation) {
            Some(value) => StoreFuture::ready(Ok(value)),
            None => StoreFuture::Pending(Box::pin(self.read_key(key.to_vec(), isolation))),
        }
    }

    fn get_range<'t>(&'t self, query: RangeQuery<'_>) -> StoreFuture<'t, Vec<KeyValue>> {
        if query.limit == 0 || query.begin >= query.end {
            return StoreFuture::ready(Ok(Vec::new()));
        }
        self.notes.note_range(&query);
        let mut state = self.state.borrow_mut();
        state.cache.make_room();
        match state.rows(&query) {
            Lookup::Found(rows) => StoreFuture::ready(Ok(rows)),
            Lookup::Missing(_) => {
                StoreFuture::Pending(Box::pin(self.read_range(OwnedQuery::new(&query))))
            }
        }
    }

    fn cache_value(&self, key: &[u8], value: &Bytes) {
        let cache = &mut self.state.borrow_mut().cache;
        if cache.key_mut(key).is_none() {
            let value = CachedKey {
                value: Some(value.clone()),
                has_conflict: false,
            };
            cache.add_key(key.to_vec(), value);
        }
    }
}

impl Transaction for ReadYourWrites<'_> {
    fn set(&self, key: &[u8], value: &[u8]) {
        self.state.borrow_mut().write(key, Some(value));
    }

    fn clear(&self, key: &[u8]) {
        self.state.borrow_mut().write(key, None);
    }

    fn clear_range(&self, begin: &[u8], end: &[u8]) {
        let state = &mut *self.state.borrow_mut();
        state.mutation_count += 1;
        state.cache.clear_range(begin, end);
        state.writes.clear_range(begin, end, &mut state.log);
    }

    fn atomic_add(&self, key: &[u8], delta: i64) {
        self.state.borrow_mut().apply(key, AtomicOp::Add(delta));
    }

    fn append(&self, prefix: &[u8], values: &[Bytes]) {
        let state = &mut *self.state.borrow_mut();
        state.mutation_count += 1;
        state.writes.append(prefix, values, &mut state.log);
    }

    fn atomic_min(&self, key: &[u8], value: u64) {
        self.state.borrow_mut().apply(key, AtomicOp::Min(value));
    }

    fn add_read_conflict_range(&self, begin: &[u8], end: &[u8]) {
        self.state.borrow_mut().conflicts.add(begin, end);
    }

    fn add_conflict_unless_own(&self, section: (&[u8], &[u8]), range: (&[u8], &[u8])) -> bool {
        let mut state = self.state.borrow_mut();
        if state.conflicts_on_own_rows || !state.cache.is_empty_in_snapshot(section.0, section.1) {
            state.conflicts.add(range.0, range.1);
            return true;
        }
        state.note_own_rows(section, range);
        false
    }

    fn conflict_on_own_rows(&self) {
        self.state.borrow_mut().conflicts_on_own_rows = true;
    }

    fn note_reads(&self, max: usize) {
        self.notes.begin(max);
    }

    fn take_noted_reads(&self) -> Vec<NotedRead> {
        self.notes.take()
    }

    fn savepoint(&self) -> Savepoint {
        self.state.borrow_mut().savepoint()
    }

    fn rollback(&self, savepoint: Savepoint) {
        self.state.borrow_mut().rollback(savepoint);
    }

    fn release(&self, savepoint: Savepoint) {
        self.state.borrow_mut().log.release(savepoint);
    }

    fn size_bytes(&self) -> usize {
        let state = self.state.borrow();
        state.writes.size_bytes() + state.conflicts.bytes()
    }

    fn mutation_count(&self) -> u64 {
        self.state.borrow().mutation_count
    }

    fn commit<'t>(self: Box<Self>) -> StoreFuture<'t, ()>
    where
        Self: 't,
    {
        let mut state = self.state.into_inner();
        if state.mutation_count == 0 {
            return StoreFuture::ready(Ok(()));
        }
        state.add_conditional_conflicts();
        state.hand_over(self.inner.as_ref());
        self.inner.commit()
    }
}
