//! A read lane: a thread that answers submissions that only read. Several submissions share a snapshot.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::mpsc;

use quoin_base::limits::{
    BATCH_AGE_MAX_MS, BATCH_REPLY_BYTES_MAX, COMMIT_ATTEMPTS_MAX, COMMIT_RETRY_MAX_MS,
    READ_BATCH_COMMANDS_MAX, READ_BATCHES_MAX,
};
use quoin_base::stopwatch::BusyLimit;
use quoin_data::command::call;
use quoin_data::command::call::CallError;
use quoin_data::error::CommandError;
use quoin_data::prefetch::{Prefetch, PrefetchPlan};
use quoin_data::unit::context::Environment;
use quoin_data::unit::{AnyUnit, ReadUnit};
use quoin_resp::reply::Reply;
use quoin_store::{Store, StoreError};

use super::call::{Call, Submission, SubmissionResult, Work};
use super::shared::Shared;
use super::statistics::ExecutorStatistics;
use super::timed::Timed;
use super::warming::Warming;

/// How many commands of a submission have the metadata of their keys prefetched together. Later commands follow once
/// these have run, because large replies may end the submission before.
const PREFETCHED_COMMANDS: usize = 128;
/// How many keys have their metadata prefetched together. With small values included, it fits into the cache of a
/// snapshot. A command with more keys reads them concurrently itself.
const PREFETCHED_KEYS_MAX: usize = 1_024;

pub(super) struct ReadLane {
    store: Arc<dyn Store>,
    environment: Arc<Environment>,
    statistics: Arc<ExecutorStatistics>,
    shared: Arc<Shared>,
}

