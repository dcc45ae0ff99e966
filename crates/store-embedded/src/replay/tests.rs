//! Tests starts on nearly full disks, after a process was killed.

use std::path::Path;

use futures_util::FutureExt;

use crate::{EmbeddedOptions, EmbeddedStore, FsyncPolicy, OpenError, journal};
use quoin_base::random::{Random, SeededRandom};
use quoin_store::{Isolation, RangeQuery, Store};

const MIB: u64 = 1024 * 1024;

fn options() -> EmbeddedOptions {
    EmbeddedOptions {
        fsync: FsyncPolicy::EverySecond,
        map_bytes: 256 << 20,
        ..EmbeddedOptions::default()
    }
}

fn write(store: &EmbeddedStore, random: &SeededRandom, rows: u64) {
    let transaction = store.begin_write().unwrap();
    for _ in 0..rows {
        let key = random.below(2_000).to_be_bytes();
        transaction.set(&key, &[random.next_u64() as u8; 900]);
    }
    transaction.commit().now_or_never().unwrap().unwrap();
}

fn rows(store: &EmbeddedStore) -> Vec<(Vec<u8>, Vec<u8>)> {
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

/// The files that a process killed now leaves.
fn killed(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["data.mdb", "CHECKPOINT", "JOURNAL.0", "JOURNAL.1"] {
        std::fs::copy(folder.join(name), copy.path().join(name)).unwrap();
    }
    copy
}

/// Makes checkpoints find no room from now on.
fn fill(folder: &Path) {
    std::os::unix::fs::symlink("/dev/full", folder.join("CHECKPOINT.new")).unwrap();
}

/// The folder of a store with some rows that was closed cleanly.
fn closed_cleanly() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path(), options()).unwrap();
    write(&store, &SeededRandom::new(1), 5_000);
    folder
}

#[test]
fn pages_that_a_replay_has_freed_are_used_again() {
    let random = SeededRandom::new(2);
    let folder = closed_cleanly();
    let (store, work, first) = EmbeddedStore::prepare(folder.path(), options()).unwrap();
    for _ in 0..400 {
        write(&store, &random, 100);
    }
    let expected = rows(&store);
    let after = killed(folder.path());
    drop((store, work, first));
    let size = || after.path().join("data.mdb").metadata().unwrap().len();
    let before = size();
    let (reopened, ..) = EmbeddedStore::prepare(after.path(), options()).unwrap();
    assert!(rows(&reopened) == expected);
    // There are about 35 steps. Each rewrites about half of the pages.
    assert!(before > MIB && size() < 5 * before, "{before} {}", size());
}

#[test]
fn a_store_with_nothing_to_apply_opens_where_no_checkpoint_has_room() {
    let folder = closed_cleanly();
    let (store, ..) = EmbeddedStore::prepare(folder.path(), options()).unwrap();
    let expected = rows(&store);
    let after = killed(folder.path());
    fill(after.path());
    for _ in 0..2 {
        let (reopened, ..) = EmbeddedStore::prepare(after.path(), options()).unwrap();
        assert!(rows(&reopened) == expected);
        // The next start that has room applies what was written.
        write(&reopened, &SeededRandom::new(3), 10);
        let expected = rows(&reopened);
        let again = killed(after.path());
        drop(reopened);
        assert!(rows(&EmbeddedStore::open(again.path(), options()).unwrap()) == expected);
        std::fs::copy(
            folder.path().join("JOURNAL.0"),
            after.path().join("JOURNAL.0"),
        )
        .unwrap();
    }
}

#[test]
fn a_start_without_room_for_what_is_to_be_applied_says_so_and_loses_nothing() {
    let folder = closed_cleanly();
    let (store, ..) = EmbeddedStore::prepare(folder.path(), options()).unwrap();
    write(&store, &SeededRandom::new(4), 3_000);
    let expected = rows(&store);
    let after = killed(folder.path());
    fill(after.path());
    for _ in 0..3 {
        let opened = EmbeddedStore::open(after.path(), options());
        let error = opened.err().unwrap();
        assert!(matches!(error, OpenError::NoRoom { .. }), "{error}");
        assert!(error.to_string().contains("nothing is lost"), "{error}");
    }
    std::fs::remove_file(after.path().join("CHECKPOINT.new")).unwrap();
    assert!(rows(&EmbeddedStore::open(after.path(), options()).unwrap()) == expected);
}

