//! Identifies what a folder contains, before anything is written into it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::bulk::ROW_FORMAT;
use super::checkpoint::CHECKPOINT_FILE;
use super::checksum::RowFormat;
use super::create::{self, NEW_DATA_FILE, remove, remove_folder};
use super::data_file::{DATA_FILE, DataFile, DataFileError};
use super::error::{OpenError, Refusal};
use super::journal;
use super::lock::{FolderLock, LOCK_FILE};
use super::marker::{FOLDER_FORMAT, Marker, MarkerState};

/// The subfolder of an incomplete restore. It holds the files that are not complete yet.
pub(super) const UNFINISHED_RESTORE: &str = "unfinished-restore";
/// Names that a folder without a store may contain: those of file systems, and those that a refused
/// or interrupted start leaves.
const HARMLESS: [&str; 11] = [
    "lost+found",
    ".snapshot",
    ".snapshots",
    ".zfs",
    LOCK_FILE,
    "lock.mdb",
    NEW_DATA_FILE,
    "data.mdb.new-lock",
    "QUOIN.new",
    "OPEN",
    "OPEN.new",
];
/// Files that begin with [`OUR_FILES_BEGIN`]. They exist unless the store was closed cleanly.
const OUR_FILES: [&str; 3] = [CHECKPOINT_FILE, "JOURNAL.0", "JOURNAL.1"];
const OUR_FILES_BEGIN: &[u8] = b"quoin-";
/// Prefix of the store's own rows, which sort after all others.
const OUR_ROWS_BEGIN: &[u8] = b"\xff\xffquoin/";
/// Maximum number of names in the message about a folder that is not Quoin's.
const NAMES_SHOWN: usize = 5;

/// What a folder contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// No store, and no files of other programs.
    Nothing,
    /// A store with a marker.
    Marked(Marker),
    /// A store without a marker. It has an older format, or its first start (or its upgrade to this
    /// format) was interrupted.
    Unmarked,
}

/// Whether a folder has a store. Changes nothing.
///
/// # Errors
/// If the folder belongs to another program or is incomplete.
pub fn has_store(folder: &Path) -> Result<bool, OpenError> {
    identify(folder).map(|found| found != Found::Nothing)
}

/// Identifies what a folder contains. Changes nothing.
///
/// # Errors
/// If the folder belongs to another program or is incomplete.
pub(super) fn identify(folder: &Path) -> Result<Found, OpenError> {
    let refused = |refusal| OpenError::refused(folder, refusal);
    let unreadable = |source| OpenError::Access {
        folder: folder.to_owned(),
        source,
    };
    let mut names = Vec::new();
    match std::fs::read_dir(folder) {
        Ok(entries) => {
            for entry in entries {
                names.push(entry.map_err(unreadable)?.file_name());
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        // If the folder does not exist, one of its parents is a file. Creating the folder will
        // report that.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return match folder.exists() {
                true => Err(refused(Refusal::NotAFolder)),
                false => Ok(Found::Nothing),
            };
        }
        Err(error) => return Err(unreadable(error)),
    }
    let has = |name: &str| names.iter().any(|found| found == name);
    match Marker::read(folder).map_err(unreadable)? {
        MarkerState::Present(marker) if marker.format > FOLDER_FORMAT => {
            return Err(refused(Refusal::NewerFormat {
                found: marker.format,
            }));
        }
        MarkerState::Present(marker) => {
            check_data_file(folder)?;
            return Ok(Found::Marked(marker));
        }
        MarkerState::Damaged => return Err(refused(Refusal::MarkerDamaged)),
        MarkerState::Absent => {}
    }
    if has(UNFINISHED_RESTORE) {
        return Err(refused(Refusal::UnfinishedRestore));
    }
    let is_ours = has_our_files(folder).map_err(unreadable)?;
    if is_ours || has(DATA_FILE) {
        let data = check_data_file(folder)?;
        // If there is a checkpoint, the newest pages of the data file may be missing on the disk.
        if !is_ours {
            let has_our_rows = has_our_rows(folder, &data);
            if !has_our_rows.map_err(|error| of_data(folder, error))? {
                return Err(refused(Refusal::ForeignData));
            }
        }
        return Ok(Found::Unmarked);
    }
    let is_harmless = |name: &OsStr| HARMLESS.iter().any(|harmless| name == *harmless);
    let mut foreign: Vec<String> = names
        .iter()
        .filter(|name| !is_harmless(name))
        .map(|name| name.to_string_lossy().escape_debug().to_string())
        .collect();
    if foreign.is_empty() {
        return Ok(Found::Nothing);
    }
    foreign.sort();
    let more = foreign.len().saturating_sub(NAMES_SHOWN);
    foreign.truncate(NAMES_SHOWN);
    Err(refused(Refusal::ForeignFolder {
        names: foreign.join(", "),
        more,
    }))
}

