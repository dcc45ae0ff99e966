//! The libc functions that this library replaces.
//!
//! Linux has each under two names, the second of which was for large files. Today they are the same
//! on 64-bit machines. `open` and related functions take the mode as a variable argument, which is
//! passed like a fixed one on the machines that Quoin runs on (x86-64 and AArch64).

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};

use libc::{iovec, mode_t, off_t, size_t, ssize_t};

use super::system::HERE;

/// The name that a caller of libc gave. All names end with a zero.
macro_rules! name {
    ($pointer:expr) => {
        // SAFETY: callers of libc give strings that end with a zero.
        unsafe { CStr::from_ptr($pointer) }
    };
}

/// Defines a function under each of the names.
macro_rules! hook {
    ($($name:ident),+ => $arguments:tt -> $result:ty $body:block) => {
        $(
            #[unsafe(no_mangle)]
            pub(super) unsafe extern "C" fn $name $arguments -> $result $body
        )+
    };
}

hook! { open, open64 => (path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    super::open(HERE, name!(path), flags, mode)
}}
hook! { openat, openat64 => (folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    super::open(folder, name!(path), flags, mode)
}}
hook! { creat, creat64 => (path: *const c_char, mode: mode_t) -> c_int {
    let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
    super::open(HERE, name!(path), flags, mode)
}}

fn one(buffer: *const c_void, length: size_t) -> [iovec; 1] {
    [iovec {
        iov_base: buffer.cast_mut(),
        iov_len: length,
    }]
}

/// The parts of a vectored write.
fn parts<'p>(parts: *const iovec, count: c_int) -> &'p [iovec] {
    match usize::try_from(count) {
        // SAFETY: the caller of libc says that this many are there.
        Ok(count) if count > 0 => unsafe { std::slice::from_raw_parts(parts, count) },
        _ => &[],
    }
}

fn write_parts(fd: c_int, parts: &[iovec]) -> ssize_t {
    // SAFETY: the parts are the caller's, or those of a copy that lives long enough.
    unsafe { libc::syscall(libc::SYS_writev, fd, parts.as_ptr(), parts.len()) as ssize_t }
}

fn write_parts_at(fd: c_int, parts: &[iovec], offset: off_t) -> ssize_t {
    let number = libc::SYS_pwritev;
    // SAFETY: as above. The offset's upper half is for machines of 32 bits.
    unsafe { libc::syscall(number, fd, parts.as_ptr(), parts.len(), offset, 0_i64) as ssize_t }
}

hook! { write => (fd: c_int, buffer: *const c_void, length: size_t) -> ssize_t {
    super::write(fd, &one(buffer, length), None, |parts| write_parts(fd, parts))
}}
hook! { writev => (fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
    super::write(fd, parts(vector, count), None, |parts| write_parts(fd, parts))
}}
hook! { pwrite, pwrite64 => (fd: c_int, buffer: *const c_void, length: size_t, offset: off_t) -> ssize_t {
    super::write(fd, &one(buffer, length), Some(offset), |parts| write_parts_at(fd, parts, offset))
}}
hook! { pwritev, pwritev64 => (fd: c_int, vector: *const iovec, count: c_int, offset: off_t) -> ssize_t {
    super::write(fd, parts(vector, count), Some(offset), |parts| write_parts_at(fd, parts, offset))
}}
hook! { ftruncate, ftruncate64 => (fd: c_int, length: off_t) -> c_int {
    super::truncate(fd, length)
}}

hook! { fsync => (fd: c_int) -> c_int {
    // SAFETY: takes any number.
    super::sync(fd, || unsafe { libc::syscall(libc::SYS_fsync, fd) as c_int })
}}
hook! { fdatasync => (fd: c_int) -> c_int {
    // SAFETY: takes any number.
    super::sync(fd, || unsafe { libc::syscall(libc::SYS_fdatasync, fd) as c_int })
}}

