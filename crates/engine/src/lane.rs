//! The write lane: the thread that forms batches of commands and runs as many of them concurrently as the store can
//! use.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;

use quoin_base::limits::{
    BATCH_COMMANDS_MAX, BATCH_KEYS_SHARE_MIN, GATHER_CLUSTER_COMMANDS_MAX, GATHER_CLUSTER_MAX,
    GATHER_CLUSTER_MIN, GATHER_DURATION_MIN, GATHER_MAX, GATHER_STEP, SUBMISSION_REPLY_BYTES_MAX,
};
use quoin_data::command::access::KeyLocks;
use quoin_data::keyspace::key::ClientKey;
use quoin_data::unit::context::Environment;
use quoin_store::Store;

use super::batch::{Batch, BatchResult, Slot, bring_together};
use super::call::{Call, Submission, Work};
use super::lock_set::LockSet;
use super::shared::Shared;
use super::statistics::ExecutorStatistics;
use super::waiters::Cursor;

pub(super) struct WriteLane {
    store: Arc<dyn Store>,
    environment: Arc<Environment>,
    statistics: Arc<ExecutorStatistics>,
    shared: Arc<Shared>,
    pending: VecDeque<Submission>,
    /// Keys that already have a wake-up submission in `pending`.
    to_wake: HashSet<ClientKey>,
    /// Keys of the batches in flight.
    locked: LockSet,
    /// Keys of submissions that the new batch leaves out. Younger submissions on these keys must not overtake them.
    passed_over: LockSet,
    /// Keys of the batch being formed.
    chosen: LockSet,
    /// What the last batch suggests about the next. See [`Gathering`].
    gathering: Option<Gathering>,
    /// Locks of batches that have just ended.
    held: Vec<Held>,
    /// Number of submissions received so far.
    arrived: u64,
}

/// Locks on keys that are held briefly after their batch, so that its clients return and form one batch again.
///
/// This is [`Gathering`] for the clients of one key on a cluster. There each cohort costs a transaction. Other keys
/// are not held up.
struct Held {
    locks: Vec<KeyLocks>,
    until: Instant,
    /// All clients are back when this many submissions have arrived.
    arrived: u64,
}

impl Held {
    fn release(self, locked: &mut LockSet) {
        for locks in &self.locks {
            locked.release(locks);
        }
    }
}

/// How long the next batch waits for the clients of the last one to return.
///
/// Clients that wait for each reply come in cohorts: while one cohort's batch is being synced to disk, the other
/// cohort's commands arrive. A short pause after a commit lets both cohorts join in one batch and share one sync. The
/// pause is a fraction of the commit's duration and ends as soon as all clients are back. Only commits with several
/// clients are followed by a pause, so an idle server commits at once. Only long commits are, too: if a sync is
/// short, or shorter than the run time of the commands, the cohorts should take turns. One runs and is synced while
/// the other's commands are read and answered.
struct Gathering {
    /// Clients that were in the last batch or waited for it to end.
    expected: usize,
    /// The latest end of the pause.
    until: Instant,
}

/// How many other keys of a key's waiters a wake-up of the key also locks.
const WAKE_UP_KEYS_MAX: usize = 64;
/// The pause is this fraction of the last commit's duration, or of the last batch's on a cluster.
const GATHER_DIVISOR: u32 = 4;

