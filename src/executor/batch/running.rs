//! Running a batch's commands in its transaction.

use std::time::{Duration, Instant};

use super::{Attempt, Batch, CallId, Submission};
use crate::error::CommandError;
use crate::executor::{Bundle, Call, Work};
use crate::limits::{BATCH_AGE_MAX_MS, SUBMISSION_REPLY_BYTES_MAX, TRANSACTION_REPLY_BYTES_MAX};
use crate::reply::Reply;
use crate::store::{StoreError, Transaction};
use crate::types::ahead::Glances;
use crate::types::context::NamespaceCache;
use crate::types::signals::Signals;
use crate::types::staging::Staged;
use crate::types::{Environment, ReadContext, WriteContext};

/// One attempt at running the batch's commands.
pub(super) struct Pass<'p> {
    pub(super) transaction: &'p dyn Transaction,
    pub(super) environment: &'p Environment,
    namespaces: NamespaceCache,
    /// What others are to hear of.
    pub(super) signals: Signals,
    /// What other servers have popped for the batch.
    pub(super) staged: Staged,
    now_ms: i64,
    started: Instant,
    /// Commands that were begun.
    pub(super) commands_run: usize,
    /// The command that runs is there only to serve waiters.
    pub(super) only_serves: bool,
}

impl<'p> Pass<'p> {
    pub(super) fn new(transaction: &'p dyn Transaction, environment: &'p Environment) -> Self {
        Self {
            transaction,
            environment,
            namespaces: NamespaceCache::default(),
            signals: Signals::default(),
            staged: Staged::default(),
            now_ms: environment.clock.now_ms(),
            started: Instant::now(),
            commands_run: 0,
            only_serves: false,
        }
    }

    /// Whether the transaction holds as much, or is as old, as one should.
    pub(super) fn is_full(&self) -> bool {
        self.size_bytes() >= self.environment.capabilities.batch_bytes_soft_max
            || self.started.elapsed() >= Duration::from_millis(BATCH_AGE_MAX_MS)
    }

    /// Whether no other command is in the transaction.
    pub(super) fn is_alone(&self) -> bool {
        self.commands_run == 1
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.size_bytes() > self.environment.capabilities.transaction_bytes_max
    }

    /// Of the transaction, with the messages that it will carry to other servers.
    fn size_bytes(&self) -> usize {
        let message_bytes = match self.environment.capabilities.single_writer {
            true => 0,
            false => self.signals.message_bytes(),
        };
        self.transaction.size_bytes().saturating_add(message_bytes)
    }

    pub(super) fn write_context(&self, database: u32) -> WriteContext<'_> {
        WriteContext::new(
            self.transaction,
            self.environment,
            &self.namespaces,
            &self.signals,
            self.now_ms,
            database,
        )
    }

    pub(super) fn read_context(&self, database: u32) -> ReadContext<'_> {
        ReadContext::new(
            self.transaction,
            self.environment,
            &self.namespaces,
            self.now_ms,
            database,
        )
    }

    /// What a command sees whose pops are staged: of other commands of the batch the queue is as it
    /// is now.
    pub(super) fn staged_write_context(&self, database: u32) -> WriteContext<'_> {
        self.write_context(database).with_staged(&self.staged)
    }

    /// See [`Self::staged_write_context`].
    pub(super) fn staged_read_context(&self, database: u32) -> ReadContext<'_> {
        self.read_context(database).with_staged(&self.staged)
    }

    /// Runs a command's code; `is_strict` within EXEC, and of reads after writes.
    async fn run(&self, call: &Call, is_strict: bool) -> Result<Reply, CommandError> {
        match &call.work {
            Work::Write(handler) => {
                let mut context = match call.pops {
                    Some(_) => self.staged_write_context(call.database),
                    None => self.write_context(call.database),
                };
                if is_strict {
                    context = context.strict();
                }
                handler(&context, &call.arguments).await
            }
            Work::Read(handler) => {
                let mut context = self.read_context(call.database);
                if is_strict {
                    context = context.strict();
                }
                handler(&context, &call.arguments).await
            }
            // Nothing of the kind is ever put into one.
            Work::Transaction(_) | Work::Serve => Ok(Reply::Null),
        }
    }
}

