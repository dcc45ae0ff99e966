//! What the latest commit has left of rows that nearly every command needs, on a store with a single
//! writer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quoin_layout::Id;

/// What is known. Databases may be missing.
#[derive(Debug, Default, Clone)]
pub struct Known {
    /// Databases with the namespaces that they show.
    pub namespaces: Vec<(u32, Id)>,
    /// How often scripts were flushed.
    pub script_flushes: Option<u64>,
}

impl Known {
    /// The namespace that a database shows.
    pub fn namespace(&self, database: u32) -> Option<Id> {
        let mut namespaces = self.namespaces.iter();
        let found = namespaces.find(|(known, _)| *known == database);
        found.map(|(_, namespace)| *namespace)
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.namespaces.is_empty() && self.script_flushes.is_none()
    }

    /// Adds what was known before, and is not known yet.
    pub fn complete(&mut self, before: &Known) {
        for (database, namespace) in &before.namespaces {
            if self.namespace(*database).is_none() {
                self.namespaces.push((*database, *namespace));
            }
        }
        self.script_flushes = self.script_flushes.or(before.script_flushes);
    }
}

/// Spares each unit of work a look at these rows. Most stores lack them, and to find that a row is
/// missing takes three searches (docs/understand/decisions/018-checked-rows.md#known-rows).
///
/// Only this process writes, one transaction after the other, and each tells what it knows before the
/// next one begins. A transaction that has news forgets what was known before it commits. So what is
/// known before and after a snapshot is opened, and is the same, holds in the snapshot.
#[derive(Debug, Default)]
pub struct LatestKnown {
    latest: Mutex<Option<Arc<Known>>>,
}

impl LatestKnown {
    fn latest(&self) -> MutexGuard<'_, Option<Arc<Known>>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known. To be called before a snapshot is opened, or while no other transaction is under way.
    pub fn get(&self) -> Option<Arc<Known>> {
        self.latest().clone()
    }

    /// What was known, if it has not changed since: to be called after a snapshot was opened.
    pub fn unchanged(&self, known: Option<Arc<Known>>) -> Option<Arc<Known>> {
        let known = known?;
        let latest = self.latest();
        let is_latest = latest.as_ref().is_some_and(|one| Arc::ptr_eq(one, &known));
        is_latest.then_some(known)
    }

    /// A transaction that has news is about to commit.
    pub fn forget(&self) {
        *self.latest() = None;
    }

    /// A transaction is committed in which this was known at last.
    pub fn set(&self, known: Known) {
        *self.latest() = Some(Arc::new(known));
    }
}

#[cfg(test)]
mod tests;
