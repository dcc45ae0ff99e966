//! Elements that a unit of work added or removed and that are not yet in the counts of their blocks. They are counted
//! together at the end of the unit: once for each block, and on a cluster with overlapping round trips.
//!
//! Also records the keys in which commands have read many elements to find a rank.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use quoin_layout::Id;

use crate::keyspace::key::ClientKey;

/// Elements of a row that were added (positive) or removed (negative).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RankChange {
    pub(super) data: Id,
    pub(super) place: Vec<u8>,
    pub(super) levels: u8,
    pub(super) delta: i64,
}

/// The changes of a unit of work.
#[derive(Debug, Default)]
pub struct RankChanges {
    all: RefCell<Vec<RankChange>>,
    /// How many of them are in the counts.
    counted: Cell<usize>,
}

/// A state to which the changes can be rolled back.
#[derive(Debug, Clone, Copy)]
pub struct RankChangesSavepoint {
    changes: usize,
    counted: usize,
}

impl RankChanges {
    /// Records the current state.
    pub fn savepoint(&self) -> RankChangesSavepoint {
        RankChangesSavepoint {
            changes: self.all.borrow().len(),
            counted: self.counted.get(),
        }
    }

    /// Discards changes made after the savepoint.
    pub fn rollback(&self, savepoint: RankChangesSavepoint) {
        self.all.borrow_mut().truncate(savepoint.changes);
        self.counted.set(savepoint.counted);
    }

    /// Number of changes that are not in the counts.
    pub fn uncounted(&self) -> usize {
        self.all.borrow().len() - self.counted.get()
    }

    pub(super) fn add(&self, change: RankChange) {
        self.all.borrow_mut().push(change);
    }

    /// Takes the changes that are not in the counts, sorted by data and place. They are treated as counted from now
    /// on.
    pub(super) fn take_uncounted(&self) -> Vec<RankChange> {
        let all = self.all.borrow();
        let mut taken = all.get(self.counted.get()..).unwrap_or_default().to_vec();
        self.counted.set(all.len());
        taken.sort_unstable();
        taken
    }

    /// The changes of one value that are not in the counts, sorted by place.
    pub(super) fn uncounted_of(&self, data: Id) -> Vec<(Vec<u8>, i64)> {
        let all = self.all.borrow();
        let uncounted = all.get(self.counted.get()..).unwrap_or_default();
        let of_value = uncounted.iter().filter(|change| change.data == data);
        let mut found: Vec<_> = of_value
            .map(|change| (change.place.clone(), change.delta))
            .collect();
        found.sort_unstable();
        found
    }
}

/// How many keys are recorded. Commands record further keys again later.
const WANTS_MAX: usize = 64;

/// The keys whose blocks background work should maintain.
#[derive(Debug, Default)]
pub struct RankWants(Mutex<BTreeSet<ClientKey>>);

impl RankWants {
    /// Records a key.
    pub fn add(&self, key: ClientKey) {
        let mut wants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if wants.len() < WANTS_MAX {
            wants.insert(key);
        }
    }

    /// Whether any key is recorded.
    pub fn is_wanted(&self) -> bool {
        !{ self.0.lock().unwrap_or_else(PoisonError::into_inner) }.is_empty()
    }

    /// Takes all keys recorded since the previous call.
    pub fn take(&self) -> BTreeSet<ClientKey> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: Id = Id {
        instance: 1,
        sequence: 2,
    };

    fn change(place: &[u8]) -> RankChange {
        RankChange {
            data: DATA,
            place: place.to_vec(),
            levels: 1,
            delta: 1,
        }
    }

    #[test]
    fn what_was_counted_is_counted_again_after_a_rollback() {
        let changes = RankChanges::default();
        changes.add(change(b"b"));
        let savepoint = changes.savepoint();
        changes.add(change(b"a"));
        assert_eq!(changes.take_uncounted(), [change(b"a"), change(b"b")]);
        assert_eq!(changes.uncounted(), 0);
        changes.rollback(savepoint);
        assert_eq!(changes.uncounted_of(DATA), [(b"b".to_vec(), 1)]);
        assert_eq!(changes.take_uncounted(), [change(b"b")]);
    }
}
