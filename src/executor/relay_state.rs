//! What the relay shares with the clients that subscribe and publish.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, watch};

use crate::limits::RELAY_START_MAX;

/// What the relay shares with those who subscribe and publish.
pub struct RelayState {
    pub(super) is_listening: watch::Sender<bool>,
    pub(super) is_wanted: Notify,
    /// There may be something in the log to be cleared one day.
    pub(super) has_news: AtomicBool,
}

impl Default for RelayState {
    fn default() -> Self {
        Self {
            is_listening: watch::Sender::new(false),
            is_wanted: Notify::new(),
            // A server that was killed may have left some.
            has_news: AtomicBool::new(true),
        }
    }
}

impl RelayState {
    /// Returns when messages that other servers publish from now on will be heard; or after a
    /// moment, where the store does not answer. To be called after a client has subscribed.
    pub(super) async fn listen(&self) {
        let mut listening = self.is_listening.subscribe();
        if *listening.borrow() {
            return;
        }
        self.is_wanted.notify_one();
        let listens = listening.wait_for(|is_listening| *is_listening);
        if tokio::time::timeout(RELAY_START_MAX, listens)
            .await
            .is_err()
        {
            tracing::warn!("the store does not answer: messages of other servers may be missed");
        }
    }

    /// Something was written into the log.
    pub(super) fn note_news(&self) {
        self.has_news.store(true, Ordering::Relaxed);
    }
}
