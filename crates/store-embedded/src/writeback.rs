//! Writing pages of the data file to the disk before the checkpoint syncs it.
//!
//! LMDB leaves its pages to the system's page cache. If they all went to the disk with the sync of a
//! checkpoint, syncs of the journal would wait for them meanwhile, and with them every client.

use std::fs::File;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;

/// Has the system begin to write what of a file is only in its page cache. It hardly waits, and
/// promises nothing: the sync that follows does, and it reports what fails here.
#[cfg(target_os = "linux")]
pub(super) fn begin(file: &File) {
    // SAFETY: it gets a file that is open and no memory.
    #[allow(unsafe_code)]
    unsafe {
        libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE);
    }
}

/// Other systems have no such call.
#[cfg(not(target_os = "linux"))]
pub(super) fn begin(_file: &File) {}
