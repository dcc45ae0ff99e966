//! Tools that are killed after each of their operations on files: what they leave is never mistaken
//! for something complete.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::recorded::recorder;
use crate::resp::Connection;
use crate::server::Server;

const ELEMENTS: i64 = 30;

/// Runs the program in a folder. It dies after `kill_after` operations in that folder.
fn quoin(root: &Path, words: &[&str], kill_after: Option<u64>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quoin"));
    command.args(words).env("NO_COLOR", "1").current_dir(root);
    if let Some(after) = kill_after {
        command
            .env("LD_PRELOAD", recorder())
            .env("QUOIN_TEST_DISK_FOLDER", root)
            .env("QUOIN_TEST_DISK_LOG", root.with_extension("log"))
            .env("QUOIN_TEST_DISK_KILL_AFTER", after.to_string());
    }
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

fn good(root: &Path, words: &[&str]) -> String {
    let output = quoin(root, words, None);
    assert!(output.status.success(), "{words:?}: {}", said(&output));
    said(&output)
}

/// Runs the program repeatedly, killed one operation later each time, until it ends by itself.
/// Calls `check` after each run. Returns how often it was killed.
fn kill_everywhere(
    root: &Path,
    words: &[&str],
    mut prepare: impl FnMut(),
    mut check: impl FnMut(u64),
) -> u64 {
    for after in 1.. {
        prepare();
        let output = quoin(root, words, Some(after));
        check(after);
        if output.status.signal().is_none() {
            assert!(output.status.success(), "{}", said(&output));
            return after - 1;
        }
    }
    unreachable!("it ends")
}

/// A folder `disk` with a store in `data` whose server has ended.
fn store() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap().join("disk");
    std::fs::create_dir(&root).unwrap();
    let mut server = start(&root, "data", &[]).unwrap();
    let mut connection = Connection::open(server.address()).unwrap();
    for number in 0..ELEMENTS {
        let element = format!("{number}");
        connection.command(&["RPUSH", "list", &element]).unwrap();
    }
    server.signal("TERM");
    assert!(server.wait().success());
    (folder, root)
}

fn start(root: &Path, data_dir: &str, more: &[&str]) -> Result<Server, String> {
    let data_dir = root.join(data_dir).to_str().unwrap().to_owned();
    let mut flags = vec!["--data-dir".to_owned(), data_dir];
    flags.extend(more.iter().map(|word| (*word).to_owned()));
    Server::start_on_store(root, &flags, &[])
}

fn length(server: &Server) -> i64 {
    let mut connection = Connection::open(server.address()).unwrap();
    let reply = connection.command(&["LLEN", "list"]).unwrap();
    reply.integer().unwrap()
}

/// The folder is none, or no server starts on it, or it has everything.
fn is_nothing_or_whole(root: &Path, data_dir: &str, at: u64) -> bool {
    if !root.join(data_dir).exists() {
        return false;
    }
    match start(root, data_dir, &[]) {
        Ok(mut server) => {
            assert_eq!(length(&server), ELEMENTS, "killed after operation {at}");
            server.signal("TERM");
            assert!(server.wait().success());
            true
        }
        Err(log) => {
            assert!(log.contains("unfinished-restore"), "{at}: {log}");
            false
        }
    }
}

fn remove(path: &Path) {
    if path.exists() {
        std::fs::remove_dir_all(path).unwrap();
    }
}

fn backup(root: &Path) -> String {
    good(root, &["backup", "--data-dir", "data", "--to", "kept"]);
    let entry = root.join("kept").read_dir().unwrap().next().unwrap();
    let name = entry.unwrap().file_name().into_string().unwrap();
    format!("kept/{name}")
}

#[test]
fn a_restore_that_is_killed_leaves_no_folder_that_is_taken_for_a_store() {
    let (_folder, root) = store();
    let backup = backup(&root);
    let words = ["restore", "--from", &backup, "--data-dir", "restored"];
    let restored = root.join("restored");
    let mut whole = 0;
    let kills = kill_everywhere(
        &root,
        &words,
        || remove(&restored),
        |at| whole += u64::from(is_nothing_or_whole(&root, "restored", at)),
    );
    assert!(kills > 20 && whole > 0, "{kills} {whole}");
}

