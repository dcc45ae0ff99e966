mod lengths;
mod quiet;
mod together;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::{Cursor, Outcome, Wait, Waiter, Waiters};
use crate::Call;
use crate::batch::WAITERS_WOKEN_PER_BATCH_MAX;
use crate::testing::{Bench, bulk, bulks, call, unplanned, with_handler};
use quoin_base::limits::{BATCH_AGE_MAX_MS, REPLIES_IN_FLIGHT_BYTES_MAX};
use quoin_base::random::SeededRandom;
use quoin_data::command::row::Handler;
use quoin_data::command::waits::WaitSpec;
use quoin_data::error::CommandError;
use quoin_data::keyspace::key::ClientKey;
use quoin_data::unit::context::WriteContext;
use quoin_data::write_handler;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;
use quoin_store::StoreError;
use quoin_store::faults::{FaultRates, FaultyStore, OptimisticStore};

/// Runs a test on a store with a single writer and on one with many.
fn on_both(test: impl Fn(&Bench)) {
    test(&Bench::embedded());
    test(&Bench::cluster_like());
}

#[test]
fn a_push_wakes_a_waiter_in_its_own_commit() {
    let bench = Bench::embedded();
    let waiting = bench.wait("BLPOP list 0");
    let commits = bench.executor.statistics().commits.get();
    assert_eq!(bench.run("RPUSH list a"), Reply::Integer(1));
    assert_eq!(bench.executor.statistics().commits.get(), commits + 1);
    assert_eq!(waiting.reply(&bench), bulks(&["list", "a"]));
    assert_eq!(bench.run("EXISTS list"), Reply::Integer(0));
    assert!(bench.executor.waiters().is_empty());
}

#[test]
fn the_oldest_is_woken_first() {
    on_both(|bench| {
        let first = bench.wait("BLPOP list 0");
        let second = bench.wait("BRPOP list 0");
        let mut third = bench.wait("BLPOP list 0");
        bench.run("RPUSH list a b");
        assert_eq!(first.reply(bench), bulks(&["list", "a"]));
        assert_eq!(second.reply(bench), bulks(&["list", "b"]));
        assert!(third.is_waiting());
        bench.run("RPUSH list c");
        assert_eq!(third.reply(bench), bulks(&["list", "c"]));
    });
}

#[test]
fn every_way_to_fill_a_list_wakes() {
    for line in [
        "LPUSH list a",
        "RENAME other list",
        "RENAMENX other list",
        "COPY other list",
        "LMOVE other list LEFT LEFT",
        "RPOPLPUSH other list",
        "SORT other BY nosort STORE list",
    ] {
        on_both(|bench| {
            bench.run("RPUSH other a");
            let waiting = bench.wait("BLPOP list 0");
            bench.run(line);
            assert_eq!(waiting.reply(bench), bulks(&["list", "a"]), "{line}");
        });
    }
}

#[test]
fn every_way_to_fill_a_sorted_set_wakes() {
    for line in [
        "ZADD set 1 a",
        "ZINCRBY set 1 a",
        "RENAME other set",
        "COPY other set",
        "ZUNIONSTORE set 1 other",
        "ZINTERSTORE set 1 other",
        "ZDIFFSTORE set 1 other",
        "ZRANGESTORE set other 0 -1",
    ] {
        on_both(|bench| {
            bench.run("ZADD other 1 a");
            let waiting = bench.wait("BZPOPMIN set 0");
            bench.run(line);
            let expected = Reply::Array(vec![bulk("set"), bulk("a"), Reply::Double(1.0)]);
            assert_eq!(waiting.reply(bench), expected, "{line}");
        });
    }
}

