//! One batch: many clients' commands in one store transaction.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use quoin_base::stopwatch::BusyLimit;
use quoin_data::cluster::change_marks::Wanted;
use quoin_data::cluster::relay::LogReader;
use quoin_data::command::access::KeyLocks;
use quoin_data::error::CommandError;
use quoin_data::keyspace::key::ClientKey;
use quoin_data::unit::context::Environment;
use quoin_data::unit::read_window::ReadWindow;
use quoin_data::unit::signals::{Ready, Signals};
use quoin_resp::reply::Reply;
use quoin_store::{Store, StoreError};

use super::call::Submission;
use super::shared::Shared;
use super::statistics::ExecutorStatistics;
use super::timed::Timed;
use super::waiters::{Cursor, Waiter};

mod attempts;
mod checks;
mod coalescing;
mod fence;
mod running;
mod unread;
mod waking;

pub(super) use coalescing::bring_together;
use unread::Unread;

/// First pause before a batch runs again. It doubles up to [`BACKOFF_MAX_MS`].
const BACKOFF_FIRST_MS: u64 = 1;
const BACKOFF_MAX_MS: u64 = 100;

/// How many clients one batch may wake. Later batches wake the rest.
pub(super) const WAITERS_WOKEN_PER_BATCH_MAX: usize = 1024;
/// How many waiters of one key a batch tries in vain. The next batch continues after them.
pub(super) const WAITERS_TRIED_PER_KEY_MAX: usize = 64;

/// One of the transactions that may be in flight at once. Its number names a row. A batch whose commit result is
/// unknown reads that row to learn whether it was applied.
pub(super) struct Slot {
    number: u64,
    /// Attempts made in this slot. The value that an attempt writes to the row.
    batches: u64,
}

impl Slot {
    pub(super) fn new(number: u64) -> Self {
        Self { number, batches: 0 }
    }
}

/// What a finished batch hands back to its lane or round.
pub(super) struct BatchResult {
    pub(super) slot: Slot,
    pub(super) locks: Vec<KeyLocks>,
    /// Submissions that did not run any command. The next batch takes them.
    pub(super) not_run: Vec<Submission>,
    /// Number of clients answered, including woken clients.
    pub(super) answered: usize,
    /// Number of commands answered, excluding those of woken clients.
    pub(super) commands: usize,
    /// How long the batch took.
    pub(super) duration: Duration,
    /// How long its commit waited, if it had anything to commit.
    pub(super) commit_wait: Option<Duration>,
    /// A script that was not run because it takes too long.
    pub(super) late: Option<Timed>,
}

impl BatchResult {
    /// How long it ran its commands and prepared its commit.
    pub(super) fn run_duration(&self) -> Duration {
        self.duration
            .saturating_sub(self.commit_wait.unwrap_or_default())
    }
}

