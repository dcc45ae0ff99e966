//! `quoin ping`, the health check.

use std::net::TcpListener;
use std::process::Command;

use crate::authority::Authority;
use crate::server::Server;

/// Whether the ping succeeded, and its output.
fn ping(flags: &[&str], variables: &[(&str, &str)]) -> (bool, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_quoin"))
        .arg("ping")
        .args(flags)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let said = [done.stdout, done.stderr].concat();
    (done.status.success(), String::from_utf8(said).unwrap())
}

#[test]
fn the_settings_of_a_server_say_how_it_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("quoin.sock").display().to_string();
    let port = free_port();
    let mut server = Server::start_with(&[
        "--requirepass",
        "secret",
        "--port",
        &port,
        "--unixsocket",
        &socket,
    ]);
    let well = (true, "PONG\n".to_owned());
    let flags = ["--port", &port, "--requirepass", "secret"];
    let variables = [("QUOIN_PORT", &*port), ("QUOIN_REQUIREPASS", "secret")];
    assert_eq!(ping(&flags, &[]), well);
    assert_eq!(ping(&[], &variables), well);
    let flags = ["--unixsocket", &socket, "--password", "secret"];
    assert_eq!(ping(&flags, &[]), well);
    let named = format!("redis://:secret@127.0.0.1:{port}");
    assert_eq!(ping(&["--server", &named], &[]), well);

    let (is_well, said) = ping(&["--port", &port], &[]);
    assert!(!is_well && said.contains("NOAUTH"), "{said}");
    server.signal("TERM");
    server.wait();
    let (is_well, said) = ping(&[], &variables);
    assert!(!is_well && said.contains("cannot connect"), "{said}");
}

#[test]
fn a_server_that_speaks_tls_alone_is_asked_with_tls() {
    let authority = Authority::new();
    authority.sign("server");
    let port = free_port();
    let flags = authority.flags(port.parse().unwrap(), "server", "no");
    let flags = [&["--port".to_owned(), "0".to_owned()], &flags[..]].concat();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let _server = Server::start_with(&flags);
    assert_eq!(ping(&flags, &[]), (true, "PONG\n".to_owned()));
    let named = format!("rediss://127.0.0.1:{port}");
    let (is_well, said) = ping(&["--server", &named], &[]);
    assert!(!is_well, "{said}");
    let trusted = ["--server", &named, "--cacert", &authority.text("ca.pem")];
    assert_eq!(ping(&trusted, &[]), (true, "PONG\n".to_owned()));
}

fn free_port() -> String {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().port().to_string()
}
