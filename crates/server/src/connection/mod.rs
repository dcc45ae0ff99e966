//! One connection: reads requests, executes them in order, and writes the replies.
//!
//! Consecutive commands on data in a pipeline go to the executor together. The connection waits for
//! their replies and for the client to take them, and never holds more than one submission's
//! replies (`SUBMISSION_REPLY_BYTES_MAX`, plus the whole last reply). While it waits for the
//! client, it reads what the client sends ([`read_ahead`]), within `client-query-buffer-limit`, but
//! does not execute it.

mod blocking;
mod cluster;
mod dispatch;
mod exec;
mod output;
mod permission;
mod read_ahead;
mod redirects;
mod state;
mod submitting;
mod transaction;
mod waiting;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use tokio::io::AsyncReadExt;

use crate::clients::NO_COMMAND;
use crate::connection::dispatch::{Conditions, Dispatch, dispatch};
use crate::connection::output::is_write;
use crate::connection::read_ahead::READ_BYTES;
use crate::connection::state::Ended;
use crate::connection::transaction::WithinMulti;
use crate::session::LinkStage;
use crate::{clients, connection_commands, eviction, links};
use quoin_base::limits::UNAUTHENTICATED_INPUT_BYTES_MAX;
use quoin_data::command::flags::Flags;
use quoin_data::command::row::{ConnectionCommand, Group, Handler, Row};
use quoin_data::error::CommandError;
use quoin_data::script;
use quoin_data::script::{declared_flags, runs_script};
use quoin_resp::reply::Reply;
use quoin_resp::wire::encode::encode_error_line;
use quoin_resp::wire::request::Request;

pub(super) use state::Connection;

impl Connection {
    /// Serves the client until it leaves, errs, is killed, or the server stops.
    pub(super) async fn serve(mut self) {
        loop {
            if self.execute_input().await.is_err() || self.session.is_closing {
                break;
            }
            if matches!(self.session.link, LinkStage::Proven) {
                self.serve_link().await;
                break;
            }
            if self.state.shutdown.has_begun() || self.session.client.is_killed() {
                break;
            }
            if self.read().await.is_err() {
                break;
            }
        }
        // The commands have run, so the client should get their replies if it still can.
        let is_told = self.flush().await.is_ok();
        self.leave();
        if self.may_still_send && is_told {
            self.note_buffers();
            let state = Arc::clone(&self.state);
            let client = Arc::clone(&self.session.client);
            tokio::select! {
                () = self.stream.linger() => {}
                () = client.wait_killed() => {}
                () = state.shutdown.begun() => {}
            }
        }
        self.stream.close();
    }

    /// Waits for bytes from the client, and meanwhile writes messages to it.
    async fn read(&mut self) -> Result<(), Ended> {
        self.note_interaction();
        // Input that was read ahead comes first.
        while self.ahead.is_empty() && !self.read_or_message().await? {
            self.put_last_messages().await?;
            self.flush().await?;
            self.release_idle_buffers();
            self.note_buffers();
        }
        Ok(())
    }

    /// Waits for bytes from the client. False if a message for it arrives first.
    async fn read_or_message(&mut self) -> Result<bool, Ended> {
        let client = Arc::clone(&self.session.client);
        let _awaited = client.await_client();
        let state = Arc::clone(&self.state);
        tokio::select! {
            read = self.receive() => match read {
                Ok(0) | Err(_) => Err(Ended),
                Ok(count) => {
                    self.note_read(count);
                    self.check_input()?;
                    Ok(true)
                }
            },
            // Any client may get messages, as others may redirect theirs to it.
            () = client.mailbox.ready() => Ok(false),
            () = client.wait_killed() => Err(Ended),
            () = state.shutdown.begun() => Err(Ended),
        }
    }

