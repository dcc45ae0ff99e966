use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::Waiter;
use crate::testing::{Bench, invocation, words_of};
use quoin_data::command::waits::WaitSpec;
use quoin_layout::ValueType;

fn lane(bench: &Bench) -> WriteLane {
    WriteLane::new(
        Arc::clone(&bench.store),
        Arc::clone(bench.executor.environment()),
        Arc::default(),
        Arc::default(),
    )
}

fn done(answered: usize, commands: usize, duration: Duration) -> BatchResult {
    BatchResult {
        slot: Slot::new(0),
        locks: vec![KeyLocks::Keys([1].into_iter().collect())],
        not_run: Vec::new(),
        answered,
        commands,
        duration,
        late: None,
        commit_wait: None,
    }
}

const LONG: Duration = Duration::from_secs(1);

/// Whether a batch's keys are free after it ends.
fn is_free_after(lane: &mut WriteLane, done: BatchResult) -> bool {
    for locks in &done.locks {
        lane.locked.add(locks);
    }
    let locks = done.locks.clone();
    lane.release(done, true);
    locks.iter().all(|locks| lane.locked.is_free(locks))
}

#[test]
fn a_key_is_kept_until_the_clients_of_its_batch_are_back() {
    let bench = Bench::cluster_like();
    let mut lane = lane(&bench);
    assert!(!is_free_after(&mut lane, done(2, 2, LONG)));
    lane.arrived += 1;
    lane.release_held();
    assert_eq!(lane.held.len(), 1);
    lane.arrived += 1;
    lane.release_held();
    assert!(lane.held.is_empty());
    assert!(is_free_after(&mut lane, done(1, 1, LONG)));
}

#[test]
fn keys_with_a_client_each_are_not_kept() {
    let bench = Bench::cluster_like();
    let mut lane = lane(&bench);
    let of_two_keys = || BatchResult {
        locks: vec![KeyLocks::Keys(vec![1]), KeyLocks::Keys(vec![2])],
        ..done(2, 2, LONG)
    };
    assert!(is_free_after(&mut lane, of_two_keys()));
    // Each push woke a waiting client.
    let pushed = BatchResult {
        answered: 4,
        ..of_two_keys()
    };
    assert!(is_free_after(&mut lane, pushed));
    let third = BatchResult {
        commands: 3,
        answered: 3,
        ..of_two_keys()
    };
    assert!(!is_free_after(&mut lane, third));
}

#[test]
fn a_key_is_kept_no_longer_than_the_pause() {
    let bench = Bench::cluster_like();
    let mut lane = lane(&bench);
    assert!(!is_free_after(&mut lane, done(2, 2, LONG)));
    std::thread::sleep(GATHER_CLUSTER_MAX);
    lane.release_held();
    assert!(lane.held.is_empty());
}

/// A lane with a client that waits for the key, parked by a running batch.
fn awaited(bench: &Bench, key: &ClientKey) -> WriteLane {
    let mut lane = lane(bench);
    let spec = WaitSpec::to_take(ValueType::List, std::slice::from_ref(&key.key), None);
    let blpop = invocation(key.database, &words_of("BLPOP q 0"));
    let (waiter, _outcome) = Waiter::new(blpop, spec);
    lane.shared.waiters.park(&waiter, 0);
    lane.shared.waiters.settle(&waiter, 0);
    lane.locked.add(&locks_of(key));
    lane
}

fn locks_of(key: &ClientKey) -> KeyLocks {
    KeyLocks::Keys([KeyLocks::hash_key(key.database, &key.key)].into())
}

fn some_key() -> ClientKey {
    ClientKey {
        database: 0,
        key: Bytes::from_static(b"q"),
    }
}

fn wake_up(lane: &mut WriteLane) {
    lane.shared
        .waiters
        .schedule_wake_up(some_key(), Cursor::START);
    lane.take_scheduled();
}

#[test]
fn however_many_wake_ups_of_a_busy_key_are_scheduled_it_is_checked_once() {
    let bench = Bench::cluster_like();
    let mut lane = awaited(&bench, &some_key());
    for _ in 0..10_000 {
        wake_up(&mut lane);
        assert!(lane.form_batch(true, 8).is_empty());
    }
    assert_eq!(lane.pending.len(), 1);
}

#[test]
fn a_wake_up_that_is_scheduled_during_a_check_has_the_key_checked_again() {
    let bench = Bench::cluster_like();
    let mut lane = awaited(&bench, &some_key());
    wake_up(&mut lane);
    lane.locked.release(&locks_of(&some_key()));
    let mut taken = lane.form_batch(true, 8);
    assert_eq!(taken.len(), 1);
    wake_up(&mut lane);
    assert_eq!(lane.pending.len(), 1);
    // The same applies if the batch returns the wake-up without running it.
    lane.put_in_front(taken.remove(0));
    assert_eq!(lane.pending.len(), 1);
}

#[test]
fn a_wake_up_that_is_scheduled_during_a_check_has_all_checked_after_its_end() {
    let bench = Bench::cluster_like();
    let mut lane = awaited(&bench, &some_key());
    wake_up(&mut lane);
    let cursor = Cursor::START.at(65);
    lane.shared.waiters.schedule_wake_up(some_key(), cursor);
    lane.take_scheduled();
    assert_eq!(lane.pending.len(), 1);
    let expected = Cursor {
        restarts: true,
        ..cursor
    };
    let (key, cursor) = wake_up_of(&mut lane.pending[0]).unwrap();
    assert_eq!((key, *cursor), (&some_key(), expected));
}

#[test]
fn no_batch_waits_after_one_that_is_large_or_fast() {
    let bench = Bench::cluster_like();
    let mut lane = lane(&bench);
    assert!(is_free_after(&mut lane, done(1, 1, LONG)));
    let large = done(2, GATHER_CLUSTER_COMMANDS_MAX, LONG);
    assert!(is_free_after(&mut lane, large));
    assert!(is_free_after(&mut lane, done(2, 2, GATHER_CLUSTER_MIN)));
}
