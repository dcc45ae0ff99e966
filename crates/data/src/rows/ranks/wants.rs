//! Keys in which commands have read many elements to find a rank.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::keyspace::key::ClientKey;

/// Keys that are noted. Commands note others again when these are done.
const WANTS_MAX: usize = 64;

/// The keys whose blocks background work should look after.
#[derive(Debug, Default)]
pub struct RankWants(Mutex<BTreeSet<ClientKey>>);

impl RankWants {
    /// Notes a key.
    pub fn add(&self, key: ClientKey) {
        let mut wants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if wants.len() < WANTS_MAX {
            wants.insert(key);
        }
    }

    /// Whether a key is noted.
    pub fn is_wanted(&self) -> bool {
        !{ self.0.lock().unwrap_or_else(PoisonError::into_inner) }.is_empty()
    }

    /// All that were noted since the last time.
    pub fn take(&self) -> BTreeSet<ClientKey> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