    /// Reads bytes from the client. Returns their number, 0 at the end. Cancel-safe.
    async fn receive(&mut self) -> io::Result<usize> {
        let (mut reader, _) = self.stream.split();
        // An idle client needs no buffer.
        reader.readable().await?;
        let wanted = self.parser.bytes_to_reserve(&self.input);
        let room = READ_BYTES.min(eviction::reply_share_bytes(&self.state));
        self.input.reserve(wanted.max(room));
        reader.read_buf(&mut self.input).await
    }

    fn note_read(&self, bytes: usize) {
        self.state.statistics.input_bytes.add(bytes as u64);
        self.state.statistics.reads_processed.add(1);
        let read = &self.session.client.read_bytes;
        read.fetch_add(bytes as u64, Ordering::Relaxed);
        self.note_interaction();
    }

    /// Notes that the client is not idle (setting `timeout`).
    fn note_interaction(&self) {
        let now_ms = self.state.clock.now_ms();
        self.session.client.note_interaction(now_ms);
    }

    /// Moves a chunk that was read ahead to the input. False if there is none, or if nothing more may
    /// run.
    fn take_ahead(&mut self) -> bool {
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

    /// Ends the connection if too much input waits.
    fn check_input(&self) -> Result<(), Ended> {
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

    /// Executes every complete request that has arrived.
    async fn execute_input(&mut self) -> Result<(), Ended> {
        self.redirects.begin_round();
        loop {
            // A client that must authenticate first may only send small requests.
            let is_trusted = self.session.is_allowed(&self.state.access.users);
            let unparsed_bytes = self.input.len();
            let parsed = self.parser.parse(&mut self.input, is_trusted);
            self.consumed_bytes += unparsed_bytes.saturating_sub(self.input.len());
            match parsed {
                Ok(Some(request)) => self.execute(request).await?,
                Ok(None) if self.take_ahead() => {
                    // Other clients run between two chunks.
                    tokio::task::yield_now().await;
                }
                Ok(None) => break,
                Err(error) => {
                    self.run_calls().await?;
                    if let Some(line) = error.to_line() {
                        self.state.statistics.record_error("ERR");
                        if self.session.take_reply_mode() {
                            encode_error_line(&line, &mut self.output);
                        }
                    }
                    self.session.is_closing = true;
                    self.may_still_send = true;
                }
            }
            if self.session.is_closing {
                break;
            }
        }
        self.run_calls().await?;
        self.put_messages().await?;
        self.flush().await?;
        self.consumed_bytes = 0;
        self.release_idle_buffers();
        self.note_buffers();
        Ok(())
    }

    async fn execute(&mut self, request: Request) -> Result<(), Ended> {
        if links::handshake::is_step(&request.arguments)
            && let Some(reply) = self.shake_hands(&request.arguments)
        {
            self.run_calls().await?;
            self.answer(&reply, true);
            return Ok(());
        }
        let is_on_sentinel = self.session.is_on_sentinel();
        let conditions = Conditions {
            face: self.session.face,
            is_authenticated: self.session.is_allowed(&self.state.access.users),
            // Scripts do not concern a Sentinel.
            busy: match is_on_sentinel {
                true => None,
                false => self.busy(),
            },
            growth: self.state.store.growth(),
            is_in_multi: self.session.transaction.is_some(),
            is_confined: self.session.is_confined(),
        };
        let arguments = &request.arguments;
        let dispatched = dispatch(arguments, conditions, |row| self.refusal(row, arguments));
        let keeps_caching = matches!(
            dispatched,
            Dispatch::Connection(ConnectionCommand::Client, _)
        );
        self.execute_dispatched(dispatched, request).await?;
        if !keeps_caching {
            self.session.end_caching();
        }
        Ok(())
    }

    /// Takes a step of the handshake with another server. It needs no user, because it proves that
    /// both share a store. `None` if no other server can share this store.
    fn shake_hands(&mut self, arguments: &[Bytes]) -> Option<Reply> {
        let environment = self.state.executor.environment();
        let secret = environment.link_secret.as_ref()?;
        let (reply, stage) =
            links::handshake::answer(secret, &*environment.random, arguments, &self.session.link);
        self.session.is_closing |= matches!(reply, Reply::Error(_));
        self.session.link = stage;
        Some(reply)
    }

    /// Serves another server that has proved that it shares the store, until the link ends.
    async fn serve_link(&mut self) {
        let client = Arc::clone(&self.session.client);
        let input = std::mem::take(&mut self.input);
        tokio::select! {
            ended = links::serve(&mut self.stream, input, &self.state) => if let Err(error) = ended {
                tracing::debug!(%error, "a link from another server ended");
            },
            () = client.wait_killed() => {}
        }
    }

    async fn execute_dispatched(
        &mut self,
        dispatched: Dispatch,
        request: Request,
    ) -> Result<(), Ended> {
        self.wait_to_queue(&dispatched, &request.arguments).await?;
        let (dispatched, request) = match self.queue_for_exec(dispatched, request) {
            WithinMulti::Execute(dispatched, request) => (dispatched, request),
            WithinMulti::Answered(reply) => {
                let is_answered = self.session.take_reply_mode();
                return self.answer_in_turn(reply, is_answered).await;
            }
        };
        if let Dispatch::Data(row) = &dispatched
            && let Some(line) = self.moved_line(row, &request.arguments)
        {
            return self.refuse(Some(row), line).await;
        }
        if let Dispatch::Data(row) | Dispatch::Connection(_, row) = &dispatched
            && !self.session.is_on_sentinel()
            && let may_write = self.may_write(row, &request.arguments).await?
            && self.state.pause.applies(may_write)
        {
            self.run_calls().await?;
            self.wait_for_pause(may_write).await?;
            if let Some(line) = self.refusal(row, &request.arguments) {
                return self.refuse(Some(row), line).await;
            }
        }
        match dispatched {
            Dispatch::Data(row) => {
                if matches!(row.handler, Handler::Pure(_)) {
                    return self.run_pure(row, &request.arguments).await;
                }
                let may_notify_itself = self.may_notify_itself(row);
                if may_notify_itself {
                    self.run_calls().await?;
                    self.put_messages().await?;
                }
                self.queue_call(row, request);
                if may_notify_itself || self.waiting.is_some() || self.is_submission_full() {
                    self.run_calls().await?;
                }
                Ok(())
            }
            Dispatch::Connection(command, row) if row.group == Group::Transactions => {
                self.execute_transaction_command(command, row, request.arguments)
                    .await
            }
            Dispatch::Connection(command, row) => {
                // In the order of the pipeline.
                self.run_calls().await?;
                self.execute_on_server(command, row, &request.arguments)
                    .await?;
                self.flush_when_large().await
            }
            Dispatch::Refused(row, line) => self.refuse(row, line).await,
            Dispatch::Hangup => {
                // In the order of the pipeline.
                self.run_calls().await?;
                let address = &self.session.client.address;
                self.state.warnings.web_request(address);
                Err(Ended)
            }
        }
    }

    /// Answers a command that is refused with this error line.
    async fn refuse(&mut self, row: Option<&'static Row>, line: String) -> Result<(), Ended> {
        self.run_calls().await?;
        let line = self.end_refused_exec(row, line);
        let command_id = row.map(|row| row.id);
        if let Some(command_id) = command_id {
            self.state.statistics.record_rejection(command_id);
        }
        let shown = command_id.unwrap_or(NO_COMMAND);
        self.session.client.show_command(shown);
        let is_answered = self.session.take_reply_mode();
        self.answer(&Reply::Error(line), is_answered);
        self.flush_when_large().await
    }

    /// The error while a script or function has run for longer than `busy-reply-threshold`.
    fn busy(&self) -> Option<CommandError> {
        let scripts = &self.state.executor.environment().scripts;
        let run = scripts.busy(|| self.state.config.live.busy_reply_threshold_ms())?;
        Some(script::busy(run.caller.is_function()))
    }

    /// Runs a command that needs no data.
    async fn run_pure(&mut self, row: &'static Row, arguments: &[Bytes]) -> Result<(), Ended> {
        // In the order of the pipeline.
        self.run_calls().await?;
        self.put_messages().await?;
        self.show(row);
        self.note_buffers();
        let started = Instant::now();
        let reply = self.pure_reply(row, arguments);
        self.record(row, started.elapsed(), &reply, Some(arguments));
        self.show_monitors(row, arguments);
        let is_answered = self.session.take_reply_mode();
        self.answer(&reply, is_answered);
        self.flush_when_large().await
    }

    /// The reply of a command that needs no data. PING is the only one that a confined client may
    /// send, and its reply then has a form that differs from messages.
    fn pure_reply(&self, row: &Row, arguments: &[Bytes]) -> Reply {
        let Handler::Pure(handler) = row.handler else {
            return Reply::Error(CommandError::Syntax.to_line());
        };
        match handler(self.state.executor.environment(), arguments) {
            Ok(_) if self.session.is_confined() && row.flags.contains(Flags::FOR_SUBSCRIBERS) => {
                let message = arguments.get(1).cloned().unwrap_or_default();
                Reply::Array(vec![Reply::bulk("pong"), Reply::Bulk(message)])
            }
            Ok(reply) => reply,
            Err(error) => Reply::Error(error.to_line()),
        }
    }

    /// Executes a command of the server.
    async fn execute_on_server(
        &mut self,
        command: ConnectionCommand,
        row: &'static Row,
        arguments: &[Bytes],
    ) -> Result<(), Ended> {
        let client = Arc::clone(&self.session.client);
        self.put_messages().await?;
        let may_wait = connection_commands::may_wait(command);
        if may_wait {
            self.flush().await?;
            // As in Redis, shown when it begins to wait.
            self.show_monitors(row, arguments);
        } else {
            // Before it runs: CLIENT LIST shows its own client at CLIENT LIST.
            client.show_command(row.id);
        }
        self.note_buffers();
        let started = Instant::now();
        let execution =
            connection_commands::execute(command, row, arguments, &mut self.session, &self.state);
        let reply = if may_wait {
            let shown_until_gone = async {
                // The command is polled first, so it waits by now.
                client.show_command(row.id);
                self.stream.gone().await;
            };
            tokio::select! {
                biased;
                reply = execution => {
                    client.show_command(row.id);
                    reply
                }
                () = shown_until_gone => return Err(Ended),
                () = client.wait_killed() => return Err(Ended),
                () = self.state.shutdown.begun() => return Err(Ended),
            }
        } else {
            execution.await
        };
        let reply = reply.unwrap_or_else(|error| Reply::Error(error.to_line()));
        let waited = std::mem::take(&mut self.session.waited);
        let duration = started.elapsed().saturating_sub(waited);
        self.record(row, duration, &reply, Some(arguments));
        if !may_wait {
            self.show_monitors(row, arguments);
        }
        if connection_commands::ends_subscriptions(command) {
            self.put_last_messages().await?;
        }
        let is_answered = self.session.take_reply_mode();
        self.answer(&reply, is_answered);
        Ok(())
    }

    /// Whether CLIENT PAUSE WRITE holds back a command. For a script or function, its declared
    /// flags decide, if it has any.
    async fn may_write(&mut self, row: &'static Row, arguments: &[Bytes]) -> Result<bool, Ended> {
        if !runs_script(row) || !self.state.pause.applies(true) {
            return Ok(is_write(row));
        }
        // An earlier command of the pipeline may load the script.
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
    async fn wait_for_pause(&mut self, is_write: bool) -> Result<(), Ended> {
        if !self.state.pause.applies(is_write) {
            return Ok(());
        }
        self.flush().await?;
        let client = Arc::clone(&self.session.client);
        let state = Arc::clone(&self.state);
        let _paused = client.enter_pause(state.clock.now_ms());
        self.wait_while_draining(state.pause.wait(is_write)).await
    }
}
