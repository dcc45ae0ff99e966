//! Values, after the latest commit, of rows that nearly every command needs. Only for a store with a single writer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quoin_layout::Id;

/// The known values. Databases may be missing.
#[derive(Debug, Default, Clone)]
pub struct Known {
    /// Databases and their namespaces.
    pub namespaces: Vec<(u32, Id)>,
    /// How often scripts were flushed.
    pub script_flushes: Option<u64>,
}

impl Known {
    /// The namespace of a database.
    pub fn namespace(&self, database: u32) -> Option<Id> {
        let mut namespaces = self.namespaces.iter();
        let found = namespaces.find(|(known, _)| *known == database);
        found.map(|(_, namespace)| *namespace)
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.namespaces.is_empty() && self.script_flushes.is_none()
    }

    /// Adds values known before that are not known yet.
    pub fn complete(&mut self, before: &Known) {
        for (database, namespace) in &before.namespaces {
            if self.namespace(*database).is_none() {
                self.namespaces.push((*database, *namespace));
            }
        }
        self.script_flushes = self.script_flushes.or(before.script_flushes);
    }
}

/// Saves each unit of work from reading these rows. Most stores lack them, and finding that a row is missing takes
/// three searches (docs/understand/decisions/018-checked-rows.md#known-rows).
///
/// Only this process writes. Its transactions are sequential, and each reports what it knows before the next one
/// begins. A transaction that has news calls [`Self::forget`] before it commits. So if the known values are the same
/// before and after a snapshot is opened, they hold in the snapshot.
#[derive(Debug, Default)]
pub struct LatestKnown {
    latest: Mutex<Option<Arc<Known>>>,
}

impl LatestKnown {
    fn latest(&self) -> MutexGuard<'_, Option<Arc<Known>>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The known values. Must be called before a snapshot is opened, or while no other transaction is in progress.
    pub fn get(&self) -> Option<Arc<Known>> {
        self.latest().clone()
    }

    /// The given values, if they have not changed. Must be called after a snapshot was opened.
    pub fn unchanged(&self, known: Option<Arc<Known>>) -> Option<Arc<Known>> {
        let known = known?;
        let latest = self.latest();
        let is_latest = latest.as_ref().is_some_and(|one| Arc::ptr_eq(one, &known));
        is_latest.then_some(known)
    }

    /// Must be called before a transaction with news commits.
    pub fn forget(&self) {
        *self.latest() = None;
    }

    /// Must be called after a commit, with the values known at its end.
    pub fn set(&self, known: Known) {
        *self.latest() = Some(Arc::new(known));
    }
}

#[cfg(test)]
mod tests;
