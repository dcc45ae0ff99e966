//! What tests that need FoundationDB do if there is none: they are counted, or fail. Nothing else
//! would distinguish a run that has tested FoundationDB from one that has lost its cluster.
#![allow(clippy::unwrap_used, unreachable_pub)]

#[allow(dead_code)] // only what finds a cluster is of use here
#[path = "support/foundationdb.rs"]
mod foundationdb;

use std::path::Path;
use std::process::{Command, Output};

/// Two tests that need FoundationDB, for [`run`].
mod needy {
    #[test]
    #[ignore = "run by the tests below, on a machine without FoundationDB"]
    fn one() {
        let _ = super::foundationdb::cluster_file();
    }

    #[test]
    #[ignore = "run by the tests below, on a machine without FoundationDB"]
    fn another() {
        let _ = super::foundationdb::cluster_file();
    }
}

/// Runs the tests above if no cluster is named and no program can be found.
fn run(skipped_file: &Path, required: &str) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "needy::"])
        .env_remove("FDB_CLUSTER_FILE")
        .env("PATH", "/nonexistent")
        .env(foundationdb::SKIPPED_VARIABLE, skipped_file)
        .env(foundationdb::REQUIRE_VARIABLE, required)
        .output()
        .unwrap()
}

#[test]
fn tests_that_do_nothing_are_counted_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("skipped");
    let output = run(&file, "");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert_eq!(
        said,
        "2 tests did nothing for want of FoundationDB: fdbserver is not installed (name a cluster \
         by FDB_CLUSTER_FILE, or put fdbserver and fdbcli on the PATH)\n"
    );
    let lines = std::fs::read_to_string(&file).unwrap();
    assert_eq!(lines, "fdbserver is not installed\n".repeat(2));
}

#[test]
fn they_fail_where_foundationdb_is_required() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("skipped");
    let output = run(&file, "1");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("2 failed"), "{said}");
    assert!(
        said.contains("QUOIN_TEST_REQUIRE_FDB is set, but there is no FoundationDB"),
        "{said}"
    );
}

#[test]
fn a_build_without_foundationdb_is_not_enough_where_it_is_required() {
    assert!(
        cfg!(feature = "fdb") || !foundationdb::is_required(),
        "{} is set: build with --features fdb",
        foundationdb::REQUIRE_VARIABLE
    );
}
