//! Remembers what a transaction has read, for stores whose reads are round trips.
//!
//! A batch asks for the same few rows again and again: the metadata and length of a hot queue,
//! and the row at its end, one further for each pop. FoundationDB's client remembers reads too,
//! but each still crosses to its network thread, and a range read steps over every row that the
//! transaction has cleared before it. [`ReadCache`] answers them here: single keys once read, and
//! stretches of rows that snapshot range reads have covered, which it reads ahead. Own writes go
//! into it as they are made, so it is right whoever asks; serializable range reads pass it by.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

use crate::limits::{
    READ_AHEAD_BYTES_MAX, READ_AHEAD_FACTOR, READ_AHEAD_ROWS_MAX, READ_CACHE_BYTES_MAX,
};
use crate::store::coverage::Coverage;
use crate::store::rules::{added, key_after, lowered};
use crate::store::{
    Isolation, KeyValue, RangeQuery, ReadTransaction, StoreError, StoreFuture, Transaction,
};

/// A write transaction with a memory of what it has read.
pub(super) struct ReadCache<'t> {
    inner: Box<dyn Transaction + 't>,
    cache: RefCell<Cache>,
    /// The conflicts that were added.
    conflicts: RefCell<Coverage>,
}

impl<'t> ReadCache<'t> {
    /// A transaction that reads through `inner`.
    pub(super) fn new(inner: Box<dyn Transaction + 't>) -> Self {
        Self {
            inner,
            cache: RefCell::default(),
            conflicts: RefCell::default(),
        }
    }

    async fn read_key(
        &self,
        key: Vec<u8>,
        isolation: Isolation,
    ) -> Result<Option<Bytes>, StoreError> {
        let version = self.cache.borrow().version;
        let value = self.inner.get(&key, isolation).await?;
        let mut cache = self.cache.borrow_mut();
        // A write that was made while the read was under way is newer.
        if cache.version == version {
            let known = Known {
                value: value.clone(),
                has_conflict: isolation == Isolation::Serializable,
                was_changed: false,
            };
            cache.remember(key, known);
        }
        Ok(value)
    }

    async fn read_range(&self, query: OwnedQuery) -> Result<Vec<KeyValue>, StoreError> {
        loop {
            let (fetch, version) = {
                let mut cache = self.cache.borrow_mut();
                match cache.look(&query) {
                    Looked::Found(rows) => return Ok(rows),
                    Looked::Missing(fetch) => (fetch, cache.version),
                }
            };
            let rows = self.inner.get_range(fetch.query()).await?;
            // A write that was made while the read was under way is newer.
            if self.cache.borrow().version != version {
                return self.inner.get_range(query.query()).await;
            }
            self.cache.borrow_mut().learn(&fetch, rows);
        }
    }
}

#[derive(Debug, Clone)]
struct OwnedQuery {
    begin: Vec<u8>,
    end: Vec<u8>,
    limit: usize,
    reverse: bool,
}

impl OwnedQuery {
    fn query(&self) -> RangeQuery<'_> {
        RangeQuery {
            begin: &self.begin,
            end: &self.end,
            limit: self.limit,
            reverse: self.reverse,
            isolation: Isolation::Snapshot,
        }
    }
}

enum Looked {
    Found(Vec<KeyValue>),
    Missing(OwnedQuery),
}

/// What is known of one key.
struct Known {
    value: Option<Bytes>,
    /// A serializable read of it has been made, or the transaction has written it.
    has_conflict: bool,
    /// The transaction has made an atomic operation on what a read gave.
    was_changed: bool,
}

/// A stretch of keys, all of whose rows are known.
#[derive(Default)]
struct Stretch {
    end: Vec<u8>,
    rows: BTreeMap<Bytes, Bytes>,
    /// Rows that the next read at its edge asks for.
    read_ahead: usize,
}

#[derive(Default)]
struct Cache {
    keys: BTreeMap<Vec<u8>, Known>,
    /// By their begin; they do not overlap.
    stretches: BTreeMap<Vec<u8>, Stretch>,
    bytes: usize,
    /// Grows with every write.
    version: u64,
}

impl Cache {
    fn make_room(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes > READ_CACHE_BYTES_MAX {
            self.keys.clear();
            self.stretches.clear();
            self.bytes = bytes;
        }
    }

    fn remember(&mut self, key: Vec<u8>, known: Known) {
        self.make_room(key.len() + known.value.as_ref().map_or(0, Bytes::len));
        self.keys.insert(key, known);
    }

