//! The backups of a running server: one at a time, by a thread of its own.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::error::BackupError;
use super::folder;
use super::format::Header;
use super::priority::lower_priority;
use super::write::{Progress, Written, write};
use crate::clock::Clock;
use crate::store::StoreError;
use crate::store::embedded::{ArchiveStatus, EmbeddedStore, Moment};

/// Why a backup was not begun.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// One is being made.
    #[error("Background save already in progress")]
    AlreadyRunning,
    /// The store does not let itself be read.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// There is no thread for it.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// Makes the backups of a store that serves.
pub struct Backups {
    store: Arc<EmbeddedStore>,
    folder: PathBuf,
    clock: Arc<dyn Clock>,
    /// The last commit when the server started.
    first_commit: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: Option<Running>,
    is_scheduled: bool,
    thread: Option<JoinHandle<()>>,
    status: Status,
}

struct Running {
    begun: Instant,
    rows_total: u64,
    progress: Arc<Progress>,
}

/// What is known of backups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The last good one, also of an earlier start of the server.
    pub last: Option<LastGood>,
    /// Why the last try of this start has failed, where it has.
    pub last_error: Option<String>,
    /// How long the last try of this start took.
    pub last_duration: Option<Duration>,
    /// Good ones since the server started.
    pub saves: u64,
    /// Tries that failed since the server started.
    pub failures: u64,
}

/// A good backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastGood {
    /// Where it is.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// The last commit in it.
    pub commit: u64,
    /// The moment that it is of, in milliseconds since the Unix epoch.
    pub time_ms: i64,
}

/// How far a backup is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Current {
    /// For how long it has been made.
    pub elapsed: Duration,
    /// Rows that were written.
    pub rows: u64,
    /// Rows that there are, about.
    pub rows_total: u64,
    /// Bytes that were written.
    pub bytes: u64,
}

