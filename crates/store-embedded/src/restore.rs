//! Creates a data folder from the rows of a backup and the commits of an archive.
//!
//! The files are created in a subfolder and moved at the end. A server does not treat a folder with
//! that subfolder as empty. So the subfolder is created first, even before the folder has its name,
//! and is removed last.

use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};

use futures_util::FutureExt;

use super::archive::{ArchiveError, Archived};
use super::bulk::Written;
use super::data_file::DATA_FILE;
use super::error::Refusal;
use super::folder::{self, Found, UNFINISHED_RESTORE};
use super::journal::{self, Write, writes};
use super::lock::FolderLock;
use super::marker::MARKER_FILE;
use super::opening::map_bytes;
use super::standby_note::{self, STANDBY_FILE};
use super::{EmbeddedOptions, EmbeddedStore, FsyncPolicy, OpenError, StoreId, create, make_store};
use quoin_base::limits;
use quoin_base::random::SystemRandom;
use quoin_store::{Store, StoreError};

/// Why a restore failed.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The folder has a store.
    #[error("there is a store in {}: name a folder that is empty or does not exist", folder.display())]
    HasStore {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder cannot be used, or the new store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A commit of the archive could not be applied.
    #[error("commit {commit} cannot be applied: {source}")]
    Apply {
        /// Its number.
        commit: u64,
        /// Why.
        source: StoreError,
    },
    /// The archive lacks something that the restore needs.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The folder's store follows no archive.
    #[error(
        "the store in {} follows no archive: a server has written to it, or it was restored \
         without --follow; name a folder that is empty or does not exist", folder.display()
    )]
    NoStandby {
        /// The folder.
        folder: PathBuf,
    },
    /// The store does not end with the expected commit.
    #[error("the store ends with commit {found}, but should end with {expected}")]
    Number {
        /// Its last commit.
        found: u64,
        /// The commit that it should end with.
        expected: u64,
    },
    /// The operating system refused something.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl RestoreError {
    pub(super) fn io<'p>(
        action: &'static str,
        path: &'p Path,
    ) -> impl FnOnce(io::Error) -> Self + 'p {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// A data folder that is being restored.
pub struct Restoration {
    folder: PathBuf,
    unfinished: PathBuf,
    _lock: FolderLock,
}

impl Restoration {
    /// Begins a restore into an empty folder. Creates the folder if it is missing. Removes what an
    /// earlier restore left in it.
    ///
    /// # Errors
    /// If the folder is not empty, or cannot be used.
    pub fn begin(folder: &Path) -> Result<Self, RestoreError> {
        let unfinished = folder.join(UNFINISHED_RESTORE);
        if folder.symlink_metadata().is_err() {
            create_unfinished(folder).map_err(|source| OpenError::Create {
                folder: folder.to_owned(),
                source,
            })?;
        }
        // Lock first, so that the files of a running restore are not removed.
        let mut lock = FolderLock::of_existing(folder)?;
        let is_interrupted = match folder::identify(folder) {
            Ok(Found::Nothing) => false,
            Err(OpenError::Refused {
                refusal: Refusal::UnfinishedRestore,
                ..
            }) => true,
            Ok(_) => {
                return Err(RestoreError::HasStore {
                    folder: folder.to_owned(),
                });
            }
            Err(error) => return Err(error.into()),
        };
        create::create_folder(&unfinished).map_err(RestoreError::io("create", &unfinished))?;
        lock.complete(folder)?;
        if is_interrupted {
            empty(&unfinished).map_err(RestoreError::io("empty", &unfinished))?;
            // These files are moved before the marker, so they may be here already.
            for name in [DATA_FILE, STANDBY_FILE] {
                let moved = folder.join(name);
                create::remove(&moved).map_err(RestoreError::io("remove", &moved))?;
            }
        }
        Ok(Self {
            folder: folder.to_owned(),
            unfinished,
            _lock: lock,
        })
    }

