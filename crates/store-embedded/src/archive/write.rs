//! Appends to the archive.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::format::{record_header, segment_header, segment_name};
use super::read::segments;
use super::segments::Segments;
use super::{ArchiveError, SEGMENT_BYTES};
use crate::StoreId;
use crate::create::{create_folder, private_file, sync_folder};

/// The archive of an open store.
#[derive(Debug)]
pub(in super::super) struct Archive {
    folder: PathBuf,
    store: StoreId,
    /// The last commit durable in the archive.
    last: Option<u64>,
    /// The current segment.
    open: Option<Open>,
    segment_bytes: u64,
}

#[derive(Debug)]
struct Open {
    file: File,
    path: PathBuf,
    /// The offset of the next record.
    end: u64,
    /// The last commit in the segment.
    last: u64,
    begun_at: Instant,
}

impl Archive {
    /// Opens the archive of a store in a folder. Creates the folder if it is missing.
    pub(in super::super) fn open(folder: &Path, store: StoreId) -> Result<Self, ArchiveError> {
        let folder = folder.join(store.to_string());
        create_folder(&folder).map_err(ArchiveError::io("make the folder", &folder))?;
        let mut archive = Self {
            last: None,
            store,
            open: None,
            segment_bytes: SEGMENT_BYTES,
            folder,
        };
        archive.last = archive.find_last()?.max(archive.segments().shipped()?);
        Ok(archive)
    }

    /// The last commit of the newest segment that has any.
    fn find_last(&self) -> Result<Option<u64>, ArchiveError> {
        for (first, path) in segments(&self.folder)?.into_iter().rev() {
            let last = self.segments().last_of(first, &path)?;
            if last.is_some() {
                // A killed process may not have synced the file, and the journal is overwritten
                // next.
                File::open(&path)
                    .and_then(|file| file.sync_all())
                    .and_then(|()| sync_folder(&self.folder))
                    .map_err(ArchiveError::io("sync", &path))?;
                return Ok(last);
            }
        }
        Ok(None)
    }

    /// Sets the size of segments, for a test.
    #[cfg(test)]
    pub(in super::super) fn set_segment_bytes(&mut self, bytes: u64) {
        self.segment_bytes = bytes;
    }

    /// The last commit durable in the archive.
    pub(in super::super) fn last(&self) -> Option<u64> {
        self.last
    }

    /// The folder of the segments.
    pub(in super::super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Appends the next commit. It is durable after [`Self::sync`]. After an error, all commits
    /// since the last sync must be appended again.
    pub(in super::super) fn append(
        &mut self,
        commit: u64,
        time_ms: u64,
        body: &[u8],
    ) -> Result<(), ArchiveError> {
        let added = self.try_append(commit, time_ms, body);
        if added.is_err() {
            self.open = None;
        }
        added
    }

    fn try_append(&mut self, commit: u64, time_ms: u64, body: &[u8]) -> Result<(), ArchiveError> {
        let header = record_header(&self.store, commit, time_ms, body);
        let is_full = self
            .open
            .as_ref()
            .is_some_and(|open| open.end >= self.segment_bytes || open.last + 1 != commit);
        if is_full {
            self.sync()?;
            self.open = None;
        }
        let open = match &mut self.open {
            Some(open) => open,
            none => none.insert(begin(&self.folder, &self.store, commit)?),
        };
        let failed = || ArchiveError::io("write", &open.path);
        open.file
            .write_all_at(&header, open.end)
            .map_err(failed())?;
        let body_at = open.end + header.len() as u64;
        open.file.write_all_at(body, body_at).map_err(failed())?;
        open.end = body_at + body.len() as u64;
        open.last = commit;
        Ok(())
    }

    /// Ends the current segment if it has this age and is synced. The next commit begins another.
    pub(super) fn end_old_segment(&mut self, age_max: Duration) {
        self.open.take_if(|open| {
            open.begun_at.elapsed() >= age_max && self.last.is_some_and(|last| last == open.last)
        });
    }

    /// The segments that are complete because nothing more is appended to them, in order.
    pub(super) fn ended_segments(&self) -> Result<Vec<(u64, PathBuf)>, ArchiveError> {
        let mut all = segments(&self.folder)?;
        all.retain(|(_, path)| self.open.as_ref().is_none_or(|open| open.path != *path));
        Ok(all)
    }

    /// The archive's segments, for work without the archive's lock.
    pub(super) fn segments(&self) -> Segments {
        Segments {
            folder: self.folder.clone(),
            store: self.store,
        }
    }

    /// Syncs what was appended. After an error, all of it must be appended again.
    pub(in super::super) fn sync(&mut self) -> Result<(), ArchiveError> {
        let synced = self.try_sync();
        if synced.is_err() {
            // The next sync might report success for the same bytes, so the bytes go to another
            // segment.
            self.open = None;
        }
        synced
    }

    fn try_sync(&mut self) -> Result<(), ArchiveError> {
        let Some(open) = &self.open else {
            return Ok(());
        };
        let failed = || ArchiveError::io("sync", &open.path);
        open.file.sync_data().map_err(failed())?;
        // An unlinked file is lost once it is closed.
        let named = open.path.metadata().map_err(failed())?;
        let own = open.file.metadata().map_err(failed())?;
        if (named.ino(), named.dev()) != (own.ino(), own.dev()) {
            let replaced = io::Error::other("another file has taken its place");
            return Err(failed()(replaced));
        }
        self.last = Some(open.last);
        Ok(())
    }
}

/// Begins a segment. If a file of this name exists, it has no complete record from this commit on.
fn begin(folder: &Path, store: &StoreId, first: u64) -> Result<Open, ArchiveError> {
    let path = folder.join(segment_name(first));
    let failed = || ArchiveError::io("make", &path);
    let file = private_file()
        .create(true)
        .truncate(true)
        .open(&path)
        .map_err(failed())?;
    let header = segment_header(store, first);
    file.write_all_at(&header, 0).map_err(failed())?;
    sync_folder(folder).map_err(ArchiveError::io("sync the folder", folder))?;
    Ok(Open {
        file,
        path,
        end: header.len() as u64,
        last: first.saturating_sub(1),
        begun_at: Instant::now(),
    })
}
