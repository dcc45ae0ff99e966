//! The workers for task queues in `examples/`: they extend leases, try again with reasons, survive
//! a kill of the server, and finish their task when they are told to stop. The one in Go is not
//! run, because no registry that the tests use has its client library.

use std::ffi::OsString;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::packages::Packages;
use crate::process::Group;
use crate::server::{Server, wait_until};

/// Longer than the server needs to start again on a busy machine.
const LEASE_MS: &str = "8000";
/// Longer than a worker takes to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the worker finds no server.
const DOWN: Duration = Duration::from_millis(500);

fn example(file: &str) -> OsString {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples")
        .join(file)
        .into()
}

#[test]
fn the_worker_in_python_does_its_tasks() {
    match Packages::Python.install() {
        Ok(installed) => does_its_tasks(&installed.command_of(&example("worker.py"))),
        Err(missing) => skip("worker.py", missing),
    }
}

#[test]
fn the_worker_in_node_does_its_tasks() {
    match Packages::Node.install() {
        Ok(installed) => {
            // It finds packages only from there.
            let script = installed.copy(Path::new(&example("worker.mjs")));
            does_its_tasks(&installed.command_of(script.as_os_str()));
        }
        Err(missing) => skip("worker.mjs", missing),
    }
}

#[test]
fn the_worker_in_rust_does_its_tasks() {
    let cargo = [env!("CARGO"), "run", "--quiet", "--offline", "--example"];
    let words = cargo.into_iter().chain(["worker", "--"]);
    does_its_tasks(&words.map(OsString::from).collect::<Vec<_>>());
}

fn skip(name: &str, missing: &str) {
    // Written past the capture of a passing test's output.
    let _ = writeln!(std::io::stderr(), "examples/{name} is not run: {missing}");
}

fn does_its_tasks(command: &[OsString]) {
    let folder = tempfile::tempdir().unwrap();
    // The port must be the same after the kill.
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|socket| socket.local_addr())
        .unwrap()
        .port();
    let start = || {
        let flags = ["--port", &port.to_string()];
        Server::start_in(folder.path(), &flags).unwrap_or_else(|log| panic!("no server: {log}"))
    };
    let server = start();
    let mut socket = server.connect();
    // Without extensions its only lease would end.
    let long = ["TASK.ADD", "jobs", "1", "sleep 9000", "ID", "long"];
    socket.command(&[&long[..], &["MAXTRIES", "1"]].concat());
    let bad = ["TASK.ADD", "jobs", "2", "fail no disk", "ID", "bad"];
    socket.command(&[&bad[..], &["MAXTRIES", "2"]].concat());
    socket.run("TASK.ADD jobs 3 - ID quick");

    let (program, words) = command.split_first().unwrap();
    let mut worker = Group::spawn(
        Command::new(program)
            .args(words)
            .arg(format!("redis://127.0.0.1:{port}"))
            .args(["jobs", LEASE_MS])
            .stdin(Stdio::null())
            .stdout(Stdio::null()),
    )
    .unwrap();
    // Cargo may have to build it first.
    let started = Instant::now();
    while !socket.run("TASK.GET jobs long").contains("leased") {
        assert!(
            started.elapsed() < Duration::from_secs(300),
            "it takes nothing"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(socket);
    server.signal("KILL");
    drop(server);
    std::thread::sleep(DOWN);
    let server = start();
    let mut socket = server.connect();
    wait_until("all are done but one that is dead", || {
        socket.run("TASK.LEN jobs") == ":1\r\n" && socket.run("TASK.LEN jobs DEAD") == ":1\r\n"
    });
    let dead = socket.run("TASK.DEAD jobs");
    assert!(dead.contains("bad") && dead.contains("no disk"), "{dead}");

    let last = ["TASK.ADD", "jobs", "1", "sleep 1000", "ID", "last"];
    socket.command(&last);
    wait_until("it works at the last", || {
        socket.run("TASK.LEN jobs LEASED") == ":1\r\n"
    });
    let is_told = Command::new("kill")
        .arg(worker.child.id().to_string())
        .status()
        .unwrap();
    assert!(is_told.success());
    let status = worker.wait(STOP_TIMEOUT).expect("it stops");
    assert!(status.success(), "{status}");
    assert_eq!(socket.run("TASK.GET jobs last"), "$-1\r\n");
}
