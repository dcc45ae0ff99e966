//! The writer's lock. It lets one transaction write at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::dirty::Dirty;
use super::journal::Record;

/// A fair lock: a busy writer that releases it and wants it again at once waits for those already
/// waiting.
#[derive(Debug, Default)]
pub(super) struct WriterLock {
    /// Locked while waiting for `lock`.
    queue: Mutex<()>,
    lock: Mutex<Writer>,
}

/// What the writer that holds the lock works with.
#[derive(Debug, Default)]
pub(super) struct Writer {
    /// The writes so far, for the journal.
    pub(super) record: Record,
    /// What the data file does not have yet.
    pub(super) dirty: Dirty,
    /// Memory for making rows.
    pub(super) scratch: Vec<u8>,
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

    /// The lock, if nobody holds it or waits for it.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Writer>> {
        let _first = self.queue.try_lock().ok()?;
        self.lock.try_lock().ok()
    }
}
