//! A library for `LD_PRELOAD` between a process and its files: it logs, in order and with the
//! bytes, everything that the process does to files below a folder. From that the test computes the
//! disks that a power loss may leave.
//!
//! It replaces libc functions, which both Rust's library and LMDB (in C) call, and does their work
//! with direct system calls. Its settings are environment variables:
//!
//! - `QUOIN_TEST_DISK_FOLDER`: the folder, as an absolute path without links.
//! - `QUOIN_TEST_DISK_LOG`: the file for the log ([`entry`]).
//! - `QUOIN_TEST_DISK_SYNC_US`: syncs are not carried out, because only this log depends on them.
//!   Instead they take a random time of at most this many microseconds.
//! - `QUOIN_TEST_DISK_BOOT_ID`: the file that is read instead of Linux's boot id.
//! - `QUOIN_TEST_DISK_FULL`: while this file exists, writes fail for lack of room: those that make
//!   a file longer. If it contains `all`, all of them. If it contains `steps`, large ones.
//! - `QUOIN_TEST_DISK_KILL_AT`: the process dies after this many writes to `data.mdb`, counted from
//!   when the file `QUOIN_TEST_DISK_ARMED` exists.
//! - `QUOIN_TEST_DISK_KILL_AFTER`: the process dies after this many operations of any kind.
#![cfg(target_os = "linux")]
#![allow(
    unsafe_code,
    missing_docs,
    clippy::missing_safety_doc,
    reason = "it is made of the C library's functions, whose rules are in its manual"
)]

#[path = "entry.rs"]
mod entry;
mod hooks;
mod system;

use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use entry::Entry;

/// The settings that the process was started with.
struct Settings {
    folder: Vec<u8>,
    log: i32,
    sync_us_max: u64,
    boot_id: Option<CString>,
    full: Option<CString>,
    kill_at: Option<u64>,
    kill_after: Option<u64>,
    armed: Option<CString>,
}

/// Files below the folder that were opened or created, by inode. Their operations are logged. The
/// lock is held over each operation and its entry, so that their orders are the same.
static FILES: Mutex<Vec<u64>> = Mutex::new(Vec::new());
static SYNCS: AtomicU64 = AtomicU64::new(0);
/// To compare with.
static ZEROS: [u8; 4096] = [0; 4096];

/// `None` if nothing should be recorded.
fn settings() -> Option<&'static Settings> {
    static SETTINGS: OnceLock<Option<Settings>> = OnceLock::new();
    SETTINGS
        .get_or_init(|| {
            let text = |name: &str| CString::new(std::env::var(name).ok()?).ok();
            let log = system::open_log(&text("QUOIN_TEST_DISK_LOG")?)?;
            let number = |name: &str| text(name)?.to_str().ok()?.parse::<u64>().ok();
            Some(Settings {
                folder: text("QUOIN_TEST_DISK_FOLDER")?.into_bytes(),
                log,
                sync_us_max: number("QUOIN_TEST_DISK_SYNC_US").unwrap_or(0),
                boot_id: text("QUOIN_TEST_DISK_BOOT_ID"),
                full: text("QUOIN_TEST_DISK_FULL"),
                kill_at: number("QUOIN_TEST_DISK_KILL_AT"),
                kill_after: number("QUOIN_TEST_DISK_KILL_AFTER"),
                armed: text("QUOIN_TEST_DISK_ARMED"),
            })
        })
        .as_ref()
}

fn files() -> MutexGuard<'static, Vec<u64>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Appends an entry to the log. Must be called with the lock of [`FILES`].
fn log(entry: &Entry<'_>) {
    let Some(settings) = settings() else { return };
    let entry = Entry {
        nanoseconds: system::nanoseconds(),
        ..*entry
    };
    system::write_whole(settings.log, [&entry.header(), entry.name, entry.data]);
    static OPERATIONS: AtomicU64 = AtomicU64::new(0);
    let done = OPERATIONS.fetch_add(1, Ordering::SeqCst) + 1;
    if settings.kill_after.is_some_and(|after| done >= after) {
        system::kill();
    }
}

/// The inode of a file or folder whose operations are logged.
fn recorded(files: &[u64], fd: i32) -> Option<u64> {
    let (kind, file) = system::kind_and_inode(fd)?;
    let is_recorded = match kind {
        libc::S_IFREG => files.contains(&file),
        libc::S_IFDIR => is_below(&system::path_of(fd)?),
        _ => false,
    };
    is_recorded.then_some(file)
}

