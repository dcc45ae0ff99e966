//! Submissions that another server should run, because it owns their keys
//! (docs/understand/decisions/053-forwarding.md).
//!
//! A key's owner is only a hint. A command has the same effect on every server, but run by the
//! owner it does not conflict with the other commands on its key. So commands are handed over once
//! they have conflicted. Blocked clients wait at their own server and are served there.

use std::sync::Arc;

use super::call::{Call, SubmissionResult};
use super::owners::{Forwarded, Owners};
use super::shared::Shared;
use super::statistics::ExecutorStatistics;
use super::waiters::Waiter;
use quoin_base::limits::SUBMISSION_REPLY_BYTES_MAX;
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

mod contention;
#[cfg(test)]
mod tests;
mod way;

pub(super) use contention::Contention;
pub use way::may_forward;
use way::{contended_key, owner_of, pops_from_one_key};

/// Notes that the commit of a batch with these calls conflicted with another server's.
pub(super) fn note_conflict<'c>(shared: &Shared, calls: impl Iterator<Item = &'c Call>) {
    for key in calls.filter_map(contended_key) {
        shared.contention.note_conflict(key);
    }
}

/// Notes that a client begins to wait.
pub(super) fn note_wait(shared: &Shared, waiter: &Waiter) {
    // Without other servers, nobody asks for it.
    if shared.owners.is_some() {
        for key in &waiter.spec.keys {
            shared.contention.note_wait(key);
        }
    }
}

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
            return self.pop_elsewhere(owners, calls, &waiter).await;
        }
        let Some(owner) = owner_of(owners, &self.shared.contention, &calls) else {
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

    /// Has the owner of its key run a blocking command that may find something at once.
    ///
    /// # Errors
    /// The call, if it should run here: nobody contends for the key, the owner found nothing, or
    /// clients that came before this one wait for the key.
    async fn pop_elsewhere(
        &self,
        owners: &dyn Owners,
        calls: Vec<Call>,
        waiter: &Waiter,
    ) -> Result<SubmissionResult, Vec<Call>> {
        let Shared {
            contention,
            waiters,
            ..
        } = &**self.shared;
        let owner = owner_of(owners, contention, &calls);
        let Some(owner) = owner.filter(|_| pops_from_one_key(waiter)) else {
            return Err(calls);
        };
        if waiter.client_keys().any(|key| waiters.is_awaited(&key)) {
            return Err(calls);
        }
        let forwarded = owners.forward(owner, &calls, SUBMISSION_REPLY_BYTES_MAX);
        let replies = match forwarded.await {
            Forwarded::NotRun => return Err(calls),
            Forwarded::Ran(replies) => replies,
            Forwarded::Unknown => unknown(&calls, self.statistics),
        };
        if replies.iter().all(Reply::is_nothing) {
            return Err(calls);
        }
        Ok(self.answered_elsewhere(calls, replies))
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

/// Replies to calls whose owner was lost.
fn unknown(calls: &[Call], statistics: &ExecutorStatistics) -> Vec<Reply> {
    statistics.forwarded_unknown.add(1);
    let line = CommandError::Store(StoreError::UnknownResult).to_line();
    calls.iter().map(|_| Reply::Error(line.clone())).collect()
}
