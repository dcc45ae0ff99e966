//! MONITOR.

use crate::server::{Server, is_on_foundationdb, request, wait_until};

/// What a monitor shows of a command, without the time and the address.
fn shown(line: &str) -> (&str, &str) {
    let line = line.strip_prefix('+').unwrap();
    let (time, rest) = line.split_once(" [").unwrap();
    let (seconds, micros) = time.split_once('.').unwrap();
    assert!(seconds.parse::<u64>().unwrap() > 1_000_000_000, "{line}");
    assert!(micros.len() == 6 && micros.parse::<u32>().is_ok(), "{line}");
    let (place, command) = rest.split_once("] ").unwrap();
    let (database, address) = place.split_once(' ').unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{line}");
    (database, command)
}

#[test]
fn a_monitor_sees_the_commands_of_all_clients_as_redis_shows_them() {
    let server = Server::start();
    let mut monitor = server.connect();
    assert_eq!(monitor.run("MONITOR"), "+OK\r\n");
    let mut socket = server.connect();
    socket.send(request(&["RPUSH", "a", "b\u{e9}\n\"q\\"]));
    for line in [
        "HELLO 2 AUTH a b",
        "SELECT 1",
        "MULTI",
        "PING",
        "SELECT 2",
        "LPUSH l x",
        "EXEC",
        "CONFIG GET port",
        "nonsense",
        "LLEN",
        "BLPOP nothing 0.01",
        "WATCH z",
        "EXEC",
    ] {
        socket.run(line);
    }
    let expected = [
        ("0", r#""RPUSH" "a" "b\xc3\xa9\n\"q\\""#),
        ("0", r#""HELLO" "2" "AUTH" "(redacted)" "(redacted)""#),
        ("1", r#""SELECT" "1""#),
        ("1", r#""MULTI""#),
        ("1", r#""PING""#),
        ("2", r#""SELECT" "2""#),
        ("2", r#""LPUSH" "l" "x""#),
        ("2", r#""EXEC""#),
        ("2", r#""BLPOP" "nothing" "0.01""#),
        ("2", r#""WATCH" "z""#),
        ("2", r#""EXEC""#),
    ];
    for expected in expected {
        let line = monitor.reply();
        assert_eq!(shown(line.trim_end()), expected);
    }
}

#[test]
fn a_monitor_is_one_until_reset() {
    let server = Server::start();
    let mut monitor = server.connect();
    let mut socket = server.connect();
    assert_eq!(monitor.run("MONITOR"), "+OK\r\n");
    assert!(socket.run("CLIENT LIST").contains(" flags=O "));
    assert_eq!(monitor.run("RESET"), "+RESET\r\n");
    socket.run("PING");
    assert_eq!(monitor.run("PING"), "+PONG\r\n");
    assert!(!socket.run("CLIENT LIST").contains(" flags=O "));
}

#[test]
fn a_monitor_that_does_not_read_is_disconnected() {
    let server = Server::start_with(&["--client-output-buffer-limit", "pubsub 1mb 0 0"]);
    let mut monitor = server.connect();
    assert_eq!(monitor.run("MONITOR"), "+OK\r\n");
    let mut socket = server.connect();
    let long = "x".repeat(100_000);
    wait_until("the monitor is gone", || {
        socket.run(&format!("ECHO {long}"));
        !socket.run("CLIENT LIST").contains(" flags=O ")
    });
}

#[test]
fn no_transaction_makes_a_monitor() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("MULTI");
    socket.run("MONITOR");
    assert_eq!(
        socket.run("EXEC"),
        "*1\r\n-ERR MONITOR isn't allowed for DENY BLOCKING client\r\n"
    );
}

#[test]
fn hits_and_misses_of_reads_are_counted() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("RPUSH l a");
    for line in ["LLEN l", "LRANGE l 0 -1", "LLEN none", "TTL l"] {
        socket.run(line);
    }
    let stats = socket.run("INFO stats");
    assert!(stats.contains("keyspace_hits:3\r\n"), "{stats}");
    assert!(stats.contains("keyspace_misses:1\r\n"), "{stats}");
}

#[test]
fn a_client_that_looks_for_replicas_or_a_cluster_finds_none() {
    let server = Server::start();
    let mut socket = server.connect();
    let no_replica = match is_on_foundationdb() {
        true => {
            "-ERR REPLICAOF is not supported: the FoundationDB cluster replicates the data (see \
             docs/start/compatibility.md)\r\n"
        }
        false => {
            "-ERR REPLICAOF is not supported: this server's data is on one machine. Servers on a \
             FoundationDB cluster share replicated data (see docs/start/compatibility.md)\r\n"
        }
    };
    let no_cluster = "-ERR This instance has cluster support disabled\r\n";
    for (line, reply) in [
        ("ROLE", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"),
        ("REPLICAOF NO ONE", "+OK\r\n"),
        ("SLAVEOF no one", "+OK\r\n"),
        ("REPLICAOF a b", "-ERR Invalid master port\r\n"),
        ("REPLICAOF a 1", no_replica),
        ("MODULE LIST", "*0\r\n"),
        ("CLUSTER INFO", no_cluster),
        ("CLUSTER SLOTS", no_cluster),
        ("READONLY", no_cluster),
    ] {
        assert_eq!(socket.run(line), reply, "{line}");
    }
}
