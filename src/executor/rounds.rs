//! Rounds: commands that run on the thread that serves the connections.
//!
//! To hand a command to a lane's thread and its reply back costs two wake-ups of a thread, as much as
//! most commands. So on a store with a single writer, the thread that serves the connections does what
//! Redis's does: it reads the requests that have arrived, runs them as one batch with one sync, and sends
//! the replies. While it runs commands it serves nobody, so what takes long goes to the lanes. See
//! docs/understand/decisions/034-rounds.md.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use super::Executor;
use super::batch::{Batch, Slot, bring_together};
use super::call::{Call, Submission, SubmissionResult, Work};
use super::read_lane::ReadLane;
use super::rounds_state::Kind;
use super::shared::Shared;
use super::statistics::ExecutorStatistics;
use crate::commands::{Handler, Row};
use crate::fatal_panic::Vital;
use crate::store::Store;
use crate::types::Environment;

/// Commands of a submission that run in a round. A longer pipeline goes to a lane, which runs it while
/// the next requests are read.
const COMMANDS_MAX: usize = 16;

/// The rows of the commands that a call runs. `None` if they may wait for something but the store
/// (scripts), or if it is work of the server itself.
fn rows(call: &Call) -> Option<impl Iterator<Item = &'static Row>> {
    let invocations = match &call.work {
        Work::Command(invocation) => std::slice::from_ref(invocation),
        Work::Transaction(bundle) => bundle.invocations.as_slice(),
        Work::WakeUp(..) | Work::ReadJob { .. } | Work::WriteJob { .. } => return None,
    };
    let may_wait = |row: &Row| !matches!(row.handler, Handler::Read(_) | Handler::Write(_));
    let rows = invocations.iter().map(|invocation| invocation.row);
    (!rows.clone().any(may_wait)).then_some(rows)
}

impl Executor {
    /// Adds commands to the next round. Gives them back if they belong in a lane.
    pub(super) fn join_round(
        &self,
        calls: Vec<Call>,
    ) -> Result<oneshot::Receiver<SubmissionResult>, Vec<Call>> {
        let rounds = &self.shared.rounds;
        let mut commands = 0;
        let mut is_quick = |call: &Call| {
            rows(call).is_some_and(|mut rows| {
                rows.all(|row| {
                    commands += 1;
                    commands <= COMMANDS_MAX && !rounds.slow.contains(row)
                })
            })
        };
        if !calls.iter().all(&mut is_quick) {
            return Err(calls);
        }
        let only_reads = |call: &Call| call.work.only_reads() && call.waiter.is_none();
        let (kind, lane) = match calls.iter().all(only_reads) {
            true => (Kind::Reads, self.pick_read_lane()),
            false => (Kind::Writes, &self.write_lane),
        };
        let (respond, response) = oneshot::channel();
        let submission = Submission {
            calls,
            respond: Some(respond),
        };
        if rounds.gathered(kind).add(submission) {
            let round = Round {
                store: Arc::clone(&self.store),
                environment: Arc::clone(&self.environment),
                statistics: Arc::clone(&self.statistics),
                shared: Arc::clone(&self.shared),
                lane: lane.clone(),
            };
            tokio::spawn(round.run(kind));
        }
        Ok(response)
    }
}

/// One round.
struct Round {
    store: Arc<dyn Store>,
    environment: Arc<Environment>,
    statistics: Arc<ExecutorStatistics>,
    shared: Arc<Shared>,
    /// The lane of what this round does not finish.
    lane: mpsc::Sender<Submission>,
}

impl Round {
    async fn run(self, kind: Kind) {
        let rounds = &self.shared.rounds;
        let gathered = rounds.gathered(kind);
        if gathered.is_shared() {
            // After the requests that are on their way.
            tokio::task::yield_now().await;
        }
        let not_run = match kind {
            Kind::Reads => self.read(gathered.take()),
            Kind::Writes => {
                let _turn = rounds.turn.lock().await;
                self.write(gathered.take())
            }
        };
        for submission in not_run {
            // Fails if the executor has stopped, which its client is told.
            let _ = self.lane.send(submission).await;
        }
    }

    fn read(&self, submissions: Vec<Submission>) -> Vec<Submission> {
        let _vital = Vital::enter("a round of commands that read");
        let rows = rows_of(&submissions);
        let begun = Instant::now();
        let lane = ReadLane::new(
            Arc::clone(&self.store),
            Arc::clone(&self.environment),
            Arc::clone(&self.statistics),
        );
        let not_run = lane.serve_at_once(submissions);
        self.shared.rounds.slow.note_run(&rows, begun.elapsed());
        not_run
    }

    fn write(&self, mut submissions: Vec<Submission>) -> Vec<Submission> {
        // Clients that are to be woken have waited longer than those that have just come. The lane
        // serves them first.
        if !self.store.is_ready() || self.shared.waiters.has_wake_ups() {
            return submissions;
        }
        let _vital = Vital::enter("a round of commands");
        let rows = rows_of(&submissions);
        let begun = Instant::now();
        bring_together(&mut submissions);
        let batch = Batch::new(
            &*self.store,
            &self.environment,
            &self.statistics,
            &self.shared,
            Slot::new(0),
            submissions,
        );
        let (not_run, commit) = match batch.run_at_once() {
            Ok(done) => (done.not_run, done.commit_duration),
            Err(submissions) => (submissions, None),
        };
        let slow = &self.shared.rounds.slow;
        let run = begun.elapsed().saturating_sub(commit.unwrap_or_default());
        slow.note_run(&rows, run);
        if let Some(commit) = commit {
            slow.note_commit(commit);
        }
        not_run
    }
}

fn rows_of(submissions: &[Submission]) -> Vec<&'static Row> {
    let calls = submissions.iter().flat_map(|submission| &submission.calls);
    calls.filter_map(rows).flatten().collect()
}

#[cfg(test)]
mod tests;
