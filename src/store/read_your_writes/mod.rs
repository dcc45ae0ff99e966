//! Keeps a transaction's writes until its commit, and remembers what it has read, for stores
//! behind a network.
//!
//! A batch asks for the same few rows again and again: the metadata and length of a hot queue,
//! and the row at its end, one further for each pop. FoundationDB's client remembers reads and
//! lays writes over them too, but each call crosses to its network thread, into a tree that keeps
//! all its former versions. [`ReadYourWrites`] does that here, and so what is below need not: it
//! sees reads of its snapshot, and at the commit all conflicts and writes at once, with those to
//! one key made one.

mod coverage;
mod hand_over;
mod known;
pub(super) mod sizes;
mod undo;
mod writes;

use std::cell::RefCell;
use std::collections::BTreeMap;

use bytes::Bytes;

use self::coverage::{Coverage, Replaced};
use self::known::{Known, KnownKey, Looked, OwnedQuery};
use self::undo::{Log, Undo};
use self::writes::{Change, Own, Writes};
use crate::store::rules::key_after;
use crate::store::{
    Isolation, KeyValue, RangeQuery, ReadTransaction, Savepoint, StoreError, StoreFuture,
    Transaction,
};

/// A store's own transaction, below [`ReadYourWrites`]: reads of one snapshot, then all conflicts
/// and writes, then the commit. There is at least one write, and no read after the first.
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

/// A write transaction that keeps its writes and remembers its reads.
pub(super) struct ReadYourWrites<'t> {
    inner: Box<dyn BaseTransaction + 't>,
    state: RefCell<State>,
}

/// What the transaction has done so far.
#[derive(Default)]
struct State {
    known: Known,
    writes: Writes,
    /// What it conflicts on.
    conflicts: Coverage,
    mutation_count: u64,
    /// It conflicts where there is nothing but its own writes too.
    conflicts_on_own: bool,
    /// By the beginnings of sections that were empty, what was taken there and left something of the
    /// transaction's own behind: it conflicts on that unless the rest is taken too.
    taken: BTreeMap<Vec<u8>, Coverage>,
    /// Where rows were taken that only this transaction has put there: the snapshot has nothing there,
    /// and nobody else puts the same keys there without a conflict.
    own: Coverage,
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
        let seen = state.writes.own(&key).over(value.as_ref());
        let has_conflict = isolation == Isolation::Serializable;
        if has_conflict {
            state.conflicts.add(&key, &key_after(&key));
        }
        let known = KnownKey {
            value,
            has_conflict,
        };
        state.known.remember(key, known);
        Ok(seen)
    }

    async fn read_range(&self, query: OwnedQuery) -> Result<Vec<KeyValue>, StoreError> {
        loop {
            let fetch = match self.state.borrow_mut().rows(&query.query()) {
                Looked::Found(rows) => return Ok(rows),
                Looked::Missing(fetch) => fetch,
            };
            let rows = self.inner.get_range(fetch.query()).await?;
            let State { known, writes, .. } = &mut *self.state.borrow_mut();
            known.learn(&fetch, rows, writes);
        }
    }
}

impl State {
    /// A key's value, where it is known.
    fn value(&mut self, key: &[u8], isolation: Isolation) -> Option<Option<Bytes>> {
        let own = self.writes.own(key);
        // What the transaction has settled itself is nobody else's business.
        if let Own::Settled(value) = own {
            return Some(value);
        }
        let Some(known) = self.known.key_mut(key) else {
            let value = self.known.row_of_range(key)?;
            if isolation == Isolation::Serializable {
                self.conflicts.add(key, &key_after(key));
            }
            return Some(value);
        };
        if isolation == Isolation::Serializable && !known.has_conflict {
            known.has_conflict = true;
            self.conflicts.add(key, &key_after(key));
        }
        Some(own.over(known.value.as_ref()))
    }

    /// A range's rows, where they are known. A serializable read conflicts on all that it covers,
    /// the transaction's own writes included.
    fn rows(&mut self, query: &RangeQuery<'_>) -> Looked {
        let looked = self.known.look(query);
        if let (Looked::Found(rows), Isolation::Serializable) = (&looked, query.isolation) {
            match rows.last().filter(|_| rows.len() >= query.limit) {
                None => self.conflicts.add(query.begin, query.end),
                Some(last) if query.reverse => self.conflicts.add(&last.key, query.end),
                Some(last) => self.conflicts.add(query.begin, &key_after(&last.key)),
            }
        }
        looked
    }

