//! What transactions wrote and the data file does not have yet, in the order of keys.
//!
//! A layer lies over older layers and over the data file. It has rows, and ranges in which
//! everything below is gone. Its own rows are there even inside such a range: they are newer.
//!
//! A copy shares all with the original until either is changed, so a reader keeps its snapshot
//! for the price of two pointers; a layer that nobody shares is changed in place.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use super::merge::Row;
use crate::limits;
use crate::store::rules::key_after;

/// Bytes that are kept once however many layers have them.
pub(super) type Blob = Arc<[u8]>;
/// In the order of keys: rows (key, value), or ranges that do not touch (begin, end).
pub(super) type Ordered = OrdMap<Blob, Blob>;

/// What a layer says of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said<'l> {
    /// It has this value.
    Value(&'l [u8]),
    /// It is gone.
    Cleared,
    /// Ask below.
    Nothing,
}

/// Rows and cleared ranges over something older.
#[derive(Debug, Clone, Default)]
pub(super) struct Layer {
    rows: Ordered,
    cleared: Ordered,
    bytes: usize,
}

fn cost(first: &[u8], second: &[u8]) -> usize {
    first.len() + second.len() + limits::EMBEDDED_OVERLAY_ENTRY_BYTES
}

/// Whether the range is that of one key.
pub(super) fn is_one_key(begin: &[u8], end: &[u8]) -> bool {
    end.split_last() == Some((&0, begin))
}

impl Layer {
    /// Memory that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of its rows.
    pub(super) fn row_bytes(&self) -> usize {
        let bytes = |(key, value): (&Blob, &Blob)| key.len() + value.len();
        self.rows.iter().map(bytes).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.cleared.is_empty()
    }

    pub(super) fn rows(&self) -> &Ordered {
        &self.rows
    }

    pub(super) fn cleared(&self) -> &Ordered {
        &self.cleared
    }

    pub(super) fn set(&mut self, key: &[u8], value: &[u8]) {
        self.insert(key.into(), value.into());
    }

    fn insert(&mut self, key: Blob, value: Blob) {
        let added = cost(&key, &value);
        let key_bytes = key.len();
        self.bytes += added;
        if let Some(old) = self.rows.insert(key, value) {
            let entry = key_bytes + limits::EMBEDDED_OVERLAY_ENTRY_BYTES;
            self.bytes = self.bytes.saturating_sub(entry + old.len());
        }
    }

    pub(super) fn remove_row(&mut self, key: &[u8]) {
        if !self.rows.is_empty()
            && let Some(old) = self.rows.remove(key)
        {
            self.bytes = self.bytes.saturating_sub(cost(key, &old));
        }
    }

    /// Clears a key.
    pub(super) fn clear(&mut self, key: &[u8]) {
        self.remove_row(key);
        self.hide(key, &key_after(key));
    }

    /// Clears the keys of a range.
    pub(super) fn clear_range(&mut self, begin: &[u8], end: &[u8]) {
        self.remove_rows(begin, end);
        self.hide(begin, end);
    }

    fn remove_rows(&mut self, begin: &[u8], end: &[u8]) {
        if self.rows.is_empty() {
            return;
        }
        let bounds = (Bound::Included(begin), Bound::Excluded(end));
        let keys: Vec<Blob> = self
            .rows
            .range::<_, [u8]>(bounds)
            .map(|(key, _)| Arc::clone(key))
            .collect();
        for key in keys {
            self.remove_row(&key);
        }
    }