#[test]
fn every_way_to_fill_a_priority_queue_wakes() {
    for line in [
        "PQ.PUSH queue 1 a",
        "RENAME other queue",
        "RENAMENX other queue",
        "COPY other queue",
        "PQ.MOVE other queue MIN",
        "PQ.MOVE other queue MAX",
    ] {
        for pop in ["PQ.BPOPMIN", "PQ.BPOPMAX"] {
            on_both(|bench| {
                bench.run("PQ.PUSH other 1 a");
                let waiting = bench.wait(&format!("{pop} nothing queue 0"));
                bench.run(line);
                let expected = Reply::Array(vec![bulk("queue"), bulk("a"), Reply::Whole(1)]);
                assert_eq!(waiting.reply(bench), expected, "{line}");
                assert_eq!(bench.run("EXISTS queue"), Reply::Integer(0));
            });
        }
    }
}

#[test]
fn waiters_of_a_priority_queue_get_its_ends_after_exec() {
    on_both(|bench| {
        let lowest = bench.wait("PQ.BPOPMIN queue 0");
        let highest = bench.wait("PQ.BPOPMAX queue 0");
        let mut next = bench.wait("PQ.BPOPMIN queue 0");
        let mut other_type = bench.wait("BLPOP queue 0");
        bench.exec(&[
            "PQ.PUSH queue 2 b 0 gone",
            "PQ.PUSH queue 1 a 3 c",
            "PQ.POPMIN queue",
            "PQ.POPMAX queue",
        ]);
        let popped = |value, priority| {
            Reply::Array(vec![bulk("queue"), bulk(value), Reply::Whole(priority)])
        };
        assert_eq!(lowest.reply(bench), popped("a", 1));
        assert_eq!(highest.reply(bench), popped("b", 2));
        assert!(next.is_waiting() && other_type.is_waiting());
    });
}

#[test]
fn a_key_that_comes_from_another_database_wakes() {
    on_both(|bench| {
        bench.run_in(3, &[b"RPUSH", b"list", b"a"]);
        let waiting = bench.wait("BLPOP list 0");
        bench.run_in(3, &[b"MOVE", b"list", b"0"]);
        assert_eq!(waiting.reply(bench), bulks(&["list", "a"]));
    });
}

#[test]
fn databases_that_are_exchanged_wake() {
    on_both(|bench| {
        bench.run_in(3, &[b"RPUSH", b"list", b"a"]);
        bench.run_in(3, &[b"ZADD", b"set", b"1", b"a"]);
        let list = bench.wait("BLPOP list 0");
        let set = bench.wait("BZPOPMIN set 0");
        let mut other_type = bench.wait("BZPOPMIN list 0");
        bench.run("SWAPDB 0 3");
        assert_eq!(list.reply(bench), bulks(&["list", "a"]));
        let expected = Reply::Array(vec![bulk("set"), bulk("a"), Reply::Double(1.0)]);
        assert_eq!(set.reply(bench), expected);
        assert!(other_type.is_waiting());
    });
}

#[test]
fn a_chain_of_moves_is_followed_to_its_end() {
    on_both(|bench| {
        let first = bench.wait("BRPOPLPUSH a b 0");
        let second = bench.wait("BLMOVE b c LEFT RIGHT 0");
        let third = bench.wait("BLPOP c 0");
        bench.run("RPUSH a job");
        assert_eq!(first.reply(bench), bulk("job"));
        assert_eq!(second.reply(bench), bulk("job"));
        assert_eq!(third.reply(bench), bulks(&["c", "job"]));
    });
}

#[test]
fn a_key_of_another_type_wakes_nobody() {
    on_both(|bench| {
        let mut waiting = bench.wait("BLPOP key 0");
        bench.run("ZADD key 1 a");
        assert!(waiting.is_waiting());
        bench.run("DEL key");
        bench.run("RPUSH key a");
        assert_eq!(waiting.reply(bench), bulks(&["key", "a"]));
    });
}

