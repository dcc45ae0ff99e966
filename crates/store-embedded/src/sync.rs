//! The thread that writes commits into the data file and makes checkpoints. If commits do not
//! sync the journal, a second thread does, because the first may be busy for a long time.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use heed::{Env, WithoutTls};

use super::archive::{Archiving, Keeper};
use super::background::BackgroundThread;
use super::checkpoint::{Checkpoint, Checkpoints};
use super::dirty::Closed;
use super::error::{self, page_not_written, write_lacks_room};
use super::journal::{self, Journal, JournalFailure};
use super::room::Files;
use super::shared::{Shared, guarded};
use super::table::Rows;
use super::{drain, in_use, writeback};
use quoin_base::threads;
use quoin_store::StoreError;

/// Time between two syncs of the journal with `fsync = everysec`.
const SYNC_INTERVAL_MS: u64 = 1_000;
/// A store makes a checkpoint once it has not been written to for this time.
const QUIET_INTERVAL_MS: u64 = 500;
/// Time between two checkpoints, unless memory or the journal needs one earlier. A row that is
/// written and removed between two checkpoints never reaches the data file.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(10);
/// Time between two checkpoints while room is short.
const SHORT_INTERVAL: Duration = Duration::from_millis(50);

/// After each slice, the drain rests for this many times as long as the slice took. Syncs of the
/// journal wait for the disk while it is written to, and so does every client.
const REST_FACTOR: u32 = 3;
/// The longest rest after a slice.
const REST_MAX: Duration = Duration::from_millis(50);
/// A drain rests no more after this time, so that checkpoints stay frequent.
const RESTS_MAX: Duration = Duration::from_secs(5);

/// Bytes that one step of the drain writes if room is short. Each row may change a different page.
const SMALL_SLICE_BYTES: usize = 16 * 1024;

/// Drains, and makes checkpoints if there were commits. Syncs everything when
/// dropped.
pub(super) struct Syncer {
    /// Syncs the journal, if commits do not.
    _journal: Option<BackgroundThread>,
    /// `None` once the thread was asked to end.
    wake: Option<mpsc::SyncSender<()>>,
    wants_checkpoint: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What the sync thread works with.
pub(super) struct Work {
    pub(super) folder: PathBuf,
    pub(super) files: Files,
    pub(super) environment: Env<WithoutTls>,
    pub(super) rows: Rows,
    pub(super) checkpoints: Checkpoints,
    pub(super) shared: Arc<Shared>,
    pub(super) journal: Arc<Journal>,
    /// The archive, if commits are kept.
    pub(super) keeper: Option<Arc<Keeper>>,
    /// The thread that writes the archive.
    pub(super) archiving: Option<Archiving>,
}

impl Syncer {
    /// Starts the thread. `first` is the current checkpoint.
    pub(super) fn start(mut work: Work, first: Checkpoint) -> io::Result<Self> {
        if let Some(keeper) = &work.keeper {
            let (keeper, journal) = (Arc::clone(keeper), Arc::clone(&work.journal));
            let archiving = Archiving::start(keeper, journal, Arc::clone(&work.shared))?;
            work.archiving = Some(archiving);
        }
        let journal = match work.journal.needs_syncs() {
            true => {
                let (journal, shared) = (Arc::clone(&work.journal), Arc::clone(&work.shared));
                Some(BackgroundThread::start(
                    "store-journal",
                    Arc::clone(&work.shared),
                    move |ended| sync_journal(&journal, &shared, &ended),
                )?)
            }
            false => None,
        };
        let (wake, woken) = mpsc::sync_channel(1);
        let shared = Arc::clone(&work.shared);
        let wants_checkpoint = Arc::new(AtomicBool::new(false));
        let wants = Arc::clone(&wants_checkpoint);
        let thread = threads::spawn("store-sync", move || {
            guarded(&shared, || work.run(&woken, &wants, first));
        })?;
        Ok(Self {
            _journal: journal,
            wake: Some(wake),
            wants_checkpoint,
            thread: Some(thread),
        })
    }

