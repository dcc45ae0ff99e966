//! Why an RDB file is not read.

use std::io;

use crate::dump::payload::VERSION_READ_MAX;

/// Why a file is not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum RdbError {
    /// The system does not let it be read, or it ends too soon.
    #[error("it cannot be read at byte {at}: {source}")]
    Io {
        /// Where.
        at: u64,
        /// Why.
        source: io::Error,
    },
    /// It does not begin as RDB files do.
    #[error("it is no RDB file: it does not begin with REDIS and a version")]
    NoRdb,
    /// A Redis after 7.2 has written it.
    #[error(
        "it has version {0}, and versions up to {VERSION_READ_MAX} are read, which Redis 7.2 \
         writes; import from the running server instead"
    )]
    Version(u16),
    /// Bytes have changed since it was written.
    #[error("its checksum is wrong: it was damaged, or cut off, after it was written")]
    Checksum,
    /// Something stands where it cannot.
    #[error("it is damaged at byte {at}: {what}")]
    Format {
        /// Where.
        at: u64,
        /// What is wrong.
        what: &'static str,
    },
}
