//! Input: what the client has sent, and how much of it may wait.

use std::io;

use tokio::io::AsyncReadExt;

use super::read_ahead::READ_BYTES;
use super::state::{Connection, Ended};
use crate::{clients, eviction};
use quoin_base::limits::UNAUTHENTICATED_INPUT_BYTES_MAX;

impl Connection {
    /// Reads bytes from the client. Returns their number, 0 at the end. Cancel-safe.
    pub(super) async fn receive(&mut self) -> io::Result<usize> {
        let (mut reader, _) = self.stream.split();
        // A client that sends nothing costs no buffer.
        reader.readable().await?;
        let wanted = self.parser.bytes_to_reserve(&self.input);
        let room = READ_BYTES.min(eviction::reply_share_bytes(&self.state));
        self.input.reserve(wanted.max(room));
        reader.read_buf(&mut self.input).await
    }

    pub(super) fn note_read(&self, bytes: usize) {
        self.state.statistics.input_bytes.add(bytes as u64);
        self.state.statistics.reads_processed.add(1);
        self.note_interaction();
    }

    /// Notes that the client is not idle (setting `timeout`).
    pub(super) fn note_interaction(&self) {
        let now_ms = self.state.clock.now_ms();
        self.session.client.note_interaction(now_ms);
    }

    /// Moves a chunk of what was read ahead to the input; false if there is none, or if nothing more
    /// shall be executed.
    pub(super) fn take_ahead(&mut self) -> bool {
        if self.session.client.is_killed() || self.state.shutdown.has_begun() {
            return false;
        }
        let Some(chunk) = self.ahead.pop() else {
            return false;
        };
        self.consumed_bytes = 0;
        if self.input.is_empty() && !self.parser.is_inside_request() {
            self.input = chunk;
        } else {
            let wanted = self.parser.bytes_to_reserve(&self.input).max(chunk.len());
            self.input.reserve(wanted);
            self.input.extend_from_slice(&chunk);
        }
        true
    }

    /// Ends the connection of a client that has sent more than may wait.
    pub(super) fn check_input(&self) -> Result<(), Ended> {
        let waiting = self.input.len() + self.ahead.len();
        // No limit is lower.
        if waiting <= UNAUTHENTICATED_INPUT_BYTES_MAX {
            return Ok(());
        }
        let is_trusted = self.session.is_allowed(&self.state.access.users);
        let limit = self.state.config.live.query_buffer_limit_bytes();
        if is_trusted && waiting as u64 <= limit {
            return Ok(());
        }
        self.note_buffers();
        let now_ms = self.state.clock.now_ms();
        let client = &self.session.client;
        self.state
            .disconnections
            .query_buffer(|| clients::describe(client, now_ms));
        Err(Ended)
    }
}
