//! How a cluster is opened.

use std::path::PathBuf;

use super::tls::TlsOptions;
use quoin_base::limits;

/// How to open a FoundationDB cluster.
#[derive(Debug, Clone)]
pub struct FdbOptions {
    /// The cluster file. The default is the file named by `FDB_CLUSTER_FILE`, then `fdb.cluster` in the working
    /// folder, then the system's.
    pub cluster_file: Option<PathBuf>,
    /// Options for TLS. Those of the first store apply to the whole process.
    pub tls: TlsOptions,
    /// Maximum duration of a transaction, including its commit.
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
