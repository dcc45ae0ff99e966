//! Client libraries and frameworks that find the server by its Sentinel port.

use std::io::Write;
use std::process::Command;
use std::time::Duration;

use crate::packages::Packages;
use crate::server::{Server, free_port};
use crate::{is_all, process};

/// Longer than it takes on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(120);

fn run(packages: Packages, script: &str) {
    let installed = match packages.install() {
        Ok(installed) => installed,
        Err(missing) if !is_all() => {
            // Written past the capture of a passing test's output.
            let _ = writeln!(std::io::stderr(), "{script} is not run: {missing}");
            return;
        }
        Err(missing) => panic!("{script} is not run: {missing}"),
    };
    let sentinel_port = free_port().to_string();
    let server = Server::start_with(&["--sentinel-port", &sentinel_port]);
    let command = installed.command(script);
    let mut program = Command::new(&command[0]);
    program.arg(&command[1]);
    program.arg(server.address().port().to_string());
    program.arg(&sentinel_port);
    program.env("PYTHONDONTWRITEBYTECODE", "1");
    process::run(&mut program, TIMEOUT).unwrap();
}

#[test]
fn redis_py_kombu_celery_and_rq_find_the_server() {
    run(Packages::Python, "run_sentinel.py");
}

#[test]
fn ioredis_and_bullmq_find_the_server() {
    run(Packages::Node, "sentinel.mjs");
}

#[test]
fn node_redis_finds_the_server() {
    if is_all() {
        run(Packages::Node, "sentinel_of_node_redis.mjs");
    }
}
