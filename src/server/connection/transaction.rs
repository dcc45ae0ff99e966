//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::draining::is_write;
use super::permission::lacks_named_keys;
use super::state::{Connection, Ended};
use crate::commands::flags::Flags;
use crate::commands::row::{ConnectionCommand, Handler};
use crate::commands::{Invocation, Row};
use crate::error::CommandError;
use crate::executor::{Bundle, Call, WatchedKey, Work};
use crate::limits::{TRANSACTION_REPLY_BYTES_MAX, WATCHED_KEYS_MAX};
use crate::reply::Reply;
use crate::server::connection_commands;
use crate::server::dispatch::Dispatch;
use crate::server::transaction::{OpenTransaction, QueuedCommand, QueuedKind};
use crate::wire::request::Request;

/// The error of an EXEC that is refused for this reason.
fn aborted(line: &str) -> String {
    let reason = line.strip_prefix("ERR ").unwrap_or(line);
    format!("EXECABORT Transaction discarded because of: {reason}")
}

const QUEUED: Reply = Reply::Simple("QUEUED");

/// What happens to a request while a transaction is open.
pub(super) enum WithinMulti {
    /// It was queued or refused, with this reply.
    Answered(Reply),
    /// It is executed at once.
    Execute(Dispatch, Request),
}

impl Connection {
    /// CLIENT PAUSE holds back what MULTI queues, too.
    pub(super) async fn wait_to_queue(&mut self, dispatched: &Dispatch) -> Result<(), Ended> {
        let (Dispatch::Data(row) | Dispatch::Connection(_, row)) = dispatched else {
            return Ok(());
        };
        if self.session.transaction.is_none() || row.flags.contains(Flags::NO_MULTI) {
            return Ok(());
        }
        self.wait_for_pause(is_write(row)).await
    }

    /// Queues a request for EXEC, except for the commands that are executed at once.
    pub(super) fn queue_for_exec(&mut self, dispatched: Dispatch, request: Request) -> WithinMulti {
        let Some(transaction) = &mut self.session.transaction else {
            return WithinMulti::Execute(dispatched, request);
        };
        let (kind, row) = match dispatched {
            Dispatch::Data(row) if matches!(row.handler, Handler::Pure(_)) => {
                (QueuedKind::Pure, row)
            }
            Dispatch::Data(row) => (QueuedKind::Data, row),
            Dispatch::Connection(
                ConnectionCommand::Exec
                | ConnectionCommand::Discard
                | ConnectionCommand::Multi
                | ConnectionCommand::Watch
                | ConnectionCommand::Quit
                | ConnectionCommand::Reset,
                _,
            )
            | Dispatch::Hangup => return WithinMulti::Execute(dispatched, request),
            Dispatch::Connection(command, row) => (QueuedKind::Connection(command), row),
            Dispatch::Refused(..) => {
                transaction.abort();
                return WithinMulti::Execute(dispatched, request);
            }
        };
        if row.flags.contains(Flags::NO_MULTI) {
            transaction.abort();
            self.state.statistics.record_rejection(row.id);
            let line = "ERR Command not allowed inside a transaction".to_owned();
            return WithinMulti::Answered(Reply::Error(line));
        }
        let bytes = request.held_bytes();
        let command = QueuedCommand {
            kind,
            row,
            arguments: request.arguments,
            refusal: None,
        };
        if !transaction.queue(command, bytes) {
            let line = "ERR too many commands in one transaction".to_owned();
            return WithinMulti::Answered(Reply::Error(line));
        }
        let count = i32::try_from(transaction.commands.len()).unwrap_or(i32::MAX);
        self.session.client.details().queued_commands = Some(count);
        WithinMulti::Answered(QUEUED)
    }

    /// Ends the transaction if the refused command is EXEC (Redis: `execCommandAbort`). Returns the
    /// error line, which EXEC changes.
    pub(super) fn end_refused_exec(&mut self, row: Option<&Row>, line: String) -> String {
        let is_exec = row
            .is_some_and(|row| matches!(row.handler, Handler::Connection(ConnectionCommand::Exec)));
        if !is_exec {
            return line;
        }
        self.session.discard(self.state.executor.watchers());
        aborted(&line)
    }

