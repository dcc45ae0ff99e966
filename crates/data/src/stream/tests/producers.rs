//! XADD with IDMP and IDMPAUTO, and XCFGSET. The expected replies come from Redis's own tests
//! (8.6).

use std::collections::VecDeque;

use super::*;
use quoin_base::random::{Random, SeededRandom};
use quoin_engine::Reaper;
use quoin_store::faults::FaultRates;

fn reap(bench: &Bench) {
    let mut reaper = Reaper::new(&bench.executor);
    while bench.block_on(reaper.pass(&bench.executor)).unwrap() {}
}

/// The id of an entry that is added `ms` after the start.
fn id(ms: i64, seq: u64) -> Reply {
    bulk(&format!("{}-{seq}", START_MS + ms))
}

fn tracked(bench: &Bench) -> [Reply; 4] {
    [
        "pids-tracked",
        "iids-tracked",
        "iids-added",
        "iids-duplicates",
    ]
    .map(|name| field(bench, name))
}

#[test]
fn an_entry_that_is_added_again_is_added_once() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("XADD s IDMP p a * f 1"), id(0, 0));
        assert_eq!(bench.run("XADD s IDMP p b * f 1"), id(0, 1));
        bench.clock.advance_ms(50);
        assert_eq!(bench.run("XADD s MAXLEN 0 IDMP p a * f 2"), id(0, 0));
        assert_eq!(bench.run("XADD s IDMP q a * f 3"), id(50, 0));
        assert_eq!(bench.run("XADD s IDMP q a * f 4"), id(50, 0));
        assert_eq!(bench.run("XLEN s"), int(3));
        assert_eq!(tracked(bench), [int(2), int(3), int(3), int(2)]);
        let added = ["XADD s IDMP p c * f 5", "XADD s IDMP p c * f 6"];
        let added = bench.exec(&added);
        assert_eq!(added, Reply::Array(vec![id(50, 1), id(50, 1)]));
    });
}

#[test]
fn an_entry_is_known_by_its_content() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("XADD s IDMPAUTO p * a 1 b 2"), id(0, 0));
        assert_eq!(bench.run("XADD s IDMPAUTO p * b 2 a 1"), id(0, 0));
        assert_eq!(bench.run("XADD s IDMPAUTO p * a 1 b 3"), id(0, 1));
        assert_eq!(bench.run("XADD s IDMPAUTO q * a 1 b 2"), id(0, 2));
        assert_eq!(bench.run("XADD s * a 1 b 2"), id(0, 3));
        assert_eq!(bench.run("XLEN s"), int(4));
    });
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    on_both_stores(|bench| {
        let syntax = |text| error(&format!("ERR syntax error, {text}"));
        for (line, expected) in [
            (
                "XADD s IDMP p * f v",
                error("ERR Invalid stream ID specified as stream command argument"),
            ),
            (
                "XADD s IDMP p a 1-1 f v",
                syntax("IDMP/IDMPAUTO can be used only with auto-generated IDs"),
            ),
            (
                "XADD s IDMPAUTO p 1-* f v",
                syntax("IDMP/IDMPAUTO can be used only with auto-generated IDs"),
            ),
            (
                "XADD s IDMP p a IDMP q b * f v",
                syntax("IDMP/IDMPAUTO specified multiple times"),
            ),
            (
                "XADD s IDMPAUTO p IDMP q b * f v",
                syntax("IDMP/IDMPAUTO specified multiple times"),
            ),
            ("XTRIM s IDMP p a MAXLEN 1", error("ERR syntax error")),
        ] {
            assert_eq!(bench.run(line), expected, "{line}");
        }
        for (words, text) in [
            (
                [&b"IDMP"[..], b"", b"a"].as_slice(),
                "IDMP requires a non-empty producer ID",
            ),
            (
                [&b"IDMP"[..], b"p", b""].as_slice(),
                "IDMP requires a non-empty idempotent ID",
            ),
            (
                [&b"IDMPAUTO"[..], b""].as_slice(),
                "IDMPAUTO requires a non-empty producer ID",
            ),
        ] {
            let words = [&[&b"XADD"[..], b"s"], words, &[b"*", b"f", b"v"]].concat();
            assert_eq!(bench.run_words(&words), syntax(text));
        }
        assert_eq!(bench.run("EXISTS s"), int(0));
        assert_eq!(bench.run("XADD s NOMKSTREAM IDMP p a * f v"), Reply::Null);
        assert_eq!(bench.run("EXISTS s"), int(0));
    });
}

