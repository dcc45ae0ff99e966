//! What a transaction has read.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

use super::coverage::Coverage;
use super::writes::{AtomicOp, Writes};
use crate::rules::key_after;
use crate::{Isolation, KeyValue, RangeQuery};

/// Bytes of the cache of a transaction above which it is emptied.
const CACHE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The same for a read-only transaction. Many of those are open at once.
const READING_CACHE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// A range read that continues a cached range asks for this many times the rows of the last one.
const READ_AHEAD_FACTOR: usize = 4;

/// Most rows that are read ahead.
const READ_AHEAD_ROWS_MAX: usize = 2_048;

/// Most bytes that are read ahead, estimated by the size of the rows so far.
const READ_AHEAD_BYTES_MAX: usize = 256 * 1024;

/// A range read that outlives its caller's keys.
#[derive(Debug, Clone)]
pub struct OwnedQuery {
    begin: Vec<u8>,
    end: Vec<u8>,
    limit: usize,
    reverse: bool,
    isolation: Isolation,
}

impl OwnedQuery {
    /// A copy of a query.
    pub fn new(query: &RangeQuery<'_>) -> Self {
        Self {
            begin: query.begin.to_vec(),
            end: query.end.to_vec(),
            limit: query.limit,
            reverse: query.reverse,
            isolation: query.isolation,
        }
    }

    /// The query again.
    pub fn query(&self) -> RangeQuery<'_> {
        RangeQuery {
            begin: &self.begin,
            end: &self.end,
            limit: self.limit,
            reverse: self.reverse,
            isolation: self.isolation,
        }
    }
}

/// The result of looking for rows.
pub(super) enum Lookup {
    /// All rows that were asked for.
    Found(Vec<KeyValue>),
    /// This must be read first.
    Missing(OwnedQuery),
}

/// A key that was read by itself.
pub(super) struct CachedKey {
    /// Its value in the snapshot.
    pub(super) value: Option<Bytes>,
    /// The transaction already conflicts on it.
    pub(super) has_conflict: bool,
}

/// A range whose rows are all known.
struct CachedRange {
    end: Vec<u8>,
    /// With the transaction's writes.
    rows: BTreeMap<Bytes, Bytes>,
    /// Rows that the last read at its edge asked for.
    read_ahead: usize,
}

/// What a transaction has read.
pub(super) struct ReadCache {
    keys: BTreeMap<Vec<u8>, CachedKey>,
    /// By their beginnings. They do not overlap.
    ranges: BTreeMap<Vec<u8>, CachedRange>,
    /// Ranges known to be empty in the snapshot.
    empty: Coverage,
    /// Bytes of the ranges, about.
    range_bytes: usize,
    /// Bytes of everything else, about.
    other_bytes: usize,
    /// Bytes above which it is emptied.
    bytes_max: usize,
}

impl Default for ReadCache {
    fn default() -> Self {
        Self::with_bytes_max(CACHE_BYTES_MAX)
    }
}

impl ReadCache {
    /// For a transaction that only reads.
    pub(super) fn for_reading() -> Self {
        Self::with_bytes_max(READING_CACHE_BYTES_MAX)
    }

    fn with_bytes_max(bytes_max: usize) -> Self {
        Self {
            keys: BTreeMap::new(),
            ranges: BTreeMap::new(),
            empty: Coverage::default(),
            range_bytes: 0,
            other_bytes: 0,
            bytes_max,
        }
    }

    /// Empties the cache if it is too large. Must not be called during a read, which expects what
    /// it fetched to be in the cache.
    pub(super) fn make_room(&mut self) {
        if self.range_bytes + self.other_bytes > self.bytes_max {
            *self = Self::with_bytes_max(self.bytes_max);
        }
    }

    /// Forgets the ranges, which contain the transaction's writes.
    pub(super) fn forget_ranges(&mut self) {
        self.ranges.clear();
        self.range_bytes = 0;
    }

    /// A key that was read by itself.
    pub(super) fn key_mut(&mut self, key: &[u8]) -> Option<&mut CachedKey> {
        self.keys.get_mut(key)
    }

    /// Adds a key that was read by itself.
    pub(super) fn add_key(&mut self, key: Vec<u8>, read: CachedKey) {
        self.other_bytes += key.len() + read.value.as_ref().map_or(0, Bytes::len);
        self.keys.insert(key, read);
    }

    /// The value of a key in a cached range, with the transaction's writes.
    pub(super) fn row(&self, key: &[u8]) -> Option<Option<Bytes>> {
        let (_, range) = self.range_at(key)?;
        Some(range.rows.get(key).cloned())
    }

