//! Tests the drain's limits, and kills of the process at every stage of it.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::FutureExt;

use super::*;
use crate::{EmbeddedOptions, EmbeddedStore, FsyncPolicy};
use quoin_base::random::{Random, SeededRandom};
use quoin_store::{Isolation, RangeQuery, Store, StoreError};

const POLICIES: [FsyncPolicy; 2] = [FsyncPolicy::Always, FsyncPolicy::EverySecond];

fn options(fsync: FsyncPolicy) -> EmbeddedOptions {
    EmbeddedOptions {
        fsync,
        map_bytes: 512 << 20,
        ..EmbeddedOptions::default()
    }
}

fn with_little_memory() -> EmbeddedOptions {
    EmbeddedOptions {
        memory_bytes_max: 0,
        ..options(FsyncPolicy::EverySecond)
    }
}

fn open(folder: &Path, fsync: FsyncPolicy) -> EmbeddedStore {
    EmbeddedStore::open(folder, options(fsync)).unwrap()
}

fn churn(store: &EmbeddedStore, random: &SeededRandom) {
    for _ in 0..30 {
        let transaction = store.begin_write().unwrap();
        for _ in 0..30 {
            let key = random.below(400).to_be_bytes();
            match random.below(12) {
                0..4 => transaction.clear(&key),
                4 => {
                    let end = random.below(400).to_be_bytes();
                    transaction.clear_range(&key, &end);
                }
                _ => transaction.set(&key, &random.next_u64().to_be_bytes()),
            }
        }
        transaction.atomic_add(b"counter", 1);
        transaction.commit().now_or_never().unwrap().unwrap();
    }
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

/// A copy of the files as a process killed now would leave them.
fn killed(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["data.mdb", "CHECKPOINT", "JOURNAL.0", "JOURNAL.1"] {
        std::fs::copy(folder.join(name), copy.path().join(name)).unwrap();
    }
    copy
}

/// A store with rows in its data file that drains only on request. Also returns what its thread
/// would own, which the caller must keep.
fn without_thread(
    folder: &Path,
    fsync: FsyncPolicy,
    random: &SeededRandom,
) -> (EmbeddedStore, impl Sized) {
    let (store, work, first) = EmbeddedStore::prepare(folder, options(fsync)).unwrap();
    churn(&store, random);
    store.drain_now();
    (store, (work, first))
}

#[test]
fn the_drain_frees_what_its_generation_cleared() {
    let folder = tempfile::tempdir().unwrap();
    let random = SeededRandom::new(5);
    let (store, _thread) = without_thread(folder.path(), FsyncPolicy::EverySecond, &random);
    churn(&store, &random);
    store.close_generation();
    let memory = &store.shared.memory;
    let closed = memory.oldest_closed().unwrap();
    assert!(!closed.cleared.is_empty());
    store.drain_oldest(true);
    assert!(memory.lock().cleared_in(closed.generation).is_empty());
}

#[test]
fn a_process_that_dies_loses_nothing_of_its_memory() {
    for (seed, fsync) in POLICIES.into_iter().cycle().take(6).enumerate() {
        let random = SeededRandom::new(seed as u64);
        let folder = tempfile::tempdir().unwrap();
        let (store, _kept) = without_thread(folder.path(), fsync, &random);
        churn(&store, &random);
        assert!(store.shared.memory.dirty_bytes() > 0);
        let expected = rows(&store);
        let after = killed(folder.path());
        let reopened = open(after.path(), fsync);
        assert!(rows(&reopened) == expected, "seed {seed}");
        churn(&reopened, &random);
        let expected = rows(&reopened);
        drop(reopened);
        assert!(rows(&open(after.path(), fsync)) == expected, "seed {seed}");
    }
}

#[test]
fn a_drain_that_was_interrupted_changes_nothing_that_is_read() {
    for seed in 0..8 {
        let random = SeededRandom::new(seed);
        let fsync = POLICIES[seed as usize % 2];
        let folder = tempfile::tempdir().unwrap();
        let (store, _kept) = without_thread(folder.path(), fsync, &random);
        churn(&store, &random);
        store.close_generation();
        churn(&store, &random);
        let expected = rows(&store);
        let Some(closed) = store.shared.memory.oldest_closed() else {
            panic!("a generation was closed")
        };

        // Part of the generation, without the number that marks it as complete.
        let mut transaction = store.environment.write_txn().unwrap();
        for Span { begin, end } in closed.cleared.ranges.iter() {
            if random.below(2) == 0 {
                delete(&store.rows, &mut transaction, begin, end).unwrap();
            }
        }
        for row in closed.cleared.keys.all() {
            if random.below(2) == 0 {
                store.rows.delete(&mut transaction, row.key()).unwrap();
            }
        }
        for row in &closed.rows {
            let (key, value) = row.split();
            if random.below(2) == 0 {
                store.rows.put(&mut transaction, key, value).unwrap();
            }
        }
        transaction.commit().unwrap();
        assert!(rows(&store) == expected, "seed {seed}");
        let after = killed(folder.path());
        assert!(rows(&open(after.path(), fsync)) == expected, "seed {seed}");

        // All of it, while memory still has it too.
        write(
            &store.environment,
            &store.rows,
            &closed,
            SLICE_BYTES,
            || Ok(()),
        )
        .unwrap();
        assert!(rows(&store) == expected, "seed {seed}");
        let after = killed(folder.path());
        assert!(rows(&open(after.path(), fsync)) == expected, "seed {seed}");
        store.shared.memory.note_drained(&closed);
        assert!(rows(&store) == expected, "seed {seed}");
    }
}

#[test]
fn records_are_applied_over_a_data_file_that_is_newer_than_they() {
    let random = SeededRandom::new(7);
    let folder = tempfile::tempdir().unwrap();
    let (store, _kept) = without_thread(folder.path(), FsyncPolicy::Always, &random);
    churn(&store, &random);
    for _ in 0..3 {
        churn(&store, &random);
        store.close_generation();
    }
    let expected = rows(&store);
    let Some(first) = store.shared.memory.oldest_closed() else {
        panic!("a generation was closed")
    };
    // The file has everything, but its number says that it has only the first generation.
    store.drain_now();
    let mut transaction = store.environment.write_txn().unwrap();
    let sequence = first.sequence.to_le_bytes();
    store
        .rows
        .put(&mut transaction, APPLIED_KEY, &sequence)
        .unwrap();
    transaction.commit().unwrap();
    let after = killed(folder.path());
    assert!(rows(&open(after.path(), FsyncPolicy::Always)) == expected);
}

#[test]
fn a_generation_of_many_slices_is_written_whole() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), FsyncPolicy::EverySecond);
    let transaction = store.begin_write().unwrap();
    for index in 0..200_u32 {
        let value = vec![index as u8; SLICE_BYTES / 20];
        transaction.set(&index.to_be_bytes(), &value);
    }
    transaction.commit().now_or_never().unwrap().unwrap();
    let expected = rows(&store);
    store.drain_now();
    assert_eq!(store.shared.memory.dirty_bytes(), 0);
    assert!(rows(&store) == expected);
}

