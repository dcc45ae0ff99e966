//! Attempts at a batch, until it is durable or given up.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::join_all;

use super::running::Attempt;
use super::unread::Unread;
use super::{AttemptEnd, BACKOFF_FIRST_MS, BACKOFF_MAX_MS, Batch, BatchResult, CommandId};
use crate::call::{Call, Submission, SubmissionResult, Work};
use crate::forwarding::{note_conflict, note_wait};
use crate::shared::Shared;
use crate::timed::weight;
use crate::waiters::Cursor;
use quoin_base::limits::{COMMIT_ATTEMPTS_MAX, COMMIT_RETRY_MAX_MS};
use quoin_base::stopwatch::{BusyLimit, Stopwatch};
use quoin_data::cluster::change_marks::{Wanted, wanted_by_others};
use quoin_data::cluster::relay::{ReadyKeys, write_messages};
use quoin_data::command::call::Invocation;
use quoin_data::error::CommandError;
use quoin_data::keyspace::key::ClientKey;
use quoin_data::script::runs_script;
use quoin_data::unit::host::Change;
use quoin_data::unit::latest_known::Known;
use quoin_data::unit::signals::{Ready, Signals};
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;
use quoin_store::{StoreError, Transaction};

/// After this many conflicts a batch wakes no more clients. A later batch does that.
const WOKEN_CONFLICTS_MAX: u32 = 2;
/// After this many conflicts, each further conflict halves a batch with EXECs. The EXECs of a pipeline may be
/// unrelated, and only one of their keys may be contended.
const WHOLE_CONFLICTS_MAX: u32 = 6;
/// A command of more weight may be long.
const LONG_WEIGHT: usize = 1000;
/// After this time, a commit of unknown result has either been applied or never will be. FoundationDB applies no
/// transaction later than five seconds after it began.
const COMMIT_LANDS_MAX: Duration = Duration::from_secs(10);
/// How long after a failure of the store wake-ups are scheduled again.
const WAKE_UP_AFTER_FAILURE: Duration = Duration::from_secs(1);