#[test]
fn a_restore_that_is_killed_leaves_no_store_without_the_commits_of_the_archive() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap().join("disk");
    std::fs::create_dir(&root).unwrap();
    let archive = root.join("archive").to_str().unwrap().to_owned();
    let mut server = start(&root, "data", &["--journal-archive-dir", &archive]).unwrap();
    let mut connection = Connection::open(server.address()).unwrap();
    for number in 0..ELEMENTS {
        if number == ELEMENTS / 2 {
            connection.command(&["SAVE"]).unwrap();
        }
        let element = format!("{number}");
        connection.command(&["RPUSH", "list", &element]).unwrap();
    }
    server.signal("TERM");
    assert!(server.wait().success());
    let backups = root.join("data/backups");
    let backup = backups.read_dir().unwrap().next().unwrap().unwrap().path();
    let from = backup.to_str().unwrap();
    let words = ["restore", "--from", from, "--data-dir", "restored"];
    let words = [words.as_slice(), &["--journal-archive", "archive"]].concat();
    let restored = root.join("restored");
    let mut whole = 0;
    let kills = kill_everywhere(
        &root,
        &words,
        || remove(&restored),
        |at| whole += u64::from(is_nothing_or_whole(&root, "restored", at)),
    );
    assert!(kills > 40 && whole > 0, "{kills} {whole}");
}

#[test]
fn a_restore_goes_on_wherever_the_one_before_was_killed() {
    let (_folder, root) = store();
    let backup = backup(&root);
    let words = ["restore", "--from", &backup, "--data-dir", "restored"];
    let restored = root.join("restored");
    // An existing empty folder, like a mount point.
    let prepare = || {
        remove(&restored);
        std::fs::create_dir(&restored).unwrap();
    };
    let mut begun = false;
    let kills = kill_everywhere(&root, &words, prepare, |at| {
        begun |= restored.read_dir().unwrap().next().is_some();
        if begun && !is_nothing_or_whole(&root, "restored", at) {
            good(&root, &words);
            assert!(is_nothing_or_whole(&root, "restored", at), "{at}");
            assert!(!restored.join("unfinished-restore").exists());
        }
    });
    assert!(begun && kills > 20, "{kills}");
}

#[test]
fn a_backup_that_is_killed_leaves_no_file_that_is_taken_for_one() {
    let (_folder, root) = store();
    let words = ["backup", "--data-dir", "data", "--to", "kept"];
    let kept = root.join("kept");
    let backups = || -> Vec<String> {
        let Ok(entries) = kept.read_dir() else {
            return Vec::new();
        };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    };
    let kills = kill_everywhere(
        &root,
        &words,
        || remove(&kept),
        |at| {
            for name in backups().iter().filter(|name| name.ends_with(".backup")) {
                remove(&root.join("restored"));
                let from = format!("kept/{name}");
                good(
                    &root,
                    &["restore", "--from", &from, "--data-dir", "restored"],
                );
                assert!(is_nothing_or_whole(&root, "restored", at));
            }
        },
    );
    assert!(kills > 20, "{kills}");
    // What the killed ones have left is removed.
    good(&root, &words);
    assert!(backups().iter().all(|name| name.ends_with(".backup")));
    assert!(is_nothing_or_whole(&root, "data", 0));
}

#[test]
fn a_compaction_that_is_killed_leaves_the_store() {
    let (_folder, root) = store();
    let words = ["compact", "--data-dir", "data"];
    let kills = kill_everywhere(
        &root,
        &words,
        || {},
        |at| {
            assert!(is_nothing_or_whole(&root, "data", at));
        },
    );
    assert!(kills > 20, "{kills}");
}

#[test]
fn an_export_that_is_killed_leaves_no_file_of_that_name() {
    let (_folder, root) = store();
    let server = start(&root, "data", &[]).unwrap();
    let from = format!("redis://{}", server.address());
    let words = ["export", "--from", &from, "--to", "dump.rdb"];
    let dump = root.join("dump.rdb");
    let mut sizes = std::collections::BTreeSet::new();
    let kills = kill_everywhere(
        &root,
        &words,
        || {
            let _ = std::fs::remove_file(&dump);
        },
        |_| sizes.extend(dump.metadata().ok().map(|found| found.len())),
    );
    // Whole, or none.
    assert!(kills >= 4 && sizes.len() == 1, "{kills} {sizes:?}");
    use std::os::unix::fs::PermissionsExt;
    let mode = dump.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    assert!(!root.join("dump.rdb.partial").exists());
}
