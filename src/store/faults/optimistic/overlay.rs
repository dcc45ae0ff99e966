//! A transaction's own writes, laid over the snapshot that it reads.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

use super::KeyRange;
use crate::store::rules::{STAMP_BYTES, added, key_after, lowered, stamped_key};
use crate::store::{KeyValue, Transaction};

/// One write.
pub(super) enum Operation {
    Set(Box<[u8]>, Bytes),
    Clear(Box<[u8]>),
    ClearRange(Box<[u8]>, Box<[u8]>),
    Add(Box<[u8]>, i64),
    Min(Box<[u8]>, u64),
    /// A row of a log: prefix, number, value.
    Append(Box<[u8]>, u16, Bytes),
}

/// What the commit of this version puts into the keys of logs.
fn stamp(version: u64) -> [u8; STAMP_BYTES] {
    let mut stamp = [0; STAMP_BYTES];
    if let Some(last) = stamp.last_chunk_mut::<8>() {
        *last = version.to_be_bytes();
    }
    stamp
}

impl Operation {
    pub(super) fn size_bytes(&self) -> usize {
        match self {
            Operation::Set(key, value) => key.len() + value.len(),
            Operation::Clear(key) => key.len(),
            Operation::ClearRange(begin, end) => begin.len() + end.len(),
            Operation::Add(key, _) | Operation::Min(key, _) => key.len() + size_of::<u64>(),
            Operation::Append(prefix, _, value) => prefix.len() + STAMP_BYTES + 2 + value.len(),
        }
    }

    pub(super) fn value_bytes(&self) -> usize {
        match self {
            Operation::Set(_, value) | Operation::Append(_, _, value) => value.len(),
            _ => 0,
        }
    }

    pub(super) fn replay(&self, transaction: &dyn Transaction, version: u64) {
        match self {
            Operation::Set(key, value) => transaction.set(key, value),
            Operation::Clear(key) => transaction.clear(key),
            Operation::ClearRange(begin, end) => transaction.clear_range(begin, end),
            Operation::Add(key, delta) => transaction.atomic_add(key, *delta),
            Operation::Min(key, value) => transaction.atomic_min(key, *value),
            Operation::Append(prefix, number, value) => {
                transaction.set(&stamped_key(prefix, &stamp(version), *number), value);
            }
        }
    }

    fn written(&self, version: u64) -> KeyRange {
        match self {
            Operation::Set(key, _)
            | Operation::Clear(key)
            | Operation::Add(key, _)
            | Operation::Min(key, _) => (key.clone(), key_after(key).into()),
            Operation::ClearRange(begin, end) => (begin.clone(), end.clone()),
            Operation::Append(prefix, number, _) => {
                let key = stamped_key(prefix, &stamp(version), *number);
                let behind = key_after(&key);
                (key.into(), behind.into())
            }
        }
    }
}

/// What a transaction has made of one key.
enum Entry {
    /// Its whole value, whatever is below.
    Settled(Option<Bytes>),
    /// Atomic operations on what is below, in order.
    Changed(Vec<Change>),
}

/// An atomic operation on one key.
#[derive(Clone, Copy)]
enum Change {
    Add(i64),
    Min(u64),
}

impl Change {
    fn of(self, value: Option<&Bytes>) -> Bytes {
        let value = value.map(AsRef::as_ref);
        Bytes::copy_from_slice(&match self {
            Change::Add(delta) => added(value, delta),
            Change::Min(operand) => lowered(value, operand),
        })
    }

    /// Puts this behind others; one of the same kind as the last is made one with it.
    fn put_behind(self, changes: &mut Vec<Change>) {
        match (changes.last_mut(), self) {
            (Some(Change::Add(before)), Change::Add(delta)) => *before = before.wrapping_add(delta),
            (Some(Change::Min(before)), Change::Min(operand)) => *before = (*before).min(operand),
            _ => changes.push(self),
        }
    }
}

/// The writes of one transaction.
#[derive(Default)]
pub(super) struct Overlay {
    operations: Vec<Operation>,
    /// Stands above `cleared`.
    entries: BTreeMap<Box<[u8]>, Entry>,
    cleared: Vec<KeyRange>,
}

impl Overlay {
    /// Every write, in order.
    pub(super) fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The keys and ranges that were written.
    pub(super) fn written(&self, version: u64) -> Vec<KeyRange> {
        let operations = self.operations.iter();
        operations.map(|one| one.written(version)).collect()
    }

