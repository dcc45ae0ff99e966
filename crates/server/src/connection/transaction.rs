//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::connection::dispatch::Dispatch;
use crate::connection::permission::lacks_named_keys;
use crate::connection::state::{Connection, Ended, Queued, QueuedCommand, QueuedExec};
use crate::connection_commands;
use crate::session::{CommandKind, OpenTransaction, TransactionCommand};
use quoin_base::limits::WATCHED_KEYS_MAX;
use quoin_data::command::call::Invocation;
use quoin_data::command::flags::Flags;
use quoin_data::command::row::{ConnectionCommand, Handler, Row};
use quoin_data::error::CommandError;
use quoin_engine::{Bundle, Call, WatchedKey};
use quoin_resp::reply::Reply;
use quoin_resp::wire::request::Request;

const QUEUED: Reply = Reply::Simple("QUEUED");

/// The result of queueing a request while a transaction is open.
pub(super) enum WithinMulti {
    /// It was queued or refused, with this reply.
    Answered(Reply),
    /// It is executed at once.
    Execute(Dispatch, Request),
}

impl Connection {
    /// CLIENT PAUSE also holds back commands that MULTI queues.
    pub(super) async fn wait_to_queue(
        &mut self,
        dispatched: &Dispatch,
        arguments: &[Bytes],
    ) -> Result<(), Ended> {
        let (Dispatch::Data(row) | Dispatch::Connection(_, row)) = dispatched else {
            return Ok(());
        };
        if self.session.transaction.is_none() || row.flags.contains(Flags::NO_MULTI) {
            return Ok(());
        }
        let may_write = self.may_write(row, arguments).await?;
        if self.state.pause.applies(may_write) {
            self.run_calls().await?;
        }
        self.wait_for_pause(may_write).await
    }

