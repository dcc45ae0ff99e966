//! Submissions that another server should run, because it owns their keys
//! (docs/understand/decisions/053-forwarding.md).
//!
//! A key's owner is only a hint. A command has the same effect on every server, but run by the
//! owner it does not conflict with the other commands on its key. Blocked clients always wait at
//! their own server, which forwards their pops once there may be an element ([`waking`]).

use std::sync::Arc;

use super::call::{Call, SubmissionResult};
use super::owners::{Forwarded, Owners};
use super::shared::Shared;
use super::statistics::ExecutorStatistics;
use super::waiters::{Waiter, Waiters};
use quoin_base::limits::SUBMISSION_REPLY_BYTES_MAX;
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

#[cfg(test)]
mod tests;
mod waking;
mod way;

pub(super) use waking::WakeUpElsewhere;
use waking::unknown;
pub use way::may_forward;
use way::{owner_for, owner_of};

/// Hands submissions to other servers.
pub(super) struct Forwarding<'e> {
    pub(super) shared: &'e Arc<Shared>,
    pub(super) statistics: &'e ExecutorStatistics,
}

impl Forwarding<'_> {
    /// Forwards calls to the owner of their keys, if that is another server. A command that may
    /// wait must be submitted by itself.
    ///
    /// # Errors
    /// The calls, if they should run here.
    pub(super) async fn forward(
        &self,
        mut calls: Vec<Call>,
        reply_bytes_max: usize,
    ) -> Result<SubmissionResult, Vec<Call>> {
        let Some(owners) = self.shared.owners.as_deref() else {
            return Err(calls);
        };
        if let [call] = calls.as_slice()
            && let Some(waiter) = &call.waiter
        {
            let waiter = Arc::clone(waiter);
            return self.look_elsewhere(owners, calls, &waiter).await;
        }
        let Some(owner) = owner_of(owners, &calls) else {
            return Err(calls);
        };
        let waits = calls.pop_if(|last| last.waiter.is_some());
        let forwarded = owners.forward(owner, &calls, reply_bytes_max);
        let (replies, failure) = match forwarded.await {
            Forwarded::NotRun => {
                calls.extend(waits);
                return Err(calls);
            }
            Forwarded::Ran(replies) => (replies, None),
            Forwarded::Unknown => {
                let replies = unknown(&calls, self.statistics);
                (replies, Some(StoreError::UnknownResult))
            }
        };
        let mut rest = calls.split_off(replies.len().min(calls.len()));
        rest.extend(waits);
        let finished = self.answered_elsewhere(calls, replies);
        Ok(SubmissionResult {
            rest,
            failure,
            ..finished
        })
    }

    /// Forwards a blocking command to the owner of its key, and leaves its client waiting if the
    /// owner finds nothing. The client is registered as waiting before the command is forwarded, so
    /// that it misses nothing added meanwhile.
    ///
    /// # Errors
    /// The call, if it should run here.
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
            Forwarded::Unknown => unknown(&calls, self.statistics),
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

/// Removes the client from the waiters when dropped, unless the waiter was taken out.
struct Looking<'w>(&'w Waiters, Option<&'w Arc<Waiter>>);

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        if let Some(waiter) = self.1 {
            self.0.unpark(waiter);
        }
    }
}
