//! Opens a folder: locks it and brings the data file up to date.

use std::path::Path;

use heed::{Env, EnvFlags, EnvOpenOptions, WithoutTls};

use super::bulk::create_data_file;
use super::checkpoint::{self, Checkpoint, Checkpoints};
use super::checksum::RowFormat;
use super::data_file::{DATA_FILE, DataFile};
use super::error::{OpenError, Refusal};
use super::folder::{self, Found, of_data};
use super::lock::FolderLock;
use super::marker::{FOLDER_FORMAT, Marker};
use super::options::EmbeddedOptions;
use super::replay::{OnDamage, Replayed, check_journal, replay};
use super::store::Summary;
use super::table::{Rows, open_database, stored_format};
use super::{create, identity, in_use, journal};
use quoin_base::limits;
use quoin_base::random::SystemRandom;

/// Readers that hold a checkpoint: the current one, and the next one while it is being made.
const CHECKPOINT_READERS: u32 = 2;
/// Readers for the writer, for measuring how full the data file is, and for a backup.
const OWN_READERS: u32 = 3;
/// The map's size is a multiple of this, which is a multiple of every page size in use (4, 16 and
/// 64 KiB).
const MAP_BYTES_UNIT: usize = 64 * 1024;
/// The map is never reduced below this, in bytes.
const MAP_BYTES_MIN: usize = 1 << 30;

/// The open files of a folder whose journal has been replayed.
pub(super) struct Files {
    pub(super) lock: FolderLock,
    pub(super) environment: Env<WithoutTls>,
    pub(super) rows: Rows,
    pub(super) checkpoints: Checkpoints,
    /// Number of the last journal record that was applied.
    pub(super) applied: u64,
    /// The checkpoint that contains these records.
    pub(super) guard: Checkpoint,
    /// `None` in a folder of an older format.
    pub(super) marker: Option<Marker>,
    pub(super) is_new: bool,
}

impl Files {
    /// Locks a folder and opens its store. Creates a store if the folder is empty.
    pub(super) fn open(folder: &Path, options: &EmbeddedOptions) -> Result<Self, OpenError> {
        let (lock, found) = folder::take(folder)?;
        Self::open_locked(folder, options, lock, found)
    }

    /// Opens a folder that is already locked. `found` is what it contains.
    pub(super) fn open_locked(
        folder: &Path,
        options: &EmbeddedOptions,
        lock: FolderLock,
        found: Found,
    ) -> Result<Self, OpenError> {
        let refused = |error: heed::Error| OpenError::of_engine(folder, error);
        let io_refused = |error: std::io::Error| refused(error.into());
        let is_copy = check_copy(folder, options)?;
        create::tighten(folder).map_err(io_refused)?;
        folder::clean(folder).map_err(io_refused)?;
        let map_bytes = map_bytes(options.map_bytes);
        if map_bytes < options.map_bytes / 2 {
            tracing::warn!(
                folder = %folder.display(),
                gib_max = map_bytes >> 30,
                "little address space is left: the data file cannot grow beyond this"
            );
        }
        if found == Found::Nothing {
            create_data_file(folder, map_bytes)
                .map_err(|error| OpenError::of_bulk(folder, error))?;
        }
        let checkpoints = Checkpoints::new(folder, checkpoint::boot_id());
        let restored = checkpoints.restore().map_err(io_refused)?;
        if restored.as_ref().is_some_and(|at| at.is_of_earlier_boot) {
            tracing::warn!(
                folder = %folder.display(),
                "the system ended without syncing: the store is back at its last checkpoint"
            );
        }
        // LMDB would read beyond the end of a file that is too short.
        DataFile::open(&folder.join(DATA_FILE))
            .and_then(|data| {
                data.check_length()?;
                if is_copy {
                    // A copy of a running server's file may have pages that would crash LMDB.
                    data.check_pages(|_, _| {})?;
                }
                Ok(())
            })
            .map_err(|error| of_data(folder, error))?;
        let environment =
            open_environment(folder, map_bytes, checkpoints.are_possible()).map_err(refused)?;
        // Readers of a killed process would keep old pages forever.
        environment.clear_stale_readers().map_err(refused)?;
        let database = open_database(&environment).map_err(refused)?;
        let stored = stored_format(&environment, &database).map_err(refused)?;
        let format = folder::row_format(folder, found, stored)?;
        let marker = match (found, format) {
            (Found::Marked(marker), _) => Some(marker),
            (_, RowFormat::Plain) => None,
            (_, RowFormat::Checked) => {
                let marker = Marker::new(&SystemRandom);
                marker.write(folder).map_err(io_refused)?;
                Some(marker)
            }
        };
        identity::record(folder).map_err(io_refused)?;
        let rows = Rows::new(folder, database, format);
        // The data file may have parts of records that are not on the disk yet.
        journal::sync_files(folder).map_err(io_refused)?;
        let on_damage = if options.accepts_journal_loss {
            OnDamage::GoOn
        } else {
            OnDamage::Refuse
        };
        let lacks_files = check_journal(folder, &environment, &rows, restored.is_some(), on_damage)
            .map_err(refused)?;
        // The replay writes pages. A reader must protect the pages of the last checkpoint.
        let before = checkpoints
            .take_first(&environment, restored.as_ref())
            .map_err(refused)?;
        if !checkpoints.are_possible() {
            // This checkpoint was made while the boot id was known. Later starts must not go back
            // to it.
            let removed = checkpoints.remove();
            removed.map_err(io_refused)?;
        }
        let Replayed {
            applied,
            checkpoint: mut guard,
            is_damaged,
        } = replay(folder, &environment, &rows, &checkpoints, before, on_damage)
            .map_err(refused)?;
        if is_damaged || lacks_files {
            // If this start ends here, the next one must not report these files as missing again.
            in_use::forget(&environment, &rows).map_err(refused)?;
            guard = checkpoints.take(&environment).map_err(refused)?;
            journal::set_aside(folder).map_err(io_refused)?;
        }
        Ok(Self {
            lock,
            environment,
            rows,
            checkpoints,
            applied,
            guard,
            marker,
            is_new: found == Found::Nothing,
        })
    }

