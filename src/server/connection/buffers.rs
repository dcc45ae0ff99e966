//! The buffers of a connection: how much memory they take.

use std::sync::atomic::Ordering;

use bytes::BytesMut;

use super::state::Connection;
use crate::server::eviction;
use crate::server::transaction::OpenTransaction;

/// Capacity for input that an idle connection keeps.
const IDLE_INPUT_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a pipeline's replies after which they are written before its next commands run. An idle
/// connection keeps as much capacity for output.
pub(super) const OUTPUT_FLUSH_BYTES: usize = 64 * 1024;

impl Connection {
    /// Frees large buffers once all input has been executed.
    pub(super) fn release_idle_buffers(&mut self) {
        let is_large = self.input.capacity() > IDLE_INPUT_BYTES_MAX
            || self.output.capacity() > OUTPUT_FLUSH_BYTES;
        if self.input.is_empty() && is_large {
            self.input = BytesMut::new();
            self.output = BytesMut::new();
            self.note_buffers();
        }
    }

    /// Shows the buffers' sizes in the client's record, and evicts clients if all take too much.
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
        let held = beyond_idle(&self.input, IDLE_INPUT_BYTES_MAX)
            + self.ahead.capacity()
            + arguments
            + transaction
            + beyond_idle(&self.output, OUTPUT_FLUSH_BYTES);
        eviction::note_client_memory(&self.state, client, held);
    }

    /// Bytes of output that the client has not taken yet.
    pub(super) fn unsent_bytes(&self) -> usize {
        self.output.len() - self.sent_bytes
    }
}

/// What a buffer counts in `maxmemory-clients`. The capacity that an idle connection keeps does not
/// count, or many idle connections would be too much.
fn beyond_idle(buffer: &BytesMut, idle_bytes: usize) -> usize {
    match buffer.capacity() {
        capacity if capacity > idle_bytes => capacity,
        _ => buffer.len(),
    }
}
