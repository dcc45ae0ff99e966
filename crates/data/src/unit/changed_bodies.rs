//! Small values that servers get into each other's way with.
//!
//! A small value is one row, so changes of its different fields conflict between servers. As rows
//! they would not. An attempt at a batch notes the bodies that it changes, with their counts of
//! changes. Where it conflicts and the next attempt finds another count, some other server has
//! changed the value meanwhile; then it becomes rows.

use std::cell::RefCell;
use std::collections::HashMap;

use quoin_layout::Id;

use crate::keyspace::key::OpenKey;

/// Counts of changes by the metadata's key, with the data id of the value.
type Counts = HashMap<Vec<u8>, (Id, u16)>;

/// The bodies that an attempt has changed.
#[derive(Debug, Default)]
pub struct ChangedBodies {
    /// As it has found them.
    found: RefCell<Counts>,
    /// As the attempt before has found those that it changed, if it conflicted.
    before: Counts,
}

impl ChangedBodies {
    /// What the next attempt is to know of one that conflicted.
    pub fn after_conflict(self) -> Self {
        Self {
            found: RefCell::default(),
            before: self.found.into_inner(),
        }
    }

    /// A body is about to be changed.
    pub fn note(&self, key: &OpenKey) {
        if let Some(body) = &key.meta.body {
            let mut found = self.found.borrow_mut();
            // What the attempt itself changes is not news.
            if !found.contains_key(&key.meta_key) {
                found.insert(key.meta_key.clone(), (key.data(), body.changes));
            }
        }
    }

    /// Whether some other server has changed a body since the attempt before, which conflicted.
    pub fn is_contended(&self, key: &OpenKey) -> bool {
        if self.before.is_empty() || self.found.borrow().contains_key(&key.meta_key) {
            return false;
        }
        match (self.before.get(&key.meta_key), &key.meta.body) {
            (Some((data, changes)), Some(body)) => *data == key.data() && *changes != body.changes,
            _ => false,
        }
    }
}
