//! One connection: reads requests, has them carried out in order, writes the replies.
//!
//! Commands on data that follow each other in a pipeline go to the executor together. The
//! connection waits for their replies and for the client to take them, and never holds more than
//! one submission's replies (`SUBMISSION_REPLY_BYTES_MAX`, and the last of them whole). While it
//! waits for the client it takes in what the client sends ([`read_ahead`]), within
//! `client-query-buffer-limit`, and carries nothing of it out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::ServerState;
use super::clients::{ClientRecord, NO_COMMAND};
use super::connection_commands;
use super::dispatch::{Conditions, Dispatch, dispatch};
use super::session::Session;
use crate::commands::Row;
use crate::commands::flags::Flags;
use crate::commands::row::{ConnectionCommand, Group, Handler, PureHandler};
use crate::events::EventClasses;
use crate::executor::Call;
use crate::limits::{
    GONE_CHECK_INTERVAL_MS, IDLE_INPUT_BYTES_MAX, OUTPUT_FLUSH_BYTES, SUBMISSION_BYTES_MAX,
    SUBMISSION_COMMANDS_MAX,
};
use crate::reply::Reply;
use crate::wire::encode::encode_error_line;
use crate::wire::request::{Request, RequestLimits, RequestParser};

mod blocking;
mod input;
mod output;
mod read_ahead;
mod submitting;
mod transaction;

use blocking::Waiting;
use read_ahead::ReadAhead;
use transaction::WithinMulti;

/// A client's connection.
pub(super) struct Connection {
    stream: TcpStream,
    state: Arc<ServerState>,
    session: Session,
    parser: RequestParser,
    input: BytesMut,
    /// What comes behind `input`.
    ahead: ReadAhead,
    output: BytesMut,
    /// How much of `output` the client has taken.
    sent_bytes: usize,
    /// A part of some output was not sent: nothing may follow it.
    is_output_cut: bool,
    /// Until when a shutdown waits for the client to take its output; set when it first does.
    lingers_until: Option<tokio::time::Instant>,
    /// Bytes of the requests that were taken off `input` since the last read. Redis keeps those
    /// in its query buffer until all are done, so CLIENT LIST counts them.
    consumed_bytes: usize,
    /// Commands on data that have not been handed over yet.
    calls: Vec<Call>,
    /// What else is to be remembered of each of them.
    queued: Vec<Queued>,
    call_bytes: usize,
    /// How the last of them waits, where it blocks.
    waiting: Option<Waiting>,
}

/// A command that was handed over, besides what the executor needs of it.
#[derive(Clone, Copy)]
struct Queued {
    row: &'static Row,
    is_answered: bool,
}

/// Why a connection ends early.
struct Ended;

impl Connection {
    pub(super) fn new(
        stream: TcpStream,
        client: Arc<ClientRecord>,
        state: Arc<ServerState>,
    ) -> Self {
        let needs_password = state.config.requirepass().is_some();
        Self {
            stream,
            session: Session::new(client, !needs_password),
            parser: RequestParser::new(RequestLimits::default()),
            input: BytesMut::new(),
            ahead: ReadAhead::default(),
            output: BytesMut::new(),
            sent_bytes: 0,
            is_output_cut: false,
            lingers_until: None,
            consumed_bytes: 0,
            calls: Vec::new(),
            queued: Vec::new(),
            call_bytes: 0,
            waiting: None,
            state,
        }
    }

    /// Serves the client until it leaves, errs, is killed, or the server stops.
    pub(super) async fn serve(mut self, mut shutdown: watch::Receiver<bool>) {
        loop {
            if self.carry_out_input().await.is_err() || self.session.is_closing {
                break;
            }
            if *shutdown.borrow() || self.session.client.is_killed() {
                break;
            }
            if self.read(&mut shutdown).await.is_err() {
                break;
            }
        }
        // What the replies say is done is done; the client should read it if it still can.
        let _ = self.flush().await;
        let subscriptions = &mut self.session.subscriptions;
        self.state
            .pubsub
            .unsubscribe_all(&self.session.client, subscriptions);
        self.session.discard(&self.state);
        self.state.clients.remove(self.session.client.id);
    }

    /// Waits for bytes from the client, and writes messages to it meanwhile.
    async fn read(&mut self, shutdown: &mut watch::Receiver<bool>) -> Result<(), Ended> {
        self.note_interaction();
        // What came while output waited comes before what is still to be read.
        while self.ahead.is_empty() && !self.read_or_message(shutdown).await? {
            self.put_messages().await?;
            self.flush().await?;
            self.note_buffers();
        }
        Ok(())
    }

