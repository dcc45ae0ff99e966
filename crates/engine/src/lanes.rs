//! Where the lanes take submissions.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{mpsc, oneshot};

use super::call::{Call, Submission, SubmissionResult, stopped};
use quoin_store::StoreError;

/// The queue of a lane.
pub(super) struct LaneQueue(pub(super) mpsc::Sender<Submission>);

impl LaneQueue {
    /// Waits while the queue is full, and until the lane has answered.
    pub(super) async fn submit(
        &self,
        calls: Vec<Call>,
        reply_bytes_max: usize,
    ) -> Result<SubmissionResult, StoreError> {
        let (respond, response) = oneshot::channel();
        let submission = Submission {
            calls,
            reply_bytes_max,
            respond: Some(respond),
        };
        self.0.send(submission).await.map_err(|_| stopped())?;
        response.await.map_err(|_| stopped())
    }
}

/// The queues of all lanes.
pub(super) struct Lanes {
    pub(super) write: LaneQueue,
    reads: Vec<LaneQueue>,
    next_read: AtomicUsize,
}

impl Lanes {
    pub(super) fn new(
        write: mpsc::Sender<Submission>,
        reads: Vec<mpsc::Sender<Submission>>,
    ) -> Self {
        Self {
            write: LaneQueue(write),
            reads: reads.into_iter().map(LaneQueue).collect(),
            next_read: AtomicUsize::new(0),
        }
    }

    /// The read lanes take turns.
    pub(super) fn next_read(&self) -> &LaneQueue {
        let turn = self.next_read.fetch_add(1, Ordering::Relaxed);
        self.reads
            .get(turn % self.reads.len().max(1))
            .unwrap_or(&self.write)
    }
}
