//! Running a batch's commands in its transaction.

use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::checks::{Check, KeysToCheck};
use super::unread::Unread;
use super::{AttemptEnd, Batch, Coalesced, CommandId};
use crate::call::{Bundle, Call, Submission, Work};
use crate::waiters::Waiter;
use crate::warming::Warming;
use quoin_base::limits::{
    BATCH_AGE_MAX_MS, BATCH_MESSAGE_BYTES_SOFT_MAX, BATCH_REPLY_BYTES_MAX,
    TRANSACTION_REPLY_BYTES_MAX,
};
use quoin_data::command::call;
use quoin_data::command::call::{CallError, Invocation, Mode};
use quoin_data::command::flags::Flags;
use quoin_data::error::CommandError;
use quoin_data::prefetch::PrefetchPlan;
use quoin_data::script::declared_flags;
use quoin_data::unit::context::Environment;
use quoin_data::unit::host::Origin;
use quoin_data::unit::{AnyUnit, Unit};
use quoin_lua::ScriptFlags;
use quoin_resp::reply::Reply;
use quoin_store::{Growth, StoreError, Transaction};

/// One attempt at running the batch's commands.
pub(super) struct Attempt<'p> {
    pub(super) unit: Unit<'p>,
    /// When the first command began. The reads before it do not count, or a batch that reads for long would run no more
    /// than one command.
    started: Instant,
    /// When the latest command began.
    command_began: Instant,
    /// Number of commands begun.
    pub(super) commands_run: usize,
    /// Bytes of all replies, including those to woken clients.
    reply_bytes: Cell<usize>,
    /// Whether it has no room or time for another command. A further attempt may have.
    has_ended: bool,
    /// Whether the running call is a wake-up.
    pub(super) only_wakes: bool,
}

/// The result of a command.
enum Ran {
    Reply(Reply),
    /// The command does not fit in this transaction, and left nothing in it.
    NoRoom,
    /// The command is a script that took too long for this batch. It left nothing in the transaction.
    OutOfTime,
}

impl<'p> Attempt<'p> {
    pub(super) fn new(transaction: &'p dyn Transaction, environment: &'p Environment) -> Self {
        let now = Instant::now();
        Self {
            unit: Unit::new(transaction, environment),
            started: now,
            command_began: now,
            commands_run: 0,
            reply_bytes: Cell::new(0),
            has_ended: false,
            only_wakes: false,
        }
    }

    /// Whether the batch should be committed before the next command: the transaction has reached its size or age
    /// limit, or the replies and messages to send after the commit are large.
    pub(super) fn is_full(&self) -> bool {
        if self.reply_bytes.get() >= BATCH_REPLY_BYTES_MAX
            || self.unit.signals.message_bytes() >= BATCH_MESSAGE_BYTES_SOFT_MAX
        {
            return true;
        }
        self.unit.size_bytes() >= self.unit.environment().capabilities.batch_bytes_soft_max
            || self.command_began - self.started >= Duration::from_millis(BATCH_AGE_MAX_MS)
    }

    /// Counts a reply, and returns its bytes.
    pub(super) fn note_reply(&self, reply: &Reply) -> usize {
        let bytes = reply.size_hint();
        self.reply_bytes.set(self.reply_bytes.get() + bytes);
        bytes
    }

    /// When the running command began, or the first of those that run as one.
    pub(super) fn command_began(&self) -> Instant {
        self.command_began
    }

    /// Whether no other command is in the transaction.
    pub(super) fn is_alone(&self) -> bool {
        self.commands_run == 1
    }
}

