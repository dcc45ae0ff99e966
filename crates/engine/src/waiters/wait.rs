//! A wait as its client sees it.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Outcome, Waiter, Waiters};

/// A client's wait. Dropping it ends the wait, however the connection ended. Nothing is popped for a client that is
/// known to be gone.
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

    /// Number of keys that it waits for.
    pub fn key_count(&self) -> usize {
        self.waiter.spec.keys.len()
    }

    /// Returns how the wait ended. Until it has, the future may be dropped and this method called again.
    pub async fn outcome(&mut self) -> Outcome {
        // The executor has stopped without doing anything for the client.
        (&mut self.outcome).await.unwrap_or(Outcome::Cancelled)
    }

    /// Gives up, and returns how the wait ended. A batch may just have popped something for the client or be about to
    /// commit that. It then belongs to this client although the client has given up.
    pub async fn give_up(mut self) -> Outcome {
        self.waiters.cancel(&self.waiter);
        if self.waiters.is_ended(&self.waiter) {
            // An outcome is sent before the wait ends. If there is one, it has arrived.
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
