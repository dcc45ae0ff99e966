//! The folder of backups: names, retention, unfinished backups, and writing one while a store is in
//! use.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::file::{BackupError, BackupFile, Encoder, Header, Totals};
use quoin_store_embedded::{EmbeddedStore, Moment, StoreId, is_locked, sync_folder};

/// The folder of backups within a data folder.
pub(super) const FOLDER: &str = "backups";
const PREFIX: &str = "quoin-";
const SUFFIX: &str = ".backup";

/// The suffix of a backup while it is written.
const TEMPORARY_SUFFIX: &str = ".backup.part";
const TIME_FORMAT: &str = "%Y%m%dT%H%M%S%.3fZ";

/// Backups contain all data of a store, so only its owner may read them.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

/// A backup in a folder, according to its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Listed {
    /// The last commit in it.
    pub(super) commit: u64,
    /// When it was begun, in milliseconds since the Unix epoch.
    pub(super) time_ms: i64,
    /// Where it is.
    pub(super) path: PathBuf,
}

/// The name of a backup: `quoin-<UTC time>-<commit>.backup`.
pub(super) fn name(time_ms: i64, commit: u64) -> String {
    let time = Timestamp::from_millisecond(time_ms).unwrap_or_default();
    format!("{PREFIX}{}-{commit}{SUFFIX}", time.strftime(TIME_FORMAT))
}

/// The time and the commit in the name of a backup.
fn parse(name: &str) -> Option<(i64, u64)> {
    let inner = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let (time, commit) = inner.split_once('-')?;
    // `jiff` reads an offset by another directive.
    let time = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%S%.fZ", time).ok()?;
    let time = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
    Some((time.as_millisecond(), commit.parse().ok()?))
}

/// Creates the folder if it is missing, for its owner only.
pub(super) fn create(folder: &Path) -> Result<(), BackupError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.mode(FOLDER_MODE);
    match builder.create(folder) {
        Ok(()) => match folder.parent() {
            Some(parent) if parent.as_os_str().is_empty() => sync(Path::new(".")),
            Some(parent) => sync(parent),
            None => Ok(()),
        },
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) => Err(BackupError::io("make the folder", folder)(error)),
    }
}

/// Syncs a folder.
pub(super) fn sync(folder: &Path) -> Result<(), BackupError> {
    sync_folder(folder).map_err(BackupError::io("sync the folder", folder))
}

/// The backups in a folder, the oldest first. None if there is no folder.
pub(super) fn list(folder: &Path) -> Result<Vec<Listed>, BackupError> {
    let mut found = Vec::new();
    for name in names(folder)? {
        if let Some((time_ms, commit)) = parse(&name) {
            found.push(Listed {
                commit,
                time_ms,
                path: folder.join(name),
            });
        }
    }
    found.sort();
    Ok(found)
}

fn names(folder: &Path) -> Result<Vec<String>, BackupError> {
    let failed = || BackupError::io("read the folder", folder);
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed()(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed())?.file_name();
        names.extend(name.into_string().ok());
    }
    Ok(names)
}

/// Removes unfinished backups, except those being made.
pub(super) fn remove_unfinished(folder: &Path) -> Result<(), BackupError> {
    for name in names(folder)? {
        if !name.starts_with(PREFIX) || !name.ends_with(TEMPORARY_SUFFIX) {
            continue;
        }
        let path = folder.join(&name);
        if !is_locked(&path) {
            tracing::info!(file = %name, "removed an unfinished backup");
            remove(&path)?;
        }
    }
    Ok(())
}

/// Removes the oldest backups of a store until `keep` remain. 0 keeps all. Returns the number
/// removed.
pub(super) fn retire(folder: &Path, store: StoreId, keep: u32) -> Result<usize, BackupError> {
    let mut found = list(folder)?;
    // Other stores may have backups there too. Unreadable files stay.
    found.retain(|listed| {
        BackupFile::open(&listed.path).is_ok_and(|file| file.header().store == store)
    });
    let keep = usize::try_from(keep).unwrap_or(usize::MAX);
    if keep == 0 || found.len() <= keep {
        return Ok(0);
    }
    let surplus = found.len() - keep;
    for listed in found.iter().take(surplus) {
        remove(&listed.path)?;
    }
    Ok(surplus)
}

