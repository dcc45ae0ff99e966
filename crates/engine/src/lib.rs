//! The executor: commands from many connections share store transactions.
//!
//! A connection submits several consecutive commands of its pipeline and waits for the replies. So each client has at
//! most one submission here, and its commands stay in order. Submissions that only read go to a read lane and share a
//! snapshot. On a cluster, the reads before the first write of a submission do so too. All others go to the write
//! lane. What arrives there during one batch forms the next, so an idle server commits at once and a busy one makes
//! larger batches. On a store with a single writer, most commands run on the connections' thread instead
//! ([`rounds`]). Replies leave after the commit.
//!
//! This crate knows the command table and the transaction trait. It knows neither connections nor the kind of store.
//! The feature `testing` has a bench on which tests run commands.

#[cfg(feature = "testing")]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]
pub mod testing;
use std::future::Future;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use quoin_base::fatal_panic::Vital;
use quoin_base::limits::{LANE_QUEUE_MAX, SUBMISSION_REPLY_BYTES_MAX};
use quoin_base::threads;
use quoin_data::cluster::change_marks::{Wanted, set_mark};
use quoin_data::command::access::KeyLocks;
use quoin_data::error::CommandError;
use quoin_data::unit::context::{Environment, WriteContext};
use quoin_data::unit::signals::WatchedKeys;
use quoin_store::{Store, StoreError};

pub mod activity;
mod batch;
mod call;
mod forwarding;
mod in_flight;
mod jobs;
mod lane;
mod lanes;
mod lock_set;
mod owners;
mod read_lane;
pub mod reaper;
pub mod relay;
mod relay_state;
pub mod roster;
mod rounds;
mod rounds_state;
mod shared;
pub mod statistics;
mod timed;
pub mod waiters;
mod warming;
pub mod watchers;

#[cfg(test)]
mod panic_tests;

pub use activity::{Activity, QueueActivity};
pub use call::{Bundle, Call, ReadJob, SubmissionResult, WatchedKey, Work, WriteJob};
pub use forwarding::may_forward;
use forwarding::{Forwarding, note_wait};
pub use in_flight::Carried;
pub use jobs::{JobError, JobFuture};
use lanes::Lanes;
pub use owners::{Forwarded, ForwardedFuture, Owners};
pub use reaper::{Reaper, ReaperHandle, Standstill};
pub use shared::Shared;
pub use statistics::ExecutorStatistics;
pub use waiters::{Cursor, Outcome, Wait, Waiter, Waiters};
pub use watchers::Watchers;

/// Settings of the executor.
#[derive(Clone)]
pub struct ExecutorOptions {
    /// Number of threads that serve submissions which only read.
    pub read_lanes: usize,
    /// The other servers on the store, and which keys they own.
    pub owners: Option<Arc<dyn Owners>>,
}

impl Default for ExecutorOptions {
    fn default() -> Self {
        Self {
            read_lanes: 1,
            owners: None,
        }
    }
}

/// Runs commands on a store.
pub struct Executor {
    lanes: Arc<Lanes>,
    round: Arc<rounds::Round>,
    environment: Arc<Environment>,
    statistics: Arc<ExecutorStatistics>,
    shared: Arc<Shared>,
    /// Stops the relay when it is dropped.
    relay: Option<oneshot::Sender<()>>,
    threads: std::sync::Mutex<Vec<std::thread::JoinHandle<()>>>,
}

