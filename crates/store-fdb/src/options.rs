//! How a cluster is opened.

use std::path::PathBuf;

use super::tls::TlsOptions;
use quoin_base::limits;

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
