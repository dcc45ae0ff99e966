//! The FoundationDB store: a cluster that many servers share.
//!
//! FoundationDB's own environment variables (`FDB_NETWORK_OPTION_*`) set the client's trace files
//! and other options.

mod error;
mod network;
mod probe;
mod reachability;
mod tls;
mod tls_trial;
mod transaction;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use bytes::Bytes;
use foundationdb::options::{DatabaseOption, TransactionOption};
use foundationdb::{Database, FdbError};

use self::error::read_error;
use self::reachability::Reachability;
use self::transaction::{FdbSnapshot, FdbTransaction};
use super::read_your_writes::ReadYourWrites;
use super::{Capabilities, ReadTransaction, Store, StoreError, StoreFuture, Transaction, Watched};
use crate::limits;
use crate::random::{Random, SystemRandom};

pub use self::error::OpenError;
pub use self::probe::{ClientLibrary, ClusterFileOrigin, client_library, find_cluster_file};
pub use self::tls::TlsOptions;

/// Write transactions worth having under way at once.
const PARALLEL_BATCHES: usize = 8;

/// A key that need not exist.
const KEY_TO_TRY: &[u8] = b"quoin";

/// How to open a FoundationDB cluster.
#[derive(Debug, Clone)]
pub struct FdbOptions {
    /// The cluster file. By default the one that `FDB_CLUSTER_FILE` names, else `fdb.cluster` in
    /// the working folder, else the system's.
    pub cluster_file: Option<PathBuf>,
    /// Options for TLS. Those of the first store apply to the whole process.
    pub tls: TlsOptions,
    /// Time that a transaction may take in total, with its commit.
    pub transaction_timeout_ms: i32,
}

impl Default for FdbOptions {
    fn default() -> Self {
        Self {
            cluster_file: None,
            tls: TlsOptions::default(),
            transaction_timeout_ms: limits::FDB_TRANSACTION_TIMEOUT_MS,
        }
    }
}

/// A FoundationDB cluster.
pub struct FdbStore {
    database: Database,
    cluster_file: PathBuf,
    transaction_timeout_ms: i32,
    reachability: Reachability,
    random: Arc<dyn Random>,
}

impl FdbStore {
    /// Opens a cluster and waits until it answers, at most [`limits::FDB_CONNECT_TIMEOUT_MS`].
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(options: &FdbOptions) -> Result<Self, OpenError> {
        let (file, _) = find_cluster_file(options);
        if !file.is_file() {
            return Err(OpenError::NoClusterFile { file });
        }
        options.tls.check(&file)?;
        network::start(options.tls.network_options())
            .map_err(|source| OpenError::Library { source })?;
        let database = connect(&file, options).map_err(|source| OpenError::ClusterFile {
            file: file.clone(),
            source,
        })?;
        let answer = wait(answers(&database));
        network::stop_before_exit();
        if let Err(source) = answer {
            let other_version = wait(probe::incompatible_process(&database));
            network::stop_before_exit();
            return Err(match other_version {
                Some(process) => OpenError::Incompatible { file, process },
                None => OpenError::no_answer(file, source),
            });
        }
        Ok(Self {
            database,
            cluster_file: file,
            transaction_timeout_ms: options.transaction_timeout_ms,
            reachability: Reachability::default(),
            random: Arc::new(SystemRandom),
        })
    }

    /// The cluster file in use.
    pub fn cluster_file(&self) -> &Path {
        &self.cluster_file
    }

    fn begin(&self) -> Result<foundationdb::Transaction, StoreError> {
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

fn connect(file: &Path, options: &FdbOptions) -> Result<Database, FdbError> {
    let database = Database::new(file.to_str())?;
    database.set_option(DatabaseOption::TransactionTimeout(
        options.transaction_timeout_ms,
    ))?;
    database.set_option(DatabaseOption::MaxWatches(limits::FDB_WATCHES_MAX))?;
    Ok(database)
}

/// Checks that the cluster has a database, by asking for a read version, and that it trusts this
/// client, by a read.
async fn answers(database: &Database) -> Result<(), FdbError> {
    let transaction = database.create_trx()?;
    transaction.set_option(TransactionOption::Timeout(limits::FDB_CONNECT_TIMEOUT_MS))?;
    transaction.get(KEY_TO_TRY, true).await.map(drop)
}

/// Waits on this thread. For the opening, which comes before any runtime.
fn wait<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

impl Store for FdbStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "foundationdb",
            single_writer: false,
            clears_ranges_at_once: true,
            has_unknown_results: true,
            batch_bytes_soft_max: limits::FDB_BATCH_BYTES_SOFT_MAX,
            transaction_bytes_max: limits::FDB_TRANSACTION_BYTES_MAX,
            key_name_bytes_max: limits::FDB_KEY_NAME_BYTES_MAX,
            parallel_batches: PARALLEL_BATCHES,
        }
    }

    fn begin_read(&self) -> Result<Box<dyn ReadTransaction + '_>, StoreError> {
        Ok(Box::new(FdbSnapshot::new(self, self.begin()?)))
    }

    fn begin_write(&self) -> Result<Box<dyn Transaction + '_>, StoreError> {
        let transaction = self.begin()?;
        // `ReadYourWrites` does that at a lower cost.
        transaction
            .set_option(TransactionOption::ReadYourWritesDisable)
            .map_err(read_error)?;
        let transaction = FdbTransaction::new(self, transaction);
        Ok(Box::new(ReadYourWrites::new(Box::new(transaction))))
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
            // Without the commit the watch would end with its transaction.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_cluster_file_is_named() {
        let options = FdbOptions {
            cluster_file: Some(PathBuf::from("/nowhere/fdb.cluster")),
            ..FdbOptions::default()
        };
        let Err(error) = FdbStore::open(&options) else {
            panic!("there is no such file");
        };
        assert!(matches!(error, OpenError::NoClusterFile { .. }));
        assert!(error.to_string().contains("/nowhere/fdb.cluster"));
    }

    #[test]
    fn a_cluster_that_does_not_answer_is_reported_in_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fdb.cluster");
        // Nothing listens on the discard port of the loopback.
        std::fs::write(&file, "test:test@127.0.0.1:9\n").unwrap();
        let begun = std::time::Instant::now();
        let options = FdbOptions {
            cluster_file: Some(file.clone()),
            ..FdbOptions::default()
        };
        let Err(error) = FdbStore::open(&options) else {
            panic!("there is no cluster");
        };
        assert!(matches!(error, OpenError::Unreachable { .. }), "{error}");
        assert!(error.to_string().contains(&file.display().to_string()));
        assert!(begun.elapsed().as_millis() < 2 * limits::FDB_CONNECT_TIMEOUT_MS as u128);
    }

    #[test]
    fn a_file_that_is_no_cluster_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fdb.cluster");
        std::fs::write(&file, "not a cluster\n").unwrap();
        let options = FdbOptions {
            cluster_file: Some(file),
            ..FdbOptions::default()
        };
        let Err(error) = FdbStore::open(&options) else {
            panic!("there is no cluster");
        };
        assert!(matches!(error, OpenError::ClusterFile { .. }), "{error}");
    }
}
