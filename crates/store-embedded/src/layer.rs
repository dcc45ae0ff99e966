//! Writes that the data file does not have yet, in key order.
//!
//! A layer is on top of older layers and the data file. It has rows, and ranges in which it clears
//! everything below. Its own rows in such a range are newer and stay.
//!
//! A copy shares its memory with the original until either changes, so a reader's snapshot costs a
//! few pointers. A layer that is not shared is changed in place.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use super::blob::{Blob, Key};
use super::filter::{Filter, Fingerprint};
use super::undo::{Log, Undo};
use quoin_store::page::Row;
use quoin_store::rules::key_after;

/// Bytes that an entry takes in addition to its value and to a key stored outside it. Entries that
/// are added in key order take most, because they leave nodes half full.
pub(super) const ENTRY_BYTES: usize = 180;

/// A layer with at least this many rows has a filter.
const FILTER_ROWS_MIN: usize = 4096;

/// Rows (key, value) or ranges that do not touch (begin, end), in order.
pub(super) type Ordered = OrdMap<Key, Blob>;

/// What a layer has for a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lookup<'l> {
    /// This value.
    Value(&'l [u8]),
    /// The key is cleared.
    Cleared,
    /// Nothing. An older layer or the data file decides.
    Nothing,
}

/// Rows and cleared ranges.
#[derive(Debug, Clone, Default)]
pub(super) struct Layer {
    rows: Ordered,
    cleared: Ordered,
    bytes: usize,
    /// The filter for `rows`, if they may become many.
    filter: Option<Arc<Filter>>,
}

fn cost(key: &Key, value: &[u8]) -> usize {
    key.bytes_elsewhere() + value.len() + ENTRY_BYTES
}

/// Adds an entry to a map whose entries take `bytes`. Returns the value that it replaces.
fn put(entries: &mut Ordered, bytes: &mut usize, key: Key, value: Blob) -> Option<Blob> {
    let entry_bytes = cost(&key, &[]);
    *bytes += entry_bytes + value.len();
    let old = entries.insert(key, value)?;
    *bytes = bytes.saturating_sub(entry_bytes + old.len());
    Some(old)
}

/// Removes an entry from a map whose entries take `bytes`.
fn take(entries: &mut Ordered, bytes: &mut usize, key: &[u8]) -> Option<(Key, Blob)> {
    let (key, old) = entries.remove_with_key(key)?;
    *bytes = bytes.saturating_sub(cost(&key, &old));
    Some((key, old))
}

/// Whether a range contains exactly one key.
pub(super) fn is_one_key(begin: &[u8], end: &[u8]) -> bool {
    end.split_last() == Some((&0, begin))
}

impl Layer {
    /// Estimated memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of its rows.
    pub(super) fn row_bytes(&self) -> usize {
        let bytes = |(key, value): (&Key, &Blob)| key.len() + value.len();
        self.rows.iter().map(bytes).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.cleared.is_empty()
    }

    /// Adds a filter if the layer has many rows.
    pub(super) fn filter_if_large(&mut self) {
        if self.filter.is_none() && self.rows.len() >= FILTER_ROWS_MIN {
            let filter = Filter::default();
            for key in self.rows.keys() {
                filter.add(Fingerprint::of(key));
            }
            self.filter = Some(Arc::new(filter));
        }
    }

    pub(super) fn rows(&self) -> &Ordered {
        &self.rows
    }

    pub(super) fn cleared(&self) -> &Ordered {
        &self.cleared
    }

    pub(super) fn set(&mut self, key: &[u8], value: &[u8], log: &mut Log) {
        self.insert(Key::from(key), value.into(), log);
    }

    fn insert(&mut self, key: Key, value: Blob, log: &mut Log) {
        let logged = log.is_open().then(|| key.clone());
        let old = self.put_row(key, value);
        if let Some(key) = logged {
            log.log(Undo::Row(key, old));
        }
    }

    fn put_row(&mut self, key: Key, value: Blob) -> Option<Blob> {
        if let Some(filter) = &self.filter {
            filter.add(Fingerprint::of(&key));
        }
        put(&mut self.rows, &mut self.bytes, key, value)
    }

    fn put_cleared(&mut self, begin: Key, end: Blob) -> Option<Blob> {
        put(&mut self.cleared, &mut self.bytes, begin, end)
    }

    /// Puts back a row that a change replaced.
    pub(super) fn restore_row(&mut self, key: Key, old: Option<Blob>) {
        match old {
            Some(old) => drop(self.put_row(key, old)),
            None => drop(take(&mut self.rows, &mut self.bytes, &key)),
        }
    }

    /// Puts back a cleared range that a change replaced.
    pub(super) fn restore_cleared(&mut self, begin: Key, old: Option<Blob>) {
        match old {
            Some(old) => drop(self.put_cleared(begin, old)),
            None => drop(take(&mut self.cleared, &mut self.bytes, &begin)),
        }
    }

    pub(super) fn remove_row(&mut self, key: &[u8], log: &mut Log) {
        if !self.rows.is_empty()
            && let Some((key, old)) = take(&mut self.rows, &mut self.bytes, key)
        {
            log.log(Undo::Row(key, Some(old)));
        }
    }

    /// Clears a key.
    pub(super) fn clear(&mut self, key: &[u8], log: &mut Log) {
        self.remove_row(key, log);
        self.hide(key, &key_after(key), log);
    }

