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

    /// For how many keys it waits.
    pub fn key_count(&self) -> usize {
        self.waiter.spec.keys.len()
    }

    /// How the wait ends. The future may be dropped, and this called again, until it has resolved.
    pub async fn outcome(&mut self) -> Outcome {
        // The executor has stopped and did nothing for the client.
        (&mut self.outcome).await.unwrap_or(Outcome::Cancelled)
    }

    /// Gives up, and returns how the wait ended. A batch may just have popped something for the client
    /// or be about to commit that. Then it belongs to this client and no other, even though the
    /// client has given up.
    pub async fn give_up(mut self) -> Outcome {
        self.waiters.cancel(&self.waiter);
        if self.waiters.is_ended(&self.waiter) {
            // An outcome is sent before the wait ends, so it is there by now if there is one.
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