#[test]
fn a_start_that_is_killed_goes_on_after_its_last_step() {
    let folder = closed_cleanly();
    let (store, ..) = EmbeddedStore::prepare(folder.path(), options()).unwrap();
    let random = SeededRandom::new(5);
    for _ in 0..50 {
        write(&store, &random, 100);
    }
    let expected = rows(&store);
    let after = killed(folder.path());
    drop(store);
    // A start ends at an invalid record.
    let file = after.path().join("JOURNAL.0");
    let whole = std::fs::read(&file).unwrap();
    journal::tests::make_senseless(&file, 30);
    let checkpoint = || std::fs::read(after.path().join("CHECKPOINT")).unwrap();
    let before = checkpoint();
    assert!(EmbeddedStore::open(after.path(), options()).is_err());
    assert!(checkpoint() != before);
    std::fs::write(&file, whole).unwrap();
    assert!(rows(&EmbeddedStore::open(after.path(), options()).unwrap()) == expected);
}

#[test]
fn a_start_with_little_room_applies_the_journal_in_smaller_steps() {
    let folder = closed_cleanly();
    let (store, ..) = EmbeddedStore::prepare(folder.path(), options()).unwrap();
    let random = SeededRandom::new(6);
    for _ in 0..20 {
        write(&store, &random, 100);
    }
    let expected = rows(&store);
    let after = killed(folder.path());
    // A step of the usual size changes nearly every page of the file.
    let size = after.path().join("data.mdb").metadata().unwrap().len();
    let options = EmbeddedOptions {
        map_bytes: size as usize * 19 / 10,
        ..options()
    };
    let (reopened, ..) = EmbeddedStore::prepare(after.path(), options).unwrap();
    assert!(rows(&reopened) == expected);
}

#[test]
fn a_copy_without_the_journal_is_refused_with_words_that_help() {
    let folder = closed_cleanly();
    let (store, ..) = EmbeddedStore::prepare(folder.path(), options()).unwrap();
    let checkpointed = rows(&store);
    write(&store, &SeededRandom::new(7), 10);
    let after = killed(folder.path());
    for name in ["JOURNAL.0", "JOURNAL.1"] {
        std::fs::remove_file(after.path().join(name)).unwrap();
    }
    for _ in 0..2 {
        let error = EmbeddedStore::open(after.path(), options()).err().unwrap();
        assert!(error.to_string().contains("JOURNAL.0"), "{error}");
    }
    let accepting = EmbeddedOptions {
        accepts_journal_loss: true,
        ..options()
    };
    assert!(rows(&EmbeddedStore::open(after.path(), accepting).unwrap()) == checkpointed);
}

#[test]
fn a_start_makes_no_checkpoint_before_there_is_a_file_of_the_journal() {
    let folder = closed_cleanly();
    let first = folder.path().join("JOURNAL.0");
    std::os::unix::fs::symlink(folder.path().join("missing/file"), &first).unwrap();
    assert!(EmbeddedStore::open(folder.path(), options()).is_err());
    std::fs::remove_file(&first).unwrap();
    // If the start had been killed here, this must not look like a lost journal.
    assert!(!rows(&EmbeddedStore::open(folder.path(), options()).unwrap()).is_empty());
}

type Row = (Vec<u8>, Vec<u8>);

