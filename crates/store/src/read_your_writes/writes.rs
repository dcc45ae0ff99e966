//! The writes of a transaction: one entry per key, how they apply to what it reads, and how they are undone.

use std::collections::{BTreeMap, btree_map};
use std::ops::Bound;

use bytes::{Bytes, BytesMut};

use super::coverage::{Coverage, Replaced, clear_bytes, set_bytes};
use crate::rules::{STAMP_BYTES, added, lowered};
use crate::savepoints::UndoLog;

/// Bytes of an allocation that keys and values share.
const COPY_CHUNK_BYTES: usize = 8 * 1024;

/// What a transaction has written to a key, including by clearing ranges.
pub(super) enum Written<'w> {
    /// A value, or `None` if the key was cleared.
    Value(Option<Bytes>),
    /// Atomic operations.
    Atomic(&'w Entry),
    /// Nothing.
    Nothing,
}

impl Written<'_> {
    /// The result for a value in the store.
    pub(super) fn apply_to(&self, below: Option<&Bytes>) -> Option<Bytes> {
        match self {
            Written::Value(value) => value.clone(),
            Written::Atomic(entry) => entry.apply_to(below),
            Written::Nothing => below.cloned(),
        }
    }
}

/// The writes of one transaction. Writes to one key are combined.
#[derive(Default)]
pub(super) struct Writes {
    entries: BTreeMap<Bytes, Entry>,
    /// Memory for copies of keys and values.
    copies: BytesMut,
    /// Ranges that were cleared. Entries in them are newer.
    cleared: Coverage,
    /// Prefixes of logs, with the values that were appended.
    appended: Vec<(Bytes, Vec<Bytes>)>,
    entry_bytes: usize,
    appended_bytes: usize,
}

/// Size in a commit of rows that are appended to a log.
fn appended_bytes(prefix: &[u8], values: &[Bytes]) -> usize {
    // The rest of a row's key, and FoundationDB's offset of the stamp.
    let more_bytes = 3 * (STAMP_BYTES + 2) + size_of::<u32>();
    let rows = values.iter();
    rows.map(|value| set_bytes(prefix, value.len() + more_bytes))
        .sum()
}

impl Writes {
    /// Their size in a commit.
    pub(super) fn size_bytes(&self) -> usize {
        // A cleared range counts twice, in the mutation and in the write conflict range.
        self.entry_bytes + 2 * self.cleared.bytes() + self.appended_bytes
    }

    /// Copies a key or value into an allocation that others share.
    pub(super) fn copy(&mut self, bytes: &[u8]) -> Bytes {
        if self.copies.capacity() < bytes.len() {
            self.copies = BytesMut::with_capacity(COPY_CHUNK_BYTES.max(bytes.len()));
        }
        self.copies.extend_from_slice(bytes);
        self.copies.split().freeze()
    }

    /// Sets or clears a key.
    pub(super) fn write(&mut self, key: Bytes, value: Option<Bytes>, log: &mut Log) {
        let entry = Entry::Value(value);
        if log.is_open() {
            let before = self.put(key.clone(), entry);
            log.log(Undo::Entry(key, before));
        } else {
            self.put(key, entry);
        }
    }

    /// Puts an entry. Returns the one that it replaces.
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

    /// Applies an atomic operation.
    pub(super) fn apply(&mut self, key: &[u8], operation: AtomicOp, log: &mut Log) {
        let logged_key = log.is_open().then(|| self.copy(key));
        if let Some(entry) = self.entries.get_mut(key) {
            self.entry_bytes -= entry.size_bytes(key);
            let (replaced, last) = match entry {
                Entry::Atomic(operations) => (None, operation.append_to(operations)),
                Entry::Value(value) => {
                    let changed = operation.apply_to(value.as_ref());
                    (Some(Entry::Value(value.replace(changed))), None)
                }
            };
            self.entry_bytes += entry.size_bytes(key);
            if let Some(key) = logged_key {
                log.log(match replaced {
                    Some(_) => Undo::Entry(key, replaced),
                    None => Undo::Operation(key, last),
                });
            }
            return;
        }
        let entry = if self.cleared.contains(key) {
            Entry::Value(Some(operation.apply_to(None)))
        } else {
            Entry::Atomic(vec![operation])
        };
        let key = logged_key.unwrap_or_else(|| self.copy(key));
        if log.is_open() {
            log.log(Undo::Entry(key.clone(), None));
        }
        self.put(key, entry);
    }

    /// Appends rows to a log. Reads do not see them.
    pub(super) fn append(&mut self, prefix: &[u8], values: &[Bytes], log: &mut Log) {
        self.appended_bytes += appended_bytes(prefix, values);
        self.appended
            .push((Bytes::copy_from_slice(prefix), values.to_vec()));
        log.log(Undo::Append);
    }

    /// Puts an entry back that a write replaced.
    pub(super) fn undo_entry(&mut self, key: Bytes, before: Option<Entry>) {
        match before {
            Some(before) => drop(self.put(key, before)),
            None => drop(self.remove(&key)),
        }
    }

    /// Undoes an atomic operation on a key that already had others. `last` is the operation that
    /// was replaced by a combined one.
    pub(super) fn undo_operation(&mut self, key: &Bytes, last: Option<AtomicOp>) {
        let Some(Entry::Atomic(mut operations)) = self.remove(key) else {
            return;
        };
        operations.pop();
        operations.extend(last);
        self.put(key.clone(), Entry::Atomic(operations));
    }

