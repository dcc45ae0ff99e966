//! Errors of the embedded store: why it does not open, and what LMDB's codes mean here.

use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heed::MdbError;

use super::checkpoint;
use crate::store::StoreError;

/// Why the data folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder, or the lock file in it, could not be made.
    #[error("cannot create data folder {}: {source}", folder.display())]
    Create {
        /// The data folder.
        folder: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Another process (or this one) has the folder open.
    #[error("data folder {} is in use by another server; stop that one or choose another folder", folder.display())]
    Locked {
        /// The data folder.
        folder: PathBuf,
    },
    /// There is no room on the disk for what opening writes. Nothing is lost by that.
    #[error("cannot open data folder {}: {source}; nothing is lost: make room and start again", folder.display())]
    NoRoom {
        /// The data folder.
        folder: PathBuf,
        /// What there was no room for.
        source: Box<dyn StdError + Send + Sync>,
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

impl OpenError {
    /// What it means that the engine, or a file beside its own, fails while a folder is opened.
    pub(super) fn of_engine(folder: &Path, error: heed::Error) -> Self {
        let folder = folder.to_owned();
        let is_full = match &error {
            heed::Error::Io(cause) => self::is_full(cause),
            _ => false,
        };
        let is_full = is_full || checkpoint::lacks_room(&error);
        let source = Box::new(error);
        if is_full {
            Self::NoRoom { folder, source }
        } else {
            Self::Engine { folder, source }
        }
    }
}

/// What a failure of LMDB means to the caller.
///
/// A full map or disk is found before the meta page is written, so nothing was applied and the
/// next, smaller transaction may succeed. A failed write or sync is `Fatal`: what of it is on the
/// disk is not known, and a later sync may report success for data that was lost.
pub(super) fn store_error(error: heed::Error) -> StoreError {
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
