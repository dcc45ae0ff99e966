//! Writing a backup while the store serves.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::error::BackupError;
use super::folder::{self, Unfinished};
use super::format::{Encoder, Header, Totals};
use quoin_store_embedded::{EmbeddedStore, Moment};

/// Bytes after which the file is synced, so that a client's sync never waits for much more than that.
const SYNC_BYTES: u64 = 4 * 1024 * 1024;
/// The longest pause for clients after a block.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// The progress of a backup, and whether it shall stop.
#[derive(Debug, Default)]
pub(super) struct Progress {
    rows: AtomicU64,
    bytes: AtomicU64,
    is_stopped: AtomicBool,
}

impl Progress {
    pub(super) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Aborts the backup.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Notes the progress. An error aborts the backup.
    pub(super) fn note(&self, totals: Totals) -> Result<(), BackupError> {
        self.rows.store(totals.rows, Ordering::Relaxed);
        self.bytes.store(totals.file_bytes, Ordering::Relaxed);
        if self.is_stopped.load(Ordering::Relaxed) {
            return Err(BackupError::Stopped);
        }
        Ok(())
    }
}

/// A backup that is complete and synced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its path.
    pub path: PathBuf,
    /// What it is of.
    pub header: Header,
    /// How much is in it.
    pub totals: Totals,
}

/// Writes a backup into a folder. `progress` gets the totals so far, and may abort it.
pub(super) fn write(
    store: &EmbeddedStore,
    moment: Moment,
    header: Header,
    folder: &Path,
    mut progress: impl FnMut(Totals) -> Result<(), BackupError>,
) -> Result<Written, BackupError> {
    folder::create(folder)?;
    folder::remove_unfinished(folder)?;
    let name = folder::name(header.time_ms, header.commit);
    let unfinished = Unfinished::create(folder, &name)?;
    let path = unfinished.path();
    let failed = || BackupError::io("write", &path);
    let mut encoder = Encoder::begin(&unfinished.file, &header).map_err(failed())?;
    let mut pace = Pace::new(store);
    moment.visit(|key, value| {
        if encoder.push(key, value).map_err(failed())? {
            let totals = encoder.totals();
            progress(totals)?;
            pace.after_block(encoder.out(), totals.file_bytes)
                .map_err(failed())?;
        }
        Ok::<_, BackupError>(())
    })?;
    // From here on the data file may reuse the pages that this moment needed.
    drop(moment);
    let (_, totals) = encoder.finish().map_err(failed())?;
    progress(totals)?;
    // A backup must not contain commits that its store could lose in a power failure.
    store.sync_commits()?;
    let path = unfinished.keep()?;
    Ok(Written {
        path,
        header,
        totals,
    })
}

/// Leaves half of the time to clients: while they write, each block is followed by a pause of its own
/// duration.
struct Pace<'s> {
    store: &'s EmbeddedStore,
    last_commit: u64,
    begun: Instant,
    synced_bytes: u64,
}

impl<'s> Pace<'s> {
    fn new(store: &'s EmbeddedStore) -> Self {
        Self {
            store,
            last_commit: store.last_commit(),
            begun: Instant::now(),
            synced_bytes: 0,
        }
    }

    fn after_block(&mut self, file: &File, written_bytes: u64) -> std::io::Result<()> {
        if written_bytes - self.synced_bytes >= SYNC_BYTES {
            file.sync_data()?;
            self.synced_bytes = written_bytes;
        }
        let last_commit = self.store.last_commit();
        if last_commit != self.last_commit {
            self.last_commit = last_commit;
            std::thread::sleep(self.begun.elapsed().min(PAUSE_MAX));
        }
        self.begun = Instant::now();
        Ok(())
    }
}
