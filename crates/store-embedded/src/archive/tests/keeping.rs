//! The archive of a store that is open.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures_util::FutureExt;

use crate::archive::{ArchiveError, Limit, Reached, read_archive};
use crate::{EmbeddedOptions, EmbeddedStore, FsyncPolicy, OpenError, Restoration, RestoreError};
use quoin_base::random::{Random, SeededRandom};
use quoin_store::{Isolation, RangeQuery, Store, StoreError};

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn open(folder: &Path) -> EmbeddedStore {
    let options = EmbeddedOptions {
        fsync: FsyncPolicy::EverySecond,
        map_bytes: 256 << 20,
        ..EmbeddedOptions::default()
    };
    let archive = archive(folder);
    EmbeddedStore::open_archived(&folder.join("data"), options, Some(&archive)).unwrap()
}

fn archive(folder: &Path) -> PathBuf {
    folder.join("archive")
}

fn try_churn(store: &EmbeddedStore, random: &SeededRandom) -> Result<(), StoreError> {
    let transaction = store.begin_write()?;
    for _ in 0..20 {
        let key = random.below(300).to_be_bytes();
        match random.below(10) {
            0..3 => transaction.clear(&key),
            3 => transaction.clear_range(&key, &random.below(300).to_be_bytes()),
            _ => transaction.set(&key, &vec![7; random.below(500) as usize]),
        }
    }
    transaction.atomic_add(b"counter", 3);
    transaction.commit().now_or_never().unwrap()
}

fn churn(store: &EmbeddedStore, random: &SeededRandom) {
    try_churn(store, random).unwrap();
}

