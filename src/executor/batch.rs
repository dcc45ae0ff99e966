//! One batch: many clients' commands in one store transaction.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::commands::KeyLocks;
use crate::error::CommandError;
use crate::reply::Reply;
use crate::store::{Store, StoreError};
use crate::types::Environment;
use crate::types::key::{ClientKey, OpenKey};
use crate::types::signals::{Ready, Signals};

use super::call::Submission;
use super::shared::Shared;
use super::statistics::ExecutorStatistics;
use super::waiters::{Cursor, Waiter};

mod attempts;
mod fence;
mod pops;
mod running;
mod staging;
mod waking;

use pops::{Pops, Request};

/// First pause before a batch is tried again; doubles up to [`BACKOFF_MAX_MS`].
const BACKOFF_FIRST_MS: u64 = 1;
const BACKOFF_MAX_MS: u64 = 100;

/// Clients that wait whose commands one batch runs. Further ones are woken by batches of their own.
pub(super) const WAITERS_WOKEN_PER_BATCH_MAX: usize = 1024;
/// Clients that wait for one key whose commands a batch runs in vain. The next goes on after them.
pub(super) const WAITERS_TRIED_PER_KEY_MAX: usize = 64;

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
pub(super) struct BatchResult {
    pub(super) slot: Slot,
    pub(super) locks: Vec<KeyLocks>,
    /// Submissions of which nothing was run, for the next batch.
    pub(super) not_run: Vec<Submission>,
    /// How many clients were answered, those that had waited included.
    pub(super) answered: usize,
    /// How many of their commands.
    pub(super) commands: usize,
    /// Other servers were asked to pop for it.
    pub(super) is_staged: bool,
    /// It has popped for other servers.
    pub(super) has_fulfilled: bool,
    /// How long the batch took.
    pub(super) duration: Duration,
}

pub(super) struct Batch<'s> {
    store: &'s dyn Store,
    environment: &'s Environment,
    statistics: &'s ExecutorStatistics,
    shared: &'s Arc<Shared>,
    slot: Slot,
    submissions: Vec<Submission>,
    /// Replies of each submission's first commands, from the latest attempt.
    replies: Vec<Vec<Reply>>,
    /// Commands that get their error without being run: the store refused a transaction for what
    /// they do in it.
    refused: HashMap<CommandId, CommandError>,
    /// Commands that this batch may run; the rest waits for the next.
    commands_max: usize,
    /// What was too slow for a transaction though nothing else was run in it.
    slow: Option<CommandId>,
    /// What others are to hear of, from the latest attempt.
    signals: Signals,
    /// Blocking commands of the batch that found nothing, by submission.
    parked: HashMap<usize, Arc<Waiter>>,
    /// Clients that waited and got something, with their replies.
    woken: Vec<(Arc<Waiter>, Reply)>,
    /// Clients that wait, and whose commands the latest attempt was running when it ended.
    in_service: Vec<Arc<Waiter>>,
    /// Most waiters that the batch may wake.
    woken_max: usize,
    /// How often it has conflicted.
    conflicts: u32,
    /// The latest attempt has run a read after a write of its client.
    has_read_after_write: bool,
    /// Submissions end where a read follows a write.
    ends_before_reads: bool,
    /// Keys that may have something for more waiters than this batch could wake, and where the
    /// next batch goes on.
    left_waiting: HashMap<ClientKey, Cursor>,
    /// What became ready in the latest attempt, where others may have begun to wait meanwhile.
    made_ready: Vec<Ready>,
    /// The place of whoever was parked last when the latest attempt began.
    last_order: u64,
    /// Why the batch was run again last: what its clients are told when it is given up.
    last_error: Option<StoreError>,
    /// What can be staged of the batch's pops.
    pops: Vec<Pops>,
    /// Requests that were made for them.
    requests: Vec<Request>,
    /// Requests of other servers that the latest attempt has fulfilled.
    fulfilled: u64,
    /// Whether it looks for any.
    may_fulfil: bool,
    /// Queues whose claims go back before the commands are run, as an attempt has told.
    recalls: Vec<OpenKey>,
    /// The command that has met the last of them.
    recalls_for: Option<CommandId>,
}

/// A command that the batch runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum CommandId {
    /// Of one of its submissions.
    Submitted { submission: usize, call: usize },
    /// Of a client that waited, by its place.
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

/// How one attempt ended.
enum AttemptEnd {
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
            left_waiting: HashMap::new(),
            made_ready: Vec::new(),
            last_order: 0,
            last_error: None,
            pops: Vec::new(),
            requests: Vec::new(),
            fulfilled: 0,
            may_fulfil: true,
            recalls: Vec::new(),
            recalls_for: None,
            submissions,
        }
    }
}

#[cfg(test)]
mod tests;
