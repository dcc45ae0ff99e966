//! Caches what a transaction reads from its snapshot, beneath its own writes.
//!
//! The commands of a batch read the same few rows again and again: a key's metadata, its length,
//! the row at one end of a queue and, after a pop, the next row. The snapshot does not change while
//! the transaction is open, so a cached row stays valid whatever the transaction writes or undoes.
//!
//! A row is cached when it is read a second time. In a batch with as many queues as commands,
//! caching it earlier would cost time for nothing. The last key without a value is cached at once:
//! a command that finds no key often creates it and then looks it up again.

use bytes::Bytes;

use super::key_hash::hash_of;
use super::merge::View;
use quoin_store::{Isolation, KeyValue, RangeQuery, StoreError, page};

/// Number of cached values.
const SLOTS: usize = 32;
/// Number of first reads that are remembered, to recognize second ones.
const SEEN: usize = 64;
/// Maximum bytes of a cached key and its value.
const SLOT_BYTES_MAX: usize = 512;
/// Number of cached range reads.
const WINDOWS: usize = 4;
/// Maximum number of rows that one read fetches ahead. Each read that continues the previous one
/// fetches more.
const WINDOW_ROWS_MAX: usize = 64;
const WINDOW_GROWTH: usize = 4;
/// A read stops fetching ahead after this many bytes of rows.
const WINDOW_BYTES_MAX: usize = 16 * 1024;

/// Cached rows of one snapshot.
#[derive(Debug, Default)]
pub(super) struct SnapshotCache {
    /// A key's slot is chosen by its hash.
    slots: Vec<Slot>,
    /// The last key that was found to have no value and is in no slot.
    missing: Slot,
    windows: Vec<Window>,
    /// Index of the window used last.
    latest: usize,
    /// Hashes of keys and of range bounds that were read.
    seen: Vec<u64>,
}

#[derive(Debug, Default)]
struct Slot {
    /// Hash of the key.
    hash: u64,
    /// Empty if the slot is empty: no row has an empty key.
    key: Vec<u8>,
    value: Option<Bytes>,
}

impl Slot {
    fn clear(&mut self) {
        self.key.clear();
        self.value = None;
    }

    fn has(&self, hash: u64, key: &[u8]) -> bool {
        self.hash == hash && self.key == key && !key.is_empty()
    }

    fn fill(&mut self, hash: u64, key: &[u8], value: &Option<Bytes>) {
        self.hash = hash;
        self.key.clear();
        self.key.extend_from_slice(key);
        self.value.clone_from(value);
    }
}

/// A part of the snapshot: all its rows from an edge on.
#[derive(Debug, Default)]
struct Window {
    reverse: bool,
    /// Where the read began: the inclusive beginning of its range or, in reverse, the exclusive
    /// end.
    edge: Vec<u8>,
    /// The other edge. If the window `is_complete`, there are no rows between `rows` and this edge.
    bound: Vec<u8>,
    is_complete: bool,
    /// In read order.
    rows: Vec<KeyValue>,
    /// Index of the row found last.
    at: usize,
}

/// What a window knows about a read.
enum Found {
    Row(KeyValue),
    NoRow,
    /// Nothing, but the read would continue the window.
    Continues,
    /// Nothing: the read is elsewhere.
    Elsewhere,
}

impl SnapshotCache {
    /// Empties the cache for another snapshot, but keeps its memory.
    pub(super) fn reset(&mut self) {
        self.slots.resize_with(SLOTS, Slot::default);
        self.windows.resize_with(WINDOWS, Window::default);
        self.seen.clear();
        self.seen.resize(SEEN, 0);
        for slot in self.slots.iter_mut().chain([&mut self.missing]) {
            slot.clear();
        }
        for window in &mut self.windows {
            window.is_complete = false;
            window.edge.clear();
            window.rows.clear();
        }
    }

    /// The value of a key in the snapshot.
    pub(super) fn value(
        &mut self,
        snapshot: &View<'_>,
        key: &[u8],
    ) -> Result<Option<Bytes>, StoreError> {
        let hash = hash_of(key);
        let slot = self.slots.get_mut(hash as usize % SLOTS);
        for known in slot.as_deref().into_iter().chain([&self.missing]) {
            if known.has(hash, key) {
                return Ok(known.value.clone());
            }
        }
        let value = snapshot.get(key)?.map(Bytes::copy_from_slice);
        let bytes = key.len() + value.as_ref().map_or(0, Bytes::len);
        if bytes <= SLOT_BYTES_MAX {
            match slot {
                Some(slot) if was_seen(&mut self.seen, hash) => slot.fill(hash, key, &value),
                _ if value.is_none() => self.missing.fill(hash, key, &value),
                _ => {}
            }
        }
        Ok(value)
    }

