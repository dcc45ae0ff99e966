//! Metrics over HTTP: the same figures as INFO's.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::server::{PATIENCE, Server, Socket, wait_until};

fn server() -> (Server, SocketAddr) {
    let server = Server::start_with(&["--metrics-address", "127.0.0.1:0"]);
    let log = server.log();
    let (_, behind) = log.split_once("metrics are at http://").unwrap();
    let (address, _) = behind.split_once('/').unwrap();
    (server, address.parse().unwrap())
}

/// The whole response to a request.
fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

fn text(address: SocketAddr) -> String {
    let response = ask(address, "GET /metrics HTTP/1.1\r\nHost: quoin\r\n\r\n");
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains("content-type: application/openmetrics-text; version=1.0.0"),
        "{head}"
    );
    assert!(body.ends_with("# EOF\n"));
    body.to_owned()
}

/// Samples by their names with their labels.
fn scrape(address: SocketAddr) -> HashMap<String, f64> {
    text(address)
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        })
        .collect()
}

/// Figures of INFO that are numbers.
fn info(socket: &mut Socket) -> HashMap<String, f64> {
    let text = socket.run("INFO everything");
    let fields = text.split("\r\n").filter_map(|line| line.split_once(':'));
    fields
        .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
        .collect()
}

#[test]
fn figures_agree_with_info() {
    let (server, address) = server();
    let mut socket = server.connect();
    for number in 0..20 {
        socket.run(&format!("RPUSH list {number}"));
    }
    socket.run("RPUSH soon a");
    socket.run("PEXPIRE soon 1");
    wait_until("the key has expired", || {
        info(&mut socket)["expired_keys"] == 1.0
    });
    socket.run("ZADD list 1 a");
    socket.run("LPUSH list");
    let mut waiting = server.connect();
    waiting.send("BLPOP nothing 0\r\n");
    wait_until("a client waits", || {
        info(&mut socket)["blocked_clients"] == 1.0
    });

    // Whatever goes on in the background grows between the three looks.
    let before = info(&mut socket);
    let metrics = scrape(address);
    let after = info(&mut socket);
    for (metric, field) in [
        ("quoin_commands_processed_total", "total_commands_processed"),
        (
            "quoin_connections_received_total",
            "total_connections_received",
        ),
        ("quoin_connections_rejected_total", "rejected_connections"),
        ("quoin_input_bytes_total", "total_net_input_bytes"),
        ("quoin_output_bytes_total", "total_net_output_bytes"),
        ("quoin_connected_clients", "connected_clients"),
        ("quoin_blocked_clients", "blocked_clients"),
        ("quoin_blocking_keys", "total_blocking_keys"),
        ("quoin_batches_total", "batches"),
        ("quoin_batched_commands_total", "batched_commands"),
        ("quoin_commits_total", "commits"),
        ("quoin_conflicts_total", "conflicts"),
        ("quoin_retries_total", "retries"),
        ("quoin_unknown_results_total", "unknown_results"),
        (
            "quoin_unknown_results_applied_total",
            "unknown_results_applied",
        ),
        (
            "quoin_unknown_results_not_applied_total",
            "unknown_results_not_applied",
        ),
        (
            "quoin_unknown_results_unresolved_total",
            "unknown_results_unresolved",
        ),
        ("quoin_too_old_transactions_total", "too_old_transactions"),
        ("quoin_store_errors_total", "store_errors"),
        ("quoin_commands_rolled_back_total", "commands_rolled_back"),
        ("quoin_expired_keys_total", "expired_keys"),
        ("quoin_open_watches", "open_watches"),
        ("quoin_store_reachable", "store_reachable"),
    ] {
        let value = metrics[metric];
        assert!(
            (before[field]..=after[field]).contains(&value),
            "{metric}: {value}, in INFO {} and {}",
            before[field],
            after[field]
        );
    }
    assert!(metrics["quoin_commits_total"] >= 21.0);
    assert!(
        (before["uptime_in_seconds"]..=after["uptime_in_seconds"] + 1.0)
            .contains(&metrics["quoin_uptime_seconds"])
    );
    assert!(metrics["quoin_memory_used_bytes"] > 1e5);
}

