//! Detects copies of a folder that was not closed cleanly.
//!
//! A copy of a running server's files (made with `cp`, say) has parts from different moments. While
//! a store is open, a file in its folder records which files it has open. They are identified by
//! their creation time, which a copy does not keep, or by their inodes on file systems without
//! creation times.

use std::fs::Metadata;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::create::{private_file, remove, sync_folder};
use super::data_file::DATA_FILE;
use super::error::may_pass;
use super::folder::is_closed_cleanly;

/// The file with this record. It exists while a store is open, and after a crash.
pub(super) const OPEN_FILE: &str = "OPEN";
const OPEN_NEW_FILE: &str = "OPEN.new";
const TITLE: &str = "Quoin has these files open, or was killed while it had:";
/// The files whose copies are detected. They are never replaced while a store is open, or between a
/// crash and the next start.
const FILES: [&str; 1] = [DATA_FILE];

/// What distinguishes a file from a copy of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    inode: u64,
    /// Nanoseconds since the Unix epoch.
    made_at_ns: Option<u128>,
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        let made_at = metadata.created().ok();
        let made_at = made_at.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        Self {
            inode: metadata.ino(),
            made_at_ns: made_at.map(|at| at.as_nanos()).filter(|at| *at > 0),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self.made_at_ns, other.made_at_ns) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => self.inode == other.inode,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let inode = words.next()?.parse().ok()?;
        let made_at_ns = match words.next()? {
            "-" => None,
            number => Some(number.parse().ok()?),
        };
        Some(Self { inode, made_at_ns })
    }
}

/// Whether the folder's files are copies of the files that were open. `false` if unknown.
pub(super) fn is_copy(folder: &Path) -> io::Result<bool> {
    let text = match std::fs::read_to_string(folder.join(OPEN_FILE)) {
        Ok(text) => text,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::InvalidData
            ) =>
        {
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    for name in FILES {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let recorded = line.and_then(|line| Identity::parse(line.trim_start()));
        let metadata = match folder.join(name).metadata() {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if recorded.is_some_and(|recorded| !recorded.is_same(&Identity::of(&metadata))) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Records which files are open. If there is no room for the record, copies are not detected.
pub(super) fn record(folder: &Path) -> io::Result<()> {
    let mut text = format!("{TITLE}\n");
    for name in FILES {
        let metadata = match folder.join(name).metadata() {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let identity = Identity::of(&metadata);
        let made_at = identity.made_at_ns.map(|at| at.to_string());
        let made_at = made_at.as_deref().unwrap_or("-");
        text.push_str(&format!("{name} {} {made_at}\n", identity.inode));
    }
    if std::fs::read(folder.join(OPEN_FILE)).is_ok_and(|there| there == text.as_bytes()) {
        return Ok(());
    }
    let new = folder.join(OPEN_NEW_FILE);
    match write(&new, &text) {
        Err(error) if may_pass(&error) => {
            tracing::warn!(
                %error,
                "cannot record which files are open: a copy of them would not be detected"
            );
            remove(&new)?;
            return forget(folder);
        }
        written => written?,
    }
    std::fs::rename(&new, folder.join(OPEN_FILE))?;
    sync_folder(folder)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = private_file().create(true).truncate(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// When dropped, removes the record if the store was closed cleanly.
#[derive(Debug)]
pub(super) struct OpenFiles {
    folder: PathBuf,
}

impl OpenFiles {
    pub(super) fn of(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }
}

impl Drop for OpenFiles {
    fn drop(&mut self) {
        let is_closed = is_closed_cleanly(&self.folder).unwrap_or(false);
        if is_closed && let Err(error) = forget(&self.folder) {
            tracing::warn!(%error, "cannot remove the file {OPEN_FILE}");
        }
    }
}

/// Removes the record of a store that was closed cleanly.
pub(super) fn forget(folder: &Path) -> io::Result<()> {
    remove(&folder.join(OPEN_FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in FILES {
            std::fs::write(folder.path().join(name), b"x").unwrap();
        }
        folder
    }

    /// Waits until the file system's clock advances. Files created before that get the same time.
    fn wait_for_another_time(folder: &Path) {
        let made_at = |name: String| {
            let path = folder.join(name);
            std::fs::write(&path, b"").unwrap();
            Identity::of(&path.metadata().unwrap()).made_at_ns
        };
        let first = made_at("first".to_owned());
        for count in 0..10_000 {
            let last = made_at(format!("last-{count}"));
            if last.is_none() || last != first {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    #[test]
    fn the_same_files_are_no_copy() {
        let folder = folder();
        record(folder.path()).unwrap();
        std::fs::write(folder.path().join(DATA_FILE), b"more").unwrap();
        assert!(!is_copy(folder.path()).unwrap());
    }

    #[test]
    fn a_folder_that_was_moved_is_no_copy() {
        let outer = tempfile::tempdir().unwrap();
        let [from, to] = ["a", "b"].map(|name| outer.path().join(name));
        std::fs::create_dir(&from).unwrap();
        for name in FILES {
            std::fs::write(from.join(name), b"x").unwrap();
        }
        record(&from).unwrap();
        std::fs::rename(&from, &to).unwrap();
        assert!(!is_copy(&to).unwrap());
    }

    #[test]
    fn copied_files_are_detected() {
        let from = folder();
        wait_for_another_time(from.path());
        let to = folder();
        record(from.path()).unwrap();
        std::fs::copy(from.path().join(OPEN_FILE), to.path().join(OPEN_FILE)).unwrap();
        assert!(is_copy(to.path()).unwrap());
    }

    #[test]
    fn one_file_that_was_copied_is_detected() {
        let folder = folder();
        record(folder.path()).unwrap();
        let data = folder.path().join(DATA_FILE);
        wait_for_another_time(folder.path());
        std::fs::copy(&data, folder.path().join("copy")).unwrap();
        std::fs::rename(folder.path().join("copy"), &data).unwrap();
        assert!(is_copy(folder.path()).unwrap());
    }

    #[test]
    fn a_folder_that_says_nothing_is_no_copy() {
        let folder = folder();
        assert!(!is_copy(folder.path()).unwrap());
        std::fs::write(folder.path().join(OPEN_FILE), b"\xff").unwrap();
        assert!(!is_copy(folder.path()).unwrap());
        record(folder.path()).unwrap();
        forget(folder.path()).unwrap();
        forget(folder.path()).unwrap();
        assert!(!is_copy(folder.path()).unwrap());
    }

    #[test]
    fn numbers_decide_where_no_time_is_known() {
        let identity = |inode, made_at_ns| Identity { inode, made_at_ns };
        assert!(identity(1, None).is_same(&identity(1, Some(5))));
        assert!(!identity(1, None).is_same(&identity(2, Some(5))));
        assert!(identity(1, Some(5)).is_same(&identity(2, Some(5))));
        assert!(!identity(1, Some(5)).is_same(&identity(1, Some(6))));
    }
}
