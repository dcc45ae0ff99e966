//! The reply of EXEC.

use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::connection::state::{Connection, QueuedExec};
use crate::connection_commands;
use crate::session::CommandKind;
use quoin_base::limits::TRANSACTION_REPLY_BYTES_MAX;
use quoin_data::command::call::Invocation;
use quoin_data::command::row::{ConnectionCommand, Row};
use quoin_data::error::CommandError;
use quoin_engine::{Call, Work};
use quoin_resp::reply::Reply;

/// The result of an EXEC: the replies of the commands on data, and those commands. Or the reply if
/// nothing ran.
pub(super) type Outcome = Result<(Vec<Reply>, Vec<Invocation>), Reply>;

/// The outcome of the executor's answer.
pub(super) fn outcome(reply: Reply, call: Option<Call>) -> Outcome {
    match (reply, call.map(|call| call.work)) {
        (Reply::Array(replies), Some(Work::Transaction(bundle))) => {
            Ok((replies, bundle.invocations))
        }
        (reply, _) => Err(reply),
    }
}

impl Connection {
    /// Puts the reply of an EXEC into the output. Its commands on data took `duration`. The server
    /// executes its own commands now, as the transaction is committed.
    pub(super) async fn end_exec(
        &mut self,
        mut queued: QueuedExec,
        outcome: Outcome,
        duration: Duration,
    ) {
        let started = Instant::now();
        let reply = match outcome {
            Ok((replies, invocations)) => {
                let answered = u32::try_from(replies.len().max(1)).unwrap_or(u32::MAX);
                let mut done = replies.into_iter().zip(invocations);
                self.replies_of_exec(&mut queued, &mut done, duration / answered)
                    .await
            }
            Err(reply) => reply,
        };
        let exec = queued.exec;
        self.session.skip_next();
        self.record(
            exec.row,
            duration + started.elapsed(),
            &reply,
            Some(&queued.arguments),
        );
        self.show_monitors(exec.row, &queued.arguments);
        self.answer(&reply, exec.is_answered);
    }

    /// The replies of all commands, in their order. Each command on data took `share`.
    async fn replies_of_exec(
        &mut self,
        queued: &mut QueuedExec,
        done: &mut impl Iterator<Item = (Reply, Invocation)>,
        share: Duration,
    ) -> Reply {
        let mut all = Vec::with_capacity(queued.commands.len());
        let mut reply_bytes: usize = 0;
        self.session.is_in_exec = true;
        for command in queued.commands.drain(..) {
            let reply = match (command.kind, command.refusal) {
                (CommandKind::Data, Some(line)) => Reply::Error(line),
                (CommandKind::Data, None) => {
                    let Some((reply, invocation)) = done.next() else {
                        break;
                    };
                    let (database, arguments) = (invocation.database, &invocation.arguments);
                    self.record(command.row, share, &reply, Some(arguments));
                    let (monitors, client) = (&self.state.monitors, &self.session.client);
                    monitors.note(command.row, database, client, arguments);
                    reply
                }
                (kind, _) => {
                    let has_room = reply_bytes <= TRANSACTION_REPLY_BYTES_MAX;
                    // Rare, and its future is large.
                    let run = self.run_within_exec(kind, command.row, &command.arguments, has_room);
                    Box::pin(run).await
                }
            };
            if let Reply::Error(line) = &reply {
                self.state.statistics.record_error(line);
            }
            reply_bytes = reply_bytes.saturating_add(reply.size_hint());
            all.push(reply);
        }
        self.session.is_in_exec = false;
        if queued.forgets && self.session.tracking.is_some() {
            self.state.tracking.invalidate_all_of(&self.session.client);
        }
        Reply::Array(all)
    }

    /// Runs a transaction's command that the executor does not run. The commands on data are
    /// already committed, so if the replies have no room left, only this command is refused.
    async fn run_within_exec(
        &mut self,
        kind: CommandKind,
        row: &'static Row,
        arguments: &[Bytes],
        has_room: bool,
    ) -> Reply {
        // Checked in order: an AUTH before it counts.
        if let Some(line) = self.refusal_in_exec(&self.session.user, row, arguments) {
            return Reply::Error(line);
        }
        if let CommandKind::Connection(ConnectionCommand::Unwatch) = kind {
            return Reply::OK;
        }
        if !has_room {
            return Reply::Error(CommandError::RepliesTooLarge.to_line());
        }
        let started = Instant::now();
        let reply = match kind {
            CommandKind::Connection(command) => {
                let (session, state) = (&mut self.session, &self.state);
                connection_commands::execute(command, row, arguments, session, state)
                    .await
                    .unwrap_or_else(|error| Reply::Error(error.to_line()))
            }
            // Run in order: a SUBSCRIBE before it changes the form of PING's reply.
            CommandKind::Pure | CommandKind::Data => self.pure_reply(row, arguments),
        };
        self.record(row, started.elapsed(), &reply, Some(arguments));
        self.show_monitors(row, arguments);
        reply
    }
}
