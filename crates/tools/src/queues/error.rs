//! Why `quoin queues` and `quoin top` end early.

use std::io;

use quoin_client::ClientError;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum QueuesError {
    /// The server cannot be reached, breaks off, or refuses it.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// There was nothing to act on, or the user did not agree.
    #[error("{0}")]
    NotDone(String),
    /// Writing to the terminal or the output failed.
    #[error("output: {0}")]
    Output(#[from] io::Error),
}
