//! A transaction's own writes, laid over what it reads.

use std::collections::{BTreeMap, btree_map};
use std::ops::Bound;

use bytes::{Bytes, BytesMut};

use super::coverage::{Coverage, Replaced};
use super::sizes::{clear_bytes, set_bytes};
use super::undo::{Log, Undo};
use crate::store::rules::{STAMP_BYTES, added, lowered};

/// Bytes that a transaction's keys and values share as one allocation.
const COPY_CHUNK_BYTES: usize = 8 * 1024;

/// What a transaction has made of one key.
pub(super) enum Entry {
    /// Its whole value, whatever is below.
    Settled(Option<Bytes>),
    /// Atomic operations on what is below, in order.
    /// At least one.
    Changed(Vec<Change>),
}

impl Entry {
    fn size_bytes(&self, key: &[u8]) -> usize {
        match self {
            Entry::Settled(Some(value)) => set_bytes(key, value.len()),
            Entry::Settled(None) => clear_bytes(key),
            Entry::Changed(changes) => changes.len() * set_bytes(key, size_of::<u64>()),
        }
    }

    /// What it makes of the value below.
    fn over(&self, below: Option<&Bytes>) -> Option<Bytes> {
        match self {
            Entry::Settled(value) => value.clone(),
            Entry::Changed(changes) => {
                let (first, others) = changes.split_first()?;
                let others = others.iter();
                Some(others.fold(first.of(below), |value, change| change.of(Some(&value))))
            }
        }
    }
}

/// An atomic operation on one key.
#[derive(Clone, Copy)]
pub(super) enum Change {
    Add(i64),
    Min(u64),
}

impl Change {
    /// What it makes of a value.
    pub(super) fn of(self, value: Option<&Bytes>) -> Bytes {
        let value = value.map(AsRef::as_ref);
        Bytes::copy_from_slice(&match self {
            Change::Add(delta) => added(value, delta),
            Change::Min(operand) => lowered(value, operand),
        })
    }

    /// This after a change of the same kind, as one.
    fn after(self, before: Change) -> Option<Change> {
        match (before, self) {
            (Change::Add(before), Change::Add(delta)) => {
                Some(Change::Add(before.wrapping_add(delta)))
            }
            (Change::Min(before), Change::Min(operand)) => Some(Change::Min(before.min(operand))),
            _ => None,
        }
    }

    /// Puts this after others. One of the same kind as the last is made one with it; answers
    /// that last one as it was.
    fn append_to(self, changes: &mut Vec<Change>) -> Option<Change> {
        if let Some(last) = changes.last_mut()
            && let Some(joined) = self.after(*last)
        {
            return Some(std::mem::replace(last, joined));
        }
        changes.push(self);
        None
    }
}

/// How a key's value depends on what is below a transaction's writes.
pub(super) enum Own<'w> {
    /// Not at all.
    Settled(Option<Bytes>),
    /// These are to be done to it.
    Changed(&'w Entry),
    /// It is that.
    Untouched,
}

impl Own<'_> {
    /// The value over what is below.
    pub(super) fn over(&self, below: Option<&Bytes>) -> Option<Bytes> {
        match self {
            Own::Settled(value) => value.clone(),
            Own::Changed(entry) => entry.over(below),
            Own::Untouched => below.cloned(),
        }
    }
}

/// The writes of one transaction. What was written to one key again and again is one write.
#[derive(Default)]
pub(super) struct Writes {
    /// Stands above `cleared`.
    entries: BTreeMap<Bytes, Entry>,
    /// Room for keys and values.
    copies: BytesMut,
    cleared: Coverage,
    /// Rows of logs, by their prefixes.
    appended: Vec<(Bytes, Vec<Bytes>)>,
    entry_bytes: usize,
    appended_bytes: usize,
}

/// What rows that are added to a log count for in a commit.
fn appended_bytes(prefix: &[u8], values: &[Bytes]) -> usize {
    // A row's number, and where FoundationDB is to put the stamp.
    let more_bytes = 3 * (STAMP_BYTES + 2) + size_of::<u32>();
    let rows = values.iter();
    rows.map(|value| set_bytes(prefix, value.len() + more_bytes))
        .sum()
}

impl Writes {
    /// What they count for in a commit.
    pub(super) fn size_bytes(&self) -> usize {
        // A cleared range counts twice, in the mutation and in the write conflict range.
        self.entry_bytes + 2 * self.cleared.bytes() + self.appended_bytes
    }

    /// A copy of a key or value that is to be kept, without an allocation of its own.
    pub(super) fn copy(&mut self, bytes: &[u8]) -> Bytes {
        if self.copies.capacity() < bytes.len() {
            self.copies = BytesMut::with_capacity(COPY_CHUNK_BYTES.max(bytes.len()));
        }
        self.copies.extend_from_slice(bytes);
        self.copies.split().freeze()
    }

    /// Sets or clears a key.
    pub(super) fn settle(&mut self, key: Bytes, value: Option<Bytes>, log: &mut Log) {
        let entry = Entry::Settled(value);
        if log.is_open() {
            let before = self.put(key.clone(), entry);
            log.log(Undo::Entry(key, before));
        } else {
            self.put(key, entry);
        }
    }