impl Executor {
    /// Starts the lanes' threads.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn start(
        store: Arc<dyn Store>,
        mut environment: Environment,
        options: ExecutorOptions,
    ) -> std::io::Result<Self> {
        let statistics = Arc::new(ExecutorStatistics::default());
        let has_other_writers = environment.capabilities.has_other_writers;
        let shared = Arc::new(Shared {
            waiters: Arc::new(Waiters::new(has_other_writers)),
            owners: options.owners,
            ..Shared::default()
        });
        environment.watched_keys = Some(Arc::clone(&shared.watchers) as Arc<dyn WatchedKeys>);
        let environment = Arc::new(environment);
        let mut threads = Vec::new();
        let (write_lane, receiver) = mpsc::channel(LANE_QUEUE_MAX);
        let lane = lane::WriteLane::new(
            Arc::clone(&store),
            Arc::clone(&environment),
            Arc::clone(&statistics),
            Arc::clone(&shared),
        );
        threads.push(spawn_lane("quoin-write", move || lane.run(receiver))?);
        let mut read_lanes = Vec::new();
        for number in 0..options.read_lanes.max(1) {
            let (sender, receiver) = mpsc::channel(LANE_QUEUE_MAX);
            let lane = read_lane::ReadLane::new(
                Arc::clone(&store),
                Arc::clone(&environment),
                Arc::clone(&statistics),
                Arc::clone(&shared),
            );
            let name = format!("quoin-read-{number}");
            threads.push(spawn_lane(&name, move || lane.run(receiver))?);
            read_lanes.push(sender);
        }
        let mut relay = None;
        if has_other_writers {
            let (sender, stop) = oneshot::channel();
            relay = Some(sender);
            let (store, environment) = (Arc::clone(&store), Arc::clone(&environment));
            let relaying = relay::Relay::new(store, environment, Arc::clone(&shared));
            threads.push(spawn_lane("quoin-relay", move || relaying.run(stop))?);
        }
        let lanes = Arc::new(Lanes::new(write_lane, read_lanes));
        let round = rounds::Round::new(
            Arc::clone(&store),
            Arc::clone(&environment),
            Arc::clone(&statistics),
            Arc::clone(&shared),
            Arc::clone(&lanes),
        );
        Ok(Self {
            lanes,
            round: Arc::new(round),
            environment,
            statistics,
            shared,
            relay,
            threads: std::sync::Mutex::new(threads),
        })
    }

    /// Whether [`Call::access`] is used. A store with a single writer does not need it.
    pub fn plans(&self) -> bool {
        self.environment.capabilities.parallel_batches > 1
    }

    /// What commands work with.
    pub fn environment(&self) -> &Arc<Environment> {
        &self.environment
    }

    /// Clients that wait for something in a key.
    pub fn waiters(&self) -> &Arc<Waiters> {
        &self.shared.waiters
    }

    /// Clients that watch keys.
    pub fn watchers(&self) -> &Watchers {
        &self.shared.watchers
    }

    /// Returns when a client that has subscribed will receive all messages that other servers publish from now on.
    pub async fn begin_subscribing(&self) {
        if self.environment.capabilities.has_other_writers {
            // If the store does not answer, messages may be missed. The log reports that.
            self.shared.relay.follow().await;
        }
    }

    /// Returns when a client that has begun to track keys will learn of all changes that other servers commit from
    /// now on.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn begin_tracking(&self) -> Result<(), JobError> {
        if !self.environment.capabilities.has_other_writers {
            return Ok(());
        }
        if !self.shared.relay.follow().await {
            return Err(CommandError::text(
                "ERR the store does not answer: changes of keys cannot be tracked at present",
            )
            .into());
        }
        let mut mark = self.shared.relay.mark.lock().await;
        if *mark < Wanted::All {
            let set = |context: &WriteContext<'_>| {
                let instance = context.environment.ids.instance();
                set_mark(context.transaction, context.layout(), instance, Wanted::All);
            };
            self.transact(0, KeyLocks::Nothing, move |context| {
                set(context);
                Box::pin(async { Ok(()) })
            })
            .await?;
            *mark = Wanted::All;
        }
        Ok(())
    }

    /// The activity of queues.
    pub fn activity(&self) -> &Activity {
        &self.shared.activity
    }

    /// Counters for INFO.
    pub fn statistics(&self) -> &ExecutorStatistics {
        &self.statistics
    }

    /// [`Self::submit_within`] the maximum of reply bytes.
    ///
    /// # Errors
    /// `Unavailable` if the executor has stopped.
    pub async fn submit(&self, calls: Vec<Call>) -> Result<SubmissionResult, StoreError> {
        self.submit_within(calls, SUBMISSION_REPLY_BYTES_MAX).await
    }

    /// Runs commands in order, on this server or on the one that owns their keys, and returns when all commands that ran
    /// are durable. Waits if the lane's queue is full. Once the replies have `reply_bytes_max` bytes, the remaining
    /// commands are not run ([`SubmissionResult::rest`]).
    ///
    /// Dropping the future does not undo what was submitted.
    ///
    /// # Errors
    /// `Unavailable` if the executor has stopped.
    pub async fn submit_within(
        &self,
        calls: Vec<Call>,
        reply_bytes_max: usize,
    ) -> Result<SubmissionResult, StoreError> {
        if let [call] = calls.as_slice()
            && let Some(waiter) = &call.waiter
            && self.shared.waiters.park_quietly(waiter)
        {
            note_wait(&self.shared, waiter);
            return Ok(SubmissionResult {
                replies: Vec::new(),
                done: calls,
                failure: None,
                rest: Vec::new(),
                is_parked: true,
                carried: Carried::default(),
            });
        }
        let forwarding = Forwarding {
            shared: &self.shared,
            statistics: &self.statistics,
        };
        match forwarding.forward(calls, reply_bytes_max).await {
            Ok(finished) => Ok(finished),
            Err(calls) => self.submit_here(calls, reply_bytes_max).await,
        }
    }

    /// Like [`Self::submit_within`], on this server.
    ///
    /// # Errors
    /// `Unavailable` if the executor has stopped.
    pub async fn submit_here(
        &self,
        mut calls: Vec<Call>,
        reply_bytes_max: usize,
    ) -> Result<SubmissionResult, StoreError> {
        let capabilities = &self.environment.capabilities;
        // A round cannot wait to find out whether its commit was applied.
        if !capabilities.has_other_writers && !capabilities.has_unknown_results {
            match self.round.run(calls, reply_bytes_max).await {
                Ok(result) => return result,
                Err(not_run) => calls = not_run,
            }
        }
        // A batch parks a read that may wait.
        let is_read = |call: &&Call| call.work.only_reads() && call.waiter.is_none();
        let reads = calls.iter().take_while(is_read).count();
        if reads == calls.len() {
            let lane = self.lanes.next_read();
            return lane.submit(calls, reply_bytes_max).await;
        }
        // If other servers can write meanwhile, a read in a batch has to conflict with their writes.
        if reads == 0 || !capabilities.has_other_writers {
            return self.lanes.write.submit(calls, reply_bytes_max).await;
        }
        let from_first_write = calls.split_off(reads);
        let lane = self.lanes.next_read();
        let mut finished = lane.submit(calls, reply_bytes_max).await?;
        finished.rest.extend(from_first_write);
        Ok(finished)
    }

    /// Stops the lanes when everything submitted has been answered. Blocks.
    pub fn stop(self) {
        let Self {
            lanes,
            round,
            relay,
            threads,
            ..
        } = self;
        drop(relay);
        drop(lanes);
        drop(round);
        let threads = threads
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a lane of the executor panicked");
            }
        }
    }
}

/// Starts a thread with a single-threaded runtime. Store transactions stay on it, so neither they nor the commands'
/// futures need locks. A panic in the thread ends the process.
fn spawn_lane<L, F>(name: &str, lane: L) -> std::io::Result<std::thread::JoinHandle<()>>
where
    L: FnOnce() -> F + Send + 'static,
    F: Future<Output = ()>,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    threads::spawn(name, move || {
        // Clients wait for this thread.
        let _vital = Vital::enter("a thread of the executor");
        runtime.block_on(lane());
    })
}
