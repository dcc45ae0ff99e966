//! Replies in transit from the executor to the connections.
//!
//! Each client has few of them, but there are many clients. Their total is bounded here, where replies are produced:
//! if too many are in transit, the lanes wait. A connection takes over its replies as soon as its task runs. From
//! then on they count against its client (`maxmemory-clients`). So does the reply to a blocking command that comes
//! while the connection waits for its client to take earlier output.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use quoin_base::limits::REPLIES_IN_FLIGHT_BYTES_MAX;

/// Total bytes of replies in transit.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    bytes: AtomicUsize,
    taken: Notify,
}

impl InFlight {
    /// Counts replies of this many bytes until the result is dropped.
    pub(super) fn carry(self: &Arc<Self>, bytes: usize) -> Carried {
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
        Carried {
            bytes,
            in_flight: Some(Arc::clone(self)),
        }
    }

    /// Whether more replies may be produced.
    pub(super) fn has_room(&self) -> bool {
        self.bytes.load(Ordering::SeqCst) < REPLIES_IN_FLIGHT_BYTES_MAX
    }

    /// Waits while too many replies are in transit. Connections never wait for a lane before they take their replies.
    pub(super) async fn wait_for_room(&self) {
        loop {
            let mut taken = pin!(self.taken.notified());
            // Before the check, so that no notification is missed.
            taken.as_mut().enable();
            if self.has_room() {
                return;
            }
            taken.await;
        }
    }
}

/// Counts replies as in transit until it is dropped.
#[derive(Debug, Default)]
pub struct Carried {
    bytes: usize,
    in_flight: Option<Arc<InFlight>>,
}

impl Carried {
    /// Hands the replies over to the connection. Returns their bytes.
    pub fn take_over(self) -> usize {
        self.bytes
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        if let Some(in_flight) = &self.in_flight {
            in_flight.bytes.fetch_sub(self.bytes, Ordering::SeqCst);
            in_flight.taken.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn lanes_wait_while_too_many_replies_are_on_their_way() {
        let in_flight = Arc::<InFlight>::default();
        let few = in_flight.carry(REPLIES_IN_FLIGHT_BYTES_MAX - 1);
        assert!(in_flight.wait_for_room().now_or_never().is_some());
        let many = in_flight.carry(1);
        let mut waiting = Box::pin(in_flight.wait_for_room());
        assert!(waiting.as_mut().now_or_never().is_none());
        assert_eq!(many.take_over(), 1);
        assert!(waiting.now_or_never().is_some());
        // A client that is gone takes nothing over.
        drop(few);
        assert_eq!(in_flight.bytes.load(Ordering::SeqCst), 0);
    }
}
