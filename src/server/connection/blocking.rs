//! A client that waits in a blocking command.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Connection, Ended, Queued};
use crate::commands::Invocation;
use crate::executor::{Outcome, Wait, Waiter, Waiters};
use crate::reply::Reply;
use crate::server::clients::Unblock;

/// What a connection remembers of a blocking command that it has handed over.
pub(super) struct Waiting {
    wait: Wait,
    /// When its time is up.
    until: Option<Instant>,
}

/// Why a wait ended before there was anything.
enum Interrupted {
    /// Its time is up, or CLIENT UNBLOCK said so.
    TimeUp,
    /// CLIENT UNBLOCK ERROR.
    Unblocked,
    /// The client is gone or killed, or the server stops.
    Ended,
}

impl Waiting {
    /// Prepares a command to wait when it finds nothing. `None` where it does not wait, or its
    /// arguments are wrong, which its code will say.
    pub(super) fn prepare(
        waiters: &Arc<Waiters>,
        invocation: &Invocation,
        now_ms: i64,
    ) -> Option<Self> {
        let spec = invocation.row.waits?(&invocation.arguments, now_ms).ok()??;
        let timeout = spec.timeout;
        Some(Self {
            wait: Wait::new(waiters, Waiter::new(invocation.clone(), spec)),
            // A time beyond what the clock can hold never comes.
            until: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
        })
    }

    pub(super) fn waiter(&self) -> Arc<Waiter> {
        self.wait.waiter()
    }
}

impl Connection {
    /// Waits until a command that was parked has its reply, and queues that. The client's other
    /// commands wait too.
    pub(super) async fn wait_for_outcome(
        &mut self,
        queued: Queued,
        mut waiting: Waiting,
        share: Duration,
    ) -> Result<(), Ended> {
        let client = Arc::clone(&self.session.client);
        let interrupted = {
            let blocked = client.enter_block();
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
            let waited = self.attend(waited).await;
            waited.unwrap_or(Ok(Interrupted::Ended))
        };
        let (outcome, interrupted) = match interrupted {
            Err(outcome) => (outcome, Interrupted::TimeUp),
            Ok(interrupted) => (waiting.wait.give_up().await, interrupted),
        };
        if matches!(interrupted, Interrupted::Ended) {
            // If it was woken all the same it gets that reply, and nothing more is done for it.
            self.session.is_closing = true;
        }
        let reply = match (outcome, interrupted) {
            (Outcome::Replied(reply), _) => reply,
            (Outcome::Cancelled, Interrupted::TimeUp) => Reply::NullArray,
            (Outcome::Cancelled, Interrupted::Unblocked) => {
                Reply::Error("UNBLOCKED client unblocked via CLIENT UNBLOCK".to_owned())
            }
            (Outcome::Cancelled, Interrupted::Ended) => return Err(Ended),
        };
        // What was published before it was woken comes before its reply.
        if !self.may_hear_itself(queued.row) {
            self.put_messages().await?;
        }
        self.record(queued.row, share, &reply, None);
        self.answer(&reply, queued.is_answered);
        Ok(())
    }
}