    /// Requests a checkpoint.
    pub(super) fn wake(&self) {
        self.wants_checkpoint.store(true, Ordering::SeqCst);
        if let Some(wake) = &self.wake {
            // Fails if a request is already pending, or if the thread has ended, which the store
            // reports.
            let _ = wake.try_send(());
        }
    }
}

/// Syncs the journal every second until `ended` is disconnected.
fn sync_journal(journal: &Journal, shared: &Shared, ended: &Receiver<()>) {
    let interval = Duration::from_millis(SYNC_INTERVAL_MS);
    while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
        if let Err(error) = journal.sync() {
            shared.failed(StoreError::Fatal(Arc::new(error)));
            return;
        }
    }
}

impl Work {
    fn run(&self, woken: &Receiver<()>, wants_checkpoint: &AtomicBool, first: Checkpoint) {
        let interval = Duration::from_millis(QUIET_INTERVAL_MS);
        let mut last = first;
        let mut last_at = Instant::now();
        let mut checked_at = Instant::now();
        let mut last_sequence = 0;
        // The journal before the switch is needed until a checkpoint is on the disk.
        let mut has_switched = false;
        loop {
            let is_short = self.shared.room.is_short();
            let left = match is_short {
                // The request came while the drain rested.
                _ if wants_checkpoint.load(Ordering::SeqCst) => Duration::ZERO,
                true => SHORT_INTERVAL,
                false => interval.saturating_sub(checked_at.elapsed()),
            };
            if woken.recv_timeout(left) == Err(RecvTimeoutError::Disconnected) {
                break;
            }
            // If the other file must not be overwritten yet, a checkpoint makes no room in the
            // journal.
            let is_due = wants_checkpoint.swap(false, Ordering::SeqCst) && self.may_switch();
            let mut is_quiet = false;
            if checked_at.elapsed() >= interval {
                checked_at = Instant::now();
                let sequence = self.shared.memory.sequence();
                is_quiet = sequence == last_sequence;
                last_sequence = sequence;
            }
            // Other programs may fill the disk. Data that is in the data file by then needs no more
            // space.
            let is_due = is_due || is_quiet || is_short;
            let pace = Pace::new(woken);
            let made = if is_due || last_at.elapsed() >= CHECKPOINT_INTERVAL {
                last_at = Instant::now();
                self.checkpoint(&pace, &mut has_switched, &mut last)
            } else {
                self.drain_if_large(&pace, &mut last)
            };
            self.shared.is_drain_awaited.store(false, Ordering::SeqCst);
            match made.and_then(|()| self.measure_room()) {
                Ok(()) => {
                    let failed = &self.shared.checkpoints_without_room;
                    failed.store(0, Ordering::SeqCst);
                }
                Err(error) if write_lacks_room(&error) => {
                    self.warn_of_room(&error);
                    self.shared.is_unsynced.store(true, Ordering::SeqCst);
                    let failed = &self.shared.checkpoints_without_room;
                    failed.fetch_add(1, Ordering::SeqCst);
                }
                Err(error) => return self.failed(error),
            }
        }
        if let Err(error) = self.end(&Pace::new(woken), &mut last) {
            self.failed(error);
        }
    }