#[test]
fn what_exec_takes_back_wakes_nobody() {
    on_both(|bench| {
        let mut waiting = bench.wait("BLPOP list 0");
        bench.exec(&["RPUSH list a", "DEL list"]);
        assert!(waiting.is_waiting());
        bench.exec(&["RPUSH list a", "RPUSH list b", "LPOP list"]);
        assert_eq!(waiting.reply(bench), bulks(&["list", "b"]));
    });
}

#[test]
fn a_blocking_command_within_exec_does_not_wait() {
    on_both(|bench| {
        let replies = bench.exec(&["BLPOP list 0", "BLMOVE list b LEFT LEFT 0", "RPUSH list a"]);
        let expected = [Reply::NullArray, Reply::Null, Reply::Integer(1)];
        assert_eq!(replies, Reply::Array(expected.to_vec()));
        assert!(bench.executor.waiters().is_empty());
    });
}

#[test]
fn one_that_has_given_up_gets_nothing() {
    on_both(|bench| {
        let given_up = bench.wait("BLPOP list 0");
        let second = bench.wait("BLPOP list 0");
        assert!(bench.executor.waiters().cancel(&given_up.waiter));
        bench.run("RPUSH list a");
        assert_eq!(second.reply(bench), bulks(&["list", "a"]));
        bench.run("RPUSH list b");
        assert_eq!(bench.run("LLEN list"), Reply::Integer(1));
    });
}

#[test]
fn one_that_waits_for_several_keys_is_woken_once() {
    on_both(|bench| {
        let waiting = bench.wait("BLPOP a b a 0");
        bench.exec(&["RPUSH b 1", "RPUSH a 2"]);
        assert_eq!(waiting.reply(bench), bulks(&["a", "2"]));
        assert_eq!(bench.run("LLEN b"), Reply::Integer(1));
        assert_eq!(bench.executor.waiters().key_count(), 0);
    });
}

#[test]
fn a_move_to_a_key_of_another_type_fails_and_the_next_is_woken() {
    on_both(|bench| {
        bench.run("ZADD set 1 a");
        let failing = bench.wait("BRPOPLPUSH list set 0");
        let next = bench.wait("BLPOP list 0");
        bench.run("RPUSH list a");
        assert!(
            matches!(failing.reply(bench), Reply::Error(line) if line.starts_with("WRONGTYPE"))
        );
        assert_eq!(next.reply(bench), bulks(&["list", "a"]));
    });
}

#[test]
fn more_waiters_than_one_batch_wakes_are_all_woken() {
    let bench = Bench::embedded();
    let count = WAITERS_WOKEN_PER_BATCH_MAX + 10;
    let waiting: Vec<_> = (0..count).map(|_| bench.wait("BLPOP list 0")).collect();
    let words: Vec<String> = (0..count).map(|number| number.to_string()).collect();
    let line = format!("RPUSH list {}", words.join(" "));
    assert_eq!(bench.run(&line), Reply::count(count));
    for (waiting, word) in waiting.into_iter().zip(&words) {
        assert_eq!(waiting.reply(&bench), bulks(&["list", word]));
    }
}

#[test]
fn conflicts_and_unknown_results_neither_lose_nor_double_what_is_handed_over() {
    for seed in 0..5 {
        let bench = Bench::with(|store| {
            let store = OptimisticStore::new(store);
            let random = Arc::new(SeededRandom::new(seed));
            let rates = FaultRates {
                conflict_ppm: 100_000,
                unknown_applied_ppm: 50_000,
                unknown_not_applied_ppm: 50_000,
                ..FaultRates::default()
            };
            Arc::new(FaultyStore::new(store, rates, random))
        });
        for round in 0..40 {
            let first = bench.wait("BLPOP list 0");
            let second = bench.wait("BLMOVE list done LEFT RIGHT 0");
            let pushed = bench.run(&format!("RPUSH list {round} {round}x"));
            assert_eq!(pushed, Reply::Integer(2));
            assert_eq!(first.reply(&bench), bulks(&["list", &round.to_string()]));
            assert_eq!(second.reply(&bench), bulk(&format!("{round}x")));
        }
        assert_eq!(bench.run("LLEN list"), Reply::Integer(0));
        assert_eq!(bench.run("LLEN done"), Reply::Integer(40));
    }
}

