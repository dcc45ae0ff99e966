use std::sync::Mutex;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::*;
use crate::testing::{Bench, bulks};
use quoin_base::clock::Clock;
use quoin_base::events::EventClasses;
use quoin_base::limits::{DATABASES, RETAINED_REST_MS, TASK_DUE_PER_PASS};
use quoin_base::random::SeededRandom;
use quoin_data::cluster::delegation::GRANT_EXPIRY_MS;
use quoin_data::keyspace::key::ClientKey;
use quoin_data::list::{End, ListMut};
use quoin_data::unit::context::{NamespaceCache, WriteContext};
use quoin_data::unit::signals::{ChannelKind, Message, Signals, Subscribers};
use quoin_layout::{
    Grant, Id, KeyName, KeyRange, Layout, PoppedElement, Space, ValueType, encode_elements,
};
use quoin_resp::reply::Reply;
use quoin_store::faults::{FaultRates, FaultyStore, OptimisticStore};
use quoin_store::{Isolation, RangeQuery, StoreError};

fn on_both_stores(test: impl Fn(&Bench)) {
    test(&Bench::embedded());
    test(&Bench::cluster_like());
}

/// Makes passes until there is nothing left to do.
fn run_dry(bench: &Bench, reaper: &mut Reaper) -> usize {
    for passes in 0..1000 {
        if !bench.block_on(reaper.pass(&bench.executor)).unwrap() {
            return passes;
        }
    }
    panic!("the reaper finds no end");
}

/// Sweeps unused retained metadata in all databases. Returns how many rows.
fn sweep_all(bench: &Bench, reaper: &mut Reaper) -> u64 {
    let passes = (0..2 * DATABASES).map(|_| {
        bench.clock.advance_ms(RETAINED_REST_MS);
        bench
            .block_on(reaper.sweep_empty_keys(&bench.executor))
            .unwrap()
    });
    passes.sum()
}

/// Number of rows in a space of the layout.
fn rows_in(bench: &Bench, space: Space) -> usize {
    let mut prefix = foundationdb_tuple::pack(&("test",));
    foundationdb_tuple::pack_into(&(space as u64,), &mut prefix);
    let range = KeyRange::children(&prefix);
    let snapshot = bench.store.begin_read().unwrap();
    let rows = bench.block_on(snapshot.get_range(RangeQuery {
        begin: &range.begin,
        end: &range.end,
        limit: usize::MAX,
        reverse: false,
        isolation: Isolation::Snapshot,
    }));
    rows.unwrap().len()
}

fn assert_nothing_is_left(bench: &Bench) {
    for space in [Space::Keys, Space::Data, Space::Expiry, Space::Trash] {
        assert_eq!(rows_in(bench, space), 0, "{space:?}");
    }
}

#[test]
fn of_priority_queues_nothing_is_left() {
    on_both_stores(|bench| {
        let mut reaper = Reaper::new(&bench.executor);
        let long = "v".repeat(200_000);
        for line in [
            "DEL q",
            "UNLINK q",
            "FLUSHDB",
            "PEXPIRE q 10",
            "RENAME l q",
            "PQ.POPMAX q 9",
        ] {
            bench.run(&format!("PQ.PUSH q 1 a 1.5 {long} 2 b"));
            bench.run("RPUSH l x");
            bench.run(line);
            bench.run("DEL l");
            if line.starts_with("RENAME") {
                bench.run("LPOP q");
            }
            bench.clock.advance_ms(10_000);
            run_dry(bench, &mut reaper);
            sweep_all(bench, &mut reaper);
            assert_nothing_is_left(bench);
        }
    });
}

#[test]
fn of_task_queues_nothing_is_left() {
    on_both_stores(|bench| {
        let mut reaper = Reaper::new(&bench.executor);
        for line in [
            "TASK.TAKE q COUNT 500 HAVING gb 9",
            "TASK.CANCEL q a b",
            "DEL q",
            "FLUSHDB",
            "PEXPIRE q 10",
        ] {
            if !line.starts_with("TASK.CANCEL") {
                for number in 0..200 {
                    bench.run(&format!(
                        "TASK.ADD q {number} job NEEDS gb {}",
                        number % 9 + 1
                    ));
                }
            }
            bench.run("TASK.ADD q 1 job ID a");
            bench.run("TASK.ADD q 1 job ID b DELAY 5");
            bench.clock.advance_ms(10);
            bench.run(line);
            bench.clock.advance_ms(10_000);
            run_dry(bench, &mut reaper);
            sweep_all(bench, &mut reaper);
            assert_eq!(bench.run("EXISTS q"), Reply::Integer(0), "{line}");
            assert_nothing_is_left(bench);
        }
    });
}

