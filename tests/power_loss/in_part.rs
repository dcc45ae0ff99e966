//! A transaction that LMDB has in part, and whose journal record is not on the disk.

use std::path::Path;

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::disk::{Disk, write_image};
use super::entry;
use super::recorded::{self, Log, Start};
use crate::resp::{Connection, encode};
use crate::server::Server;

/// More than one transaction of LMDB takes when a generation is drained.
const PUSHES: usize = 40;
const PAYLOAD_BYTES: usize = 250_000;

fn start(root: &Path, log: &Path, boot: Option<u64>, kill_at: Option<u64>) -> Server {
    let start = Start {
        boot,
        fsync: "everysec",
        sync_us_max: 0,
        kill_at,
    };
    recorded::start(root, log, &start).unwrap()
}

/// The length that a list reports, and its actual length.
fn lengths(server: &Server) -> (i64, usize) {
    let mut connection = Connection::open(server.address()).unwrap();
    let length = connection.command(&["LLEN", "list"]).unwrap();
    let items = connection.command(&["LRANGE", "list", "0", "-1"]).unwrap();
    let found = (length.integer(), items.items().map(<[_]>::len));
    let (Some(length), Some(items)) = found else {
        panic!("answered {length:?} and {:?}", items.error());
    };
    (length, items)
}

/// The disk under a server that died in the middle of a drain.
fn killed_amid_a_drain(folder: &Path, root: &Path, boot: Option<u64>) -> Disk {
    std::fs::create_dir(root).unwrap();
    let mut disk = Disk::of_folder(root).unwrap();
    let log = folder.join("first.log");
    let mut server = start(root, &log, boot, Some(25));
    std::fs::write(recorded::armed_file(&log), b"").unwrap();
    let mut connection = Connection::open(server.address()).unwrap();
    let mut transaction = encode(&["MULTI"]);
    for _ in 0..PUSHES {
        transaction.extend(encode(&["RPUSH", "list", &"x".repeat(PAYLOAD_BYTES)]));
    }
    transaction.extend(encode(&["EXEC"]));
    let _ = connection.send_raw(&transaction);
    server.wait();
    let first = Log::read(&log).unwrap();
    for (_, entry) in first.entries() {
        disk.apply(&entry).unwrap();
    }
    disk.process_ended();
    disk.take_over().unwrap();
    disk
}

/// A power loss leaves all of the transaction, or nothing.
fn check(disk: &Disk, folder: &Path, random: &mut StdRng) {
    let root = folder.join("after");
    std::fs::create_dir(&root).unwrap();
    write_image(&disk.after_power_loss(random), &root).unwrap();
    let server = start(&root, &root.with_extension("log"), Some(2), None);
    let (length, items) = lengths(&server);
    let is_whole = items == 0 || items == PUSHES;
    assert!(is_whole && length == items as i64, "{length} {items}");
    drop(server);
    std::fs::remove_dir_all(&root).unwrap();
}

#[test]
fn a_transaction_that_lmdb_has_in_part_goes_as_a_whole_when_its_record_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let root = folder.join("disk");
    let mut disk = killed_amid_a_drain(&folder, &root, Some(1));

    // It is restarted on the same kernel, which has everything that was written.
    let log = folder.join("second.log");
    let server = start(&root, &log, Some(1), None);
    assert_eq!(lengths(&server), (PUSHES as i64, PUSHES));
    drop(server);

    let second = Log::read(&log).unwrap();
    let mut random = StdRng::seed_from_u64(super::seed());
    let mut losses = 0;
    for (_, entry) in second.entries() {
        disk.apply(&entry).unwrap();
        if entry.kind == entry::SYNC_END && disk.is_folder(entry.file) {
            for _ in 0..super::rounds(2) {
                losses += 1;
                check(&disk, &folder, &mut random);
            }
        }
    }
    // After the checkpoints of what was found, of what was replayed, and of the new journal.
    assert!(losses >= 3, "{losses}");
}

#[test]
fn so_it_does_where_lmdb_syncs_because_there_is_no_boot_id() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let disk = killed_amid_a_drain(&folder, &folder.join("disk"), None);
    let mut random = StdRng::seed_from_u64(super::seed());
    for _ in 0..super::rounds(4) {
        check(&disk, &folder, &mut random);
    }
}
