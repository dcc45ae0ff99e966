//! Reads the archive.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use jiff::Timestamp;

use super::ArchiveError;
use super::format::{Next, Segment, first_of};
use crate::StoreId;

/// A commit of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Archived<'r> {
    /// Its number.
    pub commit: u64,
    /// When it was made, in milliseconds since the Unix epoch. 0 if unknown.
    pub time_ms: u64,
    /// Its writes, in the journal's format.
    pub(in super::super) body: &'r [u8],
}

/// How far to read an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// To its end.
    End,
    /// Up to this commit, which must exist.
    Commit(u64),
    /// Up to this time, in milliseconds since the Unix epoch: all commits before the first one that
    /// was made later.
    Time(u64),
}

/// How far an archive was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// The last commit.
    pub commit: u64,
    /// When it was made. `None` if unknown.
    pub time_ms: Option<u64>,
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "commit {}", self.commit)?;
        let time = self.time_ms.and_then(|time_ms| i64::try_from(time_ms).ok());
        match time.and_then(|time_ms| Timestamp::from_millisecond(time_ms).ok()) {
            Some(time) => write!(f, " of {time}"),
            None => Ok(()),
        }
    }
}

/// The segments in a folder, in order, with their first commits.
pub(super) fn segments(folder: &Path) -> Result<Vec<(u64, PathBuf)>, ArchiveError> {
    let failed = || ArchiveError::io("read the folder", folder);
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed()(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed())?;
        let first = entry.file_name().to_str().and_then(first_of);
        found.extend(first.map(|first| (first, entry.path())));
    }
    found.sort();
    Ok(found)
}

/// Calls `visit` with each commit of a store after `after`, in order, up to the limit. Returns how
/// far it read.
///
/// # Errors
/// If a commit before the limit is missing or damaged, or `visit` fails.
pub fn read_archive<E: From<ArchiveError>>(
    archive: &Path,
    store: &StoreId,
    after: Reached,
    limit: Limit,
    mut visit: impl FnMut(Archived<'_>) -> Result<(), E>,
) -> Result<Reached, E> {
    let folder = archive.join(store.to_string());
    let all = segments(&folder)?;
    if all.is_empty() {
        return Err(ArchiveError::Nothing { folder }.into());
    }
    // Earlier segments are not needed.
    let begin = all
        .iter()
        .rposition(|(first, _)| *first <= after.commit + 1)
        .unwrap_or(0);
    let mut reached = after;
    // What is wrong at the end of the previous segment.
    let mut trouble: Option<Trouble> = None;
    for (first, path) in all.iter().skip(begin) {
        if is_enough(limit, reached.commit) {
            break;
        }
        if *first > reached.commit + 1 {
            return Err(gap(reached, trouble).into());
        }
        let failed = || ArchiveError::io("read", path);
        let mut segment = Segment::open(path, store, *first).map_err(failed())?;
        loop {
            if is_enough(limit, reached.commit) {
                return Ok(reached);
            }
            let at = segment.at();
            let found = match segment.next().map_err(failed())? {
                Next::Record(found) => found,
                Next::End => {
                    trouble = None;
                    break;
                }
                // Another segment may continue from here.
                end => {
                    trouble = Some(Trouble {
                        is_damage: end == Next::Damaged,
                        path: path.clone(),
                        at,
                    });
                    break;
                }
            };
            if found.commit <= reached.commit {
                continue;
            }
            if matches!(limit, Limit::Time(time_ms) if found.time_ms > time_ms) {
                return Ok(reached);
            }
            visit(Archived {
                commit: found.commit,
                time_ms: found.time_ms,
                body: segment.body(),
            })?;
            reached = Reached {
                commit: found.commit,
                time_ms: Some(found.time_ms).filter(|time_ms| *time_ms > 0),
            };
        }
    }
    match (limit, trouble) {
        (Limit::Commit(wanted), _) if wanted <= reached.commit => Ok(reached),
        (Limit::Commit(wanted), None) => Err(ArchiveError::Short { wanted, reached }.into()),
        (Limit::Commit(_), trouble) => Err(gap(reached, trouble).into()),
        // An interrupted write leaves an incomplete end, which is not a commit. Damaged bytes may
        // have been a commit.
        (_, Some(trouble)) if trouble.is_damage => Err(gap(reached, Some(trouble)).into()),
        _ => Ok(reached),
    }
}

/// Bytes of a segment that are not a record.
pub(super) struct Trouble {
    /// Whether they are damaged. Otherwise they are an incomplete end.
    pub(super) is_damage: bool,
    pub(super) path: PathBuf,
    pub(super) at: u64,
}

fn is_enough(limit: Limit, commit: u64) -> bool {
    matches!(limit, Limit::Commit(wanted) if commit >= wanted)
}

/// The error for the first commit that cannot be read.
pub(super) fn gap(reached: Reached, trouble: Option<Trouble>) -> ArchiveError {
    let why = match trouble {
        Some(Trouble {
            is_damage,
            path,
            at,
        }) => {
            let what = if is_damage {
                "is damaged"
            } else {
                "is cut off"
            };
            format!("{what} ({} at byte {at})", path.display())
        }
        None => "is not in the archive".to_owned(),
    };
    ArchiveError::Gap {
        missing: reached.commit + 1,
        why,
        reached,
    }
}
