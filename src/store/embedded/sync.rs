//! The thread that syncs the data file each second.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use heed::{Env, WithoutTls};

use super::Shared;
use super::checkpoint::{Checkpoint, Checkpoints};
use crate::limits;
use crate::store::StoreError;

/// Makes a checkpoint of what was committed, once a second; syncs all when it is dropped.
pub(super) struct Syncer {
    /// `None` once the thread was told to end.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Work {
    environment: Env<WithoutTls>,
    checkpoints: Checkpoints,
    shared: Arc<Shared>,
}

impl Syncer {
    /// Makes the first checkpoint and starts the thread.
    pub(super) fn start(
        environment: Env<WithoutTls>,
        checkpoints: Checkpoints,
        shared: Arc<Shared>,
    ) -> Result<Self, heed::Error> {
        let first = checkpoints.take(&environment)?;
        let (stop, stopped) = mpsc::channel();
        let work = Work {
            environment,
            checkpoints,
            shared,
        };
        let thread = Builder::new()
            .name("store-sync".to_owned())
            .spawn(move || work.run(&stopped, first))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Work {
    fn run(&self, stopped: &Receiver<()>, first: Checkpoint) {
        let interval = Duration::from_millis(limits::EMBEDDED_SYNC_INTERVAL_MS);
        let mut last = first;
        while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
            // Cleared before the sync: a commit during it may not be covered, and asks for the
            // next.
            if !self.shared.is_unsynced.swap(false, Ordering::SeqCst) {
                continue;
            }
            match self.checkpoints.take(&self.environment) {
                Ok(taken) => last = taken,
                Err(error) => return self.failed(error),
            }
        }
        let ended = self.environment.force_sync().and_then(|()| {
            self.checkpoints.remove()?;
            Ok(())
        });
        if let Err(error) = ended {
            self.failed(error);
        }
        drop(last);
    }

    /// Acknowledged writes may be lost, and a repeated sync would not say so.
    fn failed(&self, error: heed::Error) {
        tracing::error!(%error, "cannot sync the data file");
        self.shared.failed(StoreError::Fatal(Arc::new(error)));
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