fn remove(path: &Path) -> Result<(), BackupError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(BackupError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// A file with a temporary name. It is removed unless it is [kept](Self::keep).
pub(super) struct Unfinished {
    pub(super) file: File,
    folder: PathBuf,
    name: String,
    is_kept: bool,
}

impl Unfinished {
    /// Creates the file that will have this name.
    pub(super) fn create(folder: &Path, name: &str) -> Result<Self, BackupError> {
        let unfinished = temporary(folder, name);
        remove(&unfinished)?;
        let file = File::options()
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(&unfinished)
            .and_then(|file| {
                // Also if the umask of the process is different.
                file.set_permissions(Permissions::from_mode(FILE_MODE))?;
                // So that another process does not consider it left by a killed one. Some file
                // systems have no locks.
                let _ = file.try_lock();
                Ok(file)
            })
            .map_err(BackupError::io("make", &unfinished))?;
        Ok(Self {
            file,
            folder: folder.to_owned(),
            name: name.to_owned(),
            is_kept: false,
        })
    }

    /// Its path until it is kept.
    pub(super) fn path(&self) -> PathBuf {
        temporary(&self.folder, &self.name)
    }

    /// Syncs it and gives it its name. Returns its path.
    pub(super) fn keep(mut self) -> Result<PathBuf, BackupError> {
        let unfinished = self.path();
        self.file
            .sync_all()
            .map_err(BackupError::io("sync", &unfinished))?;
        let path = self.folder.join(&self.name);
        std::fs::rename(&unfinished, &path).map_err(BackupError::io("rename", &unfinished))?;
        self.is_kept = true;
        sync(&self.folder)?;
        Ok(path)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // If that fails, too, the next backup removes it.
        if !self.is_kept
            && let Err(error) = remove(&self.path())
        {
            tracing::warn!(%error, "cannot remove an unfinished backup");
        }
    }
}

fn temporary(folder: &Path, name: &str) -> PathBuf {
    let stem = name.strip_suffix(SUFFIX).unwrap_or(name);
    folder.join(format!("{stem}{TEMPORARY_SUFFIX}"))
}

/// Bytes after which the file is synced, so that a sync for a client never waits for much more than that.
const SYNC_BYTES: u64 = 4 * 1024 * 1024;

/// The longest pause for clients after a block.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// The progress of a backup, and whether to stop it.
#[derive(Debug, Default)]
pub(super) struct Progress {
    rows: AtomicU64,
    bytes: AtomicU64,
    is_stopped: AtomicBool,
}

impl Progress {
    pub(super) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Aborts the backup.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Notes the progress. An error aborts the backup.
    pub(super) fn note(&self, totals: Totals) -> Result<(), BackupError> {
        self.rows.store(totals.rows, Ordering::Relaxed);
        self.bytes.store(totals.file_bytes, Ordering::Relaxed);
        if self.is_stopped.load(Ordering::Relaxed) {
            return Err(BackupError::Stopped);
        }
        Ok(())
    }
}

/// A backup that is complete and synced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its path.
    pub path: PathBuf,
    /// What it is a backup of.
    pub header: Header,
    /// Its size.
    pub totals: Totals,
}

/// Writes a backup into a folder. `progress` gets the totals so far, and may abort it.
pub(super) fn write(
    store: &EmbeddedStore,
    moment: Moment,
    header: Header,
    folder: &Path,
    mut progress: impl FnMut(Totals) -> Result<(), BackupError>,
) -> Result<Written, BackupError> {
    create(folder)?;
    remove_unfinished(folder)?;
    let name = name(header.time_ms, header.commit);
    let unfinished = Unfinished::create(folder, &name)?;
    let path = unfinished.path();
    let failed = || BackupError::io("write", &path);
    let mut encoder = Encoder::begin(&unfinished.file, &header).map_err(failed())?;
    let mut pace = Pace::new(store);
    moment.visit(|key, value| {
        if encoder.push(key, value).map_err(failed())? {
            let totals = encoder.totals();
            progress(totals)?;
            pace.after_block(encoder.out(), totals.file_bytes)
                .map_err(failed())?;
        }
        Ok::<_, BackupError>(())
    })?;
    // From here on the data file may reuse the pages that this snapshot needed.
    drop(moment);
    let (_, totals) = encoder.finish().map_err(failed())?;
    progress(totals)?;
    // A backup must not contain commits that its store could lose in a power failure.
    store.sync_commits()?;
    let path = unfinished.keep()?;
    Ok(Written {
        path,
        header,
        totals,
    })
}

/// Leaves half of the time to clients: while they write, each block is followed by a pause of its own
/// duration.
struct Pace<'s> {
    store: &'s EmbeddedStore,
    last_commit: u64,
    begun: Instant,
    synced_bytes: u64,
}

