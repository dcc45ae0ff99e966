//! The shutdown of the server: whether it was requested and whether it has begun.

use tokio::sync::watch;

/// The stage of a shutdown. It only advances.
#[derive(Debug, Default)]
pub(super) struct Shutdown(watch::Sender<Stage>);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    #[default]
    Serving,
    /// Running scripts may finish. Clients are served meanwhile.
    Asked,
    /// The server stops.
    Begun,
}

impl Shutdown {
    /// Asks the server to stop when the scripts that run have ended.
    pub(super) fn ask(&self) {
        self.reach(Stage::Asked);
    }

    /// Waits for [`Self::ask`] or [`Self::begin`].
    pub(super) async fn asked(&self) {
        self.reached(Stage::Asked).await;
    }

    /// Asks the server to stop: it takes no new connections, and each connection ends after its
    /// current command.
    pub(super) fn begin(&self) {
        self.reach(Stage::Begun);
    }

    /// Whether [`Self::begin`] was called.
    pub(super) fn has_begun(&self) -> bool {
        *self.0.borrow() == Stage::Begun
    }

    /// Waits for [`Self::begin`].
    pub(super) async fn begun(&self) {
        self.reached(Stage::Begun).await;
    }

    fn reach(&self, stage: Stage) {
        self.0.send_if_modified(|now| {
            let is_later = stage > *now;
            *now = stage.max(*now);
            is_later
        });
    }

    async fn reached(&self, stage: Stage) {
        // The returned value holds a lock and must be dropped. Cannot fail, because the sender
        // lives as long as this.
        let mut stages = self.0.subscribe();
        let _ = stages.wait_for(|now| *now >= stage).await.map(|_| ());
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

    #[tokio::test]
    async fn a_server_that_is_asked_to_stop_does_not_stop_yet() {
        let shutdown = Shutdown::default();
        shutdown.ask();
        shutdown.asked().await;
        assert!(!shutdown.has_begun());
        shutdown.begin();
        shutdown.ask();
        assert!(shutdown.has_begun());
        shutdown.asked().await;
    }
}
