//! The transaction itself: its state, its reads and writes, and what it passes to the store at the commit.

use std::cell::RefCell;
use std::collections::BTreeMap;

use bytes::Bytes;

use super::cache::{CachedKey, Lookup, OwnedQuery, ReadCache};
use super::coverage::{Coverage, Replaced};
use super::writes::{AtomicOp, Entry, Log, Mark, Undo, Writes, Written};
use crate::rules::key_after;
use crate::{
    Isolation, KeyValue, RangeQuery, ReadTransaction, Savepoint, StoreError, StoreFuture,
    Transaction,
};

/// A store's own transaction, below [`ReadYourWrites`]. It reads one snapshot. Then it gets all
/// conflicts and at least one write, and is committed. It is never read after the first write.
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
}

impl<'t> ReadYourWrites<'t> {
    /// A transaction that reads the snapshot of `inner` and commits through it.
    pub fn new(inner: Box<dyn BaseTransaction + 't>) -> Self {
        Self {
            inner,
            state: RefCell::default(),
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

/// What the transaction has done so far.
#[derive(Default)]
pub(super) struct State {
    pub(super) cache: ReadCache,
    pub(super) writes: Writes,
    /// What it conflicts on.
    pub(super) conflicts: Coverage,
    pub(super) mutation_count: u64,
    /// It also conflicts on rows that only it has set.
    conflicts_on_own_rows: bool,
    /// Conflicts that apply unless all of the transaction's own rows in a section are cleared.
    /// Indexed by the beginning of the section, which is empty in the snapshot.
    conditional: BTreeMap<Vec<u8>, Coverage>,
    /// Ranges in which the transaction cleared its own rows. The store need not clear them: the
    /// snapshot has nothing there, and no other transaction sets the same keys without a conflict.
    own_rows: Coverage,
    pub(super) log: Log,
}

impl State {
    /// A key's value, if it is known.
    pub(super) fn value(&mut self, key: &[u8], isolation: Isolation) -> Option<Option<Bytes>> {
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
    pub(super) fn rows(&mut self, query: &RangeQuery<'_>) -> Lookup {
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

    /// Records that the transaction's own rows in `range` are about to be cleared. The snapshot has
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

    pub(super) fn write(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.mutation_count += 1;
        let key = self.writes.copy(key);
        let value = value.map(|value| self.writes.copy(value));
        self.cache.write(&key, value.as_ref());
        self.writes.write(key, value, &mut self.log);
    }

    pub(super) fn apply(&mut self, key: &[u8], operation: AtomicOp) {
        self.mutation_count += 1;
        self.cache.apply(key, operation);
        self.writes.apply(key, operation, &mut self.log);
    }

    /// Opens a savepoint.
    pub(super) fn savepoint(&mut self) -> Savepoint {
        let mutation_count = self.mutation_count;
        self.log.savepoint(Mark { mutation_count })
    }

    /// Undoes the writes since a savepoint. Conflicts stay.
    pub(super) fn rollback(&mut self, savepoint: Savepoint) {
        let Self {
            log,
            writes,
            own_rows,
            conditional,
            ..
        } = self;
        let mark = log.rollback(savepoint, |undo| match undo {
            Undo::Entry(key, before) => writes.undo_entry(key, before),
            Undo::Operation(key, last) => writes.undo_operation(&key, last),
            Undo::Cleared(replaced) => writes.undo_cleared(replaced),
            Undo::Append => writes.undo_append(),
            Undo::OwnRows(replaced) => own_rows.restore(replaced),
            // Conditional conflicts that were added since stay too.
            Undo::Conditional(section, before) => {
                let ranges = conditional.entry(section).or_default();
                before
                    .iter()
                    .for_each(|(begin, end)| ranges.add(begin, end));
            }
        });
        let Some(mark) = mark else { return };
        if self.mutation_count != mark.mutation_count {
            self.mutation_count = mark.mutation_count;
            self.cache.forget_ranges();
        }
    }
}

impl State {
    /// Adds the conflicts of sections that still have own rows.
    fn add_conditional_conflicts(&mut self) {
        for ranges in std::mem::take(&mut self.conditional).values() {
            for (begin, end) in ranges.iter() {
                self.conflicts.add(begin, end);
            }
        }
    }

    /// Gives all conflicts and writes to `inner`.
    fn hand_over(&self, inner: &dyn BaseTransaction) {
        for (begin, end) in self.conflicts.iter() {
            inner.add_read_conflict_range(begin, end);
        }
        for (begin, end) in self.writes.cleared().iter() {
            inner.clear_range(begin, end);
        }
        let mut entries = self.writes.entries().peekable();
        while let Some((key, entry)) = entries.next() {
            match entry {
                Entry::Value(Some(value)) => inner.set(key, value),
                // The store does not have it, and will not have it.
                Entry::Value(None) if self.own_rows.contains(key) => {}
                Entry::Value(None) => {
                    let mut last = None;
                    if let Some(end) = self.clearable_until(key) {
                        let is_clear = |(key, entry): &(&Bytes, &Entry)| {
                            key.as_ref() < end && matches!(entry, Entry::Value(None))
                        };
                        while let Some((next, _)) = entries.next_if(is_clear) {
                            last = Some(next);
                        }
                    }
                    match last {
                        Some(last) => inner.clear_range(key, &key_after(last)),
                        None => inner.clear(key),
                    }
                }
                Entry::Atomic(operations) => {
                    for operation in operations {
                        match *operation {
                            AtomicOp::Add(delta) => inner.atomic_add(key, delta),
                            AtomicOp::Min(operand) => inner.atomic_min(key, operand),
                        }
                    }
                }
            }
        }
        for (prefix, values) in self.writes.appended() {
            inner.append(prefix, values);
        }
    }

    /// How far cleared keys from `key` on may be cleared as one range. No other row is lost: the
    /// snapshot has none in between, and if another transaction has since set one, this one
    /// conflicts.
    fn clearable_until(&self, key: &[u8]) -> Option<&[u8]> {
        let covered_until = self.conflicts.end_of(key)?;
        let empty_until = self.cache.empty_until(key)?;
        Some(covered_until.min(empty_until))
    }
}