    /// What opening the store found.
    pub(super) fn summary(&self, folder: &Path) -> Result<Summary, OpenError> {
        let refused = |error: heed::Error| OpenError::of_engine(folder, error);
        let transaction = self.environment.read_txn().map_err(refused)?;
        let marker = self
            .marker
            .ok_or_else(|| OpenError::refused(folder, Refusal::MarkerDamaged))?;
        Ok(Summary {
            id: marker.id,
            is_new: self.is_new,
            format: FOLDER_FORMAT,
            rows: self.rows.count(&transaction).map_err(refused)?,
            data_bytes: self.environment.real_disk_size().map_err(refused)?,
        })
    }
}

/// Refuses a copy of a folder that was not closed cleanly, unless the options accept it. Returns
/// whether the folder is such a copy.
fn check_copy(folder: &Path, options: &EmbeddedOptions) -> Result<bool, OpenError> {
    let failed = |error: std::io::Error| OpenError::of_engine(folder, error.into());
    let is_copy = !folder::is_closed_cleanly(folder).map_err(failed)?
        && identity::is_copy(folder).map_err(failed)?;
    if is_copy && !options.accepts_copy {
        return Err(OpenError::refused(folder, Refusal::Copy));
    }
    if is_copy {
        tracing::warn!(
            folder = %folder.display(),
            "this is a copy of a folder that was not closed cleanly; opening it as requested"
        );
    }
    Ok(is_copy)
}

/// The size of the map in bytes: `bytes_max`, or less if the process may not use that much address
/// space. It may be limited (`ulimit -v`), and kernels of some ARM machines give a process at most
/// 512 GiB.
pub(super) fn map_bytes(bytes_max: usize) -> usize {
    let mut bytes = bytes_max / MAP_BYTES_UNIT * MAP_BYTES_UNIT;
    while bytes > MAP_BYTES_MIN && !has_address_space(bytes) {
        bytes = bytes / 2 / MAP_BYTES_UNIT * MAP_BYTES_UNIT;
    }
    bytes
}

fn has_address_space(bytes: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: it creates a new mapping that nothing else uses, and unmaps exactly that.
    #[allow(unsafe_code)]
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0);
        at != libc::MAP_FAILED && libc::munmap(at, bytes) == 0
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
        // SAFETY: NO_SYNC gives up durability only, which the journal and checkpoints provide.
        #[allow(unsafe_code)]
        unsafe {
            opening.flags(EnvFlags::NO_SYNC);
        }
    }
    // Readahead stays on: a queue is read in the order in which it was written.
    // SAFETY: the map is sound while nothing else changes or truncates the file. The folder's lock
    // keeps other servers away. `heed` refuses to open a folder twice in one process.
    #[allow(unsafe_code)]
    unsafe {
        opening.open(folder)
    }
}