    /// Queues a request for EXEC, except for the commands that are executed at once.
    pub(super) fn queue_for_exec(&mut self, dispatched: Dispatch, request: Request) -> WithinMulti {
        let Some(transaction) = &mut self.session.transaction else {
            return WithinMulti::Execute(dispatched, request);
        };
        let (kind, row) = match dispatched {
            Dispatch::Data(row) if matches!(row.handler, Handler::Pure(_)) => {
                (CommandKind::Pure, row)
            }
            Dispatch::Data(row) => (CommandKind::Data, row),
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
            Dispatch::Connection(command, row) => (CommandKind::Connection(command), row),
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
        let command = TransactionCommand {
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
        CommandError::abort_of_exec(&line).to_line()
    }

    /// Executes one of these commands, or collects it together with earlier ones of the pipeline.
    pub(super) async fn execute_transaction_command(
        &mut self,
        command: ConnectionCommand,
        row: &'static Row,
        arguments: Vec<Bytes>,
    ) -> Result<(), Ended> {
        let is_about_watches = matches!(
            command,
            ConnectionCommand::Watch | ConnectionCommand::Unwatch
        );
        if is_about_watches || self.session.watch.len() > 0 {
            // The commands before it may change a watched key.
            self.run_calls().await?;
        }
        if self.queued.is_empty() {
            self.put_messages().await?;
        }
        self.show(row);
        let is_answered = self.session.take_reply_mode();
        let started = Instant::now();
        let is_open = self.session.transaction.is_some();
        let refused = |text: &str| Reply::Error(text.to_owned());
        let reply = match command {
            ConnectionCommand::Multi if is_open => refused("ERR MULTI calls can not be nested"),
            ConnectionCommand::Multi => {
                self.session.transaction = Some(OpenTransaction::default());
                self.session.client.details().queued_commands = Some(0);
                Reply::OK
            }
            ConnectionCommand::Discard if is_open => {
                self.session.discard(self.state.executor.watchers());
                Reply::OK
            }
            ConnectionCommand::Discard => refused("ERR DISCARD without MULTI"),
            ConnectionCommand::Watch if is_open => refused("ERR WATCH inside MULTI is not allowed"),
            ConnectionCommand::Watch => self
                .watch(&arguments)
                .await
                .unwrap_or_else(|error| Reply::Error(error.to_line())),
            ConnectionCommand::Exec => match self.session.transaction.take() {
                None => refused("ERR EXEC without MULTI"),
                Some(transaction) => match self.refusal_of_exec(&transaction) {
                    None => {
                        let exec = QueuedCommand { row, is_answered };
                        return self.exec(exec, arguments, transaction).await;
                    }
                    Some(line) => {
                        self.session.discard(self.state.executor.watchers());
                        Reply::Error(line)
                    }
                },
            },
            _ => {
                self.session.unwatch(self.state.executor.watchers());
                Reply::OK
            }
        };
        self.record(row, started.elapsed(), &reply, Some(&arguments));
        self.show_monitors(row, &arguments);
        self.answer_in_turn(reply, is_answered).await
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
        let read = self
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
        let refused = match read.await {
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

    /// The error line if EXEC runs nothing.
    fn refusal_of_exec(&self, transaction: &OpenTransaction) -> Option<String> {
        if transaction.is_aborted {
            let line = "EXECABORT Transaction discarded because of previous errors.";
            return Some(line.to_owned());
        }
        // Since they were queued, the store may have more data or less room.
        let refusal = CommandError::of_growth(self.state.store.growth())?;
        let adds = |command: &TransactionCommand| command.row.flags.contains(Flags::DENYOOM);
        let is_refused = transaction.commands.iter().any(adds);
        is_refused.then(|| CommandError::abort_of_exec(&refusal.to_line()).to_line())
    }

    /// EXEC. The queued commands on data are one store transaction, which goes to the executor with
    /// the surrounding commands of the pipeline. The server executes its own commands after the
    /// commit.
    async fn exec(
        &mut self,
        exec: QueuedCommand,
        arguments: Vec<Bytes>,
        transaction: OpenTransaction,
    ) -> Result<(), Ended> {
        let (watched, touched) = self.session.unwatch(self.state.executor.watchers());
        self.session.client.details().queued_commands = None;
        let bytes = transaction.held_bytes();
        let mut commands = transaction.commands;
        // A monitor sees commands in the order in which they run.
        let runs_alone = !watched.is_empty()
            || self.transaction_may_notify_itself(&commands)
            || !self.state.monitors.is_empty();
        let mut may_write = false;
        for command in &commands {
            may_write |= self.may_write(command.row, &command.arguments).await?;
        }
        let waits = self.state.pause.applies(may_write);
        if runs_alone || waits {
            self.run_calls().await?;
        }
        self.call_bytes += bytes;
        if waits {
            self.note_buffers();
            self.wait_for_pause(may_write).await?;
        }
        if runs_alone || waits {
            self.put_messages().await?;
        }
        let (invocations, forgets) = self.invocations_of(&mut commands);
        let is_needed = !invocations.is_empty() || !watched.is_empty();
        let queued = QueuedExec {
            exec,
            arguments,
            commands,
            forgets,
        };
        if !is_needed {
            self.run_calls().await?;
            self.show(exec.row);
            let nothing = Ok((Vec::new(), Vec::new()));
            self.end_exec(queued, nothing, Duration::ZERO).await;
            self.call_bytes = 0;
            self.put_last_messages().await?;
            return self.flush_when_large().await;
        }
        let bundle = Bundle {
            invocations,
            watched,
            touched,
        };
        let call = Call::transaction(bundle, self.state.executor.plans());
        self.calls.push(call);
        self.queued.push(Queued::Exec(Box::new(queued)));
        if runs_alone || self.is_submission_full() {
            self.run_calls().await?;
        }
        if runs_alone {
            // It may have published to its own client and then unsubscribed it.
            self.put_last_messages().await?;
        }
        Ok(())
    }

    /// The queued commands on data that the user may still run, each with the database of the last
    /// SELECT before it. Takes their arguments. The user is that of the last AUTH before the
    /// command. Changes made by an ACL SETUSER among the commands take effect only after the
    /// transaction.
    ///
    /// Also returns whether the client must forget what they read: it begins to track keys in
    /// between, but the server applies that after the commit.
    fn invocations_of(&self, commands: &mut [TransactionCommand]) -> (Vec<Invocation>, bool) {
        let mut database = self.session.database;
        let mut origin = self.session.origin();
        if commands.iter().any(|one| one.kind != CommandKind::Data) {
            // The reply is put together of theirs, in a protocol that they may change.
            origin.forwarded_as = None;
        }
        let mut user = Arc::clone(&self.session.user);
        let mut begins_to_track = false;
        let mut forgets = false;
        let mut invocations = Vec::with_capacity(commands.len());
        for command in commands {
            match command.kind {
                CommandKind::Connection(ConnectionCommand::Select) => {
                    let selected = connection_commands::selected_database(
                        &command.arguments,
                        &self.session,
                        &self.state,
                    );
                    database = selected.unwrap_or(database);
                }
                // Tracking too many keys is safe.
                CommandKind::Connection(ConnectionCommand::Client) => {
                    origin.tracks |= command.row.name == "client|caching";
                    begins_to_track |= command.row.name == "client|tracking";
                }
                CommandKind::Connection(kind) => {
                    let next =
                        connection_commands::next_user(kind, &command.arguments, &self.state);
                    user = next.unwrap_or(user);
                }
                CommandKind::Pure => {}
                CommandKind::Data => {
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
}
