//! Submissions that another server should run, because it owns their keys
//! (docs/understand/decisions/053-forwarding.md).
//!
//! Who owns a key is only a hint. A command has the same effect on every server; run by the owner, it does not
//! conflict with the other commands on its key. Clients that wait always wait at their own server, which forwards
//! what they would pop once there may be something.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::Executor;
use super::batch::refusal_of;
use super::call::{Call, SubmissionResult, Work};
use super::shared::Shared;
use super::statistics::ExecutorStatistics;
use super::waiters::{Cursor, Waiter, Waiters};
use quoin_base::limits::{FORWARDED_BYTES_MAX, SUBMISSION_REPLY_BYTES_MAX};
use quoin_data::command::call::Invocation;
use quoin_data::command::flags::Flags;
use quoin_data::command::row::Handler;
use quoin_data::error::CommandError;
use quoin_data::keyspace::key::ClientKey;
use quoin_data::unit::context::Environment;
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

#[cfg(test)]
mod tests;

/// What an argument takes beside its bytes, at most.
const ARGUMENT_BYTES: usize = 8;
/// Waiters of a key whose commands are forwarded together first. Each frame in which all find something doubles it.
const WOKEN_FIRST: usize = 8;
/// Waiters of a key whose commands are forwarded together at most.
const WOKEN_TOGETHER_MAX: usize = 64;

