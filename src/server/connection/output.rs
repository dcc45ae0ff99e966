//! What goes to the client: replies and messages.

use std::sync::atomic::Ordering;

use tokio::io::AsyncWriteExt;

use super::{Connection, Ended};
use crate::limits::OUTPUT_FLUSH_BYTES;
use crate::reply::Reply;
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

    /// Tells other clients (CLIENT LIST) how full the buffers are.
    pub(super) fn note_buffers(&self) {
        let client = &self.session.client;
        let free = self.input.capacity() - self.input.len();
        let held_bytes = self.consumed_bytes + self.input.len();
        client.input_bytes.store(held_bytes, Ordering::Relaxed);
        client.input_free_bytes.store(free, Ordering::Relaxed);
        client
            .output_bytes
            .store(self.output.capacity(), Ordering::Relaxed);
        client
            .output_unsent_bytes
            .store(self.output.len(), Ordering::Relaxed);
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
        let written = self.write_output().await;
        self.output.clear();
        written
    }

    async fn write_output(&mut self) -> Result<(), Ended> {
        self.note_interaction();
        let _awaited = self.session.client.await_client();
        let mut rest = self.output.as_ref();
        while !rest.is_empty() {
            let written = tokio::select! {
                biased;
                written = self.stream.write(rest) => written.unwrap_or(0),
                () = self.session.client.wait_killed() => 0,
            };
            if written == 0 {
                return Err(Ended);
            }
            rest = rest.get(written..).unwrap_or_default();
            // So that a client which reads slowly, but does, is not an idle one.
            self.note_interaction();
        }
        Ok(())
    }
}
