//! The stores that fail on purpose, on the embedded store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use quoin_base::random::SeededRandom;
use quoin_store::faults::*;
use quoin_store::{Isolation, RangeQuery, Store, StoreError, StoreFuture};
use quoin_store_embedded::{EmbeddedOptions, EmbeddedStore, FsyncPolicy};

struct Opened<S> {
    store: S,
    _folder: tempfile::TempDir,
}

fn faulty(rates: FaultRates) -> Opened<FaultyStore<EmbeddedStore>> {
    let folder = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions {
        fsync: FsyncPolicy::EverySecond,
        map_bytes: 64 << 20,
        ..EmbeddedOptions::default()
    };
    let inner = EmbeddedStore::open(folder.path(), options).unwrap();
    Opened {
        store: FaultyStore::new(inner, rates, Arc::new(SeededRandom::new(7))),
        _folder: folder,
    }
}

fn optimistic() -> Opened<OptimisticStore<EmbeddedStore>> {
    let folder = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions {
        fsync: FsyncPolicy::EverySecond,
        map_bytes: 64 << 20,
        ..EmbeddedOptions::default()
    };
    let inner = EmbeddedStore::open(folder.path(), options).unwrap();
    Opened {
        store: OptimisticStore::new(inner),
        _folder: folder,
    }
}

fn wait<T: Unpin>(mut future: StoreFuture<'_, T>) -> Result<T, StoreError> {
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..4 {
        if let Poll::Ready(answer) = Pin::new(&mut future).poll(&mut context) {
            return answer;
        }
    }
    panic!("no answer");
}

fn set(store: &impl Store, key: &[u8]) -> Result<(), StoreError> {
    let transaction = store.begin_write()?;
    transaction.set(key, b"value");
    wait(transaction.commit())
}

fn has(store: &impl Store, key: &[u8]) -> bool {
    let snapshot = store.begin_read().unwrap();
    wait(snapshot.get(key, Isolation::Snapshot))
        .unwrap()
        .is_some()
}

#[test]
fn scripted_commits_fail_in_turn_and_then_no_more() {
    let opened = faulty(FaultRates::default());
    let store = &opened.store;
    store.script(
        FaultPoint::Commit,
        [
            Some(Fault::Conflict),
            None,
            Some(Fault::UnknownApplied),
            Some(Fault::UnknownNotApplied),
            Some(Fault::TooOld),
        ],
    );
    assert!(matches!(set(store, b"1"), Err(StoreError::Conflict)));
    assert!(set(store, b"2").is_ok());
    assert!(matches!(set(store, b"3"), Err(StoreError::UnknownResult)));
    assert!(matches!(set(store, b"4"), Err(StoreError::UnknownResult)));
    assert!(matches!(set(store, b"5"), Err(StoreError::TooOld)));
    assert!(set(store, b"6").is_ok());
    let applied: Vec<bool> = [b"1", b"2", b"3", b"4", b"5", b"6"]
        .map(|key| has(store, key))
        .to_vec();
    assert_eq!(applied, [false, true, true, false, false, true]);
    assert_eq!(
        store.counts(),
        FaultCounts {
            conflict: 1,
            unknown_applied: 1,
            unknown_not_applied: 1,
            too_old: 1,
            unavailable: 0,
        }
    );
}

#[test]
fn a_scripted_begin_is_unavailable_once() {
    let opened = faulty(FaultRates::default());
    let store = &opened.store;
    store.script(FaultPoint::Begin, [Some(Fault::Unavailable)]);
    assert!(matches!(
        store.begin_write().err(),
        Some(StoreError::Unavailable(_))
    ));
    assert!(store.begin_write().is_ok());
}

#[test]
fn a_scripted_read_is_too_old() {
    let opened = faulty(FaultRates::default());
    let store = &opened.store;
    store.script(FaultPoint::Read, [None, Some(Fault::TooOld)]);
    let transaction = store.begin_write().unwrap();
    assert!(wait(transaction.get(b"key", Isolation::Snapshot)).is_ok());
    let query = RangeQuery {
        begin: b"a",
        end: b"b",
        limit: 1,
        reverse: false,
        isolation: Isolation::Snapshot,
    };
    assert!(matches!(
        wait(transaction.get_range(query)),
        Err(StoreError::TooOld)
    ));
}

#[test]
fn a_commit_without_writes_does_not_fail() {
    let opened = faulty(FaultRates {
        conflict_ppm: 1_000_000,
        ..FaultRates::default()
    });
    let transaction = opened.store.begin_write().unwrap();
    assert!(wait(transaction.commit()).is_ok());
}

#[test]
fn rates_are_kept_about() {
    let opened = faulty(FaultRates {
        conflict_ppm: 200_000,
        unknown_applied_ppm: 100_000,
        unknown_not_applied_ppm: 50_000,
        ..FaultRates::default()
    });
    for _ in 0..1000 {
        let _ = set(&opened.store, b"key");
    }
    let counts = opened.store.counts();
    assert!((150..250).contains(&counts.conflict), "{counts:?}");
    assert!((70..130).contains(&counts.unknown_applied), "{counts:?}");
    assert!((30..75).contains(&counts.unknown_not_applied), "{counts:?}");
    assert_eq!(
        counts.total(),
        counts.conflict + counts.unknown_applied + counts.unknown_not_applied
    );
}

#[test]
fn a_smaller_transaction_limit_is_reported_and_enforced() {
    let opened = faulty(FaultRates::default());
    opened.store.set_transaction_bytes_max(100);
    assert_eq!(opened.store.capabilities().transaction_bytes_max, 100);
    let transaction = opened.store.begin_write().unwrap();
    transaction.set(b"key", &[0; 98]);
    assert!(matches!(
        wait(transaction.commit()),
        Err(StoreError::TooLarge)
    ));
}

#[test]
fn an_optimistic_store_answers_at_the_second_poll() {
    let opened = optimistic();
    let transaction = opened.store.begin_write().unwrap();
    let mut read = transaction.get(b"key", Isolation::Snapshot);
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut read).poll(&mut context).is_pending());
    assert!(Pin::new(&mut read).poll(&mut context).is_ready());
}

#[test]
fn an_optimistic_transaction_that_forgot_its_snapshot_is_too_old() {
    let opened = optimistic();
    let old = opened.store.begin_write().unwrap();
    wait(old.get(b"read", Isolation::Serializable)).unwrap();
    old.set(b"written", b"");
    for _ in 0..=quoin_store::faults::optimistic::HISTORY_COMMITS_MAX {
        opened.store.history_push_for_test();
    }
    assert!(matches!(wait(old.commit()), Err(StoreError::TooOld)));
}

#[test]
fn an_optimistic_store_refuses_a_value_that_a_cluster_would_refuse() {
    let opened = optimistic();
    let transaction = opened.store.begin_write().unwrap();
    transaction.set(
        b"key",
        &vec![0; quoin_base::limits::FDB_VALUE_BYTES_MAX + 1],
    );
    assert!(matches!(
        wait(transaction.commit()),
        Err(StoreError::TooLarge)
    ));
}
