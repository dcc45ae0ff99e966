//! The memory that the buffers of all clients take together, and its bound (`maxmemory-clients`).
//!
//! Each connection notes how much its buffers take, each message that waits for subscribers counts
//! itself; beyond the bound clients are evicted, as in Redis the largest first.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::clients::ClientRecord;
use super::connection_commands::describe_client;
use super::state::ServerState;
use crate::limits::{CLIENT_EVICTION_LIMIT_BYTES_MIN, CLIENT_EVICTION_SIXTEENTHS};

/// How much the buffers of all clients take.
#[derive(Debug, Default)]
pub struct BufferMemory(AtomicUsize);

impl BufferMemory {
    /// Their bytes.
    pub fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Notes that something that took `before` bytes takes `now`.
    pub fn replace(&self, before: usize, now: usize) {
        // Wraps around and back: each part is taken off as it was added.
        if before != now {
            self.0
                .fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
        }
    }
}

/// Bytes that several may hold, and that count once, until the last of them has let go.
pub(super) struct Shared {
    bytes: Vec<u8>,
    memory: Arc<BufferMemory>,
}

impl Shared {
    pub(super) fn new(bytes: Vec<u8>, memory: Arc<BufferMemory>) -> Self {
        memory.replace(0, bytes.capacity());
        Self { bytes, memory }
    }
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.memory.replace(self.bytes.capacity(), 0);
    }
}

impl ServerState {
    /// What the setting `maxmemory-clients` means in bytes; `None` is no bound.
    pub(super) fn buffer_limit_bytes(&self) -> Option<u64> {
        let limit = self.config.maxmemory_clients().bytes(self.memory_bytes);
        limit.map(|bytes| bytes.max(CLIENT_EVICTION_LIMIT_BYTES_MIN))
    }

    /// Notes how much memory a client's buffers take.
    pub(super) fn note_client_memory(&self, client: &ClientRecord, bytes: usize) {
        self.clients.note_held(client, bytes);
        // Where nobody is left to evict, looking again is left to the sampler.
        if !self.clients.is_exhausted() {
            self.bound_buffers();
        }
    }

    /// Evicts clients where their buffers take too much.
    pub(super) fn bound_buffers(&self) {
        let Some(limit) = self.buffer_limit_bytes() else {
            return;
        };
        let held = self.clients.memory().bytes() as u64;
        if held < limit {
            return;
        }
        let target = limit / 16 * CLIENT_EVICTION_SIXTEENTHS;
        let target = usize::try_from(target).unwrap_or(usize::MAX);
        let now_ms = self.clock.now_ms();
        let is_enough = self.clients.evict(target, |client| {
            self.disconnections
                .evicted(|| describe_client(client, now_ms));
        });
        if !is_enough {
            self.disconnections.nobody_to_evict();
        }
    }
}