    /// Writes all rows of the state after a commit, sorted by key.
    ///
    /// # Errors
    /// If `rows` fails.
    pub fn write<K, V, E>(
        &self,
        commit: u64,
        rows: impl IntoIterator<Item = Result<(K, V), E>>,
        progress: &mut dyn FnMut(Written),
    ) -> Result<Written, RestoreError>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        let map_bytes = map_bytes(limits::EMBEDDED_MAP_BYTES);
        let random = &SystemRandom;
        let made = make_store(&self.unfinished, map_bytes, commit, rows, random, progress)?;
        Ok(made.1)
    }

    /// Opens what was written, so that commits can be added.
    ///
    /// # Errors
    /// If the store does not end with this commit.
    pub fn open(&self, commit: u64) -> Result<Replaying, RestoreError> {
        let options = EmbeddedOptions {
            // Everything is synced at the end, before the folder becomes a store.
            fsync: FsyncPolicy::EverySecond,
            ..EmbeddedOptions::default()
        };
        let store = EmbeddedStore::open(&self.unfinished, options)?;
        let replaying = Replaying::on(store);
        replaying.check(commit)?;
        Ok(replaying)
    }

    /// Makes the folder a store that ends with a commit. If `follows` is given, the store follows
    /// the archive of that store. Returns the store's id.
    ///
    /// # Errors
    /// If the store does not end with this commit, or was not closed cleanly.
    pub fn finish(
        self,
        replayed: Replaying,
        commit: u64,
        follows: Option<StoreId>,
    ) -> Result<StoreId, RestoreError> {
        replayed.check(commit)?;
        let id = replayed.store.id();
        drop(replayed);
        let Self {
            folder, unfinished, ..
        } = &self;
        // If there is a journal, the data file does not have everything.
        let is_open = journal::exists(unfinished);
        if is_open.map_err(RestoreError::io("read the folder", unfinished))? {
            let left = io::Error::other("it lacks some of what was restored, see the log");
            return Err(RestoreError::io("close", unfinished)(left));
        }
        if let Some(followed) = follows {
            standby_note::note(unfinished, followed)
                .map_err(RestoreError::io("write", unfinished))?;
        }
        // The marker comes last, because it makes the folder a store.
        let note = follows.map(|_| STANDBY_FILE);
        for name in [Some(DATA_FILE), note, Some(MARKER_FILE)]
            .into_iter()
            .flatten()
        {
            let from = unfinished.join(name);
            std::fs::rename(&from, folder.join(name)).map_err(RestoreError::io("move", &from))?;
            create::sync_folder(folder).map_err(RestoreError::io("sync the folder", folder))?;
        }
        std::fs::remove_dir_all(unfinished).map_err(RestoreError::io("remove", unfinished))?;
        Ok(id)
    }
}

/// Creates a folder that contains the subfolder as soon as it has its name.
fn create_unfinished(folder: &Path) -> io::Result<()> {
    // A trailing slash would put the other folder inside this one.
    let folder = folder.components().as_path();
    let mut beside = folder.as_os_str().to_owned();
    beside.push(format!(".{UNFINISHED_RESTORE}"));
    let beside = PathBuf::from(beside);
    create::create_folder(&beside.join(UNFINISHED_RESTORE))?;
    std::fs::rename(&beside, folder)?;
    create::sync_parent(folder)
}

/// Removes everything in a folder.
fn empty(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            create::remove_folder(&entry.path())?;
        } else {
            create::remove(&entry.path())?;
        }
    }
    Ok(())
}

/// A store to which the commits of an archive are added.
pub struct Replaying {
    store: EmbeddedStore,
}

impl Replaying {
    pub(super) fn on(store: EmbeddedStore) -> Self {
        Self { store }
    }

    pub(super) fn last_commit(&self) -> u64 {
        self.store.last_commit()
    }

    fn check(&self, expected: u64) -> Result<(), RestoreError> {
        let found = self.store.last_commit();
        if found == expected {
            return Ok(());
        }
        Err(RestoreError::Number { found, expected })
    }

    /// Applies an archived commit under its own number.
    ///
    /// # Errors
    /// If the commit is invalid or not the next one.
    pub fn apply(&self, archived: Archived<'_>) -> Result<(), RestoreError> {
        let commit = archived.commit;
        let failed = |source| RestoreError::Apply { commit, source };
        let transaction = self.store.begin_write().map_err(failed)?;
        for write in writes(archived.body) {
            match write {
                Some(Write::Set(key, value)) => transaction.set(key, value),
                Some(Write::Clear(key)) => transaction.clear(key),
                Some(Write::ClearRange(begin, end)) => transaction.clear_range(begin, end),
                None => return Err(failed(StoreError::Corrupt("commit of an archive"))),
            }
        }
        // The embedded store answers at once.
        match transaction.commit().now_or_never() {
            Some(Ok(())) => self.check(commit),
            Some(Err(error)) => Err(failed(error)),
            None => Err(failed(StoreError::UnknownResult)),
        }
    }
}