    /// Writes all commits into the data file, syncs it, and releases the journal before the switch.
    fn checkpoint(
        &self,
        pace: &Pace<'_>,
        has_switched: &mut bool,
        last: &mut Checkpoint,
    ) -> Result<(), heed::Error> {
        self.journal.sync()?;
        // Cleared first, because this checkpoint may not cover a later commit, which requests the
        // next one.
        if !self.shared.is_unsynced.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        let started = Instant::now();
        let goes_on = *has_switched;
        if !goes_on {
            // Holds the writer's lock, so that the generation ends where the journal's file does.
            let mut writer = self.shared.writer.lock();
            // Records of this file must be on the disk before any record of the next file.
            self.journal.sync()?;
            if self.may_switch() {
                let is_short = self.shared.room.is_short();
                self.journal.switch(is_short).map_err(error::no_room)?;
                *has_switched = true;
            } else {
                // The previous file is not archived yet. The next checkpoint tries again.
                self.shared.is_unsynced.store(true, Ordering::SeqCst);
            }
            self.shared.memory.close(&mut writer.dirty);
        }
        if let Some(archiving) = &self.archiving {
            archiving.wake();
        }
        self.drain(pace, last)?;
        *last = self.checkpoints.take(&self.environment)?;
        tracing::debug!(
            duration_ms = started.elapsed().as_millis(),
            "took a checkpoint"
        );
        *has_switched = false;
        self.shared.checkpoints.fetch_add(1, Ordering::SeqCst);
        if goes_on {
            // This checkpoint covered the generations up to the switch. Later commits are in newer
            // ones and in a journal file that only the next checkpoint closes. Writers may be
            // waiting for that.
            self.shared.is_unsynced.store(true, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Whether the journal's other file may be overwritten.
    fn may_switch(&self) -> bool {
        self.keeper.is_none() || self.journal.closed().is_none()
    }

    /// Closes the open generation if it is large, and writes the closed ones into the data file.
    fn drain_if_large(&self, pace: &Pace<'_>, last: &mut Checkpoint) -> Result<(), heed::Error> {
        if let Some(mut writer) = self.shared.writer.try_lock()
            && writer.dirty.bytes() >= self.shared.memory.generation_bytes_max
        {
            self.shared.memory.close(&mut writer.dirty);
        }
        self.drain(pace, last)
    }

    /// Writes the closed generations into the data file.
    fn drain(&self, pace: &Pace<'_>, last: &mut Checkpoint) -> Result<(), heed::Error> {
        let mut last_closed = self.shared.memory.last_closed();
        while let Some(until) = last_closed
            && let Some(closed) = self.shared.memory.oldest_closed()
        {
            if !self.checkpoints.are_possible() {
                // The data file keeps what was written, even if it is only part of a generation.
                self.journal.sync()?;
            }
            self.write(&closed, pace, last)?;
            tracing::debug!(
                until = closed.sequence,
                rows = closed.rows.len(),
                "wrote commits into the data file"
            );
            self.shared.memory.note_drained(&closed);
            self.measure_room()?;
            last_closed = Some(until).filter(|until| closed.sequence < *until);
        }
        Ok(())
    }

    /// Writes a generation into the data file. If there is no room, it is written in small steps
    /// with a checkpoint after each. A checkpoint frees the pages that only the previous one needs,
    /// so a step needs room only for the pages that it changes.
    fn write(
        &self,
        closed: &Closed,
        pace: &Pace<'_>,
        last: &mut Checkpoint,
    ) -> Result<(), heed::Error> {
        let (environment, rows) = (&self.environment, &self.rows);
        let whole = drain::SLICE_BYTES;
        // The process may have no file descriptor left. Writing works without one.
        let data = environment.try_clone_inner_file().ok();
        let mut begun = Instant::now();
        let written = drain::write(environment, rows, closed, whole, || {
            if let Some(data) = &data {
                writeback::begin(data);
            }
            pace.rest(begun.elapsed(), self.is_hurried());
            begun = Instant::now();
            Ok(())
        });
        let error = match written.map_err(page_not_written) {
            Err(error) if write_lacks_room(&error) => error,
            written => {
                if let Some(data) = &data {
                    writeback::begin(data);
                }
                return written;
            }
        };
        tracing::debug!(%error, "writing a generation in small steps");
        let mut step = || {
            // The generation may have been closed after the last sync of the journal.
            self.journal.sync()?;
            *last = self.checkpoints.take(environment)?;
            Ok(())
        };
        step()?;
        let small = SMALL_SLICE_BYTES;
        drain::write(environment, rows, closed, small, step).map_err(page_not_written)
    }

    /// Whether writes wait for the drain, or soon may.
    fn is_hurried(&self) -> bool {
        let (memory, room) = (&self.shared.memory, &self.shared.room);
        self.shared.is_drain_awaited.load(Ordering::SeqCst)
            || memory.is_drain_behind()
            || room.is_short()
            || room.is_tight(memory.dirty_bytes() as u64)
    }

    /// Measures how much room there is.
    pub(super) fn measure_room(&self) -> Result<(), heed::Error> {
        let pending_bytes = self.shared.memory.dirty_bytes() as u64;
        let (environment, rows) = (&self.environment, &self.rows);
        let room = &self.shared.room;
        room.measure(environment, rows, &self.files, pending_bytes)
    }

    fn warn_of_room(&self, error: &heed::Error) {
        if let Some(more) = self.shared.lacks_room.pass() {
            let folder = self.folder.display();
            tracing::warn!(
                %folder,
                %error,
                "no room for the data file: commits stay in the journal{more}"
            );
        }
    }

    /// Closes the store cleanly, with everything in the data file. If there is no room for that,
    /// the journal and the checkpoint stay.
    fn end(&self, pace: &Pace<'_>, last: &mut Checkpoint) -> Result<(), heed::Error> {
        self.journal.sync()?;
        self.shared
            .memory
            .close(&mut self.shared.writer.lock().dirty);
        if let Err(error) = self.drain(pace, last) {
            if write_lacks_room(&error) {
                tracing::warn!(%error, "no room for the data file: the journal has the rest");
                return Ok(());
            }
            return Err(error);
        }
        if let Some(keeper) = &self.keeper
            && !keeper.take_all(&self.journal)
        {
            tracing::warn!("cannot archive commits: the journal keeps them");
            return Ok(());
        }
        match in_use::forget(&self.environment, &self.rows) {
            Err(error) if write_lacks_room(&error) => {
                tracing::warn!(%error, "no room for the data file: the journal stays");
                return Ok(());
            }
            forgotten => forgotten?,
        }
        self.environment.force_sync()?;
        self.checkpoints.remove()?;
        journal::remove(&self.folder)?;
        Ok(())
    }

    /// Breaks the store: acknowledged writes may be lost, and another sync would not report that.
    fn failed(&self, error: heed::Error) {
        let error = match error {
            heed::Error::Io(error) if JournalFailure::is(&error) => {
                StoreError::Fatal(Arc::new(error))
            }
            error => StoreError::Fatal(Arc::new(DataFileFailure(error))),
        };
        self.shared.failed(error);
    }
}

/// How fast a drain writes.
struct Pace<'w> {
    woken: &'w Receiver<()>,
    begun: Instant,
}

impl<'w> Pace<'w> {
    /// Begins now.
    fn new(woken: &'w Receiver<()>) -> Self {
        Self {
            woken,
            begun: Instant::now(),
        }
    }

    /// Rests after a slice that took `duration`, unless the drain is hurried or the store is being
    /// closed.
    fn rest(&self, duration: Duration, is_hurried: bool) {
        if is_hurried || self.begun.elapsed() > RESTS_MAX {
            return;
        }
        let rest = duration.saturating_mul(REST_FACTOR).min(REST_MAX);
        // Returns at once if there is a request, or nobody is left who could make one. A request
        // stays in `wants_checkpoint`.
        let _ = self.woken.recv_timeout(rest);
    }
}

#[derive(Debug, thiserror::Error)]
#[error("cannot sync the data file: {0}")]
struct DataFileFailure(heed::Error);

impl Drop for Syncer {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            // The thread has already reported its panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Duration = Duration::from_millis(20);

    /// Whether a drain rests after a slice.
    fn rests(pace: &Pace<'_>, is_hurried: bool) -> bool {
        let begun = Instant::now();
        pace.rest(SLICE, is_hurried);
        begun.elapsed() >= REST_MAX
    }

    #[test]
    fn a_drain_rests_unless_it_is_hurried() {
        let (_wake, woken) = mpsc::sync_channel(1);
        let pace = Pace::new(&woken);
        assert!(rests(&pace, false) && !rests(&pace, true));
    }

    #[test]
    fn a_request_for_a_checkpoint_ends_one_rest() {
        let (wake, woken) = mpsc::sync_channel(1);
        let pace = Pace::new(&woken);
        wake.send(()).unwrap();
        assert!(!rests(&pace, false) && rests(&pace, false));
    }

    #[test]
    fn a_drain_does_not_rest_when_the_store_is_closed() {
        let (wake, woken) = mpsc::sync_channel(1);
        let pace = Pace::new(&woken);
        drop(wake);
        assert!(!rests(&pace, false) && !rests(&pace, false));
    }
}