fn list_key() -> ClientKey {
    ClientKey {
        database: 0,
        key: Bytes::from_static(b"list"),
    }
}

fn slow_blpop() -> (Arc<Waiter>, tokio::sync::oneshot::Receiver<Outcome>) {
    let spec = WaitSpec::to_take(ValueType::List, &[list_key().key], None);
    let blpop = with_handler("BLPOP list 0", write_handler!(blpop_slowly));
    Waiter::new(blpop, spec)
}

async fn blpop_slowly(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let Handler::Write(blpop) = quoin_data::table::find(b"BLPOP").unwrap().handler else {
        panic!("BLPOP writes");
    };
    let reply = blpop(context, arguments).await?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(reply)
}

/// Reads for longer than a transaction can.
async fn read_too_long(_: &WriteContext<'_>, _: &[Bytes]) -> Result<Reply, CommandError> {
    tokio::time::sleep(Duration::from_millis(BATCH_AGE_MAX_MS)).await;
    Err(CommandError::Store(StoreError::TooOld))
}

async fn find_nothing(_: &WriteContext<'_>, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(Reply::Null)
}

#[test]
fn one_parked_by_a_batch_that_may_run_again_is_not_woken_by_another() {
    let waiters = Waiters::default();
    let (waiter, _outcome) = slow_blpop();
    waiters.park(&waiter, 1);
    assert!(
        waiters
            .begin_service(&list_key(), ValueType::List, 2, 0, |_| true)
            .is_none()
    );
    assert!(waiters.take_scheduled(1).is_empty());
    // Another batch has passed over it, so a wake-up is scheduled now.
    waiters.settle(&waiter, 0);
    assert_eq!(waiters.take_scheduled(1), [(list_key(), Cursor::START)]);
    assert!(
        waiters
            .begin_service(&list_key(), ValueType::List, 2, 0, |_| true)
            .is_some()
    );
}

#[test]
fn a_batch_wakes_what_it_parked_itself() {
    let waiters = Waiters::default();
    let (waiter, _outcome) = slow_blpop();
    waiters.park(&waiter, 1);
    assert!(
        waiters
            .begin_service(&list_key(), ValueType::List, 1, 0, |_| true)
            .is_some()
    );
    waiters.release(&waiter);
    assert!(
        waiters
            .begin_service(&list_key(), ValueType::List, 2, 0, |_| true)
            .is_none()
    );
}

#[test]
fn nothing_is_popped_for_one_that_gives_up_in_service() {
    let bench = Bench::embedded();
    let (waiter, outcome) = slow_blpop();
    bench.executor.waiters().park(&waiter, 0);
    bench.executor.waiters().settle(&waiter, 0);
    let pushed = bench.block_on(async {
        let executor = Arc::clone(&bench.executor);
        let pushing =
            tokio::spawn(async move { executor.submit(vec![unplanned("RPUSH list a")]).await });
        tokio::time::sleep(Duration::from_millis(80)).await;
        assert!(
            !bench.executor.waiters().cancel(&waiter),
            "it is in service"
        );
        assert!(matches!(outcome.await, Ok(Outcome::Cancelled)));
        pushing.await.unwrap().unwrap()
    });
    assert_eq!(pushed.replies, [Reply::Integer(1)]);
    assert_eq!(bench.run("LLEN list"), Reply::Integer(1));
}

