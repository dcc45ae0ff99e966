//! Reads all rows as of one moment for a backup, while the store is in use.

use std::sync::Arc;

use super::error::store_error;
use super::resident::{Below, Disk, Loaded, Resident};
use super::table::Rows;
use super::{ArchiveError, ArchiveStatus, EmbeddedStore, StoreId};
use quoin_store::rules::key_after;
use quoin_store::{Isolation, RangeQuery, StoreError};

/// The end of the keys that transactions may use. The store's own rows come after it.
const KEYS_END: &[u8] = b"\xff";
/// Bytes of rows that are read at a time.
const PAGE_BYTES: usize = 256 * 1024;

/// A snapshot of the store. Until it is dropped, the data file does not reuse the pages that the
/// snapshot needs.
pub struct Moment {
    resident: Resident,
    disk: Disk,
    rows: Rows,
    rows_about: u64,
}

impl EmbeddedStore {
    /// A snapshot of the store as it is now, with the number of the last commit.
    pub fn moment(&self) -> Result<Moment, StoreError> {
        self.shared.check()?;
        let live = self.shared.memory.lock();
        let disk = Disk::now(&self.environment).map_err(store_error)?;
        let resident = live.clone();
        let dirty_rows = self.shared.memory.dirty_rows();
        drop(live);
        let transaction = disk.open().map_err(store_error)?;
        let in_file = self.rows.count(transaction).map_err(store_error)?;
        let rows_about = in_file.saturating_add(dirty_rows);
        Ok(Moment {
            resident,
            disk,
            rows: self.rows.clone(),
            rows_about,
        })
    }

    /// The store's id.
    pub fn id(&self) -> StoreId {
        self.summary.id
    }

    /// The status of the archive, if there is one.
    pub fn archive_status(&self) -> Option<ArchiveStatus> {
        self.keeper.as_ref().map(|keeper| keeper.status())
    }

    /// Removes old files of the archive, if there is one. A file is old if all its commits were
    /// made before `until_ms` and are in a backup whose last commit is `in_backup`. Returns the
    /// number of removed files.
    pub fn prune_archive(&self, in_backup: u64, until_ms: u64) -> Result<usize, ArchiveError> {
        match &self.keeper {
            Some(keeper) => keeper.prune(in_backup, until_ms),
            None => Ok(0),
        }
    }

    /// The number of the last commit.
    pub fn last_commit(&self) -> u64 {
        self.shared.memory.sequence()
    }

    /// Syncs what was committed before the call.
    pub fn sync_commits(&self) -> Result<(), StoreError> {
        let failed = |error| self.shared.failed(StoreError::Fatal(Arc::new(error)));
        self.journal.sync().map_err(failed)
    }
}

impl Moment {
    /// The number of the last commit in the snapshot.
    pub fn commit(&self) -> u64 {
        self.resident.sequence
    }

    /// An estimate of the number of rows. It is never too low: recently overwritten or cleared rows
    /// count too.
    pub fn rows_about(&self) -> u64 {
        self.rows_about
    }

    /// Calls `visit` with the key and value of each row, in key order.
    ///
    /// # Errors
    /// If `visit` fails.
    pub fn visit<E: From<StoreError>>(
        &self,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let below = Below {
            rows: &self.rows,
            disk: &self.disk,
            is_taken: false,
        };
        let mut begin = Vec::new();
        loop {
            let query = RangeQuery {
                begin: &begin,
                end: KEYS_END,
                limit: usize::MAX,
                reverse: false,
                isolation: Isolation::Snapshot,
            };
            let loaded = &mut Loaded::default();
            let rows = self.resident.page(below, &query, PAGE_BYTES, loaded)?;
            let Some(last) = rows.last() else {
                return Ok(());
            };
            begin = key_after(&last.key);
            for row in &rows {
                visit(&row.key, &row.value)?;
            }
        }
    }
}

#[cfg(test)]
mod tests;
