//! State shared between the relay and clients that subscribe, publish, wait or track keys.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, watch};

use quoin_base::limits::RELAY_START_MAX;
use quoin_data::cluster::change_marks::Wanted;

/// State shared between the relay and clients that subscribe, publish, wait or track keys.
pub struct RelayState {
    pub(super) is_following: watch::Sender<bool>,
    pub(super) is_wanted: Notify,
    /// Whether the log may contain something to clear.
    pub(super) has_news: AtomicBool,
    /// This server's mark in the store ([`quoin_data::cluster::change_marks`]).
    pub(super) mark: tokio::sync::Mutex<Wanted>,
}

impl Default for RelayState {
    fn default() -> Self {
        Self {
            is_following: watch::Sender::new(false),
            is_wanted: Notify::new(),
            // A server that was killed may have left messages.
            has_news: AtomicBool::new(true),
            mark: tokio::sync::Mutex::default(),
        }
    }
}

impl RelayState {
    /// Makes the relay follow the log. Returns true when all messages that other servers publish from now on will be
    /// received. Returns false after a short timeout if the store does not answer. Call it after a client has
    /// subscribed.
    pub(super) async fn follow(&self) -> bool {
        let mut following = self.is_following.subscribe();
        if *following.borrow() {
            return true;
        }
        self.is_wanted.notify_one();
        let begun = following.wait_for(|is_following| *is_following);
        let follows = tokio::time::timeout(RELAY_START_MAX, begun).await.is_ok();
        if !follows {
            tracing::warn!("the store does not answer: messages of other servers may be missed");
        }
        follows
    }

    /// Records that something was written to the log.
    pub(super) fn note_news(&self) {
        self.has_news.store(true, Ordering::Relaxed);
    }
}
