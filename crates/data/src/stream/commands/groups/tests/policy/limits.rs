//! What one XREADGROUP does of what a policy asks for, and that the rest comes later.

use super::*;
use quoin_base::clock::Clock;
use quoin_data::taskqueue::timers;
use quoin_data::unit::context::NamespaceCache;
use quoin_data::unit::context::WriteContext;
use quoin_data::unit::signals::Signals;

fn pending_count(bench: &Bench) -> Reply {
    info(bench, "XINFO GROUPS s", "pending")
}

/// Removes all timers, as a server whose clock is ahead does.
fn remove_timers(bench: &Bench) {
    let transaction = bench.store.begin_write().unwrap();
    let timers = bench.executor.environment().layout.timers_by(i64::MAX - 1);
    transaction.clear_range(&timers.begin, &timers.end);
    bench.block_on(transaction.commit()).unwrap();
}

fn add_large(bench: &Bench, key: &str, number: usize, bytes: usize) {
    let (id, value) = (format!("{number}-0"), vec![b'x'; bytes]);
    let words: [&[u8]; 5] = [b"XADD", key.as_bytes(), id.as_bytes(), b"n", &value];
    assert_eq!(bench.run_words(&words), bulk(&id));
}

#[test]
fn dead_letters_are_moved_as_far_as_a_transaction_should_hold_them() {
    let bench = Bench::cluster_like();
    with_policy(&bench, 0, "MINIDLE 10 MAXTRIES 1 DEADLETTER dead");
    for number in 1..=20 {
        add_large(&bench, "s", number, 85_000);
    }
    bench.run("XREADGROUP GROUP g a STREAMS s >");
    bench.clock.advance_ms(10);
    let mut moved = 0;
    for calls in 1.. {
        assert_eq!(bench.run("XREADGROUP GROUP g a STREAMS s >"), NOTHING);
        let Reply::Integer(now) = bench.run("XLEN dead") else {
            panic!("no length");
        };
        assert!((1..=11).contains(&(now - moved)), "{now} after {moved}");
        moved = now;
        assert_eq!(pending_count(&bench), int(20 - moved));
        if moved == 20 {
            assert!(calls > 1);
            break;
        }
    }
    assert_eq!(idle_rows(&bench), 0);
}

#[test]
fn a_dead_letter_that_fits_into_no_transaction_stays_pending() {
    let bench = Bench::cluster_like();
    with_policy(&bench, 0, "MINIDLE 10 MAXTRIES 1 DEADLETTER dead");
    for (number, bytes) in [(1, 10), (2, 8_500_000), (3, 8_000_000), (4, 10)] {
        add_large(&bench, "s", number, bytes);
    }
    bench.run("XREADGROUP GROUP g a STREAMS s >");
    bench.clock.advance_ms(10);
    for moved in [1, 2, 3] {
        assert_eq!(bench.run("XREADGROUP GROUP g a STREAMS s >"), NOTHING);
        assert_eq!(bench.run("XLEN dead"), int(moved));
    }
    assert_eq!(
        all_pending(&bench, "s"),
        Reply::Array(vec![pending(2, "a", 10, 1)])
    );
    assert_eq!(idle_rows(&bench), 0);
}

#[test]
fn clients_that_wait_are_woken_again_after_a_call_that_stopped_at_its_limit() {
    on_both_stores(|bench| {
        with_policy(bench, 120, "MINIDLE 10 MAXTRIES 2");
        bench.run("XREADGROUP GROUP g a STREAMS s >");
        for number in 1..120 {
            bench.run(&format!("XCLAIM s g a 0 {number}-0 RETRYCOUNT 2"));
        }
        bench.clock.advance_ms(1);
        bench.run("XCLAIM s g a 0 120-0 RETRYCOUNT 1");
        bench.clock.advance_ms(50);
        remove_timers(bench);
        let waiting = bench.wait("XREADGROUP GROUP g b BLOCK 0 STREAMS s >");
        bench.clock.advance_ms(100);
        reap(bench);
        assert_eq!(waiting.reply(bench), read("s", [120]));
    });
}