    /// Puts an entry in the place of another; answers that.
    fn put(&mut self, key: Bytes, entry: Entry) -> Option<Entry> {
        self.entry_bytes += entry.size_bytes(&key);
        match self.entries.entry(key) {
            btree_map::Entry::Vacant(vacant) => {
                vacant.insert(entry);
                None
            }
            btree_map::Entry::Occupied(mut occupied) => {
                let before = occupied.insert(entry);
                self.entry_bytes -= before.size_bytes(occupied.key());
                Some(before)
            }
        }
    }

    fn remove(&mut self, key: &Bytes) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.entry_bytes -= entry.size_bytes(key);
        Some(entry)
    }

    /// Clears `begin..end`.
    pub(super) fn clear_range(&mut self, begin: &[u8], end: &[u8], log: &mut Log) {
        if begin >= end {
            return;
        }
        let inside = (Bound::Included(begin), Bound::Excluded(end));
        let gone = self.entries.range::<[u8], _>(inside);
        let gone: Vec<Bytes> = gone.map(|(key, _)| key.clone()).collect();
        for key in gone {
            if let Some(before) = self.remove(&key) {
                log.log(Undo::Entry(key, Some(before)));
            }
        }
        if log.is_open() {
            self.cleared.add_logged(begin, end, |begin, end| {
                log.log(Undo::Cleared(Replaced::new(begin, end)));
            });
        } else {
            self.cleared.add(begin, end);
        }
    }

    /// Does an atomic operation.
    pub(super) fn change(&mut self, key: &[u8], change: Change, log: &mut Log) {
        let logged_key = log.is_open().then(|| self.copy(key));
        if let Some(entry) = self.entries.get_mut(key) {
            self.entry_bytes -= entry.size_bytes(key);
            let (settled, last) = match entry {
                Entry::Changed(changes) => (None, change.append_to(changes)),
                Entry::Settled(value) => {
                    let changed = change.of(value.as_ref());
                    (Some(Entry::Settled(value.replace(changed))), None)
                }
            };
            self.entry_bytes += entry.size_bytes(key);
            if let Some(key) = logged_key {
                log.log(match settled {
                    Some(_) => Undo::Entry(key, settled),
                    None => Undo::Change(key, last),
                });
            }
            return;
        }
        let entry = if self.cleared.contains(key) {
            Entry::Settled(Some(change.of(None)))
        } else {
            Entry::Changed(vec![change])
        };
        let key = logged_key.unwrap_or_else(|| self.copy(key));
        if log.is_open() {
            log.log(Undo::Entry(key.clone(), None));
        }
        self.put(key, entry);
    }

    /// Adds rows to a log. Reads do not see them.
    pub(super) fn append(&mut self, prefix: &[u8], values: &[Bytes], log: &mut Log) {
        self.appended_bytes += appended_bytes(prefix, values);
        self.appended
            .push((Bytes::copy_from_slice(prefix), values.to_vec()));
        log.log(Undo::Append);
    }

    /// Undoes a change to an entry.
    pub(super) fn undo_entry(&mut self, key: Bytes, before: Option<Entry>) {
        match before {
            Some(before) => drop(self.put(key, before)),
            None => drop(self.remove(&key)),
        }
    }

    /// Undoes an atomic operation on an entry that had others before.
    pub(super) fn undo_change(&mut self, key: &Bytes, last: Option<Change>) {
        let Some(Entry::Changed(mut changes)) = self.remove(key) else {
            return;
        };
        changes.pop();
        changes.extend(last);
        self.put(key.clone(), Entry::Changed(changes));
    }

    /// Undoes a change to the cleared ranges.
    pub(super) fn undo_cleared(&mut self, replaced: Replaced) {
        self.cleared.restore(replaced);
    }

    /// Undoes the last addition to a log.
    pub(super) fn undo_append(&mut self) {
        if let Some((prefix, values)) = self.appended.pop() {
            self.appended_bytes -= appended_bytes(&prefix, &values);
        }
    }

    /// What was written to `key`.
    pub(super) fn own(&self, key: &[u8]) -> Own<'_> {
        match self.entries.get(key) {
            Some(Entry::Settled(value)) => Own::Settled(value.clone()),
            Some(entry) => Own::Changed(entry),
            None if self.cleared.contains(key) => Own::Settled(None),
            None => Own::Untouched,
        }
    }

    /// Makes of `rows`, which are all that is below in `begin..end`, those that reads see.
    pub(super) fn lay_over(&self, begin: &[u8], end: &[u8], rows: &mut BTreeMap<Bytes, Bytes>) {
        if begin >= end {
            return;
        }
        for (from, to) in self.cleared.overlapping(begin, end) {
            rows.retain(|key, _| key.as_ref() < from || key.as_ref() >= to);
        }
        let inside = (Bound::Included(begin), Bound::Excluded(end));
        for (key, entry) in self.entries.range::<[u8], _>(inside) {
            match entry.over(rows.get(key)) {
                Some(value) => drop(rows.insert(key.clone(), value)),
                None => drop(rows.remove(key)),
            }
        }
    }

    /// The ranges that were cleared before `entries` were written.
    pub(super) fn cleared(&self) -> &Coverage {
        &self.cleared
    }

    /// What was made of single keys, in their order.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&Bytes, &Entry)> {
        self.entries.iter()
    }

    /// The rows of logs, by prefix.
    pub(super) fn appended(&self) -> &[(Bytes, Vec<Bytes>)] {
        &self.appended
    }
}
