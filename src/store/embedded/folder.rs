//! Whose a folder is: looked at before anything is written into it.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::bulk::ROW_FORMAT;
use super::checkpoint::CHECKPOINT_FILE;
use super::create::{self, NEW_DATA_FILE, private_file, remove};
use super::data_file::{DATA_FILE, DataFile, DataFileError};
use super::error::{OpenError, Refusal};
use super::journal;
use super::marker::{FOLDER_FORMAT, Marker, MarkerState};
use super::table::RowFormat;

/// The file that a running server holds locked, with the number of its process in it.
pub(super) const LOCK_FILE: &str = "LOCK";
/// What may lie in a folder where no store is: of file systems, and of starts that were refused or
/// ended early.
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
/// Files that begin with [`OUR_FILES_BEGIN`] and are there unless a store was closed in order.
const OUR_FILES: [&str; 3] = [CHECKPOINT_FILE, "JOURNAL.0", "JOURNAL.1"];
const OUR_FILES_BEGIN: &[u8] = b"quoin-";
/// The store's own rows, which are behind all others.
const OUR_ROWS_BEGIN: &[u8] = b"\xff\xffquoin/";
/// How many names of a folder that is not Quoin's are told.
const NAMES_SHOWN: usize = 5;

/// What a folder has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// No store, and nothing of anybody else.
    Nothing,
    /// A store with a marker.
    Marked(Marker),
    /// A store of a Quoin that made no markers; or one whose first start, or change to this format,
    /// was ended just before it made one.
    Unmarked,
}

/// Whether a folder has a store. Nothing is changed.
///
/// # Errors
/// Where it is somebody else's, or not whole.
pub fn has_store(folder: &Path) -> Result<bool, OpenError> {
    look(folder).map(|found| found != Found::Nothing)
}

/// Looks whose a folder is. Nothing is changed.
///
/// # Errors
/// Where it is somebody else's, or is not whole.
pub(super) fn look(folder: &Path) -> Result<Found, OpenError> {
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
        // Else a folder on the way is a file, which making it tells.
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
    let is_ours = has_our_files(folder).map_err(unreadable)?;
    if is_ours || has(DATA_FILE) {
        let data = check_data_file(folder)?;
        // Where there is a checkpoint the data file's newest pages may not be all on the disk.
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

/// Looks whether there is a data file where a store must have one.
fn check_data_file(folder: &Path) -> Result<DataFile, OpenError> {
    DataFile::open(&folder.join(DATA_FILE)).map_err(|error| match error {
        DataFileError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
            OpenError::refused(folder, Refusal::DataMissing)
        }
        error => of_data(folder, error),
    })
}

/// What it means that a data file is not as it must be.
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

/// Whether there is a checkpoint or a journal, by what those begin with.
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

/// Whether the store was closed in order, or is new: then its data file has everything.
pub(super) fn is_closed_in_order(folder: &Path) -> io::Result<bool> {
    Ok(!journal::exists(folder)? && !folder.join(CHECKPOINT_FILE).try_exists()?)
}

/// Whether a data file, which was closed in order, has rows that only Quoin writes, the last ones;
/// or none at all, in a folder where a Quoin's first start was ended.
fn has_our_rows(folder: &Path, data: &DataFile) -> Result<bool, DataFileError> {
    Ok(match data.last_key()? {
        Some(key) => key.starts_with(OUR_ROWS_BEGIN),
        None => folder.join(LOCK_FILE).exists(),
    })
}

/// Locks a folder and looks whose it is. It is made where it is missing. Of one that is refused
/// nothing is changed.
///
/// # Errors
/// See [`OpenError`].
pub(super) fn take(folder: &Path) -> Result<(File, Found), OpenError> {
    // A server that has it open changes what is looked at.
    let early = match File::options().write(true).open(folder.join(LOCK_FILE)) {
        Ok(lock) => Some(locked(folder, lock)?),
        Err(_) => None,
    };
    let found = look(folder)?;
    if let Some(lock) = early {
        note_process(&lock);
        return Ok((lock, found));
    }
    if !folder.exists() {
        create::create_folder(folder).map_err(|source| OpenError::Create {
            folder: folder.to_owned(),
            source,
        })?;
    }
    let lock = private_file()
        .create(true)
        .truncate(false)
        .open(folder.join(LOCK_FILE))
        .map_err(|source| OpenError::Access {
            folder: folder.to_owned(),
            source,
        })?;
    let lock = locked(folder, lock)?;
    note_process(&lock);
    // Another may have had it in between.
    Ok((lock, look(folder)?))
}

/// How long a lock is waited for. A process that is just ending has it for a moment longer, and so
/// has one that was forked by whoever had the folder and does not run its own program yet.
const LOCK_PATIENCE: Duration = Duration::from_millis(300);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

pub(super) fn locked(folder: &Path, lock: File) -> Result<File, OpenError> {
    let folder = folder.to_owned();
    let until = Instant::now() + LOCK_PATIENCE;
    let tried = loop {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(LOCK_PAUSE);
            }
            tried => break tried,
        }
    };
    match tried {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => {
            let text = std::fs::read_to_string(folder.join(LOCK_FILE)).unwrap_or_default();
            let process = text.trim().parse().ok();
            Err(OpenError::Locked { folder, process })
        }
        Err(TryLockError::Error(source)) => Err(OpenError::Access { folder, source }),
    }
}

/// Notes who has it, for the message that the next one gets. It is no harm where that fails.
fn note_process(mut lock: &File) {
    let text = format!("{}\n", std::process::id());
    let _ = lock
        .set_len(0)
        .and_then(|()| lock.write_all(text.as_bytes()));
}

/// Removes what a start left that was ended early.
///
/// # Errors
/// What the operating system says.
pub(super) fn clean(folder: &Path) -> io::Result<()> {
    remove(&folder.join(NEW_DATA_FILE))?;
    remove(&folder.join("data.mdb.new-lock"))
}

/// The format of the rows of a data file, by what it says.
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
        // The marker is made when the data file has this format, and not before.
        None if matches!(found, Found::Marked(_)) => refused(Refusal::FormatDamaged),
        None => Ok(RowFormat::Plain),
    }
}

/// Whether a server, or a doctor, has the store in a folder open.
pub fn is_in_use(folder: &Path) -> bool {
    let Ok(lock) = File::open(folder.join(LOCK_FILE)) else {
        return false;
    };
    matches!(lock.try_lock(), Err(TryLockError::WouldBlock))
}

#[cfg(test)]
mod tests;
