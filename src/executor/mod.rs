//! The executor: commands from many connections share store transactions.
//!
//! A connection hands over a run of commands of its pipeline and waits for the replies, so each
//! client has at most one submission here, and its commands stay in order. Runs that only read
//! go to a read lane and share a snapshot, and so do on a cluster the reads of a run before its
//! first write. All others go to the write lane, where whatever has arrived while the last batch was
//! under way forms the next one: an idle server commits at once, a busy one makes larger batches.
//! Replies leave after the commit.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use crate::commands::row::HandlerFuture;
use crate::commands::{Access, Handler, Invocation, KeyLocks};
use crate::fatal_panic::Vital;
use crate::limits::{LANE_QUEUE_MAX, WAKE_WATCHES_MAX};
use crate::reply::Reply;
use crate::store::{Store, StoreError};
use crate::types::prefetch::LocationCache;
use crate::types::signals::ClientKey;
use crate::types::{Environment, ReadContext, WriteContext};

mod batch;
mod heat;
mod jobs;
mod lane;
mod lock_set;
mod read_lane;
pub mod reaper;
pub mod relay;
pub mod startup;
pub mod statistics;
pub mod waiters;
mod wake_watches;
pub mod watchers;

#[cfg(test)]
mod panic_tests;

pub use jobs::{JobError, JobFuture};
pub use reaper::{Reaper, ReaperHandle};
pub use statistics::ExecutorStatistics;
pub use waiters::{Cursor, Outcome, Wait, Waiter, Waiters};
pub use watchers::Watchers;

/// Work that the server itself does in a snapshot, see [`Executor::read`].
pub type ReadJob = Box<dyn for<'c> Fn(&'c ReadContext<'c>) -> HandlerFuture<'c> + Send>;

/// Work that the server itself does in a transaction, see [`Executor::transact`].
pub type WriteJob = Box<dyn for<'c> Fn(&'c WriteContext<'c>) -> HandlerFuture<'c> + Send>;

/// What is to be run.
pub enum Work {
    /// A command.
    Command(Invocation),
    /// EXEC: several commands in one store transaction, nothing of others between them. The reply
    /// is an array of theirs, or a null array where a watched key has changed.
    Transaction(Box<Bundle>),
    /// Runs the commands of clients that wait for a key, from a cursor on.
    WakeUp(ClientKey, Cursor),
    /// Work of the server itself that reads.
    ReadJob {
        /// The database that it sees.
        database: u32,
        /// Its code, which may run more than once.
        run: ReadJob,
    },
    /// Work of the server itself that writes.
    WriteJob {
        /// The database that it sees.
        database: u32,
        /// Its code, which may run more than once.
        run: WriteJob,
    },
}

impl Work {
    /// Whether it writes nothing.
    fn only_reads(&self) -> bool {
        match self {
            Work::Command(invocation) => only_reads(invocation),
            Work::ReadJob { .. } => true,
            Work::Transaction(_) | Work::WakeUp(..) | Work::WriteJob { .. } => false,
        }
    }
}

/// Whether a command writes nothing.
fn only_reads(invocation: &Invocation) -> bool {
    !matches!(invocation.row.handler, Handler::Write(_))
}

/// What EXEC carries out.
pub struct Bundle {
    /// The commands.
    pub invocations: Vec<Invocation>,
    /// The keys that must not have changed.
    pub watched: Vec<WatchedKey>,
    /// Set when this server has seen one of them change.
    pub touched: watchers::Touched,
}

impl Bundle {
    fn is_touched(&self) -> bool {
        self.touched.load(Ordering::SeqCst)
    }
}

/// A key as WATCH found it.
#[derive(Debug, Clone)]
pub struct WatchedKey {
    /// The key.
    pub key: ClientKey,
    /// What [`ReadContext::fingerprint`] said.
    pub fingerprint: Option<Bytes>,
}

/// What the lanes and the server share about clients that wait or watch.
#[derive(Default)]
pub struct Shared {
    /// Clients that wait for something in a key.
    pub waiters: Arc<Waiters>,
    /// Clients that watch keys.
    pub watchers: Arc<Watchers>,
    /// Messages from and to other servers.
    pub relay: relay::RelayState,
    /// Queues that several servers pop from.
    hot_keys: heat::HotKeys,
    /// Where the data of keys lies.
    locations: LocationCache,
    /// Watches that are open in the store.
    open_watches: AtomicUsize,
}

/// One piece of work, ready to be run.
pub struct Call {
    /// What is to be run.
    pub work: Work,
    /// What it will do to its keys, where the executor asked for that ([`Executor::plans`]).
    pub access: Access,
    /// Where the command blocks and finds nothing, its waiter. Such a command must be the last of
    /// its submission.
    pub waiter: Option<Arc<Waiter>>,
}

