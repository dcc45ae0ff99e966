//! The cluster port compared with a Redis Cluster of one node: replies are compared byte for byte,
//! except for numbers and ids.

use std::io::Write;
use std::net::SocketAddr;

use crate::redis_server::Redis;
use crate::resp::{Connection, Value};
use crate::sentinel::show;
use crate::server::{Server, free_port, wait_until};

/// The lines to send, on a new connection for each line and protocol. `<id>` is the node's id.
const LINES: &[&str] = &[
    "PING",
    "HELLO 4",
    "ROLE",
    "INFO cluster",
    "READONLY",
    "READONLY x",
    "READWRITE",
    "ASKING",
    "SELECT 0",
    "SELECT 1",
    "SELECT -1",
    "SELECT 99",
    "SELECT x",
    "SELECT 99999999999",
    "SWAPDB 0 1",
    "SWAPDB 0",
    "MOVE key 1",
    "MOVE key",
    "SET key value",
    "GET {key}",
    "COPY key {key}2",
    "COPY key {key}2 DB 0",
    "COPY key {key}2 DB 1",
    "COPY key {key}2 REPLACE DB 1",
    "REPLICAOF NO ONE",
    "REPLICAOF 127.0.0.1 1",
    "SLAVEOF NO ONE",
    "MSET {a}b 1 {a}c 2",
    "DBSIZE",
    "SCAN x",
    "SCAN 0 COUNT 0",
    "KEYS",
    "FLUSHALL",
    "RANDOMKEY",
    "SSUBSCRIBE a",
    "SPUBLISH a b",
    "PUBLISH a b",
    "CLUSTER",
    "CLUSTER NOSUCH",
    "CLUSTER NOSUCH a b",
    "CLUSTER INFO",
    "cluster info",
    "CLUSTER INFO x",
    "CLUSTER SLOTS",
    "CLUSTER SLOTS x",
    "CLUSTER SHARDS",
    "CLUSTER SHARDS x",
    "CLUSTER NODES",
    "CLUSTER NODES x",
    "CLUSTER MYID",
    "CLUSTER MYID x",
    "CLUSTER LINKS",
    "CLUSTER LINKS x",
    "CLUSTER SAVECONFIG",
    "CLUSTER KEYSLOT",
    "CLUSTER KEYSLOT a",
    "CLUSTER KEYSLOT {a}b",
    "CLUSTER KEYSLOT {}a",
    "CLUSTER KEYSLOT {a",
    "CLUSTER KEYSLOT a b",
    "CLUSTER COUNTKEYSINSLOT",
    "CLUSTER COUNTKEYSINSLOT 12539",
    "CLUSTER COUNTKEYSINSLOT 1",
    "CLUSTER COUNTKEYSINSLOT -1",
    "CLUSTER COUNTKEYSINSLOT 16384",
    "CLUSTER COUNTKEYSINSLOT x",
    "CLUSTER GETKEYSINSLOT 12539",
    "CLUSTER GETKEYSINSLOT 12539 0",
    "CLUSTER GETKEYSINSLOT 12539 5",
    "CLUSTER GETKEYSINSLOT 12539 -1",
    "CLUSTER GETKEYSINSLOT 16384 1",
    "CLUSTER GETKEYSINSLOT x 1",
    "CLUSTER GETKEYSINSLOT 1 x",
    "CLUSTER REPLICAS",
    "CLUSTER REPLICAS x",
    "CLUSTER REPLICAS <id>",
    "CLUSTER SLAVES x",
    "CLUSTER SLAVES <id>",
    "CLUSTER COUNT-FAILURE-REPORTS x",
    "CLUSTER COUNT-FAILURE-REPORTS <id>",
    "CLUSTER FAILOVER",
    "CLUSTER FAILOVER FORCE",
    "CLUSTER FAILOVER TAKEOVER",
    "CLUSTER FAILOVER x",
    "CLUSTER FAILOVER FORCE x",
    "CLUSTER MEET a",
    "CLUSTER ADDSLOTS",
    "CLUSTER SETSLOT 1",
    "CLUSTER FORGET",
];

/// Lines that Quoin refuses on purpose, with its own error. docs/start/compatibility.md lists
/// these.
const REFUSED: &[&str] = &[
    "ADDSLOTS 1",
    "ADDSLOTSRANGE 1 2",
    "BUMPEPOCH",
    "DELSLOTS 1",
    "DELSLOTSRANGE 1 2",
    "FLUSHSLOTS",
    "FORGET x",
    "MEET 127.0.0.1 1",
    "REPLICATE x",
    "RESET",
    "SET-CONFIG-EPOCH 1",
    "SETSLOT 1 STABLE",
];

/// The port that both announce. Quoin's replies also have it as the bus port.
const ANNOUNCED_PORT: &str = "7000";
const ANNOUNCED_BUS_PORT: &str = "17000";

/// A node of Quoin and a node of Redis.
struct Pair {
    quoin: Server,
    ours: SocketAddr,
    theirs: Redis,
    _folder: tempfile::TempDir,
}

