//! The FoundationDB store: a cluster that many servers share.
//!
//! FoundationDB's own environment variables (`FDB_NETWORK_OPTION_*`) set the client's trace files
//! and other options.
//!
//! This crate knows no layout. Keys and values are bytes.

mod as_store;
mod cluster_file;
mod connect;
mod error;
mod network;
mod options;
mod probe;
mod reachability;
mod store;
mod tls;
mod tls_trial;
mod transaction;
mod wait;

pub use self::error::OpenError;
pub use self::options::FdbOptions;
pub use self::probe::{ClientLibrary, ClusterFileOrigin, client_library, find_cluster_file};
pub use self::store::FdbStore;
pub use self::tls::TlsOptions;
