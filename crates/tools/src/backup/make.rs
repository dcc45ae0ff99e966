//! `quoin backup`.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use super::ask::{AskError, ask};
use super::bar::Bar;
use super::error::BackupError;
use super::folder::{self, Unfinished};
use super::format::{Header, Totals};
use super::read::BackupFile;
use super::service::Retention;
use super::write::write;
use quoin_base::clock::{Clock, SystemClock};
use quoin_base::size::{counted, size};
use quoin_client::Beside;
use quoin_config::{Fsync, LoadedSettings, StoreKind};
use quoin_store::StoreError;
use quoin_store_embedded::{
    EmbeddedOptions, EmbeddedStore, FsyncPolicy, Inspection, OpenError, inspect,
};

const COPY_BYTES: usize = 1024 * 1024;

/// Why `quoin backup` failed.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// The store is not the embedded one.
    #[error("a FoundationDB cluster is backed up by fdbbackup; docs/operate/backup.md tells how")]
    Cluster,
    /// There is no store to back up.
    #[error("there is no store in {} ({origin}): is data-dir right?", folder.display())]
    NoStore {
        /// The data folder.
        folder: PathBuf,
        /// Which setting named it.
        origin: String,
    },
    /// The stopped store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A file could not be written, or differs from what was written.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The running server made no backup.
    #[error(transparent)]
    Ask(#[from] AskError),
}

/// A backup that was made and verified.
#[derive(Debug)]
pub struct Made {
    /// Its path.
    pub path: PathBuf,
    /// The path of its copy.
    pub copy: Option<PathBuf>,
    /// What it is of.
    pub header: Header,
    /// How much is in it.
    pub totals: Totals,
}

impl std::fmt::Display for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Totals {
            rows, file_bytes, ..
        } = self.totals;
        let path = self.copy.as_ref().unwrap_or(&self.path);
        write!(
            f,
            "{}: {} up to commit {}, {}, verified",
            path.display(),
            counted(rows, "row", "rows"),
            self.header.commit,
            size(file_bytes)
        )
    }
}

/// What `quoin backup` is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The folder that gets the backup, or a copy of it.
    pub to: Option<PathBuf>,
    /// How many backups of the store to keep in that folder; the settings say it if this does not.
    pub keep: Option<u32>,
    /// How the server that has the folder open is asked.
    pub beside: Beside,
}

/// Makes a backup of the store that the settings name.
///
/// # Errors
/// See [`MakeError`].
pub fn make(loaded: &LoadedSettings, options: &Options) -> Result<Made, MakeError> {
    let settings = &loaded.settings;
    if settings.store != StoreKind::Embedded {
        return Err(MakeError::Cluster);
    }
    let data_dir = &settings.data_dir;
    let found: Option<Inspection> =
        inspect(data_dir).map_err(BackupError::io("read the folder", data_dir))?;
    if found.is_none() {
        return Err(MakeError::NoStore {
            folder: data_dir.clone(),
            origin: loaded.origin("data-dir").to_string(),
        });
    }
    let mut bar = Bar::new();
    bar.begin("writing");
    let options_of_store = EmbeddedOptions {
        fsync: match settings.fsync {
            Fsync::Always => FsyncPolicy::Always,
            Fsync::EverySec => FsyncPolicy::EverySecond,
        },
        accepts_copy: settings.accept_copied_data_dir,
        ..EmbeddedOptions::default()
    };
    let archive = settings.journal_archive_dir.as_deref();
    let keep = Retention::of(settings);
    let keep_in_other = Retention {
        backups: options.keep.unwrap_or(keep.backups),
        ..keep
    };
    let opened = match EmbeddedStore::open_archived(data_dir, options_of_store, archive) {
        Ok(store) => Some(store),
        Err(OpenError::Locked { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let to = options.to.as_deref();
    let (path, copies_to) = match &opened {
        Some(store) => {
            let own = data_dir.join(folder::FOLDER);
            (write_stopped(store, to.unwrap_or(&own), &mut bar)?, None)
        }
        // The server removes what is old in its own folder, and in its archive.
        None => (ask(loaded, &options.beside, &mut bar)?, to),
    };
    let (header, totals) = verify(&path, &mut bar)?;
    let copy = match copies_to {
        Some(folder) => Some(copy(&path, folder, &mut bar)?),
        None => None,
    };
    if let Some(folder) = to {
        keep_in_other.retire(folder, header.store);
    }
    if let Some(store) = &opened {
        if to.is_none() {
            keep.retire(&data_dir.join(folder::FOLDER), header.store);
        }
        keep.prune_archive(store, header, SystemClock.now_ms());
    }
    Ok(Made {
        path,
        copy,
        header,
        totals,
    })
}

fn write_stopped(
    store: &EmbeddedStore,
    folder: &Path,
    bar: &mut Bar,
) -> Result<PathBuf, BackupError> {
    let moment = store.moment()?;
    let header = Header {
        store: store.id(),
        commit: moment.commit(),
        time_ms: SystemClock.now_ms(),
    };
    let rows_about = moment.rows_about();
    let written = write(store, moment, header, folder, |totals| {
        bar.count("rows", totals.rows, rows_about);
        Ok(())
    })?;
    Ok(written.path)
}

/// Reads all of a backup and checks its checksums.
pub(super) fn verify(path: &Path, bar: &mut Bar) -> Result<(Header, Totals), BackupError> {
    bar.begin("verifying");
    let file = BackupFile::open(path)?;
    let total = file.file_bytes();
    file.verify(|done| bar.bytes(done, total))
}

/// Copies a backup into a folder, and verifies the copy before it gets its name.
fn copy(path: &Path, folder: &Path, bar: &mut Bar) -> Result<PathBuf, BackupError> {
    folder::create(folder)?;
    folder::remove_unfinished(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut unfinished = Unfinished::create(folder, &name)?;
    let copied = unfinished.path();
    bar.begin("copying");
    let mut from = std::fs::File::open(path).map_err(BackupError::io("read", path))?;
    let total = from
        .metadata()
        .map_err(BackupError::io("read", path))?
        .len();
    let mut buffer = vec![0; COPY_BYTES];
    let mut done = 0;
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(BackupError::io("read", path)(error)),
        };
        let part = buffer.get(..count).unwrap_or(&buffer);
        unfinished
            .file
            .write_all(part)
            .map_err(BackupError::io("write", &copied))?;
        done += count as u64;
        bar.bytes(done, total);
    }
    unfinished
        .file
        .sync_all()
        .map_err(BackupError::io("sync", &copied))?;
    verify(&copied, bar)?;
    unfinished.keep()
}

impl From<StoreError> for MakeError {
    fn from(error: StoreError) -> Self {
        Self::Backup(error.into())
    }
}