impl WriteLane {
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
            pending: VecDeque::new(),
            to_wake: HashSet::new(),
            locked: LockSet::default(),
            passed_over: LockSet::default(),
            chosen: LockSet::default(),
            gathering: None,
            held: Vec::new(),
            arrived: 0,
        }
    }

    /// Runs until every sender is gone and everything has been answered.
    pub(super) async fn run(mut self, mut receiver: mpsc::Receiver<Submission>) {
        let store = Arc::clone(&self.store);
        let environment = Arc::clone(&self.environment);
        let statistics = Arc::clone(&self.statistics);
        let shared = Arc::clone(&self.shared);
        let parallel = environment.capabilities.parallel_batches.max(1);
        let mut free_slots: Vec<Slot> = (0..parallel as u64).map(Slot::new).collect();
        let mut under_way = FuturesUnordered::new();
        let mut is_open = true;
        while is_open || !self.pending.is_empty() || !under_way.is_empty() {
            // Submissions that have arrived in the meantime belong to the next batch.
            is_open &= self.take_arrived(&mut receiver);
            self.gather(&mut receiver);
            self.take_scheduled();
            self.release_held();
            let next_release = self.held.iter().map(|held| held.until).min();
            while let Some(slot) = free_slots.pop() {
                let mut submissions = self.form_batch(parallel > 1, free_slots.len() + 1);
                if submissions.is_empty() {
                    free_slots.push(slot);
                    break;
                }
                let wake_ups = count_wake_ups(&mut submissions);
                let batch = Batch::new(
                    &*store,
                    &environment,
                    &statistics,
                    &shared,
                    slot,
                    submissions,
                );
                let turn = &shared.rounds.turn;
                let has_other_writers = environment.capabilities.has_other_writers;
                let in_flight = &shared.in_flight;
                under_way.push(async move {
                    in_flight.wait_for_room().await;
                    let _turn = match has_other_writers {
                        true => None,
                        false => Some(turn.lock().await),
                    };
                    (batch.run().await, wake_ups)
                });
            }
            tokio::select! {
                biased;
                Some((mut done, wake_ups)) = under_way.next() => {
                    self.gathering = self.plan_gathering(&done, receiver.len());
                    let mut not_run = std::mem::take(&mut done.not_run);
                    let ended = wake_ups - count_wake_ups(&mut not_run);
                    shared.waiters.end_wake_ups(ended);
                    free_slots.push(self.release(done, not_run.is_empty()));
                    for submission in not_run.into_iter().rev() {
                        self.put_in_front(submission);
                    }
                }
                arrived = receiver.recv(), if is_open && self.pending.len() < BATCH_COMMANDS_MAX => {
                    match arrived {
                        Some(submission) => self.accept(submission),
                        None => is_open = false,
                    }
                }
                () = shared.waiters.wait_scheduled(), if is_open => {}
                () = sleep_until(next_release), if next_release.is_some() => {}
                else => {}
            }
        }
    }

    /// Releases a batch's locks on its keys. On a cluster, holds them briefly if the next batch should wait for the
    /// clients of this one.
    fn release(&mut self, done: BatchResult, was_all_run: bool) -> Slot {
        let pause = (done.duration / GATHER_DIVISOR).min(GATHER_CLUSTER_MAX);
        let is_small = done.commands < GATHER_CLUSTER_COMMANDS_MAX;
        let answered = done.answered as u64;
        let held = Held {
            locks: done.locks,
            until: Instant::now() + pause,
            arrived: self.arrived() + answered,
        };
        let may_wait = self.environment.capabilities.parallel_batches > 1 && was_all_run;
        // Clients do not gather if each has its own key, or a key that one client pushes to and another waits for.
        let woken = done.answered.saturating_sub(done.commands);
        let are_shared = done.commands.max(woken) > distinct_keys(&held.locks);
        if may_wait && is_small && are_shared && pause >= GATHER_CLUSTER_MIN {
            self.held.push(held);
        } else {
            held.release(&mut self.locked);
        }
        done.slot
    }

    /// Releases locks that were held long enough.
    fn release_held(&mut self) {
        let now = Instant::now();
        let arrived = self.arrived();
        let is_over = |held: &mut Held| held.until <= now || held.arrived <= arrived;
        for held in self.held.extract_if(.., is_over) {
            held.release(&mut self.locked);
        }
    }

    /// Makes each scheduled wake-up a separate submission. It stays in `pending` or in its batch until the batch is
    /// durable or fails.
    fn take_scheduled(&mut self) {
        for (key, cursor) in self.shared.waiters.take_scheduled(BATCH_COMMANDS_MAX) {
            // A client that waits for several keys must not be overtaken at one of them while a batch runs its command
            // for another.
            let waiters = &self.shared.waiters;
            let other_keys = waiters.other_keys_of_waiters(&key, WAKE_UP_KEYS_MAX);
            let locked = other_keys.iter().chain([&key]);
            let locks = locked.map(|key| KeyLocks::hash_key(key.database, &key.key));
            let locks = KeyLocks::Keys(locks.collect());
            // Its reads are planned when its batch begins.
            let call = Call::job(Work::WakeUp(key, cursor), locks);
            // In front: these clients have waited longer than those that have just come.
            self.put_in_front(Submission {
                calls: vec![call],
                reply_bytes_max: SUBMISSION_REPLY_BYTES_MAX,
                respond: None,
            });
        }
    }

    /// Puts a submission in front of the others. A wake-up that has not begun replaces any other wake-up of its key,
    /// because a busy key has them scheduled faster than they run.
    fn put_in_front(&mut self, mut submission: Submission) {
        if let Some((key, cursor)) = wake_up_of(&mut submission)
            && !self.to_wake.insert(key.clone())
        {
            for other in &mut self.pending {
                if let Some((other_key, other_cursor)) = wake_up_of(other)
                    && other_key == key
                {
                    *cursor = cursor.joined(*other_cursor);
                    // The new submission has the locks of the clients that wait now.
                    *other = submission;
                    self.shared.waiters.end_wake_ups(1);
                    return;
                }
            }
        }
        self.pending.push_front(submission);
    }

    /// Number of commands that have arrived so far, including those of clients that wait without a batch.
    fn arrived(&self) -> u64 {
        self.arrived + self.shared.waiters.parked_quietly()
    }

    fn accept(&mut self, mut submission: Submission) {
        self.arrived += 1;
        if let Some(call) = submission.calls.last_mut()
            && let Some(waiter) = &call.waiter
        {
            self.shared.waiters.expect(waiter);
            // It probably skips these keys.
            let quiet = self.shared.waiters.quiet_keys(waiter);
            call.access.leave_out(&quiet);
        }
        self.pending.push_back(submission);
    }

    /// Moves what has arrived to `pending`. Returns false when no more can come.
    fn take_arrived(&mut self, receiver: &mut mpsc::Receiver<Submission>) -> bool {
        while self.pending.len() < BATCH_COMMANDS_MAX {
            match receiver.try_recv() {
                Ok(submission) => self.accept(submission),
                Err(mpsc::error::TryRecvError::Empty) => break,
                Err(mpsc::error::TryRecvError::Disconnected) => return false,
            }
        }
        true
    }

    fn plan_gathering(&self, done: &BatchResult, waiting: usize) -> Option<Gathering> {
        let commit = done.commit_wait.unwrap_or_default();
        let pause = (commit / GATHER_DIVISOR).min(GATHER_MAX);
        let expected = done.answered + self.pending.len() + waiting;
        let is_worthwhile = !self.environment.capabilities.has_other_writers
            && done.answered > 1
            && commit >= GATHER_DURATION_MIN
            && commit >= done.run_duration();
        is_worthwhile.then(|| Gathering {
            expected,
            until: Instant::now() + pause,
        })
    }

    /// Pauses as planned. Blocks the lane's thread, which has nothing else to do on a store with a single writer. The
    /// runtime's timers are too coarse for such a pause.
    fn gather(&mut self, receiver: &mut mpsc::Receiver<Submission>) {
        let Some(gathering) = self.gathering.take() else {
            return;
        };
        while self.pending.len() < gathering.expected && Instant::now() < gathering.until {
            std::thread::sleep(GATHER_STEP);
            if !self.take_arrived(receiver) {
                return;
            }
        }
    }

    /// Takes the oldest submissions that may run now, up to a batch's limit of commands. If several batches can be in
    /// flight (`free_slots` > 1), the batch gets only its share of the keys in `pending`, but all submissions for
    /// those keys.
    fn form_batch(&mut self, uses_locks: bool, free_slots: usize) -> Vec<Submission> {
        let share = self
            .pending
            .len()
            .div_ceil(free_slots.max(1))
            .max(BATCH_KEYS_SHARE_MIN);
        let mut chosen: Vec<Submission> = Vec::new();
        let mut commands = 0;
        let mut keys_chosen = 0;
        self.passed_over.clear();
        self.chosen.clear();
        let mut at = 0;
        while let Some(submission) = self.pending.get(at) {
            let length = submission.calls.len();
            if commands + length > BATCH_COMMANDS_MAX && !chosen.is_empty() {
                break;
            }
            if uses_locks {
                let is_free = submission.calls.iter().all(|call| {
                    self.locked.is_free(&call.access.locks)
                        && self.passed_over.is_free(&call.access.locks)
                });
                let joins = submission
                    .calls
                    .iter()
                    .any(|call| !self.chosen.is_free(&call.access.locks));
                let has_room = chosen.is_empty() || !is_alone(submission);
                if !is_free || !has_room || (!joins && keys_chosen >= share) {
                    for call in &submission.calls {
                        self.passed_over.add(&call.access.locks);
                    }
                    at += 1;
                    continue;
                }
                keys_chosen += usize::from(!joins);
                for call in &submission.calls {
                    self.chosen.add(&call.access.locks);
                }
            }
            let is_alone = uses_locks && is_alone(submission);
            commands += length;
            if let Some(mut submission) = self.pending.remove(at) {
                if let Some((key, _)) = wake_up_of(&mut submission) {
                    self.to_wake.remove(key);
                }
                chosen.push(submission);
            }
            if is_alone {
                break;
            }
        }
        if uses_locks {
            for call in chosen.iter().flat_map(|submission| &submission.calls) {
                self.locked.add(&call.access.locks);
            }
        } else {
            bring_together(&mut chosen);
        }
        chosen
    }
}

/// Number of distinct locked keys.
fn distinct_keys(locks: &[KeyLocks]) -> usize {
    let keys: HashSet<&u64> = locks.iter().flat_map(KeyLocks::keys).collect();
    keys.len()
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

/// If a submission is a wake-up: the key whose waiters it wakes, and its cursor.
fn wake_up_of(submission: &mut Submission) -> Option<(&ClientKey, &mut Cursor)> {
    match &mut submission.calls.first_mut()?.work {
        Work::WakeUp(key, cursor) => Some((key, cursor)),
        _ => None,
    }
}

fn count_wake_ups(submissions: &mut [Submission]) -> usize {
    let wake_ups = submissions.iter_mut().filter_map(wake_up_of);
    wake_ups.count()
}

fn is_alone(submission: &Submission) -> bool {
    let mut calls = submission.calls.iter();
    calls.any(|call| matches!(call.access.locks, KeyLocks::Alone(_)))
}

#[cfg(test)]
mod tests;