    /// The range that a forward read from `key` begins in.
    fn range_at(&self, key: &[u8]) -> Option<(&Vec<u8>, &CachedRange)> {
        let last = self.ranges.range::<[u8], _>(up_to(key)).next_back();
        last.filter(|(_, range)| range.end.as_slice() > key)
    }

    /// The range that a backward read from `key` begins in. The read does not include `key`.
    fn range_before(&self, key: &[u8]) -> Option<(&Vec<u8>, &CachedRange)> {
        let last = self.ranges.range::<[u8], _>(before(key)).next_back();
        last.filter(|(_, range)| range.end.as_slice() >= key)
    }

    /// The range that ends at the beginning of a read.
    fn range_continued_by(&self, query: &RangeQuery<'_>) -> Option<&CachedRange> {
        if query.reverse {
            return self.ranges.get(query.end);
        }
        let last = self
            .ranges
            .range::<[u8], _>(before(query.begin))
            .next_back();
        let (_, range) = last?;
        (range.end == query.begin).then_some(range)
    }

    /// Looks for the rows of a range.
    pub(super) fn look_up(&self, query: &RangeQuery<'_>) -> Lookup {
        let mut rows = Vec::new();
        let (mut begin, mut end) = (query.begin, query.end);
        let mut read_ahead = 0;
        while begin < end && rows.len() < query.limit {
            let found = if query.reverse {
                self.range_before(end)
            } else {
                self.range_at(begin)
            };
            let Some((range_begin, range)) = found else {
                if rows.is_empty()
                    && let Some(range) = self.range_continued_by(query)
                {
                    read_ahead = range.next_read_ahead();
                }
                // Only up to the next cached range: most of that may be cleared.
                if query.reverse {
                    let previous = self.ranges.range::<[u8], _>(before(end)).next_back();
                    begin = previous.map_or(begin, |(_, other)| begin.max(&other.end));
                } else {
                    let from = (Bound::Included(begin), Bound::Excluded(end));
                    let next = self.ranges.range::<[u8], _>(from).next();
                    end = next.map_or(end, |(other, _)| other);
                }
                return Lookup::Missing(OwnedQuery {
                    begin: begin.to_vec(),
                    end: end.to_vec(),
                    limit: read_ahead.max(query.limit - rows.len()),
                    reverse: query.reverse,
                    isolation: Isolation::Snapshot,
                });
            };
            let from = begin.max(range_begin);
            let to = end.min(&range.end);
            let inside = range.rows.range::<[u8], _>(between(from, to));
            let room = query.limit - rows.len();
            if query.reverse {
                rows.extend(inside.rev().take(room).map(row));
                end = from;
            } else {
                rows.extend(inside.take(room).map(row));
                begin = to;
            }
            if rows.len() < query.limit && begin < end {
                read_ahead = range.next_read_ahead();
            }
        }
        Lookup::Found(rows)
    }

    /// Adds what a read of the snapshot has covered, and applies the transaction's writes.
    pub(super) fn add_rows(&mut self, fetch: &OwnedQuery, rows: Vec<KeyValue>, writes: &Writes) {
        let (mut begin, mut end) = (fetch.begin.clone(), fetch.end.clone());
        if let Some(last) = rows.last().filter(|_| rows.len() >= fetch.limit) {
            if fetch.reverse {
                begin = last.key.to_vec();
            } else {
                end = key_after(&last.key);
            }
        }
        if rows.len() < fetch.limit {
            // There is nothing after the last row.
            let (empty_begin, empty_end) = match rows.last() {
                None => (begin.clone(), end.clone()),
                Some(last) if fetch.reverse => (begin.clone(), last.key.to_vec()),
                Some(last) => (key_after(&last.key), end.clone()),
            };
            self.other_bytes += empty_begin.len() + empty_end.len();
            self.empty.add(&empty_begin, &empty_end);
        }
        let mut rows = rows.into_iter().map(|row| (row.key, row.value)).collect();
        writes.apply_to_rows(&begin, &end, &mut rows);
        let row_bytes = rows.iter().map(|(key, value)| key.len() + value.len());
        self.range_bytes += row_bytes.sum::<usize>();
        let read_ahead = fetch.limit;
        self.join(
            begin,
            CachedRange {
                end,
                rows,
                read_ahead,
            },
        );
    }

