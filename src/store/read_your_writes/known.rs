//! What a transaction knows of the store's rows.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

use super::coverage::Coverage;
use super::writes::{Change, Writes};
use crate::store::rules::key_after;
use crate::store::{Isolation, KeyValue, RangeQuery};

/// Bytes that a transaction remembers of what it has read; beyond, it forgets all and begins anew.
const CACHE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Each range read at the edge of what is known asks for so many times the rows of the last.
const READ_AHEAD_FACTOR: usize = 4;
/// Rows that are read ahead at most.
const READ_AHEAD_ROWS_MAX: usize = 2_048;
/// Bytes that are read ahead at most, by the size of the rows so far.
const READ_AHEAD_BYTES_MAX: usize = 256 * 1024;

/// A range read that outlives its caller's keys.
#[derive(Debug, Clone)]
pub(super) struct OwnedQuery {
    begin: Vec<u8>,
    end: Vec<u8>,
    limit: usize,
    reverse: bool,
    isolation: Isolation,
}

impl OwnedQuery {
    pub(super) fn new(query: &RangeQuery<'_>) -> Self {
        Self {
            begin: query.begin.to_vec(),
            end: query.end.to_vec(),
            limit: query.limit,
            reverse: query.reverse,
            isolation: query.isolation,
        }
    }

    pub(super) fn query(&self) -> RangeQuery<'_> {
        RangeQuery {
            begin: &self.begin,
            end: &self.end,
            limit: self.limit,
            reverse: self.reverse,
            isolation: self.isolation,
        }
    }
}

/// What came of looking for rows.
pub(super) enum Looked {
    /// All that were asked for.
    Found(Vec<KeyValue>),
    /// This must be read first.
    Missing(OwnedQuery),
}

/// A key that was read by itself, as it is in the snapshot.
pub(super) struct KnownKey {
    pub(super) value: Option<Bytes>,
    /// The transaction conflicts on it already.
    pub(super) has_conflict: bool,
}

/// A stretch of keys, all of whose rows are known as the transaction's reads see them.
struct Stretch {
    end: Vec<u8>,
    rows: BTreeMap<Bytes, Bytes>,
    /// Rows that the last read at its edge asked for.
    read_ahead: usize,
}

/// What reads have told.
#[derive(Default)]
pub(super) struct Known {
    keys: BTreeMap<Vec<u8>, KnownKey>,
    /// By their begin; they do not overlap.
    stretches: BTreeMap<Vec<u8>, Stretch>,
    /// Where the snapshot has nothing, as far as whole reads have told.
    empty: Coverage,
    /// Bytes of the stretches, about.
    stretch_bytes: usize,
    /// Bytes of everything else, about.
    other_bytes: usize,
}

impl Known {
    /// Forgets everything where it has become too much. Not while a read goes on: what it has
    /// asked for must still be there when it looks again.
    pub(super) fn make_room(&mut self) {
        if self.stretch_bytes + self.other_bytes > CACHE_BYTES_MAX {
            *self = Self::default();
        }
    }

    /// Forgets the rows of ranges, which are as the transaction's reads saw them.
    pub(super) fn forget_ranges(&mut self) {
        self.stretches.clear();
        self.stretch_bytes = 0;
    }

    /// What is known of a key that was read by itself.
    pub(super) fn key_mut(&mut self, key: &[u8]) -> Option<&mut KnownKey> {
        self.keys.get_mut(key)
    }

    /// Remembers a key that was read by itself.
    pub(super) fn remember(&mut self, key: Vec<u8>, known: KnownKey) {
        self.other_bytes += key.len() + known.value.as_ref().map_or(0, Bytes::len);
        self.keys.insert(key, known);
    }

    /// What the transaction's reads see at a key that was read as part of a range.
    pub(super) fn row_of_range(&self, key: &[u8]) -> Option<Option<Bytes>> {
        let (_, stretch) = self.stretch_at(key)?;
        Some(stretch.rows.get(key).cloned())
    }

