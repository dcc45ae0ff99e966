//! Copies the journal into the archive while the store is in use.
//!
//! This runs in its own thread. If the archive is on a network that does not answer, only the
//! journal's next switch has to wait.

use std::io;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::ArchiveError;
use super::command::{ArchiveCommand, CommandError};
use super::segments::Segments;
use super::write::Archive;
use crate::journal::{Journal, Part, Survey};
use crate::marker::StoreId;
use crate::shared::{Shared, guarded};
use quoin_base::log_throttle::LogThrottle;
use quoin_base::threads;

/// Interval at which the thread tries again, or checks for something to archive.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The status of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArchiveStatus {
    /// The last commit durable in the archive.
    pub last: Option<u64>,
    /// Why commits cannot be archived now. `None` if they can.
    pub error: Option<String>,
    /// The status of the command that ships files, if there is one.
    pub command: Option<CommandStatus>,
}

/// The status of the archive's command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandStatus {
    /// Files shipped since the start.
    pub files: u64,
    /// How often it has failed since the start.
    pub failures: u64,
    /// The last commit shipped since the start.
    pub last: Option<u64>,
    /// Files waiting to be shipped.
    pub waiting: u64,
    /// Why its last run failed. `None` if it did not.
    pub error: Option<String>,
}

/// The archive of an open store.
#[derive(Debug)]
pub(in super::super) struct Keeper {
    archive: Mutex<Archive>,
    segments: Segments,
    /// The status, readable without waiting for a write to the archive.
    status: Mutex<ArchiveStatus>,
    log: LogThrottle,
    /// Throttles the warnings about the command.
    command_log: LogThrottle,
}

impl Keeper {
    /// Opens the archive of a store whose last commit is `applied`. Copies the journal's files into
    /// it, because they are overwritten next.
    ///
    /// # Errors
    /// If the archive has commits that the store does not have.
    pub(in super::super) fn open(
        archive: &Path,
        store: StoreId,
        data_dir: &Path,
        applied: u64,
    ) -> Result<Self, ArchiveError> {
        let mut archive = Archive::open(archive, store)?;
        let archived = archive.last();
        if let Some(archived) = archived
            && archived > applied
        {
            return Err(ArchiveError::Ahead {
                folder: archive.folder().to_owned(),
                archived,
                applied,
            });
        }
        let failed = || ArchiveError::io("read the journal in", data_dir);
        let survey = Survey::of(data_dir).map_err(failed())?;
        let first = survey.first().unwrap_or(applied + 1);
        let after = archived.unwrap_or(0).max(first.saturating_sub(1));
        let mut refused = None;
        let read = survey.read(after, |header, body| {
            if header.sequence > applied {
                return Ok(());
            }
            archive
                .append(header.sequence, header.time_ms, body)
                .map_err(|error| {
                    refused = Some(error);
                    io::Error::other("a commit was not archived")
                })
        });
        if let Some(error) = refused {
            return Err(error);
        }
        read.map_err(failed())?;
        archive.sync()?;
        let folder = archive.folder().display();
        match archived {
            None => tracing::info!(%folder, "the archive begins with commit {}", after + 1),
            Some(archived) if after > archived => tracing::warn!(
                %folder,
                "the archive lacks the commits from {} to {after}: no older backup can be restored \
                 past them; make a backup now",
                archived + 1
            ),
            Some(_) => {}
        }
        if archive.last().is_some_and(|last| last < applied) {
            tracing::warn!(
                %folder,
                "the archive ends with commit {}, but the store has {applied}: the commits between \
                 them cannot be read from the journal; make a backup now",
                archive.last().unwrap_or(0)
            );
        }
        let status = ArchiveStatus {
            last: archive.last(),
            ..ArchiveStatus::default()
        };
        Ok(Self {
            segments: archive.segments(),
            archive: Mutex::new(archive),
            status: Mutex::new(status),
            log: LogThrottle::default(),
            command_log: LogThrottle::default(),
        })
    }

    pub(in super::super) fn status(&self) -> ArchiveStatus {
        self.lock_status().clone()
    }

    /// Archives the journal's closed file, if there is one. Returns whether no closed file is left.
    pub(in super::super) fn take_closed(&self, journal: &Journal) -> bool {
        let Some(part) = journal.closed() else {
            return true;
        };
        let is_taken = self.take(&part);
        if is_taken {
            journal.forget_closed(&part);
        }
        is_taken
    }

    /// Archives the whole journal. Call it once nothing more is appended. Returns whether that
    /// succeeded.
    pub(in super::super) fn take_all(&self, journal: &Journal) -> bool {
        self.take_closed(journal)
            && match journal.current() {
                Ok(part) => self.take(&part),
                Err(_) => false,
            }
    }

    /// Removes old segments. See [`Segments::prune`].
    pub(in super::super) fn prune(
        &self,
        in_backup: u64,
        until_ms: u64,
    ) -> Result<usize, ArchiveError> {
        // Does not take the archive's lock: removing many files may take long, and commits are
        // archived meanwhile.
        self.segments.prune(in_backup, until_ms)
    }

    /// Notes that a command is configured and has not run yet.
    pub(super) fn expect_command(&self) {
        self.lock_status().command = Some(CommandStatus::default());
    }

