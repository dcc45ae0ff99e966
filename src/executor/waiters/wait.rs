//! A wait from its client's side.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Outcome, Waiter, Waiters};

/// A client's wait. It ends when this is dropped, in whatever way the connection ends: nothing is
/// popped for a client that is known to be gone.
pub struct Wait {
    waiters: Arc<Waiters>,
    waiter: Arc<Waiter>,
    outcome: oneshot::Receiver<Outcome>,
}

impl Wait {
    /// The wait of a waiter whose outcome arrives at `outcome` ([`Waiter::new`]).
    pub fn new(
        waiters: &Arc<Waiters>,
        (waiter, outcome): (Arc<Waiter>, oneshot::Receiver<Outcome>),
    ) -> Self {
        Self {
            waiters: Arc::clone(waiters),
            waiter,
            outcome,
        }
    }

    /// The waiter.
    pub fn waiter(&self) -> Arc<Waiter> {
        Arc::clone(&self.waiter)
    }

    /// How it ends. May be dropped and asked again before it has answered.
    pub async fn outcome(&mut self) -> Outcome {
        // An executor that is gone has done nothing.
        (&mut self.outcome).await.unwrap_or(Outcome::Cancelled)
    }

    /// Gives up, and answers how the wait has ended: a batch may have popped something for the
    /// client since it looked last, or be about to. That then belongs to this client and no other,
    /// for whatever reason it has given up.
    pub async fn give_up(mut self) -> Outcome {
        self.waiters.cancel(&self.waiter);
        if self.waiters.is_ended(&self.waiter) {
            // The outcome is sent before the wait ends.
            return self.outcome.try_recv().unwrap_or(Outcome::Cancelled);
        }
        self.outcome().await
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.waiters.cancel(&self.waiter);
    }
}
