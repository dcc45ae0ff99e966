//! Whether a client is alone, and whose turn it is to run a batch.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tokio::sync::Mutex;

use super::call::{Call, Work};
use crate::types::tracking::NO_CLIENT;

/// A client is alone after so many submissions without one of somebody else.
pub(super) const SUBMISSIONS_MIN: u32 = 8;

/// Whether one client is alone, and whose turn it is.
#[derive(Default)]
pub(super) struct LoneClient {
    /// Locked while a batch runs: there is one at a time.
    pub(super) turn: Mutex<()>,
    /// The client of the last submission.
    client: AtomicU64,
    /// Submissions of that client since the last one of another.
    submissions: AtomicU32,
}

impl LoneClient {
    /// Counts a submission. Returns whether its client is alone.
    pub(super) fn note(&self, calls: &[Call]) -> bool {
        let client = match calls.first().map(|call| &call.work) {
            Some(Work::Command(invocation)) => invocation.origin.client,
            _ => NO_CLIENT,
        };
        if client == NO_CLIENT || self.client.swap(client, Ordering::Relaxed) != client {
            self.forget();
            return false;
        }
        self.submissions.fetch_add(1, Ordering::Relaxed) >= SUBMISSIONS_MIN
    }

    /// The client is not alone for a while, even if nobody else comes.
    pub(super) fn forget(&self) {
        self.submissions.store(0, Ordering::Relaxed);
    }
}