#[test]
fn commands_and_errors_are_told_by_their_names() {
    let (server, address) = server();
    let mut socket = server.connect();
    socket.run("RPUSH list a");
    socket.run("RPUSH list b");
    socket.run("ZADD list 1 a");
    socket.run("LPUSH list");
    socket.run("CLIENT ID");
    let metrics = scrape(address);
    for (sample, value) in [
        ("command_calls_total{command=\"rpush\"}", 2.0),
        ("command_calls_total{command=\"client|id\"}", 1.0),
        ("command_failures_total{command=\"zadd\"}", 1.0),
        ("command_rejections_total{command=\"lpush\"}", 1.0),
        ("error_replies_total{code=\"WRONGTYPE\"}", 1.0),
        ("error_replies_total{code=\"ERR\"}", 1.0),
    ] {
        assert_eq!(metrics[&format!("quoin_{sample}")], value, "{sample}");
    }
    assert!(metrics["quoin_command_seconds_total{command=\"rpush\"}"] > 0.0);
    assert!(!metrics.contains_key("quoin_command_calls_total{command=\"lpop\"}"));
}

#[test]
fn the_server_is_named() {
    let (server, address) = server();
    let info = server.connect().run("INFO quoin server");
    let text = text(address);
    let line = text
        .lines()
        .find(|line| line.starts_with("quoin_server_info{"))
        .unwrap();
    for (label, field) in [
        ("version", "quoin_version"),
        ("redis_version", "redis_version"),
        ("store", "store"),
        ("layout_version", "layout_version"),
        ("run_id", "run_id"),
    ] {
        let (_, behind) = info.split_once(&format!("\r\n{field}:")).unwrap();
        let (value, _) = behind.split_once("\r\n").unwrap();
        assert!(line.contains(&format!("{label}=\"{value}\"")), "{line}");
    }
}

#[test]
fn every_figure_is_documented() {
    let (server, address) = server();
    // Figures of commands and errors are there once there are any.
    server.connect().run("NOSUCH");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operate/metrics.md");
    let document = std::fs::read_to_string(path).unwrap();
    let text = text(address);
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    for sample in samples {
        let name = sample.split(['{', ' ']).next().unwrap();
        assert!(document.contains(&format!("| `{name}")), "{name}");
    }
}

#[test]
fn there_is_nothing_else_there() {
    let (_server, address) = server();
    let other = ask(address, "GET / HTTP/1.1\r\nHost: quoin\r\n\r\n");
    assert!(other.starts_with("HTTP/1.1 404 "), "{other}");
    let posted = ask(
        address,
        "POST /metrics HTTP/1.1\r\nHost: quoin\r\nContent-Length: 0\r\n\r\n",
    );
    assert!(posted.starts_with("HTTP/1.1 405 "), "{posted}");
    assert!(posted.contains("\r\nallow: GET, HEAD\r\n"), "{posted}");
    let head = ask(address, "HEAD /metrics HTTP/1.1\r\nHost: quoin\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(head.ends_with("\r\n\r\n"), "{head}");
}

#[test]
fn who_asks_for_nothing_holds_up_neither_commands_nor_for_long_others_who_ask() {
    let (server, address) = server();
    let idle: Vec<TcpStream> = (0..100)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let started = Instant::now();
    assert_eq!(server.connect().run("RPUSH list a"), ":1\r\n");
    assert!(started.elapsed() < Duration::from_secs(1));
    // Those that have left are passed over.
    drop(idle);
    assert!(text(address).contains("\nquoin_connected_clients "));
}

#[test]
fn the_slowest_are_cut_off() {
    let (_server, address) = server();
    let mut slow = TcpStream::connect(address).unwrap();
    slow.set_read_timeout(Some(PATIENCE)).unwrap();
    slow.write_all(b"GET /metrics HTTP/1.1\r\nHo").unwrap();
    let mut rest = Vec::new();
    // The connection ends, in whatever way.
    let _ = slow.read_to_end(&mut rest);
    assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
}

#[test]
fn an_address_that_is_taken_is_named_at_the_start() {
    let (_server, address) = server();
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--metrics-address", &address.to_string()];
    let Err(log) = Server::start_in(folder.path(), &flags) else {
        panic!("two servers at {address}");
    };
    assert!(
        log.contains(&format!("cannot listen on {address}: ")),
        "{log}"
    );
}

#[test]
fn nothing_is_served_where_nothing_is_asked_for() {
    let server = Server::start();
    assert!(!server.log().contains("metrics"));
}

#[test]
fn a_server_that_is_asked_ends_all_the_same() {
    let (mut server, address) = server();
    let _idle = TcpStream::connect(address).unwrap();
    let started = Instant::now();
    server.signal("TERM");
    assert!(server.wait().success());
    assert!(started.elapsed() < Duration::from_secs(3));
    assert!(TcpStream::connect(address).is_err());
}
