//! The parts of a connection, its memory cost, and what others see of it: statistics, slow log,
//! CLIENT LIST, MONITOR.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::addresses::Face;
use crate::clients::Place;
use crate::connection::read_ahead::ReadAhead;
use crate::connection::redirects::Redirects;
use crate::connection::waiting::Waiting;
use crate::eviction;
use crate::session::{OpenTransaction, Session, TransactionCommand};
use crate::slowlog::SlowCommand;
use crate::state::ServerState;
use crate::stream::Stream;
use quoin_data::command::row::Row;
use quoin_engine::{Call, Waiter};
use quoin_resp::reply::Reply;
use quoin_resp::wire::request::{RequestLimits, RequestParser};

/// A client's connection.
pub(crate) struct Connection {
    pub(super) stream: Stream,
    pub(super) state: Arc<ServerState>,
    pub(super) session: Session,
    pub(super) parser: RequestParser,
    pub(super) input: BytesMut,
    /// The bytes after `input`.
    pub(super) ahead: ReadAhead,
    pub(super) output: BytesMut,
    /// Number of bytes of `output` that the client has taken.
    pub(super) sent_bytes: usize,
    /// Whether output was sent only in part. Nothing may follow it.
    pub(super) is_output_cut: bool,
    /// How long a shutdown waits for the client to read its output. Set when it first waits.
    pub(super) lingers_until: Option<tokio::time::Instant>,
    /// Bytes of the requests that were parsed since the last read. Redis keeps them in its query
    /// buffer until all are done, so CLIENT LIST counts them.
    pub(super) consumed_bytes: usize,
    /// Commands on data that were not submitted yet.
    pub(super) calls: Vec<Call>,
    /// Number of commands in the last submission.
    pub(super) calls_expected: usize,
    /// The next replies, in order: those of the commands, and other replies in between.
    pub(super) queued: Vec<Queued>,
    pub(super) call_bytes: usize,
    /// Bytes of replies from the executor that are not in the output yet.
    pub(super) reply_bytes: usize,
    /// The wait of the last command, if it blocks.
    pub(super) waiting: Option<Waiting>,
    /// The waiter of a submitted blocking command. Its reply may arrive while the client does not read.
    pub(super) awaited: Option<Arc<Waiter>>,
    /// Recent redirections of the client to other nodes of a cluster.
    pub(super) redirects: Redirects,
    /// The client has sent an invalid request, and may still send.
    pub(super) may_still_send: bool,
    /// Released last.
    _place: Place,
}

/// A reply that is due.
pub(super) enum Queued {
    /// The reply of a command of [`Connection::calls`].
    Command(QueuedCommand),
    /// The reply of an EXEC of [`Connection::calls`].
    Exec(Box<QueuedExec>),
    /// A known reply that waits for earlier ones: the reply to MULTI or DISCARD, `QUEUED`, or an
    /// error.
    Reply(Reply, IsAnswered),
}

impl Queued {
    /// The row of the command, if the executor runs it.
    pub(super) fn row(&self) -> Option<&'static Row> {
        match self {
            Queued::Command(command) => Some(command.row),
            Queued::Exec(queued) => Some(queued.exec.row),
            Queued::Reply(..) => None,
        }
    }

    /// Whether the client gets the reply.
    pub(super) fn is_answered(&self) -> IsAnswered {
        match self {
            Queued::Command(command) => command.is_answered,
            Queued::Exec(queued) => queued.exec.is_answered,
            Queued::Reply(_, is_answered) => *is_answered,
        }
    }
}

/// Whether the client gets a reply. CLIENT REPLY decides that when the command arrives.
pub(super) type IsAnswered = bool;

/// The part of a command that the executor does not need.
#[derive(Clone, Copy)]
pub(super) struct QueuedCommand {
    pub(super) row: &'static Row,
    pub(super) is_answered: IsAnswered,
}

/// The part of an EXEC that the executor does not need.
pub(super) struct QueuedExec {
    pub(super) exec: QueuedCommand,
    /// EXEC's own arguments.
    pub(super) arguments: Vec<Bytes>,
    /// The commands since MULTI. The executor has the arguments of commands on data.
    pub(super) commands: Vec<TransactionCommand>,
    /// Whether the client must forget what the commands read: it begins to track keys in between,
    /// but the server applies that after the commit.
    pub(super) forgets: bool,
}

/// A connection ends early: the client is gone or killed, errs, or the server stops.
pub(super) struct Ended;

impl Connection {
    /// A new client's connection.
    pub(crate) fn new(stream: Stream, place: Place, face: Face, state: Arc<ServerState>) -> Self {
        Self {
            stream,
            session: Session::new(Arc::clone(place.client()), face),
            parser: RequestParser::new(RequestLimits::default()),
            input: BytesMut::new(),
            ahead: ReadAhead::default(),
            output: BytesMut::new(),
            sent_bytes: 0,
            is_output_cut: false,
            lingers_until: None,
            consumed_bytes: 0,
            calls: Vec::new(),
            calls_expected: 0,
            queued: Vec::new(),
            call_bytes: 0,
            reply_bytes: 0,
            waiting: None,
            awaited: None,
            redirects: Redirects::default(),
            may_still_send: false,
            _place: place,
            state,
        }
    }

