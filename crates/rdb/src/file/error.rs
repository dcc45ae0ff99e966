//! Why an RDB file is not read.

use std::io;

use crate::payload::{VERSION_OF_VALKEY, VERSION_READ_MAX};

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
    #[error(
        "it is no RDB file: it does not begin with REDIS or VALKEY and a version; \
         nor does it begin as an append-only file"
    )]
    NoRdb,
    /// A later server has written it.
    #[error(
        "it has version {0}, and versions up to {VERSION_READ_MAX} are read, which Redis 8.6 \
         writes, and {VERSION_OF_VALKEY}, which Valkey 9 writes; start the server that wrote it, and \
         import from that (--from redis://…), which reads what it has by commands"
    )]
    Version(u16),
    /// Bytes follow that belong to no RDB file.
    #[error(
        "{bytes} bytes follow after the end of the RDB file at byte {at}, and nothing in it says that \
         it begins an append-only file; nothing was written"
    )]
    Trailing {
        /// Where the RDB file ends.
        at: u64,
        /// How many.
        bytes: u64,
    },
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
