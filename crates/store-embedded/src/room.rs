//! Room on the disk, and a reserve for commands that only remove data.
//!
//! On a full disk, consumers must still be able to empty a queue. Removing data needs room at
//! first: the data file writes a changed page to another place, and can reuse the old one only
//! after the next checkpoint. So the data file reserves some blocks after its end, and commands
//! that add data are refused before they would need these blocks.
//!
//! Another program may take all that is free at any moment. So on a disk with little room the data
//! file also reserves blocks for the commits that it lacks. A start after a kill needs them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use heed::{Env, WithoutTls};

use super::table::Rows;
use quoin_base::limits::{DISK_NEARLY_FULL_BYTES_MAX, DISK_NEARLY_FULL_DIVISOR};
use quoin_base::log_throttle::LogThrottle;

/// Bytes reserved after the end of the data file for removing data.
const RESERVE_BYTES: u64 = 8 << 20;
/// Bytes that the data file may need for a committed byte, because its pages may be half full.
const DATA_FACTOR: u64 = 2;
/// Blocks for commits are reserved if the disk has fewer free bytes than this many for each
/// committed byte. With more, commits can be written before another program fills the disk.
const FREE_FACTOR: u64 = 16;
/// Bytes reserved at a time. If there is no room for all of them, the first pieces are still
/// reserved.
const PIECE_BYTES: u64 = 1 << 20;
/// Bytes that must be left for commands that add data, in addition to what is in memory. Smaller
/// batches are not checked, because those that only remove data write little.
pub(super) const GROWTH_BYTES_MIN: u64 = 4 << 20;
/// Bytes on the disk that a committed byte may need: pages of the data file may be half full, and
/// the journal grows too.
const BYTES_FACTOR: u64 = 3;
/// Bytes by which rows may grow while commands that add data are refused. Consumers need them to
/// record what they take. Part of the reserve is enough for this.
const SPARE_BYTES_MAX: i64 = 1 << 20;

/// The result of the last measurement.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// Bytes by which the data file and the journal may grow, excluding the reserve.
    growth_bytes: AtomicU64,
    /// Free bytes on the disk.
    free_bytes: AtomicU64,
    /// Bytes of the used pages in the data file.
    used_bytes: AtomicU64,
    /// A warning is due when fewer bytes than this are left.
    warning_bytes: AtomicU64,
    /// Whether commands that add data are refused.
    is_short: AtomicBool,
    /// Bytes by which rows have grown since then.
    spent_bytes: AtomicI64,
    /// The end of the data file's blocks, including the reserve.
    reserved_until: AtomicU64,
    full: LogThrottle,
    nearly_full: LogThrottle,
    again: LogThrottle,
}

/// How full a data file is.
struct Use {
    /// Bytes up to the end of the last page.
    end: u64,
    /// Bytes of free pages before that end.
    free: u64,
    /// Bytes left in the map.
    map_left: u64,
}

impl Room {
    /// Measures how much room there is. `pending_bytes` are committed but not in the data file yet.
    pub(super) fn measure(
        &self,
        environment: &Env<WithoutTls>,
        rows: &Rows,
        files: &Files,
        pending_bytes: u64,
    ) -> Result<(), heed::Error> {
        let used = usage(environment, rows)?;
        let for_commits = self.reserve_for(self.measure_disk(files), pending_bytes);
        let reserved_bytes = self.reserve(files, used.end, RESERVE_BYTES + for_commits);
        // What has just been reserved is no longer free.
        let free_bytes = self.measure_disk(files);
        let room_bytes = free_bytes.saturating_add(reserved_bytes);
        let room_bytes = room_bytes.saturating_add(used.free);
        let disk_left = room_bytes.saturating_sub(RESERVE_BYTES);
        let growth_bytes = disk_left.min(used.map_left);
        let used_bytes = used.end.saturating_sub(used.free);
        self.used_bytes.store(used_bytes, Ordering::SeqCst);
        self.growth_bytes.store(growth_bytes, Ordering::SeqCst);
        let least = if self.is_short() {
            2 * GROWTH_BYTES_MIN
        } else {
            GROWTH_BYTES_MIN
        };
        let is_short = growth_bytes < needed(pending_bytes).saturating_add(least);
        if !is_short {
            self.spent_bytes.store(0, Ordering::SeqCst);
        }
        let was_short = self.is_short.swap(is_short, Ordering::SeqCst);
        self.log(files, growth_bytes, was_short);
        Ok(())
    }

