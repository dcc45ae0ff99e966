//! Which submissions another server should run, and which one.

use bytes::Bytes;

use super::contention::Contention;
use crate::call::{Call, Work};
use crate::owners::Owners;
use crate::waiters::Waiter;
use quoin_base::limits::FORWARDED_BYTES_MAX;
use quoin_data::command::call::Invocation;
use quoin_data::command::flags::Flags;
use quoin_data::command::row::Handler;

/// Maximum overhead of an argument, beyond its bytes.
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

/// Whether a command has the same effect if another server runs it.
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

/// The first key for which a call contends.
pub(super) fn contended_key(call: &Call) -> Option<&Bytes> {
    let mut contending = call.invocations().iter().filter(|one| contends(one));
    contending.find_map(|one| {
        let mut indexes = one.row.key_indexes(&one.arguments).into_iter();
        indexes.find_map(|at| one.arguments.get(at))
    })
}

/// The server that should run calls, if it is another one: the owner of all keys that they contend
/// for, one of which is contended. It may also run the calls' other commands, as any server may.
/// Only the first key of a transaction counts, so transactions of one kind always go to the same
/// server.
pub(super) fn owner_of(
    owners: &dyn Owners,
    contention: &Contention,
    calls: &[Call],
) -> Option<u64> {
    let mut keys = calls.iter().filter_map(contended_key);
    if !contention.has_any(keys.clone()) {
        return None;
    }
    let owner = owners.owner_of(&mut keys)?;
    may_forward(calls).then_some(owner)
}

/// Whether a blocking command without its wait is a pop from one key, which any server may run.
pub(super) fn pops_from_one_key(waiter: &Waiter) -> bool {
    let spec = &waiter.spec;
    spec.keys.len() == 1 && !spec.needs_key && spec.wants.is_none()
}