hook! { rename => (old: *const c_char, new: *const c_char) -> c_int {
    super::rename(HERE, name!(old), HERE, name!(new), 0)
}}
hook! { renameat => (old_folder: c_int, old: *const c_char, new_folder: c_int, new: *const c_char) -> c_int {
    super::rename(old_folder, name!(old), new_folder, name!(new), 0)
}}
hook! { renameat2 => (old_folder: c_int, old: *const c_char, new_folder: c_int, new: *const c_char, flags: c_uint) -> c_int {
    super::rename(old_folder, name!(old), new_folder, name!(new), flags)
}}
hook! { unlink => (path: *const c_char) -> c_int {
    super::unlink(HERE, name!(path), 0)
}}
hook! { unlinkat => (folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    super::unlink(folder, name!(path), flags)
}}
hook! { rmdir => (path: *const c_char) -> c_int {
    super::unlink(HERE, name!(path), libc::AT_REMOVEDIR)
}}
hook! { mkdir => (path: *const c_char, mode: mode_t) -> c_int {
    super::make_folder(HERE, name!(path), mode)
}}
hook! { mkdirat => (folder: c_int, path: *const c_char, mode: mode_t) -> c_int {
    super::make_folder(folder, name!(path), mode)
}}

hook! { mmap, mmap64 => (address: *mut c_void, length: size_t, protection: c_int, flags: c_int, fd: c_int, offset: off_t) -> *mut c_void {
    let is_shared = flags & libc::MAP_TYPE != libc::MAP_PRIVATE && flags & libc::MAP_ANONYMOUS == 0;
    if is_shared && protection & libc::PROT_WRITE != 0 {
        super::mapped(fd);
    }
    let number = libc::SYS_mmap;
    // SAFETY: passes on the caller's arguments.
    unsafe { libc::syscall(number, address, length, c_long::from(protection), c_long::from(flags), c_long::from(fd), offset) as *mut c_void }
}}

// Functions that nothing uses so far. The test fails if that changes, rather than miss it.

hook! { fallocate, fallocate64 => (fd: c_int, mode: c_int, offset: off_t, length: off_t) -> c_int {
    // Blocks after a file's end are not part of it.
    if mode & libc::FALLOC_FL_KEEP_SIZE == 0 {
        super::unsupported_on(fd, b"fallocate");
    }
    // SAFETY: takes any numbers.
    unsafe { libc::syscall(libc::SYS_fallocate, fd, mode, offset, length) as c_int }
}}
hook! { posix_fallocate, posix_fallocate64 => (fd: c_int, offset: off_t, length: off_t) -> c_int {
    super::unsupported_on(fd, b"posix_fallocate");
    // SAFETY: takes any numbers.
    unsafe { libc::syscall(libc::SYS_fallocate, fd, 0, offset, length) as c_int }
}}
hook! { copy_file_range => (from: c_int, from_offset: *mut off_t, to: c_int, to_offset: *mut off_t, length: size_t, flags: c_uint) -> ssize_t {
    super::unsupported_on(to, b"copy_file_range");
    // SAFETY: passes on the caller's arguments.
    unsafe { libc::syscall(libc::SYS_copy_file_range, from, from_offset, to, to_offset, length, flags) as ssize_t }
}}
hook! { sendfile, sendfile64 => (to: c_int, from: c_int, offset: *mut off_t, length: size_t) -> ssize_t {
    super::unsupported_on(to, b"sendfile");
    // SAFETY: passes on the caller's arguments.
    unsafe { libc::syscall(libc::SYS_sendfile, to, from, offset, length) as ssize_t }
}}
hook! { splice => (from: c_int, from_offset: *mut off_t, to: c_int, to_offset: *mut off_t, length: size_t, flags: c_uint) -> ssize_t {
    super::unsupported_on(to, b"splice");
    // SAFETY: passes on the caller's arguments.
    unsafe { libc::syscall(libc::SYS_splice, from, from_offset, to, to_offset, length, flags) as ssize_t }
}}
hook! { sync_file_range => (fd: c_int, offset: off_t, length: off_t, flags: c_uint) -> c_int {
    // Writes that have only begun guarantee nothing: as always, pages may be on the disk or not.
    if flags != libc::SYNC_FILE_RANGE_WRITE {
        super::unsupported_on(fd, b"sync_file_range");
    }
    // SAFETY: takes any numbers.
    unsafe { libc::syscall(libc::SYS_sync_file_range, fd, offset, length, flags) as c_int }
}}
hook! { link => (old: *const c_char, new: *const c_char) -> c_int {
    super::unsupported(b"link");
    // SAFETY: passes on the caller's arguments.
    unsafe { libc::syscall(libc::SYS_linkat, HERE, old, HERE, new, 0) as c_int }
}}
hook! { truncate, truncate64 => (path: *const c_char, length: off_t) -> c_int {
    super::unsupported(b"truncate");
    // SAFETY: passes on the caller's arguments.
    unsafe { libc::syscall(libc::SYS_truncate, path, length) as c_int }
}}
