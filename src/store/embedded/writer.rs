//! The lock that makes one transaction write at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock for which nobody waits longer than the one before takes: whoever lets it go and wants
/// it again at once, as a busy writer does, queues behind who waits already.
#[derive(Debug, Default)]
pub(super) struct WriterLock {
    /// Held while waiting for `lock`.
    queue: Mutex<()>,
    lock: Mutex<()>,
}

impl WriterLock {
    pub(super) fn lock(&self) -> MutexGuard<'_, ()> {
        let _first = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