    /// Hides what is below in `begin..end`; rows of this layer stay. Ranges that touch become
    /// one, so that reading jumps over all of them at once.
    pub(super) fn hide(&mut self, begin: &[u8], end: &[u8]) {
        if begin >= end {
            return;
        }
        let before = self.cleared.get_prev(begin);
        let before = before.filter(|(_, until)| ***until >= *begin);
        if let Some((before, until)) = before {
            if **until >= *end {
                return;
            }
            let next = self.cleared.get_next(&**until);
            if next.is_none_or(|(next, _)| **next > *end) {
                // A run of pops ends here nearly always.
                let (before, until_bytes) = (Blob::clone(before), until.len());
                if let Some(until) = self.cleared.get_mut(&*before) {
                    *until = end.into();
                    self.bytes = (self.bytes + end.len()).saturating_sub(until_bytes);
                }
                return;
            }
        } else {
            let Some((next, next_end)) = self.cleared.get_next(begin).filter(|(n, _)| ***n <= *end)
            else {
                self.bytes += cost(begin, end);
                self.cleared.insert(begin.into(), end.into());
                return;
            };
            if **next_end >= *end {
                // A run of pops from the back ends here nearly always.
                let (next, next_end) = (Blob::clone(next), Blob::clone(next_end));
                self.cleared.remove(&*next);
                self.bytes = (self.bytes + begin.len()).saturating_sub(next.len());
                self.cleared.insert(begin.into(), next_end);
                return;
            }
        }
        let begin = before.map_or_else(|| begin.into(), |(before, _)| Blob::clone(before));
        self.join(begin, end.into());
    }

    /// Puts one range in place of all that begin in it or at its end.
    fn join(&mut self, begin: Blob, mut end: Blob) {
        let touching = (Bound::Included(&*begin), Bound::Included(&*end));
        let joined: Vec<(Blob, Blob)> = self
            .cleared
            .range::<_, [u8]>(touching)
            .map(|(begin, end)| (Blob::clone(begin), Blob::clone(end)))
            .collect();
        for (other_begin, other_end) in joined {
            self.bytes = self.bytes.saturating_sub(cost(&other_begin, &other_end));
            self.cleared.remove(&*other_begin);
            end = end.max(other_end);
        }
        self.bytes += cost(&begin, &end);
        self.cleared.insert(begin, end);
    }

    /// What it says of a key.
    pub(super) fn look(&self, key: &[u8]) -> Said<'_> {
        if let Some(value) = self.rows.get(key) {
            return Said::Value(value);
        }
        match self.cleared_over(key) {
            Some(_) => Said::Cleared,
            None => Said::Nothing,
        }
    }

    /// The cleared range that `key` lies in: begin and end.
    pub(super) fn cleared_over(&self, key: &[u8]) -> Option<(&[u8], &[u8])> {
        if self.cleared.is_empty() {
            return None;
        }
        let (begin, end) = self.cleared.get_prev(key)?;
        (**end > *key).then_some((begin, end))
    }

    /// The begin of the cleared range in which the keys right before `end` lie.
    pub(super) fn cleared_before(&self, end: &[u8]) -> Option<&[u8]> {
        if self.cleared.is_empty() {
            return None;
        }
        let mut found = self.cleared.get_prev(end)?;
        if **found.0 == *end {
            found = self
                .cleared
                .range::<_, [u8]>((Bound::Unbounded, Bound::Excluded(end)))
                .next_back()?;
        }
        (**found.1 >= *end).then_some(found.0)
    }

    /// The first row at or behind `key`.
    pub(super) fn row_at_or_after(&self, key: &[u8]) -> Option<Row<'_>> {
        if self.rows.is_empty() {
            return None;
        }
        let (key, value) = self.rows.get_next(key)?;
        Some((key, value))
    }

    /// The last row before `key`.
    pub(super) fn row_before(&self, key: &[u8]) -> Option<Row<'_>> {
        if self.rows.is_empty() {
            return None;
        }
        let (found, value) = self.rows.get_prev(key)?;
        if **found != *key {
            return Some((found, value));
        }
        let (key, value) = self
            .rows
            .range::<_, [u8]>((Bound::Unbounded, Bound::Excluded(key)))
            .next_back()?;
        Some((key, value))
    }

    /// Lays a newer layer onto this one: both together are then this.
    pub(super) fn absorb(&mut self, newer: Layer) {
        if self.is_empty() {
            *self = newer;
            return;
        }
        for (begin, end) in &newer.cleared {
            if is_one_key(begin, end) {
                self.remove_row(begin);
            } else {
                self.remove_rows(begin, end);
            }
            self.hide(begin, end);
        }
        for (key, value) in newer.rows {
            self.insert(key, value);
        }
    }
}

#[cfg(test)]
mod tests;
