//! The buffers of a connection: how much memory they take.

use std::sync::atomic::Ordering;

use bytes::BytesMut;

use super::state::Connection;
use crate::eviction;
use crate::transaction::OpenTransaction;

/// Bytes of a pipeline's replies after which they are written before its next commands run.
pub(super) const OUTPUT_FLUSH_BYTES: usize = 64 * 1024;
/// Capacity for output that an idle connection keeps.
const IDLE_OUTPUT_BYTES_MAX: usize = 4 * 1024;

impl Connection {
    /// Frees buffers once all input has been executed. There may be many idle connections.
    pub(super) fn release_idle_buffers(&mut self) {
        if !self.input.is_empty() {
            return;
        }
        self.input = BytesMut::new();
        if self.output.is_empty() && self.output.capacity() > IDLE_OUTPUT_BYTES_MAX {
            self.output = BytesMut::new();
        }
    }

    /// Shows the sizes of the buffers and of all else that is held for the client in its record, and
    /// evicts clients if all take too much.
    pub(super) fn note_buffers(&self) {
        let client = &self.session.client;
        let input_capacity = self.input.capacity() + self.ahead.capacity();
        let waiting = self.input.len() + self.ahead.len();
        let arguments = self.call_bytes + self.parser.held_bytes();
        let transaction = self.session.transaction.as_ref();
        let transaction = transaction.map_or(0, OpenTransaction::held_bytes);
        let output_capacity = self.output.capacity();
        for (shown, bytes) in [
            (&client.input_bytes, self.consumed_bytes + waiting),
            (&client.input_free_bytes, input_capacity - waiting),
            (&client.argument_bytes, arguments),
            (&client.transaction_bytes, transaction),
            (&client.output_bytes, output_capacity),
            (&client.output_unsent_bytes, self.unsent_bytes()),
        ] {
            shown.store(bytes, Ordering::Relaxed);
        }
        client
            .is_trusted
            .store(self.session.is_authenticated, Ordering::Relaxed);
        let held = input_capacity
            + arguments
            + transaction
            + output_capacity
            + self.reply_bytes
            + self.session.held_bytes();
        eviction::note_client_memory(&self.state, client, held);
    }

    /// Bytes of output that the client has not taken yet.
    pub(super) fn unsent_bytes(&self) -> usize {
        self.output.len() - self.sent_bytes
    }
}
