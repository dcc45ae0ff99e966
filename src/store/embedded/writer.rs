//! The writer's lock, by which one transaction writes at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A fair lock: a busy writer that releases it and wants it again at once waits for the others that
/// already wait.
#[derive(Debug, Default)]
pub(super) struct WriterLock {
    /// Locked while waiting for `lock`.
    queue: Mutex<()>,
    lock: Mutex<()>,
}

impl WriterLock {
    pub(super) fn lock(&self) -> MutexGuard<'_, ()> {
        let _first = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
