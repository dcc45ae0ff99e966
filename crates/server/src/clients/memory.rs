//! The memory that all clients take together.
//!
//! Each connection reports how much it takes: its buffers, and what it keeps for its client. Each message that waits for subscribers counts
//! its own bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How much memory all clients take.
#[derive(Debug, Default)]
pub(crate) struct BufferMemory(AtomicUsize);

impl BufferMemory {
    /// The number of bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Notes that a buffer that took `before` bytes takes `now`.
    pub(crate) fn replace(&self, before: usize, now: usize) {
        // Wraps around and back: each part is subtracted as it was added.
        if before != now {
            self.0
                .fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
        }
    }
}

/// Bytes with several owners. They count once, until the last owner drops them.
pub(super) struct SharedBytes {
    bytes: Vec<u8>,
    memory: Arc<BufferMemory>,
}

impl SharedBytes {
    pub(super) fn new(bytes: Vec<u8>, memory: Arc<BufferMemory>) -> Self {
        memory.replace(0, bytes.capacity());
        Self { bytes, memory }
    }
}

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for SharedBytes {
    fn drop(&mut self) {
        self.memory.replace(self.bytes.capacity(), 0);
    }
}
