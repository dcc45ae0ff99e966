//! The fields of INFO and MEMORY STATS, which are Redis's, in its order.

use crate::redis_server::Redis;
use crate::resp::{Connection, Value};
use crate::server::Server;

/// Fields that Redis has since 7.2, each with the previous one.
const SINCE_72: &[(&str, &[&str])] = &[
    ("io_threads_active", &["listener0"]),
    (
        "clients_in_timeout_table",
        &["total_blocking_keys", "total_blocking_keys_on_nokey"],
    ),
    (
        "reply_buffer_expands",
        &[
            "eventloop_cycles",
            "eventloop_duration_sum",
            "eventloop_duration_cmd_sum",
            "instantaneous_eventloop_cycles_per_sec",
            "instantaneous_eventloop_duration_usec",
            "acl_access_denied_auth",
            "acl_access_denied_cmd",
            "acl_access_denied_key",
            "acl_access_denied_channel",
        ],
    ),
];

/// Both servers, with connections that speak one version of the protocol. Redis keeps an
/// append-only file, because INFO has fields for it.
struct Both {
    ours: Connection,
    theirs: Connection,
    redis: Redis,
    _quoin: Server,
    _folder: tempfile::TempDir,
}

impl Both {
    fn start(protocol: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let redis = Redis::start_durable(folder.path()).unwrap();
        let quoin = Server::start();
        let mut both = Self {
            ours: Connection::open(quoin.address()).unwrap(),
            theirs: Connection::open(redis.address().unwrap()).unwrap(),
            redis,
            _quoin: quoin,
            _folder: folder,
        };
        both.ask(&format!("HELLO {protocol}"));
        both
    }

    /// Both replies.
    fn ask(&mut self, line: &str) -> [Value; 2] {
        let words: Vec<&str> = line.split(' ').collect();
        [&mut self.ours, &mut self.theirs].map(|connection| connection.command(&words).unwrap())
    }

    /// The text of INFO.
    fn info(&mut self, sections: &str) -> [String; 2] {
        let replies = self.ask(&format!("INFO {sections}"));
        replies.map(|reply| String::from_utf8(reply.bytes().unwrap().to_vec()).unwrap())
    }
}

/// The titles of sections and the names of fields, without those that depend on earlier commands.
fn fields(info: &str) -> Vec<&str> {
    let names = info.lines().filter_map(|line| match line.split_once(':') {
        Some((name, _)) => Some(name),
        None => line.starts_with('#').then_some(line),
    });
    let is_fixed = |name: &&str| {
        let varying = ["cmdstat_", "errorstat_", "latency_percentiles_usec_"];
        !varying.iter().any(|prefix| name.starts_with(prefix))
    };
    names.filter(is_fixed).collect()
}

#[test]
fn info_has_the_fields_of_redis_in_its_order() {
    let mut both = Both::start("2");
    both.ask("SET a 1 EX 1000");
    both.ask("SELECT 3");
    both.ask("SET b 1");
    for sections in ["everything", "default", "all", "server memory"] {
        let [ours, theirs] = both.info(sections);
        let mut expected = fields(&theirs);
        if both.redis.version() < (7, 2) {
            for (before, added) in SINCE_72 {
                if let Some(at) = expected.iter().position(|name| name == before) {
                    expected.splice(at + 1..at + 1, added.iter().copied());
                }
            }
        }
        let mut shared = fields(&ours);
        shared.retain(|name| expected.contains(name));
        assert!(expected.len() > 40, "{theirs}");
        assert_eq!(shared, expected, "INFO {sections}");
    }
}

#[test]
fn sections_have_the_names_of_redis() {
    let mut both = Both::start("2");
    for section in ["modules", "MODULE_LIST", "cluster", "replication", "nosuch"] {
        let [ours, theirs] = both.info(section);
        assert_eq!(fields(&ours), fields(&theirs), "INFO {section}");
    }
}

/// The names in a reply, and the kinds of their values.
fn shape(value: &Value) -> String {
    match value {
        Value::Aggregate(kind, Some(items)) => {
            let items: Vec<String> = items.iter().map(shape).collect();
            format!("{}[{}]", char::from(*kind), items.join(" "))
        }
        Value::Line(kind, _) => char::from(*kind).to_string(),
        value => match value.bytes().map(String::from_utf8_lossy) {
            // Numbers that are texts in RESP2.
            Some(text) if text.parse::<f64>().is_ok() => "number".to_owned(),
            Some(text) => text.into_owned(),
            None => format!("{value:?}"),
        },
    }
}

#[test]
fn memory_stats_has_the_fields_of_redis_in_its_order() {
    for protocol in ["2", "3"] {
        let mut both = Both::start(protocol);
        for line in ["SET a 1", "SELECT 5", "SET b 1 EX 1000"] {
            both.ask(line);
        }
        let [ours, theirs] = both.ask("MEMORY STATS");
        assert!(shape(&theirs).contains("fragmentation.bytes"));
        assert_eq!(shape(&ours), shape(&theirs));
    }
}

#[test]
fn cached_scripts_are_counted_at_once() {
    let mut both = Both::start("2");
    for line in [
        "EVAL return'a' 0",
        "EVAL return'a' 0",
        "EVAL_RO return'b' 0",
        "SCRIPT LOAD return'c'",
        "SCRIPT LOAD return'a'",
        "EVAL error() 0",
        "SCRIPT FLUSH",
        "EVALSHA aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 0",
        "EVAL return'a' 0",
    ] {
        both.ask(line);
        let counts = both.info("memory").map(|info| {
            let mut lines = info.lines();
            let line = lines.find(|line| line.starts_with("number_of_cached_scripts"));
            line.map(str::to_owned)
        });
        assert!(counts[1].is_some());
        assert_eq!(counts[0], counts[1], "{line}");
    }
}