impl Backups {
    /// For a store whose backups lie in the folder `backups` of its own folder. What a killed
    /// server has left of an unfinished one is removed.
    pub fn new(store: Arc<EmbeddedStore>, clock: Arc<dyn Clock>) -> Self {
        let folder = store.folder().join(folder::FOLDER);
        if let Err(error) = folder::remove_unfinished(&folder) {
            tracing::warn!(%error, "what is left of an unfinished backup stays for now");
        }
        let status = Status {
            last: newest(&folder),
            ..Status::default()
        };
        Self {
            first_commit: store.last_commit(),
            store,
            folder,
            clock,
            state: Mutex::new(State {
                status,
                ..State::default()
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where they lie.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What is known of them.
    pub fn status(&self) -> Status {
        self.lock().status.clone()
    }

    /// How far the one is that is being made.
    pub fn current(&self) -> Option<Current> {
        let state = self.lock();
        let running = state.running.as_ref()?;
        let rows = running.progress.rows();
        Some(Current {
            elapsed: running.begun.elapsed(),
            rows,
            rows_total: running.rows_total.max(rows),
            bytes: running.progress.bytes(),
        })
    }

    /// The last commit of the store.
    pub fn last_commit(&self) -> u64 {
        self.store.last_commit()
    }

    /// How the archive of the journal does, where there is one.
    pub fn archive_status(&self) -> Option<ArchiveStatus> {
        self.store.archive_status()
    }

    /// Commits that the last backup does not have; where there is none, those since the start.
    pub fn commits_since(&self) -> u64 {
        let of_last = self.lock().status.last.as_ref().map(|last| last.commit);
        let since = of_last.unwrap_or(self.first_commit);
        self.store.last_commit().saturating_sub(since)
    }

    /// Begins a backup of this moment; `keep` are left of all of them when it is good (0: all).
    /// What is answered tells how it ended.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(
        self: &Arc<Self>,
        keep: u32,
    ) -> Result<oneshot::Receiver<Result<(), Arc<BackupError>>>, StartError> {
        let mut state = self.lock();
        if state.running.is_some() {
            return Err(StartError::AlreadyRunning);
        }
        // Of now, rather than of when the thread begins: what follows the command is not in it.
        let moment = self.store.moment()?;
        let header = Header {
            store: self.store.id(),
            commit: moment.commit(),
            time_ms: self.clock.now_ms(),
        };
        let progress = Arc::new(Progress::default());
        let running = Running {
            begun: Instant::now(),
            rows_total: moment.rows_about(),
            progress: Arc::clone(&progress),
        };
        let (told, ended) = oneshot::channel();
        let work = Work {
            backups: Arc::clone(self),
            progress,
            keep,
            begun: running.begun,
            told: Some(told),
        };
        let thread = Builder::new()
            .name("quoin-backup".to_owned())
            .spawn(move || work.run(moment, header))
            .map_err(StartError::Thread)?;
        if let Some(before) = state.thread.replace(thread) {
            // It is not running any more, and needs nothing of this; a panic it has reported.
            let _ = before.join();
        }
        state.running = Some(running);
        state.is_scheduled = false;
        Ok(ended)
    }

    /// Has a backup begun soon, by [`Self::start_scheduled`].
    ///
    /// # Errors
    /// Where one is being made.
    pub fn schedule(&self) -> Result<(), StartError> {
        let mut state = self.lock();
        if state.running.is_some() {
            return Err(StartError::AlreadyRunning);
        }
        state.is_scheduled = true;
        Ok(())
    }

    /// Begins a backup that was scheduled.
    pub fn start_scheduled(self: &Arc<Self>, keep: impl FnOnce() -> u32) {
        if !std::mem::take(&mut self.lock().is_scheduled) {
            return;
        }
        if let Err(error) = self.start(keep()) {
            tracing::warn!(%error, "a scheduled backup was not begun");
        }
    }

    /// Gives up the backup that is being made, and waits until its thread has ended.
    pub fn stop(&self) {
        let thread = {
            let mut state = self.lock();
            if let Some(running) = &state.running {
                running.progress.stop();
            }
            state.thread.take()
        };
        if let Some(thread) = thread {
            // A panic in there has been reported by its own thread.
            let _ = thread.join();
        }
    }
}

/// The newest backup of a folder.
fn newest(folder: &Path) -> Option<LastGood> {
    let listed = match folder::list(folder) {
        Ok(mut listed) => listed.pop()?,
        Err(error) => {
            tracing::warn!(%error, "which backups there are is not known");
            return None;
        }
    };
    Some(LastGood {
        bytes: std::fs::metadata(&listed.path).map_or(0, |found| found.len()),
        path: listed.path,
        commit: listed.commit,
        time_ms: listed.time_ms,
    })
}

/// What the thread of a backup works with. Where it panics, the next can be begun all the same.
struct Work {
    backups: Arc<Backups>,
    progress: Arc<Progress>,
    keep: u32,
    begun: Instant,
    told: Option<oneshot::Sender<Result<(), Arc<BackupError>>>>,
}

impl Work {
    fn run(mut self, moment: Moment, header: Header) {
        lower_priority();
        let folder = &self.backups.folder;
        let store = &self.backups.store;
        let written = write(store, moment, header, folder, |totals| {
            self.progress.note(totals)
        });
        self.end(written);
    }

    fn end(&mut self, written: Result<Written, BackupError>) {
        let Some(told) = self.told.take() else { return };
        let elapsed = self.begun.elapsed();
        match &written {
            Ok(written) => {
                tracing::info!(
                    file = %written.path.display(),
                    commit = written.header.commit,
                    rows = written.totals.rows,
                    bytes = written.totals.file_bytes,
                    seconds = elapsed.as_secs(),
                    "made a backup"
                );
                // Only now, when there is a newer one.
                match folder::retire(&self.backups.folder, self.keep) {
                    Ok(0) => {}
                    Ok(count) => tracing::info!(count, "removed old backups"),
                    Err(error) => tracing::warn!(%error, "old backups stay"),
                }
            }
            Err(error) => tracing::warn!(%error, "a backup has failed"),
        }
        let mut state = self.backups.lock();
        state.running = None;
        let status = &mut state.status;
        status.last_duration = Some(elapsed);
        let told_of = match written {
            Ok(written) => {
                status.saves += 1;
                status.last_error = None;
                status.last = Some(LastGood {
                    path: written.path,
                    bytes: written.totals.file_bytes,
                    commit: written.header.commit,
                    time_ms: written.header.time_ms,
                });
                Ok(())
            }
            Err(error) => {
                status.failures += 1;
                status.last_error = Some(error.to_string());
                Err(Arc::new(error))
            }
        };
        drop(state);
        // Nobody need wait for it.
        let _ = told.send(told_of);
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.end(Err(BackupError::Panicked));
    }
}

#[cfg(test)]
mod tests;
