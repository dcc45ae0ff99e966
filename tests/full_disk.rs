//! A server on a full disk: pushes are refused before everything stops working, consumers drain the
//! queue without a free byte, a start needs no room, and nothing acknowledged is lost.
//!
//! The disk is a small tmpfs, which only root can mount. If it cannot be mounted, the tests say so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

#[path = "support/resp.rs"]
mod resp;
#[path = "support/server.rs"]
mod server;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use resp::{Connection, Value};
use server::{Server, wait_until};

const DISK_MIB: u32 = 48;
const PAYLOAD_BYTES: usize = 20_000;
/// Pushes that are refused before the disk counts as full for them.
const REFUSALS: usize = 30;

/// A small disk.
struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={DISK_MIB}m"), "none"])
            .arg(folder.path())
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            println!("a full disk was not tested: no tmpfs can be mounted here");
            return None;
        }
        Some(Self { folder })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Frees that many bytes of a file that has filled the disk.
    fn free(&self, name: &str, bytes: u64) {
        let file = std::fs::File::options()
            .write(true)
            .open(self.path().join(name))
            .unwrap();
        let length = file.metadata().unwrap().len();
        file.set_len(length - bytes).unwrap();
    }

    /// Takes every free byte with a file of that name, as another program might.
    fn fill(&self, name: &str) {
        let filled = Command::new("dd")
            .args(["if=/dev/zero", "bs=4k"])
            .arg(format!("of={}", self.path().join(name).display()))
            .output()
            .unwrap();
        assert!(!filled.status.success(), "the disk must be full");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.path()).status();
        assert!(unmounted.unwrap().success());
    }
}

fn connect(server: &Server) -> Connection {
    Connection::open(server.address()).unwrap()
}

fn error(value: &Value) -> Option<String> {
    value
        .error()
        .map(|line| String::from_utf8_lossy(line).into_owned())
}

/// Pushes until that is refused. Returns the number of elements.
fn push_until_full(client: &mut Connection) -> usize {
    push_until_full_of(client, "queue")
}

fn push_until_full_of(client: &mut Connection, key: &str) -> usize {
    let (mut pushed, mut refused) = (0, 0);
    while refused < REFUSALS {
        let payload = format!("{pushed:0>width$}", width = PAYLOAD_BYTES);
        let reply = client.command(&["RPUSH", key, &payload]).unwrap();
        match error(&reply) {
            None => pushed += 1,
            Some(line) => {
                assert!(line.starts_with("MISCONF Store has no room"), "{line}");
                refused += 1;
            }
        }
    }
    assert!(pushed > 100);
    pushed
}

/// Pops everything, and compares it with what was pushed.
fn drain(client: &mut Connection, pushed: usize) {
    for number in 0..pushed {
        let reply = client.command(&["LPOP", "queue"]).unwrap();
        let popped = reply
            .bytes()
            .unwrap_or_else(|| panic!("{number}: {reply:?}"));
        let found: usize = std::str::from_utf8(popped).unwrap().parse().unwrap();
        assert_eq!(found, number);
    }
    assert_eq!(
        client.command(&["EXISTS", "queue"]).unwrap().integer(),
        Some(0)
    );
}

#[test]
fn consumers_drain_a_queue_on_a_full_disk_after_a_kill_too() {
    if server::is_on_foundationdb() {
        return;
    }
    let Some(disk) = Disk::mount() else { return };
    let server = Server::start_in(disk.path(), &[]).unwrap();
    let pushed = push_until_full(&mut connect(&server));
    // The log may come after the reply.
    let warnings = || server.log().matches("the disk is full").count();
    let deadline = Instant::now() + Duration::from_secs(10);
    while warnings() == 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(warnings(), 1, "{}", server.log());
    disk.fill("first");
    server.signal("KILL");
    drop(server);
    let server = Server::start_in(disk.path(), &[]).unwrap();
    // The start has released what the journal had grown by.
    disk.fill("second");
    let mut client = connect(&server);
    drain(&mut client, pushed);
    // Removing data made room, with the disk as full as before.
    wait_until("pushes are taken again", || {
        let reply = client.command(&["RPUSH", "queue", "x"]).unwrap();
        error(&reply).is_none()
    });
}

