//! The checks that only FoundationDB needs: the client library, the cluster file, and whether the cluster
//! answers.

use super::checks::percentiles;
use super::examine::{Access, Options, check_store, unfinished};
use super::report::{Level, Line};
use super::target::LATENCY_TRIES;
use quoin_config::LoadedSettings;
use quoin_store::Store;
use quoin_store_fdb::{
    ClusterFileOrigin, FdbOptions, FdbStore, OpenError, client_library, find_cluster_file,
};

pub(super) async fn check(loaded: &LoadedSettings, options: Options, show: &mut dyn FnMut(&Line)) {
    let store_options = FdbOptions::from(&loaded.settings);
    match client_library() {
        Ok(library) => {
            let text = format!(
                "FoundationDB's client {}, protocol {}; API version {} in use, up to {} available",
                library.version, library.protocol, library.api_version, library.api_version_max
            );
            show(&Line::ok("library", text));
        }
        Err(error) => return show(&Line::new(Level::Fail, "library", error.to_string())),
    }
    let (file, origin) = find_cluster_file(&store_options);
    let origin = match origin {
        ClusterFileOrigin::Options => loaded.origin("cluster-file").to_string(),
        ClusterFileOrigin::Variable => "environment variable FDB_CLUSTER_FILE".to_owned(),
        ClusterFileOrigin::WorkingFolder => "in the working folder".to_owned(),
        ClusterFileOrigin::System => "the system's".to_owned(),
    };
    let opened = FdbStore::open(&store_options);
    let file_line = match &opened {
        Err(error @ (OpenError::NoClusterFile { .. } | OpenError::ClusterFile { .. })) => {
            let text = format!("{error} ({origin})");
            return show(&Line::new(Level::Fail, "cluster file", text));
        }
        _ => Line::ok("cluster file", format!("{} ({origin})", file.display())),
    };
    show(&file_line);
    let store = match opened {
        Ok(store) => store,
        Err(error) => return show(&Line::new(Level::Fail, "cluster", error.to_string())),
    };
    show(&match store.time_read_versions(LATENCY_TRIES).await {
        Ok(times) => Line::ok(
            "cluster",
            format!(
                "reachable, and speaks the client's protocol; a read version takes {} (median, \
                 99th percentile of {LATENCY_TRIES})",
                percentiles(times)
            ),
        ),
        Err(error) => unfinished("cluster", &error),
    });
    let access = match options.is_offline {
        true => Access::Alone,
        false => Access::Shared,
    };
    check_store(&store as &dyn Store, loaded, options, access, show).await;
}