    /// Removes the client from subscriptions, monitors and tracking, and frees its memory.
    pub(super) fn leave(&mut self) {
        let subscriptions = &mut self.session.subscriptions;
        self.state
            .pubsub_of(self.session.face)
            .unsubscribe_all(&self.session.client, subscriptions);
        self.state.monitors.remove(&self.session.client);
        self.state.tracking.disable(&self.session.client);
        self.session.discard(self.state.executor.watchers());
        self.input = BytesMut::new();
        self.ahead = ReadAhead::default();
        self.output = BytesMut::new();
        self.sent_bytes = 0;
        self.awaited = None;
        self.reply_bytes = 0;
    }
}

impl Drop for Connection {
    /// Also if the client's task has panicked.
    fn drop(&mut self) {
        self.leave();
    }
}

/// Capacity for output that an idle connection keeps.
const IDLE_OUTPUT_BYTES_MAX: usize = 4 * 1024;

impl Connection {
    /// Frees buffers once all input has been executed. There may be many idle connections.
    pub(super) fn release_idle_buffers(&mut self) {
        if !self.input.is_empty() {
            return;
        }
        self.input = BytesMut::new();
        if self.output.is_empty() && self.output.capacity() > IDLE_OUTPUT_BYTES_MAX {
            self.output = BytesMut::new();
        }
    }

    /// Updates the sizes of the buffers and the client's other memory in its record, and evicts
    /// clients if all together use too much.
    pub(super) fn note_buffers(&self) {
        let client = &self.session.client;
        let input_capacity = self.input.capacity() + self.ahead.capacity();
        let waiting = self.input.len() + self.ahead.len();
        let arguments = self.call_bytes + self.parser.held_bytes();
        let transaction = self.session.transaction.as_ref();
        let transaction = transaction.map_or(0, OpenTransaction::held_bytes);
        let output_capacity = self.output.capacity();
        for (shown, bytes) in [
            (&client.input_bytes, self.consumed_bytes + waiting),
            (&client.input_free_bytes, input_capacity - waiting),
            (&client.argument_bytes, arguments),
            (&client.transaction_bytes, transaction),
            (&client.output_bytes, output_capacity),
            (&client.output_unsent_bytes, self.unsent_bytes()),
        ] {
            shown.store(bytes, Ordering::Relaxed);
        }
        client
            .is_trusted
            .store(self.session.is_authenticated, Ordering::Relaxed);
        let held = input_capacity
            + arguments
            + transaction
            + output_capacity
            + self.reply_bytes
            + self.session.held_bytes();
        eviction::note_client_memory(&self.state, client, held);
    }

    /// Bytes of output that the client has not taken yet.
    pub(super) fn unsent_bytes(&self) -> usize {
        self.output.len() - self.sent_bytes
    }
}

impl Connection {
    /// Shows a command as the client's last one.
    pub(super) fn show(&self, row: &'static Row) {
        self.session.client.show_command(row.id);
    }

    /// Shows a command to the clients that monitor the server.
    pub(super) fn show_monitors(&self, row: &Row, arguments: &[Bytes]) {
        if self.session.is_on_sentinel() {
            return;
        }
        let (monitors, client) = (&self.state.monitors, &self.session.client);
        monitors.note(row, self.session.database, client, arguments);
    }

    /// Counts a command that was executed, and adds it to the logs of slow commands.
    pub(super) fn record(
        &self,
        row: &'static Row,
        duration: Duration,
        reply: &Reply,
        arguments: Option<&[Bytes]>,
    ) {
        let is_failed = matches!(reply, Reply::Error(_));
        self.state.statistics.commands_processed.add(1);
        let commands = &self.session.client.commands;
        commands.fetch_add(1, Ordering::Relaxed);
        self.state
            .statistics
            .record_call(row.id, duration, is_failed);
        let duration_us = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        let slower_than_us = self.state.config.live.slowlog_log_slower_than_us();
        if slower_than_us >= 0
            && duration_us >= slower_than_us
            && let Some(arguments) = arguments
        {
            self.state.note_slow(&SlowCommand {
                row,
                duration_us,
                arguments,
                client: &self.session.client,
                database: self.session.database,
                error: match reply {
                    Reply::Error(line) => Some(line),
                    _ => None,
                },
            });
        }
        let threshold_ms = self.state.config.live.latency_monitor_threshold_ms();
        if threshold_ms > 0 {
            self.state.note_latency(row, duration_us, threshold_ms);
        }
    }
}
