//! The Sentinel port against a Redis Sentinel: replies compared byte for byte, except for numbers and ids.

use std::io::Write;
use std::net::SocketAddr;

use quoin_resp::wire::reply_reader::show_bytes;

use crate::redis_server::Redis;
use crate::resp::{Connection, Value};
use crate::server::{Server, free_port, wait_until};

/// Where the port differs on purpose. docs/start/compatibility.md lists these commands.
const ABSENT: &[&str] = &["ACL", "COMMAND", "PUBLISH", "SHUTDOWN"];

/// The lines to send, on a new connection for each line and protocol.
const LINES: &[&str] = &[
    "PING",
    "PING hello",
    "PING too many",
    "HELLO 4",
    "HELLO 2 SETNAME me",
    "HELLO 3 AUTH default wrong",
    "HELLO x",
    "AUTH secret",
    "AUTH nobody secret",
    "AUTH a b c",
    "ROLE",
    "ROLE x",
    "INFO sentinel",
    "INFO SENTINEL",
    "INFO nosuch",
    "INFO keyspace replication commandstats memory",
    "CLIENT",
    "CLIENT GETNAME",
    "CLIENT SETNAME me",
    "CLIENT SETNAME a\u{1}b",
    "CLIENT REPLY ON",
    "CLIENT NOSUCH",
    "SUBSCRIBE +switch-master",
    "SUBSCRIBE a b a",
    "PSUBSCRIBE *",
    "UNSUBSCRIBE",
    "UNSUBSCRIBE a",
    "PUNSUBSCRIBE",
    "SUBSCRIBE",
    "SENTINEL",
    "SENTINEL NOSUCH",
    "SENTINEL NOSUCH a b",
    "SENTINEL MASTERS",
    "sentinel masters",
    "SENTINEL MASTERS x",
    "SENTINEL MASTER",
    "SENTINEL MASTER mymaster",
    "SENTINEL MASTER MYMASTER",
    "SENTINEL MASTER nosuch",
    "SENTINEL GET-MASTER-ADDR-BY-NAME",
    "SENTINEL GET-MASTER-ADDR-BY-NAME mymaster",
    "SENTINEL Get-Master-Addr-By-Name mymaster",
    "SENTINEL GET-MASTER-ADDR-BY-NAME nosuch",
    "SENTINEL SENTINELS mymaster",
    "SENTINEL SENTINELS nosuch",
    "SENTINEL REPLICAS mymaster",
    "SENTINEL REPLICAS nosuch",
    "SENTINEL SLAVES mymaster",
    "SENTINEL SLAVES nosuch",
    "SENTINEL CKQUORUM mymaster",
    "SENTINEL CKQUORUM nosuch",
    "SENTINEL CKQUORUM",
    "SENTINEL MYID",
    "SENTINEL MYID x",
    "SENTINEL FAILOVER nosuch",
    "SENTINEL FAILOVER mymaster",
    "SENTINEL PENDING-SCRIPTS",
    "SENTINEL FLUSHCONFIG",
    "SENTINEL RESET nosuch*",
    "SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 1 0 *",
    "SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 x 0 *",
    "SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 1 x *",
    "SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 1 0",
    "GET key",
    "SET key value",
    "LPUSH list a b c",
    "MULTI",
    "SELECT 0",
    "CONFIG GET port",
    "ECHO text",
    "TIME",
    "MONITOR",
    "DEBUG SLEEP 0",
    "PUBSUB CHANNELS",
    "SSUBSCRIBE a",
    "EVAL 1 0",
    "NOSUCH",
    "NOSUCH with some arguments",
];

/// A Sentinel of Quoin, a Sentinel of Redis, and the server that the latter watches.
struct Pair {
    _quoin: Server,
    ours: SocketAddr,
    theirs: Redis,
    _watched: Redis,
    _folder: tempfile::TempDir,
}

