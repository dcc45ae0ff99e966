//! State shared between the relay and clients that subscribe, publish, wait or track keys.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, watch};

use quoin_base::limits::RELAY_START_MAX;
use quoin_data::cluster::change_marks::Wanted;

/// State shared between the relay and clients that subscribe, publish, wait or track keys.
pub struct RelayState {
    pub(super) is_listening: watch::Sender<bool>,
    pub(super) is_wanted: Notify,
    /// Whether the log may contain something to clear.
    pub(super) has_news: AtomicBool,
    /// This server's mark in the store ([`quoin_data::cluster::change_marks`]).
    pub(super) mark: tokio::sync::Mutex<Wanted>,
}

impl Default for RelayState {
    fn default() -> Self {
        Self {
            is_listening: watch::Sender::new(false),
            is_wanted: Notify::new(),
            // A server that was killed may have left messages.
            has_news: AtomicBool::new(true),
            mark: tokio::sync::Mutex::default(),
        }
    }
}

impl RelayState {
    /// Returns true when all messages that other servers publish from now on will be received. Returns false after a
    /// short timeout if the store does not answer. Call it after a client has subscribed.
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

    /// Records that something was written to the log.
    pub(super) fn note_news(&self) {
        self.has_news.store(true, Ordering::Relaxed);
    }
}
