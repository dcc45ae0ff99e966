//! Which connections are accepted, and what happens to the others.

use std::collections::BTreeSet;
use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use quoin_base::limits::{DESCRIPTORS_RESERVED, DESCRIPTORS_RESERVED_FDB};

use crate::server::{PATIENCE, Server, Socket, is_on_foundationdb, wait_until};

const TOO_MANY: &str = "-ERR max number of clients reached\r\n";

/// A server that may open as many files as it needs for this many clients.
fn server_for(clients: u64) -> Server {
    let reserved = match is_on_foundationdb() {
        true => DESCRIPTORS_RESERVED + DESCRIPTORS_RESERVED_FDB,
        false => DESCRIPTORS_RESERVED,
    };
    Server::start_with_open_files(clients + reserved, &[])
}

/// The clients that are connected and served, out of this many that try. The others get the reason.
fn connect_all(server: &Server, count: usize) -> Vec<Socket> {
    let mut sockets: Vec<_> = (0..count).map(|_| server.connect()).collect();
    let mut served = Vec::new();
    for mut socket in sockets.drain(..) {
        if !socket.try_send("PING\r\n", PATIENCE) {
            continue;
        }
        match socket.reply_or_end().as_str() {
            "+PONG\r\n" => served.push(socket),
            // The end may come before the reason, because the request arrived after it.
            reply => assert!(reply == TOO_MANY || reply.is_empty(), "{reply}"),
        }
    }
    served
}

#[test]
fn maxclients_is_lowered_to_what_the_limit_of_open_files_allows() {
    let server = server_for(32);
    let log = server.log();
    assert!(
        log.contains("maxclients has been reduced to 32 to compensate for low ulimit"),
        "{log}"
    );
    let mut socket = server.connect();
    assert_eq!(
        socket.run("CONFIG GET maxclients"),
        "*2\r\n$10\r\nmaxclients\r\n$2\r\n32\r\n"
    );
    assert_eq!(
        socket.run("CONFIG SET maxclients 33"),
        "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - The operating system \
         is not able to handle the specified number of clients, try with 32\r\n"
    );
    assert_eq!(socket.run("CONFIG SET maxclients 31"), "+OK\r\n");
    assert_eq!(socket.run("CONFIG SET maxclients 32"), "+OK\r\n");
}

#[test]
fn no_client_hangs_where_there_are_more_than_open_files() {
    let server = server_for(32);
    let mut served = connect_all(&server, 150);
    assert_eq!(served.len(), 32);
    // Commands that write go on, over several checkpoints of the store.
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(2_500) {
        let reply = served[0].run("RPUSH list x");
        assert!(reply.starts_with(':'), "{reply}");
    }
    assert_eq!(server.connect().rest(), TOO_MANY);
    served.truncate(1);
    wait_until("there is room again", || connect_all(&server, 1).len() == 1);
    let lines = server
        .log()
        .matches("max number of clients reached")
        .count();
    assert_eq!(lines, 1, "{}", server.log());
}

#[test]
fn a_client_that_sends_much_before_it_is_refused_learns_why() {
    let server = Server::start_with(&["--maxclients", "1"]);
    let mut first = server.connect();
    assert_eq!(first.run("PING"), "+PONG\r\n");
    for _ in 0..3 {
        let mut refused = server.connect();
        let sent = vec![b'x'; 20_000_000];
        assert!(refused.try_send(&sent, PATIENCE));
        assert_eq!(refused.rest(), TOO_MANY);
    }
    assert_eq!(first.run("PING"), "+PONG\r\n");
}

/// The descriptor number that the server's next open file gets.
fn next_descriptor(server: &Server) -> u32 {
    let folder = format!("/proc/{}/fd", server.process_id());
    let open: BTreeSet<u32> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .map(|name| name.to_str().unwrap().parse().unwrap())
        .collect();
    (0..).find(|number| !open.contains(number)).unwrap()
}

/// Changes the limit of open files of a running server.
fn limit_open_files(server: &Server, files_max: u32) {
    let status = Command::new("prlimit")
        .arg(format!("--pid={}", server.process_id()))
        .arg(format!("--nofile={files_max}:"))
        .status()
        .unwrap();
    assert!(status.success());
}

/// A number of INFO.
fn count_of(socket: &mut Socket, name: &str) -> usize {
    let info = socket.run("INFO everything");
    let value = info
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap().parse().unwrap()
}

