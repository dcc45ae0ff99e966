//! COMMAND INFO and the arguments of COMMAND DOCS compared with a Redis server, if there is one.
//! Debian's is 7.0, so the tables here list what 7.2 changed.

use std::io::Write;

use crate::redis_server::Redis;
use crate::resp::{Connection, Value};
use crate::server::Server;

/// Commands that Redis 7.2 and 7.0 describe differently in COMMAND INFO.
const INFO_CHANGED: &[&str] = &[
    // They have tips.
    "acl|deluser",
    "acl|save",
    "acl|setuser",
    // Scripts may call blocking commands, which then do not block.
    "blmove",
    "blpop",
    "brpop",
    "brpoplpush",
    "bzpopmax",
    "bzpopmin",
    "client|setname",
    "cluster|shards",
    "cluster|slots",
    "command|getkeys",
    "command|getkeysandflags",
    "config|resetstat",
    "config|rewrite",
    "latency|reset",
    "msetnx",
    "randomkey",
    "scan",
    "wait",
    "zrank",
    "zrevrank",
];

/// Commands whose grammar differs between Redis 7.2 and 7.0.
const ARGUMENTS_CHANGED: &[&str] = &[
    "bitop",
    "client|kill",
    "client|list",
    "command|getkeys",
    "command|getkeysandflags",
    "config|get",
    "geohash",
    "geopos",
    "georadius",
    "georadiusbymember",
    "migrate",
    "pfmerge",
    "psubscribe",
    "xinfo|stream",
    "zrank",
    "zrevrank",
];

/// Arguments that Redis 7.2 renamed: beginnings of the commands' names, the new name and the old.
const RENAMED: &[(&[&str], &str, &str)] = &[
    (&["acl|cat"], "category", "categoryname"),
    (&["bitcount", "bitpos"], "range", "index"),
    (&["bitcount", "bitpos"], "unit", "index_unit"),
    (&["bitfield"], "get-block", "encoding_offset"),
    (&["bitfield"], "incrby-block", "encoding_offset_increment"),
    (&["bitfield"], "overflow-block", "wrap_sat_fail"),
    (&["bitfield"], "set-block", "encoding_offset_value"),
    (&["bitfield"], "write-operation", "write_operation"),
    (&["bitpos"], "end-unit-block", "end_index"),
    (&["client|reply"], "action", "on_off_skip"),
    (&["client|tracking"], "BCAST", "bcast"),
    (&["client|tracking"], "NOLOOP", "noloop"),
    (&["client|tracking"], "OPTIN", "optin"),
    (&["client|tracking"], "OPTOUT", "optout"),
    (&["client|unblock"], "unblock-type", "timeout_error"),
    (
        &["cluster|addslotsrange", "cluster|delslotsrange"],
        "range",
        "start-slot_end-slot",
    ),
    (&["cluster|meet"], "cluster-bus-port", "cluster_bus_port"),
    (&["cluster|reset"], "reset-type", "hard_soft"),
    (&["cluster|setslot"], "importing", "node-id"),
    (&["cluster|setslot"], "migrating", "node-id"),
    (&["cluster|setslot"], "node", "node-id"),
    (&["config|set"], "data", "parameter_value"),
    (
        &["flush", "function|flush", "script|flush"],
        "flush-type",
        "async",
    ),
    (&["geoadd"], "data", "longitude_latitude_member"),
    (&["georadius", "geosearch"], "count-block", "count"),
    (&["geosearch"], "fromlonlat", "longitude_latitude"),
    (&["hello"], "auth", "username_password"),
    (&["hmset", "hset"], "data", "field_value"),
    (&["latency|histogram"], "COMMAND", "command"),
    (&["lcs"], "min-match-len", "len"),
    (&["mset"], "data", "key_value"),
    (&["shutdown"], "save-selector", "nosave_save"),
    (&["sort"], "by-pattern", "pattern"),
    (&["sort"], "get-pattern", "pattern"),
    (&["sort", "zrange", "zrevrange"], "limit", "offset_count"),
    (&["xadd"], "auto-id", "auto_id"),
    (&["xadd"], "data", "field_value"),
    (&["xadd"], "id-selector", "id_or_auto"),
    (&["xclaim"], "lastid", "id"),
    (&["xgroup"], "consumer", "consumername"),
    (&["xgroup"], "entries-read", "entries_read"),
    (&["xgroup"], "entriesread", "entries_read"),
    (&["xgroup", "xinfo|consumers"], "group", "groupname"),
    (&["xgroup"], "id-selector", "id"),
    (&["xgroup"], "new-id", "new_id"),
    (&["xreadgroup"], "group-block", "group_consumer"),
    (&["xsetid"], "entries-added", "entries_added"),
    (&["xsetid"], "max-deleted-id", "max_deleted_entry_id"),
    (&["zadd"], "data", "score_member"),
];

/// A Redis server and Quoin, and the names of all of Quoin's commands.
struct Pair {
    redis: Connection,
    quoin: Connection,
    is_older: bool,
    names: Vec<String>,
    _servers: (Redis, Server),
}

