//! XGROUP SETPOLICY, and how much of a policy's work one XREADGROUP does.

use super::*;
use quoin_base::clock::Clock;
use quoin_data::taskqueue::timers;
use quoin_data::unit::context::{NamespaceCache, WriteContext};
use quoin_data::unit::signals::Signals;
use quoin_engine::Reaper;
use quoin_layout::{Section, Space, Timers};
use quoin_store::{Isolation, KeyValue, RangeQuery};

const READ: &str = "XREADGROUP GROUP g a COUNT 2 STREAMS s >";
const NOTHING: Reply = Reply::NullArray;
const SYNTAX: &str =
    "ERR unknown subcommand or wrong number of arguments for 'SETPOLICY'. Try XGROUP HELP.";

fn reap(bench: &Bench) {
    let mut reaper = Reaper::new(&bench.executor);
    while bench.block_on(reaper.pass(&bench.executor)).unwrap() {}
}

fn with_policy(bench: &Bench, count: usize, options: &str) {
    with_group(bench, "s", count);
    let reply = bench.run(&format!("XGROUP SETPOLICY s g {options}"));
    assert_eq!(reply, Reply::OK);
}

/// The number of rows by time.
fn idle_rows(bench: &Bench) -> usize {
    let layout = &bench.executor.environment().layout;
    let range = layout.rows_of(Space::Data);
    let snapshot = bench.store.begin_read().unwrap();
    let rows = bench.block_on(snapshot.get_range(RangeQuery {
        begin: &range.begin,
        end: &range.end,
        limit: usize::MAX,
        reverse: false,
        isolation: Isolation::Snapshot,
    }));
    let is_idle = |row: &&KeyValue| {
        let data = layout.read_data_key(&row.key);
        data.is_ok_and(|(_, section)| section == Section::StreamIdle as u64)
    };
    rows.unwrap().iter().filter(is_idle).count()
}

#[test]
fn entries_that_are_idle_for_too_long_come_first() {
    on_both_stores(|bench| {
        with_policy(bench, 3, "MINIDLE 100");
        assert_eq!(
            bench.run("XREADGROUP GROUP g b COUNT 1 STREAMS s >"),
            read("s", [1])
        );
        bench.clock.advance_ms(99);
        assert_eq!(
            bench.run("XREADGROUP GROUP g a COUNT 1 STREAMS s >"),
            read("s", [2])
        );
        bench.clock.advance_ms(1);
        assert_eq!(bench.run(READ), read("s", [1, 3]));
        assert_eq!(bench.run(READ), NOTHING);
        bench.clock.advance_ms(99);
        assert_eq!(bench.run(READ), read("s", [2]));
        assert_eq!(bench.run("XACK s g 2-0"), int(1));
        assert_eq!(
            all_pending(bench, "s"),
            Reply::Array(vec![pending(1, "a", 99, 2), pending(3, "a", 99, 1)])
        );
        assert_eq!(idle_rows(bench), 2);
        // XREADGROUP with NOACK is given no idle entries.
        bench.clock.advance_ms(1);
        assert_eq!(bench.run("XREADGROUP GROUP g b NOACK STREAMS s >"), NOTHING);
    });
}

#[test]
fn entries_that_were_delivered_too_often_become_dead_letters() {
    on_both_stores(|bench| {
        with_policy(bench, 2, "MINIDLE 10 MAXTRIES 2 DEADLETTER dead");
        for _ in 0..2 {
            assert_eq!(bench.run(READ), read("s", [1, 2]));
            bench.clock.advance_ms(10);
        }
        let waiting = bench.wait("XREAD BLOCK 0 STREAMS dead 0");
        assert_eq!(bench.run(READ), NOTHING);
        let Reply::Keyed(letters) = waiting.reply(bench) else {
            panic!("no dead letters");
        };
        let Reply::Array(letters) = &letters[0].1 else {
            panic!("{letters:?}");
        };
        let fields = |number: &str| {
            let id = format!("{number}-0");
            bulks(&[
                "n",
                number,
                "_stream",
                "s",
                "_group",
                "g",
                "_id",
                &id,
                "_deliveries",
                "2",
            ])
        };
        for (letter, number) in letters.iter().zip(["1", "2"]) {
            let Reply::Array(parts) = letter else {
                panic!("{letter:?}");
            };
            assert_eq!(parts[1], fields(number));
        }
        assert_eq!(letters.len(), 2);
        assert_eq!(all_pending(bench, "s"), Reply::Array(vec![]));
        assert_eq!(info(bench, "XINFO GROUPS s", "pending"), int(0));
        assert_eq!(bench.run("XLEN s"), int(2));
        assert_eq!(idle_rows(bench), 0);
    });
}

