//! A server whose disk is full: pushes are refused before nothing works any more, consumers drain
//! the queue with no byte free, a start needs no room, and nothing that was acknowledged is lost.
//!
//! The disk is a small tmpfs, which takes root to mount; where it cannot be, the tests say so.
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

    /// Gives so many bytes of a file that has filled the disk back.
    fn free(&self, name: &str, bytes: u64) {
        let file = std::fs::File::options()
            .write(true)
            .open(self.path().join(name))
            .unwrap();
        let length = file.metadata().unwrap().len();
        file.set_len(length - bytes).unwrap();
    }

    /// Takes every byte that is free, as another program might, with a file of that name.
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

/// Pushes until that is refused; answers how many elements there are.
fn push_until_full(client: &mut Connection) -> usize {
    let (mut pushed, mut refused) = (0, 0);
    while refused < REFUSALS {
        let payload = format!("{pushed:0>width$}", width = PAYLOAD_BYTES);
        let reply = client.command(&["RPUSH", "queue", &payload]).unwrap();
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
    // The start has given back what the journal had grown by.
    disk.fill("second");
    let mut client = connect(&server);
    drain(&mut client, pushed);
    // What was removed made room, with the disk as full as before.
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
