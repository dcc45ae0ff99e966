//! The backups of a running server: one at a time, on a separate thread of low priority.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::file::{BackupError, Header};
use super::folder::{self, Progress, Written, write};
use quoin_base::clock::Clock;
use quoin_base::threads;
use quoin_config::Settings;
use quoin_store::StoreError;
use quoin_store_embedded::{ArchiveStatus, EmbeddedStore, Moment, StoreId};

const MS_PER_DAY: i64 = 24 * 60 * 60 * 1000;

/// Why a backup could not begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another is being made.
    #[error("Background save already in progress")]
    AlreadyRunning,
    /// The store cannot be read.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// Makes the backups of a running server's store.
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

/// What to keep after a new backup is complete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Backups of a store in a folder; 0 is all.
    pub backups: u32,
    /// Days of archived commits; 0 is all.
    pub archive_days: u16,
}

impl Retention {
    /// The retention from the settings.
    pub fn of(settings: &Settings) -> Self {
        Self {
            backups: settings.backups_keep,
            // The command removes files itself, once it has taken them.
            archive_days: match settings.journal_archive_command.is_empty() {
                true => settings.journal_archive_days,
                false => 0,
            },
        }
    }

    /// Removes archived commits that are too old and in a complete backup. A failure only costs
    /// disk space.
    pub(super) fn prune_archive(self, store: &EmbeddedStore, backup: Header, now_ms: i64) {
        if self.archive_days == 0 {
            return;
        }
        let kept_ms = i64::from(self.archive_days) * MS_PER_DAY;
        let until_ms = u64::try_from(now_ms.saturating_sub(kept_ms)).unwrap_or(0);
        match store.prune_archive(backup.commit, until_ms) {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "removed old files of the archive"),
            Err(error) => tracing::warn!(%error, "cannot remove old files of the archive"),
        }
    }

    /// Removes old backups of a store from a folder that has a new one.
    pub(super) fn retire(self, folder: &Path, store: StoreId) {
        match folder::retire(folder, store, self.backups) {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "removed old backups"),
            Err(error) => tracing::warn!(%error, "cannot remove old backups"),
        }
    }
}

/// The last backup, and counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The last good backup, even of an earlier server process.
    pub last: Option<LastGood>,
    /// The error of the last try of this process, if it failed.
    pub last_error: Option<String>,
    /// How long the last try of this process took.
    pub last_duration: Option<Duration>,
    /// Good backups since the server started.
    pub saves: u64,
    /// Tries that failed since the server started.
    pub failures: u64,
}

/// A good backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastGood {
    /// Its path.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// The last commit in it.
    pub commit: u64,
    /// The time of its data, in milliseconds since the Unix epoch.
    pub time_ms: i64,
}

/// The progress of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Current {
    /// The time since it began.
    pub elapsed: Duration,
    /// Rows that were written.
    pub rows: u64,
    /// Approximate number of rows.
    pub rows_total: u64,
    /// Bytes that were written.
    pub bytes: u64,
}

