//! An open cluster.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use foundationdb::Database;
use foundationdb::options::TransactionOption;

use super::error::read_error;
use super::network;
use super::reachability::Reachability;
use quoin_base::random::Random;
use quoin_store::StoreError;

/// A FoundationDB cluster.
pub struct FdbStore {
    pub(super) database: Database,
    pub(super) cluster_file: PathBuf,
    pub(super) transaction_timeout_ms: i32,
    pub(super) reachability: Reachability,
    pub(super) random: Arc<dyn Random>,
}

impl FdbStore {
    /// The cluster file in use.
    pub fn cluster_file(&self) -> &Path {
        &self.cluster_file
    }

    pub(super) fn begin(&self) -> Result<foundationdb::Transaction, StoreError> {
        let transaction = self.database.create_trx().map_err(read_error)?;
        if self.reachability.is_away() {
            let timeout_ms = self.reachability.timeout_ms(self.transaction_timeout_ms);
            transaction
                .set_option(TransactionOption::Timeout(timeout_ms))
                .map_err(read_error)?;
        }
        Ok(transaction)
    }
}

impl Drop for FdbStore {
    fn drop(&mut self) {
        network::stop_before_exit();
    }
}
