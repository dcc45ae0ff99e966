//! The two files that checkpoints are written to in turn.
//!
//! Both files keep their blocks and stay open. So a checkpoint is possible even if the disk is full
//! and the process has no file descriptors left.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::super::create::{private_file, sync_open_folder};

pub(in super::super) const CHECKPOINT_FILE: &str = "CHECKPOINT";
/// The file that the next checkpoint is written to. Until then it has an older one.
pub(super) const CHECKPOINT_NEW_FILE: &str = "CHECKPOINT.new";

/// The open files of a folder that checkpoints use.
#[derive(Debug)]
pub(super) struct Slots {
    /// The folder. Syncing it makes a change of names durable.
    folder: File,
    path: PathBuf,
    /// The data file, for its meta pages.
    data: File,
    /// The file of the current checkpoint. `None` before the first one.
    current: Option<File>,
    /// The file of the next checkpoint. If it could not be opened earlier, it is opened when
    /// needed.
    next: Option<File>,
    /// Whether the change of names may not be on the disk.
    is_folder_unsynced: bool,
}

impl Slots {
    /// Opens the files. `data` is the data file.
    pub(super) fn open(folder: &Path, data: File) -> io::Result<Self> {
        let opened = File::open(folder)?;
        // A killed process may have exchanged the names just before the sync.
        sync_open_folder(&opened)?;
        Ok(Self {
            folder: opened,
            path: folder.to_owned(),
            data,
            current: None,
            next: None,
            is_folder_unsynced: false,
        })
    }

    pub(super) fn data(&self) -> &File {
        &self.data
    }

    /// Makes these bytes the checkpoint, atomically.
    ///
    /// # Errors
    /// After an error the previous checkpoint is still there, unless the sync of the folder failed.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_folder_unsynced {
            // Otherwise the file that is written to might still be the checkpoint on the disk.
            self.sync_folder()?;
        }
        let next = match &self.next {
            Some(next) => next,
            None => self.next.insert(open_next(&self.path)?),
        };
        put(next, bytes)?;
        next.sync_all()?;
        self.is_folder_unsynced = true;
        match self.exchange() {
            Ok(()) => std::mem::swap(&mut self.current, &mut self.next),
            Err(error) if is_refused(&error) => {
                let new = self.path.join(CHECKPOINT_NEW_FILE);
                std::fs::rename(new, self.path.join(CHECKPOINT_FILE))?;
                self.current = self.next.take();
            }
            Err(error) => return Err(error),
        }
        self.sync_folder()?;
        if self.next.is_none() {
            self.prepare_next(bytes);
        }
        Ok(())
    }

    fn sync_folder(&mut self) -> io::Result<()> {
        sync_open_folder(&self.folder)?;
        self.is_folder_unsynced = false;
        Ok(())
    }

    /// Creates the next checkpoint's file with its blocks, because the disk may be full later. If
    /// this fails, the next checkpoint reports it.
    fn prepare_next(&mut self, bytes: &[u8]) {
        if let Ok(next) = open_next(&self.path) {
            let _ = put(&next, bytes);
            self.next = Some(next);
        }
    }

    /// Exchanges the names of the two files.
    fn exchange(&self) -> io::Result<()> {
        let [new, current] = [CHECKPOINT_NEW_FILE, CHECKPOINT_FILE].map(CString::new);
        let (new, current) = (new?, current?);
        let folder = self.folder.as_raw_fd();
        // SAFETY: the folder is open, and both names end with a zero byte.
        #[allow(unsafe_code)]
        let done = unsafe {
            renameat2(
                folder,
                new.as_ptr(),
                folder,
                current.as_ptr(),
                libc::RENAME_EXCHANGE,
            )
        };
        if done == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

#[cfg(not(target_env = "musl"))]
use libc::renameat2;

/// The system call itself: musl has it since version 1.2.6 only, and Rust brings an older one.
///
/// # Safety
/// Both names end with a zero byte.
#[cfg(target_env = "musl")]
#[allow(unsafe_code)]
unsafe fn renameat2(
    old_folder: libc::c_int,
    old: *const libc::c_char,
    new_folder: libc::c_int,
    new: *const libc::c_char,
    flags: libc::c_uint,
) -> libc::c_long {
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_renameat2, old_folder, old, new_folder, new, flags) }
}

fn put(file: &File, bytes: &[u8]) -> io::Result<()> {
    file.write_all_at(bytes, 0)?;
    let length = bytes.len() as u64;
    if file.metadata()?.len() == length {
        Ok(())
    } else {
        file.set_len(length)
    }
}

fn open_next(folder: &Path) -> io::Result<File> {
    let mut options = private_file();
    options.create(true).truncate(false).read(true);
    options.open(folder.join(CHECKPOINT_NEW_FILE))
}

/// Whether there is no second file yet, or the file system cannot exchange names.
fn is_refused(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOENT | libc::EINVAL | libc::ENOSYS | libc::ENOTSUP)
    )
}
