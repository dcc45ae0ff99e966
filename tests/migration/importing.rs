//! `quoin import` from a real Redis.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::or_say_so;
use crate::redis_server::Redis;
use crate::resp::{Connection, Value, Words};
use crate::server::Server;
use crate::values::{Held, Values};

const SEED: u64 = 5;

pub struct Pair {
    pub server: Server,
    pub redis: Redis,
    _folder: tempfile::TempDir,
}

impl Pair {
    pub fn start(flags: &[&str]) -> Option<Self> {
        Self::start_both(flags, &[])
    }

    /// With flags for the Redis.
    pub fn start_with_redis(flags: &[&str]) -> Option<Self> {
        Self::start_both(&[], flags)
    }

    /// With a Redis that is a cluster node with these slots.
    pub fn start_with_node(first_slot: u16, last_slot: u16) -> Option<Self> {
        // Its default could be above the highest port.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port().to_string();
        drop(free);
        let flags = ["--cluster-enabled", "yes", "--cluster-port", &port];
        let partial = ["--cluster-require-full-coverage", "no"];
        let pair = Self::start_with_redis(&[&flags[..], &partial].concat())?;
        let mut redis = pair.redis();
        let add = format!("CLUSTER ADDSLOTSRANGE {first_slot} {last_slot}");
        assert_eq!(run(&mut redis, &add).error(), None);
        crate::server::wait_until("the cluster serves", || {
            let info = run(&mut redis, "CLUSTER INFO");
            String::from_utf8_lossy(info.bytes().unwrap()).contains("cluster_state:ok")
        });
        Some(pair)
    }

    fn start_both(flags: &[&str], redis_flags: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let redis = or_say_so(Redis::start_with_port(folder.path(), redis_flags))?;
        Some(Self {
            server: Server::start_with(flags),
            redis,
            _folder: folder,
        })
    }

    pub fn redis(&self) -> Connection {
        Connection::open(self.redis.address().unwrap()).unwrap()
    }

    pub fn quoin(&self) -> Connection {
        Connection::open(self.server.address()).unwrap()
    }

    fn command(&self, flags: &[&str]) -> Command {
        let from = format!("redis://{}", self.redis.address().unwrap());
        let to = format!("redis://{}", self.server.address());
        let mut command = Command::new(env!("CARGO_BIN_EXE_quoin"));
        command
            .args(["import", "--from", &from, "--to", &to])
            .args(flags)
            .stdin(Stdio::null());
        command
    }

    fn import(&self, flags: &[&str]) -> (i32, String) {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(flags).output().unwrap();
        let text = [stdout, stderr].concat();
        (status.code().unwrap(), String::from_utf8(text).unwrap())
    }
}

pub fn run(connection: &mut Connection, line: &str) -> Value {
    let words: Vec<&str> = line.split(' ').collect();
    connection.command(&words).unwrap()
}

/// Names, values and expiries of everything in a database of a server.
pub fn contents(connection: &mut Connection, database: u32) -> Vec<(Vec<u8>, Held, Value)> {
    run(connection, &format!("SELECT {database}"));
    let keys = run(connection, "KEYS *");
    let mut names: Vec<Vec<u8>> = keys
        .items()
        .unwrap()
        .iter()
        .map(|name| name.bytes().unwrap().to_vec())
        .collect();
    names.sort();
    names
        .into_iter()
        .map(|name| {
            let value = Held::get(connection, &name).unwrap();
            let expiry = connection
                .command(&[b"PEXPIRETIME", name.as_slice()])
                .unwrap();
            (name, value, expiry)
        })
        .collect()
}

/// A list that needs several commands. Its elements contain their positions.
pub fn long_list(count: usize) -> Held {
    Held::List(
        (0..count)
            .map(|number| format!("element {number}").into_bytes())
            .collect(),
    )
}