    /// Undoes a change to the cleared ranges.
    pub(super) fn undo_cleared(&mut self, replaced: Replaced) {
        self.cleared.restore(replaced);
    }

    /// Undoes the last append.
    pub(super) fn undo_append(&mut self) {
        if let Some((prefix, values)) = self.appended.pop() {
            self.appended_bytes -= appended_bytes(&prefix, &values);
        }
    }

    /// What was written to a key.
    pub(super) fn written(&self, key: &[u8]) -> Written<'_> {
        match self.entries.get(key) {
            Some(Entry::Value(value)) => Written::Value(value.clone()),
            Some(entry) => Written::Atomic(entry),
            None if self.cleared.contains(key) => Written::Value(None),
            None => Written::Nothing,
        }
    }

    /// Applies the writes to `rows`, which are all rows of the store in `begin..end`.
    pub(super) fn apply_to_rows(
        &self,
        begin: &[u8],
        end: &[u8],
        rows: &mut BTreeMap<Bytes, Bytes>,
    ) {
        if begin >= end {
            return;
        }
        for (from, to) in self.cleared.overlapping(begin, end) {
            rows.retain(|key, _| key.as_ref() < from || key.as_ref() >= to);
        }
        let inside = (Bound::Included(begin), Bound::Excluded(end));
        for (key, entry) in self.entries.range::<[u8], _>(inside) {
            match entry.apply_to(rows.get(key)) {
                Some(value) => drop(rows.insert(key.clone(), value)),
                None => drop(rows.remove(key)),
            }
        }
    }

    /// The ranges that were cleared before the entries were written.
    pub(super) fn cleared(&self) -> &Coverage {
        &self.cleared
    }

    /// What was written to single keys, in their order.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&Bytes, &Entry)> {
        self.entries.iter()
    }

    /// Prefixes of logs, with the values that were appended.
    pub(super) fn appended(&self) -> &[(Bytes, Vec<Bytes>)] {
        &self.appended
    }
}

/// What a transaction has written to one key.
pub(super) enum Entry {
    /// A value, or `None` if the key was cleared.
    Value(Option<Bytes>),
    /// Atomic operations on the value in the store, in order. At least one.
    Atomic(Vec<AtomicOp>),
}

impl Entry {
    pub(super) fn size_bytes(&self, key: &[u8]) -> usize {
        match self {
            Entry::Value(Some(value)) => set_bytes(key, value.len()),
            Entry::Value(None) => clear_bytes(key),
            Entry::Atomic(operations) => operations.len() * set_bytes(key, size_of::<u64>()),
        }
    }

    /// The result for a value in the store.
    pub(super) fn apply_to(&self, below: Option<&Bytes>) -> Option<Bytes> {
        match self {
            Entry::Value(value) => value.clone(),
            Entry::Atomic(operations) => {
                let (first, others) = operations.split_first()?;
                let others = others.iter();
                Some(others.fold(first.apply_to(below), |value, operation| {
                    operation.apply_to(Some(&value))
                }))
            }
        }
    }
}

/// An atomic operation on one key.
#[derive(Clone, Copy)]
pub(super) enum AtomicOp {
    Add(i64),
    Min(u64),
}

impl AtomicOp {
    /// The result for a value.
    pub(super) fn apply_to(self, value: Option<&Bytes>) -> Bytes {
        let value = value.map(AsRef::as_ref);
        Bytes::copy_from_slice(&match self {
            AtomicOp::Add(delta) => added(value, delta),
            AtomicOp::Min(operand) => lowered(value, operand),
        })
    }

    /// Combines this with the operation before it, if they are of the same kind.
    fn after(self, before: AtomicOp) -> Option<AtomicOp> {
        match (before, self) {
            (AtomicOp::Add(before), AtomicOp::Add(delta)) => {
                Some(AtomicOp::Add(before.wrapping_add(delta)))
            }
            (AtomicOp::Min(before), AtomicOp::Min(operand)) => {
                Some(AtomicOp::Min(before.min(operand)))
            }
            _ => None,
        }
    }

    /// Adds this to the previous operations. Returns the last of them if it was replaced by a
    /// combined one.
    fn append_to(self, operations: &mut Vec<AtomicOp>) -> Option<AtomicOp> {
        if let Some(last) = operations.last_mut()
            && let Some(joined) = self.after(*last)
        {
            return Some(std::mem::replace(last, joined));
        }
        operations.push(self);
        None
    }
}

/// The undo log of a transaction.
pub(super) type Log = UndoLog<Mark, Undo>;

/// What a change replaced.
pub(super) enum Undo {
    /// The entry of a key. `None` if there was none.
    Entry(Bytes, Option<Entry>),
    /// The last atomic operation on a key. `None` if it was not replaced, but another was added.
    Operation(Bytes, Option<AtomicOp>),
    /// A cleared range.
    Cleared(Replaced),
    /// Nothing, because rows were appended to a log.
    Append,
    /// A range of `own_rows`.
    OwnRows(Replaced),
    /// The conditional conflicts of the section that begins here.
    Conditional(Vec<u8>, Coverage),
}

/// Other state that a rollback restores.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub(super) mutation_count: u64,
}
