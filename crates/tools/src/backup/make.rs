//! `quoin backup`: asks the server that has the store open for a backup, or reads a stopped store.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::file::{BackupError, BackupFile, Header, Totals};
use super::folder::{self, Unfinished, write};
use super::service::Retention;
use crate::embedded_options;
use crate::progress::Bar;
use quoin_base::clock::{Clock, SystemClock};
use quoin_base::size::{counted, size};
use quoin_client::{
    Beside, BesideError, Client, ClientError, InfoFields, connect_beside, login_hint,
};
use quoin_config::{LoadedSettings, StoreKind, server_places};
use quoin_store::StoreError;
use quoin_store_embedded::{EmbeddedStore, Inspection, OpenError, inspect};

const COPY_BYTES: usize = 1024 * 1024;

/// Why `quoin backup` failed.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// The store is not the embedded one.
    #[error("use fdbbackup to back up a FoundationDB cluster (docs/operate/backup.md)")]
    Cluster,
    /// There is no store to back up.
    #[error("there is no store in {} ({origin}): is data-dir right?", folder.display())]
    NoStore {
        /// The data folder.
        folder: PathBuf,
        /// The setting that named it.
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
    /// What it is a backup of.
    pub header: Header,
    /// Its size.
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

/// The options of `quoin backup`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The folder for the backup, or for a copy of it.
    pub to: Option<PathBuf>,
    /// How many backups of the store to keep in that folder. The default is the setting.
    pub keep: Option<u32>,
    /// How the server that has the folder open is asked.
    pub beside: Beside,
}

/// Makes a backup of the configured store.
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
    let archive = settings.journal_archive_dir.as_deref();
    let keep = Retention::of(settings);
    let keep_in_other = Retention {
        backups: options.keep.unwrap_or(keep.backups),
        ..keep
    };
    let opened = match EmbeddedStore::open_archived(data_dir, embedded_options(settings), archive) {
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
        // The server prunes its own folder and its archive.
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

/// Time between two requests for the progress.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum number of backups begun by other clients to wait for.
const TRIES_MAX: u32 = 10;

/// Why a running server made no backup.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It does not listen at the address of the settings.
    #[error(
        "a server has {} open, but none answers at {address}: {source}; give its address with \
         --server", folder.display()
    )]
    Connect {
        /// The data folder.
        folder: PathBuf,
        /// Where it should listen.
        address: String,
        /// Why it cannot be reached.
        source: io::Error,
    },
    /// The connection broke.
    #[error("{address}: {source}")]
    Lost {
        /// The server.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// It replied with an error.
    #[error("{address} answers: {reply}{}", login_hint(reply))]
    Refused {
        /// The server.
        address: String,
        /// Its error.
        reply: String,
    },
    /// Another server is listening there.
    #[error(
        "the server at {address} does not have {} open but {theirs}; give the address of the right \
         one with --server", ours.display()
    )]
    OtherServer {
        /// The server.
        address: String,
        /// The folder to back up.
        ours: PathBuf,
        /// The folder of the server.
        theirs: String,
    },
    /// The backup failed.
    #[error("the backup failed: {0}")]
    Failed(String),
    /// Backups of other clients keep the server busy.
    #[error("the server is busy with backups that others requested")]
    Busy,
}

impl AskError {
    fn of(error: ClientError, folder: &Path) -> Self {
        match error {
            ClientError::Connect { address, source } => Self::Connect {
                folder: folder.to_owned(),
                address: address.to_string(),
                source,
            },
            ClientError::Lost { address, source } => Self::Lost {
                address: address.to_string(),
                source,
            },
            ClientError::Refused { address, reply } => Self::Refused {
                address: address.to_string(),
                reply,
            },
        }
    }
}

/// Makes the server that uses the settings' data folder write a backup. Returns its path.
pub(super) fn ask(
    loaded: &LoadedSettings,
    beside: &Beside,
    bar: &mut Bar,
) -> Result<PathBuf, AskError> {
    let data_dir = &loaded.settings.data_dir;
    let failed = |error| AskError::of(error, data_dir);
    let places = server_places(loaded, beside);
    let (mut client, _) = match connect_beside(&places, data_dir, None) {
        Ok(connected) => connected,
        Err(BesideError::Client(error)) => return Err(failed(error)),
        Err(BesideError::OtherServer { address, theirs }) => {
            return Err(AskError::OtherServer {
                address: address.to_string(),
                ours: data_dir.clone(),
                theirs,
            });
        }
    };
    for _ in 0..TRIES_MAX {
        let before = Persistence::of(&mut client).map_err(failed)?;
        if before.is_running() {
            wait(&mut client, bar, |_| true).map_err(failed)?;
            continue;
        }
        let reply = client.call(&["BGSAVE"]).map_err(failed)?;
        match reply.error_text() {
            None => {}
            Some(line) if line.contains("already in progress") => continue,
            Some(_) => return Err(failed(client.unexpected(&reply))),
        }
        let ended = |now: &Persistence| now.endings() > before.endings();
        let after = wait(&mut client, bar, ended).map_err(failed)?;
        let error = after.0.text("backup_last_error");
        if !error.is_empty() {
            return Err(AskError::Failed(error.to_owned()));
        }
        let name = after.0.text("backup_last_file");
        return Ok(data_dir.join(folder::FOLDER).join(name));
    }
    Err(AskError::Busy)
}

/// Waits until no backup is being made and `is_done` holds.
fn wait(
    client: &mut Client,
    bar: &mut Bar,
    is_done: impl Fn(&Persistence) -> bool,
) -> Result<Persistence, ClientError> {
    loop {
        let now = Persistence::of(client)?;
        if !now.is_running() && is_done(&now) {
            return Ok(now);
        }
        let rows = now.0.number("current_save_keys_processed");
        bar.count("rows", rows, now.0.number("current_save_keys_total"));
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// INFO persistence.
struct Persistence(InfoFields);

impl Persistence {
    fn of(client: &mut Client) -> Result<Self, ClientError> {
        let fields = client.info_fields(&["persistence"])?;
        if fields.has("backup_last_file") {
            return Ok(Self(fields));
        }
        let reply = "it does not support backups: it is another program, or another version";
        Err(client.refused(reply.to_owned()))
    }

    fn is_running(&self) -> bool {
        self.0.number("rdb_bgsave_in_progress") > 0
    }

    /// Backups that have ended since the server started.
    fn endings(&self) -> u64 {
        self.0.number("rdb_saves") + self.0.number("backup_failures")
    }
}