impl ReadLane {
    pub(super) fn new(
        store: Arc<dyn Store>,
        environment: Arc<Environment>,
        statistics: Arc<ExecutorStatistics>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            store,
            environment,
            statistics,
            shared,
        }
    }

    /// Runs until every sender is gone and everything has been answered.
    pub(super) async fn run(self, mut receiver: mpsc::Receiver<Submission>) {
        // Reads of the embedded store never wait, so there is nothing to overlap.
        let parallel = if !self.environment.capabilities.reads_wait {
            1
        } else {
            READ_BATCHES_MAX
        };
        let mut under_way = FuturesUnordered::new();
        let mut is_open = true;
        while is_open || !under_way.is_empty() {
            tokio::select! {
                biased;
                Some(()) = under_way.next() => {}
                arrived = receiver.recv(), if is_open && under_way.len() < parallel => {
                    let Some(first) = arrived else {
                        is_open = false;
                        continue;
                    };
                    let mut submissions = vec![first];
                    while submissions.len() < READ_BATCH_COMMANDS_MAX {
                        match receiver.try_recv() {
                            Ok(submission) => submissions.push(submission),
                            Err(_) => break,
                        }
                    }
                    under_way.push(self.serve(submissions));
                }
                else => {}
            }
        }
    }

    /// Answers submissions as far as that is possible without waiting. The others stay in `submissions`.
    pub(super) fn serve_at_once(
        &self,
        submissions: &mut Vec<Submission>,
        in_round: InRound,
    ) -> Served {
        let served = self.serve_on_one_snapshot(submissions, Some(in_round));
        // The caller retries failed submissions in a lane, which can wait.
        served.now_or_never().unwrap_or_default()
    }

    async fn serve(&self, mut submissions: Vec<Submission>) {
        // Consecutive failures of the first submission.
        let mut failures = 0_u32;
        let mut tried_since = Instant::now();
        while !submissions.is_empty() {
            let waited = Instant::now();
            self.shared.in_flight.wait_for_room().await;
            tried_since += waited.elapsed();
            let waiting = submissions.len();
            let served = self.serve_on_one_snapshot(&mut submissions, None).await;
            if submissions.len() < waiting {
                failures = 0;
                tried_since = Instant::now();
            }
            if let Some(error) = served.failure {
                self.statistics.count_failure(&error);
                failures += 1;
                let is_given_up = failures >= COMMIT_ATTEMPTS_MAX
                    || tried_since.elapsed() >= Duration::from_millis(COMMIT_RETRY_MAX_MS);
                // A submission that takes longer than the lifetime of a snapshot must neither delay the others nor
                // make them fail.
                let failed = if !error.is_retryable() {
                    submissions.len()
                } else if is_given_up {
                    1
                } else {
                    0
                };
                if failed == 0 {
                    self.statistics.retries.add(1);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    continue;
                }
                failures = 0;
                tried_since = Instant::now();
                self.statistics.store_errors.add(1);
                let line = CommandError::Store(error.clone()).to_line();
                for submission in submissions.drain(..failed) {
                    let replies = vec![Reply::Error(line.clone()); submission.calls.len()];
                    self.answer(submission, replies, 0, Some(error.clone()));
                }
            }
        }
    }

    /// Prefetches for the first commands of the next submissions, at least one. Returns the number of those
    /// submissions.
    async fn prefetch_first(&self, submissions: &[Submission], unit: &ReadUnit<'_>) -> usize {
        fn first(submission: &Submission) -> impl Iterator<Item = &Call> {
            submission.calls.iter().take(PREFETCHED_COMMANDS)
        }
        let mut keys = 0;
        let has_room = |submission: &&Submission| {
            keys += first(submission)
                .map(|call| call.access.prefetch.len())
                .sum::<usize>();
            keys <= PREFETCHED_KEYS_MAX
        };
        let count = submissions.iter().take_while(has_room).count().max(1);
        let calls = submissions.iter().take(count).flat_map(first);
        self.prefetch(calls, unit).await;
        count
    }

    /// If reads of the store are round trips, reads the metadata of the next commands' keys at once. Reads only
    /// values stored with the metadata, because the commands may not run on this snapshot.
    async fn prefetch<'c>(&self, calls: impl Iterator<Item = &'c Call>, unit: &ReadUnit<'_>) {
        let mut plan = PrefetchPlan::default();
        let mut keys = 0;
        for call in calls {
            let of_call = &call.access.prefetch;
            if of_call.len() <= PREFETCHED_KEYS_MAX {
                keys += of_call.len();
                if keys > PREFETCHED_KEYS_MAX {
                    break;
                }
                for (key, _) in of_call {
                    plan.add(key, &Prefetch::Meta);
                }
            }
        }
        let context = unit.context(0);
        context.prefetch(&plan, &self.shared.locations).await;
    }

    /// Answers submissions in order, until all are answered, their replies are large, or the snapshot is too old. An
    /// open snapshot keeps freed pages from being reused. Unanswered submissions stay in `submissions`, including
    /// those that begin with a script that reaches the limit of a round.
    async fn serve_on_one_snapshot(
        &self,
        submissions: &mut Vec<Submission>,
        in_round: Option<InRound>,
    ) -> Served {
        let mut served = Served::default();
        let mut calls = submissions.iter().flat_map(|one| &one.calls);
        // Opened before the snapshot, so that it records every change that the snapshot does not show.
        let window = match calls.any(|call| call.work.tracks()) {
            true => self.environment.open_read_window(),
            false => None,
        };
        let known = self.environment.latest_known.get();
        let begun = match in_round {
            Some(InRound { waits, .. }) => self.store.begin_short_read(waits),
            None => self.store.begin_read().map(Some),
        };
        let transaction = match begun {
            Ok(Some(transaction)) => transaction,
            Ok(None) => {
                served.is_busy = true;
                return served;
            }
            Err(error) => {
                served.failure = Some(error);
                return served;
            }
        };
        let unit = ReadUnit::new(&*transaction, &self.environment, known);
        unit.limit_scripts(in_round.map(|round| round.script_limit));
        let prefetches = self.environment.capabilities.reads_wait;
        let mut prefetched = 0;
        let mut warming = Warming::default();
        if prefetches {
            prefetched = self.prefetch_first(submissions, &unit).await;
        }
        let started = Instant::now();
        let mut finished = Vec::new();
        let mut batch_reply_bytes = 0_usize;
        for (number, submission) in submissions.iter().enumerate() {
            if prefetches && number == prefetched {
                let rest = submissions.get(number..).unwrap_or_default();
                prefetched += self.prefetch_first(rest, &unit).await;
            }
            let mut replies = Vec::with_capacity(submission.calls.len());
            let mut reply_bytes = 0_usize;
            for (at, call) in submission.calls.iter().enumerate() {
                if reply_bytes >= submission.reply_bytes_max {
                    break;
                }
                if prefetches && at > 0 && at % PREFETCHED_COMMANDS == 0 {
                    let next = submission.calls.iter().skip(at).take(PREFETCHED_COMMANDS);
                    self.prefetch(next, &unit).await;
                }
                if !prefetches {
                    let unit = AnyUnit::Read(&unit);
                    warming.before(unit, submissions, (number, at)).await;
                }
                if served.late.is_some() && call.work.script().is_some() {
                    // One script has already taken too long. The others run in the lane or in another round.
                    break;
                }
                let result = match &call.work {
                    Work::Command(invocation) => {
                        let unit = AnyUnit::Read(&unit);
                        call::call_once(unit, invocation, call::Mode::default()).await
                    }
                    Work::ReadJob { database, run } => {
                        let result = run(&unit.context(*database)).await;
                        call::check(result).map(call::to_reply)
                    }
                    Work::Transaction(_) | Work::WakeUp(..) | Work::WriteJob { .. } => break,
                };
                let reply = match result {
                    Ok(reply) => reply,
                    // Commands that read replace no queue.
                    Err(CallError::TooLarge | CallError::MustReturn(_)) => {
                        Reply::Error(CommandError::TooLarge.to_line())
                    }
                    Err(CallError::OutOfTime) => {
                        served.late = call.work.script();
                        break;
                    }
                    Err(CallError::Store(error)) => {
                        served.failure = Some(error);
                        break;
                    }
                };
                reply_bytes += reply.size_hint();
                replies.push(reply);
            }
            if served.failure.is_some() {
                break;
            }
            finished.push((replies, reply_bytes));
            batch_reply_bytes += reply_bytes;
            if batch_reply_bytes >= BATCH_REPLY_BYTES_MAX
                || started.elapsed() >= Duration::from_millis(BATCH_AGE_MAX_MS)
            {
                break;
            }
        }
        let reads = unit.take_reads();
        drop(transaction);
        // Before the replies: changes after them are reported.
        self.environment.note_changes(window.as_ref(), &reads);
        let not_reached = submissions.split_off(finished.len());
        for (submission, (replies, reply_bytes)) in
            std::mem::take(submissions).into_iter().zip(finished)
        {
            if replies.is_empty() && !submission.calls.is_empty() {
                submissions.push(submission);
            } else {
                self.answer(submission, replies, reply_bytes, None);
            }
        }
        submissions.extend(not_reached);
        served
    }

    fn answer(
        &self,
        mut submission: Submission,
        replies: Vec<Reply>,
        reply_bytes: usize,
        failure: Option<StoreError>,
    ) {
        let rest = submission.calls.split_off(replies.len());
        let result = SubmissionResult {
            replies,
            done: submission.calls,
            failure,
            rest,
            is_parked: false,
            carried: self.shared.in_flight.carry(reply_bytes),
        };
        // Fails if the client is gone, which does not matter.
        if let Some(respond) = submission.respond {
            let _ = respond.send(result);
        }
    }
}

/// How a round reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct InRound {
    /// The time limit of a script.
    pub(super) script_limit: BusyLimit,
    /// Whether to wait for a short write transaction to end.
    pub(super) waits: bool,
}

/// The outcome of serving submissions.
#[derive(Default)]
pub(super) struct Served {
    /// The store's error in the first remaining submission.
    failure: Option<StoreError>,
    /// The script that took too long.
    pub(super) late: Option<Timed>,
    /// Whether nothing was read because a short write transaction is running.
    pub(super) is_busy: bool,
}

#[cfg(test)]
mod tests;