fn is_below(path: &[u8]) -> bool {
    let behind = settings().and_then(|settings| path.strip_prefix(settings.folder.as_slice()));
    behind.is_some_and(|behind| behind.is_empty() || behind.starts_with(b"/"))
}

/// The full path of a name, without links in its folder's path. `None` if it is not below the
/// recorded folder.
fn path_below(folder: i32, name: &CStr) -> Option<Vec<u8>> {
    let name = name.to_bytes();
    let (parent, last) = match name.iter().rposition(|byte| *byte == b'/') {
        Some(0) => (&b"/"[..], name.get(1..)?),
        Some(at) => (name.get(..at)?, name.get(at + 1..)?),
        None => (&b"."[..], name),
    };
    let mut path = system::path_of_folder(folder, &CString::new(parent).ok()?)?;
    path.push(b'/');
    path.extend_from_slice(last);
    is_below(&path).then_some(path)
}

/// Opens or creates a file, and logs what that changed.
fn open(folder: i32, name: &CStr, flags: i32, mode: u32) -> i32 {
    let Some(settings) = settings() else {
        return system::open(folder, name, flags, mode);
    };
    if name.to_bytes() == b"/proc/sys/kernel/random/boot_id"
        && let Some(boot_id) = &settings.boot_id
    {
        return system::open(folder, boot_id, flags, mode);
    }
    // Even if it is only read, because it may be synced.
    let Some(path) = path_below(folder, name) else {
        return system::open(folder, name, flags, mode);
    };
    let mut files = files();
    let was_there = system::exists(folder, name);
    let fd = system::open(folder, name, flags, mode);
    if fd < 0 {
        return fd;
    }
    let Some((_, file)) = system::kind_and_inode(fd) else {
        return fd;
    };
    if !files.contains(&file) {
        files.push(file);
    }
    let entry = Entry {
        file,
        name: &path,
        ..Entry::default()
    };
    if flags & libc::O_TMPFILE == libc::O_TMPFILE {
        unsupported(b"O_TMPFILE");
    } else if !was_there {
        log(&Entry {
            kind: entry::CREATE,
            ..entry
        });
    } else if flags & libc::O_TRUNC != 0 {
        log(&Entry {
            kind: entry::TRUNCATE,
            ..entry
        });
    }
    fd
}

/// Does a write, and logs as much of it as was written. `offset`: `None` for the file's own.
fn write(
    fd: i32,
    parts: &[libc::iovec],
    offset: Option<i64>,
    real: impl Fn(&[libc::iovec]) -> isize,
) -> isize {
    if settings().is_none() {
        return real(parts);
    }
    let files = files();
    let Some(file) = recorded(&files, fd) else {
        drop(files);
        return real(parts);
    };
    let flags = system::flags(fd);
    let at = offset.unwrap_or_else(|| match flags & libc::O_APPEND {
        0 => system::position(fd),
        _ => system::length(fd),
    });
    let bytes = system::bytes_of(parts);
    let room = room(fd, at, bytes.len());
    if room == 0 && !bytes.is_empty() {
        system::set_error(libc::ENOSPC);
        return -1;
    }
    let fitting = bytes.get(..room).unwrap_or(&bytes);
    let written = if fitting.len() < bytes.len() {
        let part = libc::iovec {
            iov_base: fitting.as_ptr().cast_mut().cast(),
            iov_len: fitting.len(),
        };
        real(&[part])
    } else {
        real(parts)
    };
    let Some(data) = usize::try_from(written).ok().and_then(|w| bytes.get(..w)) else {
        return written;
    };
    let is_zeros = data.chunks(ZEROS.len()).all(|part| ZEROS.starts_with(part));
    log(&Entry {
        kind: if is_zeros { entry::ZEROS } else { entry::WRITE },
        flags: match flags & libc::O_DSYNC {
            0 => 0,
            _ => entry::IS_SYNCED,
        },
        file,
        a: at.unsigned_abs(),
        b: data.len() as u64,
        data: if is_zeros { &[] } else { data },
        ..Entry::default()
    });
    kill_in_time(fd);
    written
}

/// Ends the process if it has made as many writes to LMDB's file as it was told.
fn kill_in_time(fd: i32) {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let Some(settings) = settings() else { return };
    let (Some(kill_at), Some(armed)) = (settings.kill_at, &settings.armed) else {
        return;
    };
    let is_data = system::path_of(fd).is_some_and(|path| path.ends_with(b"/data.mdb"));
    if is_data && system::first_byte(armed).is_some() {
        let writes = WRITES.fetch_add(1, Ordering::SeqCst) + 1;
        if writes >= kill_at {
            system::kill();
        }
    }
}

