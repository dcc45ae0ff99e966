//! Why an import ends before its end.

use std::io;
use std::path::PathBuf;

use crate::dump::RdbError;
use crate::redis_client::{Address, ClientError};

/// Why an import ended before its end. What it has copied is whole; it can be run again.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A server cannot be reached, breaks off, or refuses something without which there is no
    /// going on.
    #[error("{}{}", .0, advice(.0))]
    Client(#[from] ClientError),
    /// The source is a replica in a Redis Cluster, which does not let its keys be watched.
    #[error("{address} is a replica of a Redis Cluster; import from its master")]
    ClusterReplica {
        /// The server.
        address: Address,
    },
    /// The target is another program.
    #[error("{0} is no Quoin; --any-target writes to it all the same")]
    NoQuoin(Address),
    /// The file cannot be opened.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not one that can be read, or is damaged.
    #[error("{}: {source}", path.display())]
    Rdb {
        /// The file.
        path: PathBuf,
        /// Why.
        source: RdbError,
    },
    /// Both addresses lead to one server.
    #[error("--from and --to are the same server")]
    SameServer,
}

fn advice(error: &ClientError) -> &'static str {
    match error {
        ClientError::Lost { .. } => "; run it again, with --resume, to go on",
        _ => "",
    }
}
