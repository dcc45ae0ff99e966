use std::collections::BTreeMap;

use futures_util::FutureExt;
use heed::types::Bytes as Raw;
use heed::{Database, EnvOpenOptions};

use super::*;
use crate::checkpoint::{Checkpoints, boot_id};
use crate::journal::{Journal, Record, Write};
use crate::table::{APPLIED_KEY, open_database};
use crate::{EmbeddedStore, OpenError};
use quoin_base::random::SeededRandom;
use quoin_store::{Isolation, RangeQuery, Store};

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;
const MAP_BYTES: usize = 64 << 20;

fn options() -> EmbeddedOptions {
    EmbeddedOptions {
        map_bytes: MAP_BYTES,
        ..EmbeddedOptions::default()
    }
}

fn some_rows() -> Contents {
    let random = SeededRandom::new(1);
    (0..2000_u64)
        .map(|number| {
            let length = [0, 9, 300, 5000][random.below(4) as usize];
            (number.to_be_bytes().to_vec(), vec![number as u8; length])
        })
        .collect()
}

fn contents(store: &EmbeddedStore) -> Contents {
    let snapshot = store.begin_read().unwrap();
    let query = RangeQuery {
        begin: b"",
        end: &[0xff],
        limit: usize::MAX,
        reverse: false,
        isolation: Isolation::Snapshot,
    };
    let rows = snapshot.get_range(query).now_or_never().unwrap().unwrap();
    rows.into_iter()
        .map(|row| (row.key.to_vec(), row.value.to_vec()))
        .collect()
}

fn open(folder: &Path) -> EmbeddedStore {
    EmbeddedStore::open(folder, options()).unwrap()
}

/// A folder from a Quoin that wrote no checksums. `pending` is only in its journal, because that
/// Quoin was killed. If `pending` is empty, it was closed cleanly.
fn old_store(folder: &Path, rows: &Contents, pending: &Contents) {
    std::fs::write(folder.join("LOCK"), b"").unwrap();
    let mut opening = EnvOpenOptions::new().read_txn_without_tls();
    opening.map_size(MAP_BYTES);
    // SAFETY: nothing else opens it.
    #[allow(unsafe_code)]
    let environment = unsafe { opening.open(folder).unwrap() };
    let database: Database<Raw, Raw> = open_database(&environment).unwrap();
    let mut transaction = environment.write_txn().unwrap();
    for (key, value) in rows {
        database.put(&mut transaction, key, value).unwrap();
    }
    let applied = 7_u64.to_le_bytes();
    database
        .put(&mut transaction, APPLIED_KEY, &applied)
        .unwrap();
    transaction.commit().unwrap();
    if !pending.is_empty() {
        let checkpoints = Checkpoints::new(folder, boot_id());
        drop(checkpoints.take(&environment).unwrap());
        let journal = Journal::create(folder, 8, 1, true).unwrap();
        for (key, value) in pending {
            let mut record = Record::new();
            record.push(&Write::Set(key, value));
            journal.append(&mut record).unwrap();
        }
    }
    environment.prepare_for_closing().wait();
}

fn rows_of(rows: &Contents) -> impl Iterator<Item = Result<(&Vec<u8>, &Vec<u8>), std::io::Error>> {
    rows.iter().map(Ok)
}

