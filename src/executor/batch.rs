//! One batch: many clients' commands in one store transaction.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::error::CommandError;
use crate::limits::{
    BATCH_AGE_MAX_MS, COMMIT_ATTEMPTS_MAX, COMMIT_RETRY_MAX_MS, SUBMISSION_REPLY_BYTES_MAX,
};
use crate::reply::Reply;
use crate::store::{Isolation, Store, StoreError, Transaction};
use crate::types::context::NamespaceCache;
use crate::types::signals::Signals;
use crate::types::{Environment, ReadContext, WriteContext};

use super::statistics::ExecutorStatistics;
use super::{Call, Claims, Finished, Submission, Work};

/// First pause before a batch is tried again; doubles up to [`BACKOFF_MAX_MS`].
const BACKOFF_FIRST_MS: u64 = 1;
const BACKOFF_MAX_MS: u64 = 100;

/// A place in which one batch at a time can be under way. Its number names the row by which a
/// batch of unknown result is recognised.
pub(super) struct Slot {
    number: u64,
    batches: u64,
}

impl Slot {
    pub(super) fn new(number: u64) -> Self {
        Self { number, batches: 0 }
    }
}

/// What a finished batch hands back to its lane.
pub(super) struct Done {
    pub(super) slot: Slot,
    pub(super) claims: Vec<Claims>,
    /// Submissions of which nothing was run, for the next batch.
    pub(super) not_run: Vec<Submission>,
    /// How many clients were answered.
    pub(super) answered: usize,
    /// How long the batch took.
    pub(super) duration: Duration,
}

pub(super) struct Batch<'s> {
    store: &'s dyn Store,
    environment: &'s Environment,
    statistics: &'s ExecutorStatistics,
    slot: Slot,
    submissions: Vec<Submission>,
    /// Replies of each submission's first commands, from the latest attempt.
    replies: Vec<Vec<Reply>>,
    /// Commands that failed after they had written, by submission and number: they get their
    /// error, and the batch is run again without them.
    rolled_back: HashMap<(usize, usize), CommandError>,
    /// Commands that this batch may run; the rest waits for the next.
    commands_max: usize,
    /// The first command alone was too slow for a transaction, and is all that may run.
    is_slow: bool,
    /// What others are to hear of, from the latest attempt.
    signals: Signals,
    /// Why the batch was run again last: what its clients are told when it is given up.
    last_error: Option<StoreError>,
}

#[cfg(test)]
mod tests;

/// How one attempt ended.
enum Attempt {
    /// Everything in `replies` is durable.
    Committed,
    /// Nothing was applied; run the batch again, at once where it was made smaller.
    Again { after_pause: bool },
    /// The store failed, for every command of the batch.
    Failed(StoreError),
}

impl<'s> Batch<'s> {
    pub(super) fn new(
        store: &'s dyn Store,
        environment: &'s Environment,
        statistics: &'s ExecutorStatistics,
        slot: Slot,
        submissions: Vec<Submission>,
    ) -> Self {
        Self {
            store,
            environment,
            statistics,
            slot,
            replies: Vec::new(),
            rolled_back: HashMap::new(),
            commands_max: submissions.iter().map(|one| one.calls.len()).sum(),
            is_slow: false,
            signals: Signals::default(),
            last_error: None,
            submissions,
        }
    }

    /// Runs the batch until it is durable or given up, and answers its clients.
    pub(super) async fn run(mut self) -> Done {
        let started = Instant::now();
        let mut pauses = 0_u32;
        let mut backoff_ms = BACKOFF_FIRST_MS;
        let failure = loop {
            match self.attempt().await {
                Attempt::Committed => break None,
                Attempt::Failed(error) => break Some(error),
                Attempt::Again { after_pause: false } => {}
                Attempt::Again { after_pause: true } => {
                    pauses += 1;
                    let elapsed_ms = started.elapsed().as_millis() as u64;
                    if pauses >= COMMIT_ATTEMPTS_MAX || elapsed_ms >= COMMIT_RETRY_MAX_MS {
                        if !self.give_first_up() {
                            break Some(self.last_error.take().unwrap_or(StoreError::Conflict));
                        }
                        continue;
                    }
                    // Full jitter, so that servers which met once do not meet again.
                    let pause_ms = self.environment.random.below(backoff_ms + 1);
                    tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                    backoff_ms = (backoff_ms * 2).min(BACKOFF_MAX_MS);
                }
            }
            self.statistics.retries.add(1);
        };
        self.finish(failure, started.elapsed())
    }

    /// Fails the one command that is too slow for a transaction rather than the whole batch.
    /// False where it is not known to be one.
    fn give_first_up(&mut self) -> bool {
        let is_new = self.is_slow && !self.rolled_back.contains_key(&(0, 0));
        if is_new {
            let error = CommandError::Store(StoreError::TooOld);
            self.rolled_back.insert((0, 0), error);
        }
        is_new
    }