impl Pair {
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let started = Redis::start_with_port(folder.path(), &[]).and_then(|watched| {
            // One, because Redis lists several in the order of a hash table.
            let theirs = Redis::start_sentinel(watched.address().unwrap(), "mymaster")?;
            Ok((watched, theirs))
        });
        let (watched, theirs) = match started {
            Ok(started) => started,
            Err(error) if std::env::var_os("QUOIN_TEST_REQUIRE_REDIS").is_none() => {
                // Written past the capture of a passing test's output.
                let _ = writeln!(
                    std::io::stderr(),
                    "nothing is compared with Redis Sentinel: {error}"
                );
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let port = free_port();
        let quoin = Server::start_with(&["--sentinel-port", &port.to_string()]);
        let pair = Self {
            _quoin: quoin,
            ours: SocketAddr::from(([127, 0, 0, 1], port)),
            theirs,
            _watched: watched,
            _folder: folder,
        };
        // Redis knows the id of the master after a while.
        wait_until("Sentinel has asked the master", || {
            let masters = pair.connect(false, "2").command(&["SENTINEL", "MASTERS"]);
            show(&masters.unwrap()).contains("$runid $<id>")
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
        let words: Vec<&str> = line.split(' ').collect();
        [true, false].map(|is_ours| {
            let mut connection = self.connect(is_ours, protocol);
            let reply = connection.command(&words).unwrap();
            let mut shown = show(&reply);
            // Each name that is subscribed to has its own reply.
            let names = match words[0].trim_start_matches(['P', 'U', 'N']) {
                "SUBSCRIBE" => words.len().saturating_sub(2),
                _ => 0,
            };
            for _ in 0..names {
                shown += &format!("\n{}", show(&connection.read().unwrap()));
            }
            let after = connection.command(&["PING"]).unwrap();
            format!("{shown}\n{}", show(&after))
        })
    }
}

/// A reply as text, without what differs between runs: numbers and ids within texts.
pub(crate) fn show(value: &Value) -> String {
    match value {
        Value::Line(kind, text) => format!("{}{}", *kind as char, show_bytes(text)),
        Value::Blob(kind, None) => format!("{}-1", *kind as char),
        Value::Blob(kind, Some(text)) => {
            let text = String::from_utf8_lossy(text);
            format!("{}{}", *kind as char, without_numbers(&text))
        }
        Value::Aggregate(kind, None) => format!("{}-1", *kind as char),
        Value::Aggregate(kind, Some(values)) => {
            let mut shown: Vec<String> = Vec::new();
            for value in values {
                // The number of a client.
                let is_id = shown.last().is_some_and(|name| name == "$id");
                shown.push(match is_id && value.integer().is_some() {
                    true => ":<n>".to_owned(),
                    false => show(value),
                });
            }
            format!("{}[{}]", *kind as char, shown.join(" "))
        }
    }
}

fn without_numbers(text: &str) -> String {
    let words = text.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric());
    let words = words.map(|part| {
        let word = part.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let rest = &part[word.len()..];
        let is_id = word.len() == 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        match (is_id, is_number) {
            (true, _) => format!("<id>{rest}"),
            (_, true) => format!("<n>{rest}"),
            _ => part.to_owned(),
        }
    });
    words.collect()
}

#[test]
fn the_sentinel_port_answers_as_redis_sentinel() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let mut differing = Vec::new();
    for line in LINES {
        for protocol in ["2", "3"] {
            let [ours, theirs] = pair.answers(line, protocol);
            if ours != theirs {
                differing.push(format!(
                    "{line} (RESP{protocol})\nours   {ours}\ntheirs {theirs}"
                ));
            }
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n\n"));
}

#[test]
fn greetings_are_those_of_a_sentinel() {
    let Some(pair) = Pair::start() else {
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
        assert!(ours.contains("sentinel"), "{ours}");
    }
}

#[test]
fn info_has_the_sections_of_a_sentinel() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let lines = |is_ours: bool, sections: &[&str]| -> Vec<String> {
        let reply = pair.connect(is_ours, "2").command(sections).unwrap();
        let Value::Blob(_, Some(text)) = reply else {
            panic!("{reply:?}");
        };
        let text = String::from_utf8(text).unwrap();
        text.split("\r\n").map(str::to_owned).collect()
    };
    for sections in [&["INFO"][..], &["INFO", "all"], &["INFO", "everything"]] {
        let headings = |is_ours: bool| -> Vec<String> {
            let lines = lines(is_ours, sections).into_iter();
            let headings =
                lines.filter_map(|line| line.split_once("# ").map(|(_, one)| one.to_owned()));
            headings.collect()
        };
        assert_eq!(headings(true), headings(false), "{sections:?}");
    }
    for line in ["redis_mode:sentinel", "sentinel_masters:1"] {
        for is_ours in [true, false] {
            let lines = lines(is_ours, &["INFO"]);
            assert!(
                lines.iter().any(|one| one.ends_with(line)),
                "{line} {lines:?}"
            );
        }
    }
}

#[test]
fn what_the_port_lacks_is_unknown_there() {
    let port = free_port().to_string();
    let server = Server::start_with(&["--sentinel-port", &port]);
    let address = SocketAddr::new(server.address().ip(), port.parse().unwrap());
    let document = include_str!("../../docs/start/compatibility.md");
    for name in ABSENT {
        let mut connection = Connection::open(address).unwrap();
        let reply = connection.command(&[*name, "x"]).unwrap();
        let expected = format!("ERR unknown command '{name}', with args beginning with: 'x' ");
        assert_eq!(reply.error_text().as_deref(), Some(expected.as_str()));
        assert!(document.contains(&format!("`{name}`")), "{name}");
    }
}