#[test]
fn a_client_is_told_where_no_descriptor_is_left_for_it() {
    if is_on_foundationdb() {
        // Its client opens and closes its own files meanwhile.
        return;
    }
    let server = Server::start();
    let mut first = server.connect();
    assert_eq!(first.run("PING"), "+PONG\r\n");
    limit_open_files(&server, next_descriptor(&server));
    // The server opens files briefly. If one was open just now, its descriptor is free again, and a
    // client gets it.
    let mut served = Vec::new();
    let mut refused = 0;
    while refused < 30 {
        let mut socket = server.connect();
        let mut is_decided = || match count_of(&mut first, "connected_clients") {
            connected if connected == served.len() + 2 => Some(true),
            _ if count_of(&mut first, "rejected_connections") > refused => Some(false),
            _ => None,
        };
        let mut is_served = None;
        wait_until("the client is served or refused", || {
            is_served = is_decided();
            is_served.is_some()
        });
        if is_served == Some(true) {
            assert_eq!(socket.run("PING"), "+PONG\r\n");
            served.push(socket);
            assert!(served.len() < 10, "as if there were no limit");
        } else {
            assert_eq!(socket.rest(), TOO_MANY);
            refused += 1;
        }
    }
    assert_eq!(first.run("PING"), "+PONG\r\n");
    let lines = server.log().matches("cannot accept a connection").count();
    assert_eq!(lines, 1, "{}", server.log());
    assert_eq!(count_of(&mut first, "rejected_connections"), 30);
    limit_open_files(&server, 1_024);
    assert_eq!(server.connect().run("PING"), "+PONG\r\n");
}

#[test]
fn a_server_that_may_open_too_few_files_for_a_client_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 30; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_quoin"))
        .args(["--port", "0", "--dashboard-address", "", "--data-dir"])
        .arg(folder.path().join("data"))
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("at least 10032"), "{said}");
}

/// An address of this machine that others can reach, if it has one. Sends nothing.
pub(crate) fn outer_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.200:9").ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip)
}

fn said_to(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn protected_mode_answers_only_loopback_as_long_as_there_is_no_password() {
    let server = Server::start_with(&["--bind", "0.0.0.0"]);
    let log = server.log();
    assert!(log.contains("without a password"), "{log}");
    let port = server.address().port();
    let mut local = Socket::connect(SocketAddr::from(([127, 0, 0, 1], port)));
    assert_eq!(
        local.run("CONFIG GET protected-mode"),
        "*2\r\n$14\r\nprotected-mode\r\n$3\r\nyes\r\n"
    );
    let Some(outer) = outer_address() else {
        eprintln!("this machine has no address but loopback");
        return;
    };
    let outer = SocketAddr::new(outer, port);
    let denied = said_to(outer);
    assert!(
        denied.starts_with("-DENIED Redis is running in protected mode because protected mode is"),
        "{denied}"
    );
    assert!(
        denied.ends_with("for the server to start accepting connections from the outside.\r\n"),
        "{denied}"
    );
    assert_eq!(local.run("CONFIG SET protected-mode no"), "+OK\r\n");
    assert_eq!(Socket::connect(outer).run("PING"), "+PONG\r\n");
    assert_eq!(local.run("CONFIG SET protected-mode yes"), "+OK\r\n");
    assert!(said_to(outer).starts_with("-DENIED "));
    assert_eq!(local.run("CONFIG SET requirepass secret"), "+OK\r\n");
    assert_eq!(
        Socket::connect(outer).run("PING"),
        "-NOAUTH Authentication required.\r\n"
    );
}

#[test]
fn a_wrong_password_is_logged_once_a_minute() {
    let server = Server::start_with(&["--requirepass", "secret"]);
    let mut socket = server.connect();
    for _ in 0..5 {
        assert!(socket.run("AUTH x\u{1b}y wrong").starts_with("-WRONGPASS"));
    }
    assert!(socket.run("AUTH wrong").starts_with("-WRONGPASS"));
    let line = format!(
        "wrong password from {} for user 'x\\x1by'",
        socket.local_address()
    );
    wait_until("it is logged", || server.log().contains(&line));
    assert_eq!(server.log().matches("wrong password").count(), 1);
    assert!(!server.log().contains("secret"));
}

#[test]
fn web_requests_are_logged_once_a_minute() {
    let server = Server::start();
    for _ in 0..5 {
        let mut socket = server.connect();
        socket.send("POST / HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(socket.rest(), "");
    }
    wait_until("it is logged", || {
        server.log().contains("Possible SECURITY ATTACK detected")
    });
    assert_eq!(server.log().matches("Possible SECURITY ATTACK").count(), 1);
}

#[test]
fn a_server_with_little_address_space_starts_and_says_how_large_its_data_file_may_become() {
    if is_on_foundationdb() {
        return;
    }
    let server = Server::start_with_limit("-v 16777216", &[]);
    assert_eq!(server.connect().run("SET key value"), "+OK\r\n");
    let log = server.log();
    assert!(log.contains("little address space is left"), "{log}");
}
