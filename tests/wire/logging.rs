//! What the log tells at which level.

use crate::server::{Server, Socket, is_on_foundationdb, wait_until};

/// A client that comes, pushes and goes; the address under which the log knows it.
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
    wait_for_line(&server, " DEBUG ", &format!("connected from {address}"));
    wait_for_line(&server, " DEBUG ", &format!("at {address} is gone"));
    if !is_on_foundationdb() {
        wait_for_line(&server, " DEBUG ", "wrote commits into the data file");
        wait_for_line(&server, " DEBUG ", "took a checkpoint");
    }
    assert!(!server.log().contains("ran a batch"), "{}", server.log());
}

#[test]
fn debug_tells_of_batches_too() {
    let server = Server::start_with(&["--loglevel", "debug"]);
    // May share its batch with the background work with which a server begins.
    visit(&server);
    let address = visit(&server);
    wait_for_line(&server, " TRACE ", "ran a batch of commands commands=1");
    wait_for_line(&server, " DEBUG ", &format!("at {address} is gone"));
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
    wait_for_line(&server, " DEBUG ", &format!("at {told} is gone"));
    assert!(!server.log().contains(&untold), "{}", server.log());
}
