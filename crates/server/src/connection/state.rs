//! What a connection consists of.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::read_ahead::ReadAhead;
use super::waiting::Waiting;
use crate::clients::Place;
use crate::session::Session;
use crate::state::ServerState;
use crate::stream::Stream;
use crate::transaction::TransactionCommand;
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
    /// What follows `input`.
    pub(super) ahead: ReadAhead,
    pub(super) output: BytesMut,
    /// How much of `output` the client has taken.
    pub(super) sent_bytes: usize,
    /// Some output was sent only in part: nothing may follow it.
    pub(super) is_output_cut: bool,
    /// Until then a shutdown waits for the client to take its output. Set when it first waits.
    pub(super) lingers_until: Option<tokio::time::Instant>,
    /// Bytes of the requests that were parsed since the last read. Redis keeps them in its query
    /// buffer until all are done, so CLIENT LIST counts them.
    pub(super) consumed_bytes: usize,
    /// Commands on data that the executor has not got yet.
    pub(super) calls: Vec<Call>,
    /// How many there were the last time.
    pub(super) calls_expected: usize,
    /// The next replies, in order: of those commands, and others between them.
    pub(super) queued: Vec<Queued>,
    pub(super) call_bytes: usize,
    /// Bytes of replies that the executor has given, and that are not in the output yet.
    pub(super) reply_bytes: usize,
    /// How the last of them waits, if it blocks.
    pub(super) waiting: Option<Waiting>,
    /// The same once the executor has got it: its reply may come while the client does not take its output.
    pub(super) awaited: Option<Arc<Waiter>>,
    /// The client has sent what is no request, and may still send.
    pub(super) may_still_send: bool,
    /// Given back last.
    _place: Place,
}

/// A reply that is to come.
pub(super) enum Queued {
    /// That of a command of [`Connection::calls`].
    Command(QueuedCommand),
    /// That of an EXEC of [`Connection::calls`].
    Exec(Box<QueuedExec>),
    /// One that is there already and waits for those before it: of MULTI or DISCARD, `QUEUED`, or an
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

/// Whether the client gets a reply. CLIENT REPLY decides that when the command comes.
pub(super) type IsAnswered = bool;

/// What the executor does not need of a command.
#[derive(Clone, Copy)]
pub(super) struct QueuedCommand {
    pub(super) row: &'static Row,
    pub(super) is_answered: IsAnswered,
}

/// What the executor does not need of an EXEC.
pub(super) struct QueuedExec {
    pub(super) exec: QueuedCommand,
    /// EXEC's own arguments.
    pub(super) arguments: Vec<Bytes>,
    /// The commands since MULTI. The executor has the arguments of those on data.
    pub(super) commands: Vec<TransactionCommand>,
    /// The client has to forget what the commands read: it begins to track keys between them, which
    /// the server does after the commit.
    pub(super) forgets: bool,
}

/// A connection ends early: the client is gone or killed, errs, or the server stops.
pub(super) struct Ended;

impl Connection {
    /// A new client's connection.
    pub(crate) fn new(stream: Stream, place: Place, state: Arc<ServerState>) -> Self {
        Self {
            stream,
            session: Session::new(Arc::clone(place.client())),
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
            may_still_send: false,
            _place: place,
            state,
        }
    }

    /// Ends what others see of the client's connection, and frees what it holds.
    pub(super) fn leave(&mut self) {
        let subscriptions = &mut self.session.subscriptions;
        self.state
            .pubsub
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
    /// Also where the client's task has panicked.
    fn drop(&mut self) {
        self.leave();
    }
}
