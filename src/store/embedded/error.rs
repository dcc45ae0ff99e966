//! Errors of the embedded store: why it does not open, and what LMDB's codes mean here.

use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heed::MdbError;

use super::archive::ArchiveError;
use super::checksum::{DamagedRow, damage_in};
use super::data_file::DataFileError;
use crate::store::StoreError;

/// Why the data folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder could not be made.
    #[error("cannot create data folder {}: {source}", folder.display())]
    Create {
        /// The data folder.
        folder: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The folder is there, and cannot be read or written.
    #[error("cannot use data folder {}: {source}; {}", folder.display(), advice(source))]
    Access {
        /// The data folder.
        folder: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Another process (or this one) has the folder open.
    #[error(
        "data folder {} is in use by another server{}; stop that one or choose another folder",
        folder.display(),
        process.map_or(String::new(), |process| format!(" (process {process})"))
    )]
    Locked {
        /// The data folder.
        folder: PathBuf,
        /// The number of the process that has it, as that sees itself.
        process: Option<u32>,
    },
    /// What lies in the folder is not to be touched. Nothing was changed.
    #[error("data folder {}: {refusal}", folder.display())]
    Refused {
        /// The data folder.
        folder: PathBuf,
        /// Why.
        refusal: Refusal,
    },
    /// There is no room on the disk for what opening writes. Nothing is lost by that.
    #[error("cannot open data folder {}: {source}; nothing is lost: make room and start again", folder.display())]
    NoRoom {
        /// The data folder.
        folder: PathBuf,
        /// What there was no room for.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// What the journal has cannot be archived, and opening would write over it.
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

/// What a folder is not to be opened for.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It is a file.
    #[error("this is a file; set data-dir to a folder")]
    NotAFolder,
    /// It has files of others, and none that says that it is Quoin's.
    #[error(
        "it has files that are not Quoin's ({names}{}); set data-dir to an empty folder, or to one \
         that a Quoin has made, which has a file QUOIN",
        if *more > 0 { format!(" and {more} more") } else { String::new() }
    )]
    ForeignFolder {
        /// Some of their names.
        names: String,
        /// How many are not named.
        more: usize,
    },
    /// Its data file is one of LMDB, and no row in it is Quoin's.
    #[error(
        "its data.mdb belongs to another program that uses LMDB; set data-dir to another folder"
    )]
    ForeignData,
    /// There was a store, whose data file is gone.
    #[error(
        "a store was here, and its data.mdb is missing: is the right volume mounted? Put the file \
         back, or restore a backup into another folder; to begin with an empty store remove all \
         files of this folder"
    )]
    DataMissing,
    /// Its data file is not as it must be.
    #[error(
        "its data.mdb cannot be used: {0}; restore a backup into another folder, or set data-dir to \
         an empty one"
    )]
    Data(DataFileError),
    /// The data file does not say its format, or not with its checksum.
    #[error(
        "its data.mdb is damaged (the row that says its format): restore a backup into another \
         folder"
    )]
    FormatDamaged,
    /// A row that opening reads is damaged.
    #[error("{0}; restore a backup into another folder")]
    Row(DamagedRow),
    /// The marker is there and is not one.
    #[error(
        "its file QUOIN, which says what the folder is, is damaged: put it back from a backup, or \
         remove it, and the next start makes another where data.mdb is whole"
    )]
    MarkerDamaged,
    /// A newer version has written it.
    #[error("it has format {found}, which this Quoin does not know: use a newer Quoin")]
    NewerFormat {
        /// The format.
        found: u32,
    },
    /// There is no store in it.
    #[error("there is no store in it; is data-dir right?")]
    NoStore,
    /// There is a store in it already.
    #[error("there is a store in it already: choose a folder that is empty, or is not there yet")]
    HasStore,
    /// It is a copy of the folder of a running server.
    #[error(
        "this is a copy of a folder whose server was running, or had been killed: its files are of \
         different moments. Use one that `quoin backup` has made. Where its server had ended before \
         the whole folder was copied (to another disk, say), start with --accept-copied-data-dir yes"
    )]
    Copy,
}

/// Why a data file was not written. What was there of it has been removed.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    /// The rows could not be read.
    #[error("{0}")]
    Source(Box<dyn StdError + Send + Sync>),
    /// A row does not come behind the one before.
    #[error("the rows to write are not in their order")]
    Order,
    /// LMDB or the disk did not take them.
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

/// What a person may do about a folder that cannot be used.
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

    /// What it means that the engine, or a file beside its own, fails while a folder is opened.
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

    /// What it means that a data file could not be written.
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

/// What a failure of LMDB means to the caller.
///
/// A full map or disk is found before the meta page is written, so nothing was applied and the
/// next, smaller transaction may succeed. A failed write or sync is `Fatal`: what of it is on the
/// disk is not known, and a later sync may report success for data that was lost.
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

/// Whether the system lacks something that it may have again later: room on the disk, memory,
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

/// Marks what only lacks room on the disk. A sync of the data file that failed is never that: a
/// second one might say that all is well.
pub(super) fn no_room(error: io::Error) -> io::Error {
    if may_pass(&error) {
        io::Error::other(NoRoom(error))
    } else {
        error
    }
}

/// The same of pages that LMDB could not write to the data file, which it has not begun to use.
pub(super) fn not_written(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(libc::EIO) {
        return io::Error::other(NoRoom(error));
    }
    no_room(error)
}

/// Whether a checkpoint failed for lack of room only. The one before is still on the disk, and
/// making one may be tried again.
pub(super) fn lacks_room(error: &heed::Error) -> bool {
    let heed::Error::Io(error) = error else {
        return false;
    };
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    matches!(cause, Some(NoRoom(_)))
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