#[test]
fn one_that_may_have_been_woken_is_told_that_it_is_not_known() {
    let (bench, faulty) = Bench::faulty(1);
    let woken = bench.wait("BLPOP list 0");
    let mut unconcerned = bench.wait("BLPOP list 0");
    faulty.set_rates(FaultRates {
        unknown_not_applied_ppm: 1_000_000,
        ..FaultRates::default()
    });
    let is_unknown =
        |reply: &Reply| matches!(reply, Reply::Error(line) if line.starts_with("UNKNOWN"));
    assert!(is_unknown(&bench.run("RPUSH list a")));
    assert!(is_unknown(&woken.reply(&bench)));
    assert!(unconcerned.is_waiting());
}

#[test]
fn the_only_server_notes_nothing_of_the_keys_that_clients_wait_for() {
    let waiters = Waiters::new(false);
    let (waiter, _outcome) = slow_blpop();
    waiters.park(&waiter, 0);
    waiters.settle(&waiter, 0);
    assert!(waiters.cancel(&waiter));
    assert!(!waiters.queues().quiet.is_any_known());
}

/// A waiter in service.
fn in_service() -> (Arc<Waiters>, Wait, Arc<Waiter>) {
    let waiters = Arc::new(Waiters::default());
    let (waiter, outcome) = slow_blpop();
    waiters.park(&waiter, 0);
    waiters.settle(&waiter, 0);
    let wait = Wait::new(&waiters, (waiter, outcome));
    let in_service = waiters.begin_service(&list_key(), ValueType::List, 1, 0, |_| true);
    (waiters, wait, in_service.unwrap())
}

#[test]
fn one_that_gives_up_just_after_its_answer_gets_what_was_popped_for_it() {
    let bench = Bench::embedded();
    let (waiters, wait, waiter) = in_service();
    waiters.answer(&waiter, Reply::Integer(1), Default::default());
    let outcome = bench.block_on(wait.give_up());
    assert_eq!(outcome, Outcome::Replied(Reply::Integer(1)));
}

#[test]
fn one_that_gives_up_in_service_learns_how_that_ends() {
    let bench = Bench::embedded();
    let (waiters, wait, waiter) = in_service();
    let outcome = bench.block_on(async {
        let (outcome, ()) = futures_util::join!(wait.give_up(), async {
            waiters.answer(&waiter, Reply::Integer(1), Default::default());
        });
        outcome
    });
    assert_eq!(outcome, Outcome::Replied(Reply::Integer(1)));
}

#[test]
fn a_wait_ends_with_its_connection() {
    let waiters = Arc::new(Waiters::default());
    let (waiter, outcome) = slow_blpop();
    let wait = Wait::new(&waiters, (Arc::clone(&waiter), outcome));
    waiters.park(&waiter, 0);
    waiters.settle(&waiter, 0);
    assert!(!waiters.is_empty());
    drop(wait);
    assert!(waiters.is_empty());
    // Nor if the batch parks it only after that.
    let (waiter, outcome) = slow_blpop();
    drop(Wait::new(&waiters, (Arc::clone(&waiter), outcome)));
    waiters.park(&waiter, 0);
    assert!(waiters.is_empty());
}

/// Waiters of the list. A batch has woken those before the position.
fn woken_up_to(from: u64) -> Waiters {
    let waiters = Waiters::default();
    let (waiter, _outcome) = slow_blpop();
    waiters.park(&waiter, 0);
    waiters.settle(&waiter, 0);
    waiters.schedule_wake_up(list_key(), Cursor::START.at(from));
    waiters
}

#[test]
fn a_wake_up_continues_where_it_was_whatever_is_scheduled_meanwhile_and_then_restarts() {
    let waiters = woken_up_to(7);
    waiters.schedule_wake_up(list_key(), Cursor::START);
    let expected = Cursor {
        from: 7,
        restarts: true,
    };
    assert_eq!(waiters.take_scheduled(2), [(list_key(), expected)]);
    // The same for a wake-up that arrives while a batch works on the key.
    waiters.schedule_wake_up(list_key(), Cursor::START);
    waiters.schedule_wake_up(list_key(), Cursor::START.at(9));
    let expected = Cursor {
        from: 9,
        restarts: true,
    };
    assert_eq!(waiters.take_scheduled(2), [(list_key(), expected)]);
}

