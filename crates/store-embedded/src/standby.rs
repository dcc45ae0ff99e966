//! A standby: a store to which the archived commits of another store are applied as they appear.

use std::path::Path;

use super::archive::Archived;
use super::restore::{Replaying, RestoreError};
use super::standby_note::followed_store;
use super::{EmbeddedOptions, EmbeddedStore, FsyncPolicy, StoreId};

/// Memory for rows of a standby, in bytes. Clients do not read them, so few rows are needed again.
const MEMORY_BYTES_MAX: usize = 256 << 20;

/// An open standby.
pub struct Standby {
    replaying: Replaying,
    followed: StoreId,
}

impl Standby {
    /// Opens a standby, which is locked until this is dropped.
    ///
    /// # Errors
    /// If another process has it open, or it has commits of its own.
    pub fn open(folder: &Path) -> Result<Self, RestoreError> {
        let options = EmbeddedOptions {
            // After a power failure, the archive still has what this store loses.
            fsync: FsyncPolicy::EverySecond,
            memory_bytes_max: MEMORY_BYTES_MAX,
            follows: true,
            ..EmbeddedOptions::default()
        };
        let followed = || {
            followed_store(folder)
                .map_err(RestoreError::io("read the note in", folder))?
                .ok_or_else(|| RestoreError::NoStandby {
                    folder: folder.to_owned(),
                })
        };
        // Another store is not even opened.
        followed()?;
        let replaying = Replaying::on(EmbeddedStore::open(folder, options)?);
        // Another process may have removed the note before the folder was locked.
        let followed = followed()?;
        Ok(Self {
            replaying,
            followed,
        })
    }

    /// The store whose commits are applied.
    pub fn followed(&self) -> StoreId {
        self.followed
    }

    /// The last commit that was applied.
    pub fn last_commit(&self) -> u64 {
        self.replaying.last_commit()
    }

    /// Applies an archived commit under its own number.
    ///
    /// # Errors
    /// If the commit is invalid or not the next one.
    pub fn apply(&self, archived: Archived<'_>) -> Result<(), RestoreError> {
        self.replaying.apply(archived)
    }
}
