//! Reads every row of one moment for a backup, while the store is in use.

use std::sync::Arc;

use heed::{RoTxn, WithoutTls};

use super::error::store_error;
use super::layer::Layer;
use super::merge::View;
use super::table::Rows;
use super::{ArchiveError, ArchiveStatus, EmbeddedStore, StoreId};
use quoin_store::{Isolation, RangeQuery, StoreError};

/// The end of the keys that transactions may use. The store's own rows come after it.
const KEYS_END: &[u8] = b"\xff";

/// A snapshot of the store. Until it is dropped, the data file does not reuse the pages that it
/// needs.
pub struct Moment {
    layers: Vec<Layer>,
    transaction: RoTxn<'static, WithoutTls>,
    rows: Rows,
    commit: u64,
    rows_about: u64,
}

impl EmbeddedStore {
    /// A snapshot of the store as it is now, with the number of the last commit.
    pub fn moment(&self) -> Result<Moment, StoreError> {
        self.shared.check()?;
        let overlay = &self.shared.overlay;
        let ((layers, transaction), commit) = overlay
            .numbered_snapshot(&self.environment)
            .map_err(store_error)?;
        let in_file = self.rows.count(&transaction).map_err(store_error)?;
        let in_layers: usize = layers.iter().map(|layer| layer.rows().len()).sum();
        Ok(Moment {
            layers,
            transaction,
            rows: self.rows.clone(),
            commit,
            rows_about: in_file.saturating_add(in_layers as u64),
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
        self.shared.overlay.sequence()
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
        self.commit
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
        let view = View {
            layers: &self.layers,
            rows: &self.rows,
            transaction: &self.transaction,
        };
        let query = RangeQuery {
            begin: b"",
            end: KEYS_END,
            limit: usize::MAX,
            reverse: false,
            isolation: Isolation::Snapshot,
        };
        let mut merge = view.merge(&query)?;
        while let Some((key, value)) = merge.next_row()? {
            visit(key, value)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