#[test]
fn expired_keys_are_removed_with_all_their_rows() {
    on_both_stores(|bench| {
        let mut reaper = Reaper::new(&bench.executor);
        for number in 0..150 {
            bench.run(&format!("RPUSH key:{number} a b c"));
            bench.run(&format!("PEXPIRE key:{number} {}", 100 + number));
        }
        assert_eq!(run_dry(bench, &mut reaper), 0);
        bench.clock.advance_ms(149);
        run_dry(bench, &mut reaper);
        assert_eq!(bench.executor.statistics().expired_keys.get(), 50);
        assert_eq!(rows_in(bench, Space::Expiry), 100);
        bench.clock.advance_ms(1000);
        run_dry(bench, &mut reaper);
        assert_eq!(bench.executor.statistics().expired_keys.get(), 150);
        assert_nothing_is_left(bench);
    });
}

/// A subscriber of everything.
struct Listening;

impl Subscribers for Listening {
    fn count(&self, _: ChannelKind, _: &[u8]) -> usize {
        1
    }

    fn deliver(&self, _: &Message) {}

    fn is_empty(&self) -> bool {
        false
    }
}

/// Makes a bench report expired keys, by key and by event.
fn telling_of_expired_keys(bench: Bench) -> Bench {
    bench.served_with(|environment| {
        let classes = EventClasses::parse("KEx").unwrap();
        environment.keyspace_events.set(classes);
        environment.subscribers = Some(Arc::new(Listening));
    })
}

#[test]
fn keys_whose_names_are_large_together_expire_although_all_are_told() {
    for (bench, keys, name_bytes) in [
        // The notifications exceed what a client's call may publish and what a transaction can
        // hold.
        (Bench::embedded(), 110, 1_300_000),
        (Bench::cluster_like(), 120, 48_000),
    ] {
        let bench = telling_of_expired_keys(bench);
        let mut reaper = Reaper::new(&bench.executor);
        for number in 0..keys {
            let name = format!("{number:04}{}", "n".repeat(name_bytes));
            let set: [&[u8]; 5] = [b"SET", name.as_bytes(), b"v", b"PX", b"1"];
            assert_eq!(bench.run_words(&set), Reply::OK);
        }
        bench.clock.advance_ms(10);
        let passes = run_dry(&bench, &mut reaper);
        assert!(passes > 1, "a pass tells little");
        assert_eq!(bench.executor.statistics().expired_keys.get(), keys);
        assert_nothing_is_left(&bench);
    }
}

#[test]
fn a_key_whose_expiry_was_put_off_stays() {
    on_both_stores(|bench| {
        let mut reaper = Reaper::new(&bench.executor);
        bench.run("RPUSH a 1");
        bench.run("EXPIRE a 1");
        bench.run("EXPIRE a 100");
        bench.run("RPUSH b 1");
        bench.run("EXPIRE b 1");
        bench.run("PERSIST b");
        bench.run("RPUSH c 1");
        bench.run("EXPIRE c 1");
        bench.run("RENAME c d");
        bench.clock.advance_ms(10_000);
        run_dry(bench, &mut reaper);
        assert_eq!(bench.run("LRANGE a 0 -1"), bulks(&["1"]));
        assert_eq!(bench.run("LRANGE b 0 -1"), bulks(&["1"]));
        assert_eq!(bench.run("EXISTS c d"), Reply::Integer(0));
        assert_eq!(bench.executor.statistics().expired_keys.get(), 1);
    });
}

