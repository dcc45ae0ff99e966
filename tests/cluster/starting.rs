//! Servers that find no cluster report it at the start. Also which cluster file they use.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use quoin_base::random::{Random, SystemRandom};
use quoin_layout::{LAYOUT_VERSION, Layout, encode_counter};
use quoin_store::{Isolation, Store};
use quoin_store_fdb::{FdbOptions, FdbStore};

use crate::server::Server;
use crate::server::foundationdb::{self, OwnCluster};

/// A start without a cluster ends in this time. Most of it is spent waiting for a reply.
const BOUND: Duration = Duration::from_secs(15);

/// Starts a server that should refuse to start. Returns its standard error.
fn refusal(folder: &Path, flags: &[&str]) -> String {
    refusal_with(folder, flags, &[])
}

/// The same with environment variables.
fn refusal_with(folder: &Path, flags: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quoin"));
    command
        .env_remove("FDB_CLUSTER_FILE")
        .envs(variables.iter().copied())
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
        Err(reason) => return foundationdb::skip(&reason),
    };
    let folder = tempfile::tempdir().unwrap();
    let file = cluster.file();
    let line = refusal(folder.path(), &["--cluster-file", file.to_str().unwrap()]);
    let expected = format!(
        "quoin: the FoundationDB cluster at {} did not answer within ",
        file.display()
    );
    assert!(line.starts_with(&expected), "{line}");
    assert!(
        line.contains("fdbcli --exec 'configure new single ssd'"),
        "{line}"
    );
}

#[test]
fn the_cluster_file_is_that_of_the_flag_then_the_variable_then_the_settings_then_foundationdbs() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("fdb.cluster"), "nonsense\n").unwrap();
    std::fs::write(
        folder.path().join("quoin.toml"),
        "cluster-file = 'settings'\n",
    )
    .unwrap();
    let flag: &[&str] = &["--cluster-file", "flag"];
    let settings: &[&str] = &["--config", "quoin.toml"];
    let ours = ("QUOIN_CLUSTER_FILE", "variable");
    let theirs = ("FDB_CLUSTER_FILE", "theirs");
    let absent = |file: &str| format!("quoin: there is no FoundationDB cluster file {file}; ");
    let here = "quoin: the FoundationDB cluster file fdb.cluster cannot be used: ".to_owned();
    for (flags, variables, expected) in [
        (
            [settings, flag].concat(),
            vec![ours, theirs],
            absent("flag"),
        ),
        (settings.to_vec(), vec![ours, theirs], absent("variable")),
        (settings.to_vec(), vec![theirs], absent("settings")),
        (vec![], vec![theirs], absent("theirs")),
        (vec![], vec![], here),
    ] {
        let line = refusal_with(folder.path(), &flags, &variables);
        assert!(
            line.starts_with(&expected),
            "{flags:?} {variables:?}: {line}"
        );
    }
}

/// Flags for a root prefix of the tests' cluster.
fn flags_of<'f>(cluster_file: &'f Path, root_prefix: &'f str) -> Vec<&'f str> {
    vec![
        "--store",
        "fdb",
        "--cluster-file",
        cluster_file.to_str().unwrap(),
        "--root-prefix",
        root_prefix,
    ]
}

#[test]
fn servers_of_two_root_prefixes_share_a_cluster_without_seeing_each_other() {
    let Some(cluster_file) = foundationdb::cluster_file() else {
        return;
    };
    // One prefix is a prefix of the other.
    let first = format!("starting-{:016x}", SystemRandom.next_u64());
    let second = format!("{first}-more");
    let servers =
        [first, second].map(|prefix| Server::start_with(&flags_of(cluster_file, &prefix)));
    let mut sockets = servers.each_ref().map(Server::connect);
    for (number, socket) in sockets.iter_mut().enumerate() {
        assert_eq!(socket.run(&format!("RPUSH list {number}")), ":1\r\n");
        assert_eq!(socket.run(&format!("ZADD set{number} 1 a")), ":1\r\n");
    }
    let [one, other] = &mut sockets;
    assert_eq!(one.run("DBSIZE"), ":2\r\n");
    assert_eq!(one.run("EXISTS set1"), ":0\r\n");
    // Neither wake-ups nor messages cross over.
    let mut waiting = servers[1].connect();
    waiting.send("BLPOP jobs 1\r\n");
    let mut subscribed = servers[1].connect();
    subscribed.run("SUBSCRIBE channel");
    assert_eq!(one.run("RPUSH jobs a"), ":1\r\n");
    assert_eq!(one.run("PUBLISH channel message"), ":0\r\n");
    assert_eq!(waiting.reply(), "*-1\r\n");
    assert!(subscribed.is_silent_for(Duration::from_millis(300)));
    for flush in ["FLUSHALL", "SWAPDB 0 3"] {
        assert_eq!(one.run(flush), "+OK\r\n");
        assert_eq!(other.run("LRANGE list 0 -1"), "*1\r\n$1\r\n1\r\n");
        assert_eq!(other.run("DBSIZE"), ":2\r\n");
    }
    assert_eq!(other.run("FLUSHALL"), "+OK\r\n");
    assert_eq!(other.run("DBSIZE"), ":0\r\n");
}

#[test]
fn a_cluster_of_a_newer_layout_is_refused_and_left_as_it_is() {
    let root_prefix = format!("starting-{:016x}", SystemRandom.next_u64());
    let Some(cluster_file) = foundationdb::cluster_file() else {
        return;
    };
    let flags = flags_of(cluster_file, &root_prefix);
    let options = FdbOptions {
        cluster_file: Some(cluster_file.to_owned()),
        ..FdbOptions::default()
    };
    let store = FdbStore::open(&options).unwrap();
    let layout = Layout::new(&root_prefix);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let transaction = store.begin_write().unwrap();
    let newer = encode_counter(LAYOUT_VERSION + 1);
    transaction.set(&layout.version_key(), &newer);
    runtime.block_on(transaction.commit()).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let line = refusal(folder.path(), &flags[2..]);
    let expected = format!(
        "quoin: FoundationDB: the store has layout version {}, but this Quoin supports versions up \
         to {LAYOUT_VERSION}: use a newer Quoin",
        LAYOUT_VERSION + 1
    );
    assert_eq!(line, expected);
    let row = |key: Vec<u8>| {
        runtime.block_on(async {
            let transaction = store.begin_read().unwrap();
            transaction.get(&key, Isolation::Snapshot).await.unwrap()
        })
    };
    assert_eq!(row(layout.version_key()).as_deref(), Some(&newer[..]));
    assert_eq!(row(layout.instances_key()), None);
}
