//! Rounds: commands that run on the thread that serves the connections.
//!
//! Passing a command to a lane's thread and its reply back costs two thread wake-ups, as much as
//! most commands. So on a store with a single writer, the thread that serves the connections works
//! as in Redis: it reads the requests that have arrived, runs them as one batch with one sync, and
//! sends the replies. It serves nobody while it runs commands, so slow commands go to the lanes.
//! See docs/understand/decisions/034-rounds.md.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::batch::{Batch, Slot, bring_together};
use super::call::{Call, Submission, SubmissionResult, Work, stopped};
use super::lanes::Lanes;
use super::read_lane::{InRound, ReadLane};
use super::rounds_state::{Added, Kind, SCRIPT_RUN_MAX};
use super::shared::Shared;
use super::statistics::ExecutorStatistics;
use super::timed::{Timed, weight};
use quoin_base::fatal_panic::Vital;
use quoin_base::stopwatch::{BusyLimit, Stopwatch};
use quoin_data::command::call::Invocation;
use quoin_data::command::row::Handler;
use quoin_data::script::runs_script;
use quoin_data::unit::context::Environment;
use quoin_store::{Store, StoreError};

/// Maximum weight of a submission's commands in a round. A longer pipeline goes to a lane, so that this thread reads the
/// next requests while it runs.
const WEIGHT_MAX: usize = 16;

/// The commands that a call runs. `None` if it cannot run in a round: work of the server itself,
/// commands that load scripts, and scripts within EXEC, which cannot leave a round alone.
fn commands(call: &Call) -> Option<&[Invocation]> {
    let is_alone = matches!(call.work, Work::Command(_));
    let invocations = call.work.invocations()?;
    let runs_here = |invocation: &Invocation| match invocation.row.handler {
        Handler::Read(_) | Handler::Write(_) => true,
        _ => is_alone && runs_script(invocation.row),
    };
    invocations.iter().all(runs_here).then_some(invocations)
}

/// Runs rounds.
pub(super) struct Round {
    store: Arc<dyn Store>,
    environment: Arc<Environment>,
    statistics: Arc<ExecutorStatistics>,
    shared: Arc<Shared>,
    reader: ReadLane,
    /// Take over what a round does not finish.
    lanes: Arc<Lanes>,
}

impl Round {
    pub(super) fn new(
        store: Arc<dyn Store>,
        environment: Arc<Environment>,
        statistics: Arc<ExecutorStatistics>,
        shared: Arc<Shared>,
        lanes: Arc<Lanes>,
    ) -> Self {
        let reader = ReadLane::new(
            Arc::clone(&store),
            Arc::clone(&environment),
            Arc::clone(&statistics),
            Arc::clone(&shared),
        );
        Self {
            store,
            environment,
            statistics,
            shared,
            reader,
            lanes,
        }
    }

    /// Runs commands in the next round. Returns them if they belong in a lane. The inner error says that the executor has
    /// stopped.
    pub(super) async fn run(
        self: &Arc<Self>,
        calls: Vec<Call>,
        reply_bytes_max: usize,
    ) -> Result<Result<SubmissionResult, StoreError>, Vec<Call>> {
        let rounds = &self.shared.rounds;
        let mut total = 0;
        let mut is_quick = |call: &Call| {
            commands(call).is_some_and(|commands| {
                total += commands.iter().map(weight).sum::<usize>();
                total <= WEIGHT_MAX && !commands.iter().any(|one| rounds.slow.contains(one))
            })
        };
        if !calls.iter().all(&mut is_quick) {
            return Err(calls);
        }
        let only_reads = |call: &Call| call.work.only_reads() && call.waiter.is_none();
        let kind = match calls.iter().all(only_reads) {
            true => Kind::Reads,
            false => Kind::Writes,
        };
        let (respond, response) = oneshot::channel();
        let submission = Submission {
            calls,
            reply_bytes_max,
            respond: Some(respond),
        };
        let is_begun = match rounds.add(kind, submission) {
            Added::Joins => true,
            Added::BeginsAlone => self.run_now(kind),
            Added::Begins => false,
        };
        if !is_begun {
            tokio::spawn(Arc::clone(self).run_gathered(kind));
        }
        Ok(response.await.map_err(|_| stopped()))
    }

