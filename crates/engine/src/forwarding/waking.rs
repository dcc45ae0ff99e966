//! Has the owner of a key pop for the clients that wait for the key here.
//!
//! A command that the owner runs cannot be withdrawn, unlike a command in a batch of this server,
//! which can be until the commit. If the client leaves meanwhile, what was popped for it is lost.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::way::owner_for;
use crate::call::Call;
use crate::owners::{Forwarded, Owners};
use crate::shared::Shared;
use crate::statistics::ExecutorStatistics;
use crate::waiters::{Waiter, Waiters};
use quoin_base::limits::SUBMISSION_REPLY_BYTES_MAX;
use quoin_data::error::CommandError;
use quoin_data::keyspace::key::ClientKey;
use quoin_data::unit::context::Environment;
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

/// Number of waiters whose commands the first frame carries. Doubles after each frame in which all
/// of them find something.
const WOKEN_FIRST: usize = 8;
/// Maximum number of waiters whose commands one frame carries.
const WOKEN_TOGETHER_MAX: usize = 64;

/// A scheduled wake-up of a key that another server owns.
pub(crate) struct WakeUpElsewhere {
    owners: Arc<dyn Owners>,
    owner: u64,
    key: ClientKey,
}

impl WakeUpElsewhere {
    /// A wake-up for the key's owner to run. `None` if it should run here: the key has no other
    /// owner, or the owner should not pop for one of the oldest waiters.
    pub(crate) fn of(shared: &Shared, key: &ClientKey) -> Option<Self> {
        let owners = shared.owners.as_ref()?;
        let owner = owners.owner_of(&mut std::iter::once(&key.key))?;
        let is_popped_for = |waiter: &Waiter| owner_for(&**owners, waiter) == Some(owner);
        let waiters = &shared.waiters;
        let are_all = waiters.all_of(key, WOKEN_TOGETHER_MAX, is_popped_for);
        are_all.then(|| Self {
            owners: Arc::clone(owners),
            owner,
            key: key.clone(),
        })
    }

    /// Has the owner pop for the waiters of the key, oldest first, until it finds nothing. Returns
    /// the key if the wake-up should continue here.
    pub(crate) async fn run(
        self,
        environment: &Environment,
        shared: &Shared,
        statistics: &ExecutorStatistics,
    ) -> Option<ClientKey> {
        let here = Some(self.key.clone());
        let mut count = WOKEN_FIRST;
        loop {
            let mut serving = self.begin_service(shared, count);
            if serving.waiters.is_empty() {
                return here.filter(|_| serving.is_barred);
            }
            let calls = serving.calls(environment);
            if calls.is_empty() {
                return here;
            }
            let started = Instant::now();
            let forwarded = self
                .owners
                .forward(self.owner, &calls, SUBMISSION_REPLY_BYTES_MAX);
            let replies = match forwarded.await {
                Forwarded::NotRun => return here,
                Forwarded::Ran(replies) => replies,
                Forwarded::Unknown => unknown(&calls, statistics),
            };
            statistics.forwarded_commands.add(replies.len() as u64);
            let has_room = replies.len() == calls.len();
            let mut found_nothing = false;
            for reply in replies {
                match serving.answer_next(reply, started.elapsed()) {
                    Served::Answered => {}
                    Served::Nothing => found_nothing = true,
                    Served::OtherType => return here,
                }
            }
            if found_nothing {
                return here.filter(|_| serving.is_barred);
            }
            if !has_room {
                return here;
            }
            count = (count * 2).min(WOKEN_TOGETHER_MAX);
        }
    }

    /// Takes the oldest waiters into service, up to `count`.
    fn begin_service<'w>(&self, shared: &'w Shared, count: usize) -> Serving<'w> {
        let is_popped_for = |waiter: &Waiter| owner_for(&*self.owners, waiter) == Some(self.owner);
        let registry = &shared.waiters;
        let (waiters, is_barred) =
            registry.begin_service_elsewhere(&self.key, count, is_popped_for);
        Serving {
            shared,
            waiters: waiters.into(),
            is_barred,
        }
    }
}

/// What a reply means for a waiting client.
enum Served {
    Answered,
    Nothing,
    /// The key has another type than the client waits for. The client keeps waiting.
    OtherType,
}

/// Waiters in service, the oldest first. They return to the queue when this is dropped.
struct Serving<'w> {
    shared: &'w Shared,
    waiters: VecDeque<Arc<Waiter>>,
    /// Whether the next waiter is one that the owner should not pop for.
    is_barred: bool,
}

impl<'w> Serving<'w> {
    fn registry(&self) -> &'w Waiters {
        &self.shared.waiters
    }

    /// Their commands as they should run now. Empty if one of them may no longer run, because it
    /// needs another reply.
    fn calls(&self, environment: &Environment) -> Vec<Call> {
        let calls = self.waiters.iter().map(|waiter| {
            let pinned = waiter.pinned();
            let invocation = pinned.as_deref().unwrap_or(&waiter.invocation);
            let may_run = Waiter::refusal(environment, invocation).is_none();
            may_run.then(|| Call::command(invocation.clone(), true))
        });
        calls.collect::<Option<_>>().unwrap_or_default()
    }

    /// Ends the service of the oldest waiter, whose command took `duration`.
    fn answer_next(&mut self, reply: Reply, duration: Duration) -> Served {
        let Some(waiter) = self.waiters.pop_front() else {
            return Served::Nothing;
        };
        waiter.note_run(duration);
        let is_of_other_type =
            matches!(&reply, Reply::Error(line) if line.starts_with("WRONGTYPE "));
        if is_of_other_type || reply.is_nothing() {
            self.registry().release(&waiter);
            return match is_of_other_type {
                true => Served::OtherType,
                false => Served::Nothing,
            };
        }
        let carried = self.shared.in_flight.carry(reply.size_hint());
        self.registry().answer(&waiter, reply, carried);
        Served::Answered
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        for waiter in &self.waiters {
            self.registry().release(waiter);
        }
    }
}

/// Replies to calls whose owner was lost.
pub(super) fn unknown(calls: &[Call], statistics: &ExecutorStatistics) -> Vec<Reply> {
    statistics.forwarded_unknown.add(1);
    let line = CommandError::Store(StoreError::UnknownResult).to_line();
    calls.iter().map(|_| Reply::Error(line.clone())).collect()
}