fn rows(store: &EmbeddedStore) -> Pairs {
    let snapshot = store.begin_read().unwrap();
    let query = RangeQuery {
        begin: b"",
        end: b"\xff",
        limit: usize::MAX,
        reverse: false,
        isolation: Isolation::Snapshot,
    };
    let rows = snapshot.get_range(query).now_or_never().unwrap().unwrap();
    rows.into_iter()
        .map(|row| (row.key.to_vec(), row.value.to_vec()))
        .collect()
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A store with these rows, and with the archived commits after them.
fn replayed(
    folder: &Path,
    store: &EmbeddedStore,
    base: (&Pairs, u64),
    limit: Limit,
) -> Result<(Pairs, Reached), RestoreError> {
    let target = folder.join("replayed");
    if target.exists() {
        std::fs::remove_dir_all(&target).unwrap();
    }
    let restoration = Restoration::begin(&target)?;
    let (pairs, commit) = base;
    let given = pairs
        .iter()
        .map(|(key, value)| Ok::<_, StoreError>((key, value)));
    restoration.write(commit, given, &mut |_| {})?;
    let replaying = restoration.open(commit)?;
    let after = Reached {
        commit,
        time_ms: None,
    };
    let id = store.id();
    let reached = read_archive(&archive(folder), &id, after, limit, |archived| {
        replaying.apply(archived)
    })?;
    let new_id = restoration.finish(replaying, reached.commit, None)?;
    assert_ne!(new_id, id);
    let restored = EmbeddedStore::open(&target, EmbeddedOptions::default()).unwrap();
    assert_eq!(restored.last_commit(), reached.commit);
    Ok((rows(&restored), reached))
}

#[test]
fn every_commit_can_be_gone_to() {
    let folder = tempfile::tempdir().unwrap();
    let random = SeededRandom::new(5);
    let store = open(folder.path());
    let mut model = Vec::new();
    let mut base = (Pairs::new(), 0);
    for number in 0..60 {
        churn(&store, &random);
        model.push((store.last_commit(), rows(&store)));
        if number == 20 {
            base = (rows(&store), store.last_commit());
        }
        if number % 25 == 24 {
            // This uses several files of the journal.
            wait_for("archived", || {
                store.archive_status().unwrap().last == Some(store.last_commit())
            });
        }
    }
    wait_for("archived", || {
        store.archive_status().unwrap().last == Some(store.last_commit())
    });
    for at in [20, 21, 33, 49, 50, 59] {
        let (commit, expected) = &model[at];
        let limit = Limit::Commit(*commit);
        let (found, _) = replayed(folder.path(), &store, (&base.0, base.1), limit).unwrap();
        assert!(found == *expected, "commit {commit}");
    }
    let (found, reached) = replayed(folder.path(), &store, (&base.0, base.1), Limit::End).unwrap();
    assert!(found == rows(&store));
    assert_eq!(reached.commit, store.last_commit());
}

#[test]
fn a_store_that_is_closed_leaves_a_whole_archive() {
    let folder = tempfile::tempdir().unwrap();
    let random = SeededRandom::new(6);
    let mut commits = Vec::new();
    for _ in 0..4 {
        let store = open(folder.path());
        for _ in 0..7 {
            churn(&store, &random);
            commits.push(store.last_commit());
        }
    }
    let store = open(folder.path());
    assert_eq!(
        store.archive_status().unwrap().last,
        commits.last().copied()
    );
    let (found, _) = replayed(folder.path(), &store, (&Pairs::new(), 0), Limit::End).unwrap();
    assert!(found == rows(&store));
}

#[test]
fn a_full_journal_that_cannot_be_archived_refuses_writes_until_it_can() {
    let folder = tempfile::tempdir().unwrap();
    let random = SeededRandom::new(7);
    let mut store = open(folder.path());
    store.journal_bytes_max = 20_000;
    churn(&store, &random);
    wait_for("archived", || {
        store.archive_status().unwrap().last == Some(store.last_commit())
    });
    let aside = folder.path().join("aside");
    std::fs::rename(archive(folder.path()), &aside).unwrap();
    let begun = Instant::now();
    let refused = loop {
        if let Err(error) = try_churn(&store, &random) {
            break error;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "never refused");
    };
    let text = refused.to_string();
    assert!(text.contains("cannot be archived"), "{text}");
    assert!(matches!(refused, StoreError::Unavailable(_)));
    let before = rows(&store);
    std::fs::rename(&aside, archive(folder.path())).unwrap();
    wait_for("writes are taken", || try_churn(&store, &random).is_ok());
    assert_ne!(rows(&store), before);
    wait_for("archived", || {
        store.archive_status().unwrap().last == Some(store.last_commit())
    });
    assert_eq!(store.archive_status().unwrap().error, None);
    let (found, _) = replayed(folder.path(), &store, (&Pairs::new(), 0), Limit::End).unwrap();
    assert!(found == rows(&store));
}

#[test]
fn a_store_that_cannot_archive_when_it_is_closed_goes_on_later() {
    let folder = tempfile::tempdir().unwrap();
    let random = SeededRandom::new(8);
    let store = open(folder.path());
    let aside = folder.path().join("aside");
    std::fs::rename(archive(folder.path()), &aside).unwrap();
    for _ in 0..5 {
        churn(&store, &random);
    }
    let (expected, last) = (rows(&store), store.last_commit());
    drop(store);
    std::fs::rename(&aside, archive(folder.path())).unwrap();
    let store = open(folder.path());
    assert!(rows(&store) == expected);
    assert_eq!(store.archive_status().unwrap().last, Some(last));
    let (found, _) = replayed(folder.path(), &store, (&Pairs::new(), 0), Limit::End).unwrap();
    assert!(found == expected);
}

#[test]
fn a_store_of_an_earlier_state_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let random = SeededRandom::new(9);
    let data = folder.path().join("data");
    let copy = folder.path().join("data.mdb");
    churn(&open(folder.path()), &random);
    std::fs::copy(data.join("data.mdb"), &copy).unwrap();
    churn(&open(folder.path()), &random);
    std::fs::copy(&copy, data.join("data.mdb")).unwrap();
    let options = EmbeddedOptions::default();
    let opened = EmbeddedStore::open_archived(&data, options, Some(&archive(folder.path())));
    let Err(OpenError::Archive { source }) = opened else {
        panic!("it must be refused");
    };
    assert!(matches!(source, ArchiveError::Ahead { .. }), "{source}");
}
