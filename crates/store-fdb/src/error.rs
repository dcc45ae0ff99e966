//! Errors of the FoundationDB store: why it cannot be opened, and the meaning of FoundationDB's codes
//! (<https://apple.github.io/foundationdb/api-error-codes.html>).

use std::path::PathBuf;
use std::sync::Arc;

use foundationdb::FdbError;

use super::cluster_file::{listening_address, uses_tls};
use quoin_base::limits;
use quoin_store::StoreError;

const TRANSACTION_TOO_OLD: i32 = 1007;
const FUTURE_VERSION: i32 = 1009;
const NOT_COMMITTED: i32 = 1020;
const COMMIT_UNKNOWN_RESULT: i32 = 1021;
const TRANSACTION_CANCELLED: i32 = 1025;
const TRANSACTION_TIMED_OUT: i32 = 1031;
const TOO_MANY_WATCHES: i32 = 1032;
const PROCESS_BEHIND: i32 = 1037;
const CLUSTER_VERSION_CHANGED: i32 = 1039;
const OPERATION_CANCELLED: i32 = 1101;
const TRANSACTION_TOO_LARGE: i32 = 2101;
const KEY_TOO_LARGE: i32 = 2102;
const VALUE_TOO_LARGE: i32 = 2103;
const UNKNOWN_ERROR: i32 = 4000;
const INTERNAL_ERROR: i32 = 4100;
const PERMISSION_DENIED: i32 = 6000;
/// io_error, file_not_found, file_not_readable, no_cluster_file_found, file_too_large,
/// connection_string_invalid.
const CLUSTER_FILE_ERRORS: [i32; 6] = [1510, 1511, 1513, 1515, 1516, 2104];

/// Why no FoundationDB cluster could be opened.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OpenError {
    /// The client library does not start.
    #[error(
        "cannot start the FoundationDB client library: {source}; install foundationdb-clients 7.3 \
         (libfdb_c.so)"
    )]
    Library {
        /// The library's error.
        source: FdbError,
    },
    /// There is no cluster file.
    #[error(
        "there is no FoundationDB cluster file {}; install foundationdb-clients and copy the \
         cluster's file there, or set its path with --cluster-file or FDB_CLUSTER_FILE",
        file.display()
    )]
    NoClusterFile {
        /// The file that was expected.
        file: PathBuf,
    },
    /// The cluster file cannot be used.
    #[error("the FoundationDB cluster file {} cannot be used: {source}", file.display())]
    ClusterFile {
        /// The cluster file.
        file: PathBuf,
        /// FoundationDB's error.
        source: FdbError,
    },
    /// The cluster has a version that the client library cannot talk to.
    #[error(
        "the FoundationDB cluster at {} has a different version from the client library (7.3): its \
         process at {process} speaks another protocol; use the client library of the cluster's \
         version",
        file.display()
    )]
    Incompatible {
        /// The cluster file.
        file: PathBuf,
        /// The address of one of the cluster's processes.
        process: String,
    },
    /// A file for TLS cannot be read.
    #[error("{setting}: the file {} cannot be read: {source}", file.display())]
    TlsFile {
        /// The setting that names it.
        setting: &'static str,
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: Arc<std::io::Error>,
    },
    /// The client library cannot use the files for TLS.
    #[error(
        "FoundationDB's client library cannot use the files for TLS ({reason}): check that the certificate, \
         the key and the authorities are complete PEM files, and that the password is that of the key \
         (settings fdb-tls-certificate-file, fdb-tls-key-file, fdb-tls-ca-file and \
         fdb-tls-password, or FoundationDB's variables FDB_TLS_CERTIFICATE_FILE and so on)"
    )]
    TlsUnusable {
        /// Why, in the words of the library.
        reason: String,
    },
    /// The cluster answers, but does not accept this process.
    #[error(
        "the FoundationDB cluster at {} does not trust this server: {source}{tls_hint}",
        file.display()
    )]
    NotTrusted {
        /// The cluster file.
        file: PathBuf,
        /// FoundationDB's error.
        source: FdbError,
        /// What to check if the file's addresses use TLS, otherwise empty.
        tls_hint: &'static str,
    },
    /// Something accepts connections at an address of the cluster, but does not respond like the
    /// cluster.
    #[error(
        "the FoundationDB cluster at {} did not answer within {} ms ({source}), although {address} accepts \
         connections: {CHECKS_HINT}{tls_hint}",
        file.display(),
        limits::FDB_CONNECT_TIMEOUT_MS
    )]
    Silent {
        /// The cluster file.
        file: PathBuf,
        /// The address.
        address: String,
        /// FoundationDB's error.
        source: FdbError,
        /// What else to check if the file's addresses use TLS, otherwise empty.
        tls_hint: &'static str,
    },
    /// The cluster does not answer.
    #[error(
        "no reachable FoundationDB cluster at {} within {} ms: {source}; check that fdbserver \
         runs at the addresses in that file, that its version is the client's (7.3), and that \
         the database has been created (fdbcli --exec 'configure new single ssd'){tls_hint}",
        file.display(),
        limits::FDB_CONNECT_TIMEOUT_MS
    )]
    Unreachable {
        /// The cluster file.
        file: PathBuf,
        /// FoundationDB's error.
        source: FdbError,
        /// What else to check if the file's addresses use TLS, otherwise empty.
        tls_hint: &'static str,
    },
}