#[test]
fn without_a_dead_letter_stream_they_stay_pending() {
    on_both_stores(|bench| {
        with_policy(bench, 1, "MINIDLE 10 MAXTRIES 1");
        assert_eq!(bench.run(READ), read("s", [1]));
        bench.clock.advance_ms(10);
        assert_eq!(bench.run(READ), NOTHING);
        assert_eq!(
            all_pending(bench, "s"),
            Reply::Array(vec![pending(1, "a", 10, 1)])
        );
        assert_eq!(idle_rows(bench), 0);
    });
}

#[test]
fn a_dead_letter_key_of_another_type_changes_nothing() {
    on_both_stores(|bench| {
        bench.run("SET dead x");
        with_group(bench, "s", 2);
        let set = "XGROUP SETPOLICY s g MINIDLE 10 MAXTRIES 1 DEADLETTER dead";
        assert_eq!(bench.run(set), error(WRONG_TYPE));
        bench.run("DEL dead");
        assert_eq!(bench.run(set), Reply::OK);
        bench.run("XREADGROUP GROUP g a COUNT 1 STREAMS s >");
        bench.run("SET dead x");
        bench.clock.advance_ms(10);
        let Reply::Error(line) = bench.run(READ) else {
            panic!("no error");
        };
        assert!(line.contains("holds no stream"), "{line}");
        assert_eq!(
            all_pending(bench, "s"),
            Reply::Array(vec![pending(1, "a", 10, 1)])
        );
        bench.run("DEL dead");
        assert_eq!(bench.run(READ), read("s", [2]));
        assert_eq!(bench.run("XLEN dead"), int(1));
    });
}

#[test]
fn clients_that_wait_are_woken_when_an_entry_is_idle_for_long_enough() {
    for min_idle_ms in [50, 90_000, 7_200_000] {
        on_both_stores(|bench| {
            with_policy(bench, 1, &format!("MINIDLE {min_idle_ms}"));
            assert_eq!(bench.run(READ), read("s", [1]));
            let mut waiting = bench.wait("XREADGROUP GROUP g b BLOCK 0 STREAMS s >");
            let mut passed_ms = 0;
            while passed_ms + 1 < min_idle_ms {
                let step_ms = (min_idle_ms - 1 - passed_ms).min(1_000_000);
                bench.clock.advance_ms(step_ms);
                passed_ms += step_ms;
                reap(bench);
            }
            assert!(waiting.is_waiting());
            bench.clock.advance_ms(101);
            reap(bench);
            assert_eq!(waiting.reply(bench), read("s", [1]));
        });
    }
}

#[test]
fn a_policy_is_shown_and_taken_back() {
    on_both_stores(|bench| {
        with_group(bench, "s", 2);
        bench.run(READ);
        assert_eq!(idle_rows(bench), 0);
        bench.run("XGROUP SETPOLICY s g MINIDLE 10 MAXTRIES 3 DEADLETTER dead");
        assert_eq!(idle_rows(bench), 2);
        assert_eq!(info(bench, "XINFO GROUPS s", "min-idle"), int(10));
        assert_eq!(info(bench, "XINFO GROUPS s", "max-tries"), int(3));
        assert_eq!(info(bench, "XINFO GROUPS s", "dead-letter"), bulk("dead"));
        bench.clock.advance_ms(10);
        assert_eq!(bench.run("XGROUP SETPOLICY s g"), Reply::OK);
        assert_eq!(idle_rows(bench), 0);
        assert_eq!(bench.run(READ), NOTHING);
        let Reply::Array(groups) = bench.run("XINFO GROUPS s") else {
            panic!("no groups");
        };
        let Reply::Map(fields) = &groups[0] else {
            panic!("{groups:?}");
        };
        assert_eq!(fields.len(), 6);
    });
}

