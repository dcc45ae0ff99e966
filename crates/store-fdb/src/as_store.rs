//! A cluster as a [`Store`].

use bytes::Bytes;
use foundationdb::options::TransactionOption;

use super::error::read_error;
use super::store::FdbStore;
use super::transaction::FdbTransaction;
use quoin_base::limits;
use quoin_store::read_your_writes::ReadYourWrites;
use quoin_store::{
    Capabilities, ReadTransaction, Store, StoreError, StoreFuture, Transaction, Watched,
};

/// How many concurrent write transactions are worthwhile.
const PARALLEL_BATCHES: usize = 8;

impl FdbStore {
    /// Begins a transaction for [`ReadYourWrites`] to wrap.
    fn begin_base(&self) -> Result<Box<FdbTransaction<'_>>, StoreError> {
        let transaction = self.begin()?;
        // `ReadYourWrites` does that at a lower cost.
        transaction
            .set_option(TransactionOption::ReadYourWritesDisable)
            .map_err(read_error)?;
        Ok(Box::new(FdbTransaction::new(self, transaction)))
    }
}

impl Store for FdbStore {
    fn is_ready(&self) -> bool {
        true
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "foundationdb",
            has_other_writers: true,
            reads_wait: true,
            bounds_transaction_time: true,
            clears_ranges_at_once: true,
            has_unknown_results: true,
            batch_bytes_soft_max: limits::FDB_BATCH_BYTES_SOFT_MAX,
            transaction_bytes_max: limits::FDB_TRANSACTION_BYTES_MAX,
            key_name_bytes_max: limits::FDB_KEY_NAME_BYTES_MAX,
            parallel_batches: PARALLEL_BATCHES,
        }
    }

    fn begin_read(&self) -> Result<Box<dyn ReadTransaction + '_>, StoreError> {
        Ok(Box::new(ReadYourWrites::for_reading(self.begin_base()?)))
    }

    fn begin_write(&self) -> Result<Box<dyn Transaction + '_>, StoreError> {
        Ok(Box::new(ReadYourWrites::new(self.begin_base()?)))
    }

    fn is_reachable(&self) -> bool {
        !self.reachability.is_away()
    }

    fn watch<'t>(&'t self, key: &[u8]) -> StoreFuture<'t, Watched> {
        // In a separate transaction, because a watch reads its key in a way that can conflict.
        let transaction = match self.begin() {
            Ok(transaction) => transaction,
            Err(error) => return StoreFuture::ready(Err(error)),
        };
        let value = transaction.get(key, false);
        let changed = transaction.watch(key);
        StoreFuture::Pending(Box::pin(async move {
            let value = self.reachability.note(value.await).map_err(read_error)?;
            // Without the commit, the watch would end with its transaction.
            transaction
                .commit()
                .await
                .map_err(|error| read_error(error.into()))?;
            Ok(Watched {
                value: value.as_deref().map(Bytes::copy_from_slice),
                changed: Box::pin(async move { changed.await.map_err(read_error) }),
            })
        }))
    }
}
