//! The embedded store: one folder on one machine, with LMDB.
//!
//! One transaction writes at a time. Any number of them read snapshots. A commit appends a record to
//! the [journal] and puts its rows into the [overlay], in memory. Later a [drain] writes the rows of
//! many commits into LMDB's file, and a [checkpoint] syncs that file. After a crash the journal has
//! everything since the last checkpoint.
//!
//! A second write transaction waits for the first, so never open two on one thread.

mod archive;
mod backup;
mod bulk;
mod checkpoint;
mod checksum;
mod create;
mod data_file;
mod drain;
mod error;
mod folder;
mod identity;
mod inspect;
mod journal;
mod layer;
mod marker;
mod merge;
mod opening;
mod overlay;
mod replay;
mod restore;
mod rewrite;
mod room;
mod rows;
mod scan;
mod sync;
mod table;
mod transaction;
mod undo;
mod verify;
mod watch;
mod writer;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use heed::{Env, WithoutTls};

use self::archive::Keeper;
use self::checkpoint::Checkpoint;
use self::identity::OpenFiles;
use self::journal::Journal;
use self::opening::Files;
use self::overlay::Overlay;
use self::room::Room;
use self::sync::{SyncRequest, Syncer};
use self::table::{RowFormat, Rows};
use self::transaction::{EmbeddedSnapshot, EmbeddedTransaction};
use self::watch::WatchRegistry;
use self::writer::WriterLock;
use super::{Capabilities, ReadTransaction, Store, StoreError, StoreFuture, Transaction, Watched};
use crate::limits;
use crate::log_throttle::LogThrottle;
use crate::random::{Random, SystemRandom};

pub use self::archive::{ArchiveError, ArchiveStatus, Archived, Limit, Reached, read_archive};
pub use self::backup::Moment;
pub use self::bulk::{BulkError, Written};
pub use self::checksum::DamagedRow;
pub use self::data_file::DataFileError;
pub use self::error::{OpenError, Refusal};
pub use self::folder::{has_store, is_in_use};
pub use self::inspect::{CheckpointState, Inspection, JournalFile, inspect};
pub use self::journal::Gap as JournalGap;
pub use self::marker::StoreId;
pub use self::restore::{Replaying, Restoration, RestoreError};
pub use self::rewrite::{Compacted, compact, make_store};
pub use self::verify::Verified;

/// When an acknowledged write is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FsyncPolicy {
    /// Before it is acknowledged. Every commit is synced, and a power failure loses nothing.
    #[default]
    Always,
    /// Within about a second. If syncs take longer, writes wait, so that no more than two seconds
    /// of them are not on the disk. A crash of the process loses nothing. A power failure or a
    /// crash of the operating system loses the writes of the last second or two: the store goes
    /// back to an earlier state.
    EverySecond,
}

/// How to open an embedded store.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddedOptions {
    /// When commits are synced.
    pub fsync: FsyncPolicy,
    /// Largest size of the data file, in bytes, rounded down to a multiple of 64 KiB. It is
    /// reserved as address space, not as memory or disk.
    pub map_bytes: usize,
    /// Whether to open a copy of a folder that was not closed cleanly. Its files may be of
    /// different moments.
    pub accepts_copy: bool,
    /// Whether to open a store whose journal is damaged, without the commits from the damage on.
    pub accepts_journal_loss: bool,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self {
            fsync: FsyncPolicy::default(),
            map_bytes: limits::EMBEDDED_MAP_BYTES,
            accepts_copy: false,
            accepts_journal_loss: false,
        }
    }
}

/// A store in its own folder, which is locked while it is open.
pub struct EmbeddedStore {
    // Dropped in this order: the sync thread ends, the files are closed, and only then is the
    // folder unlocked.
    syncer: Option<Syncer>,
    journal: Arc<Journal>,
    fsync: FsyncPolicy,
    rows: Rows,
    environment: Env<WithoutTls>,
    shared: Arc<Shared>,
    folder: PathBuf,
    summary: Summary,
    keeper: Option<Arc<Keeper>>,
    /// Size of the journal above which transactions wait, in bytes.
    journal_bytes_max: u64,
    _open: OpenFiles,
    _lock: File,
}

