//! The archive of the journal: every commit, kept for good, so that a backup can be brought to any
//! later moment.
//!
//! A journal file is written over when a checkpoint has what is in it. With an archive its records
//! are appended to a segment before that, and synced; where that cannot be done the file is kept,
//! and the journal grows up to its bound. Segments lie in a folder of the store's own within the
//! archive's: a store that was restored is another one, and what both do after the same commit
//! must not be mixed.
//!
//! ```text
//! <archive>/<store>/<first commit>.journal
//! segment: magic (16) | store (16) | first commit (8) | checksum (8) | record …
//! record:  length of the body (8) | commit (8) | time in ms (8) | checksum (8) | body
//! ```
//! Bodies are those of the journal's records. A checksum (SipHash-1-3) covers what is before and
//! behind it in its record, and the store. Nothing of a segment is ever changed: where its end was
//! not finished another segment goes on from the last whole record.

mod format;
mod keeper;
mod read;
mod write;

#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;

pub use self::keeper::ArchiveStatus;
pub(super) use self::keeper::{Archiving, Keeper};
pub use self::read::{Archived, Limit, Reached, read_archive};
#[cfg(test)]
use self::write::Archive;

/// Bytes after which another segment is begun.
const SEGMENT_BYTES: u64 = 64 * 1024 * 1024;

/// Why an archive cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
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
    /// The journal cannot be read.
    #[error("cannot read the journal: {0}")]
    Journal(io::Error),
    /// It has commits that the store has not.
    #[error(
        "the archive {} has commits up to {archived}, and the store ends with {applied}: the store \
         was put back to an earlier state, and what follows must not be mixed with what the archive \
         has; name another folder as journal-archive-dir", folder.display()
    )]
    Ahead {
        /// The folder of the store's segments.
        folder: PathBuf,
        /// The archive's last commit.
        archived: u64,
        /// The store's.
        applied: u64,
    },
    /// There are no segments of the store.
    #[error("{} has no commits of the store of this backup", folder.display())]
    Nothing {
        /// Where they would be.
        folder: PathBuf,
    },
    /// A commit is not there, or cannot be read.
    #[error("commit {missing} {why}: with this archive the backup can be brought up to {reached}")]
    Gap {
        /// The first commit that is not there.
        missing: u64,
        /// What is known of it.
        why: String,
        /// The last commit before it.
        reached: Reached,
    },
    /// It ends before what was asked for.
    #[error("the archive ends with {reached}, before commit {wanted}")]
    Short {
        /// What was asked for.
        wanted: u64,
        /// Its last commit.
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
