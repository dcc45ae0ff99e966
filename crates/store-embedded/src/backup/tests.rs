use std::path::Path;

use futures_util::FutureExt;

use super::*;
use crate::{EmbeddedOptions, FsyncPolicy};
use quoin_base::random::{Random, SeededRandom};
use quoin_store::Store;

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn open(folder: &Path) -> EmbeddedStore {
    let options = EmbeddedOptions {
        fsync: FsyncPolicy::EverySecond,
        map_bytes: 256 << 20,
        ..EmbeddedOptions::default()
    };
    EmbeddedStore::open(folder, options).unwrap()
}

fn churn(store: &EmbeddedStore, random: &SeededRandom) {
    let transaction = store.begin_write().unwrap();
    for _ in 0..30 {
        let key = random.below(400).to_be_bytes();
        match random.below(12) {
            0..4 => transaction.clear(&key),
            4 => transaction.clear_range(&key, &random.below(400).to_be_bytes()),
            _ => transaction.set(&key, &random.next_u64().to_be_bytes()),
        }
    }
    transaction.atomic_add(b"counter", 1);
    transaction.commit().now_or_never().unwrap().unwrap();
}

fn rows(store: &EmbeddedStore) -> Pairs {
    let snapshot = store.begin_read().unwrap();
    let query = RangeQuery {
        begin: b"",
        end: KEYS_END,
        limit: usize::MAX,
        reverse: false,
        isolation: Isolation::Snapshot,
    };
    let rows = snapshot.get_range(query).now_or_never().unwrap().unwrap();
    rows.into_iter()
        .map(|row| (row.key.to_vec(), row.value.to_vec()))
        .collect()
}

fn visited(moment: &Moment) -> Pairs {
    let mut found = Pairs::new();
    moment
        .visit(|key, value| {
            found.push((key.to_vec(), value.to_vec()));
            Ok::<_, StoreError>(())
        })
        .unwrap();
    found
}

#[test]
fn a_moment_stays_as_it_was_wherever_its_rows_lie() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let random = SeededRandom::new(7);
    let mut moments = Vec::new();
    for round in 0..60 {
        churn(&store, &random);
        match round % 7 {
            // In turn: everything is in the data file, some of it is in a closed generation, or
            // most of it is in the open one.
            0 => store.drain_now(),
            3 => store.close_generation(),
            _ => {}
        }
        moments.push((store.moment().unwrap(), rows(&store), store.last_commit()));
    }
    for (moment, expected, commit) in &moments {
        assert_eq!(moment.commit(), *commit);
        assert!(moment.rows_about() >= expected.len() as u64);
        assert!(visited(moment) == *expected, "commit {commit}");
    }
}

#[test]
fn commits_are_counted_on_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let random = SeededRandom::new(7);
    let store = open(folder.path());
    let first = store.moment().unwrap().commit();
    for _ in 0..3 {
        churn(&store, &random);
    }
    assert_eq!(store.moment().unwrap().commit(), first + 3);
    let expected = rows(&store);
    drop(store);
    let store = open(folder.path());
    let moment = store.moment().unwrap();
    assert_eq!(
        (moment.commit(), store.last_commit()),
        (first + 3, first + 3)
    );
    assert!(visited(&moment) == expected);
    churn(&store, &random);
    assert_eq!(store.moment().unwrap().commit(), first + 4);
}

#[test]
fn the_error_of_a_visitor_ends_the_visit() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    churn(&store, &SeededRandom::new(7));
    let mut visits = 0;
    let ended = store.moment().unwrap().visit(|_, _| {
        visits += 1;
        Err(StoreError::TooOld)
    });
    assert!(matches!(ended, Err(StoreError::TooOld)));
    assert_eq!(visits, 1);
}
