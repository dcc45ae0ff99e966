//! Client libraries and tools that support Redis Cluster: on one server, or on three on
//! FoundationDB.

use std::io::Write;
use std::process::Command;
use std::time::Duration;

use crate::packages::Packages;
use crate::server::{Server, free_port, is_on_foundationdb, wait_until};
use crate::{is_all, process};

/// Longer than it takes on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The servers of a cluster, and the ports for its clients.
struct Cluster {
    servers: Vec<Server>,
    ports: Vec<String>,
    _folder: tempfile::TempDir,
}

impl Cluster {
    fn start() -> Self {
        let count = if is_on_foundationdb() { 3 } else { 1 };
        let folder = tempfile::tempdir().unwrap();
        let ports: Vec<String> = (0..count).map(|_| free_port().to_string()).collect();
        let start = |port: &String| Server::start_in(folder.path(), &["--cluster-port", port]);
        let servers: Vec<Server> = ports.iter().map(|port| start(port).unwrap()).collect();
        let all = format!("\r\nliving_servers:{count}\r\n");
        for server in &servers {
            wait_until("the servers see each other", || {
                server.connect().run("INFO quoin").contains(&all)
            });
        }
        Self {
            servers,
            ports,
            _folder: folder,
        }
    }
}

fn say(line: &str) {
    // Written past the capture of a passing test's output.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn run(packages: Packages, script: &str) {
    let installed = match packages.install() {
        Ok(installed) => installed,
        Err(missing) if !is_all() => return say(&format!("{script} is not run: {missing}")),
        Err(missing) => panic!("{script} is not run: {missing}"),
    };
    let cluster = Cluster::start();
    let command = installed.command(script);
    let mut program = Command::new(&command[0]);
    program.args(&command[1..]).args(&cluster.ports);
    program.env("PYTHONDONTWRITEBYTECODE", "1");
    process::run(&mut program, TIMEOUT).unwrap();
}

/// The output of a Redis tool, if it is installed.
fn tool(name: &str, words: &[&str]) -> Option<String> {
    match Command::new(name).args(words).output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{text}");
            Some(text)
        }
        Err(error) => {
            say(&format!("{name} is not run: {error}"));
            None
        }
    }
}

#[test]
fn redis_py_knows_the_cluster() {
    run(Packages::Python, "run_cluster.py");
}

#[test]
fn ioredis_and_bullmq_know_the_cluster() {
    run(Packages::Node, "cluster.mjs");
}

#[test]
fn node_redis_knows_the_cluster() {
    if is_all() {
        run(Packages::Node, "cluster_of_node_redis.mjs");
    }
}

#[test]
fn redis_cli_follows_and_checks_the_cluster() {
    let cluster = Cluster::start();
    for (number, port) in cluster.ports.iter().enumerate() {
        let value = number.to_string();
        let Some(set) = tool("redis-cli", &["-c", "-p", port, "SET", "key", &value]) else {
            return;
        };
        assert_eq!(set, "OK\n");
        let got = tool("redis-cli", &["-c", "-p", port, "GET", "key"]).unwrap();
        assert_eq!(got.trim(), value);
    }
    let address = format!("127.0.0.1:{}", cluster.ports[0]);
    let mut checked = String::new();
    // The servers discover each other one after another.
    wait_until("redis-cli finds no fault", || {
        let checked_now = Command::new("redis-cli")
            .args(["--cluster", "check", &address])
            .output();
        checked = String::from_utf8_lossy(&checked_now.unwrap().stdout).into_owned();
        checked.contains("[OK] All nodes agree about slots")
            && checked.contains("[OK] All 16384 slots covered.")
    });
    let masters = format!("[OK] 1 keys in {} masters.", cluster.servers.len());
    assert!(checked.contains(&masters), "{checked}");
}

#[test]
fn redis_benchmark_knows_the_cluster() {
    let cluster = Cluster::start();
    if cluster.servers.len() < 2 {
        return say("redis-benchmark is not run: it wants two servers (QUOIN_TEST_STORE=fdb)");
    }
    let port = &cluster.ports[0];
    let words = [
        "--cluster",
        "-p",
        port,
        "-n",
        "2000",
        "-c",
        "20",
        "-t",
        "set,lpush,lpop",
    ];
    if let Some(told) = tool("redis-benchmark", &words) {
        assert!(told.contains("====== LPOP"), "{told}");
        assert!(!told.contains("Error from server"), "{told}");
    }
}