/// Opens the data file, which a store must have.
fn check_data_file(folder: &Path) -> Result<DataFile, OpenError> {
    DataFile::open(&folder.join(DATA_FILE)).map_err(|error| match error {
        DataFileError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
            OpenError::refused(folder, Refusal::DataMissing)
        }
        error => of_data(folder, error),
    })
}

/// The error for a data file that cannot be used.
pub(super) fn of_data(folder: &Path, error: DataFileError) -> OpenError {
    let folder = folder.to_owned();
    match error {
        DataFileError::Io(source) => OpenError::Access { folder, source },
        error => OpenError::Refused {
            folder,
            refusal: Refusal::Data(error),
        },
    }
}

/// Whether the folder has a checkpoint or a journal of Quoin.
fn has_our_files(folder: &Path) -> io::Result<bool> {
    for name in OUR_FILES {
        let file = match File::open(folder.join(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let mut begin = Vec::new();
        file.take(OUR_FILES_BEGIN.len() as u64)
            .read_to_end(&mut begin)?;
        if begin == OUR_FILES_BEGIN {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the store was closed cleanly or is new. Its data file then has everything.
pub(super) fn is_closed_cleanly(folder: &Path) -> io::Result<bool> {
    Ok(!journal::exists(folder)? && !folder.join(CHECKPOINT_FILE).try_exists()?)
}

/// Whether a data file that was closed cleanly is Quoin's. If so, its last row is one that only
/// Quoin writes, or it has no rows because Quoin's first start was interrupted.
fn has_our_rows(folder: &Path, data: &DataFile) -> Result<bool, DataFileError> {
    Ok(match data.last_key()? {
        Some(key) => key.starts_with(OUR_ROWS_BEGIN),
        None => folder.join(LOCK_FILE).exists(),
    })
}

/// Locks a folder and identifies what it contains. Creates the folder if it is missing. Changes
/// nothing in a folder that is refused.
pub(super) fn take(folder: &Path) -> Result<(FolderLock, Found), OpenError> {
    // Lock first: a server that has the folder open would change it.
    let mut lock = FolderLock::of_existing(folder)?;
    identify(folder)?;
    if !folder.exists() {
        create::create_folder(folder).map_err(|source| OpenError::Create {
            folder: folder.to_owned(),
            source,
        })?;
    }
    lock.complete(folder)?;
    // Another process may have changed the folder in between.
    Ok((lock, identify(folder)?))
}

/// Removes files that an interrupted start or restore left in a store.
pub(super) fn clean(folder: &Path) -> io::Result<()> {
    remove(&folder.join(NEW_DATA_FILE))?;
    remove(&folder.join("data.mdb.new-lock"))?;
    // Left by a restore that was killed after it had made the folder a store.
    remove_folder(&folder.join(UNFINISHED_RESTORE))
}

/// The format of a data file's rows. `stored` is what the data file says.
pub(super) fn row_format(
    folder: &Path,
    found: Found,
    stored: Option<Result<u32, ()>>,
) -> Result<RowFormat, OpenError> {
    let refused = |refusal| Err(OpenError::refused(folder, refusal));
    match stored {
        Some(Ok(ROW_FORMAT)) => Ok(RowFormat::Checked),
        Some(Ok(found)) => refused(Refusal::NewerFormat { found }),
        Some(Err(())) => refused(Refusal::FormatDamaged),
        // A folder with a marker has a data file of this format.
        None if matches!(found, Found::Marked(_)) => refused(Refusal::FormatDamaged),
        None => Ok(RowFormat::Plain),
    }
}

#[cfg(test)]
mod tests;