impl Call {
    /// A command, of which the executor knows what it will do where it `plans`.
    pub fn command(invocation: Invocation, plans: bool) -> Self {
        let access = if plans {
            Access::of(invocation.row, invocation.database, &invocation.arguments)
        } else {
            Access::UNKNOWN
        };
        Self {
            work: Work::Command(invocation),
            access,
            waiter: None,
        }
    }

    /// EXEC, of which the executor knows what it will do where it `plans`.
    pub fn transaction(bundle: Bundle, plans: bool) -> Self {
        let access = if plans {
            Access::of_all(&bundle.invocations)
        } else {
            Access::UNKNOWN
        };
        Self {
            work: Work::Transaction(Box::new(bundle)),
            access,
            waiter: None,
        }
    }

    /// The arguments of a command.
    pub fn arguments(&self) -> Option<&[Bytes]> {
        match &self.work {
            Work::Command(invocation) => Some(&invocation.arguments),
            _ => None,
        }
    }

    /// Work of the server itself that reads, as it sees `database`.
    pub fn read_job(
        database: u32,
        run: impl for<'c> Fn(&'c ReadContext<'c>) -> HandlerFuture<'c> + Send + 'static,
    ) -> Self {
        let run = Box::new(run);
        Self::job(Work::ReadJob { database, run }, KeyLocks::Nothing)
    }

    /// Work of the server itself that writes, as it sees `database`.
    pub fn write_job(
        database: u32,
        locks: KeyLocks,
        run: impl for<'c> Fn(&'c WriteContext<'c>) -> HandlerFuture<'c> + Send + 'static,
    ) -> Self {
        let run = Box::new(run);
        Self::job(Work::WriteJob { database, run }, locks)
    }

    fn job(work: Work, locks: KeyLocks) -> Self {
        Self {
            work,
            access: Access::locking(locks),
            waiter: None,
        }
    }
}

/// What became of a submission.
pub struct SubmissionResult {
    /// Replies of the first commands, in order; at least one unless there were none.
    pub replies: Vec<Reply>,
    /// The commands that those replies answer. Where it is shorter, the replies say why the store
    /// failed.
    pub done: Vec<Call>,
    /// Why the store failed, where it did: what the replies say.
    pub failure: Option<StoreError>,
    /// Commands that were not run yet, because replies or the batch had grown too large or because
    /// they belong into another transaction: to be submitted again when the replies are on their way
    /// to the client.
    pub rest: Vec<Call>,
    /// The last command of `done` has no reply yet: it waits, and its outcome will arrive where
    /// [`Waiter::new`] said.
    pub is_parked: bool,
}

/// A run of commands of one connection.
struct Submission {
    calls: Vec<Call>,
    /// `None` of a wake-up, which is the lane's own.
    respond: Option<oneshot::Sender<SubmissionResult>>,
}

/// Settings of the executor.
#[derive(Debug, Clone, Copy)]
pub struct ExecutorOptions {
    /// Threads that serve runs of commands which only read.
    pub read_lanes: usize,
    /// Keys that are watched at once for clients that wait, where other servers write too.
    /// Further ones are polled.
    pub wake_watches_max: usize,
}

impl Default for ExecutorOptions {
    fn default() -> Self {
        Self {
            read_lanes: 1,
            wake_watches_max: WAKE_WATCHES_MAX,
        }
    }
}

/// Runs commands on a store.
pub struct Executor {
    write_lane: mpsc::Sender<Submission>,
    read_lanes: Vec<mpsc::Sender<Submission>>,
    next_read_lane: AtomicUsize,
    environment: Arc<Environment>,
    statistics: Arc<ExecutorStatistics>,
    shared: Arc<Shared>,
    /// Ends the wake watches when it is dropped.
    wake_watches: Option<oneshot::Sender<()>>,
    /// Ends the relay when it is dropped.
    relay: Option<oneshot::Sender<()>>,
    threads: std::sync::Mutex<Vec<std::thread::JoinHandle<()>>>,
}

