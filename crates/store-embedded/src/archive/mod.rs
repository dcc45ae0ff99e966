//! The archive of the journal. It keeps every commit, so that a backup can be brought forward to
//! any later moment.
//!
//! A journal file is overwritten once a checkpoint contains its records. With an archive, the
//! records are first appended to a segment and synced. If that fails, the file is kept, and the
//! journal grows up to its limit. Each store has its own folder of segments in the archive. A
//! restored store is a different store: its commits must not be mixed with those of the first one.
//!
//! ```text
//! <archive>/<store>/<first commit>.journal
//! segment: magic (16) | store (16) | first commit (8) | checksum (8) | record …
//! record:  length of the body (8) | commit (8) | time in ms (8) | checksum (8) | body
//! ```
//! Bodies are those of the journal's records. A record's checksum (SipHash-1-3) covers the rest of
//! the record and the store. A segment is never changed. If its end is incomplete, another segment
//! continues from the last complete record.

mod command;
mod format;
mod keeper;
mod read;
mod segments;
mod ship;
mod tail;
mod write;

#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;

pub use self::keeper::{ArchiveStatus, CommandStatus};
pub(super) use self::keeper::{Archiving, Keeper};
pub use self::read::{Archived, Limit, Reached, read_archive};
pub(super) use self::ship::start_shipping;
pub use self::tail::{ArchiveTail, TailEnd};
#[cfg(test)]
use self::write::Archive;

/// A segment that reaches this many bytes is followed by another one.
const SEGMENT_BYTES: u64 = 64 * 1024 * 1024;

/// Why an archive cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The operating system refused something.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The journal cannot be read.
    #[error("cannot read the journal: {0}")]
    Journal(io::Error),
    /// The archive has commits that the store does not have.
    #[error(
        "the archive {} has commits up to {archived}, but the store ends with {applied}: the store \
         was put back to an earlier state, and its new commits must not be mixed with those in the \
         archive; set journal-archive-dir to another folder", folder.display()
    )]
    Ahead {
        /// The folder of the store's segments.
        folder: PathBuf,
        /// The archive's last commit.
        archived: u64,
        /// The store's last commit.
        applied: u64,
    },
    /// There are no segments of the store.
    #[error("{} has no commits of the store of this backup", folder.display())]
    Nothing {
        /// The folder that was searched.
        folder: PathBuf,
    },
    /// A commit is missing, or cannot be read.
    #[error("commit {missing} {why}: with this archive the backup can be restored up to {reached}")]
    Gap {
        /// The first commit that is missing.
        missing: u64,
        /// What is wrong with it.
        why: String,
        /// The last commit before it.
        reached: Reached,
    },
    /// The archive ends before the requested commit.
    #[error("the archive ends with {reached}, before commit {wanted}")]
    Short {
        /// The requested commit.
        wanted: u64,
        /// The archive's last commit.
        reached: Reached,
    },
}

impl ArchiveError {
    fn io<'p>(
        action: &'static str,
        path: &'p std::path::Path,
    ) -> impl FnOnce(io::Error) -> Self + 'p {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}
