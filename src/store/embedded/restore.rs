//! Making a data folder of the rows of a backup and the commits of an archive.
//!
//! All of it is made in a folder within the new one, and moved when it is done: what a restore
//! leaves that was ended early is no store, and a server does not start on it.

use std::error::Error as StdError;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use futures_util::FutureExt;

use super::archive::{ArchiveError, Archived};
use super::bulk::Written;
use super::create::private_file;
use super::data_file::DATA_FILE;
use super::folder::{self, Found, LOCK_FILE};
use super::journal::{self, Write, writes};
use super::marker::MARKER_FILE;
use super::{EmbeddedOptions, EmbeddedStore, FsyncPolicy, OpenError, StoreId, make_store};
use crate::limits;
use crate::random::SystemRandom;
use crate::store::{Store, StoreError};

/// Where it is made.
const UNFINISHED_FOLDER: &str = "unfinished-restore";

/// Why a folder could not be restored into.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// It has a store.
    #[error("there is a store in {}: name a folder that is empty, or does not exist", folder.display())]
    HasStore {
        /// The folder.
        folder: PathBuf,
    },
    /// It cannot be used, or what was made of it cannot be opened.
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
    /// The archive has not what is wanted.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The store does not have the commits that it should.
    #[error("the store ends with commit {found}, and should with {expected}")]
    Number {
        /// Its last commit.
        found: u64,
        /// What that should be.
        expected: u64,
    },
    /// The operating system refused something.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was to be done.
        action: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

impl RestoreError {
    fn io<'p>(action: &'static str, path: &'p Path) -> impl FnOnce(io::Error) -> Self + 'p {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// A data folder that is being made.
pub struct Restoration {
    folder: PathBuf,
    unfinished: PathBuf,
    _lock: File,
}

impl Restoration {
    /// Takes an empty folder, which is made where it is missing. What an earlier restore has left
    /// in it is removed.
    ///
    /// # Errors
    /// Where it is not empty, or cannot be used.
    pub fn begin(folder: &Path) -> Result<Self, RestoreError> {
        let unfinished = folder.join(UNFINISHED_FOLDER);
        if unfinished.exists() {
            // Nobody is at it, or this is not ours to remove.
            let lock = private_file()
                .create(true)
                .truncate(false)
                .open(folder.join(LOCK_FILE))
                .map_err(RestoreError::io("use the folder", folder))?;
            let _lock = folder::locked(folder, lock)?;
            std::fs::remove_dir_all(&unfinished)
                .map_err(RestoreError::io("remove", &unfinished))?;
        }
        let (lock, found) = folder::take(folder)?;
        if found != Found::Nothing {
            return Err(RestoreError::HasStore {
                folder: folder.to_owned(),
            });
        }
        Ok(Self {
            folder: folder.to_owned(),
            unfinished,
            _lock: lock,
        })
    }

    /// Writes the rows, which come in the order of their keys and are all up to a commit.
    ///
    /// # Errors
    /// What `rows` failed with, and what the disk says.
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
        let map_bytes = limits::EMBEDDED_MAP_BYTES;
        let random = &SystemRandom;
        let made = make_store(&self.unfinished, map_bytes, commit, rows, random, progress)?;
        Ok(made.1)
    }

    /// Opens what was written, so that commits can be added.
    ///
    /// # Errors
    /// Where it does not open, or does not end with this commit.
    pub fn open(&self, commit: u64) -> Result<Replaying, RestoreError> {
        let options = EmbeddedOptions {
            // All of it is synced in the end, before it is a store.
            fsync: FsyncPolicy::EverySecond,
            ..EmbeddedOptions::default()
        };
        let store = EmbeddedStore::open(&self.unfinished, options)?;
        let replaying = Replaying { store };
        replaying.check(commit)?;
        Ok(replaying)
    }

    /// Makes it a store, which ends with a commit. Answers which store it is.
    ///
    /// # Errors
    /// Where it was not closed in order, or the disk refuses something.
    pub fn finish(self, replayed: Replaying, commit: u64) -> Result<StoreId, RestoreError> {
        replayed.check(commit)?;
        let id = replayed.store.id();
        drop(replayed);
        let Self {
            folder, unfinished, ..
        } = &self;
        // What could not be brought into the data file is in the journal.
        let is_open = journal::exists(unfinished);
        if is_open.map_err(RestoreError::io("read the folder", unfinished))? {
            let left = io::Error::other("it has not all that was restored; the log tells why");
            return Err(RestoreError::io("close", unfinished)(left));
        }
        // The marker last: with it the folder is a store.
        for name in [DATA_FILE, MARKER_FILE] {
            let from = unfinished.join(name);
            std::fs::rename(&from, folder.join(name)).map_err(RestoreError::io("move", &from))?;
            File::open(folder)
                .and_then(|folder| folder.sync_all())
                .map_err(RestoreError::io("sync the folder", folder))?;
        }
        std::fs::remove_dir_all(unfinished).map_err(RestoreError::io("remove", unfinished))?;
        Ok(id)
    }
}

/// A store to which the commits of an archive are added.
pub struct Replaying {
    store: EmbeddedStore,
}

impl Replaying {
    fn check(&self, expected: u64) -> Result<(), RestoreError> {
        let found = self.store.last_commit();
        if found == expected {
            return Ok(());
        }
        Err(RestoreError::Number { found, expected })
    }

    /// Does again what a commit has done. It has the same number as it had.
    ///
    /// # Errors
    /// Where it makes no sense, is not the next, or the store does not take it.
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