#[test]
fn a_client_that_begins_to_wait_has_itself_woken() {
    on_both_stores(|bench| {
        with_policy(bench, 1, "MINIDLE 1000");
        bench.run(READ);
        remove_timers(bench);
        let mut without = bench.wait("XREADGROUP GROUP g c BLOCK 0 NOACK STREAMS s >");
        bench.clock.advance_ms(500);
        let waiting = bench.wait("XREADGROUP GROUP g b BLOCK 0 STREAMS s >");
        bench.clock.advance_ms(600);
        reap(bench);
        assert_eq!(waiting.reply(bench), read("s", [1]));
        assert!(without.is_waiting());
    });
}

#[test]
fn waking_conflicts_with_what_removes_the_stream() {
    for (line, conflicts) in [("DEL s", true), ("XADD s * n 2", false)] {
        let bench = Bench::cluster_like();
        with_policy(&bench, 1, "MINIDLE 10");
        bench.run(READ);
        bench.clock.advance_ms(200);
        let transaction = bench.store.begin_write().unwrap();
        let (namespaces, signals) = (NamespaceCache::default(), Signals::default());
        let environment = bench.executor.environment();
        let now_ms = bench.clock.now_ms();
        let context =
            WriteContext::new(&*transaction, environment, &namespaces, &signals, now_ms, 0);
        assert!(bench.block_on(timers::run_due(&context, 0, None)).unwrap() > 0);
        bench.run(line);
        let committed = bench.block_on(transaction.commit());
        assert_eq!(committed.is_err(), conflicts, "{line}");
    }
}

#[test]
fn the_dead_letter_key_is_not_the_stream_itself() {
    on_both_stores(|bench| {
        with_policy(bench, 1, "MINIDLE 10 MAXTRIES 1 DEADLETTER dead");
        bench.run(READ);
        bench.run("RENAME s dead");
        bench.clock.advance_ms(10);
        let Reply::Error(line) = bench.run("XREADGROUP GROUP g a STREAMS dead >") else {
            panic!("no error");
        };
        assert!(line.contains("holds the stream itself"), "{line}");
        assert_eq!(bench.run("XLEN dead"), int(1));
        bench.run("RENAME dead s");
        assert_eq!(bench.run(READ), NOTHING);
        assert_eq!(bench.run("XLEN dead"), int(1));
    });
}

#[test]
fn as_many_entries_as_the_limits_allow_fit_into_a_transaction() {
    let bench = Bench::cluster_like();
    with_policy(&bench, 0, "MINIDLE 10");
    let add = |numbers: std::ops::RangeInclusive<usize>| {
        let lines: Vec<String> = numbers.map(|id| format!("XADD s {id}-0 n 1")).collect();
        bench.run_all(&lines);
    };
    let take = |consumer: &str| {
        let line = format!("XREADGROUP GROUP g {consumer} COUNT 20000 STREAMS s >");
        match bench.run(&line) {
            Reply::Keyed(streams) => match &streams[0].1 {
                Reply::Array(entries) => entries.len(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    };
    add(1..=10_000);
    assert_eq!(take("a"), 10_000);
    assert_eq!(bench.run("XGROUP SETPOLICY s g MINIDLE 1000"), Reply::OK);
    add(10_001..=10_200);
    bench.clock.advance_ms(1000);
    assert_eq!(take("b"), 5_100);
    assert_eq!(take("b"), 5_100);
    bench.run("XCLAIM s g a 0 1-0");
    bench.run("XACK s g 10001-0 10002-0");
    let most = (10_003..=10_200).map(|id| format!("{id}-0"));
    let most: Vec<String> = most.collect();
    bench.run(&format!("XACK s g {}", most.join(" ")));
    assert_eq!(bench.run("XGROUP DELCONSUMER s g b"), int(9_999));
}
