//! Why `quoin queues` and `quoin top` end early.

use std::io;

use quoin_client::ClientError;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum QueuesError {
    /// The server cannot be reached, breaks off, or refuses it.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// There was nothing to do it to, or nobody agreed.
    #[error("{0}")]
    NotDone(String),
    /// The terminal, or what the output goes to.
    #[error("output: {0}")]
    Output(#[from] io::Error),
}