impl Executor {
    /// Starts the lanes' threads.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(
        store: Arc<dyn Store>,
        environment: Arc<Environment>,
        options: ExecutorOptions,
    ) -> std::io::Result<Self> {
        let statistics = Arc::new(ExecutorStatistics::default());
        let has_wake_watches = !environment.capabilities.single_writer;
        let shared = Arc::new(Shared {
            waiters: Arc::new(Waiters::new(has_wake_watches)),
            ..Shared::default()
        });
        let watched_keys = Arc::clone(&shared.watchers);
        // Set already where a test starts two executors with one environment.
        let _ = environment.watched_keys.set(watched_keys);
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
            );
            let name = format!("quoin-read-{number}");
            threads.push(spawn_lane(&name, move || lane.run(receiver))?);
            read_lanes.push(sender);
        }
        let mut wake_watches = None;
        let mut relay = None;
        if has_wake_watches {
            let (sender, stop) = oneshot::channel();
            wake_watches = Some(sender);
            let watching = wake_watches::WakeWatches::new(
                Arc::clone(&store),
                Arc::clone(&environment),
                Arc::clone(&shared),
                options.wake_watches_max,
            );
            threads.push(spawn_lane("quoin-watches", move || watching.run(stop))?);
            let (sender, stop) = oneshot::channel();
            relay = Some(sender);
            let relaying = relay::Relay::new(store, Arc::clone(&environment), Arc::clone(&shared));
            threads.push(spawn_lane("quoin-relay", move || relaying.run(stop))?);
        }
        Ok(Self {
            write_lane,
            read_lanes,
            next_read_lane: AtomicUsize::new(0),
            environment,
            statistics,
            shared,
            wake_watches,
            relay,
            threads: std::sync::Mutex::new(threads),
        })
    }

    /// Whether [`Call::access`] is looked at: not on a store with a single writer.
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

    /// To be called by whoever has just subscribed: returns when messages that other servers
    /// publish from now on will be heard.
    pub async fn listen(&self) {
        if !self.environment.capabilities.single_writer {
            self.shared.relay.listen().await;
        }
    }

    /// How many rows of the store are watched for clients that wait.
    pub fn open_watches(&self) -> usize {
        self.shared.open_watches.load(Ordering::SeqCst)
    }

    /// Counters for INFO.
    pub fn statistics(&self) -> &ExecutorStatistics {
        &self.statistics
    }

    /// Runs commands in order and answers when all that were run are durable. Waits in line
    /// where too many do already.
    ///
    /// Dropping the future does not undo what was submitted.
    ///
    /// # Errors
    /// `Unavailable` where the executor has stopped.
    pub async fn submit(&self, mut calls: Vec<Call>) -> Result<SubmissionResult, StoreError> {
        // One that may wait is parked by a batch.
        let is_read = |call: &&Call| call.work.only_reads() && call.waiter.is_none();
        let reads = calls.iter().take_while(is_read).count();
        if reads == calls.len() {
            return self.submit_to(self.pick_read_lane(), calls).await;
        }
        // Where others write meanwhile, a read in a batch has to conflict with them.
        if reads == 0 || self.environment.capabilities.single_writer {
            return self.submit_to(&self.write_lane, calls).await;
        }
        let from_first_write = calls.split_off(reads);
        let mut finished = self.submit_to(self.pick_read_lane(), calls).await?;
        finished.rest.extend(from_first_write);
        Ok(finished)
    }

    async fn submit_to(
        &self,
        lane: &mpsc::Sender<Submission>,
        calls: Vec<Call>,
    ) -> Result<SubmissionResult, StoreError> {
        let (respond, response) = oneshot::channel();
        let submission = Submission {
            calls,
            respond: Some(respond),
        };
        lane.send(submission).await.map_err(|_| stopped())?;
        response.await.map_err(|_| stopped())
    }

    fn pick_read_lane(&self) -> &mpsc::Sender<Submission> {
        let turn = self.next_read_lane.fetch_add(1, Ordering::Relaxed);
        self.read_lanes
            .get(turn % self.read_lanes.len().max(1))
            .unwrap_or(&self.write_lane)
    }

    /// Stops the lanes when everything submitted has been answered. Blocks.
    pub fn stop(self) {
        let Self {
            write_lane,
            read_lanes,
            wake_watches,
            relay,
            threads,
            ..
        } = self;
        drop(wake_watches);
        drop(relay);
        drop(write_lane);
        drop(read_lanes);
        let threads = threads
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a lane of the executor had panicked");
            }
        }
    }
}

fn stopped() -> StoreError {
    StoreError::Unavailable(Arc::from(Box::<dyn std::error::Error + Send + Sync>::from(
        "the server is shutting down",
    )))
}

/// Starts a thread with a single-threaded runtime: store transactions stay on it, so neither
/// they nor the commands' futures need locks. A panic in there ends the process.
fn spawn_lane<L, F>(name: &str, lane: L) -> std::io::Result<std::thread::JoinHandle<()>>
where
    L: FnOnce() -> F + Send + 'static,
    F: Future<Output = ()>,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            // Clients wait for what it does.
            let _vital = Vital::enter("a thread of the executor");
            runtime.block_on(lane());
        })
}
