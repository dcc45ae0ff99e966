//! What a transaction has read of its snapshot, below its own writes.
//!
//! The commands of a batch read the same few rows again and again: a key's metadata, its length, the
//! row at one end of a queue, and after a pop the next one. The snapshot does not change while the
//! transaction is open. So what was read of it stays true, whatever the transaction writes or undoes.

use bytes::Bytes;

use super::merge::View;
use crate::store::{Isolation, KeyValue, RangeQuery, StoreError, page};

/// Values that are remembered.
const SLOTS: usize = 32;
/// Bytes of a longer key or value, which is not remembered.
const SLOT_BYTES_MAX: usize = 512;
/// Reads of ranges that are remembered.
const WINDOWS: usize = 4;
/// Rows that one read takes ahead at most. Each read that continues the one before takes more.
const WINDOW_ROWS_MAX: usize = 64;
const WINDOW_GROWTH: usize = 4;
/// Bytes of rows after which a read takes no more ahead.
const WINDOW_BYTES_MAX: usize = 16 * 1024;

/// Rows of one snapshot.
#[derive(Debug, Default)]
pub(super) struct SnapshotCache {
    /// Each key has one slot, by its hash.
    slots: Vec<Slot>,
    windows: Vec<Window>,
    /// The window that was used last.
    latest: usize,
}

#[derive(Debug, Default)]
struct Slot {
    /// Empty if the slot is. No row has an empty key.
    key: Vec<u8>,
    value: Option<Bytes>,
}

/// A part of the snapshot: all its rows from an edge on.
#[derive(Debug, Default)]
struct Window {
    reverse: bool,
    /// Where the read began: the first key that belongs to it, or in reverse the first that does not.
    edge: Vec<u8>,
    /// The other edge. There are no rows after `rows` and before it if the window `is_complete`.
    bound: Vec<u8>,
    is_complete: bool,
    /// In the order of the read.
    rows: Vec<KeyValue>,
    /// The row that was found last.
    at: usize,
}

/// What a window knows.
enum Found {
    Row(KeyValue),
    NoRow,
    /// Nothing: the read would continue the window.
    Continues,
    /// Nothing.
    Elsewhere,
}

impl SnapshotCache {
    /// Forgets everything, for another snapshot. Keeps the memory.
    pub(super) fn reset(&mut self) {
        for slot in &mut self.slots {
            slot.key.clear();
            slot.value = None;
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
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, Slot::default);
        }
        let read = || Ok(snapshot.get(key)?.map(Bytes::copy_from_slice));
        let Some(slot) = self.slots.get_mut(slot_of(key)) else {
            return read();
        };
        if slot.key == key && !key.is_empty() {
            return Ok(slot.value.clone());
        }
        let value = read()?;
        let bytes = key.len() + value.as_ref().map_or(0, Bytes::len);
        if bytes <= SLOT_BYTES_MAX {
            slot.key.clear();
            slot.key.extend_from_slice(key);
            slot.value.clone_from(&value);
        }
        Ok(value)
    }

    /// The first row at or after `edge` and before `bound`. In reverse, the last row before `edge` and
    /// not before `bound`.
    pub(super) fn row(
        &mut self,
        snapshot: &View<'_>,
        edge: &[u8],
        bound: &[u8],
        reverse: bool,
    ) -> Result<Option<KeyValue>, StoreError> {
        if self.windows.is_empty() {
            self.windows.resize_with(WINDOWS, Window::default);
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

/// A slot for a key. Any hash will do, as a slot has the whole key.
fn slot_of(key: &[u8]) -> usize {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = key.len() as u64;
    let mut words = key.chunks_exact(8);
    for word in words.by_ref() {
        let word = word.try_into().map_or(0, u64::from_le_bytes);
        hash = (hash.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    }
    for byte in words.remainder() {
        hash = (hash.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(FACTOR);
    }
    (hash >> 32) as usize % SLOTS
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
        let query = RangeQuery {
            begin,
            end,
            limit: rows_max,
            reverse,
            isolation: Isolation::Snapshot,
        };
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
                // Whatever wants that row gets the error.
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