pub(super) struct Batch<'s> {
    store: &'s dyn Store,
    environment: &'s Arc<Environment>,
    statistics: &'s ExecutorStatistics,
    shared: &'s Arc<Shared>,
    slot: Slot,
    submissions: Rc<Vec<Submission>>,
    /// Replies of the latest attempt. Each submission has those of its first commands.
    replies: Vec<Vec<Reply>>,
    /// Commands that get this error instead of running, because the store refused a transaction with them.
    refused: HashMap<CommandId, CommandError>,
    /// Number of commands that this batch may run. The rest wait for the next batch.
    commands_max: usize,
    /// The command that was too slow for a transaction although it ran alone.
    slow: Option<CommandId>,
    /// What to report to others after the commit of the latest attempt.
    signals: Signals,
    /// Blocking commands of the batch that found nothing, by submission.
    parked: HashMap<usize, Arc<Waiter>>,
    /// Woken clients and their replies. They are in service until the commit.
    woken: Vec<(Arc<Waiter>, Reply)>,
    /// Waiters whose commands were running when the latest attempt ended.
    in_service: Vec<Arc<Waiter>>,
    /// Number of waiters that the batch may wake. It falls if they make the batch conflict or grow too large. Later
    /// batches wake the rest.
    woken_max: usize,
    /// Number of conflicts so far.
    conflicts: u32,
    /// Whether the latest attempt ran a read after a write of the same client.
    has_read_after_write: bool,
    /// Whether each submission ends before a read that follows a write. The rest is submitted again.
    ends_before_reads: bool,
    /// Keys with more waiters than this batch could wake, and where a later batch continues.
    deferred: HashMap<ClientKey, Cursor>,
    /// What became ready in the latest attempt, if other batches may run concurrently. It is read after the commit,
    /// for clients that began to wait in those batches.
    made_ready: Vec<Ready>,
    /// Keys that the latest attempt changed, if clients wait for them now or did recently. The value says whether the
    /// key is empty after the attempt.
    changes: HashMap<ClientKey, bool>,
    /// Awaited keys that the latest attempt found empty.
    found_empty: Vec<ClientKey>,
    /// The latest position of a waiter when the latest attempt began.
    last_position: u64,
    /// The number of fills when the latest attempt began ([`Waiters::settle`](super::waiters::Waiters)).
    fills: u64,
    /// Why the batch last ran again. If the batch is given up, its clients get this error.
    last_error: Option<StoreError>,
    /// How long the commit waited, if there was anything to commit.
    commit_wait: Option<Duration>,
    /// Records which keys change while the latest attempt reads, if clients track keys.
    read_window: Option<ReadWindow>,
    /// Which changes other servers want reported.
    wanted: Wanted,
    /// How far this server had read the log when the latest attempt began, if the batch has clients that may wait.
    log_reader: Option<LogReader>,
    /// What other servers have reported beyond that.
    unread: Unread,
    /// How long a script may take. A script that takes longer is not run.
    script_limit: Option<BusyLimit>,
    /// The script that exceeded the limit in the latest attempt. The attempt then runs no further scripts.
    late: Option<Timed>,
}

/// A command that the batch runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum CommandId {
    /// A command of one of its submissions.
    Submitted { submission: usize, call: usize },
    /// The command of the waiter at this position. `u64::MAX` means no particular waiter.
    Waiter(u64),
}

impl CommandId {
    const FIRST: CommandId = CommandId::Submitted {
        submission: 0,
        call: 0,
    };
}

impl From<(usize, usize)> for CommandId {
    fn from((submission, call): (usize, usize)) -> Self {
        Self::Submitted { submission, call }
    }
}

/// What is left of the latest commands that the batch coalesced.
#[derive(Default)]
pub(super) struct Coalesced {
    /// Replies of the next commands, which have already run.
    replies: VecDeque<Reply>,
    /// How many of the next commands must run one by one because they failed as one.
    alone: usize,
}

/// How one attempt ended.
enum AttemptEnd {
    /// Everything in `replies` is durable.
    Committed,
    /// Nothing was applied. Run the batch again: at once if a change to the batch has removed the cause, otherwise
    /// after a pause.
    Again { after_pause: bool },
    /// The store failed. Every command of the batch gets the error.
    Failed(StoreError),
}

impl<'s> Batch<'s> {
    pub(super) fn new(
        store: &'s dyn Store,
        environment: &'s Arc<Environment>,
        statistics: &'s ExecutorStatistics,
        shared: &'s Arc<Shared>,
        slot: Slot,
        submissions: Vec<Submission>,
    ) -> Self {
        Self {
            store,
            environment,
            statistics,
            shared,
            slot,
            replies: Vec::new(),
            refused: HashMap::new(),
            commands_max: submissions.iter().map(|one| one.calls.len()).sum(),
            slow: None,
            signals: Signals::default(),
            parked: HashMap::new(),
            woken: Vec::new(),
            in_service: Vec::new(),
            woken_max: WAITERS_WOKEN_PER_BATCH_MAX,
            conflicts: 0,
            has_read_after_write: false,
            ends_before_reads: false,
            deferred: HashMap::new(),
            made_ready: Vec::new(),
            changes: HashMap::new(),
            found_empty: Vec::new(),
            last_position: 0,
            fills: 0,
            last_error: None,
            commit_wait: None,
            read_window: None,
            wanted: Wanted::Nothing,
            log_reader: None,
            unread: Unread::default(),
            script_limit: None,
            late: None,
            submissions: Rc::new(submissions),
        }
    }
}

#[cfg(test)]
mod tests;
