//! What `quoin doctor` finds out from FoundationDB's client.

use std::ffi::CStr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use foundationdb::Database;

use super::error::{OpenError, read_error};
use super::network;
use super::options::FdbOptions;
use super::store::FdbStore;
use quoin_store::StoreError;

/// The environment variable that names the cluster file, as for FoundationDB's own tools.
const CLUSTER_FILE_VARIABLE: &str = "FDB_CLUSTER_FILE";

/// The cluster file in the working folder. It takes precedence over the system's.
const CLUSTER_FILE_HERE: &str = "fdb.cluster";

/// What determined the location of the cluster file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterFileOrigin {
    /// The options.
    Options,
    /// The environment variable `FDB_CLUSTER_FILE`.
    Variable,
    /// The file is in the working folder.
    WorkingFolder,
    /// FoundationDB's own default.
    System,
}

/// Finds the cluster file as FoundationDB's own tools do.
pub fn find_cluster_file(options: &FdbOptions) -> (PathBuf, ClusterFileOrigin) {
    if let Some(file) = &options.cluster_file {
        return (file.clone(), ClusterFileOrigin::Options);
    }
    if let Some(file) = std::env::var_os(CLUSTER_FILE_VARIABLE) {
        return (file.into(), ClusterFileOrigin::Variable);
    }
    let here = PathBuf::from(CLUSTER_FILE_HERE);
    if here.is_file() {
        return (here, ClusterFileOrigin::WorkingFolder);
    }
    let system = PathBuf::from(foundationdb::default_config_path());
    (system, ClusterFileOrigin::System)
}

/// The client library in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientLibrary {
    /// Its version, such as `7.3.79`.
    pub version: String,
    /// Its network protocol.
    pub protocol: String,
    /// The API version that Quoin uses.
    pub api_version: i32,
    /// The latest API version that the library supports.
    pub api_version_max: i32,
}

/// Asks the client library for its version.
///
/// # Errors
/// `Library` if it does not start.
pub fn client_library() -> Result<ClientLibrary, OpenError> {
    // Without starting the network, which would have to be stopped before the exit.
    network::select_version().map_err(|source| OpenError::Library { source })?;
    // SAFETY: takes no arguments, and returns null or a string that lives as long as the library.
    #[allow(unsafe_code)]
    let text = unsafe {
        let text = foundationdb_sys::fdb_get_client_version();
        if text.is_null() {
            String::new()
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    };
    // Version, commit and protocol of each library, if there are several.
    let first = text.split(';').next().unwrap_or_default();
    let mut parts = first.split(',');
    Ok(ClientLibrary {
        version: parts.next().unwrap_or_default().to_owned(),
        protocol: parts.nth(1).unwrap_or_default().to_owned(),
        api_version: i32::try_from(foundationdb_sys::FDB_API_VERSION).unwrap_or(0),
        api_version_max: foundationdb::api::get_max_api_version(),
    })
}

/// The address of a process that the client has reached and that uses a different protocol.
pub(super) async fn incompatible_process(database: &Database) -> Option<String> {
    let status = database.get_client_status().await.ok()?;
    incompatible_in(&String::from_utf8_lossy(&status))
}

/// Finds the address in the client's status, a JSON text.
fn incompatible_in(status: &str) -> Option<String> {
    let compact: String = status
        .chars()
        .filter(|char| !char.is_whitespace())
        .collect();
    // Each connection is one object without objects inside.
    let connection = compact
        .split(['{', '}'])
        .find(|part| part.contains("\"Compatible\":false"))?;
    let (_, address) = connection.split_once("\"Address\":\"")?;
    Some(address.split('"').next()?.to_owned())
}

impl FdbStore {
    /// Asks the cluster for a read version `count` times in sequence. Returns how long each request took.
    pub async fn time_read_versions(&self, count: usize) -> Result<Vec<Duration>, StoreError> {
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let transaction = self.begin()?;
            let begun = Instant::now();
            transaction.get_read_version().await.map_err(read_error)?;
            times.push(begun.elapsed());
        }
        Ok(times)
    }

    /// What the client knows about its connections, as JSON text.
    pub async fn client_status(&self) -> Result<String, StoreError> {
        let status = self.database.get_client_status().await;
        let status = status.map_err(read_error)?;
        Ok(String::from_utf8_lossy(&status).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_another_version_is_found_in_the_status() {
        let status = |compatible: bool| {
            format!(
                "{{\"Healthy\": false, \"Connections\": [\
                 {{\"Address\": \"127.0.0.1:4500\", \"Compatible\": true}}, \
                 {{\"Address\": \"127.0.0.1:4501\", \"Compatible\": {compatible}, \
                 \"Status\": \"connecting\"}}]}}"
            )
        };
        let found = incompatible_in(&status(false));
        assert_eq!(found.as_deref(), Some("127.0.0.1:4501"));
        assert_eq!(incompatible_in(&status(true)), None);
        assert_eq!(incompatible_in("no status"), None);
    }

    #[test]
    fn the_client_library_has_a_version() {
        let library = client_library().unwrap();
        assert!(library.version.starts_with("7."), "{library:?}");
        assert_eq!(library.api_version, 730);
        assert!(library.api_version_max >= library.api_version);
        assert!(!library.protocol.is_empty());
    }

    #[test]
    fn a_cluster_file_that_is_named_comes_first() {
        let options = FdbOptions {
            cluster_file: Some(PathBuf::from("/x")),
            ..FdbOptions::default()
        };
        let expected = (PathBuf::from("/x"), ClusterFileOrigin::Options);
        assert_eq!(find_cluster_file(&options), expected);
    }
}
