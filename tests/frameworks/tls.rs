//! redis-py over TLS, with certificates on both sides.

use std::io::Write;
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use crate::authority::Authority;
use crate::packages::Packages;
use crate::server::Server;
use crate::{is_all, process};

/// Longer than it takes on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn redis_py_speaks_tls() {
    let installed = match Packages::Python.install() {
        Ok(installed) => installed,
        Err(missing) if !is_all() => {
            // Written past the capture of a passing test's output.
            let _ = writeln!(std::io::stderr(), "redis-py over TLS is not run: {missing}");
            return;
        }
        Err(missing) => panic!("redis-py over TLS is not run: {missing}"),
    };
    let (ours, theirs) = (Authority::new(), Authority::new());
    ours.sign("server");
    ours.sign("client");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    drop(socket);
    let mut flags = ours.flags(port, "server", "yes");
    flags.extend(["--port".to_owned(), "0".to_owned()]);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let server = Server::start_with(&flags);
    assert_eq!(server.address().port(), port);

    let command = installed.command("run_tls.py");
    let mut script = Command::new(&command[0]);
    script.arg(&command[1]).arg(port.to_string());
    script.args(["ca.pem", "client.pem", "client.key"].map(|name| ours.path(name)));
    script.arg(theirs.path("ca.pem"));
    script.env("PYTHONDONTWRITEBYTECODE", "1");
    process::run(&mut script, TIMEOUT).unwrap();
}
