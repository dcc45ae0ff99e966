//! Why a backup could not be made, read or restored.

use std::io;
use std::path::{Path, PathBuf};

use crate::store::StoreError;

/// Why a backup could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The operating system refused something.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was to be done.
        action: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The file is not as it was written, or is no backup.
    #[error("{}: {damage}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        damage: Damage,
    },
    /// The store could not be read, or not be synced.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The server stops.
    #[error("the server stops, and the backup was given up")]
    Stopped,
    /// The thread that made it has ended by a panic.
    #[error("the thread that made the backup has ended by a panic, which the log tells of")]
    Panicked,
}

impl BackupError {
    /// Says what was being done when the system refused it.
    pub(super) fn io<'p>(
        action: &'static str,
        path: &'p Path,
    ) -> impl FnOnce(io::Error) -> Self + 'p {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// What is wrong with the file of a backup.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// Its beginning is another.
    #[error("this is not a backup of Quoin")]
    NotABackup,
    /// A newer version wrote it.
    #[error("it has format {found}, and this Quoin knows formats up to {known}: use a newer Quoin")]
    Newer {
        /// Its format.
        found: u32,
        /// The newest that is known here.
        known: u32,
    },
    /// It ends too early.
    #[error("it ends at byte {at}, before its end: the copy is incomplete")]
    Short {
        /// Its length.
        at: u64,
    },
    /// A checksum does not fit.
    #[error("it is damaged at byte {at}: {what}")]
    Wrong {
        /// Where the part begins that is wrong.
        at: u64,
        /// What does not fit.
        what: &'static str,
    },
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}