    fn log(&self, files: &Files, growth_bytes: u64, was_short: bool) {
        let folder = files.name.as_str();
        let (left_mib, free_mib) = (growth_bytes >> 20, self.free_bytes() >> 20);
        if self.is_short() {
            if let Some(more) = self.full.pass() {
                tracing::warn!(
                    folder,
                    left_mib,
                    free_mib,
                    "the disk is full: commands that add data are refused, those that remove are \
                     not; make room{more}"
                );
            }
        } else if was_short {
            if let Some(more) = self.again.pass() {
                tracing::info!(folder, left_mib, free_mib, "the disk has room again{more}");
            }
        } else if growth_bytes < self.warning_bytes()
            && let Some(more) = self.nearly_full.pass()
        {
            tracing::warn!(folder, left_mib, free_mib, "the disk is nearly full{more}");
        }
    }

    /// Whether a transaction should wait until the data file has what is in memory, because there
    /// may not be room for both.
    pub(super) fn is_tight(&self, pending_bytes: u64) -> bool {
        let growth_bytes = self.growth_bytes.load(Ordering::SeqCst);
        pending_bytes > 0
            && !self.is_short()
            && growth_bytes < needed(pending_bytes).saturating_add(GROWTH_BYTES_MIN)
    }

    /// Whether there is room for a batch that sets rows of `set_bytes`. `pending_bytes` are in
    /// memory, including the batch. A small batch is always accepted, because it may make room.
    pub(super) fn takes(&self, set_bytes: u64, pending_bytes: u64) -> bool {
        set_bytes <= GROWTH_BYTES_MIN
            || needed(pending_bytes) <= self.growth_bytes.load(Ordering::SeqCst)
    }

    /// Whether commands that add data are refused.
    pub(super) fn is_short(&self) -> bool {
        self.is_short.load(Ordering::SeqCst)
    }

    /// Bytes by which rows may still grow while commands that add data are refused.
    pub(super) fn spare_bytes(&self) -> i64 {
        SPARE_BYTES_MAX.saturating_sub(self.spent_bytes.load(Ordering::SeqCst))
    }

    /// Records that a transaction made rows grow by `grown_bytes`, or shrink, while commands that
    /// add data were refused.
    pub(super) fn spend(&self, grown_bytes: i64) {
        let spent = |bytes: i64| Some(bytes.saturating_add(grown_bytes).max(0));
        // Never fails: `spent` always returns `Some`.
        let _ = self
            .spent_bytes
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, spent);
    }

    /// The disk counts as nearly full when fewer bytes than this are left.
    pub(super) fn warning_bytes(&self) -> u64 {
        self.warning_bytes.load(Ordering::SeqCst)
    }

    /// Free bytes on the disk.
    pub(super) fn free_bytes(&self) -> u64 {
        self.free_bytes.load(Ordering::SeqCst)
    }

    /// Bytes of the used pages in the data file.
    pub(super) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::SeqCst)
    }

    /// Bytes to reserve for the commits that the data file lacks, if `free_bytes` are free on the disk.
    fn reserve_for(&self, free_bytes: u64, pending_bytes: u64) -> u64 {
        let is_roomy = free_bytes >= pending_bytes.saturating_mul(FREE_FACTOR)
            && free_bytes >= self.warning_bytes();
        match is_roomy {
            true => 0,
            false => pending_bytes.saturating_mul(DATA_FACTOR),
        }
    }

    /// Measures the disk. Returns how many bytes are free, or the last known value if the system
    /// does not say.
    fn measure_disk(&self, files: &Files) -> u64 {
        if let Ok(disk) = disk(&files.folder) {
            let warning_bytes = nearly_full_bytes(disk.bytes);
            self.warning_bytes.store(warning_bytes, Ordering::SeqCst);
            self.free_bytes.store(disk.free_bytes, Ordering::SeqCst);
        }
        self.free_bytes()
    }

    /// Reserves blocks after the end of the data file. Returns how many bytes are reserved: none on
    /// a file system that cannot reserve blocks.
    fn reserve(&self, files: &Files, end: u64, wanted_bytes: u64) -> u64 {
        let mut until = self.reserved_until.load(Ordering::SeqCst).max(end);
        while until < end.saturating_add(wanted_bytes)
            && allocate(&files.data, until, PIECE_BYTES).is_ok()
        {
            until += PIECE_BYTES;
        }
        self.reserved_until.store(until, Ordering::SeqCst);
        until - end
    }
}

/// The files that are measured.
#[derive(Debug)]
pub(super) struct Files {
    folder: File,
    data: File,
    /// The folder's name.
    name: String,
}

impl Files {
    /// Opens the data folder. `data` is the data file.
    pub(super) fn open(folder: &std::path::Path, data: File) -> io::Result<Self> {
        Ok(Self {
            folder: File::open(folder)?,
            data,
            name: folder.display().to_string(),
        })
    }
}

/// Bytes that `pending_bytes` in memory may need on the disk.
fn needed(pending_bytes: u64) -> u64 {
    pending_bytes.saturating_mul(BYTES_FACTOR)
}