    async fn attempt(&mut self) -> Attempt {
        let transaction = match self.store.begin_write() {
            Ok(transaction) => transaction,
            Err(error) => return self.after_error(error),
        };
        if self.environment.capabilities.has_unknown_results {
            self.slot.batches += 1;
            self.mark_operation(&*transaction);
        }
        let own_mutations = transaction.mutation_count();
        if let Some(ended) = self.run_commands(&*transaction).await {
            return ended;
        }
        if transaction.mutation_count() == own_mutations {
            return Attempt::Committed;
        }
        match transaction.commit().await {
            Ok(()) => {
                self.statistics.commits.add(1);
                Attempt::Committed
            }
            Err(StoreError::TooLarge) => self.make_smaller(),
            Err(StoreError::UnknownResult) => self.resolve_unknown_result().await,
            Err(error) => self.after_error(error),
        }
    }

    fn after_error(&mut self, error: StoreError) -> Attempt {
        if matches!(error, StoreError::Conflict) {
            self.statistics.conflicts.add(1);
        }
        if error.is_retryable() {
            self.last_error = Some(error);
            Attempt::Again { after_pause: true }
        } else {
            Attempt::Failed(error)
        }
    }

    /// Runs the batch's commands in order. `None` where they are ready to be committed.
    async fn run_commands(&mut self, transaction: &dyn Transaction) -> Option<Attempt> {
        let limits = &self.environment.capabilities;
        let namespaces = NamespaceCache::default();
        let now_ms = self.environment.clock.now_ms();
        let started = Instant::now();
        self.replies.clear();
        self.signals = Signals::default();
        let mut commands_run = 0_usize;
        for (number, submission) in self.submissions.iter().enumerate() {
            let mut replies = Vec::with_capacity(submission.calls.len());
            let mut reply_bytes = 0_usize;
            for (at, call) in submission.calls.iter().enumerate() {
                if commands_run >= self.commands_max || reply_bytes >= SUBMISSION_REPLY_BYTES_MAX {
                    break;
                }
                let is_full = transaction.size_bytes() >= limits.batch_bytes_soft_max
                    || started.elapsed() >= Duration::from_millis(BATCH_AGE_MAX_MS);
                if commands_run > 0 && is_full {
                    self.commands_max = commands_run;
                    break;
                }
                commands_run += 1;
                if let Some(error) = self.rolled_back.get(&(number, at)) {
                    replies.push(Reply::Error(error.to_line()));
                    continue;
                }
                let mutations_before = transaction.mutation_count();
                let call_started = Instant::now();
                let result = run_call(
                    call,
                    transaction,
                    self.environment,
                    &namespaces,
                    &self.signals,
                    now_ms,
                )
                .await;
                let reply = match result {
                    Ok(reply) => reply,
                    Err(CommandError::Store(error @ StoreError::Corrupt(_)))
                        if transaction.mutation_count() == mutations_before =>
                    {
                        tracing::error!(%error, "a command met rows that it cannot read");
                        Reply::Error(CommandError::Store(error).to_line())
                    }
                    // A write before was refused, which a read tells.
                    Err(CommandError::Store(StoreError::TooLarge)) => {
                        return Some(self.leave_out(commands_run, CommandError::TooLarge));
                    }
                    Err(CommandError::Store(error)) if !matches!(error, StoreError::Corrupt(_)) => {
                        let is_slow =
                            call_started.elapsed() >= Duration::from_millis(BATCH_AGE_MAX_MS);
                        if is_slow && matches!(error, StoreError::TooOld) {
                            // The others go on without it; the next batch begins with it.
                            self.commands_max = (commands_run - 1).max(1);
                            self.is_slow = commands_run == 1;
                        }
                        return Some(self.after_error(error));
                    }
                    Err(error) if transaction.mutation_count() == mutations_before => {
                        Reply::Error(error.to_line())
                    }
                    Err(error) => {
                        self.statistics.commands_rolled_back.add(1);
                        self.rolled_back.insert((number, at), error);
                        return Some(Attempt::Again { after_pause: false });
                    }
                };
                if transaction.size_bytes() > limits.transaction_bytes_max {
                    return Some(self.leave_out(commands_run, CommandError::TooLarge));
                }
                reply_bytes += reply.size_hint();
                replies.push(reply);
            }
            self.replies.push(replies);
        }
        None
    }

    /// The last of the commands that were run is too much for the transaction: alone, or with
    /// fewer others, it may fit. The first cannot.
    fn leave_out(&mut self, commands_run: usize, error: CommandError) -> Attempt {
        if commands_run > 1 {
            self.commands_max = commands_run - 1;
        } else {
            self.rolled_back.insert((0, 0), error);
        }
        Attempt::Again { after_pause: false }
    }

    /// The commit said that there was too much in it: half as much next time, or none.
    fn make_smaller(&mut self) -> Attempt {
        let commands_run: usize = self.replies.iter().map(Vec::len).sum();
        if commands_run > 1 {
            self.commands_max = commands_run / 2;
        } else {
            self.rolled_back.insert((0, 0), CommandError::TooLarge);
        }
        Attempt::Again { after_pause: false }
    }