impl Backups {
    /// For a store with its backups in the folder `backups` of its own folder. Removes the
    /// unfinished backup of a killed server.
    pub fn new(store: Arc<EmbeddedStore>, clock: Arc<dyn Clock>) -> Self {
        let folder = store.folder().join(folder::FOLDER);
        if let Err(error) = folder::remove_unfinished(&folder) {
            tracing::warn!(%error, "cannot remove an unfinished backup");
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

    /// Their folder.
    #[cfg(test)]
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The last backup, and counters.
    pub fn status(&self) -> Status {
        self.lock().status.clone()
    }

    /// The progress of the current backup.
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

    /// The state of the journal's archive, if there is one.
    pub fn archive_status(&self) -> Option<ArchiveStatus> {
        self.store.archive_status()
    }

    /// Commits since the last backup, or since the start before the first backup.
    pub fn commits_since(&self) -> u64 {
        let of_last = self.lock().status.last.as_ref().map(|last| last.commit);
        let since = of_last.unwrap_or(self.first_commit);
        self.store.last_commit().saturating_sub(since)
    }

    /// Begins a backup of the current data. If it succeeds, older ones beyond `keep` are removed.
    /// The receiver gets the result.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(
        self: &Arc<Self>,
        keep: Retention,
    ) -> Result<oneshot::Receiver<Result<(), Arc<BackupError>>>, StartError> {
        let mut state = self.lock();
        if state.running.is_some() {
            return Err(StartError::AlreadyRunning);
        }
        // Not when the thread begins, because the backup must not contain commits made after the
        // command.
        let moment = self.store.moment()?;
        let header = Header {
            store: self.store.id(),
            commit: moment.commit(),
            time_ms: self.clock.now_ms(),
        };
        // The thread gets its work after it has started, because the end of the work takes the
        // lock.
        let (hand_over, handed) = mpsc::sync_channel::<(Work, Moment, Header)>(1);
        let thread = threads::spawn("quoin-backup", move || {
            if let Ok((work, moment, header)) = handed.recv() {
                work.run(moment, header);
            }
        });
        let thread = thread.map_err(|error| {
            state.status.failures += 1;
            state.status.last_error = Some(format!("cannot start a thread: {error}"));
            StartError::Thread(error)
        })?;
        let progress = Arc::new(Progress::default());
        let running = Running {
            begun: Instant::now(),
            rows_total: moment.rows_about(),
            progress: Arc::clone(&progress),
        };
        let (sender, ended) = oneshot::channel();
        let work = Work {
            backups: Arc::clone(self),
            progress,
            keep,
            begun: running.begun,
            sender: Some(sender),
        };
        if let Some(before) = state.thread.replace(thread) {
            // It has ended. A panic was reported already.
            let _ = before.join();
        }
        state.running = Some(running);
        state.is_scheduled = false;
        drop(state);
        // It waits for this.
        let _ = hand_over.send((work, moment, header));
        Ok(ended)
    }

    /// Makes [`Self::start_scheduled`] begin a backup.
    ///
    /// # Errors
    /// If one is being made.
    pub fn schedule(&self) -> Result<(), StartError> {
        let mut state = self.lock();
        if state.running.is_some() {
            return Err(StartError::AlreadyRunning);
        }
        state.is_scheduled = true;
        Ok(())
    }

    /// Begins a backup that was scheduled.
    pub fn start_scheduled(self: &Arc<Self>, keep: impl FnOnce() -> Retention) {
        if !std::mem::take(&mut self.lock().is_scheduled) {
            return;
        }
        if let Err(error) = self.start(keep()) {
            tracing::warn!(%error, "cannot start a scheduled backup");
        }
    }

    /// Aborts the current backup, and waits until its thread has ended.
    pub fn stop(&self) {
        let thread = {
            let mut state = self.lock();
            if let Some(running) = &state.running {
                running.progress.stop();
            }
            state.thread.take()
        };
        if let Some(thread) = thread {
            // A panic was reported by its own thread.
            let _ = thread.join();
        }
    }
}

/// The newest backup of a folder.
fn newest(folder: &Path) -> Option<LastGood> {
    let listed = match folder::list(folder) {
        Ok(mut listed) => listed.pop()?,
        Err(error) => {
            tracing::warn!(%error, "cannot list the backups");
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

/// The work of a backup's thread. If it panics, the next backup can still begin.
struct Work {
    backups: Arc<Backups>,
    progress: Arc<Progress>,
    keep: Retention,
    begun: Instant,
    sender: Option<oneshot::Sender<Result<(), Arc<BackupError>>>>,
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
        let Some(sender) = self.sender.take() else {
            return;
        };
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
                // Only after a newer one is complete.
                let Backups {
                    store,
                    folder,
                    clock,
                    ..
                } = &*self.backups;
                self.keep.retire(folder, store.id());
                self.keep
                    .prune_archive(store, written.header, clock.now_ms());
            }
            Err(error) => tracing::warn!(%error, "a backup failed"),
        }
        let mut state = self.backups.lock();
        state.running = None;
        let status = &mut state.status;
        status.last_duration = Some(elapsed);
        let result = match written {
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
        // The receiver may be gone.
        let _ = sender.send(result);
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.end(Err(BackupError::Panicked));
    }
}

/// The niceness of a background thread, up to 19.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Lowers the priority of the calling thread, on systems that have priorities of threads.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: the call takes numbers only; 0 is the calling thread.
        #[allow(unsafe_code)]
        let answer = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
        if answer != 0 {
            let error = std::io::Error::last_os_error();
            tracing::debug!(%error, "cannot lower the priority of a background thread");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use futures_util::FutureExt;

    use super::*;
    use crate::backup::file::Decoder;
    use quoin_base::clock::ManualClock;
    use quoin_base::threads::testing::without_threads;
    use quoin_store::Store;
    use quoin_store_embedded::EmbeddedOptions;

    const TIME_MS: i64 = 1_795_328_173_045;

    fn open(folder: &Path) -> Arc<EmbeddedStore> {
        let options = EmbeddedOptions {
            map_bytes: 256 << 20,
            ..EmbeddedOptions::default()
        };
        Arc::new(EmbeddedStore::open(folder, options).unwrap())
    }

    fn backups(store: &Arc<EmbeddedStore>) -> Arc<Backups> {
        let clock = Arc::new(ManualClock::at(TIME_MS));
        Arc::new(Backups::new(Arc::clone(store), clock))
    }

    fn set(store: &EmbeddedStore, key: &[u8], value: &[u8]) {
        let transaction = store.begin_write().unwrap();
        transaction.set(key, value);
        transaction.commit().now_or_never().unwrap().unwrap();
    }

    fn save(backups: &Arc<Backups>, keep: u32) -> Result<(), Arc<BackupError>> {
        let keep = Retention {
            backups: keep,
            ..Retention::default()
        };
        backups.start(keep).unwrap().blocking_recv().unwrap()
    }

    fn keys(path: &Path) -> Vec<Vec<u8>> {
        let mut decoder = Decoder::begin(std::fs::File::open(path).unwrap()).unwrap();
        let mut keys = Vec::new();
        while let Some(rows) = decoder.next_block().unwrap() {
            keys.extend(rows.map(|(key, _)| key.to_vec()));
        }
        keys
    }

    #[test]
    fn a_backup_is_of_the_moment_at_which_it_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let backups = backups(&store);
        set(&store, b"before", b"");
        let ended = backups.start(Retention::default()).unwrap();
        set(&store, b"later", b"");
        ended.blocking_recv().unwrap().unwrap();
        let last = backups.status().last.unwrap();
        assert_eq!(keys(&last.path), [b"before"]);
        assert_eq!((last.commit, last.time_ms), (1, TIME_MS));
        assert_eq!(last.bytes, last.path.metadata().unwrap().len());
        assert_eq!(backups.commits_since(), 1);
    }

    #[test]
    fn one_is_made_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let backups = backups(&store);
        for number in 0..400_u32 {
            set(&store, &number.to_be_bytes(), &vec![7; 16 * 1024]);
        }
        let ended = backups.start(Retention::default()).unwrap();
        // It may already have ended if this thread waited long for a processor.
        if let Err(error) = backups.start(Retention::default()) {
            assert_eq!(error.to_string(), "Background save already in progress");
            assert!(backups.schedule().is_err());
        }
        ended.blocking_recv().unwrap().unwrap();
        backups.stop();
        assert!(backups.current().is_none());
    }