#[test]
fn what_deletes_whole_keys_works_on_a_full_disk() {
    if server::is_on_foundationdb() {
        return;
    }
    let Some(disk) = Disk::mount() else { return };
    let server = Server::start_in(disk.path(), &[]).unwrap();
    let mut client = connect(&server);
    client.command(&["ZADD", "zset", "1", "a"]).unwrap();
    client.command(&["RPUSH", "other", "a"]).unwrap();
    push_until_full(&mut client);
    disk.fill("other");
    for (words, expected) in [
        (&["DEL", "queue"][..], 1),
        (&["ZREM", "zset", "a"], 1),
        (&["PEXPIRE", "other", "1"], 1),
    ] {
        let reply = client.command(words).unwrap();
        assert_eq!(reply.integer(), Some(expected), "{words:?} {reply:?}");
    }
    let reply = client.command(&["FLUSHALL"]).unwrap();
    assert_eq!(error(&reply), None);
}

/// Commands that add data without being refused at the door, each with its own number.
type Writer = fn(usize) -> Vec<String>;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn long(number: usize, bytes: usize) -> String {
    format!("{number:0>bytes$}")
}

const WRITERS: &[(&str, Writer)] = &[
    ("EVAL", |number| {
        let script = "return redis.call('RPUSH', KEYS[1], ARGV[1])";
        let payload = long(number, PAYLOAD_BYTES);
        words(&["EVAL", script, "1", "big", &payload])
    }),
    ("EVAL of many small writes", |number| {
        let script = "for i = 1, 2000 do redis.call('SET', KEYS[1] .. ':' .. i, ARGV[1]) end";
        words(&["EVAL", script, "1", &number.to_string(), &long(0, 30)])
    }),
    ("EVAL that catches errors", |number| {
        let script = "return redis.pcall('XADD', KEYS[1], '*', 'f', ARGV[1])";
        let payload = long(number, PAYLOAD_BYTES);
        words(&["EVAL", script, "1", "log", &payload])
    }),
    ("EVAL of little", |number| {
        let script = "return redis.call('SET', KEYS[1], '')";
        words(&["EVAL", script, "1", &long(number, 300)])
    }),
    ("EVAL of another text each time", |number| {
        let payload = long(number, PAYLOAD_BYTES);
        let script = format!("return redis.call('RPUSH', KEYS[1], '{payload}')");
        words(&["EVAL", &script, "1", "big"])
    }),
    ("FCALL", |number| {
        words(&["FCALL", "push", "1", "big", &long(number, PAYLOAD_BYTES)])
    }),
    ("SCRIPT LOAD", |number| {
        let text = format!("return '{}'", long(number, PAYLOAD_BYTES));
        words(&["SCRIPT", "LOAD", &text])
    }),
    ("SCRIPT LOAD of a short script", |number| {
        words(&["SCRIPT", "LOAD", &format!("return {number}")])
    }),
    ("XREADGROUP", |number| {
        let consumer = long(number, 40_000);
        words(&[
            "XREADGROUP",
            "GROUP",
            "group",
            &consumer,
            "STREAMS",
            "stream",
            ">",
        ])
    }),
    ("XREADGROUP with short names", |number| {
        let consumer = number.to_string();
        words(&[
            "XREADGROUP",
            "GROUP",
            "group",
            &consumer,
            "STREAMS",
            "stream",
            ">",
        ])
    }),
    ("XCLAIM", |number| {
        let consumer = long(number, 40_000);
        words(&["XCLAIM", "stream", "group", &consumer, "0", "1-1"])
    }),
    ("XAUTOCLAIM", |number| {
        let consumer = long(number, 300);
        words(&["XAUTOCLAIM", "stream", "group", &consumer, "0", "0"])
    }),
    ("XGROUP CREATECONSUMER", |number| {
        let consumer = long(number, 40_000);
        words(&["XGROUP", "CREATECONSUMER", "stream", "group", &consumer])
    }),
    ("XGROUP CREATE", |number| {
        words(&["XGROUP", "CREATE", "stream", &long(number, 40_000), "0"])
    }),
    ("RENAME", |number| {
        words(&["RENAME", &long(number, 3_000), &long(number + 1, 3_000)])
    }),
    ("SMOVE", |number| {
        words(&["SMOVE", "set", &long(number, 400), &number.to_string()])
    }),
    ("EXPIRE", |number| {
        words(&["EXPIRE", &format!("key:{}", number % 40_000), "100000"])
    }),
];

/// Keys and members that some of the writers change.
const PREPARATIONS: &[(&str, &str)] = &[
    (
        "EXPIRE",
        "for i = 0, 39999 do redis.call('SET', 'key:' .. i, '') end",
    ),
    (
        "SMOVE",
        "for i = 0, 19999 do redis.call('SADD', 'set', i) end",
    ),
];

