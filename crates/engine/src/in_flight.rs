//! Replies on their way from the executor to the connections.
//!
//! Each client may have few of them, but there are many clients. Their sum is bounded here, where the
//! replies are made: with too many on their way, the lanes wait. A connection takes its replies over
//! as soon as its task runs; from then on they count as its client's (`maxmemory-clients`). So does one
//! whose blocking command is answered while it waits for its client to take earlier output.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use quoin_base::limits::REPLIES_IN_FLIGHT_BYTES_MAX;

/// The bytes of all such replies.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    bytes: AtomicUsize,
    taken: Notify,
}

impl InFlight {
    /// Counts replies of so many bytes until the result is dropped.
    pub(super) fn carry(self: &Arc<Self>, bytes: usize) -> Carried {
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
        Carried {
            bytes,
            in_flight: Some(Arc::clone(self)),
        }
    }

    /// Whether there are not too many.
    pub(super) fn has_room(&self) -> bool {
        self.bytes.load(Ordering::SeqCst) < REPLIES_IN_FLIGHT_BYTES_MAX
    }

    /// Waits while there are too many. What takes them never waits for a lane.
    pub(super) async fn wait_for_room(&self) {
        loop {
            let mut taken = pin!(self.taken.notified());
            // Before the look, so that none is missed.
            taken.as_mut().enable();
            if self.has_room() {
                return;
            }
            taken.await;
        }
    }
}

/// Counts replies as on their way until it is dropped.
#[derive(Debug, Default)]
pub struct Carried {
    bytes: usize,
    in_flight: Option<Arc<InFlight>>,
}

impl Carried {
    /// The connection takes the replies over. Returns their bytes.
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
