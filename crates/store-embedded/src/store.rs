//! The open store.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heed::{Env, WithoutTls};

use super::archive::{Keeper, start_shipping};
use super::background::BackgroundThread;
#[cfg(test)]
use super::drain;
use super::identity::OpenFiles;
use super::journal::Journal;
use super::lock::FolderLock;
use super::marker::StoreId;
use super::shared::Shared;
use super::standby_note::Note;
use super::sync::Syncer;
use super::table::Rows;

/// A store in its own folder, which is locked while it is open.
pub struct EmbeddedStore {
    // Dropped in this order: the sync thread ends, the files are closed, and only then is the
    // folder unlocked.
    pub(super) syncer: Option<Syncer>,
    /// Ends after the sync thread, which archives the rest.
    pub(super) shipping: Option<BackgroundThread>,
    pub(super) journal: Arc<Journal>,
    pub(super) rows: Rows,
    pub(super) environment: Env<WithoutTls>,
    pub(super) shared: Arc<Shared>,
    pub(super) folder: PathBuf,
    pub(super) summary: Summary,
    pub(super) keeper: Option<Arc<Keeper>>,
    pub(super) standby: Note,
    /// Transactions wait while the journal has more bytes than this.
    pub(super) journal_bytes_max: u64,
    pub(super) _open: OpenFiles,
    pub(super) _lock: FolderLock,
}

/// What was found when a store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// The store's id.
    pub id: StoreId,
    /// Whether it has just been created.
    pub is_new: bool,
    /// The format of the folder.
    pub format: u32,
    /// Rows in the data file. Each key and element has several.
    pub rows: u64,
    /// Length of the data file in bytes.
    pub data_bytes: u64,
}

impl EmbeddedStore {
    /// Requests a checkpoint.
    pub(super) fn wake_checkpoint(&self) {
        if let Some(syncer) = &self.syncer {
            syncer.wake();
        }
    }

    /// Closes the open generation, for a test.
    #[cfg(test)]
    pub(super) fn close_generation(&self) {
        let mut writer = self.shared.writer.lock();
        self.shared.memory.close(&mut writer.dirty);
    }

    /// Writes the oldest closed generation into the data file, for a test: all of it, or every other
    /// row of it.
    #[cfg(test)]
    pub(super) fn drain_oldest(&self, is_whole: bool) {
        let Some(closed) = self.shared.memory.oldest_closed() else {
            return;
        };
        if is_whole {
            let slice = drain::SLICE_BYTES;
            drain::write(&self.environment, &self.rows, &closed, slice, || Ok(())).unwrap();
            self.shared.memory.note_drained(&closed);
            return;
        }
        let mut transaction = self.environment.write_txn().unwrap();
        for row in closed.rows.iter().step_by(2) {
            self.rows
                .put(&mut transaction, row.key(), row.value())
                .unwrap();
        }
        transaction.commit().unwrap();
    }

    /// Writes everything into the data file, for a test.
    #[cfg(test)]
    pub(super) fn drain_now(&self) {
        self.close_generation();
        while self.shared.memory.oldest_closed().is_some() {
            self.drain_oldest(true);
        }
    }

    /// Whether the data file can store this key. It must not be empty or too long.
    pub(super) fn takes_key(&self, key: &[u8]) -> bool {
        !key.is_empty() && key.len() <= self.environment.max_key_size()
    }

    /// Runs a command for each complete file of the archive, if there is an archive, and removes
    /// the file once the command has succeeded.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn ship_archive(&mut self, command: &str) -> io::Result<()> {
        if let Some(keeper) = &self.keeper {
            let (keeper, shared) = (Arc::clone(keeper), Arc::clone(&self.shared));
            self.shipping = Some(start_shipping(keeper, shared, command.to_owned())?);
        }
        Ok(())
    }

    /// The data folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What was found when it was opened.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Maximum length of a key, in bytes.
    #[cfg(test)]
    pub(super) fn key_bytes_max(&self) -> usize {
        self.environment.max_key_size()
    }
}
