//! What an open store is.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heed::{Env, WithoutTls};

use super::archive::Keeper;
#[cfg(test)]
use super::drain;
use super::identity::OpenFiles;
use super::journal::Journal;
use super::marker::StoreId;
use super::options::FsyncPolicy;
use super::shared::Shared;
use super::sync::{Syncer, Wish};
use super::table::Rows;

/// A store in a folder of its own, which it keeps locked while it lives.
pub struct EmbeddedStore {
    // Dropped in this order: the thread that syncs ends, the files are closed, and only then is
    // the folder free for the next.
    pub(super) syncer: Option<Syncer>,
    pub(super) journal: Arc<Journal>,
    pub(super) fsync: FsyncPolicy,
    pub(super) rows: Rows,
    pub(super) environment: Env<WithoutTls>,
    pub(super) shared: Arc<Shared>,
    pub(super) folder: PathBuf,
    pub(super) summary: Summary,
    pub(super) keeper: Option<Arc<Keeper>>,
    /// Bytes that the journal may have before transactions wait.
    pub(super) journal_bytes_max: u64,
    pub(super) _open: OpenFiles,
    pub(super) _lock: File,
}

/// What was found when a store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Which store it is.
    pub id: StoreId,
    /// Whether it was made just now.
    pub is_new: bool,
    /// How the folder's files lie.
    pub format: u32,
    /// How many rows the data file has: several for each key and element.
    pub rows: u64,
    /// Length of the data file.
    pub data_bytes: u64,
}

impl EmbeddedStore {
    /// Has closed layers drained soon.
    pub(super) fn wake_drain(&self) {
        if let Some(syncer) = &self.syncer {
            syncer.wake(Wish::Drain);
        }
    }

    /// Has a checkpoint made soon.
    pub(super) fn wake_checkpoint(&self) {
        if let Some(syncer) = &self.syncer {
            syncer.wake(Wish::Checkpoint);
        }
    }

    /// Brings everything into the data file, for a test.
    #[cfg(test)]
    pub(super) fn drain_now(&self) {
        {
            let _writer = self.shared.writer.lock();
            self.shared.overlay.close_newest();
        }
        while let Some(closed) = self.shared.overlay.oldest_closed() {
            drain::write_layer(
                &self.environment,
                &self.rows,
                &closed,
                drain::SLICE_BYTES,
                || Ok(()),
            )
            .unwrap();
            self.shared.overlay.remove(&closed);
        }
    }

    /// Whether the data file can have such a key.
    pub(super) fn takes_key(&self, key: &[u8]) -> bool {
        !key.is_empty() && key.len() <= self.environment.max_key_size()
    }

    /// The folder that the data lies in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What was found when it was opened.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// The longest key that the store takes, in bytes.
    pub fn key_bytes_max(&self) -> usize {
        self.environment.max_key_size()
    }

    /// When commits are synced.
    pub fn fsync(&self) -> FsyncPolicy {
        self.fsync
    }
}