/// What was found when a store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// The store's id.
    pub id: StoreId,
    /// Whether it has just been created.
    pub is_new: bool,
    /// The format of the folder.
    pub format: u32,
    /// Rows in the data file. There are several for each key and element.
    pub rows: u64,
    /// Length of the data file.
    pub data_bytes: u64,
}

/// What the store shares with its transactions and with the sync thread.
#[derive(Debug, Default)]
struct Shared {
    watches: Arc<WatchRegistry>,
    /// The failure that broke the store. Every later transaction is refused.
    broken: OnceLock<StoreError>,
    writer: WriterLock,
    overlay: Overlay,
    /// A commit has been made since the last checkpoint began.
    is_unsynced: AtomicBool,
    /// Consecutive drains and checkpoints that found no room on the disk.
    checkpoints_without_room: AtomicU64,
    /// Checkpoints so far.
    checkpoints: AtomicU64,
    /// Room on the disk.
    room: Room,
    /// For the warnings that the data file lacks room.
    lacks_room: LogThrottle,
}

impl Shared {
    fn check(&self) -> Result<(), StoreError> {
        match self.broken.get() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    fn failed(&self, error: StoreError) -> StoreError {
        if matches!(error, StoreError::Fatal(_)) {
            return self.broken.get_or_init(|| error).clone();
        }
        error
    }

    fn committed(&self) {
        self.is_unsynced.store(true, Ordering::SeqCst);
    }
}

impl EmbeddedStore {
    /// Opens the store in `folder`. Creates it if it is missing.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(folder: &Path, options: EmbeddedOptions) -> Result<Self, OpenError> {
        Self::open_archived(folder, options, None)
    }