#[test]
fn values_of_all_databases_arrive_with_their_expiry() {
    let Some(pair) = Pair::start(&[]) else { return };
    let (mut redis, mut quoin) = (pair.redis(), pair.quoin());
    let mut values = Values::new(SEED);
    for database in [0, 3] {
        run(&mut redis, &format!("SELECT {database}"));
        for number in 0..60 {
            let key = format!("key\r\n{number}");
            values.next().put(&mut redis, key.as_bytes());
            if number % 3 == 0 {
                let at = (4_000_000_000_000_i64 + number).to_string();
                redis.command(&["PEXPIREAT", &key, &at]).unwrap();
            }
        }
        long_list(25_000).put(&mut redis, b"long");
        Held::List(vec![vec![b'x'; 700_000]; 5]).put(&mut redis, b"heavy");
        let members = (0..3_000).map(|number| (format!("m{number}").into_bytes(), 0.1));
        Held::Set(members.collect()).put(&mut redis, b"wide");
        Held::String(vec![b's'; 3_000_000]).put(&mut redis, b"text");
        Held::String(Vec::new()).put(&mut redis, b"empty");
        run(&mut redis, "PEXPIREAT long 4000000000000");
    }
    run(&mut redis, "XADD stream * a b");
    run(&mut redis, "XGROUP CREATE stream g 0");
    run(&mut redis, "XREADGROUP GROUP g c STREAMS stream >");
    run(&mut redis, "XADD stream2 * a b");
    let expected = [contents(&mut redis, 0), contents(&mut redis, 3)];
    // Existing keys are replaced.
    run(&mut quoin, "SELECT 3");
    run(&mut quoin, "ZADD long 1 old");
    run(&mut quoin, "RPUSH heavy old");
    run(&mut quoin, "EXPIRE heavy 1000");

    let before = contents(&mut quoin, 3);
    let (code, text) = pair.import(&["--databases", "3", "--dry-run"]);
    assert_eq!(code, 1, "{text}");
    for line in [
        "\"heavy\": exists already; --replace replaces it\n",
        "nothing was written: 65 keys would be copied\n2 EXISTED ALREADY",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    let (code, text) = pair.import(&["--databases", "3", "--match", "he*"]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("1 EXISTED ALREADY and were not replaced"),
        "{text}"
    );
    assert_eq!(contents(&mut quoin, 3), before);

    let (code, text) = pair.import(&["--databases", "all", "--replace"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(contents(&mut quoin, 0), expected[0]);
    assert_eq!(contents(&mut quoin, 3), expected[1]);
    for line in [
        "132 keys copied, with ",
        "132 keys compared: all have the same number of elements on both sides\n",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }

    let (code, text) = pair.import(&["--databases", "all", "--resume"]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("0 keys copied, with 0 elements\n132 existed already\n"),
        "{text}"
    );
}

/// Makes a stream of some 15 MB, more than a transaction of FoundationDB can hold, with deleted
/// entries, and groups that have pending ones.
pub fn large_stream(connection: &mut Connection, key: &str) {
    let value = "v".repeat(50_000);
    for number in 1..=300 {
        let id = format!("{number}-{}", number % 3 + 1);
        let reply = connection.command(&["XADD", key, &id, "n", &id, "value", &value]);
        assert_eq!(reply.unwrap().error(), None);
    }
    for line in [
        "XGROUP CREATE {} first 0",
        "XGROUP CREATE {} second 250-2 ENTRIESREAD 250",
        "XREADGROUP GROUP first one COUNT 5 STREAMS {} >",
        "XREADGROUP GROUP first two COUNT 5 STREAMS {} >",
        "XCLAIM {} first two 0 3-1 RETRYCOUNT 7",
        "XACK {} first 1-2",
        "XGROUP CREATECONSUMER {} second idler",
        // One of these is pending.
        "XDEL {} 2-3 300-1",
    ] {
        assert_eq!(run(connection, &line.replace("{}", key)).error(), None);
    }
}

/// What a stream and its groups store in addition to entries, without times that pass.
pub fn knowledge(connection: &mut Connection, key: &str) -> Vec<Value> {
    let mut told = Vec::new();
    let facts = run(connection, &format!("XINFO STREAM {key}"));
    let facts = facts.items().unwrap();
    for name in [
        "last-generated-id",
        "max-deleted-entry-id",
        "entries-added",
        "groups",
    ] {
        let at = facts
            .iter()
            .position(|fact| fact.bytes() == Some(name.as_bytes()));
        told.push(facts[at.unwrap() + 1].clone());
    }
    for group in ["first", "second"] {
        let rows = run(connection, &format!("XPENDING {key} {group} - + 100"));
        for row in rows.items().unwrap() {
            let [id, consumer, _, deliveries] = row.items().unwrap() else {
                panic!("{row:?}")
            };
            told.extend([id, consumer, deliveries].map(Value::clone));
        }
        let consumers = run(connection, &format!("XINFO CONSUMERS {key} {group}"));
        for consumer in consumers.items().unwrap() {
            told.extend(consumer.items().unwrap()[..4].to_vec());
        }
    }
    told
}

#[test]
fn a_stream_that_no_transaction_holds_arrives_in_parts_with_its_groups() {
    let Some(pair) = Pair::start(&[]) else { return };
    let (mut redis, mut quoin) = (pair.redis(), pair.quoin());
    large_stream(&mut redis, "stream");
    run(&mut redis, "PEXPIREAT stream 4000000000000");
    let expected = (contents(&mut redis, 0), knowledge(&mut redis, "stream"));
    let (code, text) = pair.import(&[]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("1 key copied, with 298 elements\n"), "{text}");
    let arrived = (contents(&mut quoin, 0), knowledge(&mut quoin, "stream"));
    assert_eq!(arrived, expected);
    // The groups continue where they were.
    for connection in [&mut redis, &mut quoin] {
        let read = run(
            connection,
            "XREADGROUP GROUP first one COUNT 1 STREAMS stream >",
        );
        assert!(format!("{read:?}").contains("\"11-3\""), "{read:?}");
    }
    // Existing keys stay, and are replaced only if requested.
    let (code, text) = pair.import(&[]);
    assert_eq!(code, 1, "{text}");
    let (code, text) = pair.import(&["--replace"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(contents(&mut quoin, 0), contents(&mut redis, 0));
}

#[test]
fn an_import_that_was_killed_ends_the_same_when_it_is_run_again() {
    let Some(pair) = Pair::start(&[]) else { return };
    let (mut redis, mut quoin) = (pair.redis(), pair.quoin());
    for number in 0..8 {
        long_list(20_000 + number).put(&mut redis, format!("list{number}").as_bytes());
    }
    let expected = contents(&mut redis, 0);
    let is_there = |quoin: &mut Connection| {
        let keys = run(quoin, "KEYS list*");
        keys.items().unwrap().len()
    };
    let mut amid = 0;
    for round in 0..6_u64 {
        let mut child = pair
            .command(&["--resume"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Killed once it has copied another key, and a little later each time.
        let before = is_there(&mut quoin);
        crate::server::wait_until("a key arrives", || {
            is_there(&mut quoin) > before || child.try_wait().unwrap().is_some()
        });
        std::thread::sleep(Duration::from_millis(round * 3));
        let _ = child.kill();
        child.wait().unwrap();
        let now = is_there(&mut quoin);
        if now < expected.len() {
            amid += 1;
        }
        // Everything that exists is complete.
        for (name, value, _) in &expected {
            let found = Held::get(&mut quoin, name);
            assert!(found.is_none() || found.as_ref() == Some(value), "{name:?}");
        }
    }
    assert!(amid > 0, "no import was killed amid its work");
    let (code, text) = pair.import(&["--resume"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains(" existed already\n"), "{text}");
    // What the killed ones have left disappears by itself.
    for name in run(&mut quoin, "KEYS quoin-import-*").items().unwrap() {
        let left = quoin.command(&[b"PTTL", name.bytes().unwrap()]).unwrap();
        assert!(left.integer().unwrap() > 0, "{name:?} stays");
        quoin.command(&[b"DEL", name.bytes().unwrap()]).unwrap();
    }
    assert_eq!(contents(&mut quoin, 0), expected);
    // Without resuming, it copies everything again, with the same result.
    assert_eq!(pair.import(&["--replace"]).0, 0);
    assert_eq!(contents(&mut quoin, 0), expected);
}

#[test]
fn a_source_that_changes_meanwhile_is_told_and_fails() {
    let Some(pair) = Pair::start(&[]) else { return };
    let mut redis = pair.redis();
    // Large values come after the small ones, and this one takes a while.
    long_list(200_000).put(&mut redis, b"quiet");
    run(&mut redis, "RPUSH busy a");
    let (code, text) = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut quoin = pair.quoin();
            crate::server::wait_until("the small key arrives", || {
                run(&mut quoin, "LLEN busy").integer() == Some(1)
            });
            run(&mut redis, "RPUSH busy b");
        });
        pair.import(&[])
    });
    assert_eq!(code, 1, "{text}");
    let line = "\"busy\": 2 elements at the source, 1 at the target\n";
    assert!(text.contains(line), "{text}");
    assert!(
        text.contains("2 keys compared: 1 DIFFER in their number of elements"),
        "{text}"
    );
    assert_eq!(
        Held::get(&mut pair.quoin(), b"quiet"),
        Some(long_list(200_000))
    );
}

#[test]
fn one_database_and_a_pattern_can_be_chosen() {
    let Some(pair) = Pair::start(&[]) else { return };
    let mut redis = pair.redis();
    for line in [
        "SELECT 2",
        "RPUSH queue:a 1 2",
        "RPUSH queue:b 3",
        "RPUSH other 4",
    ] {
        run(&mut redis, line);
    }
    let from = format!("redis://{}/2", pair.redis.address().unwrap());
    let to = format!("redis://{}/7", pair.server.address());
    let output = Command::new(env!("CARGO_BIN_EXE_quoin"))
        .args(["import", "--from", &from, "--to", &to, "--match", "queue:*"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let names: Vec<Vec<u8>> = contents(&mut pair.quoin(), 7)
        .into_iter()
        .map(|(name, _, _)| name)
        .collect();
    assert_eq!(names, [b"queue:a".to_vec(), b"queue:b".to_vec()]);
    assert_eq!(contents(&mut pair.quoin(), 2), []);
}

#[test]
fn a_password_can_come_from_a_variable_and_is_needed() {
    let Some(pair) = Pair::start(&["--requirepass", "se:cr@t"]) else {
        return;
    };
    run(&mut pair.redis(), "RPUSH list a");
    let (code, text) = pair.import(&[]);
    assert_eq!(code, 1);
    assert!(text.contains("NOAUTH"), "{text}");
    let output = pair
        .command(&[])
        .env("QUOIN_IMPORT_TO_PASSWORD", "se:cr@t")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn what_cannot_be_done_is_said_with_the_exit_code() {
    let server = Server::start();
    let import = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_quoin"))
            .arg("import")
            .args(arguments)
            .output()
            .unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let address = format!("redis://{}", server.address());
    let (code, text) = import(&["--from", &address, "--to", &address]);
    assert_eq!(
        (code, text.as_str()),
        (1, "quoin: --from and --to are the same server\n")
    );
    let (code, text) = import(&["--from", "redis://127.0.0.1:1", "--to", &address]);
    assert!(
        code == 1 && text.contains("cannot connect to redis://127.0.0.1:1"),
        "{text}"
    );
    assert_eq!(import(&[]).0, 2);
    assert_eq!(import(&["--from", "http://x"]).0, 2);
    assert_eq!(import(&["--help"]).0, 0);
}

#[test]
fn a_target_that_is_no_quoin_is_refused() {
    let Some(pair) = Pair::start(&[]) else { return };
    run(&mut pair.quoin(), "RPUSH list a");
    let import = |flags: &[&str]| {
        let from = format!("redis://{}", pair.server.address());
        let output = Command::new(env!("CARGO_BIN_EXE_quoin"))
            .args(["import", "--from", &from])
            .args([
                "--to",
                &format!("redis://{}", pair.redis.address().unwrap()),
            ])
            .args(flags)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), text)
    };
    let (code, text) = import(&[]);
    assert_eq!(code, 1);
    assert!(text.contains("is not a Quoin; --any-target"), "{text}");
    assert_eq!(import(&["--any-target"]).0, 0);
    let ours = contents(&mut pair.quoin(), 0);
    assert_eq!(contents(&mut pair.redis(), 0), ours);
}

#[test]
fn of_a_cluster_one_masters_keys_are_copied_and_that_is_said() {
    // The slots of "b" and "c", and those of "a" and "foo".
    for (slots, names) in [((0, 8_000), ["b", "c"]), ((8_001, 16_383), ["a", "foo"])] {
        let Some(pair) = Pair::start_with_node(slots.0, slots.1) else {
            return;
        };
        let mut redis = pair.redis();
        long_list(300).put(&mut redis, names[0].as_bytes());
        run(&mut redis, &format!("RPUSH {} small", names[1]));
        run(&mut redis, &format!("PEXPIREAT {} 4000000000000", names[0]));
        let (code, text) = pair.import(&["--databases", "all"]);
        assert_eq!(code, 0, "{text}");
        assert_eq!(contents(&mut pair.quoin(), 0), contents(&mut redis, 0));
        assert_eq!(contents(&mut redis, 0).len(), 2);
        for line in [
            "the source is one master of a Redis Cluster; only its own keys are copied\n",
            "ONLY THIS MASTER'S KEYS were copied. It belongs to a Redis Cluster: run the import \
             once for each master\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}

#[test]
fn a_replica_of_a_cluster_is_refused() {
    let Some(master) = Pair::start_with_node(0, 16_383) else {
        return;
    };
    let Some(replica) = Pair::start_with_node(0, 0) else {
        return;
    };
    let (mut redis, mut other) = (master.redis(), replica.redis());
    let id = run(&mut redis, "CLUSTER MYID");
    let id = String::from_utf8(id.bytes().unwrap().to_vec()).unwrap();
    assert_eq!(run(&mut other, "CLUSTER FLUSHSLOTS").error(), None);
    let port = |pair: &Pair, name: &str| {
        let reply = run(&mut pair.redis(), &format!("CONFIG GET {name}"));
        String::from_utf8(reply.items().unwrap()[1].bytes().unwrap().to_vec()).unwrap()
    };
    let meet = format!(
        "CLUSTER MEET 127.0.0.1 {} {}",
        port(&master, "port"),
        port(&master, "cluster-port")
    );
    assert_eq!(run(&mut other, &meet).error(), None);
    crate::server::wait_until("they know each other", || {
        let reply = run(&mut other, &format!("CLUSTER REPLICATE {id}"));
        reply.error().is_none()
    });
    let (code, text) = replica.import(&[]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("is a replica of a Redis Cluster; import from its master"),
        "{text}"
    );
}

/// A client that sends only commands that Redis 6 understands. There is no such Redis here, so the
/// missing command is renamed.
#[test]
fn expiry_is_kept_from_a_redis_without_pexpiretime() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--rename-command", "PEXPIRETIME", ""];
    let Some(redis) = or_say_so(Redis::start_with_port(folder.path(), &flags)) else {
        return;
    };
    let server = Server::start();
    let mut source = Connection::open(redis.address().unwrap()).unwrap();
    let commands: Vec<Words> = [
        "RPUSH list a",
        "PEXPIREAT list 4000000000000",
        "RPUSH stays a",
    ]
    .iter()
    .map(|line| {
        line.split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect()
    })
    .collect();
    source.pipeline(&commands).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_quoin"))
        .args([
            "import",
            "--from",
            &format!("redis://{}", redis.address().unwrap()),
        ])
        .args(["--to", &format!("redis://{}", server.address())])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut quoin = Connection::open(server.address()).unwrap();
    let at = run(&mut quoin, "PEXPIRETIME list").integer().unwrap();
    assert!((at - 4_000_000_000_000).abs() < 1_000, "{at}");
    assert_eq!(run(&mut quoin, "PTTL stays").integer(), Some(-1));
}

const LIBRARY: &str = "#!lua name=l\nredis.register_function('f', function() return 'from f' end)";

#[test]
fn functions_of_a_server_are_copied() {
    let Some(pair) = Pair::start(&[]) else { return };
    let (mut redis, mut quoin) = (pair.redis(), pair.quoin());
    redis.command(&["FUNCTION", "LOAD", LIBRARY]).unwrap();
    run(&mut redis, "SET a 1");
    let (code, text) = pair.import(&["--dry-run"]);
    assert!(
        code == 0 && text.contains("1 library of functions"),
        "{text}"
    );
    assert!(run(&mut quoin, "FCALL f 0").error().is_some());
    let (code, text) = pair.import(&[]);
    assert!(
        code == 0 && text.contains("1 library of functions loaded"),
        "{text}"
    );
    let called = run(&mut quoin, "FCALL f 0");
    assert_eq!(called.bytes(), Some(&b"from f"[..]));
    let (code, text) = pair.import(&["--resume"]);
    assert!(
        code == 0 && text.contains("libraries of functions existed already"),
        "{text}"
    );
    // Another library with that name stays.
    let other = LIBRARY.replace("from f", "other");
    redis
        .command(&["FUNCTION", "LOAD", "REPLACE", &other])
        .unwrap();
    let (code, text) = pair.import(&["--resume"]);
    assert!(
        code == 1 && text.contains("library of functions 'l': not copied"),
        "{text}"
    );
    let (code, text) = pair.import(&["--replace"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(run(&mut quoin, "FCALL f 0").bytes(), Some(&b"other"[..]));
}

#[test]
fn what_is_left_behind_is_named_and_makes_the_import_fail() {
    let Some(pair) = Pair::start_with_redis(&["--databases", "32"]) else {
        return;
    };
    let (mut redis, mut quoin) = (pair.redis(), pair.quoin());
    for line in [
        "SET a 1",
        "SELECT 20",
        "SET beyond 1",
        "SELECT 15",
        "SET last 1",
    ] {
        run(&mut redis, line);
    }
    let (code, text) = pair.import(&["--databases", "all"]);
    assert_eq!(code, 1, "{text}");
    let line = "1 skipped: of database 20, which is beyond the target's setting databases\n\
                skipped: \"beyond\"\n";
    assert!(
        text.contains(line) && text.contains("2 keys copied"),
        "{text}"
    );
    run(&mut quoin, "SELECT 15");
    assert_eq!(run(&mut quoin, "GET last").bytes(), Some(&b"1"[..]));
    let (code, text) = pair.import(&["--databases", "all", "--resume", "--skip"]);
    assert!(
        code == 0 && text.contains("1 skipped: of database 20"),
        "{text}"
    );
    let (code, text) = pair.import(&["--databases", "40"]);
    assert!(
        code == 1 && text.contains("there is no database 40"),
        "{text}"
    );
}

#[test]
fn a_target_with_as_many_databases_takes_all() {
    let folder = tempfile::tempdir().unwrap();
    let Some(redis) = or_say_so(Redis::start_with_port(
        folder.path(),
        &["--databases", "32"],
    )) else {
        return;
    };
    let pair = Pair {
        server: Server::start_with(&["--databases", "32"]),
        redis,
        _folder: folder,
    };
    let (mut redis, mut quoin) = (pair.redis(), pair.quoin());
    for line in ["SELECT 31", "SET beyond 1"] {
        run(&mut redis, line);
    }
    let (code, text) = pair.import(&["--databases", "all"]);
    assert_eq!(code, 0, "{text}");
    run(&mut quoin, "SELECT 31");
    assert_eq!(run(&mut quoin, "GET beyond").bytes(), Some(&b"1"[..]));
    assert!(run(&mut quoin, "SELECT 32").error().is_some());
    assert_eq!(
        run(&mut quoin, "CONFIG GET databases").items().unwrap()[1].bytes(),
        Some(&b"32"[..])
    );
    run(&mut quoin, "SELECT 0");
    assert_eq!(run(&mut quoin, "FLUSHALL").error(), None);
    run(&mut quoin, "SELECT 31");
    assert_eq!(run(&mut quoin, "DBSIZE").integer(), Some(0));
}

#[test]
fn a_stream_whose_payload_is_not_to_be_had_is_copied_by_commands() {
    let Some(pair) = Pair::start(&[]) else { return };
    let (mut redis, mut quoin) = (pair.redis(), pair.quoin());
    large_stream(&mut redis, "stream");
    for line in [
        "XADD small 1-1 a b",
        "PEXPIREAT small 4000000000000",
        "XGROUP CREATE no-entries first $ MKSTREAM",
        "XGROUP CREATE no-entries second $",
        // Imitates a source with a later payload version.
        "ACL SETUSER reader on >p ~* &* +@all -dump",
    ] {
        assert_eq!(run(&mut redis, line).error(), None, "{line}");
    }
    let expected = (contents(&mut redis, 0), knowledge(&mut redis, "stream"));
    let from = format!("redis://reader:p@{}", pair.redis.address().unwrap());
    let to = format!("redis://{}", pair.server.address());
    let output = Command::new(env!("CARGO_BIN_EXE_quoin"))
        .args(["import", "--from", &from, "--to", &to])
        .output()
        .unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{text}");
    let arrived = (contents(&mut quoin, 0), knowledge(&mut quoin, "stream"));
    assert_eq!(arrived, expected);
    let consumers = |connection: &mut Connection| {
        let groups = run(connection, "XINFO STREAM stream FULL COUNT 1");
        format!("{:?}", groups.items().unwrap().last().unwrap())
    };
    // The same consumers with the same entries. When they were seen is relative to the time of the
    // request.
    let names = |text: String| text.matches("pel-count").count();
    assert_eq!(names(consumers(&mut quoin)), names(consumers(&mut redis)));
}
