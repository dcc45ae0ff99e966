//! Why an export ends before its end.

use std::io;
use std::path::PathBuf;

use quoin_client::{Address, ClientError};

/// Why an export ended before its end. It leaves no file.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The server cannot be reached, breaks off, or refuses something that is needed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server is another one. A Redis writes such a file itself.
    #[error("{0} is no Quoin; a Redis writes such a file by SAVE")]
    NoQuoin(Address),
    /// There is a file of that name.
    #[error("{} exists; choose another name, or remove it", .0.display())]
    Exists(PathBuf),
    /// The file cannot be written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