#[test]
fn expired_keys_stay_while_active_expiry_is_off() {
    on_both_stores(|bench| {
        let mut reaper = Reaper::new(&bench.executor);
        reaper.expires_actively.store(false, Ordering::Relaxed);
        bench.run("RPUSH a 1");
        bench.run("EXPIRE a 1");
        bench.clock.advance_ms(1000);
        assert_eq!(run_dry(bench, &mut reaper), 0);
        assert_eq!(rows_in(bench, Space::Expiry), 1);
        assert_eq!(bench.run("EXISTS a"), Reply::Integer(0));
        reaper.expires_actively.store(true, Ordering::Relaxed);
        run_dry(bench, &mut reaper);
        assert_nothing_is_left(bench);
    });
}

#[test]
fn flushall_leaves_no_row_behind() {
    on_both_stores(|bench| {
        let mut reaper = Reaper::new(&bench.executor);
        for database in [0, 3] {
            for number in 0..50 {
                let name = format!("key:{number}");
                bench.run_in(database, &[b"RPUSH", name.as_bytes(), b"a", b"b"]);
                bench.run_in(database, &[b"EXPIRE", name.as_bytes(), b"100"]);
            }
            bench.run_in(database, &[b"RPUSH", &[b'n'; 5000], &[b'v'; 300_000]]);
        }
        bench.run("FLUSHALL");
        assert_eq!(rows_in(bench, Space::Trash), 2);
        bench.run("RPUSH new 1");
        run_dry(bench, &mut reaper);
        assert_eq!(bench.run("LRANGE new 0 -1"), bulks(&["1"]));
        bench.run("DEL new");
        run_dry(bench, &mut reaper);
        assert_nothing_is_left(bench);
    });
}

#[test]
fn a_large_list_is_cleared_in_several_passes() {
    let bench = Bench::embedded();
    let mut reaper = Reaper::new(&bench.executor);
    let mut words: Vec<&[u8]> = vec![b"RPUSH", b"l"];
    // Large enough for a row each.
    words.extend(std::iter::repeat_n(&[b'x'; 1_000][..], 5_000));
    bench.run_words(&words);
    bench.run("DEL l");
    bench.block_on(reaper.pass(&bench.executor)).unwrap();
    assert_eq!(rows_in(&bench, Space::Data), 5_000 - REAPER_ROWS_PER_PASS);
    assert!(run_dry(&bench, &mut reaper) >= 2);
    assert_nothing_is_left(&bench);
}

#[test]
fn retained_metadata_is_swept_and_lists_that_live_stay() {
    let bench = Bench::cluster_like();
    let mut reaper = Reaper::new(&bench.executor);
    for number in 0..100 {
        bench.run(&format!("RPUSH empty:{number} a"));
        bench.run(&format!("LPOP empty:{number}"));
        bench.run(&format!("RPUSH key:{number} a"));
    }
    bench.run_in(9, &[b"RPUSH", b"empty", b"a"]);
    bench.run_in(9, &[b"LPOP", b"empty"]);
    // Each key has metadata and a length. Empty keys may have both, too.
    assert!(rows_in(&bench, Space::Keys) > 300);
    assert_eq!(sweep_all(&bench, &mut reaper), 101);
    assert_eq!(rows_in(&bench, Space::Keys), 200);
    assert_eq!(bench.run("DBSIZE"), Reply::Integer(100));
    assert_eq!(bench.run("RPUSH empty:1 b"), Reply::Integer(1));
}

/// An empty key `l` in database 0.
fn bench_with_empty_key() -> Bench {
    let bench = Bench::cluster_like();
    bench.run("RPUSH l a");
    bench.run("LPOP l");
    bench
}

#[test]
fn a_push_that_commits_before_the_sweep_is_not_lost() {
    let bench = bench_with_empty_key();
    let transaction = bench.store.begin_write().unwrap();
    let namespaces = NamespaceCache::default();
    let signals = Signals::default();
    let environment = bench.executor.environment();
    let context = WriteContext::new(&*transaction, environment, &namespaces, &signals, 0, 0);
    let (_, retained) = bench.block_on(context.retained(0, 100)).unwrap();
    assert!(
        bench
            .block_on(context.sweep_retained(&retained[0]))
            .unwrap()
    );
    assert_eq!(bench.run("RPUSH l b"), Reply::Integer(1));
    let committed = bench.block_on(transaction.commit());
    assert!(
        matches!(committed, Err(StoreError::Conflict)),
        "{committed:?}"
    );
    assert_eq!(bench.run("LRANGE l 0 -1"), bulks(&["b"]));
}

