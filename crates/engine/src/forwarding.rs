//! Submissions that another server should run, because it owns their keys
//! (docs/understand/decisions/053-forwarding.md).
//!
//! Who owns a key is only a hint. A command has the same effect on every server; run by the owner, it does not
//! conflict with the other commands on its key. Clients that wait always wait at their own server, which forwards
//! what they would pop once there may be something ([`waking`]).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::Executor;
use super::call::{Call, SubmissionResult, Work};
use super::statistics::ExecutorStatistics;
use super::waiters::{Waiter, Waiters};
use quoin_base::limits::{FORWARDED_BYTES_MAX, SUBMISSION_REPLY_BYTES_MAX};
use quoin_data::command::call::Invocation;
use quoin_data::command::flags::Flags;
use quoin_data::command::row::Handler;
use quoin_data::error::CommandError;
use quoin_data::keyspace::key::ClientKey;
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

#[cfg(test)]
mod tests;
mod waking;

use waking::Joined;
pub(super) use waking::WakeUpElsewhere;

/// What an argument takes beside its bytes, at most.
const ARGUMENT_BYTES: usize = 8;

/// The other servers, and which keys they own.
pub trait Owners: Send + Sync {
    /// Whether there are others that take commands.
    fn are_any(&self) -> bool;

    /// The other server that owns all of these keys and takes commands now. `None` if this server owns one of them, or
    /// if they have several owners.
    fn owner_of(&self, keys: &mut dyn Iterator<Item = &Bytes>) -> Option<u64>;

    /// Has an owner run calls as one submission, which ends once its replies have `reply_bytes_max` bytes. Takes what
    /// it needs from the calls at once.
    fn forward(&self, owner: u64, calls: &[Call], reply_bytes_max: usize) -> ForwardedFuture;
}

/// The future of [`Owners::forward`].
pub type ForwardedFuture = Pin<Box<dyn Future<Output = Forwarded> + Send>>;

/// What became of forwarded calls.
#[derive(Debug)]
pub enum Forwarded {
    /// None of them ran.
    NotRun,
    /// The first of them ran, at least one. They are durable.
    Ran(Vec<Reply>),
    /// The owner was lost after it may have begun to run them.
    Unknown,
}

/// Whether another server may run these calls.
pub fn may_forward(calls: &[Call]) -> bool {
    let invocations = || calls.iter().map(Call::invocations);
    let is_unwatched = |call: &Call| match &call.work {
        Work::Transaction(bundle) => bundle.watched.is_empty(),
        Work::Command(_) => true,
        Work::WakeUp(..) | Work::ReadJob { .. } | Work::WriteJob { .. } => false,
    };
    let bytes = |argument: &Bytes| ARGUMENT_BYTES + argument.len();
    let bytes = |one: &Invocation| one.arguments.iter().map(bytes).sum::<usize>();
    calls.iter().all(is_unwatched)
        && invocations().all(|of_call| !of_call.is_empty() && of_call.iter().all(may_leave))
        && invocations().flatten().map(bytes).sum::<usize>() <= FORWARDED_BYTES_MAX
}

/// Whether a command has the same effect on another server.
fn may_leave(invocation: &Invocation) -> bool {
    let row = invocation.row;
    let origin = &invocation.origin;
    matches!(row.handler, Handler::Read(_) | Handler::Write(_))
        && row.has_keys()
        && origin.forwarded_as.is_some()
        && !origin.lacks_named_keys
        && !origin.repeats
}

/// Whether a command contends for its keys.
fn contends(invocation: &Invocation) -> bool {
    invocation.row.flags.contains(Flags::CONTENDS)
}

/// A key because of which a call should be run by the key's owner.
struct Decisive {
    key: ClientKey,
    /// The call may add something for which clients of this server wait, or did recently. Its owner pops for them at
    /// once.
    is_awaited: bool,
}

impl Decisive {
    /// The first key of a call for which it contends, or for which clients of this server wait.
    fn of(call: &Call, waiters: &Waiters) -> Option<Self> {
        let mut invocations = call.invocations().iter();
        invocations.find_map(|one| {
            let contends = contends(one);
            if !contends && !matches!(one.row.handler, Handler::Write(_)) {
                return None;
            }
            let mut indexes = one.row.key_indexes(&one.arguments).into_iter();
            let key = ClientKey {
                database: one.database,
                key: indexes.find_map(|at| one.arguments.get(at))?.clone(),
            };
            let is_awaited = !contends && waiters.is_expected(&key);
            (contends || is_awaited).then_some(Self { key, is_awaited })
        })
    }
}

/// Where calls are run by another server.
struct Way {
    owner: u64,
    /// The key for which each call adds something that clients of this server wait for. `None` for others.
    awaited: Vec<Option<ClientKey>>,
}

impl Way {
    /// The way of calls that another server should run: the owner of all their decisive keys. It may run what they do
    /// beside, as every server may. Transactions of one kind so meet at one server, whatever else they take.
    fn of(owners: &dyn Owners, calls: &[Call], waiters: &Waiters) -> Option<Self> {
        let decisive = calls.iter().map(|call| Decisive::of(call, waiters));
        let decisive: Vec<Option<Decisive>> = decisive.collect();
        if decisive.iter().all(Option::is_none) || !may_forward(calls) {
            return None;
        }
        let mut keys = decisive.iter().flatten().map(|one| &one.key.key);
        let owner = owners.owner_of(&mut keys)?;
        let awaited = |one: Option<Decisive>| one.filter(|one| one.is_awaited).map(|one| one.key);
        Some(Self {
            owner,
            awaited: decisive.into_iter().map(awaited).collect(),
        })
    }
}