    /// Writes which batch this is, and makes it conflict with the fence that
    /// [`Self::resolve_unknown_result`] may set later.
    fn mark_operation(&self, transaction: &dyn Transaction) {
        let key = self.operation_key();
        transaction.add_read_conflict_range(&key, &crate::layout::successor(&key));
        transaction.set(&key, &self.slot.batches.to_be_bytes());
    }

    fn operation_key(&self) -> Vec<u8> {
        self.environment
            .layout
            .operation_key(self.environment.ids.instance(), self.slot.number)
    }

    /// Learns whether the commit was applied before anything is done again: reads the slot's row
    /// and overwrites it in one transaction. When that has committed, the batch either was
    /// applied before it and has been seen, or conflicts with it for ever.
    async fn resolve_unknown_result(&mut self) -> Attempt {
        self.statistics.unknown_results.add(1);
        let key = self.operation_key();
        let expected = self.slot.batches.to_be_bytes();
        let mut was_seen = false;
        let started = Instant::now();
        let mut backoff_ms = BACKOFF_FIRST_MS;
        loop {
            match self.fence(&key, &expected).await {
                Ok(is_there) if is_there || was_seen => {
                    self.statistics.commits.add(1);
                    return Attempt::Committed;
                }
                Ok(_) => return Attempt::Again { after_pause: true },
                Err((seen, error)) => {
                    // A fence of unknown result may have overwritten the row that it saw.
                    was_seen |= seen;
                    let elapsed_ms = started.elapsed().as_millis() as u64;
                    if elapsed_ms >= COMMIT_RETRY_MAX_MS {
                        tracing::warn!(%error, "the result of a commit stays unknown");
                        return Attempt::Failed(StoreError::UnknownResult);
                    }
                    let pause_ms = self.environment.random.below(backoff_ms + 1);
                    tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                    backoff_ms = (backoff_ms * 2).min(BACKOFF_MAX_MS);
                }
            }
        }
    }

    /// Whether the slot's row names this batch, once that cannot change any more. An error
    /// carries whether it did when it was read.
    async fn fence(&self, key: &[u8], expected: &[u8]) -> Result<bool, (bool, StoreError)> {
        let transaction = self.store.begin_write().map_err(|error| (false, error))?;
        let row = transaction
            .get(key, Isolation::Serializable)
            .await
            .map_err(|error| (false, error))?;
        let is_there = row.as_deref() == Some(expected);
        transaction.set(key, b"");
        match transaction.commit().await {
            Ok(()) => Ok(is_there),
            Err(error) => Err((is_there, error)),
        }
    }

    /// Tells others what was committed.
    fn tell(&self) {
        if let Some(subscribers) = self.environment.subscribers.get() {
            for message in self.signals.take_messages() {
                subscribers.deliver(&message);
            }
        }
    }

    fn finish(self, failure: Option<StoreError>, duration: Duration) -> Done {
        // Before the replies: a client that has seen its own must find that others can know.
        if failure.is_none() {
            self.tell();
        }
        let mut answered = 0;
        let mut not_run = Vec::new();
        let mut claims = Vec::new();
        let uses_claims = self.environment.capabilities.parallel_batches > 1;
        self.statistics.batches.add(1);
        let mut replies_of_each = self.replies.into_iter();
        for mut submission in self.submissions {
            if uses_claims {
                let its_claims = submission.calls.iter().map(|call| call.claims.clone());
                claims.extend(its_claims);
            }
            let replies = match &failure {
                Some(error) => {
                    let line = CommandError::Store(error.clone()).to_line();
                    vec![Reply::Error(line); submission.calls.len()]
                }
                None => replies_of_each.next().unwrap_or_default(),
            };
            if replies.is_empty() && !submission.calls.is_empty() {
                not_run.push(submission);
                continue;
            }
            self.statistics.batched_commands.add(replies.len() as u64);
            answered += 1;
            let rest = submission.calls.split_off(replies.len());
            let done = submission.calls;
            // A client that is gone has nobody to tell; what it asked for is done all the same.
            let _ = submission.respond.send(Finished {
                replies,
                done,
                rest,
            });
        }
        Done {
            slot: self.slot,
            claims,
            not_run,
            answered,
            duration,
        }
    }
}

async fn run_call(
    call: &Call,
    transaction: &dyn Transaction,
    environment: &Environment,
    namespaces: &NamespaceCache,
    signals: &Signals,
    now_ms: i64,
) -> Result<Reply, CommandError> {
    match call.work {
        Work::Write(handler) => {
            let context = WriteContext::new(
                transaction,
                environment,
                namespaces,
                signals,
                now_ms,
                call.database,
            );
            handler(&context, &call.arguments).await
        }
        Work::Read(handler) => {
            let context =
                ReadContext::new(transaction, environment, namespaces, now_ms, call.database);
            handler(&context, &call.arguments).await
        }
    }
}