fn usage(environment: &Env<WithoutTls>, rows: &Rows) -> Result<Use, heed::Error> {
    let transaction = environment.read_txn()?;
    let stat = rows.stat(&transaction)?;
    let info = environment.info();
    let page_bytes = u64::from(stat.page_size);
    let used_pages = stat.branch_pages + stat.leaf_pages + stat.overflow_pages;
    let used = (used_pages as u64).saturating_mul(page_bytes);
    let end = (info.last_page_number as u64 + 1).saturating_mul(page_bytes);
    Ok(Use {
        end,
        free: end.saturating_sub(used),
        map_left: (info.map_size as u64).saturating_sub(used),
    })
}

/// A file system.
#[derive(Debug, Clone, Copy)]
struct Disk {
    /// Its size in bytes.
    bytes: u64,
    /// Bytes that are free on it.
    free_bytes: u64,
}

/// The file system of an open folder.
fn disk(folder: &File) -> io::Result<Disk> {
    let mut found = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the descriptor is open, and there is room for the answer.
    #[allow(unsafe_code)]
    let answered = unsafe { libc::fstatvfs(folder.as_raw_fd(), found.as_mut_ptr()) };
    if answered != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so the whole struct is filled in.
    #[allow(unsafe_code)]
    let found = unsafe { found.assume_init() };
    let bytes = |blocks: libc::fsblkcnt_t| blocks.saturating_mul(found.f_frsize);
    Ok(match found.f_blocks {
        // The file system has no limit of its own.
        0 => Disk {
            bytes: 0,
            free_bytes: u64::MAX,
        },
        blocks => Disk {
            bytes: bytes(blocks),
            free_bytes: bytes(found.f_bavail),
        },
    })
}

/// A disk of `disk_bytes` counts as nearly full when fewer bytes than this are left.
fn nearly_full_bytes(disk_bytes: u64) -> u64 {
    (disk_bytes / DISK_NEARLY_FULL_DIVISOR).min(DISK_NEARLY_FULL_BYTES_MAX)
}

/// Allocates blocks of a file from `begin` on, without changing its length or content.
fn allocate(file: &File, begin: u64, length: u64) -> io::Result<()> {
    let begin = libc::off_t::try_from(begin).map_err(io::Error::other)?;
    let length = libc::off_t::try_from(length).map_err(io::Error::other)?;
    loop {
        // SAFETY: the descriptor is open, and the call accepts any numbers.
        #[allow(unsafe_code)]
        let answered =
            unsafe { libc::fallocate(file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, begin, length) };
        if answered == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_does_not_change_a_file_that_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, b"content").unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        if allocate(&file, 7, 1 << 20).is_ok() {
            assert_eq!(std::fs::read(&path).unwrap(), b"content");
        }
    }

    #[test]
    fn a_batch_that_sets_little_is_let_through_on_a_full_disk() {
        let room = Room::default();
        assert!(room.takes(GROWTH_BYTES_MIN, u64::MAX));
        assert!(!room.takes(GROWTH_BYTES_MIN + 1, GROWTH_BYTES_MIN + 1));
    }

    #[test]
    fn a_transaction_waits_for_room_that_what_is_in_memory_may_need() {
        let room = Room::default();
        room.growth_bytes.store(40 << 20, Ordering::SeqCst);
        assert!(!room.is_tight(0));
        assert!(!room.is_tight(12 << 20));
        assert!(room.is_tight(13 << 20));
        // If nothing may be added, there is nothing to wait for.
        room.is_short.store(true, Ordering::SeqCst);
        assert!(!room.is_tight(13 << 20));
    }

    #[test]
    fn what_was_spent_comes_back_when_rows_shrink_and_never_beyond() {
        let room = Room::default();
        room.spend(SPARE_BYTES_MAX);
        assert_eq!(room.spare_bytes(), 0);
        room.spend(-10);
        assert_eq!(room.spare_bytes(), 10);
        room.spend(i64::MIN);
        assert_eq!(room.spare_bytes(), SPARE_BYTES_MAX);
    }

    #[test]
    fn the_warning_follows_the_size_of_the_disk() {
        assert_eq!(nearly_full_bytes(48 << 20), (48 << 20) / 10);
        assert_eq!(nearly_full_bytes(100 << 30), 10 << 30);
        assert_eq!(nearly_full_bytes(u64::MAX), DISK_NEARLY_FULL_BYTES_MAX);
    }

    #[test]
    fn the_free_bytes_of_a_folder_are_those_of_its_file_system() {
        let folder = tempfile::tempdir().unwrap();
        let folder = File::open(folder.path()).unwrap();
        let disk = disk(&folder).unwrap();
        assert!(disk.free_bytes > 0 && disk.free_bytes <= disk.bytes);
    }
}
