//! The two files that checkpoints are written to in turn.
//!
//! Both have their blocks and stay open, so that a checkpoint can be made when the disk is full
//! and the process has no more descriptors.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::super::create::private_file;

pub(in super::super) const CHECKPOINT_FILE: &str = "CHECKPOINT";
/// Where the next is written, which has the content of the one before until then.
pub(super) const CHECKPOINT_NEW_FILE: &str = "CHECKPOINT.new";

/// The files of a folder that are open while checkpoints are made.
#[derive(Debug)]
pub(super) struct Slots {
    /// The folder, whose sync makes a change of names durable.
    folder: File,
    path: PathBuf,
    /// The data file, for its meta pages.
    data: File,
    /// What the present checkpoint is in, once one was made here.
    current: Option<File>,
    /// Where the next one goes; opened when it is needed, where that could not be done before.
    next: Option<File>,
    /// Which name belongs to which file may not be on the disk.
    is_folder_unsynced: bool,
}

impl Slots {
    /// Opens what is needed. `data` is the data file.
    ///
    /// # Errors
    /// What the operating system says.
    pub(super) fn open(folder: &Path, data: File) -> io::Result<Self> {
        let opened = File::open(folder)?;
        // A process that was killed may have exchanged the names just before.
        opened.sync_all()?;
        Ok(Self {
            folder: opened,
            path: folder.to_owned(),
            data,
            current: None,
            next: None,
            is_folder_unsynced: false,
        })
    }

    /// The data file.
    pub(super) fn data(&self) -> &File {
        &self.data
    }

    /// Makes these bytes the checkpoint, all at once.
    ///
    /// # Errors
    /// What the operating system says. The checkpoint before is then still there, unless the sync
    /// of the folder has failed.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_folder_unsynced {
            // Else the file that is written to might still be the checkpoint on the disk.
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
        self.folder.sync_all()?;
        self.is_folder_unsynced = false;
        Ok(())
    }

    /// Makes the file that the next checkpoint goes to, and has it get its blocks: the disk may be
    /// full by then. Where that fails it is for the next checkpoint to say so.
    fn prepare_next(&mut self, bytes: &[u8]) {
        if let Ok(next) = open_next(&self.path) {
            let _ = put(&next, bytes);
            self.next = Some(next);
        }
    }

    /// Has the two files change names.
    fn exchange(&self) -> io::Result<()> {
        let [new, current] = [CHECKPOINT_NEW_FILE, CHECKPOINT_FILE].map(CString::new);
        let (new, current) = (new?, current?);
        let folder = self.folder.as_raw_fd();
        // SAFETY: the folder is open, and both names end with a zero.
        #[allow(unsafe_code)]
        let done = unsafe {
            libc::renameat2(
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

/// Whether there is nothing to exchange with yet, or a file system that cannot do it.
fn is_refused(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOENT | libc::EINVAL | libc::ENOSYS | libc::ENOTSUP)
    )
}
