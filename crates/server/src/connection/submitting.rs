//! Commands on data: collected from the pipeline, submitted to the executor, replied to.

use std::time::Instant;
use std::vec::Drain;

use super::exec::outcome;
use super::permission::lacks_named_keys;
use super::state::{Connection, Ended, IsAnswered, Queued, QueuedCommand};
use super::waiting::Waiting;
use crate::eviction;
use crate::session::ReplyMode;
use quoin_data::command::call::Invocation;
use quoin_data::command::row::Row;
use quoin_data::error::CommandError;
use quoin_engine::Call;
use quoin_resp::reply::Reply;
use quoin_resp::wire::request::Request;

/// Commands of a pipeline that go to the executor together.
const SUBMISSION_COMMANDS_MAX: usize = 1024;
/// Bytes that they may take, for each byte that their replies may.
const BYTES_PER_REPLY_BYTE: usize = 4;
/// Memory of a command in addition to its arguments.
const CALL_BYTES: usize = size_of::<Call>() + size_of::<Queued>();
/// Approximate memory of a key that a client waits for, in addition to the bytes of its name.
const WAITED_KEY_BYTES: usize = 300;
/// Capacity for queued replies that a connection keeps while it has none.
const QUEUED_KEPT_MAX: usize = 128;

impl Connection {
    pub(super) fn queue_call(&mut self, row: &'static Row, request: Request) {
        let is_answered = match self.session.reply_mode {
            ReplyMode::On => true,
            _ => self.session.take_reply_mode(),
        };
        self.call_bytes += request.held_bytes() + CALL_BYTES;
        self.show_monitors(row, &request.arguments);
        let queued = QueuedCommand { row, is_answered };
        let mut origin = self.session.origin();
        origin.lacks_named_keys = lacks_named_keys(&self.session.user, row, &request.arguments);
        origin.repeats = self.repeats(row);
        let invocation = Invocation {
            row,
            arguments: request.arguments,
            database: self.database_for(row),
            origin,
        };
        let mut waiter = None;
        if row.waits.is_some() {
            let now_ms = self.state.clock.now_ms();
            let waiters = self.state.executor.waiters();
            self.waiting = Waiting::prepare(waiters, &invocation, now_ms);
            waiter = self.waiting.as_ref().map(Waiting::waiter);
            self.call_bytes += self
                .waiting
                .as_ref()
                .map_or(0, |waiting| waiting.wait.key_count() * WAITED_KEY_BYTES);
        }
        let call = Call::command(invocation, self.state.executor.plans());
        if self.calls.is_empty() {
            self.calls.reserve(self.calls_expected);
        }
        self.queued.push(Queued::Command(queued));
        self.calls.push(Call { waiter, ..call });
    }

    /// Whether enough commands have been collected to submit them to the executor.
    pub(super) fn is_submission_full(&self) -> bool {
        if self.queued.len() >= SUBMISSION_COMMANDS_MAX {
            return true;
        }
        let bytes_max = eviction::reply_share_bytes(&self.state) * BYTES_PER_REPLY_BYTE;
        self.call_bytes >= bytes_max
    }

    /// Puts a reply that is already known into the output, after those of the collected commands.
    pub(super) async fn answer_in_turn(
        &mut self,
        reply: Reply,
        is_answered: IsAnswered,
    ) -> Result<(), Ended> {
        if self.queued.is_empty() {
            self.answer(&reply, is_answered);
            return self.flush_when_large().await;
        }
        self.queued.push(Queued::Reply(reply, is_answered));
        if self.is_submission_full() {
            self.run_calls().await?;
        }
        Ok(())
    }

