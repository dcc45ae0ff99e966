//! The writer's lock. It lets one transaction write at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::journal::Record;
use super::snapshot_cache::SnapshotCache;

/// A fair lock: a busy writer that releases it and wants it again at once waits for those already
/// waiting.
#[derive(Debug, Default)]
pub(super) struct WriterLock {
    /// Locked while waiting for `lock`.
    queue: Mutex<()>,
    lock: Mutex<Writer>,
}

/// What the writer that holds the lock works with. The next transaction reuses the memory.
#[derive(Debug, Default)]
pub(super) struct Writer {
    /// The writes so far, for the journal.
    pub(super) record: Record,
    /// What was read from the snapshot.
    pub(super) cache: SnapshotCache,
}

impl Writer {
    /// Begins a transaction.
    pub(super) fn reset(&mut self) {
        self.record.reset();
        self.cache.reset();
    }
}

impl WriterLock {
    /// Whether nobody holds it or waits for it.
    pub(super) fn is_free(&self) -> bool {
        self.queue.try_lock().is_ok() && self.lock.try_lock().is_ok()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Writer> {
        let _first = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
