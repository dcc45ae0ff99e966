//! How each store of the suite is created.

use std::sync::Arc;

use quoin_base::random::{Random, SeededRandom, SystemRandom};
use quoin_store::Store;
use quoin_store::faults::{FaultRates, FaultyStore, OptimisticStore};
use quoin_store_embedded::{EmbeddedOptions, EmbeddedStore, FsyncPolicy};

use crate::subject::Subject;

fn in_a_folder<S: Store>(
    case: &str,
    fsync: FsyncPolicy,
    make: impl FnOnce(EmbeddedStore) -> S,
) -> Option<Subject> {
    #[cfg(not(feature = "fdb"))]
    say_once("store contract: FoundationDB is left out (build with --features fdb)");
    let folder = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions {
        fsync,
        map_bytes: 256 << 20,
        ..EmbeddedOptions::default()
    };
    let store = EmbeddedStore::open(folder.path(), options).unwrap();
    Some(Subject {
        store: Box::new(make(store)),
        prefix: prefix(case),
        is_shared: false,
        _folder: Some(folder),
    })
}

/// Prints a line even if the test passes, when output is otherwise captured.
#[cfg(not(feature = "fdb"))]
pub fn say_once(line: &str) {
    use std::io::Write;

    static SAID: std::sync::Once = std::sync::Once::new();
    SAID.call_once(|| {
        let _ = writeln!(std::io::stderr(), "{line}");
    });
}

/// Tests share a cluster, so each has keys of its own.
fn prefix(case: &str) -> Vec<u8> {
    format!("contract/{case}/{:016x}/", SystemRandom.next_u64()).into_bytes()
}

pub fn embedded(case: &str) -> Option<Subject> {
    in_a_folder(case, FsyncPolicy::Always, |store| store)
}

/// With every rate at 0, because the wrapper itself must change nothing.
pub fn faulty(case: &str) -> Option<Subject> {
    in_a_folder(case, FsyncPolicy::EverySecond, |store| {
        without_faults(store)
    })
}

pub fn optimistic(case: &str) -> Option<Subject> {
    in_a_folder(case, FsyncPolicy::EverySecond, OptimisticStore::new)
}

pub fn faulty_optimistic(case: &str) -> Option<Subject> {
    in_a_folder(case, FsyncPolicy::EverySecond, |store| {
        without_faults(OptimisticStore::new(store))
    })
}

fn without_faults<S: Store>(store: S) -> FaultyStore<S> {
    FaultyStore::new(store, FaultRates::default(), Arc::new(SeededRandom::new(1)))
}

/// With faults of every kind, for the cases that retry.
pub fn failing(case: &str, seed: u64, is_optimistic: bool) -> Subject {
    let rates = FaultRates {
        conflict_ppm: 50_000,
        unknown_applied_ppm: 50_000,
        unknown_not_applied_ppm: 50_000,
        too_old_ppm: 10_000,
        unavailable_ppm: 10_000,
    };
    let random = Arc::new(SeededRandom::new(seed));
    let made = if is_optimistic {
        in_a_folder(case, FsyncPolicy::EverySecond, |store| {
            FaultyStore::new(OptimisticStore::new(store), rates, random)
        })
    } else {
        in_a_folder(case, FsyncPolicy::EverySecond, |store| {
            FaultyStore::new(store, rates, random)
        })
    };
    made.unwrap()
}

#[cfg(feature = "fdb")]
pub fn fdb(case: &str) -> Option<Subject> {
    fdb_with_timeout(case, quoin_base::limits::FDB_TRANSACTION_TIMEOUT_MS)
}

#[cfg(feature = "fdb")]
pub fn fdb_with_timeout(case: &str, transaction_timeout_ms: i32) -> Option<Subject> {
    use quoin_store_fdb::{FdbOptions, FdbStore};

    let options = FdbOptions {
        cluster_file: Some(crate::foundationdb::cluster_file()?.to_owned()),
        transaction_timeout_ms,
        ..FdbOptions::default()
    };
    Some(Subject {
        store: Box::new(FdbStore::open(&options).unwrap()),
        prefix: prefix(case),
        is_shared: true,
        _folder: None,
    })
}
