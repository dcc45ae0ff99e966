//! Commands on data: collected from the pipeline, submitted to the executor, replied to.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::permission::lacks_named_keys;
use super::state::{Connection, Ended, Queued};
use super::waiting::Waiting;
use crate::commands::{Invocation, Row};
use crate::error::CommandError;
use crate::executor::Call;
use crate::reply::Reply;
use crate::server::session::ReplyMode;
use crate::wire::request::Request;

impl Connection {
    pub(super) fn queue_call(&mut self, row: &'static Row, request: Request) {
        let is_answered = match self.session.reply_mode {
            ReplyMode::On => true,
            _ => self.session.take_reply_mode(),
        };
        self.call_bytes += request.held_bytes();
        self.show_monitors(row, &request.arguments);
        let queued = Queued { row, is_answered };
        let mut origin = self.session.origin();
        origin.lacks_named_keys = lacks_named_keys(&self.session.user, row, &request.arguments);
        let invocation = Invocation {
            row,
            arguments: request.arguments,
            database: self.session.database,
            origin,
        };
        let mut waiter = None;
        if row.waits.is_some() {
            let now_ms = self.state.clock.now_ms();
            let waiters = self.state.executor.waiters();
            self.waiting = Waiting::prepare(waiters, &invocation, now_ms);
            waiter = self.waiting.as_ref().map(Waiting::waiter);
        }
        let call = Call::command(invocation, self.state.executor.plans());
        if self.calls.is_empty() {
            self.calls.reserve(self.calls_expected);
        }
        self.queued.push(queued);
        self.calls.push(Call { waiter, ..call });
    }

    /// Submits the collected commands, and puts their replies into the output.
    pub(super) async fn run_calls(&mut self) -> Result<(), Ended> {
        let mut calls = std::mem::take(&mut self.calls);
        if !calls.is_empty() {
            self.calls_expected = calls.len();
        }
        let mut queued = std::mem::take(&mut self.queued);
        let mut waiting = self.waiting.take();
        let mut at = 0;
        // A command that may wait comes last, and is shown once it waits.
        let before = queued.len().checked_sub(1 + usize::from(waiting.is_some()));
        if let Some(last) = before.and_then(|at| queued.get(at)) {
            self.show(last.row);
        }
        if !queued.is_empty() {
            self.note_buffers();
        }
        while !calls.is_empty() {
            let count = calls.len();
            if self.defers_messages() {
                self.put_messages().await?;
            }
            let started = Instant::now();
            match self.state.executor.submit(calls).await {
                Ok(finished) => {
                    // Messages that were published before these commands ran come before their
                    // replies. Messages of these commands come after.
                    let may_hear_itself = |one: &Queued| self.may_hear_itself(one.row);
                    if !self.defers_messages() && !queued.iter().any(may_hear_itself) {
                        self.put_messages().await?;
                    }
                    let answered = finished.replies.len().max(1);
                    // The commands of a submission ran together. Each counts an equal share.
                    let share = started.elapsed() / u32::try_from(answered).unwrap_or(u32::MAX);
                    let arguments = finished.done.iter().filter_map(Call::arguments);
                    let arguments = arguments.map(Some).chain(std::iter::repeat(None));
                    let behind = queued.get(at..).unwrap_or_default();
                    for ((one, reply), arguments) in
                        behind.iter().zip(&finished.replies).zip(arguments)
                    {
                        self.record(one.row, share, reply, arguments);
                        self.answer(reply, one.is_answered);
                    }
                    at += finished.replies.len();
                    if let (Some(last), true) = (queued.last(), at == queued.len()) {
                        self.show(last.row);
                    }
                    calls = finished.rest;
                    if finished.is_parked
                        && let (Some(waiting), Some(parked)) = (waiting.take(), queued.get(at))
                    {
                        self.wait_for_outcome(*parked, waiting, share).await?;
                        at += 1;
                    }
                    if !calls.is_empty() {
                        // The rest runs once these are written, see `connection`.
                        self.flush().await?;
                    }
                }
                Err(error) => {
                    let reply = Reply::Error(CommandError::Store(error).to_line());
                    for one in queued.iter().skip(at).take(count) {
                        self.answer(&reply, one.is_answered);
                    }
                    self.session.is_closing = true;
                    self.call_bytes = 0;
                    return Ok(());
                }
            }
        }
        self.call_bytes = 0;
        // Keeps the allocation.
        queued.clear();
        self.queued = queued;
        self.flush_when_large().await
    }

    /// Shows a command as the client's last one.
    pub(super) fn show(&self, row: &'static Row) {
        self.session.client.show_command(row.id);
    }

    /// Shows a command to the clients that monitor the server.
    pub(super) fn show_monitors(&self, row: &Row, arguments: &[Bytes]) {
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
        self.state
            .statistics
            .record_call(row.id, duration, is_failed);
        let duration_us = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        let slower_than_us = self.state.config.slowlog_log_slower_than_us();
        if slower_than_us >= 0
            && duration_us >= slower_than_us
            && let Some(arguments) = arguments
        {
            self.state
                .note_slow(row, duration_us, arguments, &self.session.client);
        }
        let threshold_ms = self.state.config.latency_monitor_threshold_ms();
        if threshold_ms > 0 {
            self.state.note_latency(row, duration_us, threshold_ms);
        }
    }
}
