//! Errors of the embedded store: why it does not open, and what LMDB's codes mean.

use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heed::MdbError;

use super::archive::ArchiveError;
use super::checksum::{DamagedRow, damage_in};
use super::data_file::DataFileError;
use quoin_store::StoreError;

/// Why the data folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder could not be created.
    #[error(
        "cannot create data folder {}: {source}; choose another with --data-dir (or the setting \
         data-dir)",
        absolute(folder).display()
    )]
    Create {
        /// The data folder.
        folder: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The folder exists but cannot be read or written.
    #[error("cannot use data folder {}: {source}; {}", absolute(folder).display(), advice(source))]
    Access {
        /// The data folder.
        folder: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Another process (or this one) has the folder open.
    #[error(
        "data folder {} is in use by another server{}; stop that server or choose another folder",
        folder.display(),
        process.map_or(String::new(), |process| format!(" (process {process})"))
    )]
    Locked {
        /// The data folder.
        folder: PathBuf,
        /// The id of that process, in its own namespace.
        process: Option<u32>,
    },
    /// The folder must not be used. Nothing was changed.
    #[error("data folder {}: {refusal}", folder.display())]
    Refused {
        /// The data folder.
        folder: PathBuf,
        /// Why.
        refusal: Refusal,
    },
    /// Opening the store writes, and there is no room on the disk. Nothing is lost.
    #[error("cannot open data folder {}: {source}; nothing is lost: make room and start again", folder.display())]
    NoRoom {
        /// The data folder.
        folder: PathBuf,
        /// What failed.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The journal cannot be archived, and opening the store would overwrite it.
    #[error("cannot archive the journal: {source}")]
    Archive {
        /// Why.
        source: ArchiveError,
    },
    /// The engine refused the folder's files.
    #[error("cannot open data folder {}: {source}", folder.display())]
    Engine {
        /// The data folder.
        folder: PathBuf,
        /// What the engine said.
        source: Box<dyn StdError + Send + Sync>,
    },
}

/// The absolute path of a folder, which does not depend on where the server was started.
fn absolute(folder: &Path) -> PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}

/// Why a folder must not be used.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It is a file.
    #[error("this is a file; set data-dir to a folder")]
    NotAFolder,
    /// It has files of other programs and no marker.
    #[error(
        "it has files that are not Quoin's ({names}{}); set data-dir to an empty folder, or to one \
         that Quoin has created, which has a file QUOIN",
        if *more > 0 { format!(" and {more} more") } else { String::new() }
    )]
    ForeignFolder {
        /// Some of their names.
        names: String,
        /// The number of further files.
        more: usize,
    },
    /// Its data file is LMDB's but not Quoin's.
    #[error(
        "its data.mdb belongs to another program that uses LMDB; set data-dir to another folder"
    )]
    ForeignData,
    /// There was a store, but its data file is missing.
    #[error(
        "a store was here, and its data.mdb is missing: is the right volume mounted? Put the file \
         back, or restore a backup into another folder; to begin with an empty store, remove all \
         files in this folder"
    )]
    DataMissing,
    /// Its data file cannot be used.
    #[error(
        "its data.mdb cannot be used: {0}; restore a backup into another folder, or set data-dir to \
         an empty one"
    )]
    Data(DataFileError),
    /// The row with the data file's format is missing or damaged.
    #[error(
        "its data.mdb is damaged (the row with its format): restore a backup into another folder"
    )]
    FormatDamaged,
    /// A row that opening reads is damaged.
    #[error("{0}; restore a backup into another folder")]
    Row(DamagedRow),
    /// The marker is damaged.
    #[error(
        "its file QUOIN, which identifies the folder, is damaged: put it back from a backup; or \
         remove it, and the next start creates another one if data.mdb is intact"
    )]
    MarkerDamaged,
    /// A newer version wrote it.
    #[error("it has format {found}, which this Quoin does not support: use a newer Quoin")]
    NewerFormat {
        /// The format.
        found: u32,
    },
    /// A restore into it is still running or was interrupted.
    #[error(
        "a restore into it was not finished (it has a folder unfinished-restore): run `quoin restore` \
         again, or remove all files in it"
    )]
    UnfinishedRestore,
    /// It has no store.
    #[error("there is no store in it; is data-dir right?")]
    NoStore,
    /// It already has a store.
    #[error("there is a store in it already: choose a folder that is empty or does not exist")]
    HasStore,
    /// It is a copy of the folder of a running server.
    #[error(
        "this is a copy of a folder whose server was running, or had been killed: its files may be \
         from different moments. Use a copy made by `quoin backup`. If the server had ended before \
         the folder was copied (for example to another disk), start with --accept-copied-data-dir \
         yes"
    )]
    Copy,
}

/// Why a data file was not written. The incomplete file has been removed.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    /// The rows could not be read.
    #[error("{0}")]
    Source(Box<dyn StdError + Send + Sync>),
    /// A row does not sort after the previous one.
    #[error("the rows to write are not in order")]
    Order,
    /// LMDB or the disk refused them.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn StdError + Send + Sync>,
        /// Whether there was no room on the disk.
        lacks_room: bool,
    },
}

impl BulkError {
    pub(super) fn write(path: &Path, error: heed::Error) -> Self {
        Self::Write {
            path: path.to_owned(),
            lacks_room: lacks_disk_room(&error),
            source: Box::new(error),
        }
    }