/// After this many bytes of commands, a writer has shown that it adds nothing.
const WRITER_BYTES_MAX: usize = (3 * (DISK_MIB as usize)) << 20;
/// The same as a number of commands, if each is short.
const WRITER_COMMANDS_MAX: usize = 20_000;

/// Runs a writer until the disk is full for it.
fn write_until_full(client: &mut Connection, name: &str, writer: Writer) {
    let (mut refused, mut number, mut bytes) = (0, 0, 0);
    while refused < REFUSALS && bytes < WRITER_BYTES_MAX && number < WRITER_COMMANDS_MAX {
        let words = writer(number);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let reply = client.command(&words).unwrap();
        if let Some(line) = error(&reply) {
            assert!(
                line.starts_with("MISCONF Store has no room"),
                "{name}: {line}"
            );
            refused += 1;
        }
        number += 1;
        bytes += words.iter().map(|word| word.len()).sum::<usize>();
    }
}

/// Commands that remove data, on a disk without a free byte.
fn check_removals(client: &mut Connection, name: &str) {
    let pop = "return redis.call('LPOP', KEYS[1])";
    for (words, expected) in [
        (&["LPOP", "queue"][..], "first"),
        (&["EVAL", pop, "1", "queue"], "second"),
        (&["ZPOPMIN", "zset"], "member"),
        (&["SPOP", "one"], "member"),
        (&["XACK", "stream", "group", "1-1"], "1"),
        (&["XDEL", "stream", "1-1"], "1"),
        (&["DEL", "queue"], "1"),
    ] {
        let reply = client.command(words).unwrap();
        let shown = match (reply.bytes(), reply.integer()) {
            (Some(bytes), _) => String::from_utf8_lossy(bytes).into_owned(),
            (_, Some(number)) => number.to_string(),
            _ => format!("{reply:?}"),
        };
        let is_there = shown == expected || (error(&reply).is_none() && words[0] == "ZPOPMIN");
        assert!(is_there, "{name}: {words:?} {reply:?}");
    }
}

#[test]
fn no_writer_wedges_the_store_on_a_full_disk() {
    if server::is_on_foundationdb() {
        return;
    }
    for (name, writer) in WRITERS {
        let Some(disk) = Disk::mount() else { return };
        let server = Server::start_in(disk.path(), &[]).unwrap();
        let mut client = connect(&server);
        let mut run = |words: &[&str]| {
            let reply = client.command(words).unwrap();
            assert!(error(&reply).is_none(), "{name}: {words:?} {reply:?}");
        };
        run(&["RPUSH", "queue", "first", "second", "third"]);
        run(&["ZADD", "zset", "1", "member"]);
        run(&["SADD", "one", "member"]);
        run(&["SET", &long(0, 3_000), "x"]);
        run(&["XGROUP", "CREATE", "stream", "group", "0", "MKSTREAM"]);
        run(&["XADD", "stream", "1-1", "field", "value"]);
        run(&[
            "XREADGROUP",
            "GROUP",
            "group",
            "first",
            "STREAMS",
            "stream",
            ">",
        ]);
        let library = "#!lua name=library\nredis.register_function('push', \
             function(keys, args) return redis.call('RPUSH', keys[1], args[1]) end)";
        run(&["FUNCTION", "LOAD", library]);
        for (_, fill) in PREPARATIONS.iter().filter(|(of, _)| of == name) {
            run(&["EVAL", fill, "0"]);
        }
        push_until_full_of(&mut client, "ballast");
        write_until_full(&mut client, name, *writer);
        disk.fill("first");
        let drained = client.command(&["LPOP", "ballast"]).unwrap();
        assert!(error(&drained).is_none(), "{name}: {drained:?}");
        server.signal("KILL");
        drop(server);
        let server = match Server::start_in(disk.path(), &[]) {
            Ok(server) => server,
            Err(log) => panic!("{name}: {log}"),
        };
        // The start has released what the journal had grown by.
        disk.fill("second");
        let mut client = connect(&server);
        check_removals(&mut client, name);
        let reply = client.command(&["FLUSHALL"]).unwrap();
        assert_eq!(error(&reply), None, "{name}");
        // Removing data makes room, with the disk as full as before.
        wait_until("pushes are taken again", || {
            let reply = client.command(&["RPUSH", "queue", "x"]).unwrap();
            error(&reply).is_none()
        });
    }
}

