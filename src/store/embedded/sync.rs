//! The thread that syncs the data file every second or few.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use heed::{Env, WithoutTls};

use super::Shared;
use super::checkpoint::{self, Checkpoint, Checkpoints};
use super::journal::{self, Journal};
use crate::limits;
use crate::store::StoreError;

/// Makes a checkpoint of what was committed, every second or few; syncs all when it is dropped.
pub(super) struct Syncer {
    /// `None` once the thread was told to end.
    wake: Option<mpsc::SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread works with.
pub(super) struct Work {
    pub(super) folder: PathBuf,
    pub(super) environment: Env<WithoutTls>,
    pub(super) checkpoints: Checkpoints,
    pub(super) shared: Arc<Shared>,
    pub(super) journal: Option<Arc<Journal>>,
}

impl Syncer {
    /// Starts the thread; `first` is the checkpoint so far.
    pub(super) fn start(work: Work, first: Checkpoint) -> io::Result<Self> {
        let (wake, woken) = mpsc::sync_channel(1);
        let thread = Builder::new()
            .name("store-sync".to_owned())
            .spawn(move || work.run(&woken, first))?;
        Ok(Self {
            wake: Some(wake),
            thread: Some(thread),
        })
    }

    /// Asks for a checkpoint now.
    pub(super) fn nudge(&self) {
        if let Some(wake) = &self.wake {
            // Where it was asked already, or has ended for a reason that the store tells, there
            // is nothing to do.
            let _ = wake.try_send(());
        }
    }
}

impl Work {
    fn run(&self, woken: &Receiver<()>, first: Checkpoint) {
        let interval = Duration::from_millis(if self.journal.is_some() {
            limits::EMBEDDED_CHECKPOINT_INTERVAL_MS
        } else {
            limits::EMBEDDED_SYNC_INTERVAL_MS
        });
        let mut last = first;
        // The journal before the switch may go only when a checkpoint is on the disk.
        let mut has_switched = false;
        while woken.recv_timeout(interval) != Err(RecvTimeoutError::Disconnected) {
            // Cleared before the sync: a commit during it may not be covered, and asks for the
            // next.
            if !self.shared.is_unsynced.swap(false, Ordering::SeqCst) {
                continue;
            }
            let switch = || match &self.journal {
                Some(journal) if !has_switched => {
                    journal.switch()?;
                    has_switched = true;
                    Ok(())
                }
                _ => Ok(()),
            };
            match self.checkpoints.take(&self.environment, switch) {
                Ok(taken) => {
                    last = taken;
                    has_switched = false;
                    let failed = &self.shared.checkpoints_without_room;
                    failed.store(0, Ordering::SeqCst);
                }
                Err(error) if checkpoint::lacks_room(&error) => {
                    tracing::warn!(%error, "no checkpoint was made; the next try may fare better");
                    self.shared.is_unsynced.store(true, Ordering::SeqCst);
                    let failed = &self.shared.checkpoints_without_room;
                    failed.fetch_add(1, Ordering::SeqCst);
                }
                Err(error) => return self.failed(error),
            }
        }
        let ended = self.environment.force_sync().and_then(|()| {
            self.checkpoints.remove()?;
            journal::remove(&self.folder)?;
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
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            // A panic in there has been reported by its own thread.
            let _ = thread.join();
        }
    }
}
