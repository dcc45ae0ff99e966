//! What goes to the client: replies and messages.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::BytesMut;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use super::{Connection, Ended};
use crate::limits::{
    IDLE_INPUT_BYTES_MAX, OUTPUT_FLUSH_BYTES, OUTPUT_LIMIT_CHECK_INTERVAL, OUTPUT_STALL,
    SHUTDOWN_OUTPUT_WAIT_MAX, UNCOUNTED_OUTPUT_BYTES,
};
use crate::reply::Reply;
use crate::server::ServerState;
use crate::server::connection_commands::describe_client;
use crate::server::transaction::OpenTransaction;
use crate::wire::encode::encode;

impl Connection {
    /// Moves the messages that wait now to the output.
    pub(super) async fn put_messages(&mut self) -> Result<(), Ended> {
        if self.session.subscriptions.is_empty() {
            return Ok(());
        }
        self.put_last_messages().await
    }

    /// [`Self::put_messages`], even though the client may not be subscribed any more.
    pub(super) async fn put_last_messages(&mut self) -> Result<(), Ended> {
        let (mut left, _) = self.session.client.mailbox.waiting();
        while left > 0 {
            let taken = self.session.client.mailbox.take(
                &mut self.output,
                self.session.protocol,
                left,
                OUTPUT_FLUSH_BYTES,
            );
            // They are dropped when they have become too many.
            if taken == 0 {
                break;
            }
            left -= taken;
            self.flush_when_large().await?;
        }
        Ok(())
    }

    pub(super) fn answer(&mut self, reply: &Reply, is_answered: bool) {
        if let Reply::Error(line) = reply {
            self.state.statistics.record_error(line);
        }
        if is_answered || reply.is_push() {
            encode(reply, self.session.protocol, &mut self.output);
        }
    }

    /// Tells other clients (CLIENT LIST) how full the buffers are, and has the memory of all bounded.
    pub(super) fn note_buffers(&self) {
        let client = &self.session.client;
        let input_capacity = self.input.capacity() + self.ahead.capacity();
        let waiting = self.input.len() + self.ahead.len();
        let arguments = self.call_bytes + self.parser.held_bytes();
        let transaction = self.session.transaction.as_ref();
        let transaction = transaction.map_or(0, OpenTransaction::held_bytes);
        let output_capacity = self.output.capacity();
        for (figure, bytes) in [
            (&client.input_bytes, self.consumed_bytes + waiting),
            (&client.input_free_bytes, input_capacity - waiting),
            (&client.argument_bytes, arguments),
            (&client.transaction_bytes, transaction),
            (&client.output_bytes, output_capacity),
            (&client.output_unsent_bytes, self.unsent_bytes()),
        ] {
            figure.store(bytes, Ordering::Relaxed);
        }
        client
            .is_trusted
            .store(self.session.is_authenticated, Ordering::Relaxed);
        let held = beyond_idle(&self.input, IDLE_INPUT_BYTES_MAX)
            + self.ahead.capacity()
            + arguments
            + transaction
            + beyond_idle(&self.output, OUTPUT_FLUSH_BYTES);
        self.state.note_client_memory(client, held);
    }

    fn unsent_bytes(&self) -> usize {
        self.output.len() - self.sent_bytes
    }

    pub(super) async fn flush_when_large(&mut self) -> Result<(), Ended> {
        if self.output.len() >= OUTPUT_FLUSH_BYTES {
            self.flush().await
        } else {
            Ok(())
        }
    }

    pub(super) async fn flush(&mut self) -> Result<(), Ended> {
        if self.output.is_empty() {
            return Ok(());
        }
        self.state
            .statistics
            .output_bytes
            .add(self.output.len() as u64);
        self.state.statistics.writes_processed.add(1);
        let written = match self.is_output_cut {
            false => self.write_output().await,
            true => Err(Ended),
        };
        // What follows would stand in the middle of a reply.
        self.is_output_cut |= written.is_err();
        self.output.clear();
        self.sent_bytes = 0;
        written
    }