#[test]
fn an_empty_queue_that_was_used_since_it_was_found_is_not_swept() {
    let bench = bench_with_empty_key();
    let transaction = bench.store.begin_write().unwrap();
    let namespaces = NamespaceCache::default();
    let signals = Signals::default();
    let environment = bench.executor.environment();
    let context = WriteContext::new(&*transaction, environment, &namespaces, &signals, 0, 0);
    let (_, retained) = bench.block_on(context.retained(0, 100)).unwrap();
    bench.run("RPUSH l b");
    bench.run("LPOP l");
    let transaction = bench.store.begin_write().unwrap();
    let context = WriteContext::new(&*transaction, environment, &namespaces, &signals, 0, 0);
    assert!(
        !bench
            .block_on(context.sweep_retained(&retained[0]))
            .unwrap()
    );
    // The check does not conflict with the next push either, whatever else is committed with it.
    transaction.set(b"other", b"");
    bench.run("RPUSH l c");
    bench.block_on(transaction.commit()).unwrap();
}

#[test]
fn a_push_that_commits_after_the_sweep_is_run_again() {
    let bench = bench_with_empty_key();
    let mut reaper = Reaper::new(&bench.executor);
    let transaction = bench.store.begin_write().unwrap();
    let namespaces = NamespaceCache::default();
    let signals = Signals::default();
    let environment = bench.executor.environment();
    let context = WriteContext::new(&*transaction, environment, &namespaces, &signals, 0, 0);
    let name = Bytes::from("l");
    let values = [Bytes::from("b")];
    bench.block_on(async {
        let key = context.find(&name, ValueType::List).await.unwrap().unwrap();
        let list = ListMut::open(&context, &key);
        list.push(&values, End::Right).await.unwrap();
    });
    assert_eq!(sweep_all(&bench, &mut reaper), 1);
    let committed = bench.block_on(transaction.commit());
    assert!(
        matches!(committed, Err(StoreError::Conflict)),
        "{committed:?}"
    );
}

#[test]
fn the_task_works_by_itself_and_lets_go_of_the_executor_when_it_is_stopped() {
    let bench = Bench::embedded();
    bench.run("RPUSH a 1");
    bench.run("EXPIRE a 1");
    bench.clock.advance_ms(1000);
    bench.block_on(async {
        let handle = Reaper::spawn(Arc::clone(&bench.executor), None);
        while bench.executor.statistics().expired_keys.get() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        handle.stop().await;
    });
    assert_eq!(Arc::strong_count(&bench.executor), 1);
}

#[test]
fn a_job_that_waits_for_a_key_does_not_keep_the_others_waiting() {
    let bench = Bench::cluster_like();
    bench.run("ZADD large 1 a");
    bench.run("SET gone 1 PX 1");
    let large = ClientKey {
        database: 0,
        key: "large".into(),
    };
    bench.block_on(async {
        // A client uses the key for as long as the test wants.
        let lock = KeyLocks::Alone(vec![KeyLocks::hash_key(0, b"large")]);
        let (begun, has_begun) = oneshot::channel();
        let (go_on, may_go_on) = oneshot::channel();
        let wait = Arc::new(Mutex::new(Some((begun, may_go_on))));
        let executor = Arc::clone(&bench.executor);
        let client = tokio::spawn(async move {
            let used = executor.transact(0, lock, move |_| {
                let wait = Arc::clone(&wait);
                Box::pin(async move {
                    let once = wait.lock().unwrap().take();
                    if let Some((begun, may_go_on)) = once {
                        begun.send(()).unwrap();
                        may_go_on.await.unwrap();
                    }
                    Ok(())
                })
            });
            used.await.unwrap();
        });
        has_begun.await.unwrap();
        bench.executor.environment().rank_wants.add(large);
        let handle = Reaper::spawn(Arc::clone(&bench.executor), None);
        // Once the request has been taken, the job has begun and waits.
        while bench.executor.environment().rank_wants.is_wanted() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        bench.clock.advance_ms(1);
        while bench.executor.statistics().expired_keys.get() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        go_on.send(()).unwrap();
        client.await.unwrap();
        handle.stop().await;
    });
}