    /// Opens the store with an archive: a folder that keeps every commit, so that a backup can be
    /// brought to any later moment.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_archived(
        folder: &Path,
        options: EmbeddedOptions,
        archive: Option<&Path>,
    ) -> Result<Self, OpenError> {
        let (mut store, work, first) = Self::prepare_archived(folder, options, archive)?;
        let syncer = Syncer::start(work, first)
            .map_err(|error| OpenError::of_engine(folder, error.into()))?;
        store.syncer = Some(syncer);
        Ok(store)
    }

    /// Opens the store without an archive, for a test.
    #[cfg(test)]
    fn prepare(
        folder: &Path,
        options: EmbeddedOptions,
    ) -> Result<(Self, sync::Work, Checkpoint), OpenError> {
        Self::prepare_archived(folder, options, None)
    }

    /// Opens the store without starting its threads. Returns what the threads need.
    fn prepare_archived(
        folder: &Path,
        options: EmbeddedOptions,
        archive: Option<&Path>,
    ) -> Result<(Self, sync::Work, Checkpoint), OpenError> {
        let mut files = Files::open(folder, &options)?;
        if files.rows.format() == RowFormat::Plain {
            files = rewrite::upgrade(folder, files, &options)?;
        }
        let summary = files.summary(folder)?;
        let Files {
            lock,
            environment,
            rows,
            checkpoints,
            applied,
            guard: first,
            ..
        } = files;
        let refused = |error: heed::Error| OpenError::of_engine(folder, error);
        // Before the journal is overwritten.
        let keeper = archive
            .map(|archive| Keeper::open(archive, summary.id, folder, applied).map(Arc::new))
            .transpose()
            .map_err(|source| OpenError::Archive { source })?;
        // The checkpoint contains the old journal's records.
        let syncs_appends = options.fsync == FsyncPolicy::Always;
        let epoch = SystemRandom.next_u64();
        let journal = Journal::create(folder, applied + 1, epoch, syncs_appends)
            .map_err(|error| refused(error.into()))?;
        let journal = Arc::new(journal);
        let shared = Arc::new(Shared::default());
        shared.overlay.begin_after(applied);
        let data = environment.try_clone_inner_file().map_err(refused)?;
        let files = room::Files::open(folder, data).map_err(|error| refused(error.into()))?;
        let work = sync::Work {
            folder: folder.to_owned(),
            files,
            environment: environment.clone(),
            rows: rows.clone(),
            checkpoints,
            shared: Arc::clone(&shared),
            journal: Arc::clone(&journal),
            keeper: keeper.clone(),
            archiving: None,
        };
        work.measure_room().map_err(refused)?;
        let store = Self {
            syncer: None,
            journal,
            fsync: options.fsync,
            rows,
            environment,
            shared,
            folder: folder.to_owned(),
            summary,
            keeper,
            journal_bytes_max: limits::EMBEDDED_JOURNAL_BYTES_MAX,
            _open: OpenFiles::of(folder),
            _lock: lock,
        };
        Ok((store, work, first))
    }

    /// Requests a drain of closed layers.
    fn wake_drain(&self) {
        if let Some(syncer) = &self.syncer {
            syncer.wake(SyncRequest::Drain);
        }
    }

    /// Requests a checkpoint.
    fn wake_checkpoint(&self) {
        if let Some(syncer) = &self.syncer {
            syncer.wake(SyncRequest::Checkpoint);
        }
    }

    /// Writes everything into the data file, for a test.
    #[cfg(test)]
    fn drain_now(&self) {
        {
            let _writer = self.shared.writer.lock();
            self.shared.overlay.close_newest();
        }
        while let Some(closed) = self.shared.overlay.oldest_closed() {
            drain::write_layer(
                &self.environment,
                &self.rows,
                &closed,
                drain::SLICE_BYTES,
                || Ok(()),
            )
            .unwrap();
            self.shared.overlay.remove(&closed);
        }
    }

    /// Whether the data file can store a key of this length.
    fn takes_key(&self, key: &[u8]) -> bool {
        !key.is_empty() && key.len() <= self.environment.max_key_size()
    }

    /// The data folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What was found when it was opened.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Longest key that the store takes, in bytes.
    pub fn key_bytes_max(&self) -> usize {
        self.environment.max_key_size()
    }

    /// When commits are synced.
    pub fn fsync(&self) -> FsyncPolicy {
        self.fsync
    }
}

impl Store for EmbeddedStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "embedded",
            single_writer: true,
            clears_ranges_at_once: false,
            has_unknown_results: false,
            batch_bytes_soft_max: limits::EMBEDDED_BATCH_BYTES_SOFT_MAX,
            transaction_bytes_max: limits::EMBEDDED_TRANSACTION_BYTES_MAX,
            key_name_bytes_max: limits::REQUEST_BULK_BYTES_MAX,
            parallel_batches: 1,
        }
    }

    fn begin_read(&self) -> Result<Box<dyn ReadTransaction + '_>, StoreError> {
        self.shared.check()?;
        Ok(Box::new(EmbeddedSnapshot::begin(self)?))
    }

    fn begin_write(&self) -> Result<Box<dyn Transaction + '_>, StoreError> {
        self.shared.check()?;
        Ok(Box::new(EmbeddedTransaction::begin(self)?))
    }

    fn watch<'t>(&'t self, key: &[u8]) -> StoreFuture<'t, Watched> {
        let watched = || {
            self.shared.check()?;
            let changed = self.shared.watches.register(key)?;
            let value = EmbeddedSnapshot::begin(self)?.value(key)?;
            Ok(Watched {
                value,
                changed: Box::pin(changed),
            })
        };
        StoreFuture::ready(watched())
    }

    fn id(&self) -> Option<String> {
        Some(self.summary.id.to_string())
    }

    fn disk_bytes(&self) -> Option<u64> {
        self.environment.real_disk_size().ok()
    }

    fn disk_free_bytes(&self) -> Option<u64> {
        Some(self.shared.room.free_bytes()).filter(|bytes| *bytes != u64::MAX)
    }

    fn takes_growth(&self) -> bool {
        !self.shared.room.is_short()
    }
}