    /// Executes one of these commands.
    pub(super) async fn execute_transaction_command(
        &mut self,
        command: ConnectionCommand,
        arguments: &[Bytes],
    ) -> Result<Reply, Ended> {
        let is_open = self.session.transaction.is_some();
        let refused = |text: &str| Ok(Reply::Error(text.to_owned()));
        match command {
            ConnectionCommand::Multi if is_open => refused("ERR MULTI calls can not be nested"),
            ConnectionCommand::Multi => {
                self.session.transaction = Some(OpenTransaction::default());
                self.session.client.details().queued_commands = Some(0);
                Ok(Reply::OK)
            }
            ConnectionCommand::Discard if is_open => {
                self.session.discard(self.state.executor.watchers());
                Ok(Reply::OK)
            }
            ConnectionCommand::Discard => refused("ERR DISCARD without MULTI"),
            ConnectionCommand::Watch if is_open => refused("ERR WATCH inside MULTI is not allowed"),
            ConnectionCommand::Watch => Ok(self
                .watch(arguments)
                .await
                .unwrap_or_else(|error| Reply::Error(error.to_line()))),
            ConnectionCommand::Exec => match self.session.transaction.take() {
                None => refused("ERR EXEC without MULTI"),
                Some(transaction) => {
                    self.call_bytes = transaction.held_bytes();
                    self.note_buffers();
                    let reply = self.exec(transaction).await;
                    self.call_bytes = 0;
                    reply
                }
            },
            _ => {
                self.session.unwatch(self.state.executor.watchers());
                Ok(Reply::OK)
            }
        }
    }

    /// Reads the fingerprints of keys, to compare them at EXEC.
    async fn watch(&mut self, arguments: &[Bytes]) -> Result<Reply, CommandError> {
        let watchers = self.state.executor.watchers();
        let names = arguments.get(1..).unwrap_or_default();
        if self.session.watch.len() + names.len() > WATCHED_KEYS_MAX {
            return Err(CommandError::text("ERR too many watched keys"));
        }
        // Before the fingerprints are read, so that no change is missed.
        let keys = self
            .session
            .watch
            .begin(self.session.database, names, watchers);
        if keys.is_empty() {
            return Ok(Reply::OK);
        }
        let names: Arc<[Bytes]> = keys.iter().map(|key| key.key.clone()).collect();
        let looked = self
            .state
            .executor
            .read(self.session.database, move |context| {
                let names = Arc::clone(&names);
                Box::pin(async move {
                    let mut fingerprints = Vec::with_capacity(names.len());
                    for name in names.iter() {
                        fingerprints.push(context.fingerprint(name).await?);
                    }
                    Ok(fingerprints)
                })
            });
        let refused = match looked.await {
            Ok(fingerprints) => {
                let watched = keys.into_iter().zip(fingerprints);
                self.session
                    .watch
                    .add(watched.map(|(key, fingerprint)| WatchedKey { key, fingerprint }));
                self.session.note_watching();
                return Ok(Reply::OK);
            }
            Err(error) => error.into(),
        };
        self.session.watch.give_up(keys, watchers);
        Err(refused)
    }

    /// EXEC. The queued commands on data are one store transaction. The server executes its own commands
    /// after the commit. The replies are in the order of the commands.
    async fn exec(&mut self, transaction: OpenTransaction) -> Result<Reply, Ended> {
        let (watched, touched) = self.session.unwatch(self.state.executor.watchers());
        self.session.client.details().queued_commands = None;
        if transaction.is_aborted {
            let line = "EXECABORT Transaction discarded because of previous errors.".to_owned();
            return Ok(Reply::Error(line));
        }
        let adds = |command: &QueuedCommand| command.row.flags.contains(Flags::DENYOOM);
        if !self.state.store.takes_growth() && transaction.commands.iter().any(adds) {
            // The disk has become full since they were queued.
            let line = CommandError::NoRoomToGrow.to_line();
            return Ok(Reply::Error(aborted(&line)));
        }
        let mut commands = transaction.commands.iter();
        let is_write = commands.any(|command| is_write(command.row));
        self.wait_for_pause(is_write).await?;
        let started = Instant::now();
        let mut commands = transaction.commands;
        let (invocations, forgets) = self.invocations_of(&mut commands);
        let is_needed = !invocations.is_empty() || !watched.is_empty();
        let (replies, invocations) = if is_needed {
            let bundle = Bundle {
                invocations,
                watched,
                touched,
            };
            match self.run_bundle(bundle).await {
                Ok(done) => done,
                Err(reply) => return Ok(reply),
            }
        } else {
            (Vec::new(), Vec::new())
        };
        let answered = u32::try_from(replies.len().max(1)).unwrap_or(u32::MAX);
        let share = started.elapsed() / answered;
        let mut done = replies.into_iter().zip(invocations);
        let mut all = Vec::with_capacity(commands.len());
        let mut reply_bytes: usize = 0;
        self.session.is_in_exec = true;
        for command in commands {
            let refusal = match command.kind {
                QueuedKind::Data => command.refusal,
                // In its turn: an AUTH before it counts.
                QueuedKind::Pure | QueuedKind::Connection(_) => {
                    self.refusal_in_exec(&self.session.user, command.row, &command.arguments)
                }
            };
            let reply = match command.kind {
                _ if let Some(line) = refusal => Reply::Error(line),
                QueuedKind::Data => {
                    let Some((reply, invocation)) = done.next() else {
                        break;
                    };
                    self.record(command.row, share, &reply, Some(&invocation.arguments));
                    let (monitors, client) = (&self.state.monitors, &self.session.client);
                    let Invocation {
                        arguments,
                        database,
                        ..
                    } = &invocation;
                    monitors.note(command.row, *database, client, arguments);
                    reply
                }
                QueuedKind::Connection(ConnectionCommand::Unwatch) => Reply::OK,
                // The commands on data are committed by now, so only this one is refused.
                QueuedKind::Connection(_) | QueuedKind::Pure
                    if reply_bytes > TRANSACTION_REPLY_BYTES_MAX =>
                {
                    Reply::Error(CommandError::RepliesTooLarge.to_line())
                }
                // In its turn: a SUBSCRIBE before it changes the form of PING's reply.
                QueuedKind::Pure => {
                    let started = Instant::now();
                    let reply = self.pure_reply(command.row, &command.arguments);
                    self.record(
                        command.row,
                        started.elapsed(),
                        &reply,
                        Some(&command.arguments),
                    );
                    self.show_monitors(command.row, &command.arguments);
                    reply
                }
                QueuedKind::Connection(kind) => {
                    let (row, arguments) = (command.row, command.arguments.as_slice());
                    let started = Instant::now();
                    let reply = connection_commands::execute(
                        kind,
                        row,
                        arguments,
                        &mut self.session,
                        &self.state,
                    )
                    .await
                    .unwrap_or_else(|error| Reply::Error(error.to_line()));
                    self.record(row, started.elapsed(), &reply, Some(arguments));
                    self.show_monitors(row, arguments);
                    reply
                }
            };
            if let Reply::Error(line) = &reply {
                self.state.statistics.record_error(line);
            }
            reply_bytes = reply_bytes.saturating_add(reply.size_hint());
            all.push(reply);
        }
        self.session.is_in_exec = false;
        if forgets && self.session.tracking.is_some() {
            self.state.tracking.invalidate_all_of(&self.session.client);
        }
        Ok(Reply::Array(all))
    }