#[test]
fn what_the_data_file_lacks_is_bounded_and_nothing_in_an_idle_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path(), with_little_memory()).unwrap();
    const VALUE_BYTES: usize = 500_000;
    let dirty_bytes_max = store.shared.memory.dirty_bytes_max;
    let rounds = 2 * dirty_bytes_max / VALUE_BYTES;
    for round in 0..rounds {
        let transaction = store.begin_write().unwrap();
        transaction.set(&(round as u64).to_be_bytes(), &vec![1; VALUE_BYTES]);
        transaction.commit().now_or_never().unwrap().unwrap();
        let bytes = store.shared.memory.dirty_bytes();
        assert!(bytes <= dirty_bytes_max + 2 * VALUE_BYTES);
    }
    let started = Instant::now();
    while store.shared.memory.dirty_bytes() > 0 {
        assert!(started.elapsed() < Duration::from_secs(40));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn rows_of_a_large_batch_leave_memory_once_the_data_file_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _work, _first) =
        EmbeddedStore::prepare(folder.path(), with_little_memory()).unwrap();
    for round in 0..3_u64 {
        let transaction = store.begin_short_write().unwrap();
        for number in 0..20_000_u64 {
            transaction.set(&(round * 20_000 + number).to_be_bytes(), b"value");
        }
        transaction.commit().now_or_never().unwrap().unwrap();
        assert!(store.shared.memory.lock().bytes() > 20_000 * 100);
        store.drain_now();
        assert!(store.shared.memory.lock().bytes() < 20_000 * 10);
    }
    assert_eq!(rows(&store).len(), 60_000);
}

#[test]
fn what_is_undone_does_not_count_as_missing_in_the_data_file() {
    let folder = tempfile::tempdir().unwrap();
    let random = SeededRandom::new(3);
    drop(without_thread(folder.path(), FsyncPolicy::Always, &random));
    let made = EmbeddedStore::prepare(folder.path(), options(FsyncPolicy::Always));
    let (store, _work, _first) = made.unwrap();
    for _ in 0..3 {
        let transaction = store.begin_write().unwrap();
        transaction.clear_range(b"", &[200]);
        transaction.clear(b"counter");
        drop(transaction);
        let transaction = store.begin_write().unwrap();
        transaction.set(b"key", b"value");
        let savepoint = transaction.savepoint();
        transaction.clear_range(b"a", b"z");
        transaction.rollback(savepoint);
        transaction.commit().now_or_never().unwrap().unwrap();
        store.drain_now();
        assert_eq!(store.shared.memory.dirty_bytes(), 0);
    }
}

#[test]
fn writes_are_refused_while_what_is_committed_finds_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let made = EmbeddedStore::prepare(folder.path(), with_little_memory());
    let (store, _work, _first) = made.unwrap();
    let third = vec![1; store.shared.memory.dirty_bytes_max / 3];
    let failed = &store.shared.checkpoints_without_room;
    failed.store(1, Ordering::SeqCst);
    let refused = loop {
        match store.begin_write() {
            Ok(transaction) => {
                transaction.set(b"key", &third);
                let other = store.shared.memory.dirty_bytes().to_be_bytes();
                transaction.set(&other, &third);
                transaction.commit().now_or_never().unwrap().unwrap();
            }
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, StoreError::NoRoom(_)));
    assert!(!rows(&store).is_empty());
    store.drain_now();
    assert!(store.begin_write().is_ok());
}

#[test]
fn a_commit_without_a_write_does_not_end_the_journal() {
    let random = SeededRandom::new(1);
    let folder = tempfile::tempdir().unwrap();
    let (store, _kept) = without_thread(folder.path(), FsyncPolicy::Always, &random);
    for _ in 0..2 {
        let transaction = store.begin_write().unwrap();
        transaction.clear(b"");
        transaction.clear_range(b"b", b"a");
        transaction.commit().now_or_never().unwrap().unwrap();
        churn(&store, &random);
    }
    let expected = rows(&store);
    let after = killed(folder.path());
    assert!(rows(&open(after.path(), FsyncPolicy::Always)) == expected);
}
