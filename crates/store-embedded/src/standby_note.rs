//! The note in the folder of a standby: the file STANDBY, which names the store whose archive it
//! follows. Any other commit removes that file first, because archived commits cannot follow it.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::StoreId;
use super::create::{remove, replace_file, sync_folder};

/// The file that names the store whose commits are applied.
pub(super) const STANDBY_FILE: &str = "STANDBY";
const STANDBY_NEW_FILE: &str = "STANDBY.new";
const TITLE: &str = "This store follows the archive of another one.";
/// Maximum bytes of the file that are read.
const STANDBY_BYTES_MAX: u64 = 4096;

/// The store that a folder follows, if it does.
///
/// # Errors
/// If the folder's note is damaged.
pub fn followed_store(folder: &Path) -> io::Result<Option<StoreId>> {
    let file = match std::fs::File::open(folder.join(STANDBY_FILE)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.take(STANDBY_BYTES_MAX).read_to_string(&mut text)?;
    let id = text
        .lines()
        .nth(1)
        .and_then(|line| line.strip_prefix("id "));
    let damaged = || io::Error::other(format!("its file {STANDBY_FILE} is damaged"));
    id.and_then(StoreId::parse).map(Some).ok_or_else(damaged)
}

/// Notes the store that a folder follows.
pub(super) fn note(folder: &Path, followed: StoreId) -> io::Result<()> {
    let text = format!("{TITLE}\nid {followed}\n");
    replace_file(folder, STANDBY_FILE, STANDBY_NEW_FILE, text.as_bytes())
}

/// Keeps the note of an open store true.
#[derive(Debug)]
pub(super) struct Note {
    folder: PathBuf,
    /// Whether the note must be removed before the next commit.
    is_stale_next: AtomicBool,
}

impl Note {
    /// `follows` says whether all commits are those of the followed store.
    pub(super) fn of(folder: &Path, follows: bool) -> Self {
        let is_there = folder.join(STANDBY_FILE).symlink_metadata().is_ok();
        Self {
            folder: folder.to_owned(),
            is_stale_next: AtomicBool::new(is_there && !follows),
        }
    }

    /// Removes the note if the next commit is the store's own. One transaction writes at a time.
    pub(super) fn before_commit(&self) -> io::Result<()> {
        if !self.is_stale_next.load(Ordering::Relaxed) {
            return Ok(());
        }
        remove(&self.folder.join(STANDBY_FILE))?;
        sync_folder(&self.folder)?;
        self.is_stale_next.store(false, Ordering::Relaxed);
        tracing::info!(
            folder = %self.folder.display(),
            "this store was a standby: it has commits of its own now, and follows no archive"
        );
        Ok(())
    }
}
