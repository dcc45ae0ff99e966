//! The end of the server: whether it has been asked to stop.

use tokio::sync::watch;

/// Whether the server shall stop. Once it shall, that stays so.
#[derive(Debug, Default)]
pub(super) struct Shutdown(watch::Sender<bool>);

impl Shutdown {
    /// Asks the server to stop: it takes no new connections, and each connection ends after its
    /// current command.
    pub(super) fn begin(&self) {
        self.0.send_replace(true);
    }

    /// Whether [`Self::begin`] was called.
    pub(super) fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for [`Self::begin`].
    pub(super) async fn begun(&self) {
        // The value that is returned holds a lock and must not live on. There is no error: the
        // sender lives as long as this.
        let _ = self
            .0
            .subscribe()
            .wait_for(|is_set| *is_set)
            .await
            .map(|_| ());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_shutdown_wakes_those_who_wait_for_it_and_those_who_come_later() {
        let shutdown = Shutdown::default();
        assert!(!shutdown.has_begun());
        tokio::join!(shutdown.begun(), async {
            tokio::task::yield_now().await;
            shutdown.begin();
        });
        assert!(shutdown.has_begun());
        shutdown.begun().await;
    }
}