    /// Writes the output. Where the client does not take it, what it sends is read meanwhile: it may
    /// want to send everything before it reads.
    async fn write_output(&mut self) -> Result<(), Ended> {
        self.note_interaction();
        let client = Arc::clone(&self.session.client);
        let _awaited = client.await_client();
        let mut above_soft_since = None;
        let mut is_stalled = false;
        let mut has_ended_input = false;
        loop {
            self.check_output(&mut above_soft_since)?;
            let rest = self.output.get(self.sent_bytes..).unwrap_or_default();
            if rest.is_empty() {
                return Ok(());
            }
            let (mut reader, mut writer) = self.stream.split();
            tokio::select! {
                biased;
                written = writer.write(rest) => match written {
                    Ok(0) | Err(_) => return Err(Ended),
                    Ok(count) => {
                        self.sent_bytes += count;
                        is_stalled = false;
                        // So that a client which reads slowly, but does, is not an idle one.
                        self.note_interaction();
                        if self.unsent_bytes() == 0 {
                            return Ok(());
                        }
                    }
                },
                () = client.wait_killed() => return Err(Ended),
                () = lingered(&self.state, &mut self.lingers_until) => return Err(Ended),
                read = self.ahead.receive(&mut reader), if is_stalled && !has_ended_input => {
                    match read {
                        Err(_) => return Err(Ended),
                        // It may still read.
                        Ok(0) => has_ended_input = true,
                        Ok(count) => {
                            self.note_read(count);
                            self.check_input()?;
                        }
                    }
                }
                () = stalling(is_stalled) => is_stalled = true,
            }
            self.note_buffers();
        }
    }

    /// Ends the connection of a client for which more waits than may. `above_soft_since` is when its
    /// output was first seen above the soft limit.
    fn check_output(&self, above_soft_since: &mut Option<i64>) -> Result<(), Ended> {
        let counted = self.unsent_bytes().saturating_sub(UNCOUNTED_OUTPUT_BYTES) as u64;
        if counted == 0 {
            *above_soft_since = None;
            return Ok(());
        }
        let client = &self.session.client;
        let (limit, messages) = match self.session.subscriptions.is_empty() {
            true => (self.state.config.normal_limit(), 0),
            false => (
                self.state.config.subscriber_limit(),
                client.mailbox.waiting().1,
            ),
        };
        let now_ms = self.state.clock.now_ms();
        if !limit.is_exceeded(counted + messages, above_soft_since, now_ms) {
            return Ok(());
        }
        self.note_buffers();
        self.state
            .disconnections
            .output_buffer(|| describe_client(client, now_ms));
        Err(Ended)
    }
}

/// Waits until a client counts as one that takes nothing, then until its limits are due to be looked
/// at. Most writes are done at once, and never begin this.
async fn stalling(is_stalled: bool) {
    let pause = match is_stalled {
        true => OUTPUT_LIMIT_CHECK_INTERVAL,
        false => OUTPUT_STALL,
    };
    tokio::time::sleep(pause).await;
}

/// What a buffer counts in `maxmemory-clients`: the little room that an idle connection keeps does
/// not, or many of those would be too much.
fn beyond_idle(buffer: &BytesMut, idle_bytes: usize) -> usize {
    match buffer.capacity() {
        capacity if capacity > idle_bytes => capacity,
        _ => buffer.len(),
    }
}

/// Waits until a shutdown has waited long enough for a client to take its output. All of a client's
/// waits share the time, which begins with the first.
async fn lingered(state: &ServerState, until: &mut Option<Instant>) {
    state.stopping().await;
    let until = until.get_or_insert_with(|| Instant::now() + SHUTDOWN_OUTPUT_WAIT_MAX);
    tokio::time::sleep_until(*until).await;
}