#[test]
fn an_entry_is_remembered_for_the_duration() {
    on_both_stores(|bench| {
        bench.run("XADD s IDMP p a * f 1");
        bench.run("XCFGSET s IDMP-DURATION 2");
        assert_eq!(bench.run("XADD s IDMP p a * f 2"), id(0, 1));
        bench.clock.advance_ms(1_000);
        assert_eq!(bench.run("XADD s IDMP p b * f 3"), id(1_000, 0));
        bench.clock.advance_ms(999);
        assert_eq!(bench.run("XADD s IDMP p a * f 4"), id(0, 1));
        bench.clock.advance_ms(1);
        assert_eq!(tracked(bench), [int(1), int(1), int(3), int(1)]);
        assert_eq!(bench.run("XADD s IDMP p a * f 5"), id(2_000, 0));
        assert_eq!(bench.run("XADD s IDMP p b * f 6"), id(1_000, 0));
        bench.clock.advance_ms(1_999);
        assert_eq!(bench.run("XADD s IDMP p a * f 7"), id(2_000, 0));
    });
}

#[test]
fn the_oldest_entry_of_a_producer_is_forgotten_first() {
    on_both_stores(|bench| {
        bench.run("XADD s IDMP p init * f v");
        bench.run("XCFGSET s IDMP-MAXSIZE 3 IDMP-DURATION 60");
        for producer in ["p", "q"] {
            for entry in 1..=4 {
                bench.run(&format!("XADD s IDMP {producer} {entry} * f v"));
            }
        }
        assert_eq!(tracked(bench), [int(2), int(6), int(9), int(0)]);
        let rows = bench.data_rows();
        assert_eq!(bench.run("XADD s IDMP p 1 * f v"), id(0, 9));
        // 2 has gone for it.
        assert_eq!(bench.run("XADD s IDMP p 3 * f v"), id(0, 3));
        assert_eq!(bench.run("XADD s IDMP q 2 * f v"), id(0, 6));
        // One entry, and the counter of duplicates.
        assert_eq!(bench.data_rows(), rows + 2);
        assert_eq!(bench.run("XADD s IDMP p 2 * f v"), id(0, 10));
    });
}

#[test]
fn settings_are_checked_and_a_change_forgets() {
    on_both_stores(|bench| {
        let duration = "ERR IDMP-DURATION must be between 1 and 86400 seconds";
        let max = "ERR IDMP-MAXSIZE must be between 1 and 10000 entries";
        assert_eq!(
            bench.run("XCFGSET s IDMP-DURATION 5"),
            error("ERR no such key")
        );
        bench.run("SET string x");
        assert_eq!(bench.run("XCFGSET string"), error(WRONG_TYPE));
        bench.run("XADD s IDMP p a * f v");
        for (line, text) in [
            ("XCFGSET s", "ERR At least one parameter must be specified"),
            ("XCFGSET s IDMP-DURATION", "ERR syntax error"),
            ("XCFGSET s IDMP-MAXSIZE", "ERR syntax error"),
            ("XCFGSET s INVALID", "ERR syntax error"),
            ("XCFGSET s INVALID 1", "ERR syntax error"),
            (
                "XCFGSET s IDMP-DURATION x IDMP-MAXSIZE",
                "ERR value is not an integer or out of range",
            ),
            (
                "XCFGSET s IDMP-DURATION 3.14",
                "ERR value is not an integer or out of range",
            ),
            (
                "XCFGSET s IDMP-DURATION 5 idmp-duration 5",
                "ERR IDMP-DURATION specified multiple times",
            ),
            (
                "XCFGSET s IDMP-MAXSIZE 5 idmp-maxsize 5",
                "ERR IDMP-MAXSIZE specified multiple times",
            ),
            ("XCFGSET s IDMP-DURATION 0", duration),
            ("XCFGSET s IDMP-DURATION 86401", duration),
            ("XCFGSET s IDMP-MAXSIZE 0", max),
            ("XCFGSET s IDMP-MAXSIZE -5", max),
            ("XCFGSET s IDMP-MAXSIZE 10001", max),
        ] {
            assert_eq!(bench.run(line), error(text), "{line}");
        }
        assert_eq!(field(bench, "idmp-duration"), int(100));
        assert_eq!(field(bench, "idmp-maxsize"), int(100));
        // The same values forget nothing.
        assert_eq!(
            bench.run("XCFGSET s IDMP-DURATION 100 IDMP-MAXSIZE 100"),
            Reply::OK
        );
        assert_eq!(tracked(bench), [int(1), int(1), int(1), int(0)]);
        assert_eq!(bench.run("XCFGSET s idmp-maxsize 10000"), Reply::OK);
        assert_eq!(field(bench, "idmp-duration"), int(100));
        assert_eq!(field(bench, "idmp-maxsize"), int(10_000));
        assert_eq!(tracked(bench), [int(0), int(0), int(1), int(0)]);
        assert_eq!(bench.run("XADD s IDMP p a * f v"), id(0, 1));
    });
}