    /// Notes that rows of a section which the snapshot has nothing in are about to be cleared.
    fn take_own(&mut self, section: (&[u8], &[u8]), taken: (&[u8], &[u8])) {
        if self.log.is_open() {
            self.own.add_logged(taken.0, taken.1, |begin, end| {
                self.log.log(Undo::Own(Replaced::new(begin, end)));
            });
        } else {
            self.own.add(taken.0, taken.1);
        }
        let is_all =
            self.known.is_empty(section.0, taken.0) && self.known.is_empty(taken.1, section.1);
        if !is_all {
            let of_section = self.taken.entry(section.0.to_vec()).or_default();
            of_section.add(taken.0, taken.1);
        } else if let Some((section, before)) = self.taken.remove_entry(section.0) {
            self.log.log(Undo::Taken(section, before));
        }
    }

    fn settle(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.mutation_count += 1;
        let key = self.writes.copy(key);
        let value = value.map(|value| self.writes.copy(value));
        self.known.settle(&key, value.as_ref());
        self.writes.settle(key, value, &mut self.log);
    }

    fn change(&mut self, key: &[u8], change: Change) {
        self.mutation_count += 1;
        self.known.change(key, change);
        self.writes.change(key, change, &mut self.log);
    }
}

impl ReadTransaction for ReadYourWrites<'_> {
    fn get<'t>(&'t self, key: &[u8], isolation: Isolation) -> StoreFuture<'t, Option<Bytes>> {
        let mut state = self.state.borrow_mut();
        state.known.make_room();
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
        state.known.make_room();
        match state.rows(&query) {
            Looked::Found(rows) => StoreFuture::ready(Ok(rows)),
            Looked::Missing(_) => {
                StoreFuture::Pending(Box::pin(self.read_range(OwnedQuery::new(&query))))
            }
        }
    }

    fn cache_value(&self, key: &[u8], value: &Bytes) {
        let known = &mut self.state.borrow_mut().known;
        if known.key_mut(key).is_none() {
            let value = KnownKey {
                value: Some(value.clone()),
                has_conflict: false,
            };
            known.remember(key.to_vec(), value);
        }
    }
}

impl Transaction for ReadYourWrites<'_> {
    fn set(&self, key: &[u8], value: &[u8]) {
        self.state.borrow_mut().settle(key, Some(value));
    }

    fn clear(&self, key: &[u8]) {
        self.state.borrow_mut().settle(key, None);
    }

    fn clear_range(&self, begin: &[u8], end: &[u8]) {
        let state = &mut *self.state.borrow_mut();
        state.mutation_count += 1;
        state.known.clear_range(begin, end);
        state.writes.clear_range(begin, end, &mut state.log);
    }

    fn atomic_add(&self, key: &[u8], delta: i64) {
        self.state.borrow_mut().change(key, Change::Add(delta));
    }

    fn append(&self, prefix: &[u8], values: &[Bytes]) {
        let state = &mut *self.state.borrow_mut();
        state.mutation_count += 1;
        state.writes.append(prefix, values, &mut state.log);
    }

    fn atomic_min(&self, key: &[u8], value: u64) {
        self.state.borrow_mut().change(key, Change::Min(value));
    }

    fn add_read_conflict_range(&self, begin: &[u8], end: &[u8]) {
        self.state.borrow_mut().conflicts.add(begin, end);
    }

    fn add_conflict_unless_own(&self, section: (&[u8], &[u8]), range: (&[u8], &[u8])) -> bool {
        let mut state = self.state.borrow_mut();
        if state.conflicts_on_own || !state.known.was_empty(section.0, section.1) {
            state.conflicts.add(range.0, range.1);
            return true;
        }
        state.take_own(section, range);
        false
    }

    fn conflict_on_own_rows(&self) {
        self.state.borrow_mut().conflicts_on_own = true;
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
        state.conflict_on_what_was_left();
        state.hand_over(self.inner.as_ref());
        self.inner.commit()
    }
}

#[cfg(test)]
mod tests;
