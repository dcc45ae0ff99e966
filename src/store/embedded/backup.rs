//! What a backup reads: every row of one moment, while the store goes on.

use std::sync::Arc;

use heed::{RoTxn, WithoutTls};

use super::error::store_error;
use super::layer::Layer;
use super::merge::View;
use super::table::Rows;
use super::{ArchiveStatus, EmbeddedStore, StoreId};
use crate::store::{Isolation, RangeQuery, StoreError};

/// The end of the keys that transactions may use; the store's own rows lie behind it.
const KEYS_END: &[u8] = b"\xff";

/// A moment of the store, which stays as it was. While this lives the data file uses no page
/// again that it needs.
pub struct Moment {
    layers: Vec<Layer>,
    transaction: RoTxn<'static, WithoutTls>,
    rows: Rows,
    commit: u64,
    rows_about: u64,
}

impl EmbeddedStore {
    /// The present moment, and the number of the last commit in it.
    ///
    /// # Errors
    /// `Unavailable` or `Fatal`.
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

    /// Which store this is.
    pub fn id(&self) -> StoreId {
        self.summary.id
    }

    /// How the archive does, where there is one.
    pub fn archive_status(&self) -> Option<ArchiveStatus> {
        self.keeper.as_ref().map(|keeper| keeper.status())
    }

    /// The number of the last commit.
    pub fn last_commit(&self) -> u64 {
        self.shared.overlay.sequence()
    }

    /// Puts on the disk what was committed before the call.
    ///
    /// # Errors
    /// `Fatal`, as nothing is certain then.
    pub fn sync_commits(&self) -> Result<(), StoreError> {
        let failed = |error| self.shared.failed(StoreError::Fatal(Arc::new(error)));
        self.journal.sync().map_err(failed)
    }
}

impl Moment {
    /// The number of the last commit that is in it.
    pub fn commit(&self) -> u64 {
        self.commit
    }

    /// About how many rows there are; no fewer, as those that were overwritten or cleared lately
    /// count too.
    pub fn rows_about(&self) -> u64 {
        self.rows_about
    }

    /// Calls `visit` with key and value of each row, in the order of keys.
    ///
    /// # Errors
    /// What reading, or `visit`, failed with.
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