/// A killed store whose journal has twenty records written with `always`, and its rows after ten.
fn killed_with_journal() -> (tempfile::TempDir, Vec<Row>) {
    let options = EmbeddedOptions {
        fsync: FsyncPolicy::Always,
        ..options()
    };
    let folder = closed_cleanly();
    let (store, ..) = EmbeddedStore::prepare(folder.path(), options).unwrap();
    let random = SeededRandom::new(8);
    for _ in 0..10 {
        write(&store, &random, 10);
    }
    let before = rows(&store);
    for _ in 0..10 {
        write(&store, &random, 10);
    }
    (killed(folder.path()), before)
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

/// The offset of record number `place` in a file.
fn offset_of(path: &Path, place: usize) -> usize {
    let bytes = std::fs::read(path).unwrap();
    (0..place).fold(32, |at, _| {
        at + 48 + u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
    })
}

#[test]
fn a_damaged_journal_is_refused_and_nothing_is_changed() {
    let (folder, _) = killed_with_journal();
    let file = folder.path().join("JOURNAL.0");
    let damaged_at = offset_of(&file, 10);
    flip(&file, damaged_at + 100);
    let before = std::fs::read(&file).unwrap();
    for _ in 0..2 {
        let error = EmbeddedStore::open(folder.path(), options()).err().unwrap();
        let text = error.to_string();
        assert!(
            text.contains(&format!("JOURNAL.0 at byte {damaged_at}")),
            "{text}"
        );
        assert!(text.contains("9 commits"), "{text}");
        assert!(text.contains("--accept-journal-loss"), "{text}");
        assert!(std::fs::read(&file).unwrap() == before);
    }
    // After flipping the bit back, the journal is intact again.
    flip(&file, damaged_at + 100);
    EmbeddedStore::open(folder.path(), options()).unwrap();
}

#[test]
fn a_damaged_journal_that_is_accepted_is_kept_and_the_store_goes_on_before_the_damage() {
    let (folder, expected) = killed_with_journal();
    let file = folder.path().join("JOURNAL.0");
    flip(&file, offset_of(&file, 10) + 100);
    let damaged = std::fs::read(&file).unwrap();
    let accepting = EmbeddedOptions {
        accepts_journal_loss: true,
        ..options()
    };
    let store = EmbeddedStore::open(folder.path(), accepting).unwrap();
    assert!(rows(&store) == expected);
    let kept = folder.path().join("JOURNAL.0.damaged-1");
    assert!(std::fs::read(kept).unwrap() == damaged);
    write(&store, &SeededRandom::new(9), 10);
    let expected = rows(&store);
    drop(store);
    assert!(rows(&EmbeddedStore::open(folder.path(), options()).unwrap()) == expected);
}

#[test]
fn a_journal_that_is_missing_before_the_first_commit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (store, ..) = EmbeddedStore::prepare(folder.path(), options()).unwrap();
    let after = killed(folder.path());
    drop(store);
    for name in ["JOURNAL.0", "JOURNAL.1"] {
        std::fs::remove_file(after.path().join(name)).unwrap();
    }
    let error = EmbeddedStore::open(after.path(), options()).err().unwrap();
    assert!(error.to_string().contains("are missing"), "{error}");
}

/// Writes and undoes at random.
fn write_and_roll_back(store: &EmbeddedStore, random: &SeededRandom) {
    let transaction = store.begin_write().unwrap();
    let mut open = Vec::new();
    for _ in 0..40 {
        let [key, other] = [0; 2].map(|_| random.below(60).to_be_bytes());
        match random.below(9) {
            0 => open.push(transaction.savepoint()),
            1 | 2 => {
                if let Some(savepoint) = open.pop() {
                    transaction.rollback(savepoint);
                }
            }
            3 => transaction.clear(&key),
            4 => transaction.clear_range(&key, &other),
            5 => transaction.atomic_add(&key, 1),
            6 => {
                let query = RangeQuery {
                    begin: &key,
                    end: &other,
                    limit: 2,
                    reverse: false,
                    isolation: Isolation::Snapshot,
                };
                let rows = transaction.get_range(query).now_or_never().unwrap();
                for row in rows.unwrap() {
                    transaction.clear(&row.key);
                }
            }
            _ => transaction.set(&key, &random.next_u64().to_le_bytes()),
        }
    }
    transaction.commit().now_or_never().unwrap().unwrap();
}

#[test]
fn the_journal_has_what_rollbacks_have_left() {
    for seed in 0..20 {
        let random = SeededRandom::new(seed);
        let folder = tempfile::tempdir().unwrap();
        let (store, work, first) = EmbeddedStore::prepare(folder.path(), options()).unwrap();
        for _ in 0..10 {
            write_and_roll_back(&store, &random);
        }
        let expected = rows(&store);
        let after = killed(folder.path());
        drop((store, work, first));
        let store = EmbeddedStore::open(after.path(), options()).unwrap();
        assert!(rows(&store) == expected, "seed {seed}");
    }
}