    /// The stretch that a forward read from `key` begins in, by its begin.
    fn stretch_at(&self, key: &[u8]) -> Option<Vec<u8>> {
        let (begin, stretch) = self.stretches.range::<[u8], _>(up_to(key)).next_back()?;
        (stretch.end.as_slice() > key).then(|| begin.clone())
    }

    /// The stretch that a backward read from in front of `key` begins in, by its begin.
    fn stretch_before(&self, key: &[u8]) -> Option<Vec<u8>> {
        let before = (Bound::Unbounded, Bound::Excluded(key));
        let (begin, stretch) = self.stretches.range::<[u8], _>(before).next_back()?;
        (stretch.end.as_slice() >= key).then(|| begin.clone())
    }

    fn look(&mut self, query: &OwnedQuery) -> Looked {
        let found = if query.reverse {
            self.stretch_before(&query.end)
        } else {
            self.stretch_at(&query.begin)
        };
        let Some(stretch_begin) = found else {
            return Looked::Missing(query.clone());
        };
        let Some(stretch) = self.stretches.get_mut(&stretch_begin) else {
            return Looked::Missing(query.clone());
        };
        let begin = stretch_begin.as_slice().max(&query.begin);
        let end = stretch.end.as_slice().min(&query.end);
        let inside = stretch.rows.range::<[u8], _>(between(begin, end));
        let row = |(key, value): (&Bytes, &Bytes)| KeyValue {
            key: key.clone(),
            value: value.clone(),
        };
        let rows: Vec<KeyValue> = if query.reverse {
            inside.rev().take(query.limit).map(row).collect()
        } else {
            inside.take(query.limit).map(row).collect()
        };
        let reaches_edge = if query.reverse {
            stretch_begin.as_slice() <= query.begin.as_slice()
        } else {
            stretch.end.as_slice() >= query.end.as_slice()
        };
        if rows.len() >= query.limit || reaches_edge {
            return Looked::Found(rows);
        }
        stretch.read_ahead = stretch.next_read_ahead();
        let limit = (query.limit - rows.len()).max(stretch.read_ahead);
        let mut fetch = query.clone();
        fetch.limit = limit;
        if query.reverse {
            fetch.end = stretch_begin;
        } else {
            fetch.begin.clone_from(&stretch.end);
        }
        Looked::Missing(fetch)
    }

    /// Adds what a read has covered, together with the stretches that it touches.
    fn learn(&mut self, fetch: &OwnedQuery, rows: Vec<KeyValue>) {
        let (mut begin, mut end) = (fetch.begin.clone(), fetch.end.clone());
        if let Some(last) = rows.last().filter(|_| rows.len() >= fetch.limit) {
            if fetch.reverse {
                begin = last.key.to_vec();
            } else {
                end = key_after(&last.key);
            }
        }
        let row_bytes = rows.iter().map(|row| row.key.len() + row.value.len()).sum();
        self.make_room(row_bytes);
        let mut merged = Stretch {
            end,
            rows: rows.into_iter().map(|row| (row.key, row.value)).collect(),
            read_ahead: fetch.limit,
        };
        // Neighbours that touch: one that ends at or behind the begin, and those up to the end.
        let touching: Vec<Vec<u8>> = self
            .stretches
            .range::<[u8], _>(up_to(&merged.end))
            .rev()
            .take_while(|(_, stretch)| stretch.end.as_slice() >= begin.as_slice())
            .map(|(begin, _)| begin.clone())
            .collect();
        for other_begin in touching {
            if let Some(other) = self.stretches.remove(&other_begin) {
                merged.end = merged.end.max(other.end);
                merged.rows.extend(other.rows);
                merged.read_ahead = merged.read_ahead.max(other.read_ahead);
                begin = begin.min(other_begin);
            }
        }
        self.stretches.insert(begin, merged);
    }

    fn stretch_of(&mut self, key: &[u8]) -> Option<&mut Stretch> {
        let (_, stretch) = self
            .stretches
            .range_mut::<[u8], _>(up_to(key))
            .next_back()?;
        (stretch.end.as_slice() > key).then_some(stretch)
    }

    fn write(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.version += 1;
        if let Some(known) = self.keys.get_mut(key) {
            *known = Known {
                value: value.map(Bytes::copy_from_slice),
                has_conflict: true,
                was_changed: false,
            };
        }
        let Some(stretch) = self.stretch_of(key) else {
            return;
        };
        match value {
            Some(value) => {
                let row = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
                stretch.rows.insert(row.0, row.1);
                self.make_room(key.len() + value.len());
            }
            None => {
                stretch.rows.remove(key);
            }
        }
    }

