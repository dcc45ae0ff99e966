//! XGROUP SETPOLICY.

use super::*;
use quoin_engine::Reaper;
use quoin_layout::{Section, Space};
use quoin_store::{Isolation, KeyValue, RangeQuery};

const READ: &str = "XREADGROUP GROUP g a COUNT 2 STREAMS s >";
const NOTHING: Reply = Reply::NullArray;
const SYNTAX: &str =
    "ERR unknown subcommand or wrong number of arguments for 'SETPOLICY'. Try XGROUP HELP.";

mod limits;

fn reap(bench: &Bench) {
    let mut reaper = Reaper::new(&bench.executor);
    while bench.block_on(reaper.pass(&bench.executor)).unwrap() {}
}

fn with_policy(bench: &Bench, count: usize, options: &str) {
    fill(bench, "s", count);
    let reply = bench.run(&format!("XGROUP SETPOLICY s g {options}"));
    assert_eq!(reply, Reply::OK);
}

/// How many rows by time there are.
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
        // One that is not acknowledged by those that read is not handed out to them.
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
        fill(bench, "s", 2);
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
        fill(bench, "s", 2);
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
        fill(bench, "s", 0);
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
        fill(&bench, "s", 3);
        bench.run(READ);
        let raced = bench.race(line, "XGROUP SETPOLICY s g MINIDLE 10", false);
        assert_eq!(raced, conflicts, "{line}");
    }
}