/// Number of rows in the store after these commands.
fn rows_after(bench: &Bench, lines: &[&str]) -> usize {
    bench.run("FLUSHALL");
    for line in lines {
        bench.run(line);
    }
    bench.data_rows()
}

#[test]
fn a_stream_without_producers_has_no_more_rows_and_shows_no_more_fields() {
    on_both_stores(|bench| {
        assert_eq!(rows_after(bench, &["XADD s * f v", "XADD s * f v"]), 3);
        let Reply::Map(fields) = bench.run("XINFO STREAM s") else {
            panic!("no map");
        };
        assert_eq!(fields.len(), 10);
    });
}

#[test]
fn what_producers_have_added_goes_and_moves_with_the_key() {
    on_both_stores(|bench| {
        let add = "XADD s IDMP p a * f v";
        bench.run("XADD s IDMP p a * f v");
        bench.run("RENAME s t");
        assert_eq!(bench.run("XADD t IDMP p a * f v"), id(0, 0));
        bench.run("COPY t s");
        assert_eq!(bench.run(add), id(0, 0));
        bench.run("DEL s");
        bench.clock.advance_ms(1);
        assert_eq!(bench.run(add), id(1, 0));
        bench.run("PEXPIRE s 1");
        bench.clock.advance_ms(1);
        assert_eq!(bench.run(add), id(2, 0));
        assert_eq!(bench.run("XLEN s"), int(1));
        bench.run("FLUSHALL");
        reap(bench);
        assert_eq!(bench.data_rows(), 0);
    });
}

#[test]
fn an_entry_that_was_deleted_is_still_remembered() {
    on_both_stores(|bench| {
        bench.run("XADD s IDMP p a * f v");
        bench.run("XTRIM s MAXLEN 0");
        assert_eq!(bench.run("XADD s IDMP p a * f v"), id(0, 0));
        assert_eq!(bench.run("XLEN s"), int(0));
    });
}

#[test]
fn a_dump_has_none_of_it() {
    on_both_stores(|bench| {
        bench.run("XADD s IDMP p a * f v");
        let Reply::Bulk(dump) = bench.run("DUMP s") else {
            panic!("no dump");
        };
        bench.run_words(&[b"RESTORE", b"t", b"0", &dump]);
        assert_eq!(bench.run("XADD t IDMP p a * f v"), id(0, 1));
    });
}

#[test]
fn producers_of_which_all_is_forgotten_are_removed_by_background_work() {
    on_both_stores(|bench| {
        bench.run("XADD s IDMP p init * f v");
        bench.run("XCFGSET s IDMP-DURATION 10");
        bench.run("DEL other");
        let rows = bench.data_rows();
        for producer in 0..700 {
            bench.run(&format!("XADD s MAXLEN 1 IDMP p{producer} a * f v"));
        }
        bench.clock.advance_ms(5_000);
        bench.run("XADD s MAXLEN 1 IDMP late a * f v");
        assert_eq!(bench.data_rows(), rows + 3 * 701);
        bench.clock.advance_ms(5_100);
        // A pass examines 500, starting at a random one.
        for _ in 0..60 {
            reap(bench);
            bench.clock.advance_ms(100);
        }
        assert_eq!(bench.data_rows(), rows);
        assert_eq!(tracked(bench)[..2], [int(0), int(0)]);
    });
}