    /// The stretch that a forward read from `key` begins in.
    fn stretch_at(&self, key: &[u8]) -> Option<(&Vec<u8>, &Stretch)> {
        let last = self.stretches.range::<[u8], _>(up_to(key)).next_back();
        last.filter(|(_, stretch)| stretch.end.as_slice() > key)
    }

    /// The stretch that a backward read from in front of `key` begins in.
    fn stretch_before(&self, key: &[u8]) -> Option<(&Vec<u8>, &Stretch)> {
        let last = self.stretches.range::<[u8], _>(before(key)).next_back();
        last.filter(|(_, stretch)| stretch.end.as_slice() >= key)
    }

    /// Looks for the rows of a range.
    pub(super) fn look(&self, query: &RangeQuery<'_>) -> Looked {
        let mut rows = Vec::new();
        let (mut begin, mut end) = (query.begin, query.end);
        let mut read_ahead = 0;
        while begin < end && rows.len() < query.limit {
            let found = if query.reverse {
                self.stretch_before(end)
            } else {
                self.stretch_at(begin)
            };
            let Some((stretch_begin, stretch)) = found else {
                // Not what is known farther on: most of it may be cleared.
                if query.reverse {
                    let behind = self.stretches.range::<[u8], _>(before(end)).next_back();
                    begin = behind.map_or(begin, |(_, other)| begin.max(&other.end));
                } else {
                    let from = (Bound::Included(begin), Bound::Excluded(end));
                    let ahead = self.stretches.range::<[u8], _>(from).next();
                    end = ahead.map_or(end, |(other, _)| other);
                }
                return Looked::Missing(OwnedQuery {
                    begin: begin.to_vec(),
                    end: end.to_vec(),
                    limit: read_ahead.max(query.limit - rows.len()),
                    reverse: query.reverse,
                    isolation: Isolation::Snapshot,
                });
            };
            let from = begin.max(stretch_begin);
            let to = end.min(&stretch.end);
            let inside = stretch.rows.range::<[u8], _>(between(from, to));
            let room = query.limit - rows.len();
            if query.reverse {
                rows.extend(inside.rev().take(room).map(row));
                end = from;
            } else {
                rows.extend(inside.take(room).map(row));
                begin = to;
            }
            if rows.len() < query.limit && begin < end {
                read_ahead = stretch.next_read_ahead();
            }
        }
        Looked::Found(rows)
    }

    /// Adds what a read of the snapshot has covered, as it is under the transaction's writes.
    pub(super) fn learn(&mut self, fetch: &OwnedQuery, rows: Vec<KeyValue>, writes: &Writes) {
        let (mut begin, mut end) = (fetch.begin.clone(), fetch.end.clone());
        if let Some(last) = rows.last().filter(|_| rows.len() >= fetch.limit) {
            if fetch.reverse {
                begin = last.key.to_vec();
            } else {
                end = key_after(&last.key);
            }
        }
        if rows.len() < fetch.limit {
            // Behind the last there is nothing.
            let (empty_begin, empty_end) = match rows.last() {
                None => (begin.clone(), end.clone()),
                Some(last) if fetch.reverse => (begin.clone(), last.key.to_vec()),
                Some(last) => (key_after(&last.key), end.clone()),
            };
            self.other_bytes += empty_begin.len() + empty_end.len();
            self.empty.add(&empty_begin, &empty_end);
        }
        let mut rows = rows.into_iter().map(|row| (row.key, row.value)).collect();
        writes.lay_over(&begin, &end, &mut rows);
        let row_bytes = rows.iter().map(|(key, value)| key.len() + value.len());
        self.stretch_bytes += row_bytes.sum::<usize>();
        let read_ahead = fetch.limit;
        self.join(
            begin,
            Stretch {
                end,
                rows,
                read_ahead,
            },
        );
    }

