//! How a server distinguishes the end of a process from a power loss: by Linux's boot id, if there
//! is one.

use std::path::Path;

use super::machine::WENT_BACK;
use super::recorded::{self, Start};
use crate::resp::Connection;
use crate::server::Server;

fn start(root: &Path, boot: Option<u64>) -> Server {
    let start = Start {
        boot,
        fsync: "always",
        sync_us_max: 0,
        kill_at: None,
    };
    recorded::start(root, &root.with_extension("log"), &start).unwrap()
}

/// Changes rows enough that LMDB uses other pages for them.
fn churn(server: &Server) {
    let mut connection = Connection::open(server.address()).unwrap();
    for _ in 0..100 {
        let long = "x".repeat(3_000);
        connection.command(&["RPUSH", "list", &long]).unwrap();
        connection.command(&["LPOP", "list"]).unwrap();
    }
    connection.command(&["RPUSH", "list", "kept"]).unwrap();
}

fn length(server: &Server) -> i64 {
    let mut connection = Connection::open(server.address()).unwrap();
    connection
        .command(&["LLEN", "list"])
        .unwrap()
        .integer()
        .unwrap()
}

/// A disk in a folder that is removed when the test ends.
fn disk() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap().join("disk");
    std::fs::create_dir(&root).unwrap();
    (folder, root)
}

#[test]
fn a_server_goes_back_to_its_checkpoint_when_the_boot_id_has_changed() {
    let (_folder, root) = disk();
    for (boot, goes_back) in [(1, false), (1, false), (2, true), (2, false)] {
        let mut server = start(&root, Some(boot));
        assert_eq!(server.log().contains(WENT_BACK), goes_back, "boot {boot}");
        churn(&server);
        recorded::end(&mut server, true).unwrap();
    }
    assert_eq!(length(&start(&root, Some(3))), 4);
}

#[test]
fn a_start_without_a_boot_id_leaves_no_checkpoint_that_a_later_one_goes_back_to() {
    let (_folder, root) = disk();
    for boot in [Some(1), None, None] {
        let mut server = start(&root, boot);
        churn(&server);
        recorded::end(&mut server, true).unwrap();
    }
    assert!(!root.join("data/CHECKPOINT").exists());
    let server = start(&root, Some(2));
    assert!(!server.log().contains(WENT_BACK));
    assert_eq!(length(&server), 3);
}