#[test]
fn producers_of_several_servers_add_an_entry_once() {
    for (line, meanwhile, conflicts) in [
        ("XADD s IDMP p a * f v", "XADD s IDMP p a * f v", true),
        ("XADD s IDMP p old * f v", "XADD s IDMP p old * f v", false),
        ("XADD s IDMP p old * f v", "XADD s IDMP p a * f v", false),
        ("XADD s IDMP p a * f v", "XCFGSET s IDMP-MAXSIZE 7", true),
        ("XADD s IDMP p a * f v", "XDEL s 1-0", false),
    ] {
        let bench = Bench::cluster_like();
        bench.run("XADD s 1-0 f v");
        bench.run("XADD s IDMP p old * f v");
        let found = bench.race(line, meanwhile, false);
        assert_eq!(found, conflicts, "{line} and {meanwhile}");
    }
    let bench = Bench::cluster_like();
    bench.race("XADD s IDMP p a * f 1", "XADD s IDMP p a * f 2", false);
    assert_eq!(bench.run("XADD s IDMP p a * f 3"), id(0, 0));
    assert_eq!(bench.run("XLEN s"), int(1));
}

/// A simple model of a producer: what it has added and when, oldest first.
type Producer = VecDeque<(u64, i64, Reply)>;

fn history(bench: &Bench, seed: u64) {
    let random = SeededRandom::new(seed);
    bench.run("XADD s 1-0 f v");
    bench.run("XCFGSET s IDMP-DURATION 1 IDMP-MAXSIZE 5");
    let (mut now_ms, mut max) = (START_MS, 5);
    let mut producers: [Producer; 3] = Default::default();
    let mut length = 1;
    for step in 0..400 {
        match random.below(12) {
            0 => {
                let passed_ms = 100 * random.below(8) as i64;
                bench.clock.advance_ms(passed_ms);
                now_ms += passed_ms;
                reap(bench);
            }
            1 if random.below(4) == 0 => {
                let given = 2 + random.below(6) as usize;
                bench.run(&format!("XCFGSET s IDMP-MAXSIZE {given}"));
                if given != max {
                    producers = Default::default();
                }
                max = given;
            }
            2 => {
                let is_new = |one: &&(u64, i64, Reply)| one.1 > now_ms - 1_000;
                let tracked = producers
                    .iter()
                    .map(|one| one.iter().filter(is_new).count());
                let tracked: usize = tracked.sum();
                assert_eq!(field(bench, "iids-tracked"), Reply::count(tracked));
                assert_eq!(bench.run("XLEN s"), int(length));
            }
            _ => {
                let at = random.below(3) as usize;
                let entry = random.below(9);
                let producer = &mut producers[at];
                producer.retain(|one| one.1 > now_ms - 1_000);
                let reply = bench.run(&format!("XADD s IDMP p{at} {entry} * f v"));
                match producer.iter().find(|one| one.0 == entry) {
                    Some((.., added)) => assert_eq!(reply, *added, "seed {seed} step {step}"),
                    None => {
                        length += 1;
                        producer.push_back((entry, now_ms, reply));
                        if producer.len() > max {
                            producer.pop_front();
                        }
                    }
                }
            }
        }
    }
    assert_eq!(bench.run("XLEN s"), int(length));
}

#[test]
fn a_random_history_of_producers_is_that_of_the_model() {
    for seed in 1..=4 {
        history(&Bench::embedded(), seed);
        history(&Bench::cluster_like(), seed);
    }
}

#[test]
fn a_producer_adds_an_entry_once_whatever_becomes_of_commits() {
    for seed in 1..4 {
        let (bench, faulty) = Bench::faulty(seed);
        faulty.set_rates(FaultRates {
            conflict_ppm: 100_000,
            unknown_applied_ppm: 100_000,
            unknown_not_applied_ppm: 100_000,
            too_old_ppm: 10_000,
            ..FaultRates::default()
        });
        for entry in 0..20 {
            let line = format!("XADD s IDMP p {entry} * f v");
            let added = bench.run(&line);
            assert_eq!(bench.run(&line), added, "seed {seed}");
        }
        assert!(faulty.counts().total() > 0);
        faulty.set_rates(FaultRates::default());
        assert_eq!(bench.run("XLEN s"), int(20));
    }
}