/// The other servers, and which keys they own.
pub trait Owners: Send + Sync {
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

/// Whether a command contends for its keys.
fn contends(invocation: &Invocation) -> bool {
    invocation.row.flags.contains(Flags::CONTENDS)
}

/// Whether another server may run these calls.
fn may_forward(calls: &[Call]) -> bool {
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

/// A key because of which a call should be run by the key's owner.
struct Decisive {
    key: ClientKey,
    /// The call may add something for which clients of this server wait, or did recently. Its owner pops for them at once.
    is_awaited: bool,
}

impl Decisive {
    /// The first key of a call for which it contends, or for which clients of this server wait.
    fn of(call: &Call, waiters: &Waiters) -> Option<Self> {
        let mut invocations = call.invocations().iter();
        invocations.find_map(|one| {
            let contends = contends(one);
            let writes = matches!(one.row.handler, Handler::Write(_));
            if !contends && !writes {
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
    /// A key with clients of this server for which the owner pops at once.
    awaited: Option<ClientKey>,
}

impl Way {
    /// The way of calls that another server should run: the owner of all their decisive keys. It may run what they do
    /// beside, as every server may. Transactions of one kind so meet at one server, whatever else they take.
    fn of(owners: &dyn Owners, calls: &[Call], waiters: &Waiters) -> Option<Self> {
        let decisive = calls.iter().filter_map(|call| Decisive::of(call, waiters));
        let decisive: Vec<Decisive> = decisive.collect();
        let first = decisive.first()?;
        if !may_forward(calls) {
            return None;
        }
        let owner = owners.owner_of(&mut decisive.iter().map(|one| &one.key.key))?;
        let is_first = |one: &Decisive| one.is_awaited && one.key == first.key;
        let awaited = decisive.iter().all(is_first).then(|| first.key.clone());
        Some(Self { owner, awaited })
    }
}

/// The owner of all keys that a client waits for, if it is another server that should pop for the client. `None` also if
/// the client waits for more than something to pop.
fn owner_for(owners: &dyn Owners, waiter: &Waiter) -> Option<u64> {
    let spec = &waiter.spec;
    let is_suited = contends(&waiter.invocation)
        && may_leave(&waiter.invocation)
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
        let Some(owners) = &self.shared.owners else {
            return Err(calls);
        };
        if let [call] = calls.as_slice()
            && let Some(waiter) = &call.waiter
        {
            let Some(owner) = owner_for(&**owners, waiter) else {
                return Err(calls);
            };
            let waiter = Arc::clone(waiter);
            return self.look_elsewhere(&**owners, owner, calls, &waiter).await;
        }
        let waiters = &self.shared.waiters;
        let Some(Way { owner, awaited }) = Way::of(&**owners, &calls, waiters) else {
            return Err(calls);
        };
        let waits = calls.pop_if(|last| last.waiter.is_some());
        let own = calls.len();
        let mut serving = Serving::nobody(waiters);
        if let Some(key) = awaited
            && WakeUpElsewhere::of(&**owners, &self.shared, &key, Cursor::START).is_some()
        {
            // What is left over wakes the others.
            serving = Serving::begin(waiters, &key, 0, own.min(WOKEN_TOGETHER_MAX));
            calls.extend(serving.calls(&self.environment));
        }
        let started = Instant::now();
        let forwarded = owners.forward(owner, &calls, reply_bytes_max).await;
        let (mut replies, failure) = match forwarded {
            Forwarded::NotRun => {
                calls.truncate(own);
                calls.extend(waits);
                return Err(calls);
            }
            Forwarded::Ran(replies) => (replies, None),
            Forwarded::Unknown => {
                let replies = unknown(&calls, &self.statistics);
                (replies, Some(StoreError::UnknownResult))
            }
        };
        calls.truncate(own);
        let of_waiters = replies.split_off(own.min(replies.len()));
        serving.answer(of_waiters, started.elapsed(), &self.shared);
        let mut rest = calls.split_off(replies.len().min(calls.len()));
        rest.extend(waits);
        let finished = self.answered_elsewhere(calls, replies);
        Ok(SubmissionResult {
            rest,
            failure,
            ..finished
        })
    }

    /// Has an owner look for something for a client that waits if there is nothing. From before the look, the client is
    /// among those that wait, so that nothing is missed that is added meanwhile.
    ///
    /// # Errors
    /// The call, if it is to run here.
    async fn look_elsewhere(
        &self,
        owners: &dyn Owners,
        owner: u64,
        calls: Vec<Call>,
        waiter: &Arc<Waiter>,
    ) -> Result<SubmissionResult, Vec<Call>> {
        let waiters = &self.shared.waiters;
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

/// A scheduled wake-up of a key of another server.
pub(super) struct WakeUpElsewhere {
    key: ClientKey,
    cursor: Cursor,
    owner: u64,
}

impl WakeUpElsewhere {
    /// A wake-up that the key's owner should run. `None` if it is to run here: the key has no other owner, or one of
    /// its waiters waits for keys of several, or for more than something to pop.
    pub(super) fn of(
        owners: &dyn Owners,
        shared: &Shared,
        key: &ClientKey,
        cursor: Cursor,
    ) -> Option<Self> {
        let owner = owners.owner_of(&mut std::iter::once(&key.key))?;
        let is_popped_for = |waiter: &Waiter| owner_for(owners, waiter) == Some(owner);
        let waiters = &shared.waiters;
        let are_all = waiters.all_of(key, WOKEN_TOGETHER_MAX, is_popped_for);
        are_all.then(|| Self {
            key: key.clone(),
            cursor,
            owner,
        })
    }

    /// Has the owner pop for the clients that wait for the key, the oldest first, until it finds nothing. Returns the
    /// wake-up if it is to run here after all.
    pub(super) async fn run(
        self,
        owners: &dyn Owners,
        environment: &Environment,
        shared: &Arc<Shared>,
        statistics: &ExecutorStatistics,
    ) -> Option<(ClientKey, Cursor)> {
        let mut from = self.cursor.from;
        let mut count = WOKEN_FIRST;
        loop {
            let mut serving = Serving::begin(&shared.waiters, &self.key, from, count);
            from = serving.waiters.back()?.position().saturating_add(1);
            let calls = serving.calls(environment);
            if calls.is_empty() {
                return Some((self.key, self.cursor));
            }
            let started = Instant::now();
            let forwarded = owners.forward(self.owner, &calls, SUBMISSION_REPLY_BYTES_MAX);
            let replies = match forwarded.await {
                Forwarded::NotRun => return Some((self.key, self.cursor)),
                Forwarded::Ran(replies) => replies,
                Forwarded::Unknown => unknown(&calls, statistics),
            };
            statistics.forwarded_commands.add(replies.len() as u64);
            let has_room = replies.len() == calls.len();
            if serving.answer(replies, started.elapsed(), shared) {
                return None;
            }
            if !has_room {
                // The replies to the others had no room.
                return Some((self.key, self.cursor));
            }
            count = (count * 2).min(WOKEN_TOGETHER_MAX);
        }
    }
}

/// Waiters in service, the oldest first. They return to the queue when this is dropped.
struct Serving<'w> {
    registry: &'w Waiters,
    waiters: VecDeque<Arc<Waiter>>,
}

impl<'w> Serving<'w> {
    /// Takes up to `count` waiters of a key into service, from a position on.
    fn begin(registry: &'w Waiters, key: &ClientKey, from: u64, count: usize) -> Self {
        let mut waiters = VecDeque::new();
        let mut from = from;
        while waiters.len() < count
            && let Some(waiter) = registry.begin_service_of_any(key, from)
        {
            from = waiter.position().saturating_add(1);
            waiters.push_back(waiter);
        }
        Self { registry, waiters }
    }

    /// Serves nobody.
    fn nobody(registry: &'w Waiters) -> Self {
        Self {
            registry,
            waiters: VecDeque::new(),
        }
    }

    /// Their commands as they are to run now. None if one of them may no longer run: it then needs another reply.
    fn calls(&self, environment: &Environment) -> Vec<Call> {
        let calls = self.waiters.iter().map(|waiter| {
            let pinned = waiter.pinned();
            let invocation = pinned.as_deref().unwrap_or(&waiter.invocation);
            let may_run = refusal_of(environment, invocation).is_none();
            may_run.then(|| Call::command(invocation.clone(), true))
        });
        calls.collect::<Option<_>>().unwrap_or_default()
    }

    /// Gives the oldest of them these replies, up to the first that says that there is nothing. Returns whether there is
    /// one. Their commands took `duration`.
    fn answer(&mut self, replies: Vec<Reply>, duration: Duration, shared: &Shared) -> bool {
        for reply in replies {
            if reply.is_nothing() {
                return true;
            }
            if let Some(waiter) = self.waiters.pop_front() {
                waiter.note_run(duration);
                let carried = shared.in_flight.carry(reply.size_hint());
                self.registry.answer(&waiter, reply, carried);
            }
        }
        false
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        for waiter in &self.waiters {
            self.registry.release(waiter);
        }
    }
}

/// The replies to calls whose owner was lost.
fn unknown(calls: &[Call], statistics: &ExecutorStatistics) -> Vec<Reply> {
    statistics.forwarded_unknown.add(1);
    let line = CommandError::Store(StoreError::UnknownResult).to_line();
    calls.iter().map(|_| Reply::Error(line.clone())).collect()
}
