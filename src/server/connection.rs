//! One connection: reads requests, has them carried out in order, writes the replies.
//!
//! Commands on data that follow each other in a pipeline go to the executor together. While they
//! are there the connection reads nothing more, and it never holds more than one submission's
//! replies (`SUBMISSION_REPLY_BYTES_MAX`, and the last of them whole): a client that stops
//! reading costs no more than that.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::ServerState;
use super::clients::ClientRecord;
use super::connection_commands;
use super::dispatch::{Dispatch, dispatch};
use super::session::{ReplyMode, Session};
use crate::commands::{Row, table};
use crate::error::CommandError;
use crate::executor::{Call, Claims};
use crate::limits::{
    OUTPUT_FLUSH_BYTES, READ_BYTES, SUBMISSION_BYTES_MAX, SUBMISSION_COMMANDS_MAX,
};
use crate::reply::Reply;
use crate::wire::encode::{encode, encode_error_line};
use crate::wire::request::{Request, RequestLimits, RequestParser};

/// A client's connection.
pub(super) struct Connection {
    stream: TcpStream,
    state: Arc<ServerState>,
    session: Session,
    parser: RequestParser,
    input: BytesMut,
    output: BytesMut,
    /// Commands on data that have not been handed over yet.
    calls: Vec<Call>,
    /// Whether each of them is to be answered.
    are_answered: Vec<bool>,
    call_bytes: usize,
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
            output: BytesMut::new(),
            calls: Vec::new(),
            are_answered: Vec::new(),
            call_bytes: 0,
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
        self.state.clients.remove(self.session.client.id);
    }

    /// Waits for bytes from the client.
    async fn read(&mut self, shutdown: &mut watch::Receiver<bool>) -> Result<(), Ended> {
        if self.input.is_empty() {
            // An idle client holds no buffers.
            if self.input.capacity() > READ_BYTES * 4 {
                self.input = BytesMut::new();
            }
            if self.output.capacity() > OUTPUT_FLUSH_BYTES {
                self.output = BytesMut::new();
            }
        }
        let wanted = self.parser.bytes_to_reserve(&self.input).max(READ_BYTES);
        self.input.reserve(wanted);
        let timeout_s = u64::from(self.state.config.timeout_s());
        let idle = async {
            if timeout_s == 0 {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(Duration::from_secs(timeout_s)).await;
        };
        tokio::select! {
            read = self.stream.read_buf(&mut self.input) => match read {
                Ok(0) | Err(_) => Err(Ended),
                Ok(count) => {
                    self.state.statistics.input_bytes.add(count as u64);
                    let now_ms = self.state.clock.now_ms();
                    self.session.client.last_interaction_ms.store(now_ms, Ordering::Relaxed);
                    Ok(())
                }
            },
            () = self.session.client.wait_killed() => Err(Ended),
            () = super::listener::stopping(shutdown) => Err(Ended),
            () = idle => Err(Ended),
        }
    }

    /// Carries out every whole request that has arrived.
    async fn carry_out_input(&mut self) -> Result<(), Ended> {
        loop {
            let parsed = self
                .parser
                .parse(&mut self.input, self.session.is_authenticated);
            match parsed {
                Ok(Some(request)) => self.carry_out(request).await?,
                Ok(None) => break,
                Err(error) => {
                    self.run_calls().await?;
                    if let Some(line) = error.to_line() {
                        encode_error_line(&line, &mut self.output);
                    }
                    self.session.is_closing = true;
                }
            }
            if self.session.is_closing {
                break;
            }
        }
        self.run_calls().await?;
        self.flush().await
    }

    async fn carry_out(&mut self, request: Request) -> Result<(), Ended> {
        self.state.statistics.commands_processed.add(1);
        match dispatch(&request.arguments, self.session.is_authenticated) {
            Dispatch::Data(row) => {
                self.queue_call(row, request);
                if self.calls.len() >= SUBMISSION_COMMANDS_MAX
                    || self.call_bytes >= SUBMISSION_BYTES_MAX
                {
                    self.run_calls().await?;
                }
                Ok(())
            }
            Dispatch::Connection(command, row) => {
                // In the order of the pipeline: what came before is done first.
                self.run_calls().await?;
                let reply = connection_commands::carry_out(
                    command,
                    row,
                    &request.arguments,
                    &mut self.session,
                    &self.state,
                )
                .await;
                let reply = reply.unwrap_or_else(|error| Reply::Error(error.to_line()));
                let is_answered = self.session.take_reply_mode();
                self.answer(&reply, is_answered);
                self.flush_when_large().await
            }
            Dispatch::Refused(reply) => {
                self.run_calls().await?;
                let is_answered = self.session.take_reply_mode();
                self.answer(&reply, is_answered);
                self.flush_when_large().await
            }
            Dispatch::Hangup => {
                tracing::warn!(
                    "closed a connection from {} that sent a web request",
                    self.session.client.address
                );
                Err(Ended)
            }
        }
    }

    fn queue_call(&mut self, row: &'static Row, request: Request) {
        let Some(work) = row.work() else {
            return;
        };
        let database = self.session.database;
        let claims = if self.state.executor.needs_claims() {
            table::claims(row, database, &request.arguments)
        } else {
            Claims::Nothing
        };
        let is_answered = match self.session.reply_mode {
            ReplyMode::On => true,
            _ => self.session.take_reply_mode(),
        };
        self.call_bytes += request.argument_bytes();
        self.are_answered.push(is_answered);
        self.calls.push(Call {
            work,
            arguments: request.arguments,
            database,
            claims,
        });
    }

    /// Has the queued commands carried out, and queues their replies.
    async fn run_calls(&mut self) -> Result<(), Ended> {
        let mut calls = std::mem::take(&mut self.calls);
        let are_answered = std::mem::take(&mut self.are_answered);
        self.call_bytes = 0;
        let mut at = 0;
        while !calls.is_empty() {
            let count = calls.len();
            match self.state.executor.submit(calls).await {
                Ok(finished) => {
                    for reply in &finished.replies {
                        let is_answered = are_answered.get(at).copied().unwrap_or(true);
                        self.answer(reply, is_answered);
                        at += 1;
                    }
                    calls = finished.rest;
                    if !calls.is_empty() {
                        // The rest waits until these are on their way, see the module's comment.
                        self.flush().await?;
                    }
                }
                Err(error) => {
                    let reply = Reply::Error(CommandError::Store(error).to_line());
                    for is_answered in are_answered.iter().skip(at).take(count) {
                        self.answer(&reply, *is_answered);
                    }
                    self.session.is_closing = true;
                    return Ok(());
                }
            }
        }
        self.flush_when_large().await
    }

    fn answer(&mut self, reply: &Reply, is_answered: bool) {
        if matches!(reply, Reply::Error(_)) {
            self.state.statistics.error_replies.add(1);
        }
        if is_answered {
            encode(reply, self.session.protocol, &mut self.output);
        }
    }

    async fn flush_when_large(&mut self) -> Result<(), Ended> {
        if self.output.len() >= OUTPUT_FLUSH_BYTES {
            self.flush().await
        } else {
            Ok(())
        }
    }

    async fn flush(&mut self) -> Result<(), Ended> {
        if self.output.is_empty() {
            return Ok(());
        }
        self.state
            .statistics
            .output_bytes
            .add(self.output.len() as u64);
        let written = tokio::select! {
            biased;
            written = self.stream.write_all(&self.output) => written.is_ok(),
            () = self.session.client.wait_killed() => false,
        };
        self.output.clear();
        if written { Ok(()) } else { Err(Ended) }
    }
}
