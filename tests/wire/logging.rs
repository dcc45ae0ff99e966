//! What is logged at each level.

use crate::server::{Server, Socket, is_on_foundationdb, wait_until};

/// A client that connects, pushes and leaves. Returns its address in the log.
fn visit(server: &Server) -> String {
    let mut socket = server.connect();
    assert!(socket.run("RPUSH list a").starts_with(':'));
    socket.local_address().to_string()
}

fn set_level(socket: &mut Socket, level: &str) {
    let words = ["CONFIG", "SET", "loglevel", level];
    assert_eq!(socket.command(&words), "+OK\r\n");
}

/// Waits for a line of the log with both texts.
fn wait_for_line(server: &Server, text: &str, other: &str) {
    wait_until(&format!("the log says {text:?} {other:?}"), || {
        let log = server.log();
        let mut lines = log.lines();
        lines.any(|line| line.contains(text) && line.contains(other))
    });
}

#[test]
fn verbose_tells_of_connections_and_checkpoints() {
    let server = Server::start_with(&["--loglevel", "verbose"]);
    let address = visit(&server);
    wait_for_line(&server, " VERBOSE ", &format!("connected from {address}"));
    wait_for_line(&server, " VERBOSE ", &format!("at {address} disconnected"));
    if !is_on_foundationdb() {
        wait_for_line(&server, " VERBOSE ", "wrote commits into the data file");
        wait_for_line(&server, " VERBOSE ", "took a checkpoint");
    }
    assert!(!server.log().contains("ran a batch"), "{}", server.log());
}

#[test]
fn debug_tells_of_batches_too() {
    let server = Server::start_with(&["--loglevel", "debug"]);
    // May share its batch with the background work at the start of a server.
    visit(&server);
    let address = visit(&server);
    wait_for_line(&server, " DEBUG ", "ran a batch of commands commands=1");
    wait_for_line(&server, " VERBOSE ", &format!("at {address} disconnected"));
}

#[test]
fn a_change_of_the_level_holds_at_once() {
    let server = Server::start();
    let mut socket = server.connect();
    let untold = visit(&server);
    // It is gone once CLIENT LIST does not have it any more.
    wait_until("the client is gone", || {
        !socket.run("CLIENT LIST").contains(&untold)
    });
    set_level(&mut socket, "verbose");
    let told = visit(&server);
    wait_for_line(&server, " VERBOSE ", &format!("at {told} disconnected"));
    assert!(!server.log().contains(&untold), "{}", server.log());
}

#[test]
fn who_changes_the_server_is_logged_without_secrets() {
    let mut server = Server::start();
    let mut socket = server.connect();
    socket.run("CLIENT SETNAME operator");
    let address = socket.local_address().to_string();
    for (command, shown) in [
        ("CONFIG SET timeout 7", "CONFIG SET timeout 7"),
        (
            "CONFIG SET requirepass hidden-1 timeout 8",
            "CONFIG SET requirepass (redacted) timeout 8",
        ),
        (
            "ACL SETUSER alice on >hidden-2 ~jobs:* +@list",
            "ACL SETUSER alice on >(redacted) ~jobs:* +@list",
        ),
        ("ACL DELUSER alice", "ACL DELUSER alice"),
        ("CONFIG RESETSTAT", "CONFIG RESETSTAT"),
    ] {
        assert!(!socket.run(command).starts_with('-'), "{command}");
        let log = server.log();
        wait_for_line(&server, shown, "user=\"default\"");
        wait_for_line(&server, shown, &format!("address={address}"));
        wait_for_line(&server, shown, "name=\"operator\"");
        assert!(!log.contains("hidden"), "{log}");
    }
    // Refused commands have changed nothing.
    socket.run("CONFIG SET nothing 1");
    socket.run("ACL SETUSER bob +nothing");
    socket.send("SHUTDOWN NOSAVE\r\n");
    server.wait();
    wait_for_line(&server, "SHUTDOWN NOSAVE", &format!("address={address}"));
    let log = server.log();
    assert!(!log.contains("nothing") && !log.contains("hidden"), "{log}");
}

#[test]
fn secrets_are_shown_nowhere() {
    let server = Server::start_with(&["--slowlog-log-slower-than", "0", "--loglevel", "debug"]);
    let mut monitor = server.connect();
    assert_eq!(monitor.run("MONITOR"), "+OK\r\n");
    let mut socket = server.connect();
    let secrets = [
        "CONFIG SET tls-key-file-pass hidden",
        "CONFIG SET TLS-CLIENT-KEY-FILE-PASS hidden",
        "CONFIG SET fdb-tls-password hidden",
        "CONFIG SET masterauth hidden",
        "CONFIG SET masteruser hidden",
        "CONFIG SET timeout 0 requirepass hidden",
        "ACL SETUSER alice on >hidden",
        "ACL SETUSER alice wrong >hidden",
        "ACL SETUSER somebody on",
        "ACL GETUSER somebody",
        "ACL DELUSER somebody",
        "AUTH hidden",
        "AUTH somebody hidden",
        "HELLO 3 AUTH default hidden",
        "HELLO 2 AUTH somebody hidden SETNAME x",
        "MIGRATE 127.0.0.1 1 nothing 0 1 AUTH hidden",
        "MIGRATE 127.0.0.1 1 nothing 0 1 COPY AUTH2 hidden hidden",
    ];
    for command in secrets {
        socket.run(command);
    }
    // Queued commands are shown as they run.
    socket.run("MULTI");
    socket.run("CONFIG SET requirepass hidden");
    socket.run("EXEC");
    socket.run("ECHO last");
    let slow = socket.run("SLOWLOG GET 100");
    assert!(
        slow.contains("(redacted)") && !slow.contains("hidden") && !slow.contains("somebody"),
        "{slow}"
    );
    let clients = socket.run("CLIENT LIST");
    assert!(!clients.contains("hidden"), "{clients}");
    let mut seen = String::new();
    while !seen.contains("last") {
        seen.push_str(&monitor.reply());
    }
    assert!(
        seen.contains("(redacted)") && !seen.contains("hidden"),
        "{seen}"
    );
    let info = socket.run("INFO everything");
    assert!(!info.contains("hidden"), "{info}");
    assert!(!server.log().contains("hidden"), "{}", server.log());
}