impl<'s> Pace<'s> {
    fn new(store: &'s EmbeddedStore) -> Self {
        Self {
            store,
            last_commit: store.last_commit(),
            begun: Instant::now(),
            synced_bytes: 0,
        }
    }

    fn after_block(&mut self, file: &File, written_bytes: u64) -> std::io::Result<()> {
        if written_bytes - self.synced_bytes >= SYNC_BYTES {
            file.sync_data()?;
            self.synced_bytes = written_bytes;
        }
        let last_commit = self.store.last_commit();
        if last_commit != self.last_commit {
            self.last_commit = last_commit;
            std::thread::sleep(self.begun.elapsed().min(PAUSE_MAX));
        }
        self.begun = Instant::now();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::file::{Encoder, Header};

    const TIME_MS: i64 = 1_795_328_173_045;

    fn store(number: u8) -> StoreId {
        StoreId::from_bytes([number; 16])
    }

    fn put_of(store: StoreId, folder: &Path, time_ms: i64, commit: u64) -> PathBuf {
        let unfinished = Unfinished::create(folder, &name(time_ms, commit)).unwrap();
        let header = Header {
            store,
            commit,
            time_ms,
        };
        Encoder::begin(&unfinished.file, &header)
            .unwrap()
            .finish()
            .unwrap();
        unfinished.keep().unwrap()
    }

    fn put(folder: &Path, time_ms: i64, commit: u64) -> PathBuf {
        put_of(store(1), folder, time_ms, commit)
    }

    #[test]
    fn a_name_tells_time_and_commit() {
        let name = name(TIME_MS, 12);
        assert_eq!(name, "quoin-20261122T061613.045Z-12.backup");
        assert_eq!(parse(&name), Some((TIME_MS, 12)));
        for other in [
            "quoin-20261122T061613.045Z-12.backup.part",
            "quoin-12.backup",
            "quoin-20261122T061613.045Z-.backup",
            "dump.rdb",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn the_oldest_go_and_others_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("notes"), "").unwrap();
        for commit in 1..=4 {
            // The clock goes back, so the commits determine the order.
            put(folder.path(), TIME_MS - commit as i64, commit);
        }
        assert_eq!(retire(folder.path(), store(1), 0).unwrap(), 0);
        assert_eq!(retire(folder.path(), store(1), 2).unwrap(), 2);
        let left = list(folder.path()).unwrap();
        let commits: Vec<u64> = left.iter().map(|listed| listed.commit).collect();
        assert_eq!(commits, [3, 4]);
        assert!(folder.path().join("notes").exists());
    }

    #[test]
    fn backups_of_other_stores_do_not_count_and_stay() {
        let folder = tempfile::tempdir().unwrap();
        for commit in 1..=3 {
            put_of(store(1), folder.path(), TIME_MS, 10 + commit);
            put_of(store(2), folder.path(), TIME_MS, commit);
        }
        let unreadable = folder.path().join(name(TIME_MS, 1));
        std::fs::write(&unreadable, "half").unwrap();
        assert_eq!(retire(folder.path(), store(1), 2).unwrap(), 1);
        let left = list(folder.path()).unwrap();
        let commits: Vec<u64> = left.iter().map(|listed| listed.commit).collect();
        assert_eq!(commits, [1, 2, 3, 12, 13]);
    }

    #[test]
    fn what_is_not_finished_is_no_backup_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let name = name(TIME_MS, 1);
        let unfinished = Unfinished::create(folder.path(), &name).unwrap();
        assert_eq!(list(folder.path()).unwrap(), []);
        remove_unfinished(folder.path()).unwrap();
        assert!(unfinished.path().exists(), "it is being made");
        // The state that a kill would leave.
        let bytes = std::fs::read(unfinished.path()).unwrap();
        let path = unfinished.path();
        drop(unfinished);
        std::fs::write(path, bytes).unwrap();
        put(folder.path(), TIME_MS, 2);
        remove_unfinished(folder.path()).unwrap();
        let names = names(folder.path()).unwrap();
        assert_eq!(names, ["quoin-20261122T061613.045Z-2.backup"]);
        drop(Unfinished::create(folder.path(), &name).unwrap());
        assert_eq!(self::names(folder.path()).unwrap().len(), 1);
    }

    #[test]
    fn only_the_owner_can_read_a_backup() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join(FOLDER);
        create(&folder).unwrap();
        create(&folder).unwrap();
        let path = put(&folder, TIME_MS, 1);
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), FILE_MODE);
        assert_eq!(mode(&folder), FOLDER_MODE);
    }
}
