//! A disk that has room for what commands write, but not for what the journal reserves in advance.

use super::recorded::{self, Start};
use crate::resp::Connection;
use crate::server::Server;

/// Together more than the journal takes at a time.
const PUSHES: i64 = 100;
const PAYLOAD_BYTES: usize = 60_000;

fn integer(server: &Server, words: &[&str]) -> Option<i64> {
    let mut connection = Connection::open(server.address()).unwrap();
    connection.command(words).unwrap().integer()
}

#[test]
fn a_server_starts_and_writes_on_a_disk_with_little_room() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let root = folder.join("disk");
    std::fs::create_dir(&root).unwrap();
    let start = |log: &str| {
        let start = Start {
            boot: Some(1),
            fsync: "always",
            sync_us_max: 0,
            kill_at: None,
        };
        recorded::start(&root, &folder.join(log), &start).unwrap()
    };
    let mut server = start("first.log");
    assert_eq!(integer(&server, &["RPUSH", "old", "x"]), Some(1));
    recorded::end(&mut server, false).unwrap();

    std::fs::write(recorded::full_file(&root), "steps").unwrap();
    let mut server = start("second.log");
    let payload = "x".repeat(PAYLOAD_BYTES);
    for length in 1..=PUSHES {
        let pushed = integer(&server, &["RPUSH", "new", &payload]);
        assert_eq!(pushed, Some(length));
    }
    assert_eq!(integer(&server, &["DEL", "old"]), Some(1));
    recorded::end(&mut server, true).unwrap();

    let server = start("third.log");
    assert_eq!(integer(&server, &["LLEN", "new"]), Some(PUSHES));
    assert_eq!(integer(&server, &["EXISTS", "old"]), Some(0));
}
