//! The thread that syncs the data file each second.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use heed::{Env, WithoutTls};

use super::Shared;
use crate::limits;
use crate::store::StoreError;

/// Syncs what was committed, once a second and when it is dropped.
pub(super) struct Syncer {
    /// `None` once the thread was told to end.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    pub(super) fn start(environment: Env<WithoutTls>, shared: Arc<Shared>) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let thread = Builder::new()
            .name("store-sync".to_owned())
            .spawn(move || {
                let interval = Duration::from_millis(limits::EMBEDDED_SYNC_INTERVAL_MS);
                loop {
                    let is_last = stopped.recv_timeout(interval) != Err(RecvTimeoutError::Timeout);
                    sync(&environment, &shared);
                    if is_last {
                        return;
                    }
                }
            })?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

fn sync(environment: &Env<WithoutTls>, shared: &Shared) {
    // Cleared before the sync: a commit during it may not be covered, and asks for the next.
    if !shared.is_unsynced.swap(false, Ordering::SeqCst) {
        return;
    }
    if let Err(error) = environment.force_sync() {
        // Acknowledged writes may be lost, and a repeated sync would not say so.
        tracing::error!(%error, "cannot sync the data file");
        shared.failed(StoreError::Fatal(Arc::new(error)));
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic in there has been reported by its own thread.
            let _ = thread.join();
        }
    }
}