    fn clear_range(&mut self, begin: &[u8], end: &[u8]) {
        self.version += 1;
        if begin >= end {
            return;
        }
        for (_, known) in self.keys.range_mut::<[u8], _>(between(begin, end)) {
            *known = Known {
                value: None,
                has_conflict: true,
                was_changed: false,
            };
        }
        for (_, stretch) in self
            .stretches
            .range_mut::<[u8], _>((Bound::Unbounded, Bound::Excluded(end)))
            .rev()
            .take_while(|(_, stretch)| stretch.end.as_slice() > begin)
        {
            let gone: Vec<Bytes> = stretch
                .rows
                .range::<[u8], _>(between(begin, end))
                .map(|(key, _)| key.clone())
                .collect();
            for key in gone {
                stretch.rows.remove(&key);
            }
        }
    }

    /// An atomic operation: what it makes of the value before.
    fn change(&mut self, key: &[u8], after: impl Fn(Option<&[u8]>) -> [u8; 8]) {
        self.version += 1;
        if let Some(known) = self.keys.get_mut(key) {
            let value = after(known.value.as_deref());
            known.value = Some(Bytes::copy_from_slice(&value));
            known.was_changed = true;
        }
        if let Some(stretch) = self.stretch_of(key) {
            let value = after(stretch.rows.get(key).map(AsRef::as_ref));
            let row = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(&value));
            stretch.rows.insert(row.0, row.1);
        }
    }
}

impl Stretch {
    /// More than the last time, but not more bytes than are worth it.
    fn next_read_ahead(&self) -> usize {
        let bytes: usize = self
            .rows
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum();
        let row_bytes = bytes / self.rows.len().max(1);
        let rows_that_fit = READ_AHEAD_BYTES_MAX / row_bytes.max(64);
        (self.read_ahead * READ_AHEAD_FACTOR)
            .min(READ_AHEAD_ROWS_MAX)
            .min(rows_that_fit)
            .max(1)
    }
}

fn up_to(key: &[u8]) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (Bound::Unbounded, Bound::Included(key))
}

/// A range for a `BTreeMap`, which panics where the begin is behind the end.
fn between<'k>(begin: &'k [u8], end: &'k [u8]) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
    (Bound::Included(begin), Bound::Excluded(end.max(begin)))
}

impl ReadTransaction for ReadCache<'_> {
    fn get<'t>(&'t self, key: &[u8], isolation: Isolation) -> StoreFuture<'t, Option<Bytes>> {
        let mut cache = self.cache.borrow_mut();
        if let Some(known) = cache.keys.get_mut(key) {
            if isolation == Isolation::Snapshot || known.has_conflict {
                return StoreFuture::ready(Ok(known.value.clone()));
            }
            // A conflict range skips keys that the transaction has written, so after an atomic operation
            // only a read of its own makes the conflict with what was there.
            if !known.was_changed {
                known.has_conflict = true;
                self.inner.add_read_conflict_range(key, &key_after(key));
                return StoreFuture::ready(Ok(known.value.clone()));
            }
        }
        StoreFuture::Pending(Box::pin(self.read_key(key.to_vec(), isolation)))
    }

    fn get_range<'t>(&'t self, query: RangeQuery<'_>) -> StoreFuture<'t, Vec<KeyValue>> {
        if query.isolation == Isolation::Serializable {
            return self.inner.get_range(query);
        }
        if query.limit == 0 || query.begin >= query.end {
            return StoreFuture::ready(Ok(Vec::new()));
        }
        let query = OwnedQuery {
            begin: query.begin.to_vec(),
            end: query.end.to_vec(),
            limit: query.limit,
            reverse: query.reverse,
        };
        if let Looked::Found(rows) = self.cache.borrow_mut().look(&query) {
            return StoreFuture::ready(Ok(rows));
        }
        StoreFuture::Pending(Box::pin(self.read_range(query)))
    }
}

