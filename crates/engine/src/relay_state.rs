//! What the relay shares with the clients that subscribe, publish and track keys.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, watch};

use quoin_base::limits::RELAY_START_MAX;

/// What the relay shares with those who subscribe, publish and track keys.
pub struct RelayState {
    pub(super) is_listening: watch::Sender<bool>,
    pub(super) is_wanted: Notify,
    /// There may be something in the log to be cleared one day.
    pub(super) has_news: AtomicBool,
    /// Whether the store has this server's mark ([`quoin_data::cluster::tracker_marks`]).
    pub(super) is_marked: tokio::sync::Mutex<bool>,
}

impl Default for RelayState {
    fn default() -> Self {
        Self {
            is_listening: watch::Sender::new(false),
            is_wanted: Notify::new(),
            // A server that was killed may have left some.
            has_news: AtomicBool::new(true),
            is_marked: tokio::sync::Mutex::default(),
        }
    }
}

impl RelayState {
    /// Returns when messages that other servers publish from now on will be heard; or, with false,
    /// after a moment, where the store does not answer. To be called after a client has subscribed.
    pub(super) async fn listen(&self) -> bool {
        let mut listening = self.is_listening.subscribe();
        if *listening.borrow() {
            return true;
        }
        self.is_wanted.notify_one();
        let listens = listening.wait_for(|is_listening| *is_listening);
        let is_heard = tokio::time::timeout(RELAY_START_MAX, listens).await.is_ok();
        if !is_heard {
            tracing::warn!("the store does not answer: messages of other servers may be missed");
        }
        is_heard
    }

    /// Something was written into the log.
    pub(super) fn note_news(&self) {
        self.has_news.store(true, Ordering::Relaxed);
    }
}
