//! State that the store's threads and transactions share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::memory::Memory;
use super::room::Room;
use super::watch::WatchRegistry;
use super::writer::WriterLock;
use quoin_base::log_throttle::LogThrottle;
use quoin_store::StoreError;

/// State that the store shares with its transactions and with the sync thread.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) watches: Arc<WatchRegistry>,
    /// The failure that broke the store. Every later transaction is refused.
    pub(super) broken: OnceLock<StoreError>,
    pub(super) writer: WriterLock,
    pub(super) memory: Memory,
    /// Whether a commit has been made since the last checkpoint began.
    pub(super) is_unsynced: AtomicBool,
    /// Consecutive drains and checkpoints that found no room on the disk.
    pub(super) checkpoints_without_room: AtomicU64,
    /// Number of checkpoints made so far.
    pub(super) checkpoints: AtomicU64,
    /// Whether a writer has waited for room since the drain began.
    pub(super) is_drain_awaited: AtomicBool,
    pub(super) room: Room,
    /// Maximum bytes of data, if there is a bound.
    pub(super) data_bytes_max: OnceLock<Arc<AtomicU64>>,
    /// Throttles the warnings that the data file lacks room.
    pub(super) lacks_room: LogThrottle,
}

impl Shared {
    pub(super) fn new(memory: Memory) -> Self {
        Self {
            watches: Arc::default(),
            broken: OnceLock::new(),
            writer: WriterLock::default(),
            memory,
            is_unsynced: AtomicBool::new(false),
            checkpoints_without_room: AtomicU64::new(0),
            checkpoints: AtomicU64::new(0),
            is_drain_awaited: AtomicBool::new(false),
            room: Room::default(),
            data_bytes_max: OnceLock::new(),
            lacks_room: LogThrottle::default(),
        }
    }

    pub(super) fn check(&self) -> Result<(), StoreError> {
        match self.broken.get() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Breaks the store if an error is fatal. The log says so once, with the first cause.
    pub(super) fn failed(&self, error: StoreError) -> StoreError {
        if !matches!(error, StoreError::Fatal(_)) {
            return error;
        }
        let first = || {
            tracing::error!("{error}: every command gets an error until the server is restarted");
            error
        };
        self.broken.get_or_init(first).clone()
    }

    /// Bytes of data: used pages of the data file, and what is still only in memory.
    pub(super) fn data_bytes(&self) -> u64 {
        let pending_bytes = self.memory.dirty_bytes() as u64;
        self.room.used_bytes().saturating_add(pending_bytes)
    }

    pub(super) fn committed(&self) {
        self.is_unsynced.store(true, Ordering::SeqCst);
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a thread of the store panicked, see the log")]
struct Panicked;

/// Does a thread's work. A panic breaks the store: otherwise others would wait for the thread
/// forever.
pub(super) fn guarded(shared: &Shared, work: impl FnOnce()) {
    struct Guard<'s>(&'s Shared);
    impl Drop for Guard<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                self.0.failed(StoreError::Fatal(Arc::new(Panicked)));
            }
        }
    }
    let guard = Guard(shared);
    work();
    drop(guard);
}