    /// The first row at or after `edge` and before `bound`. In reverse, the last row before `edge`
    /// and at or after `bound`.
    pub(super) fn row(
        &mut self,
        snapshot: &View<'_>,
        edge: &[u8],
        bound: &[u8],
        reverse: bool,
    ) -> Result<Option<KeyValue>, StoreError> {
        let (begin, end) = if reverse {
            (bound, edge)
        } else {
            (edge, bound)
        };
        if !was_seen(&mut self.seen, hash_of(bound) ^ u64::from(reverse)) {
            let query = query(begin, end, 1, reverse);
            return Ok(snapshot.get_range(&query)?.pop());
        }
        let mut to_fill = (self.latest + 1) % WINDOWS;
        let mut rows_max = 1;
        for turn in 0..WINDOWS {
            let at = (self.latest + turn) % WINDOWS;
            let Some(window) = self.windows.get_mut(at) else {
                continue;
            };
            match window.find(edge, bound, reverse) {
                Found::Elsewhere => continue,
                Found::Continues => {
                    to_fill = at;
                    rows_max = (window.rows.len() * WINDOW_GROWTH).min(WINDOW_ROWS_MAX);
                    break;
                }
                Found::Row(row) => {
                    self.latest = at;
                    return Ok(Some(row));
                }
                Found::NoRow => {
                    self.latest = at;
                    return Ok(None);
                }
            }
        }
        self.latest = to_fill;
        let Some(window) = self.windows.get_mut(to_fill) else {
            return Ok(None);
        };
        window.fill(snapshot, edge, bound, reverse, rows_max)?;
        Ok(window.rows.first().cloned())
    }
}

/// Notes a read, and returns whether it was noted before. Reads with equal hashes count as the
/// same.
fn was_seen(seen: &mut [u64], hash: u64) -> bool {
    let Some(slot) = seen.get_mut((hash >> 8) as usize % SEEN) else {
        return false;
    };
    std::mem::replace(slot, hash) == hash
}

fn query<'q>(begin: &'q [u8], end: &'q [u8], limit: usize, reverse: bool) -> RangeQuery<'q> {
    RangeQuery {
        begin,
        end,
        limit,
        reverse,
        isolation: Isolation::Snapshot,
    }
}

impl Window {
    fn find(&mut self, edge: &[u8], bound: &[u8], reverse: bool) -> Found {
        if self.reverse != reverse || !self.has_rows() {
            return Found::Elsewhere;
        }
        let begins_before = match reverse {
            true => edge <= self.edge.as_slice(),
            false => edge >= self.edge.as_slice(),
        };
        let ends_after = match reverse {
            true => edge >= self.bound.as_slice(),
            false => edge <= self.bound.as_slice(),
        };
        if !begins_before || !ends_after {
            return Found::Elsewhere;
        }
        let is_passed = |row: &KeyValue| match reverse {
            true => *row.key >= *edge,
            false => *row.key < *edge,
        };
        let is_next = |at: usize| {
            self.rows.get(at).is_some_and(|row| !is_passed(row))
                && (at == 0 || self.rows.get(at - 1).is_some_and(is_passed))
        };
        let at = [self.at, self.at + 1].into_iter().find(|at| is_next(*at));
        self.at = at.unwrap_or_else(|| self.rows.partition_point(is_passed));
        match self.rows.get(self.at) {
            Some(row) => {
                let is_inside = match reverse {
                    true => *row.key >= *bound,
                    false => *row.key < *bound,
                };
                match is_inside {
                    true => Found::Row(row.clone()),
                    false => Found::NoRow,
                }
            }
            None if !self.is_complete => Found::Continues,
            None => {
                let is_covered = match reverse {
                    true => bound >= self.bound.as_slice(),
                    false => bound <= self.bound.as_slice(),
                };
                match is_covered {
                    true => Found::NoRow,
                    false => Found::Elsewhere,
                }
            }
        }
    }

    fn has_rows(&self) -> bool {
        self.is_complete || !self.rows.is_empty()
    }

    fn fill(
        &mut self,
        snapshot: &View<'_>,
        edge: &[u8],
        bound: &[u8],
        reverse: bool,
        rows_max: usize,
    ) -> Result<(), StoreError> {
        self.is_complete = false;
        self.rows.clear();
        let (begin, end) = if reverse {
            (bound, edge)
        } else {
            (edge, bound)
        };
        let query = query(begin, end, rows_max, reverse);
        let mut merge = snapshot.merge(&query)?;
        let mut found = Vec::with_capacity(rows_max);
        let mut bytes = 0;
        while found.len() < rows_max && bytes < WINDOW_BYTES_MAX {
            match merge.next_row() {
                Ok(Some(row)) => {
                    bytes += row.0.len() + row.1.len();
                    found.push(row);
                }
                Ok(None) => {
                    self.is_complete = true;
                    break;
                }
                Err(error) if found.is_empty() => return Err(error),
                // The read that needs that row gets the error.
                Err(_) => break,
            }
        }
        self.rows = page::pack(&found);
        self.reverse = reverse;
        self.at = 0;
        self.edge.clear();
        self.edge.extend_from_slice(edge);
        self.bound.clear();
        self.bound.extend_from_slice(bound);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