/// How much a write may have if the disk has only little room.
const LITTLE_BYTES: usize = 256 * 1024;

/// How many of the bytes there is room for.
fn room(fd: i32, at: i64, length: usize) -> usize {
    let full = settings().and_then(|settings| settings.full.as_ref());
    match full.and_then(|file| system::first_byte(file)) {
        None => length,
        Some(b'a') => 0,
        Some(b's') if length <= LITTLE_BYTES => length,
        Some(b's') => 0,
        Some(_) => {
            let room = system::length(fd).saturating_sub(at);
            usize::try_from(room).unwrap_or(0).min(length)
        }
    }
}

fn truncate(fd: i32, length: i64) -> i32 {
    let files = files();
    let truncated = system::truncate(fd, length);
    if truncated == 0
        && let Some(file) = recorded(&files, fd)
    {
        log(&Entry {
            kind: entry::TRUNCATE,
            file,
            a: length.unsigned_abs(),
            ..Entry::default()
        });
    }
    truncated
}

/// Replaces a sync of a recorded file or folder. `real` is called for others.
fn sync(fd: i32, real: impl Fn() -> i32) -> i32 {
    let Some(settings) = settings() else {
        return real();
    };
    let begun = {
        let files = files();
        recorded(&files, fd).map(|file| {
            let entry = Entry {
                kind: entry::SYNC_BEGIN,
                file,
                a: SYNCS.fetch_add(1, Ordering::SeqCst),
                ..Entry::default()
            };
            log(&entry);
            entry
        })
    };
    let Some(begun) = begun else {
        return real();
    };
    system::pause(settings.sync_us_max);
    let _files = files();
    log(&Entry {
        kind: entry::SYNC_END,
        ..begun
    });
    0
}

/// Changes names, and logs that if it succeeds.
fn rename(old_folder: i32, old: &CStr, new_folder: i32, new: &CStr, flags: u32) -> i32 {
    let (from, to) = (path_below(old_folder, old), path_below(new_folder, new));
    let files = files();
    let renamed = system::rename(old_folder, old, new_folder, new, flags);
    match (from, to) {
        _ if renamed != 0 => {}
        (None, None) => {}
        (Some(from), Some(to)) if flags == libc::RENAME_EXCHANGE => log(&Entry {
            kind: entry::EXCHANGE,
            file: system::inode_of(new_folder, new).unwrap_or(0),
            a: system::inode_of(old_folder, old).unwrap_or(0),
            name: &from,
            data: &to,
            ..Entry::default()
        }),
        (Some(from), Some(to)) if flags & !libc::RENAME_NOREPLACE == 0 => log(&Entry {
            kind: entry::RENAME,
            file: system::inode_of(new_folder, new).unwrap_or(0),
            name: &from,
            data: &to,
            ..Entry::default()
        }),
        _ => unsupported(b"rename over the folder's border"),
    }
    drop(files);
    renamed
}

fn unlink(folder: i32, name: &CStr, flags: i32) -> i32 {
    let path = path_below(folder, name);
    let _files = files();
    let unlinked = system::unlink(folder, name, flags);
    if unlinked == 0
        && let Some(path) = path
    {
        log(&Entry {
            kind: entry::UNLINK,
            name: &path,
            ..Entry::default()
        });
    }
    unlinked
}

fn make_folder(folder: i32, name: &CStr, mode: u32) -> i32 {
    let path = path_below(folder, name);
    let _files = files();
    let made = system::make_folder(folder, name, mode);
    if made == 0
        && let Some(path) = path
    {
        log(&Entry {
            kind: entry::CREATE,
            flags: entry::IS_FOLDER,
            file: system::inode_of(folder, name).unwrap_or(0),
            name: &path,
            ..Entry::default()
        });
    }
    made
}

/// Writes down that a file's mapping can be written to.
fn mapped(fd: i32) {
    let files = files();
    if let Some(file) = recorded(&files, fd)
        && let Some(path) = system::path_of(fd)
    {
        log(&Entry {
            kind: entry::MAPPED,
            file,
            name: &path,
            ..Entry::default()
        });
    }
}

/// Logs that something is done to a recorded file that this library does not track.
fn unsupported_on(fd: i32, what: &[u8]) {
    let files = files();
    if recorded(&files, fd).is_some() {
        unsupported(what);
    }
}

fn unsupported(what: &[u8]) {
    log(&Entry {
        kind: entry::UNSUPPORTED,
        name: what,
        ..Entry::default()
    });
}
