//! Ids that are unique within the store, without coordination.

use std::sync::atomic::{AtomicU64, Ordering};

use quoin_layout::Id;

/// Allocates ids for one server start.
#[derive(Debug)]
pub struct IdAllocator {
    instance: u64,
    next: AtomicU64,
}

impl IdAllocator {
    /// An allocator for the server start with this number. No other start may have the same number.
    pub fn new(instance: u64) -> Self {
        Self {
            instance,
            next: AtomicU64::new(0),
        }
    }

    /// The number of this server start.
    pub fn instance(&self) -> u64 {
        self.instance
    }

    /// An id that was never allocated before.
    pub fn allocate(&self) -> Id {
        Id {
            instance: self.instance,
            sequence: self.next.fetch_add(1, Ordering::Relaxed),
        }
    }
}