    /// Adds a range, and joins it with those that it touches.
    fn join(&mut self, mut begin: Vec<u8>, mut joined: CachedRange) {
        self.range_bytes += begin.len() + joined.end.len();
        // The range that reaches the beginning, if any, and those that begin up to the end.
        let touching: Vec<Vec<u8>> = self
            .ranges
            .range::<[u8], _>(up_to(&joined.end))
            .rev()
            .take_while(|(_, range)| range.end >= begin)
            .map(|(begin, _)| begin.clone())
            .collect();
        for other_begin in touching {
            if let Some(mut other) = self.ranges.remove(&other_begin) {
                if other.rows.len() > joined.rows.len() {
                    std::mem::swap(&mut other.rows, &mut joined.rows);
                }
                joined.rows.extend(other.rows);
                joined.end = joined.end.max(other.end);
                joined.read_ahead = joined.read_ahead.max(other.read_ahead);
                begin = begin.min(other_begin);
            }
        }
        self.ranges.insert(begin, joined);
    }

    fn range_mut(&mut self, key: &[u8]) -> Option<&mut CachedRange> {
        let last = self.ranges.range_mut::<[u8], _>(up_to(key)).next_back();
        let (_, range) = last?;
        (range.end.as_slice() > key).then_some(range)
    }

    /// Applies a set or a clear.
    pub(super) fn write(&mut self, key: &Bytes, value: Option<&Bytes>) {
        let Some(range) = self.range_mut(key) else {
            return;
        };
        match value {
            Some(value) => {
                range.rows.insert(key.clone(), value.clone());
                self.range_bytes += key.len() + value.len();
            }
            None => drop(range.rows.remove(key)),
        }
    }

    /// Applies an atomic operation.
    pub(super) fn apply(&mut self, key: &[u8], operation: AtomicOp) {
        if let Some(range) = self.range_mut(key) {
            let value = operation.apply_to(range.rows.get(key));
            range.rows.insert(Bytes::copy_from_slice(key), value);
        }
    }

    /// Clears a range, so that all of its rows are then known.
    pub(super) fn clear_range(&mut self, begin: &[u8], end: &[u8]) {
        if begin >= end {
            return;
        }
        for (_, range) in self
            .ranges
            .range_mut::<[u8], _>(before(end))
            .rev()
            .take_while(|(_, range)| range.end.as_slice() > begin)
        {
            let gone = range.rows.range::<[u8], _>(between(begin, end));
            let gone: Vec<Bytes> = gone.map(|(key, _)| key.clone()).collect();
            for key in gone {
                range.rows.remove(&key);
            }
        }
        let emptied = CachedRange {
            end: end.to_vec(),
            rows: BTreeMap::new(),
            read_ahead: 0,
        };
        self.join(begin.to_vec(), emptied);
    }

    /// Whether the snapshot is known to have nothing in a range.
    pub(super) fn is_empty_in_snapshot(&self, begin: &[u8], end: &[u8]) -> bool {
        self.empty.covers(begin, end)
    }

    /// Whether the transaction's reads are known to find nothing in a range.
    pub(super) fn is_empty(&self, begin: &[u8], end: &[u8]) -> bool {
        begin >= end || self.empty_until(begin).is_some_and(|until| until >= end)
    }

    /// The end of the rows that are known to be missing from `key` on.
    pub(super) fn empty_until(&self, key: &[u8]) -> Option<&[u8]> {
        let (_, range) = self.range_at(key)?;
        let from = (Bound::Included(key), Bound::Unbounded);
        let next = range.rows.range::<[u8], _>(from).next();
        Some(next.map_or(&range.end, |(key, _)| key))
    }
}

impl CachedRange {
    /// How many rows to read next at the edge of this range.
    fn next_read_ahead(&self) -> usize {
        let bytes: usize = self
            .rows
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum();
        let row_bytes = bytes / self.rows.len().max(1);
        let rows_that_fit = READ_AHEAD_BYTES_MAX / row_bytes.max(64);
        self.read_ahead
            .saturating_mul(READ_AHEAD_FACTOR)
            .min(READ_AHEAD_ROWS_MAX)
            .min(rows_that_fit)
            .max(1)
    }
}

fn row((key, value): (&Bytes, &Bytes)) -> KeyValue {
    KeyValue {
        key: key.clone(),
        value: value.clone(),
    }
}

fn up_to(key: &[u8]) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (Bound::Unbounded, Bound::Included(key))
}

fn before(key: &[u8]) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (Bound::Unbounded, Bound::Excluded(key))
}

/// A range for a `BTreeMap`, which would panic on an inverted one.
fn between<'k>(begin: &'k [u8], end: &'k [u8]) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
    (Bound::Included(begin), Bound::Excluded(end.max(begin)))
}
