//! Why an import ends before its end.

use std::io;
use std::path::{Path, PathBuf};

use quoin_client::{Address, ClientError};
use quoin_rdb::RdbError;

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
    /// A file of commands is damaged.
    #[error("{}: it is damaged at byte {at}: {what}; redis-check-aof may help", path.display())]
    Aof {
        /// The file.
        path: PathBuf,
        /// Where.
        at: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The manifest of an append-only file cannot be used.
    #[error("manifest of {}: {what}", path.display())]
    Manifest {
        /// The manifest, or the folder.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
    /// One file of several.
    #[error(
        "{}: it is one of the files of an append-only file, and has only what was written after the \
         others; import their folder", .0.display()
    )]
    LoneIncrement(PathBuf),
    /// The server in which an append-only file is replayed does not start.
    #[error("the server that replays the file does not start: {0}")]
    Scratch(String),
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

/// The error of a file that cannot be opened or read.
pub(super) fn no_file(path: &Path) -> impl Fn(io::Error) -> ImportError + '_ {
    move |source| ImportError::File {
        path: path.to_owned(),
        source,
    }
}
