//! Output: replies and messages for the client, and their order.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use crate::connection::state::{Connection, Ended, Queued};
use crate::session::{CommandKind, TransactionCommand};
use crate::state::ServerState;
use crate::{clients, eviction};
use quoin_base::events::EventClasses;
use quoin_base::limits::{SHUTDOWN_OUTPUT_WAIT_MAX, UNCOUNTED_OUTPUT_BYTES};
use quoin_data::command::flags::Flags;
use quoin_data::command::row::Row;
use quoin_engine::Waiter;
use quoin_resp::reply::Reply;
use quoin_resp::wire::encode::encode;

/// Bytes of a pipeline's replies after which they are written before its next commands run.
const OUTPUT_FLUSH_BYTES: usize = 64 * 1024;

/// Time after which a client that does not read its output counts as stalled. Then its input is read
/// ahead. Before that, a slow reader is only slowed down and costs no memory.
const STALL: Duration = Duration::from_millis(10);
/// Interval at which the limits of a stalled output are checked.
const LIMIT_CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl Connection {
    /// Moves the messages that currently wait to the output.
    pub(super) async fn put_messages(&mut self) -> Result<(), Ended> {
        if !self.session.gets_messages() {
            return Ok(());
        }
        self.put_last_messages().await
    }

    /// [`Self::put_messages`] of a client that may no longer be subscribed.
    pub(super) async fn put_last_messages(&mut self) -> Result<(), Ended> {
        let (count, _) = self.session.client.mailbox.waiting();
        self.put_oldest_messages(count).await
    }

    /// Moves the oldest messages to the output.
    async fn put_oldest_messages(&mut self, count: usize) -> Result<(), Ended> {
        let mut left = count;
        while left > 0 {
            let taken = self.session.client.mailbox.take(
                &mut self.output,
                (
                    self.session.protocol,
                    !self.session.subscriptions.is_empty(),
                ),
                left,
                OUTPUT_FLUSH_BYTES,
            );
            // If there are too many messages, the mailbox was emptied.
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

    pub(super) async fn flush_when_large(&mut self) -> Result<(), Ended> {
        if self.output.len() >= OUTPUT_FLUSH_BYTES.min(eviction::reply_share_bytes(&self.state)) {
            self.flush().await
        } else {
            Ok(())
        }
    }

    pub(super) async fn flush(&mut self) -> Result<(), Ended> {
        if self.output.is_empty() {
            return Ok(());
        }
        let bytes = self.output.len() as u64;
        self.state.statistics.output_bytes.add(bytes);
        let written = &self.session.client.written_bytes;
        written.fetch_add(bytes, Ordering::Relaxed);
        self.state.statistics.writes_processed.add(1);
        let written = match self.is_output_cut {
            false => self.write_output().await,
            true => Err(Ended),
        };
        // Further output would be in the middle of a reply.
        self.is_output_cut |= written.is_err();
        self.output.clear();
        self.sent_bytes = 0;
        written
    }

    /// Writes the output. While the client does not take it, its input is read ahead: the client may want
    /// to send everything before it reads. If its blocking command gets its reply meanwhile, the
    /// connection takes it over.
    async fn write_output(&mut self) -> Result<(), Ended> {
        self.note_interaction();
        if self.output.len() > UNCOUNTED_OUTPUT_BYTES {
            // Before it is known whether the client reads.
            self.note_buffers();
        }
        let client = Arc::clone(&self.session.client);
        let _awaited = client.await_client();
        let blocking = self.awaited.clone();
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
                        // A client that reads slowly is not idle.
                        self.note_interaction();
                        if self.unsent_bytes() == 0 {
                            return Ok(());
                        }
                    }
                },
                () = client.wait_killed() => return Err(Ended),
                () = lingered(&self.state, &mut self.lingers_until) => return Err(Ended),
                waiter = answered(blocking.as_deref()) => self.reply_bytes += waiter.take_over(),
                read = self.ahead.receive(&mut reader), if is_stalled && !has_ended_input => {
                    match read {
                        Err(_) => return Err(Ended),
                        // The client may still read.
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

    /// Ends the connection if its output exceeds `client-output-buffer-limit`. `above_soft_since`
    /// is when the output first exceeded the soft limit.
    fn check_output(&self, above_soft_since: &mut Option<i64>) -> Result<(), Ended> {
        let counted = self.unsent_bytes().saturating_sub(UNCOUNTED_OUTPUT_BYTES) as u64;
        if counted == 0 {
            *above_soft_since = None;
            return Ok(());
        }
        let client = &self.session.client;
        let (limit, messages) = match self.session.is_listener() {
            false => (self.state.config.live.output_limits().normal, 0),
            true => (
                self.state.config.live.output_limits().subscriber,
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
            .output_buffer(|| clients::describe(client, now_ms));
        Err(Ended)
    }
}

/// Waits until a blocking command has a reply that was not taken over, and returns its waiter.
async fn answered(blocking: Option<&Waiter>) -> &Waiter {
    match blocking {
        Some(waiter) => {
            waiter.answered().await;
            waiter
        }
        None => std::future::pending().await,
    }
}

/// Waits until a client counts as stalled. If it does already, waits until its limits must be checked.
/// Most writes succeed at once and never wait.
async fn stalling(is_stalled: bool) {
    let pause = match is_stalled {
        true => LIMIT_CHECK_INTERVAL,
        false => STALL,
    };
    tokio::time::sleep(pause).await;
}

/// Waits until a shutdown has waited long enough for a client to take its output. The time begins with
/// the client's first wait and covers all of them.
async fn lingered(state: &ServerState, until: &mut Option<Instant>) {
    state.shutdown.begun().await;
    let until = until.get_or_insert_with(|| Instant::now() + SHUTDOWN_OUTPUT_WAIT_MAX);
    tokio::time::sleep_until(*until).await;
}

impl Connection {
    /// Whether a command may publish a message to its own client, or change a key that the client has
    /// read and tracks. Such a command runs alone, because its reply comes before that message, and
    /// the next reply after it.
    pub(super) fn may_notify_itself(&self, row: &Row) -> bool {
        let tracks_reads = self.session.tracking.is_some_and(|mode| !mode.is_broadcast);
        if tracks_reads && is_write(row) {
            return true;
        }
        if self.session.subscriptions.is_empty() {
            return false;
        }
        let events = self.state.config.live.keyspace_events().classes();
        row.flags.contains(Flags::MAY_REPLICATE)
            || (row.flags.contains(Flags::WRITE) && events != EventClasses::NONE)
    }

    /// [`Self::may_notify_itself`] for a transaction. The server's own commands in it may subscribe the
    /// client.
    pub(super) fn transaction_may_notify_itself(&self, commands: &[TransactionCommand]) -> bool {
        commands
            .iter()
            .any(|command| command.kind != CommandKind::Data || self.may_notify_itself(command.row))
    }

    /// [`Self::may_notify_itself`] for a command that waits for its reply.
    pub(super) fn queued_may_notify_itself(&self, queued: &Queued) -> bool {
        match queued {
            Queued::Command(command) => self.may_notify_itself(command.row),
            Queued::Exec(queued) => self.transaction_may_notify_itself(&queued.commands),
            Queued::Reply(..) => false,
        }
    }

    /// Whether messages that arrive while a command runs are written after its reply. A client that
    /// tracks keys must not get an invalidation before the reply that it invalidates.
    pub(super) fn defers_messages(&self) -> bool {
        self.session.tracking.is_some()
    }

    /// Waits for a future. Meanwhile writes messages to the client and reads ahead.
    pub(super) async fn wait_while_draining<T>(
        &mut self,
        waiting: impl Future<Output = T>,
    ) -> Result<T, Ended> {
        tokio::pin!(waiting);
        loop {
            let client = &self.session.client;
            let (mut reader, _) = self.stream.split();
            tokio::select! {
                biased;
                answer = &mut waiting => return Ok(answer),
                () = client.mailbox.ready() => {
                    // Messages after the answer are written after its reply.
                    let (count, _) = client.mailbox.waiting();
                    if let Poll::Ready(answer) = futures_util::poll!(&mut waiting) {
                        return Ok(answer);
                    }
                    self.put_oldest_messages(count).await?;
                }
                // As in Redis, the client's end is noticed only after all of its input.
                read = self.ahead.receive(&mut reader) => match read {
                    Ok(0) | Err(_) => return Err(Ended),
                    Ok(count) => {
                        self.note_read(count);
                        self.check_input()?;
                    }
                },
                () = self.session.client.wait_killed() => return Err(Ended),
                () = self.state.shutdown.begun() => return Err(Ended),
            }
            self.flush().await?;
            self.note_buffers();
        }
    }
}

/// Whether a command may write, by its flags.
pub(super) fn is_write(row: &Row) -> bool {
    row.flags.contains(Flags::WRITE) || row.flags.contains(Flags::MAY_REPLICATE)
}