impl Pair {
    fn start() -> Option<Self> {
        let redis = match Redis::start() {
            Ok(redis) => redis,
            Err(error) if std::env::var_os("QUOIN_TEST_REQUIRE_REDIS").is_none() => {
                // Written past the capture of a passing test's output.
                let _ = writeln!(std::io::stderr(), "COMMAND is not compared: {error}");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let server = Server::start();
        let mut quoin = Connection::open(server.address()).unwrap();
        let list = quoin.command(&["COMMAND", "LIST"]).unwrap();
        let names = list.items().unwrap().iter().map(text);
        Some(Self {
            redis: Connection::open_unix(redis.socket()).unwrap(),
            quoin,
            is_older: redis.version() < (7, 2),
            names: names.collect(),
            _servers: (redis, server),
        })
    }

    /// What Redis and Quoin report about a command. `None` if Redis does not know it.
    fn ask(&mut self, subcommand: &str, name: &str) -> Option<(Value, Value)> {
        let words = ["COMMAND", subcommand, name];
        let theirs = self.redis.command(&words).unwrap();
        let items = theirs.items().unwrap();
        let is_known = items.iter().any(|item| item.items().is_some());
        is_known.then(|| (theirs, self.quoin.command(&words).unwrap()))
    }

    fn speak(&mut self, protocol: &str) {
        self.redis.command(&["HELLO", protocol]).unwrap();
        self.quoin.command(&["HELLO", protocol]).unwrap();
    }
}

fn text(value: &Value) -> String {
    String::from_utf8(value.bytes().unwrap().to_vec()).unwrap()
}

#[test]
fn commands_are_described_as_redis_describes_them() {
    let Some(mut pair) = Pair::start() else {
        return;
    };
    // Quoin need not have all subcommands, which are the last element.
    let elements = |reply: &Value| reply.items().unwrap()[0].items().unwrap()[..9].to_vec();
    let mut compared = 0;
    for protocol in ["2", "3"] {
        pair.speak(protocol);
        for name in pair.names.clone() {
            let is_changed = pair.is_older && INFO_CHANGED.contains(&name.as_str());
            if let Some((theirs, ours)) = pair.ask("INFO", &name) {
                let (ours, theirs) = (elements(&ours), elements(&theirs));
                assert!(
                    (ours == theirs) != is_changed,
                    "{name}: {ours:?} {theirs:?}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 300, "{compared}");
}

/// The arguments of one command in COMMAND DOCS.
fn arguments(docs: &Value) -> Option<Value> {
    let document = docs.items().unwrap()[1].items().unwrap();
    let mut fields = document.chunks_exact(2);
    let found = fields.find(|field| field[0].bytes() == Some(b"arguments"));
    found.map(|field| field[1].clone())
}

/// Arguments in the form of Redis 7.0: without `display_text`, and with other names.
fn as_older(command: &str, arguments: &Value) -> Value {
    let Value::Aggregate(kind, Some(items)) = arguments else {
        return arguments.clone();
    };
    let is_of = |beginnings: &[&str]| beginnings.iter().any(|one| command.starts_with(one));
    let old_name = |name: &Value| {
        let renamed = |(commands, new, _): &&(&[&str], &str, &str)| {
            is_of(commands) && name.bytes() == Some(new.as_bytes())
        };
        match RENAMED.iter().find(renamed) {
            Some((_, _, old)) => Value::Blob(b'$', Some(old.as_bytes().to_vec())),
            None => name.clone(),
        }
    };
    let argument = |argument: &Value| {
        let Value::Aggregate(kind, Some(fields)) = argument else {
            return argument.clone();
        };
        let mut kept = Vec::new();
        for field in fields.chunks_exact(2) {
            let value = match field[0].bytes() {
                Some(b"display_text") => continue,
                Some(b"name") => old_name(&field[1]),
                Some(b"arguments") => as_older(command, &field[1]),
                _ => field[1].clone(),
            };
            kept.extend([field[0].clone(), value]);
        }
        Value::Aggregate(*kind, Some(kept))
    };
    Value::Aggregate(*kind, Some(items.iter().map(argument).collect()))
}

#[test]
fn the_grammar_of_arguments_is_that_of_redis() {
    let Some(mut pair) = Pair::start() else {
        return;
    };
    let mut compared = 0;
    for protocol in ["2", "3"] {
        pair.speak(protocol);
        for name in pair.names.clone() {
            let is_changed = pair.is_older && ARGUMENTS_CHANGED.contains(&name.as_str());
            if let Some((theirs, ours)) = pair.ask("DOCS", &name) {
                let mut ours = arguments(&ours);
                if pair.is_older {
                    ours = ours.map(|ours| as_older(&name, &ours));
                }
                let theirs = arguments(&theirs);
                assert!(
                    (ours == theirs) != is_changed,
                    "{name}: {ours:?} {theirs:?}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 300, "{compared}");
}

#[test]
fn commands_that_redis_does_not_have_tell_their_grammar_too() {
    let server = Server::start();
    let mut socket = server.connect();
    assert_eq!(
        socket.run("COMMAND DOCS pq.move").replace("\r\n", " "),
        "*2 $7 pq.move *10 $7 summary $164 Moves the oldest value of the lowest or highest \
         priority to another priority queue, and returns it with its priority. \
         Deletes the queue if the last value was moved. $5 since $5 0.1.0 $5 group $14 \
         priority-queue $10 complexity $36 O(log N), N being all that is stored $9 arguments *3 \
         *8 $4 name $6 source $4 type $3 key $12 display_text $6 source $14 key_spec_index :0 \
         *8 $4 name $11 destination $4 type $3 key $12 display_text $11 destination $14 \
         key_spec_index :1 \
         *6 $4 name $5 where $4 type $5 oneof $9 arguments *2 \
         *8 $4 name $3 min $4 type $10 pure-token $12 display_text $3 min $5 token $3 MIN \
         *8 $4 name $3 max $4 type $10 pure-token $12 display_text $3 max $5 token $3 MAX "
    );
}
