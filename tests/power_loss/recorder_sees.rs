//! Nothing that servers do to their files escapes the recorder. What it does not see could not be
//! lost, and the other tests would prove less than they claim.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

use super::disk::Disk;
use super::entry;
use super::recorded::{self, Log, Start};
use crate::resp::Connection;

const PUSHES: usize = 300;

/// A server that was started on an empty disk, did something, and was ended.
struct Recording {
    root: PathBuf,
    /// At first.
    disk: Disk,
    log: Log,
    _folder: TempDir,
}

impl Recording {
    fn new(kills: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("disk");
        std::fs::create_dir(&root).unwrap();
        let disk = Disk::of_folder(&root).unwrap();
        let log = root.with_extension("log");
        let start = Start {
            boot: Some(1),
            fsync: "always",
            sync_us_max: 0,
            kill_at: None,
        };
        let mut server = recorded::start(&root, &log, &start).unwrap();
        let mut connection = Connection::open(server.address()).unwrap();
        for round in 0..PUSHES {
            let payload = "x".repeat(round * 10);
            connection.command(&["RPUSH", "list", &payload]).unwrap();
        }
        // Longer than until the next checkpoint.
        std::thread::sleep(Duration::from_millis(1_200));
        connection.command(&["RPUSH", "list", "last"]).unwrap();
        recorded::end(&mut server, kills).unwrap();
        Self {
            root,
            disk,
            log: Log::read(&log).unwrap(),
            _folder: folder,
        }
    }

    /// A recording of a killed server.
    fn killed() -> &'static Self {
        static KILLED: OnceLock<Recording> = OnceLock::new();
        KILLED.get_or_init(|| Self::new(true))
    }

    /// The kinds of operations on each file, by the names that the files had then, and the disk.
    fn seen(&self) -> (BTreeSet<(String, u8)>, Disk) {
        let mut seen = BTreeSet::new();
        let mut disk = self.disk.clone();
        for (_, entry) in self.log.entries() {
            disk.apply(&entry).unwrap();
            let name = disk.name_of(entry.file).unwrap_or_default();
            let name = name.strip_prefix("data").unwrap_or(&name);
            seen.insert((name.to_string_lossy().into_owned(), entry.kind));
        }
        (seen, disk)
    }
}

#[test]
fn writes_and_syncs_of_the_journal_of_lmdb_and_of_checkpoints_are_seen() {
    let recording = Recording::killed();
    let (seen, _) = recording.seen();
    for name in ["JOURNAL.0", "JOURNAL.1", "data.mdb"] {
        for kind in [entry::WRITE, entry::SYNC_BEGIN, entry::SYNC_END] {
            assert!(
                seen.contains(&(name.to_owned(), kind)),
                "{name} {kind} {seen:?}"
            );
        }
    }
    for (name, kind) in [
        // The data folder itself.
        ("", entry::CREATE),
        ("", entry::SYNC_END),
        ("LOCK", entry::CREATE),
        ("JOURNAL.1", entry::ZEROS),
        ("CHECKPOINT.new", entry::WRITE),
        ("CHECKPOINT.new", entry::SYNC_END),
        ("CHECKPOINT", entry::RENAME),
        ("CHECKPOINT", entry::EXCHANGE),
        ("data.mdb", entry::RENAME),
    ] {
        assert!(
            seen.contains(&(name.to_owned(), kind)),
            "{name} {kind} {seen:?}"
        );
    }
    let entries = recording.log.entries();
    let syncs = entries.filter(|(_, entry)| entry.kind == entry::SYNC_END);
    assert!(syncs.count() > PUSHES, "every push is synced");
}

#[test]
fn what_is_mapped_for_writing_is_the_lock_of_lmdb_only() {
    let (seen, _) = Recording::killed().seen();
    let mapped: Vec<String> = seen
        .into_iter()
        .filter(|(_, kind)| *kind == entry::MAPPED)
        .map(|(name, _)| name)
        .collect();
    assert_eq!(mapped, ["lock.mdb"]);
}

#[test]
fn all_that_was_recorded_makes_the_same_folder() {
    let ended = Recording::new(false);
    for recording in [Recording::killed(), &ended] {
        let (_, mut disk) = recording.seen();
        assert_eq!(disk.take_over().unwrap(), BTreeSet::new());
        assert!(recording.root.join("data/data.mdb").exists());
    }
}
