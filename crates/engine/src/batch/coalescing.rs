//! Coalescing: a batch runs consecutive commands of one kind on one key as one operation, whichever clients sent them.
//! The operation finds the key and its ends once.
//!
//! Commands are coalesced only if nothing can come between two of them: the first wakes no client, nobody is
//! notified of each command, and no other server writes to the store. If the operation fails, it is undone, and the
//! commands run one by one.

use bytes::Bytes;

use super::running::Attempt;
use super::{AttemptEnd, Batch, Coalesced, CommandId};
use crate::call::{Call, Submission, Work};
use quoin_base::events::EventClasses;
use quoin_data::command::call;
use quoin_data::command::call::{CallError, Invocation};
use quoin_data::command::row::Coalescing;
use quoin_data::unit::host::Origin;
use quoin_resp::reply::Reply;
use quoin_store::Growth;

mod order;

pub(crate) use order::bring_together;

/// Maximum number of commands that run as one.
const COALESCED_COMMANDS_MAX: usize = 256;
/// Maximum size of the arguments of commands that run as one.
const COALESCED_BYTES_MAX: usize = 64 * 1024;

impl Batch<'_> {
    /// Runs the call at `first` and those that coalesce with it as one, or as many of them as are allowed. Returns
    /// the reply to that call and keeps the other replies in `state`. `None` if no other call coalesces with it.
    pub(super) async fn run_coalesced(
        &mut self,
        state: &mut Coalesced,
        submissions: &[Submission],
        first: (usize, usize),
        attempt: &Attempt<'_>,
    ) -> Result<Option<Reply>, AttemptEnd> {
        if state.alone > 0 {
            state.alone -= 1;
            return Ok(None);
        }
        // When the store limits growth, commands are refused one by one.
        if !self.may_coalesce() || attempt.unit.transaction.growth() != Growth::Free {
            return Ok(None);
        }
        // The first command is already counted.
        let room = self.commands_max.saturating_sub(attempt.commands_run) + 1;
        let Some(found) = find_coalescing(submissions, first, room) else {
            return Ok(None);
        };
        let unit = &attempt.unit;
        unit.signals.set_origin(found.origin);
        let savepoint = unit.savepoint();
        let context = unit.write_context(found.database);
        let result = (found.coalescing.run)(&context, &found.arguments).await;
        match call::end(unit, savepoint, result) {
            Ok(Ok(replies)) => {
                unit.signals.forget_ready();
                state.replies = replies.into();
                Ok(state.replies.pop_front())
            }
            Ok(Err(_))
            | Err(CallError::TooLarge | CallError::MustReturn(_) | CallError::OutOfTime) => {
                state.alone = found.arguments.len() - 1;
                Ok(None)
            }
            Err(CallError::Store(error)) => {
                let id = CommandId::from(first);
                Err(self.store_failed(id, error, attempt, attempt.command_began()))
            }
        }
    }

    /// Whether this attempt may coalesce commands.
    fn may_coalesce(&self) -> bool {
        self.wakes_nobody()
            && self.refused.is_empty()
            && self.environment.events() == EventClasses::NONE
    }
}

/// Calls that run as one.
struct Found<'s> {
    coalescing: Coalescing,
    database: u32,
    /// The client on whose behalf they run. Changes by several clients are attributed to none, so that each client
    /// learns of the others' changes.
    origin: Origin,
    /// The arguments of each call.
    arguments: Vec<&'s [Bytes]>,
}

/// Finds the call at `first` and those that coalesce with it, at most `room` in all.
fn find_coalescing(
    submissions: &[Submission],
    first: (usize, usize),
    room: usize,
) -> Option<Found<'_>> {
    let (number, at) = first;
    let (submission, rest) = submissions.get(number..)?.split_first()?;
    let calls = submission.calls.get(at..)?.iter();
    let calls = calls.chain(rest.iter().flat_map(|one| &one.calls));
    let mut calls = calls.take(room.min(COALESCED_COMMANDS_MAX));
    let invocation = invocation_of(calls.next()?)?;
    let coalescing = invocation.row.coalescing?;
    if !(coalescing.accepts)(&invocation.arguments) {
        return None;
    }
    let mut bytes = bytes_of(&invocation.arguments);
    let mut found = Found {
        coalescing,
        database: invocation.database,
        origin: invocation.origin,
        arguments: vec![&invocation.arguments],
    };
    for other in calls.map_while(invocation_of) {
        bytes += bytes_of(&other.arguments);
        let belongs = std::ptr::eq(other.row, invocation.row)
            && other.database == invocation.database
            && (coalescing.accepts)(&other.arguments)
            && (coalescing.are_alike)(&invocation.arguments, &other.arguments)
            && bytes <= COALESCED_BYTES_MAX;
        if !belongs {
            break;
        }
        if other.origin != found.origin {
            found.origin = Origin::SERVER;
        }
        found.arguments.push(&other.arguments);
    }
    (found.arguments.len() > 1).then_some(found)
}

fn invocation_of(call: &Call) -> Option<&Invocation> {
    match &call.work {
        Work::Command(invocation) if call.waiter.is_none() => Some(invocation),
        _ => None,
    }
}

fn bytes_of(arguments: &[Bytes]) -> usize {
    arguments.iter().map(Bytes::len).sum()
}

#[cfg(test)]
mod tests;
