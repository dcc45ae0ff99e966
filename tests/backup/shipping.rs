//! `journal-archive-command`, which ships the files of the archive elsewhere.

use std::path::Path;

use crate::folders::{backup, field, fill, restore, rows, stop};
use crate::server::{Server, wait_until};

const SPOOL: &str = "spool";
const ARCHIVE: &str = "archive";

/// A server whose command fails until the file `ready` exists.
fn start(folder: &Path) -> Server {
    let command = format!("test -e ready && install -D %p {ARCHIVE}/%f");
    let flags = [
        "--journal-archive-dir",
        SPOOL,
        "--journal-archive-command",
        &command,
    ];
    Server::start_in(folder, &flags).unwrap()
}

/// Names of the files of the only store in a folder.
fn files(folder: &Path) -> Vec<String> {
    let store = folder.read_dir().unwrap().next().unwrap().unwrap().path();
    let names = store.read_dir().unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".journal")).collect()
}

#[test]
fn files_stay_until_the_command_takes_them_and_then_a_restore_has_everything() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut server = start(folder);
    let mut socket = server.connect();
    let backup = backup(&server);
    fill(&mut socket, "first");
    wait_until("it fails", || {
        field(&mut socket, "journal_archive_command_failures") != "0"
    });
    assert!(field(&mut socket, "journal_archive_command_error").contains("exit status: 1"));
    wait_until("the log says so", || {
        server.log().contains("journal-archive-command failed")
    });
    let refused = socket.run("CONFIG SET journal-archive-command true");
    assert!(refused.contains("can't set immutable config"), "{refused}");
    server.signal("KILL");
    server.wait();
    assert!(!files(&folder.join(SPOOL)).is_empty());
    std::fs::write(folder.join("ready"), "").unwrap();

    let server = start(folder);
    let mut socket = server.connect();
    fill(&mut socket, "second");
    wait_until("it is gone on with", || {
        field(&mut socket, "journal_archive_command_files") != "0"
    });
    assert_eq!(field(&mut socket, "journal_archive_command_error"), "");
    fill(&mut socket, "third");
    // A stop takes the rest.
    stop(server);
    assert_eq!(files(&folder.join(SPOOL)), [""; 0]);
    let archive = ["--journal-archive", ARCHIVE];
    restore(folder, &backup, "restored", &archive);
    assert!(rows(&folder.join("restored")) == rows(&folder.join("data")));
}

#[test]
fn a_command_needs_the_folder_that_keeps_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--journal-archive-command", "true"];
    let log = Server::start_in(folder.path(), &flags).err().unwrap();
    assert!(log.contains("needs journal-archive-dir"), "{log}");
}