    #[test]
    fn one_without_a_thread_fails_and_the_next_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let backups = backups(&store);
        let refused = without_threads(|| backups.start(Retention::default()).map(drop));
        assert!(matches!(refused, Err(StartError::Thread(_))), "{refused:?}");
        let status = backups.status();
        assert_eq!((status.saves, status.failures), (0, 1));
        assert!(status.last_error.unwrap().contains("thread"));
        save(&backups, 0).unwrap();
        assert_eq!(backups.status().last_error, None);
    }

    #[test]
    fn a_failure_is_told_and_leaves_the_older_ones() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let backups = backups(&store);
        save(&backups, 1).unwrap();
        let good = backups.status().last.unwrap();
        let aside = folder.path().join("aside");
        std::fs::rename(backups.folder(), &aside).unwrap();
        std::fs::write(backups.folder(), "in the way").unwrap();
        let error = save(&backups, 1).unwrap_err().to_string();
        assert!(error.contains("backups"), "{error}");
        let status = backups.status();
        assert_eq!((status.saves, status.failures), (1, 1));
        assert_eq!(status.last_error, Some(error));
        assert_eq!(status.last.unwrap(), good);
        std::fs::remove_file(backups.folder()).unwrap();
        std::fs::rename(&aside, backups.folder()).unwrap();
        save(&backups, 1).unwrap();
        assert_eq!(backups.status().last_error, None);
    }

    #[test]
    fn so_many_are_kept_and_a_restart_knows_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let backups = backups(&store);
        for number in 0..5 {
            set(&store, b"key", &[number]);
            save(&backups, 2).unwrap();
        }
        let left = folder::list(backups.folder()).unwrap();
        assert_eq!(left.len(), 2);
        let before = backups.status().last.unwrap();
        assert_eq!(left.last().unwrap().path, before.path);
        std::fs::write(backups.folder().join("quoin-x.backup.part"), "").unwrap();
        drop(backups);
        let backups = self::backups(&store);
        assert_eq!(backups.status().last.unwrap(), before);
        assert!(!backups.folder().join("quoin-x.backup.part").exists());
    }

    #[test]
    fn a_server_that_stops_gives_it_up() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let backups = backups(&store);
        for number in 0..400_u32 {
            set(&store, &number.to_be_bytes(), &vec![7; 64 * 1024]);
        }
        let ended = backups.start(Retention::default()).unwrap();
        backups.stop();
        // If it was faster than the abort, it is complete.
        let ended = ended.blocking_recv().unwrap();
        let files = std::fs::read_dir(backups.folder()).unwrap().count();
        assert_eq!(files, usize::from(ended.is_ok()));
    }
}