    pub(super) fn apply(&mut self, operation: Operation) {
        match &operation {
            Operation::Set(key, value) => {
                self.entries
                    .insert(key.clone(), Entry::Settled(Some(value.clone())));
            }
            Operation::Clear(key) => {
                self.entries.insert(key.clone(), Entry::Settled(None));
            }
            Operation::ClearRange(begin, end) => {
                if begin < end {
                    self.entries.retain(|key, _| key < begin || key >= end);
                    self.cleared.push((begin.clone(), end.clone()));
                }
            }
            Operation::Add(key, delta) => self.change(key, Change::Add(*delta)),
            Operation::Min(key, operand) => self.change(key, Change::Min(*operand)),
            // Its key is not known before the commit.
            Operation::Append(..) => {}
        }
        self.operations.push(operation);
    }

    fn change(&mut self, key: &[u8], change: Change) {
        match self.entries.get_mut(key) {
            Some(Entry::Changed(changes)) => change.put_behind(changes),
            Some(Entry::Settled(value)) => *value = Some(change.of(value.as_ref())),
            None => {
                let entry = if self.is_cleared(key) {
                    Entry::Settled(Some(change.of(None)))
                } else {
                    Entry::Changed(vec![change])
                };
                self.entries.insert(key.into(), entry);
            }
        }
    }

    fn is_cleared(&self, key: &[u8]) -> bool {
        self.cleared
            .iter()
            .any(|(begin, end)| begin.as_ref() <= key && key < end.as_ref())
    }

    /// The key's value where it does not depend on what is below.
    pub(super) fn settled(&self, key: &[u8]) -> Option<Option<Bytes>> {
        match self.entries.get(key) {
            Some(Entry::Settled(value)) => Some(value.clone()),
            Some(Entry::Changed(_)) => None,
            None => self.is_cleared(key).then_some(None),
        }
    }

    /// The key's value over what is below.
    pub(super) fn over(&self, key: &[u8], below: Option<Bytes>) -> Option<Bytes> {
        match self.entries.get(key) {
            Some(Entry::Settled(value)) => value.clone(),
            Some(Entry::Changed(changes)) => changes
                .iter()
                .fold(below, |value, change| Some(change.of(value.as_ref()))),
            None if self.is_cleared(key) => None,
            None => below,
        }
    }

    /// The rows of `from..to` in order, where `below` are all that the snapshot has there.
    pub(super) fn merge(&self, from: &[u8], to: &[u8], below: Vec<KeyValue>) -> Vec<KeyValue> {
        let mut rows: BTreeMap<Bytes, Option<Bytes>> = below
            .into_iter()
            .map(|row| (row.key, Some(row.value)))
            .collect();
        for (key, _) in self.entries_in(from, to) {
            rows.entry(Bytes::copy_from_slice(key)).or_default();
        }
        rows.into_iter()
            .filter_map(|(key, below)| {
                let value = self.over(&key, below)?;
                Some(KeyValue { key, value })
            })
            .collect()
    }

    fn entries_in(&self, from: &[u8], to: &[u8]) -> impl Iterator<Item = (&[u8], &Entry)> {
        // BTreeMap::range refuses a range whose begin is behind its end.
        let from = from.min(to);
        self.entries
            .range::<[u8], _>((Bound::Included(from), Bound::Excluded(to)))
            .map(|(key, entry)| (key.as_ref(), entry))
    }

    /// The parts of `begin..end` whose values depend on what is below.
    pub(super) fn unsettled(&self, begin: &[u8], end: &[u8]) -> Vec<KeyRange> {
        if begin >= end {
            return Vec::new();
        }
        // Atomic operations that stand above a cleared range are settled, so the two never overlap.
        let mut settled: Vec<KeyRange> = self.cleared.clone();
        settled.extend(
            self.entries_in(begin, end)
                .filter(|(_, entry)| matches!(entry, Entry::Settled(_)))
                .map(|(key, _)| (key.into(), key_after(key).into())),
        );
        settled.sort();
        let mut unsettled = Vec::new();
        let mut position: Box<[u8]> = begin.into();
        for (from, to) in settled {
            if from.as_ref() >= end {
                break;
            }
            if position < from {
                unsettled.push((position.clone(), from));
            }
            position = position.max(to);
        }
        if position.as_ref() < end {
            unsettled.push((position, end.into()));
        }
        unsettled
    }
}
