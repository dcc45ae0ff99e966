//! The embedded store: one folder on one machine, by LMDB.
//!
//! One transaction writes at a time, any number read snapshots. A commit puts a record into the
//! [journal] and its rows into the [overlay], in memory; a [drain] brings them into LMDB's file
//! later, many commits at once, and [checkpoints](checkpoint) sync that. A process that dies
//! leaves a journal that has everything since the last checkpoint.
//!
//! A second write transaction waits for the first: never open two on one thread.

mod checkpoint;
mod create;
mod drain;
mod error;
mod inspect;
mod journal;
mod layer;
mod merge;
mod overlay;
mod replay;
mod room;
mod rows;
mod scan;
mod sync;
mod transaction;
mod watch;
mod writer;

#[cfg(test)]
mod tests;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use heed::types::Bytes as Raw;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, WithoutTls};

use self::checkpoint::{Checkpoint, Checkpoints};
use self::journal::Journal;
use self::overlay::Overlay;
use self::replay::OnDamage;
use self::room::Room;
use self::sync::{Syncer, Wish};
use self::transaction::{EmbeddedSnapshot, EmbeddedTransaction};
use self::watch::WatchRegistry;
use self::writer::WriterLock;
use super::{Capabilities, ReadTransaction, Store, StoreError, StoreFuture, Transaction, Watched};
use crate::limits;
use crate::log_throttle::LogThrottle;
use crate::random::{Random, SystemRandom};

pub use self::error::OpenError;
pub use self::inspect::{CheckpointState, Inspection, JournalFile, inspect};
pub use self::journal::Gap as JournalGap;

/// The file in the data folder that a running server holds locked.
const LOCK_FILE: &str = "LOCK";
/// Readers that hold a checkpoint: the last, and the next while it is being made.
const CHECKPOINT_READERS: u32 = 2;
/// The writer's snapshot, and what looks how full the data file is.
const OWN_READERS: u32 = 2;
/// The map's size is a multiple of every page size in use (4, 16 and 64 KiB).
const MAP_BYTES_UNIT: usize = 64 * 1024;

type Rows = Database<'static, Raw, Raw>;

/// When an acknowledged write is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FsyncPolicy {
    /// Before it is acknowledged: every commit is synced. Nothing is lost at a power failure.
    #[default]
    Always,
    /// Within about a second. Where syncs take longer writes wait, so that no more than two
    /// seconds of them are not on the disk. A process that dies loses nothing. A power failure or
    /// a crash of the operating system loses the writes of the last second or two: the store goes
    /// back to a state that was.
    EverySecond,
}

/// How to open an embedded store.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddedOptions {
    /// When commits are synced.
    pub fsync: FsyncPolicy,
    /// The largest that the data file can become, in bytes: address space that is reserved, not
    /// memory or disk. Rounded down to a multiple of 64 KiB.
    pub map_bytes: usize,
    /// Whether to go on where the journal is damaged, without the commits from there on.
    pub accepts_journal_loss: bool,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self {
            fsync: FsyncPolicy::default(),
            map_bytes: limits::EMBEDDED_MAP_BYTES,
            accepts_journal_loss: false,
        }
    }
}

/// A store in a folder of its own, which it keeps locked while it lives.
pub struct EmbeddedStore {
    // Dropped in this order: the thread that syncs ends, the files are closed, and only then is
    // the folder free for the next.
    syncer: Option<Syncer>,
    journal: Arc<Journal>,
    fsync: FsyncPolicy,
    rows: Rows,
    environment: Env<WithoutTls>,
    shared: Arc<Shared>,
    folder: PathBuf,
    _lock: File,
}