impl Batch<'_> {
    /// Runs the batch until it is durable or given up, then answers its clients.
    pub(crate) async fn run(mut self) -> BatchResult {
        let started = Instant::now();
        let mut pauses = 0_u32;
        let mut backoff_ms = BACKOFF_FIRST_MS;
        let failure = loop {
            match self.attempt().await {
                AttemptEnd::Committed => break None,
                AttemptEnd::Failed(error) => break Some(error),
                AttemptEnd::Again { after_pause: false } => {}
                AttemptEnd::Again { after_pause: true } => {
                    pauses += 1;
                    let elapsed_ms = started.elapsed().as_millis() as u64;
                    if pauses >= COMMIT_ATTEMPTS_MAX || elapsed_ms >= COMMIT_RETRY_MAX_MS {
                        if !self.give_first_up() {
                            break Some(self.last_error.take().unwrap_or(StoreError::Conflict));
                        }
                        continue;
                    }
                    if matches!(self.last_error, Some(StoreError::Conflict)) {
                        self.conflicts += 1;
                        let calls = self.submissions.iter().flat_map(|one| &one.calls);
                        note_conflict(self.shared, calls);
                        self.leave_waiters_out_after_conflicts();
                        if self.leave_reads_out_after_conflict() {
                            self.statistics.retries.add(1);
                            continue;
                        }
                        self.leave_transactions_out_after_conflicts();
                    }
                    // Full jitter, so that servers that conflicted once do not conflict again.
                    let pause_ms = self.environment.random.below(backoff_ms + 1);
                    tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                    backoff_ms = (backoff_ms * 2).min(BACKOFF_MAX_MS);
                }
            }
            self.statistics.retries.add(1);
        };
        self.finish(failure, started.elapsed())
    }

    /// Runs the batch and answers its clients if one attempt suffices without waiting. Otherwise does nothing and
    /// returns the submissions. Scripts that reach `script_limit` are not run.
    pub(crate) fn run_at_once(
        mut self,
        script_limit: BusyLimit,
    ) -> Result<BatchResult, Vec<Submission>> {
        self.script_limit = Some(script_limit);
        let started = Instant::now();
        match self.attempt().now_or_never() {
            Some(AttemptEnd::Committed) => Ok(self.finish(None, started.elapsed())),
            Some(AttemptEnd::Failed(error)) => Ok(self.finish(Some(error), started.elapsed())),
            Some(AttemptEnd::Again { .. }) | None => {
                self.release_waiters();
                Err(take_submissions(self.submissions))
            }
        }
    }

    /// Pops for woken clients may conflict with pops of other servers. The batch's own commands need not run again
    /// for that, so after some conflicts the batch wakes no more clients. A separate transaction wakes them later.
    fn leave_waiters_out_after_conflicts(&mut self) {
        if self.conflicts >= WOKEN_CONFLICTS_MAX && !self.only_wakes() {
            self.woken_max = 0;
        }
    }

    /// Leaves half of the commands to a later batch if the batch has EXECs and keeps conflicting.
    fn leave_transactions_out_after_conflicts(&mut self) {
        if self.conflicts < WHOLE_CONFLICTS_MAX {
            return;
        }
        let mut calls = self.submissions.iter().flat_map(|one| &one.calls);
        if calls.any(|call| matches!(call.work, Work::Transaction(_))) {
            self.halve();
        }
    }

    /// A read after a write of the same client conflicts with changes to what it read. The batch's other commands
    /// need not run again for that, so each submission now ends before such a read. The client's next submission
    /// begins with the read, which then conflicts with nothing. Returns whether there was such a read.
    fn leave_reads_out_after_conflict(&mut self) -> bool {
        if !self.has_read_after_write {
            return false;
        }
        self.ends_before_reads = true;
        true
    }

    /// Fails only the command that is too slow for a transaction, not the whole batch. It may be a waiter's command.
    /// Returns false if no such command is known.
    fn give_first_up(&mut self) -> bool {
        let Some(slow) = self.slow.take() else {
            return false;
        };
        if matches!(slow, CommandId::Waiter(_)) {
            // The waiter gets its error in this batch. Waiters after it may be as slow, so a later batch wakes them.
            self.woken_max = 1;
        }
        let error = CommandError::Store(StoreError::TooOld);
        self.refused.insert(slow, error).is_none()
    }

    async fn attempt(&mut self) -> AttemptEnd {
        self.start_over();
        // Opened before the transaction begins, so that it records every change that the transaction's reads miss.
        self.read_window = self.environment.open_read_window();
        let begun = match self.may_be_long() {
            true => self.store.begin_write(),
            false => self.store.begin_short_write(),
        };
        let transaction = match begun {
            Ok(transaction) => transaction,
            Err(error) => return self.after_error(error),
        };
        if self.environment.capabilities.has_unknown_results {
            self.slot.batches += 1;
            self.mark_operation(&*transaction);
        }
        let own_mutations = transaction.mutation_count();
        let mut attempt = Attempt::new(&*transaction, self.environment);
        attempt.unit.limit_scripts(self.script_limit);
        let ended = self.run_all(&mut attempt).await;
        if ended.is_ok() {
            self.check_changes(&attempt).await;
        }
        self.statistics
            .commands_rolled_back
            .add(attempt.unit.rollbacks());
        let known = attempt.unit.take_known();
        self.signals = attempt.unit.signals;
        if let Err(ended) = ended {
            return ended;
        }
        self.shared.waiters.note_changes(&self.changes);
        self.note_ready_keys();
        self.write_messages(&*transaction);
        if transaction.mutation_count() == own_mutations {
            self.note_known(known);
            return AttemptEnd::Committed;
        }
        // A waiter that gives up after this check still gets its reply after the commit.
        if self.has_woken_cancelled_waiter() {
            return AttemptEnd::Again { after_pause: false };
        }
        if known.is_some() {
            self.environment.latest_known.forget();
        }
        let stopwatch = Stopwatch::start();
        match transaction.commit().await {
            Ok(()) => {
                self.note_known(known);
                let duration = stopwatch.elapsed();
                self.commit_wait = Some(stopwatch.waited(duration));
                self.statistics.commits.add(1);
                self.statistics.commit_durations.record(duration);
                AttemptEnd::Committed
            }
            Err(StoreError::TooLarge) => self.make_smaller(CommandError::TooLarge),
            Err(StoreError::UnknownResult) => self.resolve_unknown_result().await,
            // One of the commands adds to a damaged row. The others run without it.
            Err(error @ StoreError::Damaged(_)) => self.make_smaller(error.into()),
            Err(error) => self.after_error(error),
        }
    }

    /// Whether readers should not wait for it.
    fn may_be_long(&self) -> bool {
        let slow = &self.shared.rounds.slow;
        let mut calls = self.submissions.iter().flat_map(|one| &one.calls);
        // A round has quick commands, and stops scripts that take long.
        self.script_limit.is_none()
            && calls.any(|call| match call.work.invocations() {
                Some(invocations) => {
                    let may_be_long = |one: &Invocation| {
                        runs_script(one.row) || slow.runs_long(one) || weight(one) > LONG_WEIGHT
                    };
                    invocations.iter().any(may_be_long)
                }
                None => !matches!(call.work, Work::WakeUp(..)),
            })
    }

    fn note_known(&self, known: Option<Known>) {
        if let Some(known) = known {
            self.environment.latest_known.set(known);
        }
    }

    /// Runs the commands.
    async fn run_all(&mut self, attempt: &mut Attempt<'_>) -> Result<(), AttemptEnd> {
        let wanted = self.read_wanted(attempt);
        let (wanted, unread) = futures_util::join!(wanted, self.prefetch(attempt));
        self.wanted = wanted.map_err(|error| self.after_error(error))?;
        self.unread = unread;
        self.run_commands(attempt).await?;
        let counted = attempt.unit.write_context(0).count_rank_changes().await;
        counted.map_err(|error| match error.is_about_rows() {
            // One of the commands uses a key with damaged counts. The others run without it.
            true => self.make_smaller(error.into()),
            false => self.after_error(error),
        })
    }

    /// Finds out which changed keys are now empty, if that matters to waiting clients. An
    /// unreadable key counts as not empty.
    async fn check_changes(&mut self, attempt: &Attempt<'_>) {
        let keys = {
            let changes = attempt.unit.signals.changes();
            self.shared.waiters.concerned(&changes)
        };
        let checks = keys.into_iter().map(async |key| {
            let context = attempt.unit.write_context(key.database);
            let is_empty = context.is_empty(&key.key).await.unwrap_or(false);
            (key, is_empty)
        });
        self.changes = join_all(checks).await.into_iter().collect();
    }

    /// Which changes other servers want reported. If one begins to want more before the batch commits, the batch
    /// conflicts.
    async fn read_wanted(&self, attempt: &Attempt<'_>) -> Result<Wanted, StoreError> {
        let mut calls = self.submissions.iter().flat_map(|one| &one.calls);
        let only_reads = calls.all(|call| call.work.only_reads());
        if !self.environment.capabilities.has_other_writers || only_reads {
            return Ok(Wanted::Nothing);
        }
        let (layout, ids) = (&self.environment.layout, &self.environment.ids);
        wanted_by_others(attempt.unit.transaction, layout, ids.instance()).await
    }

    /// Writes published messages and the names of changed and ready keys into the transaction, for the other servers.
    fn write_messages(&self, transaction: &dyn Transaction) {
        if !self.environment.capabilities.has_other_writers {
            return;
        }
        let messages = self.signals.messages();
        let changes = self.signals.changes();
        let changes = match self.wanted {
            Wanted::All => changes.as_slice(),
            Wanted::Ready | Wanted::Nothing => &[],
        };
        let ready = self.ready_keys();
        if write_messages(transaction, self.environment, &messages, changes, &ready) {
            self.shared.relay.note_news();
        }
    }

    /// The keys that the batch leaves ready for clients of other servers, if any of these wait.
    fn ready_keys(&self) -> ReadyKeys {
        let mut keys = ReadyKeys::default();
        if self.wanted >= Wanted::Ready {
            let ready = self.made_ready.iter();
            for ready in ready.filter(|ready| !self.has_taken(ready)) {
                keys.add(ready);
            }
        }
        keys
    }

    /// Ends the quiet of keys that the batch leaves ready.
    fn note_ready_keys(&self) {
        let ready = self.made_ready.iter();
        let keys = ready.filter_map(|ready| match ready {
            Ready::Key(key, _) | Ready::Gone(key, _) if !self.has_taken(ready) => Some(key),
            _ => None,
        });
        self.shared.waiters.note_ready(keys);
    }

    /// Whether clients of this batch have taken all that it made ready in a key.
    fn has_taken(&self, ready: &Ready) -> bool {
        match ready {
            Ready::Key(key, _) => self.changes.get(key) == Some(&true),
            _ => false,
        }
    }

    /// Discards the effects of the previous attempt, which was not committed.
    fn start_over(&mut self) {
        self.replies.clear();
        self.has_read_after_write = false;
        self.signals = Signals::default();
        self.made_ready.clear();
        self.deferred.clear();
        self.changes.clear();
        self.found_empty.clear();
        self.release_waiters();
        self.last_position = self.shared.waiters.last_position();
        self.fills = self.shared.waiters.fills();
        self.unread = Unread::default();
        let needs_log = self.environment.capabilities.has_other_writers && self.has_waiters();
        self.log_reader = match needs_log {
            true => self.shared.waiters.log_reader(),
            false => None,
        };
    }

    /// Removes the waiters that the attempt parked, and releases all others from service.
    fn release_waiters(&mut self) {
        for (_, waiter) in self.parked.drain() {
            self.shared.waiters.unpark(&waiter);
        }
        let woken = self.woken.drain(..).map(|(waiter, _)| waiter);
        for waiter in woken.chain(self.in_service.drain(..)) {
            self.shared.waiters.release(&waiter);
        }
    }

    /// Whether something was popped for a client that has since given up. The batch then runs again without that
    /// client, so that nothing is lost.
    fn has_woken_cancelled_waiter(&self) -> bool {
        let mut woken = self.woken.iter();
        woken.any(|(waiter, _)| self.shared.waiters.is_cancelled(waiter))
    }

    pub(super) fn after_error(&mut self, error: StoreError) -> AttemptEnd {
        self.statistics.count_failure(&error);
        if error.is_retryable() {
            tracing::trace!(%error, "retrying a batch of commands");
            self.last_error = Some(error);
            AttemptEnd::Again { after_pause: true }
        } else {
            AttemptEnd::Failed(error)
        }
    }

    /// Reports what was committed to watching, subscribed and waiting clients.
    fn publish_effects(&mut self) {
        let ended = self.signals.ended();
        self.statistics.task_retries.add(ended.retries);
        self.statistics.task_deaths.add(ended.deaths);
        self.statistics.expired_fields.add(ended.fields);
        self.shared.activity.note(self.signals.flows.take());
        if let Some(receiver) = &self.environment.span_receiver {
            let ended = self.signals.spans.take();
            if !ended.is_empty() {
                receiver.receive(ended);
            }
        }
        let waiters = &self.shared.waiters;
        if !self.shared.watchers.is_empty() {
            let changes = self.signals.changes();
            let touched = changes.iter().filter_map(Change::watched_key);
            self.shared.watchers.touch(touched);
            for exchanged in self.signals.take_exchanged() {
                self.shared.watchers.touch_later(&exchanged);
            }
        }
        if let Some(subscribers) = &self.environment.subscribers {
            for message in self.signals.take_messages() {
                subscribers.deliver(&message);
                // Again: the relay may have read the log before it contained this message.
                self.shared.relay.note_news();
            }
        }
        if let Some(counter) = &self.environment.script_calls {
            for call in self.signals.script_calls.take() {
                counter.tell(&call);
            }
        }
        // Before the replies, because a client may next wait for what this batch left in a key.
        waiters.note_committed(&self.changes, self.fills);
        self.note_ready_keys();
        waiters.note_empty(&self.found_empty, self.fills);
        for (waiter, reply) in self.woken.drain(..) {
            let carried = self.shared.in_flight.carry(reply.size_hint());
            waiters.answer(&waiter, reply, carried);
        }
        // After these replies, because a client must learn of its own changes after the reply to its command.
        self.note_changes();
        for waiter in self.parked.values() {
            waiters.settle(waiter, self.fills);
            note_wait(self.shared, waiter);
        }
        for (key, cursor) in self.deferred.drain() {
            waiters.schedule_wake_up(key, cursor);
        }
        // A client that began to wait in another batch may have run its command on a snapshot from before this
        // commit.
        let has_nothing = |key: &ClientKey, value_type: ValueType| {
            let is_empty = self.changes.get(key) == Some(&true);
            is_empty && !waiters.types_needed(key).contains(&value_type)
        };
        for ready in self.made_ready.drain(..) {
            match ready {
                Ready::Key(key, value_type)
                    if !has_nothing(&key, value_type)
                        && waiters.is_awaited_since(&key, value_type, self.last_position) =>
                {
                    waiters.schedule_wake_up(key, Cursor::START);
                }
                Ready::Gone(key, value_type)
                    if waiters.is_awaited_since(&key, value_type, self.last_position) =>
                {
                    waiters.schedule_wake_up(key, Cursor::START);
                }
                // `note_ready` records items as their keys.
                Ready::Key(..) | Ready::Gone(..) | Ready::Items { .. } => {}
                Ready::Anywhere => waiters.note_missed(),
                Ready::Database(database) => {
                    waiters.note_new_namespace(database);
                    for key in waiters.keys_of(database) {
                        waiters.schedule_wake_up(key, Cursor::START);
                    }
                }
            }
        }
    }

    /// Reports to this server's tracking clients what was read and changed.
    fn note_changes(&self) {
        let changes = self.signals.changes();
        let window = self.read_window.as_ref();
        self.environment.note_changes(window, &changes);
        if self.wanted == Wanted::All && !changes.is_empty() {
            // Again: the relay may have read the log before it contained this batch.
            self.shared.relay.note_news();
        }
    }

    /// [`Self::note_changes`] for a batch that may have been committed or may still be.
    fn note_possible_changes(&self) {
        self.note_changes();
        if self.environment.has_trackers() {
            let mut changes = self.signals.changes().clone();
            changes.retain(|change| !matches!(change, Change::Read { .. }));
            let environment = Arc::clone(self.environment);
            tokio::spawn(async move {
                tokio::time::sleep(COMMIT_LANDS_MAX).await;
                environment.note_changes(None, &changes);
            });
        }
    }

    /// Has the keys of waiting clients checked again after a commit that may have been applied or may still be.
    fn note_possibly_ready(&self) {
        if !self.environment.capabilities.has_other_writers {
            return;
        }
        let waiters = Arc::clone(&self.shared.waiters);
        waiters.note_missed();
        tokio::spawn(async move {
            tokio::time::sleep(COMMIT_LANDS_MAX).await;
            waiters.note_missed();
        });
    }

    /// Ends the service of all waiters. If the batch may have been committed, woken clients get the error like the
    /// batch's other clients. If they kept waiting, nobody would learn that something may have been popped for them.
    fn release_after_failure(&mut self, error: &StoreError) {
        if matches!(error, StoreError::UnknownResult | StoreError::Fatal(_)) {
            self.note_possible_changes();
            self.note_possibly_ready();
            let line = CommandError::Store(error.clone()).to_line();
            for (waiter, _) in self.woken.drain(..) {
                let reply = Reply::Error(line.clone());
                let carried = self.shared.in_flight.carry(reply.size_hint());
                self.shared.waiters.answer(&waiter, reply, carried);
            }
        }
        self.release_waiters();
    }

    fn finish(mut self, failure: Option<StoreError>, duration: Duration) -> BatchResult {
        let served = match &failure {
            None => self.woken.len(),
            Some(_) => 0,
        };
        // Before the replies, because a client with a reply may rely on others having been notified.
        match &failure {
            None => self.publish_effects(),
            Some(error) => {
                self.statistics.store_errors.add(1);
                self.release_after_failure(error);
            }
        }
        let mut answered = served;
        let mut commands = 0;
        let mut not_run = Vec::new();
        let mut locks = Vec::new();
        let uses_locks = self.environment.capabilities.parallel_batches > 1;
        self.statistics.batches.add(1);
        let duration_us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.statistics.batches_duration_us.add(duration_us);
        let has_run_some = self.replies.iter().any(|replies| !replies.is_empty());
        let mut replies_of_each = self.replies.into_iter();
        for (number, mut submission) in take_submissions(self.submissions).into_iter().enumerate() {
            if uses_locks {
                let its_locks = submission
                    .calls
                    .iter()
                    .map(|call| call.access.locks.clone());
                locks.extend(its_locks);
            }
            let run = replies_of_each.next().unwrap_or_default();
            let mut replies = match &failure {
                Some(error) => {
                    let line = CommandError::Store(error.clone()).to_line();
                    let told = match error {
                        // Commands outside the transaction were certainly not applied. They run later.
                        StoreError::UnknownResult => run.len(),
                        // Commands that did not run might not conflict.
                        StoreError::Conflict if has_run_some => run.len(),
                        _ => submission.calls.len(),
                    };
                    vec![Reply::Error(line); told]
                }
                None => run,
            };
            if replies.is_empty() && !submission.calls.is_empty() {
                not_run.push(submission);
                continue;
            }
            let Some(respond) = submission.respond else {
                if failure.is_some() {
                    wake_up_again(self.shared, submission.calls);
                }
                continue;
            };
            self.statistics.batched_commands.add(replies.len() as u64);
            commands += replies.len();
            let rest = submission.calls.split_off(replies.len());
            let done = submission.calls;
            let is_parked = self.parked.contains_key(&number);
            if is_parked {
                replies.pop();
            }
            // A waiting client does not submit again soon.
            answered += usize::from(!is_parked);
            let reply_bytes = replies.iter().map(Reply::size_hint).sum();
            // Fails if the client is gone. Its commands ran anyway.
            let _ = respond.send(SubmissionResult {
                replies,
                done,
                failure: failure.clone(),
                rest,
                is_parked,
                carried: self.shared.in_flight.carry(reply_bytes),
            });
        }
        tracing::trace!(commands, served, duration_us, "ran a batch of commands");
        BatchResult {
            slot: self.slot,
            locks,
            not_run,
            answered,
            commands,
            duration,
            commit_wait: self.commit_wait,
            late: self.late,
        }
    }
}

/// Takes the submissions out of a batch that no attempt is using.
fn take_submissions(submissions: Rc<Vec<Submission>>) -> Vec<Submission> {
    Rc::try_unwrap(submissions).unwrap_or_default()
}

/// Schedules the wake-ups of a failed batch again, after a pause in which the store may recover.
fn wake_up_again(shared: &Arc<Shared>, calls: Vec<Call>) {
    let waiters = Arc::clone(&shared.waiters);
    tokio::spawn(async move {
        tokio::time::sleep(WAKE_UP_AFTER_FAILURE).await;
        for call in calls {
            if let Work::WakeUp(key, cursor) = call.work {
                waiters.schedule_wake_up(key, cursor);
            }
        }
    });
}