/// What to check if something accepts connections at a cluster's address but does not answer.
const CHECKS_HINT: &str = "check that the description and the id in that file, before the @, are those of the \
    cluster's own file (on its machines, /etc/foundationdb/fdb.cluster), that the cluster's version is the \
    client's (7.3), and that the database has been created (fdbcli --exec 'configure new single ssd')";

/// The end of a message if the cluster uses TLS.
const TLS_HINT: &str = "; its addresses end with :tls, so also check that the certificates match, and the key its certificate: \
    the settings fdb-tls-certificate-file, fdb-tls-key-file, fdb-tls-ca-file and \
    fdb-tls-verify-peers, or FoundationDB's variables FDB_TLS_CERTIFICATE_FILE and so on";

impl OpenError {
    /// Why a cluster does not answer. (FoundationDB reads the cluster file on first use.)
    pub(super) fn no_answer(file: PathBuf, source: FdbError) -> Self {
        let tls_hint = if uses_tls(&file) { TLS_HINT } else { "" };
        match source.code() {
            code if CLUSTER_FILE_ERRORS.contains(&code) => OpenError::ClusterFile { file, source },
            PERMISSION_DENIED => OpenError::NotTrusted {
                file,
                source,
                tls_hint,
            },
            _ => match listening_address(&file) {
                Some(address) => OpenError::Silent {
                    file,
                    address,
                    source,
                    tls_hint,
                },
                None => OpenError::Unreachable {
                    file,
                    source,
                    tls_hint,
                },
            },
        }
    }
}

/// The error of a failed read, or of any other operation that cannot have written.
pub(super) fn read_error(error: FdbError) -> StoreError {
    match error.code() {
        // 1009 and 1037: the storage server lags. The next read version may succeed.
        TRANSACTION_TOO_OLD | FUTURE_VERSION | PROCESS_BEHIND => StoreError::TooOld,
        TRANSACTION_TOO_LARGE | KEY_TOO_LARGE | VALUE_TOO_LARGE => StoreError::TooLarge,
        NOT_COMMITTED => StoreError::Conflict,
        TRANSACTION_TIMED_OUT | CLUSTER_VERSION_CHANGED => unreachable(error),
        TOO_MANY_WATCHES => StoreError::Unavailable(Arc::new(error)),
        _ if error.is_retryable_not_committed() => StoreError::Busy(Arc::new(error)),
        _ if error.is_retryable() => unreachable(error),
        _ => StoreError::Fatal(Arc::new(error)),
    }
}

/// The error of a failed commit.
pub(super) fn commit_error(error: FdbError) -> StoreError {
    if is_unknown_result(error) {
        return StoreError::UnknownResult;
    }
    read_error(error)
}

/// Whether the commit may have been applied.
pub(super) fn is_unknown_result(error: FdbError) -> bool {
    matches!(
        error.code(),
        COMMIT_UNKNOWN_RESULT
            | TRANSACTION_CANCELLED
            | TRANSACTION_TIMED_OUT
            | CLUSTER_VERSION_CHANGED
            | OPERATION_CANCELLED
            // An unforeseen error may come after the commit was sent.
            | UNKNOWN_ERROR
            | INTERNAL_ERROR
    ) || error.is_maybe_committed()
}

/// Whether a commit that failed with this error may still be applied later. (FoundationDB itself rules that out
/// before it returns 1021.)
pub(super) fn may_be_in_flight(error: FdbError) -> bool {
    is_unknown_result(error) && error.code() != COMMIT_UNKNOWN_RESULT
}

/// Whether the transaction exceeded its timeout.
pub(super) fn is_timeout(error: FdbError) -> bool {
    error.code() == TRANSACTION_TIMED_OUT
}

fn unreachable(error: FdbError) -> StoreError {
    StoreError::Unreachable(Arc::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(code: i32) -> StoreError {
        commit_error(FdbError::from_code(code))
    }

    fn read(code: i32) -> StoreError {
        read_error(FdbError::from_code(code))
    }

    #[test]
    fn codes_of_commits_have_their_errors() {
        assert!(matches!(commit(1020), StoreError::Conflict));
        for unknown in [1021, 1025, 1031, 1039, 1101, 4000, 4100] {
            assert!(matches!(commit(unknown), StoreError::UnknownResult));
        }
        assert!(matches!(commit(1007), StoreError::TooOld));
        for large in [2101, 2102, 2103] {
            assert!(matches!(commit(large), StoreError::TooLarge));
        }
        // proxy_memory_limit_exceeded: nothing was applied.
        assert!(matches!(commit(1042), StoreError::Busy(_)));
        // client_invalid_operation
        assert!(matches!(commit(2000), StoreError::Fatal(_)));
    }

    #[test]
    fn reads_never_have_an_unknown_result() {
        for late in [1007, 1009, 1037] {
            assert!(matches!(read(late), StoreError::TooOld));
        }
        for lost in [1031, 1039] {
            assert!(matches!(read(lost), StoreError::Unreachable(_)));
        }
        assert!(matches!(read(1032), StoreError::Unavailable(_)));
    }

    #[test]
    fn only_a_commit_that_foundationdb_did_not_resolve_may_be_in_flight() {
        for (code, expected) in [(1021, false), (1031, true), (1039, true), (1020, false)] {
            let error = FdbError::from_code(code);
            assert_eq!(may_be_in_flight(error), expected, "{code}");
        }
    }
}
