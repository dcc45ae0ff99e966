//! Which submissions another server should run, and which one.

use bytes::Bytes;

use crate::call::{Call, Work};
use crate::owners::Owners;
use crate::waiters::{Waiter, Waiters};
use quoin_base::limits::FORWARDED_BYTES_MAX;
use quoin_data::command::call::Invocation;
use quoin_data::command::flags::Flags;
use quoin_data::command::row::Handler;
use quoin_data::keyspace::key::ClientKey;

/// What an argument takes beside its bytes, at most.
const ARGUMENT_BYTES: usize = 8;

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
pub(super) struct Way {
    pub(super) owner: u64,
    /// The key for which each call adds something that clients of this server wait for. `None` for others.
    pub(super) awaited: Vec<Option<ClientKey>>,
}

impl Way {
    /// The way of calls that another server should run: the owner of all their decisive keys. It may run what they do
    /// beside, as every server may. Transactions of one kind so meet at one server, whatever else they take.
    pub(super) fn of(owners: &dyn Owners, calls: &[Call], waiters: &Waiters) -> Option<Self> {
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
pub(super) fn owner_for(owners: &dyn Owners, waiter: &Waiter) -> Option<u64> {
    let spec = &waiter.spec;
    let is_suited = contends(&waiter.invocation)
        && may_leave(&waiter.invocation)
        && spec.keys.len() == 1
        && !spec.needs_key
        && spec.wants.is_none();
    let owner = || owners.owner_of(&mut spec.keys.iter());
    is_suited.then(owner).flatten()
}