fn names(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn a_store_without_checksums_gets_them() {
    let folder = tempfile::tempdir().unwrap();
    old_store(folder.path(), &some_rows(), &Contents::new());
    let store = open(folder.path());
    assert!(contents(&store) == some_rows());
    assert!(!store.summary().is_new);
    drop(store);
    assert_eq!(
        names(folder.path()),
        ["LOCK", "QUOIN", "data.mdb", "lock.mdb"]
    );
    let again = open(folder.path());
    assert!(contents(&again) == some_rows());
    let damaged = again.rows.format();
    assert_eq!(damaged, crate::checksum::RowFormat::Checked);
}

#[test]
fn what_only_the_journal_of_an_older_store_has_is_brought_along() {
    let pending: Contents = [(b"pending".to_vec(), b"value".to_vec())].into();
    let folder = tempfile::tempdir().unwrap();
    old_store(folder.path(), &some_rows(), &pending);
    let mut expected = some_rows();
    expected.extend(pending);
    assert!(contents(&open(folder.path())) == expected);
    assert!(contents(&open(folder.path())) == expected);
}

#[test]
fn a_change_of_format_that_ended_early_is_done_again() {
    let folder = tempfile::tempdir().unwrap();
    old_store(folder.path(), &some_rows(), &Contents::new());
    // First while the new file was being written, then when it was complete.
    let new = folder.path().join(NEW_DATA_FILE);
    std::fs::write(&new, [0xa5; 5000]).unwrap();
    let copy = tempfile::tempdir().unwrap();
    let whole = copy.path().join("whole");
    write_data_file(&whole, MAP_BYTES, 7, rows_of(&some_rows()), &mut |_| {}).unwrap();
    for complete in [false, true] {
        let after = tempfile::tempdir().unwrap();
        for name in names(folder.path()) {
            std::fs::copy(folder.path().join(&name), after.path().join(&name)).unwrap();
        }
        if complete {
            std::fs::copy(&whole, after.path().join(NEW_DATA_FILE)).unwrap();
        }
        assert!(contents(&open(after.path())) == some_rows());
    }
    // The new file replaced the old one before there was a marker.
    std::fs::rename(&whole, folder.path().join(DATA_FILE)).unwrap();
    assert!(contents(&open(folder.path())) == some_rows());
    assert!(names(folder.path()).contains(&"QUOIN".to_owned()));
}

#[test]
fn a_damaged_page_of_an_older_store_is_refused_and_the_store_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    old_store(folder.path(), &some_rows(), &Contents::new());
    let data = folder.path().join(DATA_FILE);
    let mut bytes = std::fs::read(&data).unwrap();
    // This is the field with the end of each page's free space.
    for page in bytes.chunks_mut(4096).skip(2) {
        page[14] ^= 0xff;
    }
    std::fs::write(&data, &bytes).unwrap();
    let error = EmbeddedStore::open(folder.path(), options()).err().unwrap();
    assert!(matches!(error, OpenError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("page"), "{error}");
    assert!(!folder.path().join("QUOIN").exists());
}

#[test]
fn compacting_gives_room_back_and_changes_no_row() {
    let folder = tempfile::tempdir().unwrap();
    let random = SeededRandom::new(5);
    let store = open(folder.path());
    let mut kept = Contents::new();
    for round in 0..40_u64 {
        let transaction = store.begin_write().unwrap();
        for _ in 0..50 {
            let key = random.next_u64().to_be_bytes();
            transaction.set(&key, &[round as u8; 3000]);
            if round == 0 {
                kept.insert(key.to_vec(), vec![0; 3000]);
            } else {
                transaction.clear(&key);
                transaction.set(&[&[1], key.as_slice()].concat(), &[1; 3000]);
            }
        }
        transaction.commit().now_or_never().unwrap().unwrap();
    }
    let id = store.summary().id;
    drop(store);
    let store = open(folder.path());
    let transaction = store.begin_write().unwrap();
    for key in contents(&store)
        .keys()
        .filter(|key| !kept.contains_key(*key))
    {
        transaction.clear(key);
    }
    transaction.commit().now_or_never().unwrap().unwrap();
    drop(store);
    let mut reports = Vec::new();
    let compacted = compact(folder.path(), &options(), &mut |rows, written| {
        reports.push((rows, written));
    });
    let compacted = compacted.unwrap();
    assert!(
        compacted.bytes_after * 5 < compacted.bytes_before,
        "{compacted:?}"
    );
    assert_eq!(compacted.rows, kept.len() as u64);
    assert!(
        reports
            .last()
            .is_some_and(|(_, written)| written.rows == compacted.rows)
    );
    assert_eq!(
        names(folder.path()),
        ["LOCK", "QUOIN", "data.mdb", "lock.mdb"]
    );
    let store = open(folder.path());
    assert_eq!(store.summary().id, id);
    assert!(contents(&store) == kept);
}

#[test]
fn a_store_that_was_killed_can_be_compacted() {
    let folder = tempfile::tempdir().unwrap();
    let pending: Contents = [(b"pending".to_vec(), b"value".to_vec())].into();
    old_store(folder.path(), &some_rows(), &pending);
    compact(folder.path(), &options(), &mut |_, _| {}).unwrap();
    let mut expected = some_rows();
    expected.extend(pending);
    assert!(contents(&open(folder.path())) == expected);
}

#[test]
fn nothing_is_compacted_where_no_store_is() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().to_owned(), folder.path().join("missing")] {
        let error = compact(&path, &options(), &mut |_, _| {}).err().unwrap();
        assert!(error.to_string().contains("no store"), "{error}");
    }
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_store_is_made_of_rows() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("restored");
    let rows = some_rows();
    let random = SeededRandom::new(2);
    let made = make_store(&folder, MAP_BYTES, 12, rows_of(&rows), &random, &mut |_| {});
    let (id, written) = made.unwrap();
    assert_eq!(written.rows, rows.len() as u64);
    let store = open(&folder);
    assert_eq!(store.summary().id, id);
    assert!(contents(&store) == rows);
    drop(store);
    let again = make_store(&folder, MAP_BYTES, 12, rows_of(&rows), &random, &mut |_| {});
    let error = again.err().unwrap().to_string();
    assert!(error.contains("already"), "{error}");
}

#[test]
fn rows_that_are_out_of_order_or_fail_make_no_store() {
    let rows = |keys: [&'static [u8]; 3]| keys.map(|key| Ok((key, b"value".as_slice())));
    let wrong = [
        Vec::from(rows([b"a", b"c", b"b"])),
        Vec::from(rows([b"a", b"b", b"b"])),
        vec![
            Ok((b"a".as_slice(), b"".as_slice())),
            Err(std::io::Error::other("no more")),
        ],
    ];
    for rows in wrong {
        let folder = tempfile::tempdir().unwrap();
        let random = SeededRandom::new(2);
        let made = make_store(folder.path(), MAP_BYTES, 1, rows, &random, &mut |_| {});
        let error = made.err().unwrap().to_string();
        assert!(
            error.contains("order") || error.contains("no more"),
            "{error}"
        );
        assert_eq!(names(folder.path()), ["LOCK"]);
        assert!(open(folder.path()).summary().is_new);
    }
}

#[test]
fn sorted_rows_fill_their_pages() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Contents = (0..20_000_u64)
        .map(|number| (number.to_be_bytes().to_vec(), vec![1; 100]))
        .collect();
    let path = folder.path().join("file");
    let written = write_data_file(&path, MAP_BYTES, 0, rows_of(&rows), &mut |_| {}).unwrap();
    let bytes = path.metadata().unwrap().len();
    // Each row has a node header of 8 bytes, a pointer of 2, and checksums of 8.
    assert!(bytes < (written.bytes + 20_000 * 18) * 11 / 10, "{bytes}");
}