#[test]
fn faults_of_the_store_leave_nothing_behind_and_count_nothing_twice() {
    let rates = FaultRates {
        conflict_ppm: 100_000,
        unknown_applied_ppm: 100_000,
        unknown_not_applied_ppm: 100_000,
        too_old_ppm: 2_000,
        unavailable_ppm: 0,
    };
    let random = Arc::new(SeededRandom::new(11));
    let bench =
        Bench::with(|store| Arc::new(FaultyStore::new(OptimisticStore::new(store), rates, random)));
    let mut reaper = Reaper::new(&bench.executor);
    for number in 0..60 {
        bench.run(&format!("RPUSH key:{number} a b"));
        bench.run(&format!("PEXPIRE key:{number} {}", 1 + number));
        bench.clock.advance_ms(1);
        bench.block_on(reaper.pass(&bench.executor)).unwrap();
    }
    bench.clock.advance_ms(1000);
    run_dry(&bench, &mut reaper);
    assert_eq!(bench.executor.statistics().expired_keys.get(), 60);
    for number in 0..60 {
        bench.run(&format!("RPUSH key:{number} a b"));
    }
    bench.run("FLUSHALL");
    run_dry(&bench, &mut reaper);
    assert_nothing_is_left(&bench);
}

/// Puts an unreadable row into a space.
fn spoil(bench: &Bench, space: Space) {
    let mut row = foundationdb_tuple::pack(&("test",));
    foundationdb_tuple::pack_into(&(space as u64,), &mut row);
    row.push(0);
    let transaction = bench.store.begin_write().unwrap();
    transaction.set(&row, b"");
    bench.block_on(transaction.commit()).unwrap();
}

#[test]
fn a_pass_that_fails_does_not_keep_the_others_from_their_turn() {
    let bench = bench_with_empty_key();
    let mut reaper = Reaper::new(&bench.executor);
    bench.run("TASK.ADD q 1 x DELAY 1000");
    bench.run("RPUSH trash x");
    bench.run("DEL trash");
    let before = rows_in(&bench, Space::Keys);
    spoil(&bench, Space::Expiry);
    bench.clock.advance_ms(10_000);
    for _ in 0..2 * DATABASES {
        bench.clock.advance_ms(RETAINED_REST_MS);
        let failed = bench.block_on(async {
            let mut failed = 0;
            for job in JOBS {
                let run = (job.run)(&mut reaper, &bench.executor).await;
                failed += u32::from(matches!(run, Err(JobError::Failed(_))));
            }
            failed
        });
        assert_eq!(failed, 1);
    }
    assert_eq!(rows_in(&bench, Space::Timers), 0);
    assert_eq!(rows_in(&bench, Space::Trash), 0);
    assert!(rows_in(&bench, Space::Keys) < before);
}

#[test]
fn timers_that_fail_do_not_keep_retained_metadata() {
    let bench = bench_with_empty_key();
    let mut reaper = Reaper::new(&bench.executor);
    spoil(&bench, Space::Timers);
    for _ in 0..2 * DATABASES {
        bench.clock.advance_ms(RETAINED_REST_MS);
        let failed = bench.block_on(async {
            let mut failed = 0;
            for job in JOBS {
                let run = (job.run)(&mut reaper, &bench.executor).await;
                failed += u32::from(matches!(run, Err(JobError::Failed(_))));
            }
            failed
        });
        assert_eq!(failed, 1);
    }
    assert_eq!(rows_in(&bench, Space::Keys), 0);
}

/// Adds tasks of this size whose leases have ended.
fn add_lapsed(bench: &Bench, queue: &str, tasks: usize, bytes: usize) {
    let payload = "x".repeat(bytes);
    for _ in 0..tasks {
        bench.run(&format!("TASK.ADD {queue} 1 {payload} NEEDS gb 1"));
        bench.run(&format!("TASK.TAKE {queue} HAVING gb 1 LEASE 1000"));
    }
    bench.clock.advance_ms(2_000);
}

