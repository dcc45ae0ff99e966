//! Servers that find no cluster say so at the start; which cluster file they take.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::server::foundationdb::OwnCluster;

/// A start without a cluster ends in this time; waiting for an answer is most of it.
const BOUND: Duration = Duration::from_secs(15);

/// Starts a server that is to refuse to start; what it writes to its standard error.
fn refusal(folder: &Path, flags: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quoin"));
    command
        .env_remove("FDB_CLUSTER_FILE")
        .args(["--port", "0", "--store", "fdb"])
        .args(flags)
        .current_dir(folder)
        .stdin(Stdio::null());
    let started = Instant::now();
    let output = command.output().unwrap();
    assert!(started.elapsed() < BOUND, "{:?}", started.elapsed());
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    let line = text.lines().find(|line| line.starts_with("quoin: "));
    line.unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn a_cluster_file_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let line = refusal(folder.path(), &["--cluster-file", "none.cluster"]);
    assert!(
        line.starts_with("quoin: there is no FoundationDB cluster file none.cluster; "),
        "{line}"
    );
}

#[test]
fn a_cluster_file_that_is_none_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("fdb.cluster"), "nonsense\n").unwrap();
    let line = refusal(folder.path(), &[]);
    assert!(
        line.starts_with("quoin: the FoundationDB cluster file fdb.cluster cannot be used: "),
        "{line}"
    );
}

#[test]
fn a_cluster_that_does_not_answer_is_named_with_what_to_look_at() {
    let folder = tempfile::tempdir().unwrap();
    // Nothing listens on the discard port of the loopback.
    std::fs::write(folder.path().join("fdb.cluster"), "a:b@127.0.0.1:9\n").unwrap();
    let line = refusal(folder.path(), &[]);
    assert!(
        line.starts_with("quoin: no reachable FoundationDB cluster at fdb.cluster within "),
        "{line}"
    );
    assert!(line.contains("check that fdbserver runs"), "{line}");
}

#[test]
fn a_cluster_without_a_database_is_named_with_what_makes_one() {
    let cluster = match OwnCluster::start_without_database() {
        Ok(cluster) => cluster,
        Err(reason) => {
            eprintln!("a cluster without a database is not tested: {reason}");
            return;
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let file = cluster.file();
    let line = refusal(folder.path(), &["--cluster-file", file.to_str().unwrap()]);
    let expected = format!(
        "quoin: no reachable FoundationDB cluster at {} within ",
        file.display()
    );
    assert!(line.starts_with(&expected), "{line}");
    assert!(
        line.contains("fdbcli --exec 'configure new single ssd'"),
        "{line}"
    );
}
