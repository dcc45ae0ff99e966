//! Waiting in a blocking command.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::state::{Connection, Ended, QueuedCommand};
use super::waiting::Waiting;
use crate::clients::{Unblock, WaitsFor};
use quoin_acl::log::Context;
use quoin_data::error::CommandError;
use quoin_data::unit::host::ClientRights;
use quoin_engine::{Call, Executor, Outcome, Waiter};
use quoin_resp::reply::Reply;

/// Why a wait ended without a reply.
enum Interrupted {
    /// Its timeout ended, or CLIENT UNBLOCK TIMEOUT.
    TimeUp,
    /// CLIENT UNBLOCK ERROR.
    Unblocked,
    /// The client is gone or killed, or the server stops.
    Ended,
}

impl Connection {
    /// Waits until a parked command has its reply, and puts that into the output. The client's
    /// later commands wait too. `share` is the duration of the command's first run. As in Redis,
    /// the waiting does not count.
    pub(super) async fn wait_for_outcome(
        &mut self,
        queued: QueuedCommand,
        mut waiting: Waiting,
        share: Duration,
    ) -> Result<(), Ended> {
        let client = Arc::clone(&self.session.client);
        let waiter = waiting.waiter();
        let interrupted = {
            let now_ms = self.state.clock.now_ms();
            let blocked = client.enter_block(WaitsFor::keys(waiter.keys(), now_ms));
            self.show(queued.row);
            self.flush().await?;
            let time_up = async {
                match waiting.until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            let waited = async {
                tokio::select! {
                    biased;
                    outcome = waiting.wait.outcome() => Err(outcome),
                    how = blocked.wait_unblocked() => Ok(match how {
                        Unblock::Timeout => Interrupted::TimeUp,
                        Unblock::Error => Interrupted::Unblocked,
                    }),
                    () = time_up => Ok(Interrupted::TimeUp),
                }
            };
            let waited = self.wait_while_draining(waited).await;
            waited.unwrap_or(Ok(Interrupted::Ended))
        };
        let (outcome, interrupted) = match interrupted {
            Err(outcome) => (outcome, Interrupted::TimeUp),
            Ok(interrupted) => (waiting.wait.give_up().await, interrupted),
        };
        if matches!(interrupted, Interrupted::Ended) {
            // If it was woken meanwhile, it gets that reply before the connection ends.
            self.session.is_closing = true;
        }
        // From now on it is this client's.
        self.reply_bytes += waiter.take_over();
        let mut duration = share;
        let reply = match (outcome, interrupted) {
            (Outcome::Replied(reply), _) => reply,
            (Outcome::Cancelled, Interrupted::TimeUp) if waiter.is_unseen() => {
                let started = Instant::now();
                let reply = try_once(&self.state.executor, &waiter).await;
                duration += started.elapsed();
                reply
            }
            (Outcome::Cancelled, Interrupted::TimeUp) => Reply::NullArray,
            (Outcome::Cancelled, Interrupted::Unblocked) => {
                Reply::Error("UNBLOCKED client unblocked via CLIENT UNBLOCK".to_owned())
            }
            (Outcome::Cancelled, Interrupted::Ended) => return Err(Ended),
        };
        // Messages published before it was woken come before its reply.
        if !self.defers_messages() && !self.may_notify_itself(queued.row) {
            self.put_messages().await?;
        }
        let is_refused = matches!(&reply, Reply::Error(line) if line.starts_with("NOPERM "));
        let arguments = &waiter.invocation.arguments;
        if is_refused {
            // The user's rights changed while it waited. This check adds the refusal to the log.
            let _ = self.check(Context::Toplevel, queued.row, arguments);
            self.state.statistics.record_rejection(queued.row.id);
        } else {
            duration += waiter.run_duration();
            self.record(queued.row, duration, &reply, Some(arguments));
        }
        self.answer(&reply, queued.is_answered);
        self.reply_bytes = 0;
        Ok(())
    }
}

/// Runs a timed-out command once more without waiting, because not all of its keys were read. If
/// its client may not run it any more, it finds nothing.
async fn try_once(executor: &Executor, waiter: &Waiter) -> Reply {
    let invocation = &waiter.invocation;
    let rights = executor.environment().rights.as_ref();
    let rights = rights.and_then(|rights| rights.of(invocation.origin.client));
    let is_refused = |rights: Arc<dyn ClientRights>| {
        let checked = rights.check(invocation.row.id, &invocation.arguments);
        checked.is_err()
    };
    if rights.is_some_and(is_refused) {
        return Reply::NullArray;
    }
    let call = Call::command(invocation.clone(), executor.plans());
    match executor.submit(vec![call]).await {
        Ok(finished) => finished.replies.into_iter().next(),
        Err(error) => Some(Reply::Error(CommandError::Store(error).to_line())),
    }
    .unwrap_or(Reply::NullArray)
}