    /// Runs the command for the oldest complete file, and removes that file. A file whose first
    /// commit is older than `age_max` counts as complete. Returns whether there was one.
    pub(super) fn ship_next(
        &self,
        command: &ArchiveCommand,
        age_max: Duration,
        is_late: &dyn Fn(Duration) -> bool,
    ) -> Result<bool, CommandError> {
        let mut name = String::new();
        let shipped = self.try_ship(command, age_max, is_late, &mut name);
        let mut status = self.lock_status();
        let noted = status.command.get_or_insert_default();
        match &shipped {
            Ok(Some(last)) => {
                noted.files += 1;
                noted.last = Some(*last);
                noted.waiting = noted.waiting.saturating_sub(1);
            }
            Ok(None) => {}
            Err(_) => noted.failures += 1,
        }
        noted.error = shipped.as_ref().err().map(ToString::to_string);
        drop(status);
        if let Err(error) = &shipped
            && let Some(more) = self.command_log.pass()
        {
            tracing::warn!(
                file = name,
                %error,
                "journal-archive-command failed: the file stays, and the command is retried{more}"
            );
        }
        shipped.map(|shipped| shipped.is_some())
    }

    /// Returns the last commit of the file that was shipped.
    fn try_ship(
        &self,
        command: &ArchiveCommand,
        age_max: Duration,
        is_late: &dyn Fn(Duration) -> bool,
        name: &mut String,
    ) -> Result<Option<u64>, CommandError> {
        let ended = {
            let mut archive = self.archive.lock().unwrap_or_else(PoisonError::into_inner);
            archive.end_old_segment(age_max);
            archive.ended_segments()?
        };
        let waiting = u64::try_from(ended.len()).unwrap_or(u64::MAX);
        self.lock_status().command.get_or_insert_default().waiting = waiting;
        // Without the archive's lock, so that commits are archived while files are read and the
        // command runs.
        for (first, path) in ended {
            let Some(last) = self.segments.last_of(first, &path)? else {
                // It was created but never written to.
                continue;
            };
            *name = self.segments.name_of(first);
            command.run(&path, name, is_late)?;
            self.segments.remove_shipped(&path, last)?;
            return Ok(Some(last));
        }
        Ok(None)
    }

    fn lock_status(&self) -> MutexGuard<'_, ArchiveStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, part: &Part) -> bool {
        let mut archive = self.archive.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = try_take(&mut archive, part);
        if let Err(error) = &taken
            && let Some(more) = self.log.pass()
        {
            tracing::warn!(
                %error,
                "cannot archive commits: the journal grows until this works again, and writes are \
                 refused when it is full{more}"
            );
        }
        let mut status = self.lock_status();
        status.last = archive.last();
        status.error = taken.as_ref().err().map(ToString::to_string);
        taken.is_ok()
    }
}

fn try_take(archive: &mut Archive, part: &Part) -> Result<(), ArchiveError> {
    let after = archive.last().unwrap_or(0);
    part.read(|header, body| {
        if header.sequence > after {
            archive.append(header.sequence, header.time_ms, body)?;
        }
        Ok::<_, ArchiveError>(())
    })?;
    archive.sync()
}

impl From<io::Error> for ArchiveError {
    /// An error of reading the journal.
    fn from(source: io::Error) -> Self {
        Self::Journal(source)
    }
}

/// The thread that archives. It ends when this value is dropped.
pub(in super::super) struct Archiving {
    /// `None` once the thread was asked to end.
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Archiving {
    pub(in super::super) fn start(
        keeper: Arc<Keeper>,
        journal: Arc<Journal>,
        shared: Arc<Shared>,
    ) -> io::Result<Self> {
        let (wake, woken) = mpsc::sync_channel(1);
        let thread = threads::spawn("store-archive", move || {
            guarded(&shared, || run(&keeper, &journal, &woken));
        })?;
        Ok(Self {
            wake: Some(wake),
            thread: Some(thread),
        })
    }

    /// Wakes the thread to archive a closed file.
    pub(in super::super) fn wake(&self) {
        if let Some(wake) = &self.wake {
            // If the channel is full, the thread is about to wake anyway.
            let _ = wake.try_send(());
        }
    }
}

impl Drop for Archiving {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            // The thread has already reported its panic.
            let _ = thread.join();
        }
    }
}

fn run(keeper: &Keeper, journal: &Journal, woken: &Receiver<()>) {
    while woken.recv_timeout(RETRY_INTERVAL) != Err(RecvTimeoutError::Disconnected) {
        keeper.take_closed(journal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pruning_does_not_wait_for_what_is_being_archived() {
        let [archive, data] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let store = StoreId::from_bytes([1; 16]);
        let keeper = Keeper::open(archive.path(), store, data.path(), 0).unwrap();
        let writing = keeper.archive.lock().unwrap();
        std::thread::scope(|scope| {
            let pruning = scope.spawn(|| keeper.prune(1, 1));
            let started = std::time::Instant::now();
            while !pruning.is_finished() && started.elapsed() < Duration::from_secs(30) {
                std::thread::sleep(Duration::from_millis(1));
            }
            let is_finished = pruning.is_finished();
            drop(writing);
            assert!(is_finished);
            assert_eq!(pruning.join().unwrap().unwrap(), 0);
        });
    }
}