    /// The queued commands on data that the user may still run, each with the database of the last SELECT
    /// before it. Takes their arguments. The user is that of the last AUTH before the command; what an
    /// ACL SETUSER among the commands changes holds only after the transaction.
    ///
    /// Also whether the client has to forget what they read: it begins to track keys between them,
    /// which the server does after the commit.
    fn invocations_of(&self, commands: &mut [QueuedCommand]) -> (Vec<Invocation>, bool) {
        let mut database = self.session.database;
        let mut origin = self.session.origin();
        let mut user = Arc::clone(&self.session.user);
        let mut begins_to_track = false;
        let mut forgets = false;
        let mut invocations = Vec::with_capacity(commands.len());
        for command in commands {
            match command.kind {
                QueuedKind::Connection(ConnectionCommand::Select) => {
                    let selected = connection_commands::selected_database(&command.arguments);
                    database = selected.unwrap_or(database);
                }
                // Rather too many keys than too few.
                QueuedKind::Connection(ConnectionCommand::Client) => {
                    origin.tracks |= command.row.name == "client|caching";
                    begins_to_track |= command.row.name == "client|tracking";
                }
                QueuedKind::Connection(kind) => {
                    let next =
                        connection_commands::next_user(kind, &command.arguments, &self.state);
                    user = next.unwrap_or(user);
                }
                QueuedKind::Pure => {}
                QueuedKind::Data => {
                    let (row, arguments) = (command.row, &command.arguments);
                    command.refusal = self.refusal_in_exec(&user, row, arguments);
                    if command.refusal.is_some() {
                        continue;
                    }
                    origin.lacks_named_keys = lacks_named_keys(&user, row, arguments);
                    forgets |= begins_to_track;
                    invocations.push(Invocation {
                        row: command.row,
                        arguments: std::mem::take(&mut command.arguments),
                        database,
                        origin,
                    });
                }
            }
        }
        (invocations, forgets)
    }

    /// Runs the transaction. The error is the reply of an EXEC that did nothing.
    async fn run_bundle(&mut self, bundle: Bundle) -> Result<(Vec<Reply>, Vec<Invocation>), Reply> {
        let executor = &self.state.executor;
        let call = Call::transaction(bundle, executor.plans());
        let failed = |error| Reply::Error(CommandError::Store(error).to_line());
        let ended = executor.submit(vec![call]).await.map_err(failed)?;
        let reply = ended.replies.into_iter().next();
        let work = ended.done.into_iter().next().map(|call| call.work);
        match (reply, work) {
            (Some(Reply::Array(replies)), Some(Work::Transaction(bundle))) => {
                Ok((replies, bundle.invocations))
            }
            (Some(reply), _) => Err(reply),
            (None, _) => Err(Reply::NullArray),
        }
    }
}