impl Batch<'_> {
    /// Issues the expected reads of all commands at once, if reads of the store are round trips.
    /// Returns what other servers have reported, if a command may skip quiet keys.
    pub(super) async fn prefetch(&self, attempt: &Attempt<'_>) -> Unread {
        if !self.environment.capabilities.reads_wait {
            return Unread::default();
        }
        let mut plan = PrefetchPlan::default();
        let mut has_quiet = false;
        let mut woken = HashSet::new();
        let calls = self.submissions.iter().flat_map(|one| &one.calls);
        for call in calls.take(self.commands_max) {
            has_quiet |= self.plan_call(call, &mut plan, &mut woken);
        }
        let unread = async {
            match has_quiet {
                true => self.read_unread(&attempt.unit).await,
                false => Unread::default(),
            }
        };
        let context = attempt.unit.read_context(0);
        let prefetch = context.prefetch(&plan, &self.shared.locations);
        futures_util::join!(unread, prefetch).0
    }

    /// Whether the batch has clients that may wait or be woken.
    pub(super) fn has_waiters(&self) -> bool {
        let mut calls = self.submissions.iter().flat_map(|one| &one.calls);
        calls.any(|call| call.waiter.is_some() || matches!(call.work, Work::WakeUp(..)))
    }

    /// Runs the batch's commands in order. An error ends the attempt.
    pub(super) async fn run_commands(
        &mut self,
        attempt: &mut Attempt<'_>,
    ) -> Result<(), AttemptEnd> {
        let submissions = Rc::clone(&self.submissions);
        attempt.started = Instant::now();
        attempt.command_began = attempt.started;
        self.run_submissions(&submissions, attempt).await
    }

    async fn run_submissions(
        &mut self,
        submissions: &[Submission],
        attempt: &mut Attempt<'_>,
    ) -> Result<(), AttemptEnd> {
        let mut coalesced = Coalesced::default();
        let mut warming = Warming::default();
        let is_warmed = !self.environment.capabilities.reads_wait;
        for (number, submission) in submissions.iter().enumerate() {
            let mut replies = Vec::with_capacity(submission.calls.len());
            let mut reply_bytes = 0_usize;
            for (at, call) in submission.calls.iter().enumerate() {
                if let Some(reply) = coalesced.replies.pop_front() {
                    attempt.commands_run += 1;
                    reply_bytes += attempt.note_reply(&reply);
                    replies.push(reply);
                    continue;
                }
                if attempt.has_ended || attempt.commands_run >= self.commands_max {
                    break;
                }
                if is_warmed {
                    let unit = AnyUnit::Write(&attempt.unit);
                    warming.before(unit, submissions, (number, at)).await;
                }
                attempt.command_began = Instant::now();
                if reply_bytes >= submission.reply_bytes_max {
                    break;
                }
                if attempt.commands_run > 0 && attempt.is_full() {
                    attempt.has_ended = true;
                    break;
                }
                if self.reads_strictly(call) && !replies.is_empty() {
                    if self.ends_before_reads {
                        break;
                    }
                    self.has_read_after_write = true;
                }
                if self.late.is_some() && call.work.script().is_some() {
                    // One script has already taken too long. The others run in the lane or in another round.
                    break;
                }
                attempt.commands_run += 1;
                let first = (number, at);
                if let Some(reply) = self
                    .run_coalesced(&mut coalesced, submissions, first, attempt)
                    .await?
                {
                    reply_bytes += attempt.note_reply(&reply);
                    replies.push(reply);
                    continue;
                }
                let reply = match self.run_call(first.into(), call, attempt).await? {
                    Ran::Reply(reply) => reply,
                    Ran::OutOfTime => {
                        // Only this client's commands wait for the lane.
                        attempt.commands_run -= 1;
                        break;
                    }
                    Ran::NoRoom if attempt.is_alone() => {
                        Reply::Error(CommandError::TooLarge.to_line())
                    }
                    Ran::NoRoom => {
                        // The next batch begins with this command.
                        attempt.commands_run -= 1;
                        if attempt.unit.is_too_large() {
                            // What the command read stays in the transaction, so run again without it.
                            self.commands_max = attempt.commands_run;
                            return Err(AttemptEnd::Again { after_pause: false });
                        }
                        attempt.has_ended = true;
                        break;
                    }
                };
                if let (Some(waiter), true) = (&call.waiter, reply.is_nothing()) {
                    self.pin(first.into(), waiter, attempt).await?;
                    self.shared.waiters.park(waiter, self.slot.number);
                    self.parked.insert(number, std::sync::Arc::clone(waiter));
                }
                if attempt.unit.signals.has_ready() {
                    if self.wakes_nobody() {
                        attempt.unit.signals.forget_ready();
                    } else {
                        self.wake_ready_keys(attempt).await?;
                    }
                }
                reply_bytes += attempt.note_reply(&reply);
                replies.push(reply);
            }
            self.replies.push(replies);
        }
        Ok(())
    }

    /// Pins the arguments of a command that is about to wait, if their meaning would change later.
    async fn pin(
        &mut self,
        id: CommandId,
        waiter: &Waiter,
        attempt: &Attempt<'_>,
    ) -> Result<(), AttemptEnd> {
        let invocation = &waiter.invocation;
        let Some(pins) = invocation.row.pins else {
            return Ok(());
        };
        let context = attempt.unit.read_context(invocation.database);
        match call::check(pins(&context, &invocation.arguments).await) {
            Ok(Ok(Some(arguments))) => waiter.pin(arguments),
            // The command itself has just read the same rows.
            Ok(Ok(None) | Err(_))
            | Err(CallError::TooLarge | CallError::MustReturn(_) | CallError::OutOfTime) => {}
            Err(CallError::Store(error)) => {
                let started = attempt.command_began;
                return Err(self.store_failed(id, error, attempt, started));
            }
        }
        Ok(())
    }

    /// Whether a command is a read whose result must still hold at the commit, because others may write between the
    /// transaction's snapshot and its commit. Such a read follows a write of its client, or may wait.
    /// [`Executor::submit`](crate::Executor::submit) sends all other reads to a read lane.
    fn reads_strictly(&self, call: &Call) -> bool {
        call.work.only_reads() && self.environment.capabilities.has_other_writers
    }

    /// Runs one call completely or not at all: a command, the commands of an EXEC, a job or a wake-up.
    async fn run_call(
        &mut self,
        id: CommandId,
        call: &Call,
        attempt: &mut Attempt<'_>,
    ) -> Result<Ran, AttemptEnd> {
        if let Some(error) = self.refused.get(&id) {
            return Ok(Ran::Reply(Reply::Error(error.to_line())));
        }
        let started = attempt.command_began;
        let unit = &attempt.unit;
        unit.signals.begin_call();
        let result = match &call.work {
            Work::Command(invocation) => {
                let keys = match &call.waiter {
                    Some(waiter) => self.keys_of_new(waiter, unit),
                    None => KeysToCheck::All,
                };
                let mode = Mode {
                    is_strict: self.reads_strictly(call),
                    known_keys: keys.known(),
                    ..Mode::default()
                };
                call::call(unit, invocation, mode).await
            }
            Work::Transaction(bundle) => {
                call::with_returns(unit, async || exec(unit, bundle).await).await
            }
            Work::WriteJob { database, run } => {
                unit.signals.set_origin(Origin::SERVER);
                let run = async || {
                    let savepoint = unit.savepoint();
                    let result = run(&unit.write_context(*database)).await;
                    call::end(unit, savepoint, result).map(call::to_reply)
                };
                call::with_returns(unit, run).await
            }
            Work::ReadJob { database, run } => {
                let result = run(&unit.read_context(*database)).await;
                call::check(result).map(call::to_reply)
            }
            Work::WakeUp(key, cursor) => {
                attempt.only_wakes = true;
                let woken = self.wake_key(key, *cursor, Check::Key(key), attempt).await;
                attempt.only_wakes = false;
                return woken.map(|()| Ran::Reply(Reply::OK));
            }
        };
        match result {
            Ok(reply) => Ok(Ran::Reply(reply)),
            Err(CallError::TooLarge | CallError::MustReturn(_)) => Ok(Ran::NoRoom),
            Err(CallError::OutOfTime) => {
                self.late = call.work.script();
                Ok(Ran::OutOfTime)
            }
            Err(CallError::Store(error)) => Err(self.store_failed(id, error, attempt, started)),
        }
    }

    /// Ends the attempt after the store failed in a command that began at `started`.
    pub(super) fn store_failed(
        &mut self,
        id: CommandId,
        error: StoreError,
        attempt: &Attempt<'_>,
        started: Instant,
    ) -> AttemptEnd {
        let is_slow = started.elapsed() >= Duration::from_millis(BATCH_AGE_MAX_MS);
        if is_slow && matches!(error, StoreError::TooOld) {
            if matches!(id, CommandId::Waiter(_)) && !attempt.only_wakes {
                // A waiter's command is too slow. The batch's own commands run again without waking clients. A later
                // batch wakes them.
                self.woken_max = 0;
            } else {
                // The commands before it run again without it. The next batch begins with it.
                self.commands_max = (attempt.commands_run - 1).max(1);
                self.slow = attempt.is_alone().then_some(id);
            }
        }
        self.after_error(error)
    }

    /// Whether the batch's first call is a wake-up.
    pub(super) fn only_wakes(&self) -> bool {
        let first = self.submissions.first().and_then(|one| one.calls.first());
        first.is_some_and(|call| matches!(call.work, Work::WakeUp(..)))
    }

    /// Halves the number of commands for the next attempt. Returns false if this attempt ran only one.
    pub(super) fn halve(&mut self) -> bool {
        let commands_run: usize = self.replies.iter().map(Vec::len).sum();
        if commands_run > 1 {
            self.commands_max = commands_run / 2;
        }
        commands_run > 1
    }

    /// Handles a commit that refused a write of an unknown command. Halves the number of commands with each attempt,
    /// until the command is alone and gets this error.
    pub(super) fn make_smaller(&mut self, error: CommandError) -> AttemptEnd {
        if self.halve() {
            return AttemptEnd::Again { after_pause: false };
        }
        if let Some((waiter, _)) = self.woken.first() {
            // There is a single command, so halve the woken clients instead. If a single woken client remains, a
            // separate batch wakes it. If this is already that batch, the client gets the error.
            let is_alone = self.woken.len() == 1 && self.only_wakes();
            if is_alone {
                let id = CommandId::Waiter(waiter.position());
                self.refused.insert(id, error);
            } else {
                self.woken_max = self.woken.len() / 2;
            }
        } else {
            self.refused.insert(CommandId::FIRST, error);
        }
        AttemptEnd::Again { after_pause: false }
    }
}