impl Batch<'_> {
    /// On a store whose reads are round trips, has what the commands will look at read at once.
    pub(super) async fn read_ahead(&self, pass: &Pass<'_>) {
        if self.environment.capabilities.single_writer {
            return;
        }
        let mut glances = Glances::default();
        let calls = self.submissions.iter().flat_map(|one| &one.calls);
        for call in calls.take(self.commands_max) {
            let parts = match &call.work {
                Work::Transaction(bundle) => bundle.calls.as_slice(),
                Work::Read(_) | Work::Write(_) | Work::Serve => std::slice::from_ref(call),
            };
            for part in parts {
                for (key, glance) in &part.ahead {
                    glances.add(part.database, key, glance);
                }
            }
        }
        self.plan_staging(&mut glances);
        pass.read_context(0)
            .read_ahead(&glances, &self.shared.hints)
            .await;
    }

    /// Runs the batch's commands in order. Fails where the attempt is over.
    pub(super) async fn run_commands(&mut self, pass: &mut Pass<'_>) -> Result<(), Attempt> {
        let submissions = std::mem::take(&mut self.submissions);
        let ended = self.run_submissions(&submissions, pass).await;
        self.submissions = submissions;
        ended
    }

    async fn run_submissions(
        &mut self,
        submissions: &[Submission],
        pass: &mut Pass<'_>,
    ) -> Result<(), Attempt> {
        for (number, submission) in submissions.iter().enumerate() {
            let mut replies = Vec::with_capacity(submission.calls.len());
            let mut reply_bytes = 0_usize;
            for (at, call) in submission.calls.iter().enumerate() {
                if pass.commands_run >= self.commands_max {
                    break;
                }
                if pass.staged.is_empty() {
                    if reply_bytes >= SUBMISSION_REPLY_BYTES_MAX {
                        break;
                    }
                    if pass.commands_run > 0 && pass.is_full() {
                        self.commands_max = pass.commands_run;
                        break;
                    }
                } else if self.must_wait(call, pass).await {
                    // This client's only: what a claim holds for others is run whole, as what would be
                    // left of it others have passed.
                    break;
                }
                if self.is_read_after_write(call) {
                    if self.ends_before_reads && !replies.is_empty() {
                        break;
                    }
                    self.has_read_after_write = true;
                }
                pass.commands_run += 1;
                let reply = self.run_unit((number, at), call, pass).await?;
                if pass.is_too_large() {
                    return Err(self.leave_out(pass, CommandError::TooLarge));
                }
                if let (Some(waiter), true) = (&call.waiter, reply.is_nothing()) {
                    self.shared.waiters.park(waiter, self.slot.number);
                    self.parked.insert(number, std::sync::Arc::clone(waiter));
                }
                if pass.signals.has_ready() {
                    self.serve_ready(pass).await?;
                }
                reply_bytes += reply.size_hint();
                replies.push(reply);
            }
            self.replies.push(replies);
        }
        Ok(())
    }

    /// Whether a command is a read that has to see what is there when the transaction takes effect:
    /// its client has sent a write before it (what it reads before it writes
    /// [`Executor::submit`](crate::executor::Executor::submit) sends to a read lane), which takes
    /// effect later than what the transaction reads where others write meanwhile.
    fn is_read_after_write(&self, call: &Call) -> bool {
        matches!(call.work, Work::Read(_)) && !self.environment.capabilities.single_writer
    }

    /// Runs what is run whole or not at all: a command, or the commands of an EXEC.
    async fn run_unit(
        &mut self,
        (submission, call_number): (usize, usize),
        call: &Call,
        pass: &mut Pass<'_>,
    ) -> Result<Reply, Attempt> {
        let id = |part| CallId::Submitted {
            submission,
            call: call_number,
            part,
        };
        if let Some(error) = self.rolled_back.get(&id(0)) {
            return Ok(Reply::Error(error.to_line()));
        }
        match &call.work {
            Work::Read(_) | Work::Write(_) => {
                let is_strict = self.is_read_after_write(call);
                self.run_one(id(0), call, is_strict, pass).await
            }
            Work::Transaction(bundle) => {
                if !self.is_unspoilt(id(0), bundle, pass).await? {
                    return Ok(Reply::NullArray);
                }
                pass.transaction.conflict_on_own_rows();
                let mut replies = Vec::with_capacity(bundle.calls.len());
                let mut reply_bytes: usize = 0;
                for (part, call) in (1..).zip(&bundle.calls) {
                    let reply = self.run_one(id(part), call, true, pass).await?;
                    reply_bytes = reply_bytes.saturating_add(reply.size_hint());
                    replies.push(reply);
                    if pass.is_too_large() {
                        return Err(self.leave_out(pass, CommandError::TooLarge));
                    }
                    if reply_bytes > TRANSACTION_REPLY_BYTES_MAX {
                        return Err(self.leave_out(pass, CommandError::RepliesTooLarge));
                    }
                }
                Ok(Reply::Array(replies))
            }
            Work::Serve => {
                pass.only_serves = true;
                let served = self.serve_call(call, pass).await;
                pass.only_serves = false;
                served.map(|()| Reply::OK)
            }
        }
    }

    /// Whether no key that the client watches has changed.
    async fn is_unspoilt(
        &mut self,
        id: CallId,
        bundle: &Bundle,
        pass: &Pass<'_>,
    ) -> Result<bool, Attempt> {
        let watched = bundle.watched.iter().map(|watched| &watched.key);
        if bundle.is_touched() || pass.signals.has_touched(watched) {
            return Ok(false);
        }
        for watched in &bundle.watched {
            let context = pass.read_context(watched.key.database).strict();
            match context.fingerprint(&watched.key.key).await {
                Ok(fingerprint) if fingerprint == watched.fingerprint => {}
                Ok(_) => return Ok(false),
                Err(error) => {
                    let judged = self.judge(id, Err(error.into()), pass, (0, Instant::now()));
                    return judged.map(|_| false);
                }
            }
        }
        Ok(true)
    }

    async fn run_one(
        &mut self,
        id: CallId,
        call: &Call,
        is_strict: bool,
        pass: &Pass<'_>,
    ) -> Result<Reply, Attempt> {
        if let Some(error) = self.rolled_back.get(&id) {
            return Ok(Reply::Error(error.to_line()));
        }
        let before = (pass.transaction.mutation_count(), Instant::now());
        let result = pass.run(call, is_strict).await;
        self.judge(id, result, pass, before)
    }

    /// What a command's result means for the batch: a reply, or the end of this attempt.
    /// `before`: mutations and time before it ran.
    pub(super) fn judge(
        &mut self,
        id: CallId,
        result: Result<Reply, CommandError>,
        pass: &Pass<'_>,
        (mutations, started): (u64, Instant),
    ) -> Result<Reply, Attempt> {
        let is_clean = pass.transaction.mutation_count() == mutations;
        let error = match result {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        match error {
            CommandError::Store(error) if is_clean && error.is_about_rows() => {
                // Of damaged rows the store tells, once a minute.
                if matches!(error, StoreError::Corrupt(_)) {
                    tracing::error!(%error, "a command met rows that it cannot read");
                }
                Ok(Reply::Error(CommandError::Store(error).to_line()))
            }
            // A write before was refused, which a read tells.
            CommandError::Store(StoreError::TooLarge) => Err(match id {
                CallId::Waiter(_) => self.leave_waiter_out(id, pass, CommandError::TooLarge),
                CallId::Submitted { .. } => self.leave_out(pass, CommandError::TooLarge),
            }),
            CommandError::Store(_) if pass.signals.has_recalls() => {
                self.recalls_for = Some(id);
                Err(Attempt::Again { after_pause: false })
            }
            CommandError::Store(error) if !error.is_about_rows() => {
                let is_slow = started.elapsed() >= Duration::from_millis(BATCH_AGE_MAX_MS);
                if is_slow && matches!(error, StoreError::TooOld) {
                    if matches!(id, CallId::Waiter(_)) && !pass.only_serves {
                        self.served_max = 0;
                    } else {
                        // The others go on without it; the next batch begins with it.
                        self.commands_max = (pass.commands_run - 1).max(1);
                        self.slow = (pass.commands_run == 1).then_some(id.whole());
                    }
                }
                Err(self.after_error(error))
            }
            error if is_clean => Ok(Reply::Error(error.to_line())),
            error => {
                tracing::trace!(%error, "a command failed midway: its batch is run again without it");
                self.statistics.commands_rolled_back.add(1);
                self.rolled_back.insert(id, error);
                Err(Attempt::Again { after_pause: false })
            }
        }
    }

    /// The last of the commands that were run is too much for the transaction: alone, or with
    /// fewer others, it may fit. The first cannot.
    pub(super) fn leave_out(&mut self, pass: &Pass<'_>, error: CommandError) -> Attempt {
        if pass.commands_run > 1 {
            self.commands_max = pass.commands_run - 1;
        } else {
            self.rolled_back.insert(CallId::FIRST, error);
        }
        Attempt::Again { after_pause: false }
    }

    /// Whether the batch's first command is there only to serve waiters.
    pub(super) fn only_serves(&self) -> bool {
        let first = self.submissions.first().and_then(|one| one.calls.first());
        first.is_some_and(|call| matches!(call.work, Work::Serve))
    }

    /// Has the next attempt run half as many commands; not where this one had a single one.
    pub(super) fn halve(&mut self) -> bool {
        let commands_run: usize = self.replies.iter().map(Vec::len).sum();
        if commands_run > 1 {
            self.commands_max = commands_run / 2;
        }
        commands_run > 1
    }

    /// The commit refused something of the batch, with this error for the command that did it: half as
    /// many commands next time, until that one is run alone.
    pub(super) fn make_smaller(&mut self, error: CommandError) -> Attempt {
        if self.halve() {
            return Attempt::Again { after_pause: false };
        }
        if let Some((waiter, _)) = self.served.first() {
            // Half as many of those who wait; the last of them gets a transaction of its own,
            // and where it is alone in one already, its error.
            let is_alone = self.served.len() == 1 && self.only_serves();
            if is_alone {
                let id = CallId::Waiter(waiter.order());
                self.rolled_back.insert(id, error);
            } else {
                self.served_max = self.served.len() / 2;
            }
        } else {
            self.rolled_back.insert(CallId::FIRST, error);
        }
        Attempt::Again { after_pause: false }
    }
}