/// The owner of the key that a client waits for, if it is another server that should pop for the client. `None` also if
/// the client waits for several keys, or for more than something to pop.
fn owner_for(owners: &dyn Owners, waiter: &Waiter) -> Option<u64> {
    let spec = &waiter.spec;
    let is_suited = contends(&waiter.invocation)
        && may_leave(&waiter.invocation)
        && spec.keys.len() == 1
        && !spec.needs_key
        && spec.wants.is_none();
    let owner = || owners.owner_of(&mut spec.keys.iter());
    is_suited.then(owner).flatten()
}

impl Executor {
    /// Has the owner of the calls' keys run them, if that is another server. A command that may wait is submitted by
    /// itself.
    ///
    /// # Errors
    /// The calls, if they are to run here.
    pub(super) async fn forward(
        &self,
        mut calls: Vec<Call>,
        reply_bytes_max: usize,
    ) -> Result<SubmissionResult, Vec<Call>> {
        let Some(owners) = self.shared.owners.as_deref() else {
            return Err(calls);
        };
        if !owners.are_any() {
            return Err(calls);
        }
        if let [call] = calls.as_slice()
            && let Some(waiter) = &call.waiter
        {
            let waiter = Arc::clone(waiter);
            return self.look_elsewhere(owners, calls, &waiter).await;
        }
        let waiters = &self.shared.waiters;
        let Some(way) = Way::of(owners, &calls, waiters) else {
            return Err(calls);
        };
        let waits = calls.pop_if(|last| last.waiter.is_some());
        let owner = way.owner;
        let joined = Joined::new(calls, way, owners, &self.shared, &self.environment);
        let started = Instant::now();
        let forwarded = owners.forward(owner, joined.calls(), reply_bytes_max);
        let (replies, failure) = match forwarded.await {
            Forwarded::NotRun => {
                let mut calls = joined.into_calls();
                calls.extend(waits);
                return Err(calls);
            }
            Forwarded::Ran(replies) => (replies, None),
            Forwarded::Unknown => {
                let replies = unknown(joined.calls(), &self.statistics);
                (replies, Some(StoreError::UnknownResult))
            }
        };
        let (mut calls, replies) = joined.end(replies, started.elapsed());
        let mut rest = calls.split_off(replies.len().min(calls.len()));
        rest.extend(waits);
        let finished = self.answered_elsewhere(calls, replies);
        Ok(SubmissionResult {
            rest,
            failure,
            ..finished
        })
    }

    /// Has the owner of its key look for something for a client that waits if there is nothing. From before the look,
    /// the client is among those that wait, so that nothing is missed that is added meanwhile.
    ///
    /// # Errors
    /// The call, if it is to run here.
    async fn look_elsewhere(
        &self,
        owners: &dyn Owners,
        calls: Vec<Call>,
        waiter: &Arc<Waiter>,
    ) -> Result<SubmissionResult, Vec<Call>> {
        let waiters = &self.shared.waiters;
        let Some(owner) = owner_for(owners, waiter) else {
            return Err(calls);
        };
        let Some(alarms) = waiters.begin_look_elsewhere(waiter) else {
            return Err(calls);
        };
        let mut looking = Looking(waiters, Some(waiter));
        let forwarded = owners.forward(owner, &calls, SUBMISSION_REPLY_BYTES_MAX);
        let replies = match forwarded.await {
            Forwarded::NotRun => return Err(calls),
            Forwarded::Ran(replies) => replies,
            Forwarded::Unknown => unknown(&calls, &self.statistics),
        };
        let is_parked = replies.iter().all(Reply::is_nothing);
        if is_parked {
            looking.1 = None;
            waiters.end_look_elsewhere(waiter, alarms);
        }
        let replies = if is_parked { Vec::new() } else { replies };
        let finished = self.answered_elsewhere(calls, replies);
        Ok(SubmissionResult {
            is_parked,
            ..finished
        })
    }

    fn answered_elsewhere(&self, done: Vec<Call>, replies: Vec<Reply>) -> SubmissionResult {
        self.statistics.forwarded_commands.add(done.len() as u64);
        let bytes = replies.iter().map(Reply::size_hint).sum();
        SubmissionResult {
            carried: self.shared.in_flight.carry(bytes),
            replies,
            done,
            failure: None,
            rest: Vec::new(),
            is_parked: false,
        }
    }
}

/// A client that does not wait any more when this is dropped, unless it was taken out.
struct Looking<'w>(&'w Waiters, Option<&'w Arc<Waiter>>);

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        if let Some(waiter) = self.1 {
            self.0.unpark(waiter);
        }
    }
}

/// The replies to calls whose owner was lost.
fn unknown(calls: &[Call], statistics: &ExecutorStatistics) -> Vec<Reply> {
    statistics.forwarded_unknown.add(1);
    let line = CommandError::Store(StoreError::UnknownResult).to_line();
    calls.iter().map(|_| Reply::Error(line.clone())).collect()
}
