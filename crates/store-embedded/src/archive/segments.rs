//! Removes complete segments when they are old or have been shipped.

use std::io;
use std::path::{Path, PathBuf};

use super::ArchiveError;
use super::format::{Next, Segment, segment_name};
use super::read::segments;
use crate::StoreId;
use crate::create::replace_file;

/// The file that names the last shipped commit.
const SHIPPED_FILE: &str = "SHIPPED";
const SHIPPED_NEW_FILE: &str = "SHIPPED.new";
const SHIPPED_TITLE: &str = "The archive command has taken everything up to commit ";

/// The segments of an archive. Works without the archive's lock, because commits are appended
/// meanwhile.
#[derive(Debug)]
pub(super) struct Segments {
    pub(super) folder: PathBuf,
    pub(super) store: StoreId,
}

impl Segments {
    /// Removes the oldest segments, up to the first one that must stay. A segment may go if all its
    /// commits were made before `until_ms` and are in a backup whose last commit is `in_backup`.
    /// The newest segment stays. Returns the number of removed segments.
    pub(super) fn prune(&self, in_backup: u64, until_ms: u64) -> Result<usize, ArchiveError> {
        let all = segments(&self.folder)?;
        let mut removed = 0;
        for ((_, path), (next, next_path)) in all.iter().zip(all.iter().skip(1)) {
            let failed = || ArchiveError::io("read", next_path);
            let mut after = Segment::open(next_path, &self.store, *next).map_err(failed())?;
            // Everything before this commit is older.
            let is_old = match after.next().map_err(failed())? {
                Next::Record(found) => found.time_ms > 0 && found.time_ms <= until_ms,
                _ => false,
            };
            if !is_old || *next > in_backup.saturating_add(1) {
                break;
            }
            std::fs::remove_file(path).map_err(ArchiveError::io("remove", path))?;
            removed += 1;
        }
        Ok(removed)
    }

    /// The last complete commit of a segment, if it has any.
    pub(super) fn last_of(&self, first: u64, path: &Path) -> Result<Option<u64>, ArchiveError> {
        let failed = || ArchiveError::io("read", path);
        let mut segment = Segment::open(path, &self.store, first).map_err(failed())?;
        let mut last = None;
        while let Next::Record(found) = segment.next().map_err(failed())? {
            last = Some(found.commit);
        }
        Ok(last)
    }

    /// The name of a segment within the archive.
    pub(super) fn name_of(&self, first: u64) -> String {
        format!("{}/{}", self.store, segment_name(first))
    }

    /// The last shipped commit.
    pub(super) fn shipped(&self) -> Result<Option<u64>, ArchiveError> {
        let path = self.folder.join(SHIPPED_FILE);
        let failed = || ArchiveError::io("read", &path);
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let damaged = || failed()(io::Error::other("it is damaged"));
                let number = text.trim_end().strip_prefix(SHIPPED_TITLE);
                let number = number.and_then(|number| number.parse().ok());
                number.map(Some).ok_or_else(damaged)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed()(error)),
        }
    }

    /// Removes a segment that was shipped.
    pub(super) fn remove_shipped(&self, path: &Path, last: u64) -> Result<(), ArchiveError> {
        let last = self.shipped()?.map_or(last, |before| before.max(last));
        let text = format!("{SHIPPED_TITLE}{last}\n");
        replace_file(
            &self.folder,
            SHIPPED_FILE,
            SHIPPED_NEW_FILE,
            text.as_bytes(),
        )
        .map_err(ArchiveError::io("write into", &self.folder))?;
        std::fs::remove_file(path).map_err(ArchiveError::io("remove", path))
    }
}