    /// Whether there was no room on the disk.
    pub fn lacks_room(&self) -> bool {
        matches!(
            self,
            Self::Write {
                lacks_room: true,
                ..
            }
        )
    }
}

#[derive(Debug, thiserror::Error)]
#[error("no room on the disk: {0}")]
struct NoRoom(io::Error);

/// What to do about a folder that cannot be used.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "the user who runs this must be allowed to read and write it and all files in it"
        }
        io::ErrorKind::ReadOnlyFilesystem => "its file system is mounted read-only",
        _ => "nothing was changed in it",
    }
}

impl OpenError {
    pub(super) fn refused(folder: &Path, refusal: Refusal) -> Self {
        Self::Refused {
            folder: folder.to_owned(),
            refusal,
        }
    }

    /// The error for a failure of LMDB, or of another file, while a folder is opened.
    pub(super) fn of_engine(folder: &Path, error: heed::Error) -> Self {
        if let Some(damaged) = damage_in(&error) {
            return Self::refused(folder, Refusal::Row(damaged.clone()));
        }
        let folder = folder.to_owned();
        if lacks_disk_room(&error) || lacks_room(&error) {
            let source = Box::new(error);
            return Self::NoRoom { folder, source };
        }
        match error {
            heed::Error::Io(source) if is_about_access(&source) => Self::Access { folder, source },
            error => Self::Engine {
                folder,
                source: Box::new(error),
            },
        }
    }

    /// The error for a data file that could not be written.
    pub(super) fn of_bulk(folder: &Path, error: BulkError) -> Self {
        let folder = folder.to_owned();
        if error.lacks_room() {
            let source = Box::new(error);
            return Self::NoRoom { folder, source };
        }
        Self::Engine {
            folder,
            source: Box::new(error),
        }
    }
}

fn is_about_access(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
    )
}

/// Whether the disk was full.
pub(super) fn lacks_disk_room(error: &heed::Error) -> bool {
    match error {
        heed::Error::Io(cause) => {
            matches!(cause.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
        }
        _ => false,
    }
}

/// The caller's error for a failure of LMDB.
///
/// LMDB finds a full map or disk before it writes the meta page. So nothing was applied, and a
/// smaller transaction may succeed. A failed write or sync is `Fatal`: part of it may be on the
/// disk, and a later sync may report success for lost data.
pub(super) fn store_error(error: heed::Error) -> StoreError {
    if let Some(damaged) = damage_in(&error) {
        return StoreError::Damaged(Arc::new(damaged.clone()));
    }
    match &error {
        heed::Error::Mdb(MdbError::TxnFull | MdbError::CursorFull | MdbError::BadValSize) => {
            StoreError::TooLarge
        }
        heed::Error::Mdb(MdbError::MapFull) => StoreError::NoRoom(Arc::new(error)),
        heed::Error::Mdb(MdbError::ReadersFull) => StoreError::Unavailable(Arc::new(error)),
        heed::Error::Io(cause) if is_full(cause) => StoreError::NoRoom(Arc::new(error)),
        heed::Error::Io(cause) if may_pass(cause) => StoreError::Unavailable(Arc::new(error)),
        _ => StoreError::Fatal(Arc::new(error)),
    }
}

/// Whether there is no room on the disk.
fn is_full(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG)
    )
}

/// Whether the system lacks something that it may have later: disk space, memory or file
/// descriptors. Trying again may then help.
pub(super) fn may_pass(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ENOSPC
                | libc::EDQUOT
                | libc::EFBIG
                | libc::ENOMEM
                | libc::EMFILE
                | libc::ENFILE
                | libc::EINTR
                | libc::EAGAIN
        )
    )
}

/// Marks an error that only means a lack of room. A failed sync of the data file never counts as
/// one, because a second sync might report success.
pub(super) fn no_room(error: io::Error) -> io::Error {
    if may_pass(&error) {
        io::Error::other(NoRoom(error))
    } else {
        error
    }
}

/// Like [`no_room`], for pages that LMDB could not write to the data file and does not use yet.
fn not_written(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(libc::EIO) {
        return io::Error::other(NoRoom(error));
    }
    no_room(error)
}

/// Whether a checkpoint failed only for lack of room. The previous one is then still on the disk,
/// and another may be tried.
pub(super) fn lacks_room(error: &heed::Error) -> bool {
    let heed::Error::Io(error) = error else {
        return false;
    };
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    matches!(cause, Some(NoRoom(_)))
}

/// Marks a failed write of LMDB as a lack of room. The write may be tried again, because the
/// journal has the data. On a nearly full disk LMDB reports a short write as a disk failure.
pub(super) fn page_not_written(error: heed::Error) -> heed::Error {
    match error {
        heed::Error::Io(error) => not_written(error).into(),
        error => error,
    }
}

/// Whether a write of LMDB found no room. Trying again may then help.
pub(super) fn write_lacks_room(error: &heed::Error) -> bool {
    match error {
        heed::Error::Mdb(MdbError::MapFull) => true,
        error => lacks_room(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_of_pages_of_the_data_file_a_failed_write_is_tried_again() {
        let failed = || io::Error::from_raw_os_error(libc::EIO);
        assert!(lacks_room(&not_written(failed()).into()));
        assert!(!lacks_room(&no_room(failed()).into()));
    }
}
