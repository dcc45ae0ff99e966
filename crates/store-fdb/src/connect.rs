//! Opens a cluster.

use std::path::Path;
use std::sync::Arc;

use foundationdb::options::{DatabaseOption, TransactionOption};
use foundationdb::{Database, FdbError};

use super::error::OpenError;
use super::network;
use super::options::FdbOptions;
use super::probe::{find_cluster_file, incompatible_process};
use super::reachability::Reachability;
use super::store::FdbStore;
use super::wait::wait;
use quoin_base::limits;
use quoin_base::random::SystemRandom;

/// A key that need not exist.
const KEY_TO_TRY: &[u8] = b"quoin";

impl FdbStore {
    /// Opens a cluster and waits at most [`limits::FDB_CONNECT_TIMEOUT_MS`] until it answers.
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
            let other_version = wait(incompatible_process(&database));
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
}

fn connect(file: &Path, options: &FdbOptions) -> Result<Database, FdbError> {
    let database = Database::new(file.to_str())?;
    database.set_option(DatabaseOption::TransactionTimeout(
        options.transaction_timeout_ms,
    ))?;
    database.set_option(DatabaseOption::MaxWatches(limits::FDB_WATCHES_MAX))?;
    Ok(database)
}

/// Checks that the cluster has a database, by asking for a read version, and that it trusts this client, by reading.
async fn answers(database: &Database) -> Result<(), FdbError> {
    let transaction = database.create_trx()?;
    transaction.set_option(TransactionOption::Timeout(limits::FDB_CONNECT_TIMEOUT_MS))?;
    transaction.get(KEY_TO_TRY, true).await.map(drop)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

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
    fn a_cluster_file_with_another_id_is_named_as_a_cause() {
        // Accepts connections, but does not answer clients of another cluster.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fdb.cluster");
        std::fs::write(&file, format!("test:other@{address}\n")).unwrap();
        let options = FdbOptions {
            cluster_file: Some(file),
            ..FdbOptions::default()
        };
        let Err(error) = FdbStore::open(&options) else {
            panic!("there is no cluster");
        };
        assert!(matches!(error, OpenError::Silent { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("description and the id"), "{text}");
        assert!(text.contains(&address.to_string()), "{text}");
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
