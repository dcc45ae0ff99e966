//! Waiting for something other than the client, while messages go to it.

use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;

use super::state::{Connection, Ended, Queued};
use crate::transaction::{CommandKind, TransactionCommand};
use quoin_base::events::EventClasses;
use quoin_data::command::flags::Flags;
use quoin_data::command::row::Row;
use quoin_data::script::commands::{declared_flags, runs_script};

impl Connection {
    /// Whether a command may publish a message to its own client, or change a key that the client has
    /// read and tracks. Such a command runs alone, because its reply comes before that message, and
    /// the next reply after it.
    pub(super) fn may_hear_itself(&self, row: &Row) -> bool {
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

    /// The same of a transaction. What the server itself does in it may subscribe the client.
    pub(super) fn transaction_may_hear_itself(&self, commands: &[TransactionCommand]) -> bool {
        commands
            .iter()
            .any(|command| command.kind != CommandKind::Data || self.may_hear_itself(command.row))
    }

    /// The same of what is to be answered.
    pub(super) fn queued_may_hear_itself(&self, queued: &Queued) -> bool {
        match queued {
            Queued::Command(command) => self.may_hear_itself(command.row),
            Queued::Exec(queued) => self.transaction_may_hear_itself(&queued.commands),
            Queued::Reply(..) => false,
        }
    }

    /// Whether messages that come while a command runs come after its reply, whatever their cause: a
    /// client must not be told of a change of what it reads before it has read it.
    pub(super) fn defers_messages(&self) -> bool {
        self.session.tracking.is_some()
    }

    /// Whether CLIENT PAUSE WRITE holds back a command: a script or a function by what it declares, if
    /// it declares anything.
    pub(super) async fn may_write(
        &mut self,
        row: &'static Row,
        arguments: &[Bytes],
    ) -> Result<bool, Ended> {
        if !runs_script(row) || !self.state.pause.applies(true) {
            return Ok(is_write(row));
        }
        // What comes before it in the pipeline may load it.
        self.run_calls().await?;
        let named: Vec<Bytes> = arguments.iter().take(2).cloned().collect();
        let read = self
            .state
            .executor
            .read(self.session.database, move |context| {
                let named = named.clone();
                Box::pin(async move { declared_flags(context, row, &named).await })
            });
        let declared = read.await.ok().flatten();
        Ok(declared.map_or(is_write(row), |flags| !flags.no_writes))
    }

    /// Waits while CLIENT PAUSE holds back commands of this kind.
    pub(super) async fn wait_for_pause(&mut self, is_write: bool) -> Result<(), Ended> {
        if !self.state.pause.applies(is_write) {
            return Ok(());
        }
        self.flush().await?;
        let client = Arc::clone(&self.session.client);
        let state = Arc::clone(&self.state);
        let _paused = client.enter_pause();
        self.wait_while_draining(state.pause.wait(is_write)).await
    }

    /// Waits for something. Meanwhile writes messages to the client and reads ahead.
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
                    // What came after the answer comes after its reply.
                    let (count, _) = client.mailbox.waiting();
                    if let Poll::Ready(answer) = futures_util::poll!(&mut waiting) {
                        return Ok(answer);
                    }
                    self.put_oldest_messages(count).await?;
                }
                // As in Redis: that a client is gone is seen only after all that it has sent.
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
fn is_write(row: &Row) -> bool {
    row.flags.contains(Flags::WRITE) || row.flags.contains(Flags::MAY_REPLICATE)
}
