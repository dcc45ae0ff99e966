//! What the latest commit has left of rows that nearly every command needs, on a store with a single
//! writer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::layout::Id;

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
/// missing takes three searches.
///
/// Only this process writes, one transaction after the other, and each tells what it knows before the
/// next one begins. So a transaction may rely on it. A snapshot that was opened before SWAPDB or FLUSHDB
/// may be read with what they have made databases show: that is the state between them and what
/// was written at the same moment or later. It may not be read with a later number of flushes.
#[derive(Debug, Default)]
pub struct LatestKnown {
    latest: Mutex<Arc<Known>>,
}

impl LatestKnown {
    fn latest(&self) -> MutexGuard<'_, Arc<Known>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known.
    pub fn get(&self) -> Arc<Known> {
        Arc::clone(&self.latest())
    }

    /// A transaction has ended in which this was known at last. Nothing else is known from now on.
    pub fn set(&self, known: Known) {
        *self.latest() = Arc::new(known);
    }
}

#[cfg(test)]
mod tests;