impl Transaction for ReadCache<'_> {
    fn set(&self, key: &[u8], value: &[u8]) {
        self.inner.set(key, value);
        self.cache.borrow_mut().write(key, Some(value));
    }

    fn clear(&self, key: &[u8]) {
        self.inner.clear(key);
        self.cache.borrow_mut().write(key, None);
    }

    fn clear_range(&self, begin: &[u8], end: &[u8]) {
        self.inner.clear_range(begin, end);
        self.cache.borrow_mut().clear_range(begin, end);
    }

    fn atomic_add(&self, key: &[u8], delta: i64) {
        self.inner.atomic_add(key, delta);
        self.cache
            .borrow_mut()
            .change(key, |before| added(before, delta));
    }

    fn append(&self, prefix: &[u8], values: &[Bytes]) {
        // Keys that nobody knows before the commit.
        self.inner.append(prefix, values);
    }

    fn atomic_min(&self, key: &[u8], value: u64) {
        self.inner.atomic_min(key, value);
        self.cache
            .borrow_mut()
            .change(key, |before| lowered(before, value));
    }

    fn add_read_conflict_range(&self, begin: &[u8], end: &[u8]) {
        for (begin, end) in self.conflicts.borrow_mut().add(begin, end) {
            self.inner.add_read_conflict_range(&begin, &end);
        }
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
        self.inner.commit()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::random::{Random, SeededRandom};
    use crate::store::Store;
    use crate::store::embedded::{EmbeddedOptions, EmbeddedStore, FsyncPolicy};

    fn now<F: Future>(future: F) -> F::Output {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("the embedded store must answer at once"),
        }
    }

    fn key(random: &SeededRandom) -> Vec<u8> {
        // Few keys, some of which are prefixes of others.
        let mut key = vec![b'a' + random.below(6) as u8];
        for _ in 0..random.below(3) {
            key.push(random.below(3) as u8);
        }
        key
    }

    fn value(random: &SeededRandom) -> Vec<u8> {
        vec![random.next_u64() as u8; random.below(12) as usize]
    }

    fn isolation(random: &SeededRandom) -> Isolation {
        if random.below(2) == 0 {
            Isolation::Snapshot
        } else {
            Isolation::Serializable
        }
    }

    fn add_to(model: &mut BTreeMap<Vec<u8>, Vec<u8>>, key: Vec<u8>, delta: i64) {
        let sum = added(model.get(&key).map(Vec::as_slice), delta);
        model.insert(key, sum.to_vec());
    }

    fn rows_of(
        model: &BTreeMap<Vec<u8>, Vec<u8>>,
        begin: &[u8],
        end: &[u8],
        limit: usize,
        reverse: bool,
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        let inside = model
            .iter()
            .filter(|(key, _)| key.as_slice() >= begin && key.as_slice() < end)
            .map(|(key, value)| (key.clone(), value.clone()));
        if reverse {
            inside.rev().take(limit).collect()
        } else {
            inside.take(limit).collect()
        }
    }

    #[test]
    fn reads_are_those_of_a_map_whatever_was_read_and_written_before() {
        for seed in 0..300 {
            let random = SeededRandom::new(seed);
            let folder = tempfile::tempdir().unwrap();
            let options = EmbeddedOptions {
                fsync: FsyncPolicy::EverySecond,
                map_bytes: 16 << 20,
            };
            let store = EmbeddedStore::open(folder.path(), options).unwrap();
            let mut model = BTreeMap::new();
            let before = store.begin_write().unwrap();
            for _ in 0..random.below(40) {
                let (key, value) = (key(&random), value(&random));
                before.set(&key, &value);
                model.insert(key, value);
            }
            now(before.commit()).unwrap();
            let transaction = ReadCache::new(store.begin_write().unwrap());
            for step in 0..150 {
                let (first, second) = (key(&random), key(&random));
                match random.below(10) {
                    9 => {
                        let operand = random.next_u64();
                        transaction.atomic_min(&first, operand);
                        let least = lowered(model.get(&first).map(Vec::as_slice), operand);
                        model.insert(first, least.to_vec());
                    }
                    0 => {
                        let value = value(&random);
                        transaction.set(&first, &value);
                        model.insert(first, value);
                    }
                    1 => {
                        transaction.clear(&first);
                        model.remove(&first);
                    }
                    2 if random.below(4) == 0 => {
                        transaction.clear_range(&first, &second);
                        model.retain(|key, _| *key < first || *key >= second);
                    }
                    3 => {
                        let delta = random.below(9) as i64 - 4;
                        transaction.atomic_add(&first, delta);
                        add_to(&mut model, first, delta);
                    }
                    4 => {
                        let read = now(transaction.get(&first, isolation(&random))).unwrap();
                        let read = read.map(|value| value.to_vec());
                        assert_eq!(read, model.get(&first).cloned(), "seed {seed} step {step}");
                    }
                    _ => {
                        let limit = 1 + random.below(5) as usize;
                        let reverse = random.below(2) == 0;
                        let query = RangeQuery {
                            begin: &first,
                            end: &second,
                            limit,
                            reverse,
                            isolation: isolation(&random),
                        };
                        let read: Vec<_> = now(transaction.get_range(query))
                            .unwrap()
                            .into_iter()
                            .map(|row| (row.key.to_vec(), row.value.to_vec()))
                            .collect();
                        let expected = rows_of(&model, &first, &second, limit, reverse);
                        assert_eq!(read, expected, "seed {seed} step {step}");
                    }
                }
            }
        }
    }
}