    /// Waits for bytes from the client; false where a message for it has come instead.
    async fn read_or_message(
        &mut self,
        shutdown: &mut watch::Receiver<bool>,
    ) -> Result<bool, Ended> {
        if self.input.is_empty() {
            // An idle client holds no buffers.
            let is_large = self.input.capacity() > IDLE_INPUT_BYTES_MAX
                || self.output.capacity() > OUTPUT_FLUSH_BYTES;
            if is_large {
                self.input = BytesMut::new();
                self.output = BytesMut::new();
                self.note_buffers();
            }
        }
        self.reserve_input();
        let is_subscriber = !self.session.subscriptions.is_empty();
        let client = Arc::clone(&self.session.client);
        let _awaited = client.await_client();
        tokio::select! {
            read = self.stream.read_buf(&mut self.input) => match read {
                Ok(0) | Err(_) => Err(Ended),
                Ok(count) => {
                    self.note_read(count);
                    self.check_input()?;
                    Ok(true)
                }
            },
            () = self.session.client.mailbox.ready(), if is_subscriber => Ok(false),
            () = self.session.client.wait_killed() => Err(Ended),
            () = super::listener::stopping(shutdown) => Err(Ended),
        }
    }

    /// Carries out every whole request that has arrived.
    async fn carry_out_input(&mut self) -> Result<(), Ended> {
        loop {
            // Larger requests are for those who may send commands.
            let is_trusted = self.session.is_authenticated || self.state.is_allowed(&self.session);
            let unparsed_bytes = self.input.len();
            let parsed = self.parser.parse(&mut self.input, is_trusted);
            self.consumed_bytes += unparsed_bytes.saturating_sub(self.input.len());
            match parsed {
                Ok(Some(request)) => self.carry_out(request).await?,
                Ok(None) if self.take_ahead() => {
                    // Others have their turn between two of its parts.
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
        self.note_buffers();
        Ok(())
    }

    async fn carry_out(&mut self, request: Request) -> Result<(), Ended> {
        // Asking whether there is a password is left to those who have not given it.
        let conditions = Conditions {
            is_authenticated: self.session.is_authenticated || self.state.is_allowed(&self.session),
            takes_growth: self.state.store.takes_growth(),
            is_confined: self.session.is_confined(),
        };
        let dispatched = dispatch(&request.arguments, conditions);
        self.wait_to_queue(&dispatched).await?;
        let (dispatched, request) = match self.queue_for_exec(dispatched, request) {
            WithinMulti::CarriedOut(dispatched, request) => (dispatched, request),
            WithinMulti::Answered(reply) => {
                let is_answered = self.session.take_reply_mode();
                self.answer(&reply, is_answered);
                return self.flush_when_large().await;
            }
        };
        match dispatched {
            Dispatch::Data(row) => {
                let is_write = is_write(row);
                if self.state.pause.applies(is_write) {
                    self.run_calls().await?;
                    self.wait_for_pause(is_write).await?;
                }
                if let Handler::Pure(handler) = row.handler {
                    return self.run_pure(row, handler, &request.arguments).await;
                }
                let may_hear_itself = self.may_hear_itself(row);
                if may_hear_itself {
                    self.run_calls().await?;
                    self.put_messages().await?;
                }
                self.queue_call(row, request);
                if may_hear_itself
                    || self.waiting.is_some()
                    || self.calls.len() >= SUBMISSION_COMMANDS_MAX
                    || self.call_bytes >= SUBMISSION_BYTES_MAX
                {
                    self.run_calls().await?;
                }
                Ok(())
            }
            Dispatch::Connection(command, row) => {
                // In the order of the pipeline: what came before is done first.
                self.run_calls().await?;
                self.wait_for_pause(is_write(row)).await?;
                self.carry_out_here(command, row, &request.arguments)
                    .await?;
                self.flush_when_large().await
            }
            Dispatch::Refused(row, line) => {
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
            Dispatch::Hangup => {
                // What stood before it in the pipeline was asked for.
                self.run_calls().await?;
                let address = self.session.client.address;
                self.state.warnings.web_request(address);
                Err(Ended)
            }
        }
    }

    /// Whether a command may publish something to its own client. Such a command is run by
    /// itself, because its reply comes before what it publishes, and the next reply behind.
    fn may_hear_itself(&self, row: &Row) -> bool {
        if self.session.subscriptions.is_empty() {
            return false;
        }
        let events = self.state.config.keyspace_events().classes();
        row.flags.contains(Flags::MAY_REPLICATE)
            || (row.flags.contains(Flags::WRITE) && events != EventClasses::NONE)
    }

    /// Waits while CLIENT PAUSE holds commands of this kind back.
    async fn wait_for_pause(&mut self, is_write: bool) -> Result<(), Ended> {
        if !self.state.pause.applies(is_write) {
            return Ok(());
        }
        self.flush().await?;
        let client = Arc::clone(&self.session.client);
        let state = Arc::clone(&self.state);
        let _paused = client.enter_pause();
        self.attend(state.pause.wait(is_write)).await
    }

    /// Waits for something, and writes messages to the client meanwhile.
    async fn attend<T>(&mut self, waiting: impl Future<Output = T>) -> Result<T, Ended> {
        tokio::pin!(waiting);
        loop {
            let is_subscriber = !self.session.subscriptions.is_empty();
            let (mut reader, _) = self.stream.split();
            tokio::select! {
                biased;
                answer = &mut waiting => return Ok(answer),
                () = self.session.client.mailbox.ready(), if is_subscriber => {}
                // As Redis does: only behind what it has sent a client can be seen to be gone.
                read = self.ahead.receive(&mut reader) => match read {
                    Ok(0) | Err(_) => return Err(Ended),
                    Ok(count) => {
                        self.note_read(count);
                        self.check_input()?;
                    }
                },
                () = self.session.client.wait_killed() => return Err(Ended),
                () = self.state.stopping() => return Err(Ended),
            }
            self.put_messages().await?;
            self.flush().await?;
            self.note_buffers();
        }
    }

    /// Runs a command that needs no data. PING is the only one that a confined client may send, and
    /// is answered in a form in which it can tell the reply from messages.
    async fn run_pure(
        &mut self,
        row: &'static Row,
        handler: PureHandler,
        arguments: &[Bytes],
    ) -> Result<(), Ended> {
        // In the order of the pipeline: what came before is done first.
        self.run_calls().await?;
        self.put_messages().await?;
        self.show(row);
        self.note_buffers();
        let started = Instant::now();
        let result = handler(self.state.executor.environment(), arguments);
        let reply = match result {
            Ok(_) if self.session.is_confined() => {
                let message = arguments.get(1).cloned().unwrap_or_default();
                Reply::Array(vec![Reply::bulk("pong"), Reply::Bulk(message)])
            }
            Ok(reply) => reply,
            Err(error) => Reply::Error(error.to_line()),
        };
        self.record(row, started.elapsed(), &reply, Some(arguments));
        let is_answered = self.session.take_reply_mode();
        self.answer(&reply, is_answered);
        self.flush_when_large().await
    }

    /// Carries out a command that is the server's own.
    async fn carry_out_here(
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
        }
        if !may_wait {
            // Before it is carried out: CLIENT LIST shows its own client at CLIENT LIST.
            client.show_command(row.id);
        }
        self.note_buffers();
        let started = Instant::now();
        if row.group == Group::Transactions {
            // CLIENT REPLY among the commands of an EXEC is about what comes behind it.
            let is_answered = self.session.take_reply_mode();
            let reply = self
                .carry_out_transaction_command(command, arguments)
                .await?;
            self.session.skip_next();
            self.record(row, started.elapsed(), &reply, Some(arguments));
            self.answer(&reply, is_answered);
            // The transaction may have ended subscriptions, behind what it published itself.
            return self.put_last_messages().await;
        }
        let carrying_out =
            connection_commands::carry_out(command, row, arguments, &mut self.session, &self.state);
        let reply = if may_wait {
            let shown_until_gone = async {
                // By now it waits, see the order below.
                client.show_command(row.id);
                gone(&self.stream).await;
            };
            tokio::select! {
                biased;
                reply = carrying_out => {
                    client.show_command(row.id);
                    reply
                }
                () = shown_until_gone => return Err(Ended),
                () = client.wait_killed() => return Err(Ended),
                () = self.state.stopping() => return Err(Ended),
            }
        } else {
            carrying_out.await
        };
        let reply = reply.unwrap_or_else(|error| Reply::Error(error.to_line()));
        self.record(row, started.elapsed(), &reply, Some(arguments));
        if connection_commands::ends_subscriptions(command) {
            self.put_last_messages().await?;
        }
        let is_answered = self.session.take_reply_mode();
        self.answer(&reply, is_answered);
        Ok(())
    }
}

/// Whether CLIENT PAUSE WRITE holds a command back.
fn is_write(row: &Row) -> bool {
    row.flags.contains(Flags::WRITE) || row.flags.contains(Flags::MAY_REPLICATE)
}

/// Waits until a client has closed its connection, also behind what was not read yet.
async fn gone(stream: &TcpStream) {
    let mut byte = [0];
    loop {
        match stream.peek(&mut byte).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        // There is something to read, so this answers at once.
        match stream.ready(Interest::READABLE).await {
            Ok(ready) if !ready.is_read_closed() => {}
            _ => return,
        }
        tokio::time::sleep(Duration::from_millis(GONE_CHECK_INTERVAL_MS)).await;
    }
}
