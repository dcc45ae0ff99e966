//! Starts writing pages of the data file to the disk before the checkpoint syncs it.
//!
//! LMDB leaves its pages in the system's page cache. If they all went to the disk with the sync of
//! a checkpoint, syncs of the journal would have to wait for them, and so would every client.

use std::fs::File;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;

/// Asks the system to start writing those parts of a file that are only in its page cache. This
/// call hardly waits and guarantees nothing. The later sync does, and it reports what fails here.
#[cfg(target_os = "linux")]
pub(super) fn begin(file: &File) {
    // SAFETY: the call gets an open file and no memory.
    #[allow(unsafe_code)]
    unsafe {
        libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE);
    }
}

/// Other systems have no such call.
#[cfg(not(target_os = "linux"))]
pub(super) fn begin(_file: &File) {}
