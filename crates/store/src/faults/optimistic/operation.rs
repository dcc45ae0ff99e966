//! A transaction's own writes, kept until its commit.

use bytes::Bytes;

use crate::Transaction;
use crate::rules::{STAMP_BYTES, key_after, stamped_key};

pub(super) type KeyRange = (Box<[u8]>, Box<[u8]>);

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

/// The stamp that the commit of this version puts into the keys of logs.
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

    /// Writes it to `transaction`. `version` is the commit's.
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

    /// The keys that it writes.
    pub(super) fn written(&self, version: u64) -> KeyRange {
        match self {
            Operation::Set(key, _)
            | Operation::Clear(key)
            | Operation::Add(key, _)
            | Operation::Min(key, _) => (key.clone(), key_after(key).into()),
            Operation::ClearRange(begin, end) => (begin.clone(), end.clone()),
            Operation::Append(prefix, number, _) => {
                let key = stamped_key(prefix, &stamp(version), *number);
                let after = key_after(&key);
                (key.into(), after.into())
            }
        }
    }
}
