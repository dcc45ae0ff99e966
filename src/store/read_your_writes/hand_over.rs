//! What the transaction below is given at the commit.

use bytes::Bytes;

use super::writes::{Change, Entry};
use super::{BaseTransaction, State};
use crate::store::rules::key_after;

impl State {
    /// Decides on pops of its own elements: of which others are left, those cannot be taken to have
    /// happened before.
    pub(super) fn conflict_on_what_was_left(&mut self) {
        for taken in std::mem::take(&mut self.taken).values() {
            for (begin, end) in taken.iter() {
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
                Entry::Settled(Some(value)) => inner.set(key, value),
                // Nothing of it is below, nor will be.
                Entry::Settled(None) if self.own.contains(key) => {}
                Entry::Settled(None) => {
                    let mut last = None;
                    if let Some(end) = self.clearable_until(key) {
                        let is_clear = |(key, entry): &(&Bytes, &Entry)| {
                            key.as_ref() < end && matches!(entry, Entry::Settled(None))
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
                Entry::Changed(changes) => {
                    for change in changes {
                        match *change {
                            Change::Add(delta) => inner.atomic_add(key, delta),
                            Change::Min(operand) => inner.atomic_min(key, operand),
                        }
                    }
                }
            }
        }
        for (prefix, values) in self.writes.appended() {
            inner.append(prefix, values);
        }
    }

    /// Up to where keys that are cleared may be cleared as a range from `key` on, without a row
    /// between them that must stay: the snapshot has none there, and where another transaction
    /// has put one since, this one conflicts with it.
    fn clearable_until(&self, key: &[u8]) -> Option<&[u8]> {
        let covered_until = self.conflicts.end_of(key)?;
        let empty_until = self.known.empty_until(key)?;
        Some(covered_until.min(empty_until))
    }
}