#[test]
fn a_policy_goes_where_its_stream_goes() {
    on_both_stores(|bench| {
        with_policy(bench, 1, "MINIDLE 10");
        bench.run(READ);
        bench.run("COPY s t");
        bench.run("RENAME s u");
        bench.clock.advance_ms(200);
        for key in ["t", "u"] {
            let waiting = bench.run(&format!("XREADGROUP GROUP g b STREAMS {key} >"));
            assert_eq!(waiting, read(key, [1]));
            let waiting = bench.wait(&format!("XREADGROUP GROUP g a BLOCK 0 STREAMS {key} >"));
            bench.clock.advance_ms(200);
            reap(bench);
            assert_eq!(waiting.reply(bench), read(key, [1]));
        }
        assert_eq!(idle_rows(bench), 2);
        for line in ["XGROUP DELCONSUMER t g a", "XGROUP DESTROY u g"] {
            bench.run(line);
        }
        assert_eq!(idle_rows(bench), 0);
    });
}

#[test]
fn what_is_no_policy_is_refused() {
    on_both_stores(|bench| {
        with_group(bench, "s", 0);
        for (options, line) in [
            ("MAXTRIES 3", "ERR MAXTRIES needs MINIDLE"),
            ("MINIDLE 5 DEADLETTER d", "ERR DEADLETTER needs MAXTRIES"),
            ("MINIDLE 5 MAXTRIES 0", "ERR MAXTRIES must be > 0"),
            ("MINIDLE 0", "ERR MINIDLE must be from 1 to 31622400000"),
            (
                "MINIDLE 5 MAXTRIES 1 DEADLETTER s",
                "ERR DEADLETTER must be another key than the stream's",
            ),
            ("MINIDLE", SYNTAX),
            ("MINIDLE 5 MINIDLE 5", SYNTAX),
            ("MINIDLE 5 MAXTRIES 1 MAXTRIES 1", SYNTAX),
            ("MINIDLE 5 MAXTRIES 1 DEADLETTER d DEADLETTER e", SYNTAX),
        ] {
            let reply = bench.run(&format!("XGROUP SETPOLICY s g {options}"));
            assert_eq!(reply, error(line), "{options}");
        }
        assert_eq!(
            bench.run("XGROUP SETPOLICY s h MINIDLE 5"),
            error("NOGROUP No such consumer group 'h' for key name 's'")
        );
    });
}

#[test]
fn changes_of_pending_entries_see_the_policy_or_conflict_with_it() {
    for (line, conflicts) in [
        ("XACK s g 1-0", true),
        ("XCLAIM s g b 0 1-0", true),
        ("XCLAIM s g b 0 3-0 FORCE", true),
        ("XNACK s g FAIL IDS 1 1-0", true),
        ("XREADGROUP GROUP g b STREAMS s >", true),
        ("XADD s * n 4", false),
    ] {
        let bench = Bench::cluster_like();
        with_group(&bench, "s", 3);
        bench.run(READ);
        let raced = bench.race(line, "XGROUP SETPOLICY s g MINIDLE 10", false);
        assert_eq!(raced, conflicts, "{line}");
    }
}

fn pending_count(bench: &Bench) -> Reply {
    info(bench, "XINFO GROUPS s", "pending")
}

/// Removes all timers, like a server whose clock is ahead.
fn remove_timers(bench: &Bench) {
    let transaction = bench.store.begin_write().unwrap();
    let timers = bench
        .executor
        .environment()
        .layout
        .timers_by(Timers::Queues, i64::MAX - 1);
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
        assert!(
            bench
                .block_on(timers::run_due(&context, Timers::Queues, 0, None))
                .unwrap()
                > 0
        );
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
