//! Why a backup could not be made, read or restored.

use std::io;
use std::path::{Path, PathBuf};

use quoin_store::StoreError;

/// Why a backup could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The operating system refused something.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What failed.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is damaged, or no backup.
    #[error("{}: {damage}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        damage: Damage,
    },
    /// The store could not be read or synced.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The server stops.
    #[error("the server stops, and the backup was given up")]
    Stopped,
    /// The thread that made it panicked.
    #[error("the thread that made the backup has ended by a panic, which the log tells of")]
    Panicked,
}

impl BackupError {
    /// Adds to a system's error what failed.
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

/// What is wrong with a backup file.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// It does not begin like a backup.
    #[error("this is not a backup of Quoin")]
    NotABackup,
    /// A newer version wrote it.
    #[error("it has format {found}, and this Quoin knows formats up to {known}: use a newer Quoin")]
    Newer {
        /// Its format.
        found: u32,
        /// The newest format that this version knows.
        known: u32,
    },
    /// It ends too early.
    #[error("it ends at byte {at}, before its end: the copy is incomplete")]
    Short {
        /// Its length.
        at: u64,
    },
    /// A checksum does not match.
    #[error("it is damaged at byte {at}: {what}")]
    Wrong {
        /// Where the damaged part begins.
        at: u64,
        /// What does not match.
        what: &'static str,
    },
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}