#[test]
fn a_script_that_is_refused_on_a_full_disk_leaves_nothing() {
    if server::is_on_foundationdb() {
        return;
    }
    let Some(disk) = Disk::mount() else { return };
    let server = Server::start_in(disk.path(), &[]).unwrap();
    let mut client = connect(&server);
    let pushed = push_until_full(&mut client);
    let script = "local popped = redis.call('LPOP', KEYS[1]) \
                  for _ = 1, 9 do redis.call('RPUSH', KEYS[2], popped) end return popped";
    let refused = client
        .command(&["EVAL", script, "2", "queue", "other"])
        .unwrap();
    assert!(
        error(&refused).unwrap().starts_with("MISCONF"),
        "{refused:?}"
    );
    let length = client.command(&["LLEN", "queue"]).unwrap();
    assert_eq!(length.integer(), Some(pushed as i64));
    // Moving an element adds nothing.
    let script = "return redis.call('LMOVE', KEYS[1], KEYS[2], 'LEFT', 'RIGHT')";
    let moved = client
        .command(&["EVAL", script, "2", "queue", "other"])
        .unwrap();
    assert!(error(&moved).is_none(), "{moved:?}");
    // The same goes for an EXEC of such a script.
    client.command(&["MULTI"]).unwrap();
    client.command(&["LPOP", "queue"]).unwrap();
    let script = "return redis.call('RPUSH', KEYS[1], ARGV[1])";
    let payload = "x".repeat(9 * PAYLOAD_BYTES);
    client
        .command(&["EVAL", script, "1", "other", &payload])
        .unwrap();
    let executed = client.command(&["EXEC"]).unwrap();
    assert!(
        error(&executed).unwrap().starts_with("EXECABORT"),
        "{executed:?}"
    );
    let length = client.command(&["LLEN", "queue"]).unwrap();
    assert_eq!(length.integer(), Some(pushed as i64 - 1));
}

#[test]
fn a_transaction_that_adds_is_refused_on_a_full_disk_and_changes_nothing() {
    if server::is_on_foundationdb() {
        return;
    }
    let Some(disk) = Disk::mount() else { return };
    let server = Server::start_in(disk.path(), &[]).unwrap();
    let mut client = connect(&server);
    let pushed = push_until_full(&mut client);
    disk.fill("other");
    client.command(&["MULTI"]).unwrap();
    client.command(&["LPOP", "queue"]).unwrap();
    let queued = client.command(&["RPUSH", "queue", "x"]).unwrap();
    assert!(error(&queued).unwrap().starts_with("MISCONF"));
    let executed = client.command(&["EXEC"]).unwrap();
    assert!(error(&executed).unwrap().starts_with("EXECABORT"));
    let length = client.command(&["LLEN", "queue"]).unwrap();
    assert_eq!(length.integer(), Some(pushed as i64));
}

#[test]
fn an_exec_of_what_was_queued_while_there_was_room_is_refused_on_a_full_disk() {
    if server::is_on_foundationdb() {
        return;
    }
    let Some(disk) = Disk::mount() else { return };
    let server = Server::start_in(disk.path(), &[]).unwrap();
    let (mut client, mut other) = (connect(&server), connect(&server));
    client.command(&["MULTI"]).unwrap();
    client.command(&["RPUSH", "late", "x"]).unwrap();
    push_until_full(&mut other);
    disk.fill("other");
    let executed = client.command(&["EXEC"]).unwrap();
    let line = error(&executed).unwrap();
    assert!(
        line.starts_with("EXECABORT Transaction discarded because of: MISCONF"),
        "{line}"
    );
    let exists = other.command(&["EXISTS", "late"]).unwrap();
    assert_eq!(exists.integer(), Some(0));
}

#[test]
fn a_start_that_finds_too_little_room_for_a_journal_ends_with_words_or_serves() {
    if server::is_on_foundationdb() {
        return;
    }
    let Some(disk) = Disk::mount() else { return };
    let server = Server::start_in(disk.path(), &[]).unwrap();
    connect(&server).command(&["RPUSH", "queue", "x"]).unwrap();
    server.signal("TERM");
    drop(server);
    disk.fill("other");
    for kib in [4, 40, 200, 400, 1_000, 5_000] {
        disk.free("other", kib * 1024);
        match Server::start_in(disk.path(), &[]) {
            Err(log) => assert!(log.contains("room") || log.contains("space"), "{log}"),
            Ok(server) => {
                let mut client = connect(&server);
                let length = client.command(&["LLEN", "queue"]).unwrap();
                assert_eq!(length.integer(), Some(1));
                client.command(&["RPOP", "nothing"]).unwrap();
            }
        }
    }
}