/// Runs all commands of an EXEC, unless a watched key has changed. A command that fails is undone alone, as in Redis.
async fn exec(unit: &Unit<'_>, bundle: &Bundle) -> Result<Reply, CallError> {
    if !watch_holds(unit, bundle).await? {
        return Ok(Reply::NullArray);
    }
    if let Some(refusal) = refusal_of_exec(unit, &bundle.invocations).await? {
        return Ok(call::to_reply(Err(refusal)));
    }
    unit.transaction.conflict_on_own_rows();
    let only_removes = |one: &Invocation| one.row.only_removes();
    let is_bounded = !bundle.invocations.iter().all(only_removes);
    let savepoint = unit.savepoint().bounding_growth(is_bounded);
    let result = match exec_all(unit, &bundle.invocations).await {
        Ok(result) => call::end(unit, savepoint, result)?,
        Err(error) => return Err(call::undo(unit, savepoint, error)),
    };
    let result = result.map_err(|error| match error {
        CommandError::NoRoomToGrow => CommandError::abort_of_exec(&error.to_line()),
        error => error,
    });
    Ok(call::to_reply(result))
}

/// The error of an EXEC whose commands add data when the store takes no more.
async fn refusal_of_exec(
    unit: &Unit<'_>,
    invocations: &[Invocation],
) -> Result<Option<CommandError>, CallError> {
    let growth = unit.transaction.growth();
    let Some(refusal) = CommandError::of_growth(growth) else {
        return Ok(None);
    };
    for invocation in invocations {
        let is_refused = match growth {
            _ if invocation.row.flags.contains(Flags::DENYOOM) => true,
            // On a full disk, the growth that commands cause is counted.
            Growth::AtBound => {
                let context = unit.read_context(invocation.database);
                let flags = declared_flags(&context, invocation.row, &invocation.arguments).await;
                let flags = call::check(flags)?.ok().flatten();
                flags.is_some_and(ScriptFlags::need_room)
            }
            _ => false,
        };
        if is_refused {
            let line = refusal.to_line();
            return Ok(Some(CommandError::abort_of_exec(&line)));
        }
    }
    Ok(None)
}

