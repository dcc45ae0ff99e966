//! What a transaction has written to one key.

use bytes::Bytes;

use super::sizes::{clear_bytes, set_bytes};
use crate::rules::{added, lowered};

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

    /// Adds this to the operations before it. Returns the last of them if it was replaced by a
    /// combined one.
    pub(super) fn append_to(self, operations: &mut Vec<AtomicOp>) -> Option<AtomicOp> {
        if let Some(last) = operations.last_mut()
            && let Some(joined) = self.after(*last)
        {
            return Some(std::mem::replace(last, joined));
        }
        operations.push(self);
        None
    }
}
