//! The stores that the suite runs on, with two servers on each.

use std::sync::Arc;

use quoin_base::random::SeededRandom;
use quoin_store::Store;
use quoin_store::faults::{FaultRates, FaultyStore, OptimisticStore};
use quoin_store_embedded::{EmbeddedOptions, EmbeddedStore, FsyncPolicy};
use tempfile::TempDir;

use crate::bench::Bench;

fn embedded() -> (EmbeddedStore, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions {
        fsync: FsyncPolicy::EverySecond,
        ..EmbeddedOptions::default()
    };
    (EmbeddedStore::open(folder.path(), options).unwrap(), folder)
}

/// A store that behaves like a cluster.
pub fn imitation() -> Option<Bench> {
    #[cfg(not(feature = "fdb"))]
    say_once("cluster tests: FoundationDB is left out (build with --features fdb)");
    let (store, folder) = embedded();
    let store: Arc<dyn Store> = Arc::new(OptimisticStore::new(store));
    Some(Bench::new(
        [Arc::clone(&store), store],
        "test",
        Some(folder),
    ))
}

/// The same, with commits that conflict or have an unknown result.
pub fn failing() -> Option<Bench> {
    let (store, folder) = embedded();
    let rates = FaultRates {
        conflict_ppm: 50_000,
        unknown_applied_ppm: 30_000,
        unknown_not_applied_ppm: 30_000,
        too_old_ppm: 1_000,
        unavailable_ppm: 0,
    };
    let random = Arc::new(SeededRandom::new(3));
    let store = FaultyStore::new(OptimisticStore::new(store), rates, random);
    let store: Arc<dyn Store> = Arc::new(store);
    let mut bench = Bench::new([Arc::clone(&store), store], "test", Some(folder));
    bench.has_faults = true;
    Some(bench)
}

/// The FoundationDB cluster of the tests.
#[cfg(feature = "fdb")]
pub fn fdb() -> Option<Bench> {
    Some(on_cluster(crate::server::foundationdb::cluster_file()?))
}

/// A FoundationDB cluster. Each server has its own client of it.
#[cfg(feature = "fdb")]
pub fn on_cluster(cluster_file: &std::path::Path) -> Bench {
    use quoin_base::random::{Random, SystemRandom};
    use quoin_store_fdb::{FdbOptions, FdbStore};

    let open = || -> Arc<dyn Store> {
        let options = FdbOptions {
            cluster_file: Some(cluster_file.to_owned()),
            ..FdbOptions::default()
        };
        Arc::new(FdbStore::open(&options).unwrap())
    };
    let root_prefix = format!("cluster-{:016x}", SystemRandom.next_u64());
    let mut bench = Bench::new([open(), open()], &root_prefix, None);
    bench.has_faults = std::env::var_os("FDB_NETWORK_OPTION_CLIENT_BUGGIFY_ENABLE").is_some();
    bench
}

/// Prints a line even if the test passes, when output is otherwise captured.
#[cfg(not(feature = "fdb"))]
fn say_once(line: &str) {
    use std::io::Write;

    static SAID: std::sync::Once = std::sync::Once::new();
    SAID.call_once(|| {
        let _ = writeln!(std::io::stderr(), "{line}");
    });
}
