//! System calls that avoid the functions that this library replaces.

use std::ffi::{CStr, CString, c_long};
use std::io::IoSlice;
use std::time::Duration;

use super::SYNCS;
use std::sync::atomic::Ordering;

/// `AT_FDCWD` as a system call's argument.
pub(super) const HERE: i32 = libc::AT_FDCWD;

pub(super) fn set_error(number: i32) {
    // SAFETY: libc's location of this thread's error.
    unsafe { *libc::__errno_location() = number };
}

pub(super) fn open(folder: i32, name: &CStr, flags: i32, mode: u32) -> i32 {
    // SAFETY: the name ends with a zero.
    unsafe { libc::syscall(libc::SYS_openat, folder, name.as_ptr(), flags, mode) as i32 }
}

fn close(fd: i32) {
    // SAFETY: only for descriptors that this module has opened.
    unsafe { libc::syscall(libc::SYS_close, fd) };
}

/// Opens the log for appending, away from the descriptors that the process itself will see.
pub(super) fn open_log(path: &CStr) -> Option<i32> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
    let fd = open(HERE, path, flags, 0o600);
    // SAFETY: `fcntl` takes any number.
    let far = unsafe { libc::syscall(libc::SYS_fcntl, fd, libc::F_DUPFD_CLOEXEC, 500) as i32 };
    close(fd);
    (far >= 0).then_some(far)
}

pub(super) fn write_whole(fd: i32, parts: [&[u8]; 3]) {
    let mut parts = parts.map(IoSlice::new);
    let mut left = parts.as_mut_slice();
    // The first have no bytes left.
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        // SAFETY: slices have the form of `iovec`, and these live over the call.
        let written =
            unsafe { libc::syscall(libc::SYS_writev, fd, left.as_ptr(), left.len() as c_long) };
        match usize::try_from(written) {
            Ok(written) if written > 0 => IoSlice::advance_slices(&mut left, written),
            // An incomplete log would prove nothing.
            _ if std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) => {}
            _ => std::process::abort(),
        }
    }
}

fn stat(fd: i32) -> Option<libc::stat> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the buffer is as large as what the kernel writes, and is read only if it has been
    // written.
    unsafe {
        (libc::syscall(libc::SYS_fstat, fd, stat.as_mut_ptr()) == 0).then(|| stat.assume_init())
    }
}

pub(super) fn kind_and_inode(fd: i32) -> Option<(u32, u64)> {
    stat(fd).map(|stat| (stat.st_mode & libc::S_IFMT, stat.st_ino))
}

pub(super) fn length(fd: i32) -> i64 {
    stat(fd).map_or(0, |stat| stat.st_size)
}

pub(super) fn position(fd: i32) -> i64 {
    // SAFETY: `lseek` takes any number.
    unsafe { libc::syscall(libc::SYS_lseek, fd, 0, libc::SEEK_CUR) }
}

pub(super) fn flags(fd: i32) -> i32 {
    // SAFETY: `fcntl` takes any number.
    unsafe { libc::syscall(libc::SYS_fcntl, fd, libc::F_GETFL) as i32 }
}

pub(super) fn path_of(fd: i32) -> Option<Vec<u8>> {
    let name = CString::new(format!("/proc/self/fd/{fd}")).ok()?;
    let mut path = vec![0_u8; libc::PATH_MAX as usize];
    // SAFETY: the buffer has the length that the call gets.
    let length = unsafe {
        let buffer = path.as_mut_ptr();
        libc::syscall(
            libc::SYS_readlinkat,
            HERE,
            name.as_ptr(),
            buffer,
            path.len(),
        )
    };
    path.truncate(usize::try_from(length).ok()?);
    Some(path)
}

pub(super) fn path_of_folder(folder: i32, name: &CStr) -> Option<Vec<u8>> {
    let fd = open(folder, name, libc::O_PATH | libc::O_CLOEXEC, 0);
    let path = path_of(fd);
    close(fd);
    path.filter(|_| fd >= 0)
}

pub(super) fn inode_of(folder: i32, name: &CStr) -> Option<u64> {
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let fd = open(folder, name, flags, 0);
    let inode = kind_and_inode(fd).map(|(_, inode)| inode);
    close(fd);
    inode
}

pub(super) fn exists(folder: i32, name: &CStr) -> bool {
    inode_of(folder, name).is_some()
}

/// The first byte of a small file, if it exists. A blank if it is empty.
pub(super) fn first_byte(path: &CStr) -> Option<u8> {
    let fd = open(HERE, path, libc::O_RDONLY | libc::O_CLOEXEC, 0);
    if fd < 0 {
        return None;
    }
    let mut byte = b' ';
    // SAFETY: there is room for the byte.
    unsafe { libc::syscall(libc::SYS_read, fd, &raw mut byte, 1_usize) };
    close(fd);
    Some(byte)
}

pub(super) fn truncate(fd: i32, length: i64) -> i32 {
    // SAFETY: `ftruncate` takes any numbers.
    unsafe { libc::syscall(libc::SYS_ftruncate, fd, length) as i32 }
}

pub(super) fn rename(old_folder: i32, old: &CStr, new_folder: i32, new: &CStr, flags: u32) -> i32 {
    let number = libc::SYS_renameat2;
    let (old, new) = (old.as_ptr(), new.as_ptr());
    // SAFETY: the names end with a zero.
    unsafe { libc::syscall(number, old_folder, old, new_folder, new, flags) as i32 }
}

pub(super) fn unlink(folder: i32, name: &CStr, flags: i32) -> i32 {
    // SAFETY: the name ends with a zero.
    unsafe { libc::syscall(libc::SYS_unlinkat, folder, name.as_ptr(), flags) as i32 }
}

pub(super) fn make_folder(folder: i32, name: &CStr, mode: u32) -> i32 {
    // SAFETY: the name ends with a zero.
    unsafe { libc::syscall(libc::SYS_mkdirat, folder, name.as_ptr(), mode) as i32 }
}

/// The data of a vectored write in one piece.
pub(super) fn bytes_of(parts: &[libc::iovec]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in parts.iter().filter(|part| part.iov_len > 0) {
        // SAFETY: the writer says that this many bytes are there.
        bytes.extend_from_slice(unsafe {
            std::slice::from_raw_parts(part.iov_base.cast(), part.iov_len)
        });
    }
    bytes
}

/// Ends this process like `kill -9`.
pub(super) fn kill() {
    // SAFETY: takes any numbers.
    unsafe { libc::syscall(libc::SYS_kill, libc::getpid(), libc::SIGKILL) };
}

/// Nanoseconds since the machine was started.
pub(super) fn nanoseconds() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the buffer is as large as what is written.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Waits for a random time of at most this long. Occasionally ten times as long, like real disks.
pub(super) fn pause(us_max: u64) {
    if us_max == 0 {
        return;
    }
    // The multiplication spreads the clock and the count of syncs over all bits.
    let seed = nanoseconds() ^ (SYNCS.load(Ordering::SeqCst) << 40);
    let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let factor = if random.is_multiple_of(50) { 10 } else { 1 };
    std::thread::sleep(Duration::from_micros((random / 50) % us_max * factor));
}
