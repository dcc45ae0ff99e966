//! Delivery of messages into the mailboxes of clients, which are bounded: a client that does not read
//! is disconnected.

use std::sync::Arc;

use super::clients::{self, BufferMemory, ClientRecord, ClientRegistry, Frame, Pushed};
use super::disconnections::Disconnections;
use quoin_base::clock::Clock;
use quoin_config::RuntimeConfig;

/// Puts messages into mailboxes.
pub(super) struct Delivery {
    config: Arc<RuntimeConfig>,
    clock: Arc<dyn Clock>,
    memory: Arc<BufferMemory>,
    disconnections: Arc<Disconnections>,
}

impl Delivery {
    /// Messages that wait count in `memory`.
    pub(super) fn new(
        config: Arc<RuntimeConfig>,
        clock: Arc<dyn Clock>,
        memory: Arc<BufferMemory>,
        disconnections: Arc<Disconnections>,
    ) -> Self {
        Self {
            config,
            clock,
            memory,
            disconnections,
        }
    }

    /// The memory in which messages count.
    pub(super) fn memory(&self) -> &Arc<BufferMemory> {
        &self.memory
    }

    /// Puts a message into a client's mailbox. Disconnects the client if that is too much
    /// (`client-output-buffer-limit pubsub`).
    pub(super) fn push(&self, client: &ClientRecord, frame: &Frame) {
        let limit = self.config.live.output_limits().subscriber;
        let pushed = client
            .mailbox
            .push(frame.clone(), &limit, self.clock.now_ms());
        if pushed == Pushed::Overflowed {
            self.close(client);
        }
    }

    /// Disconnects clients for which more than the soft limit has waited for too long.
    pub(super) fn close_overdue(&self, clients: &ClientRegistry) {
        let limit = self.config.live.output_limits().subscriber;
        if limit.soft_bytes == 0 {
            return;
        }
        let now_ms = self.clock.now_ms();
        for client in clients.all() {
            if client.mailbox.is_overdue(&limit, now_ms) {
                self.close(&client);
            }
        }
    }

    fn close(&self, client: &ClientRecord) {
        let now_ms = self.clock.now_ms();
        self.disconnections
            .output_buffer(|| clients::describe(client, now_ms));
        client.kill();
    }
}
