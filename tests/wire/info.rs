//! INFO.

use std::collections::HashMap;

use crate::server::{Server, Socket, is_on_foundationdb, wait_until};

fn info(socket: &mut Socket, sections: &str) -> HashMap<String, String> {
    let text = socket.run(format!("INFO {sections}").trim());
    let fields = text.split("\r\n").filter_map(|line| line.split_once(':'));
    fields
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn headings(socket: &mut Socket, line: &str) -> Vec<String> {
    let text = socket.run(line);
    let headings = text
        .split("\r\n")
        .filter_map(|line| line.strip_prefix("# "));
    headings.map(str::to_owned).collect()
}

#[test]
fn sections_are_those_of_redis_and_one_more() {
    let server = Server::start();
    let mut socket = server.connect();
    let default = headings(&mut socket, "INFO");
    assert_eq!(
        default.join(" "),
        "Server Clients Memory Persistence Stats Replication CPU Modules Errorstats Cluster \
         Keyspace Quoin"
    );
    assert_eq!(headings(&mut socket, "INFO default"), default);
    let all = headings(&mut socket, "INFO everything");
    assert_eq!(
        all.join(" "),
        "Server Clients Memory Persistence Stats Replication CPU Modules Commandstats Errorstats \
         Latencystats Cluster Keyspace Quoin"
    );
    assert_eq!(headings(&mut socket, "INFO all"), all);
    assert_eq!(
        headings(&mut socket, "INFO KeySpace cpu"),
        ["CPU", "Keyspace"]
    );
    assert_eq!(socket.run("INFO nosuch"), "$0\r\n\r\n");
}

#[test]
fn a_server_is_among_those_that_it_sees() {
    let server = Server::start_with(&["--announce-ip", "10.1.2.3", "--announce-hostname", "a.b"]);
    let mut socket = server.connect();
    wait_until("it sees itself", || {
        info(&mut socket, "quoin")["living_servers"] == "1"
    });
    let own = &info(&mut socket, "quoin")["server0"];
    let run_id = &info(&mut socket, "server")["run_id"];
    let port = server.address().port();
    let (start, rest) = own.split_once(',').unwrap();
    assert!(
        start
            .strip_prefix("start=")
            .unwrap()
            .parse::<u64>()
            .unwrap()
            > 0
    );
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        rest,
        format!(
            "ip=10.1.2.3,port={port},tls_port=0,hostname=a.b,version={version},run_id={run_id},own=1"
        )
    );
}

#[test]
fn nothing_is_named_twice() {
    let server = Server::start();
    let mut socket = server.connect();
    // Statistics have lines only once there is something to count.
    socket.run("RPUSH list a");
    socket.run("LPUSH");
    let text = socket.run("INFO everything");
    let mut seen = std::collections::HashSet::new();
    let names = text.split("\r\n").filter_map(|line| line.split_once(':'));
    for (name, _) in names {
        assert!(seen.insert(name), "{name} is there twice");
    }
    assert!(seen.len() > 150, "{}", seen.len());
}

#[test]
fn a_client_library_finds_what_it_looks_for() {
    let store = if is_on_foundationdb() {
        "foundationdb"
    } else {
        "embedded"
    };
    let server = Server::start();
    let mut socket = server.connect();
    let fields = info(&mut socket, "");
    for (name, value) in [
        ("redis_mode", "standalone"),
        ("arch_bits", "64"),
        ("process_id", &server.process_id().to_string()),
        ("connected_clients", "1"),
        ("blocked_clients", "0"),
        ("maxclients", "10000"),
        ("maxmemory", "0"),
        ("maxmemory_policy", "noeviction"),
        ("loading", "0"),
        ("rdb_changes_since_last_save", "0"),
        ("aof_enabled", "1"),
        ("role", "master"),
        ("connected_slaves", "0"),
        ("cluster_enabled", "0"),
        ("store", store),
        ("fsync", "always"),
    ] {
        assert_eq!(fields.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(fields["redis_version"].starts_with("7.2."));
    assert_eq!(fields["quoin_version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(fields["run_id"].len(), 40);
    let used: u64 = fields["used_memory"].parse().unwrap();
    assert!(used > 100_000 && used < 1 << 30, "{used}");
}

#[test]
fn commands_and_errors_are_counted() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("RPUSH list a");
    socket.run("RPUSH list b");
    socket.run("ZADD list 1 a");
    socket.run("LPUSH list");
    socket.run("CLIENT ID");
    socket.run("NOSUCH");
    let fields = info(&mut socket, "commandstats errorstats stats");
    let command = |name: &str| {
        let value = &fields[&format!("cmdstat_{name}")];
        let counts: HashMap<_, _> = value
            .split(',')
            .filter_map(|one| one.split_once('='))
            .collect();
        ["calls", "rejected_calls", "failed_calls"].map(|field| counts[field].to_owned())
    };
    assert_eq!(command("rpush"), ["2", "0", "0"]);
    assert_eq!(command("zadd"), ["1", "0", "1"]);
    assert_eq!(command("lpush"), ["0", "1", "0"]);
    assert_eq!(command("client|id"), ["1", "0", "0"]);
    assert_eq!(fields["errorstat_WRONGTYPE"], "count=1");
    assert_eq!(fields["errorstat_ERR"], "count=2");
    assert_eq!(fields["total_error_replies"], "3");
    assert_eq!(fields["total_commands_processed"], "4");
    assert_eq!(socket.run("CONFIG RESETSTAT"), "+OK\r\n");
    let fields = info(&mut socket, "commandstats errorstats stats");
    assert_eq!(fields["total_error_replies"], "0");
    assert!(!fields.contains_key("cmdstat_rpush") && !fields.contains_key("errorstat_ERR"));
}

#[test]
fn latencies_are_shown_at_the_percentiles_that_are_asked_for() {
    let server = Server::start();
    let mut socket = server.connect();
    let percentiles = |socket: &mut Socket| {
        let value = info(socket, "latencystats").remove("latency_percentiles_usec_set")?;
        let names = value
            .split(',')
            .map(|one| one.split('=').next().unwrap_or_default());
        Some(names.collect::<Vec<_>>().join(" "))
    };
    socket.run("SET k v");
    assert_eq!(percentiles(&mut socket).as_deref(), Some("p50 p99 p99.9"));
    socket.run("CONFIG SET latency-tracking-info-percentiles 0.0");
    assert_eq!(percentiles(&mut socket).as_deref(), Some("p0"));
    socket.run("CONFIG SET latency-tracking no");
    assert_eq!(percentiles(&mut socket), None);
}

#[test]
fn keys_are_counted_by_database() {
    let server = Server::start();
    let mut socket = server.connect();
    assert!(!info(&mut socket, "keyspace").contains_key("db0"));
    socket.run("RPUSH a 1");
    socket.run("RPUSH b 1");
    socket.run("PEXPIRE b 100000");
    socket.run("SELECT 7");
    socket.run("ZADD a 1 a");
    // If a count took long, as on a busy machine, it is shown again for a while.
    let mut fields = HashMap::new();
    wait_until("the keys are counted again", || {
        fields = info(&mut socket, "keyspace");
        fields.contains_key("db7")
    });
    assert_eq!(fields["db0"], "keys=2,expires=1,avg_ttl=0");
    assert_eq!(fields["db7"], "keys=1,expires=0,avg_ttl=0");
    assert!(!fields.contains_key("db1"));
}