#[test]
fn a_wake_up_without_another_meanwhile_ends_at_the_end() {
    let waiters = woken_up_to(7);
    let expected = Cursor {
        from: 7,
        restarts: false,
    };
    assert_eq!(waiters.take_scheduled(2), [(list_key(), expected)]);
    assert!(waiters.take_scheduled(2).is_empty());
}

/// A client that waits for a list with a command that is too slow for a transaction.
fn wait_with_what_is_too_slow(bench: &Bench) -> tokio::sync::oneshot::Receiver<Outcome> {
    let spec = WaitSpec::to_take(ValueType::List, &[list_key().key], None);
    let slow = with_handler("BLPOP list 0", write_handler!(read_too_long));
    let (waiter, outcome) = Waiter::new(slow, spec);
    let invocation = with_handler("BLPOP list 0", write_handler!(find_nothing));
    let call = Call {
        waiter: Some(waiter),
        ..Call::command(invocation, false)
    };
    let finished = bench.block_on(bench.executor.submit(vec![call])).unwrap();
    assert!(finished.is_parked);
    outcome
}

#[test]
fn one_whose_command_is_too_slow_is_told_and_does_not_keep_others() {
    let bench = Bench::cluster_like();
    let slow = wait_with_what_is_too_slow(&bench);
    let next = bench.wait("BLPOP list 0");
    assert_eq!(bench.run("RPUSH list a"), Reply::Integer(1));
    assert_eq!(next.reply(&bench), bulks(&["list", "a"]));
    let line = CommandError::Store(StoreError::TooOld).to_line();
    match bench.block_on(slow) {
        Ok(Outcome::Replied(reply)) => assert_eq!(reply, Reply::Error(line)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_tables_of_a_burst_are_given_back() {
    let waiters = Waiters::new(false);
    let keys: Vec<Bytes> = (0..50_000).map(|n| Bytes::from(n.to_string())).collect();
    let spec = WaitSpec::to_take(ValueType::List, &keys, None);
    let blpop = with_handler("BLPOP list 0", write_handler!(find_nothing));
    let (waiter, _outcome) = Waiter::new(blpop, spec);
    waiters.park(&waiter, 0);
    waiters.settle(&waiter, 0);
    assert_eq!(waiters.key_count(), 50_000);
    waiters.cancel(&waiter);
    assert_eq!(waiters.key_count(), 0);
    assert!(waiters.queues().by_key.capacity() < 5_000);
}

#[test]
fn nothing_is_run_while_too_many_replies_of_woken_clients_are_not_taken_over() {
    on_both(|bench| {
        let value = vec![b'v'; 1 << 20];
        let waiting: Vec<_> = (0..20).map(|_| bench.wait("BLPOP list 0")).collect();
        let expected = REPLIES_IN_FLIGHT_BYTES_MAX / value.len();
        let pushed = bench.block_on(async {
            let mut pushed = 0;
            for _ in &waiting {
                let push = call(0, &[b"RPUSH", b"list", &value]);
                let submitted = bench.executor.submit(vec![push]);
                // A push that is held up still runs later.
                match tokio::time::timeout(Duration::from_secs(1), submitted).await {
                    Ok(_) => pushed += 1,
                    Err(_) => break,
                }
            }
            pushed
        });
        // A push may be answered before the reply that it woke is counted.
        assert!((expected..expected + 2).contains(&pushed), "{pushed}");
        for one in waiting.into_iter().take(pushed + 1) {
            let popped = Reply::Array(vec![bulk("list"), Reply::Bulk(value.clone().into())]);
            assert!(one.reply(bench) == popped);
        }
        assert_eq!(bench.run("LLEN list"), Reply::Integer(0));
    });
}