    /// Submits the collected commands, and puts their replies into the output.
    pub(super) async fn run_calls(&mut self) -> Result<(), Ended> {
        let mut calls = std::mem::take(&mut self.calls);
        if calls.is_empty() {
            return self.flush_when_large().await;
        }
        self.calls_expected = calls.len();
        let mut queued = std::mem::take(&mut self.queued);
        let mut waiting = self.waiting.take();
        self.awaited = waiting.as_ref().map(Waiting::waiter);
        let notifies_itself = queued.iter().any(|one| self.queued_may_notify_itself(one));
        let last = queued.iter().rev().find_map(Queued::row);
        // A command that may wait is the last one, and is shown once it waits.
        let mut from_last = queued.iter().rev().filter_map(Queued::row);
        if let Some(row) = from_last.nth(usize::from(waiting.is_some())) {
            self.show(row);
        }
        self.note_buffers();
        let mut left = queued.drain(..);
        while !calls.is_empty() {
            if self.defers_messages() {
                self.put_messages().await?;
            }
            let started = Instant::now();
            let reply_bytes_max = eviction::reply_share_bytes(&self.state);
            let submitted = self.state.executor.submit_within(calls, reply_bytes_max);
            match submitted.await {
                Ok(finished) => {
                    // From now on they are this client's.
                    let reply_bytes = finished.carried.take_over();
                    self.reply_bytes += reply_bytes;
                    // One growth for all of them.
                    self.output.reserve(reply_bytes);
                    // Messages published before these commands ran come before their replies.
                    // Messages of these commands come after.
                    if !self.defers_messages() && !notifies_itself {
                        self.put_messages().await?;
                    }
                    let answered = finished.replies.len().max(1);
                    // The commands of a submission ran together. Each counts an equal share.
                    let share = started.elapsed() / u32::try_from(answered).unwrap_or(u32::MAX);
                    let mut done = finished.done.into_iter();
                    for reply in finished.replies {
                        let call = done.next();
                        match self.next_to_answer(&mut left) {
                            Some(Queued::Command(queued)) => {
                                let arguments = call.as_ref().and_then(Call::arguments);
                                self.record(queued.row, share, &reply, arguments);
                                self.answer(&reply, queued.is_answered);
                            }
                            Some(Queued::Exec(exec)) => {
                                self.end_exec(*exec, outcome(reply, call), share).await;
                            }
                            Some(Queued::Reply(..)) | None => break,
                        }
                    }
                    // Replies that woke a waiter meanwhile have yet to be sent.
                    self.reply_bytes = self.reply_bytes.saturating_sub(reply_bytes);
                    calls = finished.rest;
                    if let (true, false, Some(row)) = (calls.is_empty(), finished.is_parked, last) {
                        self.show(row);
                    }
                    if finished.is_parked
                        && let Some(waiting) = waiting.take()
                        && let Some(Queued::Command(parked)) = self.next_to_answer(&mut left)
                    {
                        self.wait_for_outcome(parked, waiting, share).await?;
                    }
                    if !calls.is_empty() {
                        // The rest runs once these are written, see `connection`.
                        self.flush().await?;
                    }
                }
                Err(error) => {
                    let reply = Reply::Error(CommandError::Store(error).to_line());
                    while let Some(one) = self.next_to_answer(&mut left) {
                        self.answer(&reply, one.is_answered());
                    }
                    self.session.is_closing = true;
                    self.call_bytes = 0;
                    return Ok(());
                }
            }
        }
        // Known replies after the last command.
        self.next_to_answer(&mut left);
        drop(left);
        self.call_bytes = 0;
        self.awaited = None;
        if queued.capacity() <= QUEUED_KEPT_MAX {
            // Keeps the allocation.
            self.queued = queued;
        }
        self.flush_when_large().await
    }

    /// The next reply that the executor owes. Puts known replies before it into the output.
    fn next_to_answer(&mut self, left: &mut Drain<'_, Queued>) -> Option<Queued> {
        loop {
            match left.next()? {
                Queued::Reply(reply, is_answered) => self.answer(&reply, is_answered),
                owed => return Some(owed),
            }
        }
    }
}
