//! The lock of a folder. It lets one process at a time use the folder.
//!
//! Both the folder itself and the file LOCK in it are locked. The file can be removed while a
//! process has it locked, and another process would then lock a new file. This cannot happen to the
//! folder. But some network file systems cannot lock folders.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::create::private_file;
use super::error::OpenError;

/// The file that a running server keeps locked. It contains the server's process id.
pub(super) const LOCK_FILE: &str = "LOCK";

/// How long to wait for the lock. A process that is ending still holds it for a moment. So does a
/// child that the previous owner forked and that has not executed its own program yet.
const PATIENCE: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(10);

/// Keeps a folder locked until it is dropped.
#[derive(Debug)]
pub(super) struct FolderLock {
    folder: Option<File>,
    file: Option<File>,
}

impl FolderLock {
    /// Locks what exists of a folder. Changes nothing in it.
    ///
    /// # Errors
    /// If another process has it locked.
    pub(super) fn of_existing(folder: &Path) -> Result<Self, OpenError> {
        let mut lock = Self {
            folder: None,
            file: None,
        };
        lock.take_folder(folder)?;
        if let Ok(file) = File::options().write(true).open(folder.join(LOCK_FILE)) {
            lock.file = Some(locked(folder, file)?);
        }
        Ok(lock)
    }

    /// Locks the rest: the folder, if it has been created since, and its lock file. Creates the
    /// file if it is missing.
    ///
    /// # Errors
    /// If another process has it locked.
    pub(super) fn complete(&mut self, folder: &Path) -> Result<(), OpenError> {
        self.take_folder(folder)?;
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                let created = private_file()
                    .create(true)
                    .truncate(false)
                    .open(folder.join(LOCK_FILE));
                let file = created.map_err(|source| OpenError::Access {
                    folder: folder.to_owned(),
                    source,
                })?;
                locked(folder, file)?
            }
        };
        note_process(&file);
        self.file = Some(file);
        Ok(())
    }

    fn take_folder(&mut self, folder: &Path) -> Result<(), OpenError> {
        if self.folder.is_some() {
            return Ok(());
        }
        // If the folder cannot be opened, the code that needs it will report that.
        let Ok(opened) = File::open(folder) else {
            return Ok(());
        };
        match locked(folder, opened) {
            Ok(opened) => self.folder = Some(opened),
            Err(OpenError::Access { source, .. }) => {
                tracing::debug!(%source, "this file system does not lock folders");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn locked(folder: &Path, lock: File) -> Result<File, OpenError> {
    let folder = folder.to_owned();
    let until = Instant::now() + PATIENCE;
    let tried = loop {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(PAUSE),
            tried => break tried,
        }
    };
    match tried {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => {
            let text = std::fs::read_to_string(folder.join(LOCK_FILE)).unwrap_or_default();
            let process = text.trim().parse().ok();
            Err(OpenError::Locked { folder, process })
        }
        Err(TryLockError::Error(source)) => Err(OpenError::Access { folder, source }),
    }
}

/// Writes the process id into the lock file, for the message of another process. A failure does no
/// harm.
fn note_process(mut lock: &File) {
    let text = format!("{}\n", std::process::id());
    let _: io::Result<()> = lock
        .set_len(0)
        .and_then(|()| lock.write_all(text.as_bytes()));
}

/// Whether another process has the folder's store open.
pub fn is_in_use(folder: &Path) -> bool {
    is_locked(folder) || is_locked(&folder.join(LOCK_FILE))
}

/// Whether another process has a file locked. This tries a shared lock. Unlike an exclusive lock on
/// NFS, it needs no write permission, and it does not disturb other processes that check.
pub fn is_locked(path: &Path) -> bool {
    let opened = File::open(path);
    opened.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_in_use_while_it_is_locked_and_not_while_somebody_finds_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK_FILE);
        let file = File::create(&path).unwrap();
        for locked in [File::open(folder.path()).unwrap(), file] {
            assert!(!is_in_use(folder.path()));
            locked.lock_shared().unwrap();
            assert!(!is_in_use(folder.path()));
            locked.lock().unwrap();
            assert!(is_in_use(folder.path()));
            locked.unlock().unwrap();
        }
    }
}
