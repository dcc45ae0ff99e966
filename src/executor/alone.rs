//! The commands of a client that is alone, run on the thread that serves its connection.
//!
//! To hand a command to the write lane's thread and its reply back takes two wake-ups of a thread, a
//! sixth of the time of a push with its sync. On a store with a single writer, a client that nobody
//! else has worked beside for a while is spared that: its connection's thread runs the batch. While it
//! does, it serves no other connection, so that ends when another client has a command or a commit
//! takes long.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::Executor;
use super::batch::{Batch, Slot};
use super::call::{Call, Submission, SubmissionResult, Work};
use super::read_lane::ReadLane;
use crate::commands::Handler;
use crate::fatal_panic::Vital;

/// Commands of a submission that may be run so: other connections wait for them.
const COMMANDS_MAX: usize = 16;
/// A client whose batch took longer than this hands the next ones over again.
const DURATION_MAX: Duration = Duration::from_millis(2);

/// Whether commands can run without waiting for anything but the store.
fn are_plain(calls: &[Call]) -> bool {
    let is_plain = |call: &Call| match &call.work {
        Work::Command(invocation) => {
            let handler = &invocation.row.handler;
            call.waiter.is_none() && matches!(handler, Handler::Write(_) | Handler::Read(_))
        }
        _ => false,
    };
    calls.len() <= COMMANDS_MAX && calls.iter().all(is_plain)
}

impl Executor {
    /// Runs the commands of a client that is alone. Gives them back if they have to wait for something.
    pub(super) fn run_alone(&self, calls: Vec<Call>) -> Result<SubmissionResult, Vec<Call>> {
        if !are_plain(&calls) {
            return Err(calls);
        }
        let _vital = Vital::enter("the commands of a client that is alone");
        let (respond, mut response) = oneshot::channel();
        let only_read = calls.iter().all(|call| call.work.only_reads());
        let submissions = vec![Submission {
            calls,
            respond: Some(respond),
        }];
        let not_run = match only_read {
            true => self.read_alone(submissions),
            false => self.write_alone(submissions),
        };
        let not_run = not_run.into_iter().flat_map(|submission| submission.calls);
        response.try_recv().map_err(|_| not_run.collect())
    }

    fn read_alone(&self, submissions: Vec<Submission>) -> Vec<Submission> {
        let lane = ReadLane::new(
            Arc::clone(&self.store),
            Arc::clone(&self.environment),
            Arc::clone(&self.statistics),
        );
        lane.serve_at_once(submissions)
    }

    fn write_alone(&self, submissions: Vec<Submission>) -> Vec<Submission> {
        let lone_client = &self.shared.lone_client;
        let Ok(_turn) = lone_client.turn.try_lock() else {
            return submissions;
        };
        let batch = Batch::new(
            &*self.store,
            &self.environment,
            &self.statistics,
            &self.shared,
            Slot::new(0),
            submissions,
        );
        match batch.run_at_once() {
            Ok(done) => {
                if done.duration > DURATION_MAX {
                    lone_client.forget();
                }
                done.not_run
            }
            Err(submissions) => submissions,
        }
    }
}

#[cfg(test)]
mod tests;
