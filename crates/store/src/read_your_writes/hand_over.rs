//! What the transaction below gets at the commit.

use bytes::Bytes;

use super::entry::{AtomicOp, Entry};
use super::state::State;
use super::transaction::BaseTransaction;
use crate::rules::key_after;

impl State {
    /// Adds the conflicts of sections in which own rows are left.
    pub(super) fn add_conditional_conflicts(&mut self) {
        for ranges in std::mem::take(&mut self.conditional).values() {
            for (begin, end) in ranges.iter() {
                self.conflicts.add(begin, end);
            }
        }
    }

    /// Gives all conflicts and writes to `inner`.
    pub(super) fn hand_over(&self, inner: &dyn BaseTransaction) {
        for (begin, end) in self.conflicts.iter() {
            inner.add_read_conflict_range(begin, end);
        }
        for (begin, end) in self.writes.cleared().iter() {
            inner.clear_range(begin, end);
        }
        let mut entries = self.writes.entries().peekable();
        while let Some((key, entry)) = entries.next() {
            match entry {
                Entry::Value(Some(value)) => inner.set(key, value),
                // The store does not have it, and will not have it.
                Entry::Value(None) if self.own_rows.contains(key) => {}
                Entry::Value(None) => {
                    let mut last = None;
                    if let Some(end) = self.clearable_until(key) {
                        let is_clear = |(key, entry): &(&Bytes, &Entry)| {
                            key.as_ref() < end && matches!(entry, Entry::Value(None))
                        };
                        while let Some((next, _)) = entries.next_if(is_clear) {
                            last = Some(next);
                        }
                    }
                    match last {
                        Some(last) => inner.clear_range(key, &key_after(last)),
                        None => inner.clear(key),
                    }
                }
                Entry::Atomic(operations) => {
                    for operation in operations {
                        match *operation {
                            AtomicOp::Add(delta) => inner.atomic_add(key, delta),
                            AtomicOp::Min(operand) => inner.atomic_min(key, operand),
                        }
                    }
                }
            }
        }
        for (prefix, values) in self.writes.appended() {
            inner.append(prefix, values);
        }
    }

    /// How far cleared keys from `key` on may be cleared as one range. No other row is lost: the
    /// snapshot has none in between, and if another transaction has set one since, this one
    /// conflicts.
    fn clearable_until(&self, key: &[u8]) -> Option<&[u8]> {
        let covered_until = self.conflicts.end_of(key)?;
        let empty_until = self.cache.empty_until(key)?;
        Some(covered_until.min(empty_until))
    }
}