/// What the store shares with its transactions and with the thread that syncs.
#[derive(Debug, Default)]
struct Shared {
    watches: Arc<WatchRegistry>,
    /// The failure after which nothing is certain any more; every later transaction is refused.
    broken: OnceLock<StoreError>,
    writer: WriterLock,
    overlay: Overlay,
    /// A commit has been made since the last checkpoint began.
    is_unsynced: AtomicBool,
    /// How many drains and checkpoints in a row have found no room on the disk.
    checkpoints_without_room: AtomicU64,
    /// Checkpoints that were made.
    checkpoints: AtomicU64,
    /// How much more can be taken.
    room: Room,
    /// Of the warnings that the data file lacks room.
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
    /// Opens the store in `folder`, which is made where it is missing.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(folder: &Path, options: EmbeddedOptions) -> Result<Self, OpenError> {
        let (mut store, work, first) = Self::prepare(folder, options)?;
        let syncer = Syncer::start(work, first)
            .map_err(|error| OpenError::of_engine(folder, error.into()))?;
        store.syncer = Some(syncer);
        Ok(store)
    }

    /// The store without its thread, what that works with, and the checkpoint so far.
    fn prepare(
        folder: &Path,
        options: EmbeddedOptions,
    ) -> Result<(Self, sync::Work, Checkpoint), OpenError> {
        let lock = lock_folder(folder)?;
        let refused = |error: heed::Error| OpenError::of_engine(folder, error);
        let map_bytes = options.map_bytes / MAP_BYTES_UNIT * MAP_BYTES_UNIT;
        create::create_data_file(folder, map_bytes).map_err(refused)?;
        let checkpoints = Checkpoints::new(folder, checkpoint::boot_id());
        let restored = checkpoints
            .restore()
            .map_err(|error| refused(error.into()))?;
        if restored.as_ref().is_some_and(|at| at.is_of_earlier_boot) {
            tracing::warn!(
                folder = %folder.display(),
                "the system ended without syncing: the store is back at its last checkpoint"
            );
        }
        let environment =
            open_environment(folder, map_bytes, checkpoints.are_possible()).map_err(refused)?;
        // Readers of a process that was killed would keep their old pages alive for ever.
        environment.clear_stale_readers().map_err(refused)?;
        let rows = open_rows(&environment).map_err(refused)?;
        // The data file may have parts of records that only the system's memory has.
        journal::sync_files(folder).map_err(|error| refused(error.into()))?;
        replay::check_journal(folder, restored.is_some()).map_err(refused)?;
        // Replaying writes pages, and no reader guards those of the last checkpoint any more.
        let before = checkpoints
            .take_first(&environment, restored.as_ref())
            .map_err(refused)?;
        if !checkpoints.are_possible() {
            // One of a system that told: later starts must not go back to it.
            let removed = checkpoints.remove();
            removed.map_err(|error| refused(error.into()))?;
        }
        let on_damage = if options.accepts_journal_loss {
            OnDamage::GoOn
        } else {
            OnDamage::Refuse
        };
        let replayed = replay::replay(folder, &environment, &rows, &checkpoints, before, on_damage)
            .map_err(refused)?;
        if replayed.is_damaged {
            journal::set_aside(folder).map_err(|error| refused(error.into()))?;
        }
        // The checkpoint holds all that is of use of the old journal.
        let syncs_appends = options.fsync == FsyncPolicy::Always;
        let epoch = SystemRandom.next_u64();
        let journal = Journal::create(folder, replayed.applied + 1, epoch, syncs_appends)
            .map_err(|error| refused(error.into()))?;
        let journal = Arc::new(journal);
        let shared = Arc::new(Shared::default());
        let data = environment.try_clone_inner_file().map_err(refused)?;
        let files = room::Files::open(folder, data).map_err(|error| refused(error.into()))?;
        let work = sync::Work {
            folder: folder.to_owned(),
            files,
            environment: environment.clone(),
            rows,
            checkpoints,
            shared: Arc::clone(&shared),
            journal: Arc::clone(&journal),
        };
        work.look_for_room().map_err(refused)?;
        let store = Self {
            syncer: None,
            journal,
            fsync: options.fsync,
            rows,
            environment,
            shared,
            folder: folder.to_owned(),
            _lock: lock,
        };
        Ok((store, work, replayed.checkpoint))
    }

    /// Has closed layers drained soon.
    fn wake_drain(&self) {
        if let Some(syncer) = &self.syncer {
            syncer.wake(Wish::Drain);
        }
    }

    /// Has a checkpoint made soon.
    fn wake_checkpoint(&self) {
        if let Some(syncer) = &self.syncer {
            syncer.wake(Wish::Checkpoint);
        }
    }

    /// Brings everything into the data file, for a test.
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
                limits::EMBEDDED_DRAIN_SLICE_BYTES,
                || Ok(()),
            )
            .unwrap();
            self.shared.overlay.remove(&closed);
        }
    }

    /// Whether the data file can have such a key.
    fn takes_key(&self, key: &[u8]) -> bool {
        !key.is_empty() && key.len() <= self.environment.max_key_size()
    }

    /// The folder that the data lies in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The longest key that the store takes, in bytes.
    pub fn key_bytes_max(&self) -> usize {
        self.environment.max_key_size()
    }

    /// When commits are synced.
    pub fn fsync(&self) -> FsyncPolicy {
        self.fsync
    }
}

/// Whether a server, or a doctor, has the store in a folder open.
pub fn is_in_use(folder: &Path) -> bool {
    let Ok(lock) = File::open(folder.join(LOCK_FILE)) else {
        return false;
    };
    matches!(lock.try_lock(), Err(TryLockError::WouldBlock))
}

fn lock_folder(folder: &Path) -> Result<File, OpenError> {
    let failed = |source| OpenError::Create {
        folder: folder.to_owned(),
        source,
    };
    create::create_folder(folder).map_err(failed)?;
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(folder.join(LOCK_FILE))
        .map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked {
            folder: folder.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

fn open_environment(
    folder: &Path,
    map_bytes: usize,
    syncs_lazily: bool,
) -> Result<Env<WithoutTls>, heed::Error> {
    let mut opening = EnvOpenOptions::new().read_txn_without_tls();
    opening
        .map_size(map_bytes)
        .max_readers(limits::EMBEDDED_READERS_MAX + CHECKPOINT_READERS + OWN_READERS);
    if syncs_lazily {
        // SAFETY: NO_SYNC gives up durability only; journal and checkpoints give it back.
        #[allow(unsafe_code)]
        unsafe {
            opening.flags(EnvFlags::NO_SYNC);
        }
    }
    // Readahead stays on: a queue is read in the order in which it was written.
    // SAFETY: the map is sound while nobody else changes or truncates the file. The folder's
    // lock keeps other servers away; `heed` itself refuses a second opening in this process.
    #[allow(unsafe_code)]
    unsafe {
        opening.open(folder)
    }
}

/// The unnamed database: a named one would cost a page more at every commit.
fn open_rows(environment: &Env<WithoutTls>) -> Result<Rows, heed::Error> {
    let transaction = environment.write_txn()?;
    let opened = environment.create_databases_and_commit(transaction, |opener, transaction| {
        opener
            .create_database::<Raw, Raw>(transaction, None)
            .map(CommitOrAbort::<_, heed::Error>::Commit)
    })?;
    opened.into()
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

    fn disk_bytes(&self) -> Option<u64> {
        self.environment.real_disk_size().ok()
    }

    fn disk_free_bytes(&self) -> Option<u64> {
        Some(self.shared.room.free_bytes())
    }

    fn takes_growth(&self) -> bool {
        !self.shared.room.is_short()
    }
}