    /// Runs what has been gathered. Several clients share the batch and its sync, and their replies leave together.
    async fn run_gathered(self: Arc<Self>, kind: Kind) {
        // Let requests in transit arrive first.
        tokio::task::yield_now().await;
        let rounds = &self.shared.rounds;
        let gathered = rounds.gathered(kind);
        let not_run = match kind {
            // The lane waits until there is room for the replies.
            _ if !self.shared.in_flight.has_room() => gathered.take(),
            Kind::Reads => match self.read(gathered.take(), false) {
                Ok(not_run) => not_run,
                Err(submissions) => {
                    // The write lane is changing rows.
                    let _turn = rounds.turn.lock().await;
                    self.read(submissions, true)
                        .unwrap_or_else(|not_run| not_run)
                }
            },
            Kind::Writes => {
                let _turn = rounds.turn.lock().await;
                self.write(gathered.take())
            }
        };
        self.pass_on(not_run, kind).await;
    }

    /// [`Self::run_gathered`] for a client that is alone, without waiting. Returns false if it
    /// would have to wait.
    fn run_now(self: &Arc<Self>, kind: Kind) -> bool {
        let rounds = &self.shared.rounds;
        let (true, Ok(_turn)) = (self.shared.in_flight.has_room(), rounds.turn.try_lock()) else {
            return false;
        };
        let submissions = rounds.gathered(kind).take();
        let not_run = match kind {
            Kind::Reads => self
                .read(submissions, true)
                .unwrap_or_else(|not_run| not_run),
            Kind::Writes => self.write(submissions),
        };
        if !not_run.is_empty() {
            let round = Arc::clone(self);
            tokio::spawn(async move { round.pass_on(not_run, kind).await });
        }
        true
    }

    /// Hands what a round did not finish to a lane.
    async fn pass_on(&self, submissions: Vec<Submission>, kind: Kind) {
        let lane = match kind {
            Kind::Reads => self.lanes.next_read(),
            Kind::Writes => &self.lanes.write,
        };
        for submission in submissions {
            // Fails if the executor has stopped. The client is then told.
            let _ = lane.0.send(submission).await;
        }
    }

    /// Answers submissions. Returns those that belong in a lane. `Err` has all of them if it would have to wait for
    /// the write lane.
    fn read(
        &self,
        mut submissions: Vec<Submission>,
        waits: bool,
    ) -> Result<Vec<Submission>, Vec<Submission>> {
        let _vital = Vital::enter("a round of commands that read");
        let commands = timed(&submissions);
        let stopwatch = Stopwatch::start();
        let in_round = InRound {
            script_limit: script_limit(stopwatch),
            waits,
        };
        let served = self.reader.serve_at_once(&mut submissions, in_round);
        if served.is_busy {
            return Err(submissions);
        }
        self.note_run(&commands, served.late, stopwatch.elapsed(), &stopwatch);
        Ok(submissions)
    }

    fn write(&self, mut submissions: Vec<Submission>) -> Vec<Submission> {
        // Clients waiting to be woken have waited longer than those that have just come. The lane serves them first.
        if !self.store.is_ready() || self.shared.waiters.has_wake_ups() {
            return submissions;
        }
        let _vital = Vital::enter("a round of commands");
        let commands = timed(&submissions);
        let stopwatch = Stopwatch::start();
        bring_together(&mut submissions);
        let batch = Batch::new(
            &*self.store,
            &self.environment,
            &self.statistics,
            &self.shared,
            Slot::new(0),
            submissions,
        );
        let slow = &self.shared.rounds.slow;
        match batch.run_at_once(script_limit(stopwatch)) {
            Ok(done) => {
                let run = done.run_duration();
                self.note_run(&commands, done.late, run, &stopwatch);
                if let Some(wait) = done.commit_wait {
                    slow.note_commit(wait);
                }
                done.not_run
            }
            Err(submissions) => {
                self.note_run(&commands, None, stopwatch.elapsed(), &stopwatch);
                submissions
            }
        }
    }

    /// Records how long commands ran. If a script was given up, it is blamed for a long run.
    fn note_run(
        &self,
        commands: &[Timed],
        late: Option<Timed>,
        run: Duration,
        stopwatch: &Stopwatch,
    ) {
        let slow = &self.shared.rounds.slow;
        match late {
            Some(script) => slow.note_late(&script, run),
            None => slow.note_run(commands, run, stopwatch),
        }
    }
}

/// How long each script of a round may take.
fn script_limit(stopwatch: Stopwatch) -> BusyLimit {
    BusyLimit {
        stopwatch,
        max: SCRIPT_RUN_MAX,
    }
}

fn timed(submissions: &[Submission]) -> Vec<Timed> {
    let calls = submissions.iter().flat_map(|submission| &submission.calls);
    let commands = calls.filter_map(commands).flatten();
    commands.map(Timed::of).collect()
}

#[cfg(test)]
mod tests;
