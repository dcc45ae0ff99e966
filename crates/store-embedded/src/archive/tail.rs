//! Reads an archive while its server appends to it.
//!
//! The server appends to the newest segment, so that segment may end within a record. Each poll
//! lists the archive again: a segment may be replaced while it has no complete record, and after a
//! failed write a new segment repeats records of the previous one.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::ArchiveError;
use super::format::{Next, Segment};
use super::read::{Archived, Reached, Trouble, gap, segments};
use crate::StoreId;

/// Number of consecutive polls that must find the same damage. A network file system may show the
/// parts of a write out of order.
const CONFIRMATIONS: u32 = 5;

/// Where a poll of an archive ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TailEnd {
    /// After the last commit of the archive.
    Complete,
    /// Before a commit that is being written, or that a crash of the server cut off.
    Unfinished,
    /// The store has no files now.
    Missing,
    /// Before something unreadable. The next polls confirm that it is damage.
    Doubtful,
    /// `visit` asked to stop.
    Stopped,
}

/// The end of a store's archive, as far as it has been read.
#[derive(Debug)]
pub struct ArchiveTail {
    folder: PathBuf,
    store: StoreId,
    reached: Reached,
    /// The end of the last record that was read.
    place: Option<Place>,
    /// Whether there has been a poll.
    is_begun: bool,
    /// Consecutive polls that found damage.
    doubts: u32,
}

/// An offset in a segment.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// The first commit of the segment.
    segment: u64,
    at: u64,
}

impl ArchiveTail {
    /// A tail that begins after a commit.
    ///
    /// # Errors
    /// If the archive has no folder of the store.
    pub fn open(archive: &Path, store: &StoreId, after: Reached) -> Result<Self, ArchiveError> {
        let folder = archive.join(store.to_string());
        if !folder.is_dir() {
            return Err(ArchiveError::Nothing { folder });
        }
        Ok(Self {
            folder,
            store: *store,
            reached: after,
            place: None,
            is_begun: false,
            doubts: 0,
        })
    }

    /// The last commit that was read.
    pub fn reached(&self) -> Reached {
        self.reached
    }

    /// Calls `visit` with each further commit, in order, and with the number of archive bytes after
    /// it.
    ///
    /// # Errors
    /// If a commit has been missing or damaged for several polls in a row, the archive cannot be
    /// read, or `visit` fails.
    pub fn poll<E: From<ArchiveError>>(
        &mut self,
        mut visit: impl FnMut(Archived<'_>, u64) -> Result<ControlFlow<()>, E>,
    ) -> Result<TailEnd, E> {
        let all = segments(&self.folder)?;
        let Some((oldest, _)) = all.first() else {
            return Ok(TailEnd::Missing);
        };
        // The first poll begins with the last commit itself, to learn when it was made.
        let looks_back = !self.is_begun && *oldest <= self.reached.commit;
        let mut wanted = self.reached.commit + u64::from(!looks_back);
        self.is_begun = true;
        let mut trouble = None;
        let mut last_index = None;
        loop {
            let index = all.iter().rposition(|(first, _)| *first <= wanted);
            if index == last_index {
                break;
            }
            let Some((first, path)) = index.and_then(|index| all.get(index)) else {
                break;
            };
            last_index = index;
            let later = all.iter().skip(index.map_or(0, |index| index + 1));
            let later_bytes: u64 = later.map(|(_, path)| bytes_of(path)).sum();
            match self.read(*first, path, later_bytes, &mut visit)? {
                ControlFlow::Break(()) => return Ok(TailEnd::Stopped),
                ControlFlow::Continue(found) => trouble = found,
            }
            wanted = self.reached.commit + 1;
        }
        let is_newest = last_index.is_some_and(|index| index + 1 == all.len());
        let end = match &trouble {
            None if is_newest => TailEnd::Complete,
            Some(trouble) if is_newest && !trouble.is_damage => TailEnd::Unfinished,
            _ => TailEnd::Doubtful,
        };
        if end != TailEnd::Doubtful {
            self.doubts = 0;
            return Ok(end);
        }
        self.place = None;
        self.doubts += 1;
        if self.doubts >= CONFIRMATIONS {
            return Err(gap(self.reached, trouble).into());
        }
        Ok(end)
    }

    /// Reads a segment from the last place. Returns what is wrong at its end.
    fn read<E: From<ArchiveError>>(
        &mut self,
        first: u64,
        path: &Path,
        later_bytes: u64,
        visit: &mut impl FnMut(Archived<'_>, u64) -> Result<ControlFlow<()>, E>,
    ) -> Result<ControlFlow<(), Option<Trouble>>, E> {
        let failed = || ArchiveError::io("read", path);
        let bytes = bytes_of(path);
        let mut segment = Segment::open(path, &self.store, first).map_err(failed())?;
        let place = self.place.filter(|place| place.segment == first);
        // If the file is now shorter, it is another file.
        if let Some(place) = place.filter(|place| place.at <= bytes) {
            let next = self.reached.commit + 1;
            segment.skip_to(place.at, next).map_err(failed())?;
        }
        loop {
            let at = segment.at();
            let found = match segment.next().map_err(failed())? {
                Next::Record(found) => found,
                Next::End => return Ok(ControlFlow::Continue(None)),
                end => {
                    return Ok(ControlFlow::Continue(Some(Trouble {
                        is_damage: end == Next::Damaged,
                        path: path.to_owned(),
                        at,
                    })));
                }
            };
            let time_ms = Some(found.time_ms).filter(|time_ms| *time_ms > 0);
            let place = Place {
                segment: first,
                at: segment.at(),
            };
            if found.commit == self.reached.commit {
                self.reached.time_ms = time_ms;
                self.place = Some(place);
            }
            if found.commit <= self.reached.commit {
                continue;
            }
            let archived = Archived {
                commit: found.commit,
                time_ms: found.time_ms,
                body: segment.body(),
            };
            let left_bytes = bytes.saturating_sub(segment.at()) + later_bytes;
            let flow = visit(archived, left_bytes)?;
            self.doubts = 0;
            self.reached = Reached {
                commit: found.commit,
                time_ms,
            };
            self.place = Some(place);
            if flow.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }
}

/// The length of a file in bytes. 0 if it is gone.
fn bytes_of(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}