impl Pair {
    /// With this host name, if any, and this setting of `cluster-preferred-endpoint-type`.
    fn start(hostname: &str, endpoints: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let bus_port = free_port().to_string();
        let started = Redis::start_with_port(
            folder.path(),
            &[
                "--cluster-enabled",
                "yes",
                "--cluster-port",
                &bus_port,
                "--cluster-announce-ip",
                "127.0.0.1",
                "--cluster-announce-hostname",
                hostname,
                "--cluster-preferred-endpoint-type",
                endpoints,
                "--cluster-announce-port",
                ANNOUNCED_PORT,
                "--cluster-announce-bus-port",
                ANNOUNCED_BUS_PORT,
            ],
        );
        let theirs = match started {
            Ok(started) => started,
            Err(error) if std::env::var_os("QUOIN_TEST_REQUIRE_REDIS").is_none() => {
                // Written past the capture of a passing test's output.
                let _ = writeln!(
                    std::io::stderr(),
                    "nothing is compared with Redis Cluster: {error}"
                );
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let port = free_port();
        let quoin = Server::start_with(&[
            "--cluster-port",
            &port.to_string(),
            "--announce-hostname",
            hostname,
            "--cluster-preferred-endpoint-type",
            endpoints,
            "--cluster-announce-port",
            ANNOUNCED_PORT,
        ]);
        let pair = Self {
            quoin,
            ours: SocketAddr::from(([127, 0, 0, 1], port)),
            theirs,
            _folder: folder,
        };
        let mut redis = pair.connect(false, "2");
        let added = redis.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
        assert_eq!(added.unwrap().error(), None);
        wait_until("all slots are served", || {
            show(&redis.command(&["CLUSTER", "INFO"]).unwrap()).contains("cluster_state:ok")
        });
        Some(pair)
    }

    fn connect(&self, is_ours: bool, protocol: &str) -> Connection {
        let mut connection = match is_ours {
            true => Connection::open(self.ours).unwrap(),
            false => Connection::open_unix(self.theirs.socket()).unwrap(),
        };
        let greeted = connection.command(&["HELLO", protocol]).unwrap();
        assert_eq!(greeted.error(), None);
        connection
    }

    /// Both replies to a line, and the replies to a PING after it.
    fn answers(&self, line: &str, protocol: &str) -> [String; 2] {
        [true, false].map(|is_ours| {
            let mut connection = self.connect(is_ours, protocol);
            let id = connection.command(&["CLUSTER", "MYID"]).unwrap();
            let Value::Blob(_, Some(id)) = id else {
                panic!("{id:?}");
            };
            let line = line.replace("<id>", std::str::from_utf8(&id).unwrap());
            let words: Vec<&str> = line.split(' ').collect();
            let reply = connection.command(&words).unwrap();
            let after = connection.command(&["PING"]).unwrap();
            format!("{}\n{}", show(&reply), show(&after))
        })
    }

    fn compare(&self, lines: &[&str]) {
        let mut differing = Vec::new();
        for line in lines {
            for protocol in ["2", "3"] {
                let [ours, theirs] = self.answers(line, protocol);
                if ours != theirs {
                    differing.push(format!(
                        "{line} (RESP{protocol})\nours   {ours}\ntheirs {theirs}"
                    ));
                }
            }
        }
        assert!(differing.is_empty(), "{}", differing.join("\n\n"));
    }
}

#[test]
fn the_cluster_port_answers_as_a_redis_cluster_of_one_node() {
    if let Some(pair) = Pair::start("", "ip") {
        pair.compare(LINES);
    }
}

#[test]
fn addresses_are_told_as_redis_tells_them() {
    for (hostname, endpoints) in [
        ("a.example", "ip"),
        ("a.example", "hostname"),
        ("", "hostname"),
        ("a.example", "unknown-endpoint"),
    ] {
        if let Some(pair) = Pair::start(hostname, endpoints) {
            pair.compare(&["CLUSTER SLOTS", "CLUSTER SHARDS", "CLUSTER NODES"]);
        }
    }
}

#[test]
fn greetings_are_those_of_a_node() {
    let Some(pair) = Pair::start("", "ip") else {
        return;
    };
    for protocol in ["2", "3"] {
        let [ours, theirs] = [true, false].map(|is_ours| {
            let mut connection = pair.connect(is_ours, protocol);
            let greeting = show(&connection.command(&["HELLO"]).unwrap());
            // Of Redis's version, only the form is compared.
            greeting.replace("<n>.<n>.<n>", "<version>")
        });
        assert_eq!(ours, theirs);
        assert!(ours.contains("$cluster"), "{ours}");
    }
    for is_ours in [true, false] {
        let info = pair.connect(is_ours, "2").command(&["INFO", "server"]);
        let info = show(&info.unwrap());
        assert!(info.contains("redis_mode:cluster\r\n"), "{info}");
    }
    let mut plain = pair.quoin.connect();
    assert!(
        plain
            .run("INFO server")
            .contains("redis_mode:standalone\r\n")
    );
    assert!(plain.run("INFO cluster").contains("cluster_enabled:0\r\n"));
    let disabled = "-ERR This instance has cluster support disabled\r\n";
    assert_eq!(plain.run("CLUSTER SLOTS"), disabled);
    assert_eq!(plain.run("READONLY"), disabled);
}

#[test]
fn what_changes_slots_is_refused() {
    let port = free_port();
    let _server = Server::start_with(&["--cluster-port", &port.to_string()]);
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let document = include_str!("../../docs/start/compatibility.md");
    for line in REFUSED {
        let mut words = vec!["CLUSTER"];
        words.extend(line.split(' '));
        let reply = Connection::open(address).unwrap().command(&words).unwrap();
        let name = words[1];
        let expected = format!(
            "ERR CLUSTER {name} is not supported: slots belong to the live servers (see \
             docs/start/compatibility.md)"
        );
        assert_eq!(reply.error_text().as_deref(), Some(expected.as_str()));
        assert!(document.contains(&format!("`{name}`")), "{name}");
    }
}