async fn exec_all(
    unit: &Unit<'_>,
    invocations: &[Invocation],
) -> Result<Result<Reply, CommandError>, CallError> {
    let mode = Mode {
        is_strict: true,
        is_in_exec: true,
        ..Mode::default()
    };
    let mut replies = Vec::with_capacity(invocations.len());
    let mut reply_bytes: usize = 0;
    for invocation in invocations {
        let reply = call::call_once(AnyUnit::Write(unit), invocation, mode).await?;
        reply_bytes = reply_bytes.saturating_add(reply.size_hint());
        replies.push(reply);
        if reply_bytes > TRANSACTION_REPLY_BYTES_MAX {
            return Ok(Err(CommandError::RepliesTooLarge));
        }
    }
    Ok(Ok(Reply::Array(replies)))
}

/// Whether all of the client's watched keys are unchanged.
async fn watch_holds(unit: &Unit<'_>, bundle: &Bundle) -> Result<bool, CallError> {
    let watched = bundle.watched.iter().map(|watched| &watched.key);
    if bundle.is_touched() || unit.signals.has_touched(watched) {
        return Ok(false);
    }
    for watched in &bundle.watched {
        let context = unit.read_context(watched.key.database).strict();
        let fingerprint = context.fingerprint(&watched.key.key).await;
        match call::check(fingerprint.map_err(CommandError::from))? {
            Ok(fingerprint) if fingerprint == watched.fingerprint => {}
            // Unreadable rows count as changed.
            Ok(_) | Err(_) => return Ok(false),
        }
    }
    Ok(true)
}
