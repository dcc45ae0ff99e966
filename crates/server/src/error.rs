//! Why a server does not start.

use std::io;

use quoin_data::unit::startup::StartError;

/// Why a server did not start or did not end cleanly.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The embedded store cannot be opened.
    #[error(transparent)]
    OpenEmbedded(#[from] quoin_store_embedded::OpenError),
    /// The FoundationDB cluster cannot be opened.
    #[cfg(feature = "fdb")]
    #[error(transparent)]
    OpenFdb(#[from] quoin_store_fdb::OpenError),
    /// The store cannot be used by this server, or failed immediately.
    #[error("{store}: {source}")]
    Start {
        /// The store.
        store: String,
        /// Why.
        source: StartError,
    },
    /// This Quoin was built without the store that the settings name.
    #[error("{0}")]
    #[cfg_attr(feature = "fdb", allow(dead_code))]
    StoreMissing(&'static str),
    /// The server cannot listen on an address.
    #[error("cannot listen on {address}: {source}{}", what_helps(source))]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The server cannot listen on its Unix socket.
    #[error("cannot listen on {}: {source}{}", path.display(), what_helps(source))]
    UnixSocket {
        /// The path.
        path: std::path::PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The certificates cannot be used.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] quoin_tls::TlsError),
    /// The collector of traces is invalid.
    #[error("cannot send traces to trace-endpoint: {0}")]
    Traces(String),
    /// The process may open too few files for even one client.
    #[error(
        "the current 'ulimit -n' of {soft} is not enough for the server to start: increase the \
         limit of open files to at least {wanted}"
    )]
    TooFewDescriptors {
        /// The limit.
        soft: u64,
        /// The limit that `maxclients` needs.
        wanted: u64,
    },
    /// The users cannot be read.
    #[error("aborting startup because of ACL errors: {0}")]
    Users(String),
    /// The operating system refused threads, signals or sockets.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

/// How to solve the problem with an address.
fn what_helps(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; another program listens there (`ss -ltnp` shows it): stop it, or choose another port"
        }
        io::ErrorKind::AddrNotAvailable => "; this machine has no such address",
        io::ErrorKind::PermissionDenied => {
            "; ports below 1024 need privileges: choose another port"
        }
        _ => "",
    }
}
