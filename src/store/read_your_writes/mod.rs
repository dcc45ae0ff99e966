//! Keeps a transaction's writes until its commit and caches its reads, for stores on a network.
//!
//! A batch reads the same few rows repeatedly: the metadata and length of a hot queue, and the
//! rows at its end. FoundationDB's client caches reads and applies writes to them too. But each
//! call crosses to its network thread, into a tree that keeps all former versions.
//! [`ReadYourWrites`] does it on this side. The transaction below it only reads its snapshot. At
//! the commit it gets all conflicts and writes at once, with the writes to one key combined.

mod cache;
mod coverage;
mod hand_over;
pub(super) mod sizes;
mod undo;
mod writes;

use std::cell::RefCell;
use std::collections::BTreeMap;

use bytes::Bytes;

use self::cache::{CachedKey, Lookup, OwnedQuery, ReadCache};
use self::coverage::{Coverage, Replaced};
use self::undo::{Log, Undo};
use self::writes::{AtomicOp, Writes, Written};
use crate::store::rules::key_after;
use crate::store::{
    Isolation, KeyValue, RangeQuery, ReadTransaction, Savepoint, StoreError, StoreFuture,
    Transaction,
};

/// A store's own transaction, below [`ReadYourWrites`]. It reads one snapshot. Then it gets all
/// conflicts and at least one write, and is committed. There is no read after the first write.
pub(super) trait BaseTransaction {
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

/// A write transaction that keeps its writes and caches its reads.
pub(super) struct ReadYourWrites<'t> {
    inner: Box<dyn BaseTransaction + 't>,
    state: RefCell<State>,
}

/// What the transaction has done so far.
#[derive(Default)]
struct State {
    cache: ReadCache,
    writes: Writes,
    /// What it conflicts on.
    conflicts: Coverage,
    mutation_count: u64,
    /// It also conflicts on rows that only it has set.
    conflicts_on_own_rows: bool,
    /// Conflicts that apply unless all of the transaction's own rows in a section are cleared. By
    /// the beginning of the section, which the snapshot has nothing in.
    conditional: BTreeMap<Vec<u8>, Coverage>,
    /// Ranges in which the transaction cleared its own rows. They need no clear in the store: the
    /// snapshot has nothing there, and no other transaction sets the same keys without a conflict.
    own_rows: Coverage,
    log: Log,
}

impl<'t> ReadYourWrites<'t> {
    /// A transaction that reads the snapshot of `inner` and commits through it.
    pub(super) fn new(inner: Box<dyn BaseTransaction + 't>) -> Self {
        Self {
            inner,
            state: RefCell::default(),
        }
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

impl State {
    /// A key's value, if it is known.
    fn value(&mut self, key: &[u8], isolation: Isolation) -> Option<Option<Bytes>> {
        let written = self.writes.written(key);
        // A value that the transaction has written itself depends on no other transaction.
        if let Written::Value(value) = written {
            return Some(value);
        }
        let Some(read) = self.cache.key_mut(key) else {
            let value = self.cache.row(key)?;
            if isolation == Isolation::Serializable {
                self.conflicts.add(key, &key_after(key));
            }
            return Some(value);
        };
        if isolation == Isolation::Serializable && !read.has_conflict {
            read.has_conflict = true;
            self.conflicts.add(key, &key_after(key));
        }
        Some(written.apply_to(read.value.as_ref()))
    }

    /// A range's rows, if they are known. A serializable read conflicts on all that it covers,
    /// including the transaction's own writes.
    fn rows(&mut self, query: &RangeQuery<'_>) -> Lookup {
        let lookup = self.cache.look_up(query);
        if let (Lookup::Found(rows), Isolation::Serializable) = (&lookup, query.isolation) {
            match rows.last().filter(|_| rows.len() >= query.limit) {
                None => self.conflicts.add(query.begin, query.end),
                Some(last) if query.reverse => self.conflicts.add(&last.key, query.end),
                Some(last) => self.conflicts.add(query.begin, &key_after(&last.key)),
            }
        }
        lookup
    }

    /// Notes that the transaction's own rows in `range` are about to be cleared. The snapshot has
    /// nothing in the section.
    fn note_own_rows(&mut self, section: (&[u8], &[u8]), range: (&[u8], &[u8])) {
        if self.log.is_open() {
            self.own_rows.add_logged(range.0, range.1, |begin, end| {
                self.log.log(Undo::OwnRows(Replaced::new(begin, end)));
            });
        } else {
            self.own_rows.add(range.0, range.1);
        }
        let is_all =
            self.cache.is_empty(section.0, range.0) && self.cache.is_empty(range.1, section.1);
        if !is_all {
            let of_section = self.conditional.entry(section.0.to_vec()).or_default();
            of_section.add(range.0, range.1);
        } else if let Some((section, before)) = self.conditional.remove_entry(section.0) {
            self.log.log(Undo::Conditional(section, before));
        }
    }

    fn write(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.mutation_count += 1;
        let key = self.writes.copy(key);
        let value = value.map(|value| self.writes.copy(value));
        self.cache.write(&key, value.as_ref());
        self.writes.write(key, value, &mut self.log);
    }

    fn apply(&mut self, key: &[u8], operation: AtomicOp) {
        self.mutation_count += 1;
        self.cache.apply(key, operation);
        self.writes.apply(key, operation, &mut self.log);
    }
}

impl ReadTransaction for ReadYourWrites<'_> {
    fn get<'t>(&'t self, key: &[u8], isolation: Isolation) -> StoreFuture<'t, Option<Bytes>> {
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

#[cfg(test)]
mod tests;