    /// Adds a stretch, together with those that it touches.
    fn join(&mut self, mut begin: Vec<u8>, mut joined: Stretch) {
        self.stretch_bytes += begin.len() + joined.end.len();
        // Neighbours that touch: one that ends at or behind the begin, and those up to the end.
        let touching: Vec<Vec<u8>> = self
            .stretches
            .range::<[u8], _>(up_to(&joined.end))
            .rev()
            .take_while(|(_, stretch)| stretch.end >= begin)
            .map(|(begin, _)| begin.clone())
            .collect();
        for other_begin in touching {
            if let Some(mut other) = self.stretches.remove(&other_begin) {
                if other.rows.len() > joined.rows.len() {
                    std::mem::swap(&mut other.rows, &mut joined.rows);
                }
                joined.rows.extend(other.rows);
                joined.end = joined.end.max(other.end);
                joined.read_ahead = joined.read_ahead.max(other.read_ahead);
                begin = begin.min(other_begin);
            }
        }
        self.stretches.insert(begin, joined);
    }

    fn stretch_of(&mut self, key: &[u8]) -> Option<&mut Stretch> {
        let last = self.stretches.range_mut::<[u8], _>(up_to(key)).next_back();
        let (_, stretch) = last?;
        (stretch.end.as_slice() > key).then_some(stretch)
    }

    /// Sees that the transaction has set or cleared a key.
    pub(super) fn settle(&mut self, key: &Bytes, value: Option<&Bytes>) {
        let Some(stretch) = self.stretch_of(key) else {
            return;
        };
        match value {
            Some(value) => {
                stretch.rows.insert(key.clone(), value.clone());
                self.stretch_bytes += key.len() + value.len();
            }
            None => drop(stretch.rows.remove(key)),
        }
    }

    /// Sees that the transaction has done an atomic operation.
    pub(super) fn change(&mut self, key: &[u8], change: Change) {
        if let Some(stretch) = self.stretch_of(key) {
            let value = change.of(stretch.rows.get(key));
            stretch.rows.insert(Bytes::copy_from_slice(key), value);
        }
    }

    /// Sees that the transaction has cleared a range: there is nothing to read in it any more.
    pub(super) fn clear_range(&mut self, begin: &[u8], end: &[u8]) {
        if begin >= end {
            return;
        }
        for (_, stretch) in self
            .stretches
            .range_mut::<[u8], _>(before(end))
            .rev()
            .take_while(|(_, stretch)| stretch.end.as_slice() > begin)
        {
            let gone = stretch.rows.range::<[u8], _>(between(begin, end));
            let gone: Vec<Bytes> = gone.map(|(key, _)| key.clone()).collect();
            for key in gone {
                stretch.rows.remove(&key);
            }
        }
        let emptied = Stretch {
            end: end.to_vec(),
            rows: BTreeMap::new(),
            read_ahead: 0,
        };
        self.join(begin.to_vec(), emptied);
    }

    /// Whether the snapshot is known to have nothing in a range.
    pub(super) fn was_empty(&self, begin: &[u8], end: &[u8]) -> bool {
        self.empty.covers(begin, end)
    }

    /// Whether the transaction's reads would certainly find nothing in a range.
    pub(super) fn is_empty(&self, begin: &[u8], end: &[u8]) -> bool {
        begin >= end || self.empty_until(begin).is_some_and(|until| until >= end)
    }

    /// Up to where there is certainly no row from `key` on.
    pub(super) fn empty_until(&self, key: &[u8]) -> Option<&[u8]> {
        let (_, stretch) = self.stretch_at(key)?;
        let from = (Bound::Included(key), Bound::Unbounded);
        let next = stretch.rows.range::<[u8], _>(from).next();
        Some(next.map_or(&stretch.end, |(key, _)| key))
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

/// A range for a `BTreeMap`, which panics where the begin is behind the end.
fn between<'k>(begin: &'k [u8], end: &'k [u8]) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
    (Bound::Included(begin), Bound::Excluded(end.max(begin)))
}