fn leased(bench: &Bench, queue: &str) -> usize {
    match bench.run(&format!("TASK.LEN {queue} LEASED")) {
        Reply::Integer(count) => usize::try_from(count).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn leases_of_large_tasks_are_put_back_over_several_passes() {
    let bench = Bench::cluster_like();
    let mut reaper = Reaper::new(&bench.executor);
    add_lapsed(&bench, "q", 128, 80_000);
    assert!(run_dry(&bench, &mut reaper) > 5);
    assert_eq!(leased(&bench, "q"), 0);
}

#[test]
fn a_take_beside_many_large_tasks_that_have_lapsed_succeeds() {
    let bench = Bench::cluster_like();
    add_lapsed(&bench, "q", 128, 80_000);
    let taken = bench.run("TASK.TAKE q HAVING gb 1");
    assert!(matches!(taken, Reply::Array(_)), "{taken:?}");
    let left = leased(&bench, "q");
    assert!((64..128).contains(&left), "{left}");
}

#[test]
fn a_take_leases_as_many_large_tasks_as_a_transaction_has_room_for() {
    let bench = Bench::cluster_like();
    let payload = "x".repeat(80_000);
    for _ in 0..128 {
        bench.run(&format!("TASK.ADD q 1 {payload}"));
    }
    let mut left = 128;
    while left > 0 {
        let taken = bench.run("TASK.TAKE q COUNT 128 LEASE 100000");
        match taken {
            Reply::Array(tasks) => assert!((1..=left).contains(&tasks.len()), "{}", tasks.len()),
            other => panic!("{other:?}"),
        }
        assert!(leased(&bench, "q") > 128 - left);
        left = 128 - leased(&bench, "q");
    }
}

#[test]
fn a_take_leases_one_task_however_full_its_transaction_is() {
    let bench = Bench::cluster_like();
    let payload = "x".repeat(80_000);
    let add = format!("TASK.ADD q 1 {payload}");
    let mut lines = vec![add.as_str(); 13];
    lines.push("TASK.TAKE q COUNT 9 LEASE 1000");
    assert!(matches!(bench.exec(&lines), Reply::Array(_)));
    assert_eq!(leased(&bench, "q"), 1);
}

#[test]
fn a_pass_over_timers_ends_when_its_transaction_is_old() {
    let bench = Bench::cluster_like();
    add_lapsed(&bench, "a", 40, 10);
    add_lapsed(&bench, "b", 40, 10);
    let transaction = bench.store.begin_write().unwrap();
    let namespaces = NamespaceCache::default();
    let signals = Signals::default();
    let environment = bench.executor.environment();
    let now_ms = bench.clock.now_ms();
    bench.clock.advance_ms(1_000);
    let context = WriteContext::new(&*transaction, environment, &namespaces, &signals, now_ms, 0);
    assert!(
        bench
            .block_on(timers::run_due(&context, Timers::Queues, 0, None))
            .unwrap()
            > 0
    );
    bench.block_on(transaction.commit()).unwrap();
    let left = leased(&bench, "a") + leased(&bench, "b");
    assert!((40..80).contains(&left), "{left}");
    run_dry(&bench, &mut Reaper::new(&bench.executor));
    assert_eq!(leased(&bench, "a") + leased(&bench, "b"), 0);
}

#[test]
fn a_queue_with_many_timers_does_not_keep_the_others_from_their_turn() {
    on_both_stores(|bench| {
        let mut reaper = Reaper::new(&bench.executor);
        // More than one pass returns, with many different due times.
        for number in 0..TASK_DUE_PER_PASS + 20 {
            let delay_ms = 1_000 + 100 * (number % 20);
            bench.run(&format!("TASK.ADD busy 1 x DELAY {delay_ms}"));
        }
        bench.run("TASK.ADD other 1 x DELAY 4000");
        bench.clock.advance_ms(10_000);
        bench.block_on(reaper.pass(&bench.executor)).unwrap();
        assert_eq!(bench.run("TASK.LEN other DELAYED"), Reply::Integer(0));
        assert_ne!(bench.run("TASK.LEN busy DELAYED"), Reply::Integer(0));
        run_dry(bench, &mut reaper);
        assert_eq!(bench.run("TASK.LEN busy DELAYED"), Reply::Integer(0));
    });
}

#[test]
fn many_hashes_whose_fields_expire_do_not_delay_task_queues() {
    on_both_stores(|bench| {
        let hashes = (0..1_000).map(|number| format!("HSETEX h{number} PX 1000 FIELDS 1 a 1"));
        bench.run_all(&hashes.collect::<Vec<_>>());
        bench.run("TASK.ADD jobs 1 x DELAY 2000");
        bench.clock.advance_ms(3_000);
        let mut reaper = Reaper::new(&bench.executor);
        bench.block_on(reaper.pass(&bench.executor)).unwrap();
        assert_eq!(bench.run("TASK.LEN jobs READY"), Reply::Integer(1));
        assert!(rows_in(bench, Space::HashTimers) > 0);
        run_dry(bench, &mut reaper);
        assert_eq!(rows_in(bench, Space::HashTimers), 0);
        assert_eq!(bench.run("DBSIZE"), Reply::Integer(1));
    });
}

#[test]
fn a_grant_is_overdue_when_this_server_has_seen_it_for_as_long_as_grants_last() {
    let mut grants = ExpiredGrants::default();
    let now = Instant::now();
    let expiry = Duration::from_millis(GRANT_EXPIRY_MS.unsigned_abs());
    let [a, b] = [b"a", b"b"].map(|name| Bytes::from_static(name));
    grants.note(vec![a.clone()], now);
    assert!(grants.overdue(now + expiry / 2).is_empty());
    grants.note(vec![a.clone(), b], now + expiry / 2);
    assert_eq!(grants.overdue(now + expiry), [a.clone()].into());
    // A later grant with the same name counts from its own start.
    grants.note(Vec::new(), now + expiry);
    grants.note(vec![a], now + expiry);
    assert!(grants.overdue(now + expiry).is_empty());
}

/// Returns what this thread logs during `run`.
fn logged(run: impl FnOnce()) -> String {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let writer = Arc::clone(&lines);
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || LogWriter(Arc::clone(&writer)))
        .finish();
    tracing::subscriber::with_default(subscriber, run);
    let lines = lines.lock().unwrap();
    String::from_utf8(lines.clone()).unwrap()
}

struct LogWriter(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Leaves an expired grant with this many elements of a queue that no longer exists.
fn leave_grant(bench: &Bench, elements: usize) {
    let layout = Layout::new("test");
    let [namespace, data, id] = [7, 8, 9].map(|sequence| Id {
        instance: 1,
        sequence,
    });
    let grant = Grant {
        namespace,
        name: KeyName::new(&Bytes::from_static(b"gone")),
        long_name: None,
        value_type: ValueType::SortedSet,
        from_end: false,
        is_exhausted: true,
        expires_at_ms: bench.clock.now_ms() - 1,
    };
    let element = PoppedElement {
        name: Bytes::from_static(b"member"),
        value: Bytes::copy_from_slice(&1_f64.to_be_bytes()),
    };
    let transaction = bench.store.begin_write().unwrap();
    transaction.set(&layout.grant_key(data, id), &grant.encode());
    for (number, piece) in (0..).zip(encode_elements(&vec![element; elements])) {
        transaction.set(&layout.grant_piece_key(data, id, number), &piece);
    }
    bench.block_on(transaction.commit()).unwrap();
}

#[test]
fn an_expired_grant_is_logged_only_where_elements_went_back() {
    for (elements, is_logged) in [(0, false), (1, true)] {
        let bench = Bench::cluster_like();
        leave_grant(&bench, elements);
        let log = logged(|| {
            let mut grants = ExpiredGrants::default();
            let expired = bench.block_on(grants.pass(&bench.executor)).unwrap();
            assert_eq!(expired, 1);
        });
        assert_eq!(
            log.contains("were put back"),
            is_logged,
            "{elements}: {log}"
        );
    }
}

#[test]
fn retained_metadata_is_not_swept_before_it_has_rested() {
    let bench = bench_with_empty_key();
    let mut reaper = Reaper::new(&bench.executor);
    let mut sweep = || {
        bench
            .block_on(reaper.sweep_empty_keys(&bench.executor))
            .unwrap()
    };
    assert_eq!((0..3 * DATABASES).map(|_| sweep()).sum::<u64>(), 0);
    bench.clock.advance_ms(RETAINED_REST_MS);
    assert_eq!(sweep(), 1);
}