    /// Clears all keys in a range.
    pub(super) fn clear_range(&mut self, begin: &[u8], end: &[u8], log: &mut Log) {
        self.remove_rows(begin, end, log);
        self.hide(begin, end, log);
    }

    /// Removes the layer's own rows in a range.
    pub(super) fn remove_rows(&mut self, begin: &[u8], end: &[u8], log: &mut Log) {
        if self.rows.is_empty() {
            return;
        }
        let bounds = (Bound::Included(begin), Bound::Excluded(end));
        let keys: Vec<Key> = self
            .rows
            .range::<_, [u8]>(bounds)
            .map(|(key, _)| key.clone())
            .collect();
        for key in keys {
            self.remove_row(&key, log);
        }
    }

    /// Hides what is below in `begin..end`. Rows of this layer stay. Ranges that touch are joined,
    /// so that a read skips all of them at once.
    pub(super) fn hide(&mut self, begin: &[u8], end: &[u8], log: &mut Log) {
        if begin >= end {
            return;
        }
        let last = self.cleared.get_prev(end);
        let Some((last, until)) = last.filter(|(_, until)| ***until >= *begin) else {
            // It touches no other range.
            self.insert_cleared(Key::from(begin), end.into(), log);
            return;
        };
        let last = last.clone();
        if *last <= *begin {
            if **until < *end {
                // Consecutive pops nearly always end here.
                self.extend_cleared(last, end, log);
            }
            return;
        }
        let end = if **until > *end {
            Blob::clone(until)
        } else {
            end.into()
        };
        let bounds = (Bound::Unbounded, Bound::Excluded(&*last));
        let mut before = self.cleared.range::<_, [u8]>(bounds);
        if before.next_back().is_none_or(|(_, until)| **until < *begin) {
            // Consecutive pops from the back nearly always end here.
            drop(self.remove_cleared(&last, log));
            self.insert_cleared(Key::from(begin), end, log);
            return;
        }
        let before = self.cleared.get_prev(begin);
        let before = before.filter(|(_, until)| ***until >= *begin);
        let begin = before.map_or_else(|| Key::from(begin), |(before, _)| before.clone());
        self.join(begin, end, log);
    }

    /// Moves the end of a cleared range.
    fn extend_cleared(&mut self, begin: Key, end: &[u8], log: &mut Log) {
        if let Some(until) = self.cleared.get_mut(&*begin) {
            let until = std::mem::replace(until, end.into());
            self.bytes = (self.bytes + end.len()).saturating_sub(until.len());
            log.log(Undo::Cleared(begin, Some(until)));
        }
    }

    /// Adds a cleared range, joined with all ranges that begin in it or at its end.
    fn join(&mut self, begin: Key, mut end: Blob, log: &mut Log) {
        let touching = (Bound::Included(&*begin), Bound::Included(&*end));
        let joined: Vec<Key> = self
            .cleared
            .range::<_, [u8]>(touching)
            .map(|(begin, _)| begin.clone())
            .collect();
        for other in joined {
            if let Some(other_end) = self.remove_cleared(&other, log) {
                end = end.max(other_end);
            }
        }
        self.insert_cleared(begin, end, log);
    }

    fn insert_cleared(&mut self, begin: Key, end: Blob, log: &mut Log) {
        let logged = log.is_open().then(|| begin.clone());
        let old = self.put_cleared(begin, end);
        if let Some(begin) = logged {
            log.log(Undo::Cleared(begin, old));
        }
    }

    /// Removes a cleared range. Returns its end.
    fn remove_cleared(&mut self, begin: &[u8], log: &mut Log) -> Option<Blob> {
        let (begin, end) = take(&mut self.cleared, &mut self.bytes, begin)?;
        if log.is_open() {
            log.log(Undo::Cleared(begin, Some(Blob::clone(&end))));
        }
        Some(end)
    }

    /// What the layer has for a key.
    pub(super) fn get(&self, key: &[u8]) -> Lookup<'_> {
        self.get_by(key, || Fingerprint::of(key))
    }

    /// Like [`Self::get`], for a caller that may already know the key's fingerprint.
    pub(super) fn get_by(
        &self,
        key: &[u8],
        fingerprint: impl FnOnce() -> Fingerprint,
    ) -> Lookup<'_> {
        let may_have = match &self.filter {
            Some(filter) => filter.may_have(fingerprint()),
            None => true,
        };
        if may_have && let Some(value) = self.rows.get(key) {
            return Lookup::Value(value);
        }
        match self.cleared_over(key) {
            Some(_) => Lookup::Cleared,
            None => Lookup::Nothing,
        }
    }

    /// Beginning and end of the cleared range that contains `key`.
    pub(super) fn cleared_over(&self, key: &[u8]) -> Option<(&[u8], &[u8])> {
        if self.cleared.is_empty() {
            return None;
        }
        let (begin, end) = self.cleared.get_prev(key)?;
        (**end > *key).then_some((begin, end))
    }

    /// The beginning of the cleared range that contains the keys right before `end`.
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

    /// The first row at or after `key`.
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

    /// Applies the changes of a newer layer.
    pub(super) fn absorb(&mut self, newer: Layer) {
        if self.is_empty() {
            *self = newer;
            return;
        }
        let log = &mut Log::default();
        for (begin, end) in &newer.cleared {
            if is_one_key(begin, end) {
                self.remove_row(begin, log);
            } else {
                self.remove_rows(begin, end, log);
            }
            self.hide(begin, end, log);
        }
        for (key, value) in newer.rows {
            self.insert(key, value, log);
        }
    }
}

#[cfg(test)]
mod tests;
