//! What a queue remembers for a time: tokens of UNIQUE, and results. Also progress, and extensions
//! of several leases.

use std::collections::BTreeMap;

use super::*;

fn taken(bench: &Bench, id: &str) {
    bench.run(&format!("TASK.ADD q 1 x ID {id}"));
    bench.run("TASK.TAKE q COUNT 10 LEASE 60000");
}

#[test]
fn a_task_with_a_token_is_added_once_within_its_window() {
    on_both_stores(|bench| {
        assert_eq!(
            bench.run("TASK.ADD q 1 x ID a UNIQUE mail:7 1000"),
            bulk("a")
        );
        assert_eq!(
            bench.run("TASK.ADD q 1 x ID b unique mail:7 9000"),
            bulk("a")
        );
        assert_eq!(bench.run("TASK.ADD q 1 x UNIQUE mail:7 9000"), bulk("a"));
        assert_eq!(
            bench.run("TASK.ADD q 1 x ID c UNIQUE mail:8 1000"),
            bulk("c")
        );
        // An existing id is refused as usual.
        let exists = error("EXISTS Task id already exists");
        assert_eq!(bench.run("TASK.ADD q 1 x ID a UNIQUE mail:9 1000"), exists);
        assert_eq!(listed_ids(bench, "q", "READY", 10), ["a", "c"]);
        // The window continues after the task is done, and when the queue has no tasks.
        assert_eq!(ids(&bench.run("TASK.TAKE q COUNT 2")), ["a", "c"]);
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(1));
        bench.clock.advance_ms(999);
        assert_eq!(
            bench.run("TASK.ADD q 1 x ID d UNIQUE mail:7 1000"),
            bulk("a")
        );
        bench.clock.advance_ms(1);
        assert_eq!(
            bench.run("TASK.ADD q 1 x ID d UNIQUE mail:7 1000"),
            bulk("d")
        );
        assert_eq!(
            bench.run("TASK.ADD q 1 x ID e UNIQUE mail:7 1000"),
            bulk("d")
        );
        assert_eq!(ids(&bench.run("TASK.TAKE q COUNT 2")), ["d"]);
        bench.clock.advance_ms(1_000);
        reap(bench);
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    });
}

#[test]
fn a_token_that_was_given_again_outlives_the_end_of_its_former_window() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a UNIQUE t 1000");
        bench.clock.advance_ms(1_000);
        bench.run("TASK.ADD q 1 x ID b UNIQUE t 5000");
        reap(bench);
        assert_eq!(bench.run("TASK.ADD q 1 x ID c UNIQUE t 5000"), bulk("b"));
        bench.clock.advance_ms(4_000);
        reap(bench);
        assert_eq!(bench.run("TASK.ADD q 1 x ID c UNIQUE t 5000"), bulk("b"));
    });
}

#[test]
fn two_servers_add_a_task_with_a_token_once() {
    let bench = Bench::cluster_like();
    bench.run("TASK.ADD q 1 x");
    let line = "TASK.ADD q 1 x UNIQUE t 1000";
    assert!(bench.race(line, line, false));
    let bench = Bench::cluster_like();
    bench.run("TASK.ADD q 1 x UNIQUE s 1000");
    assert!(!bench.race(line, "TASK.ADD q 1 x UNIQUE other 1000", false));
}

#[test]
fn a_result_is_kept_for_its_time() {
    on_both_stores(|bench| {
        taken(bench, "a");
        assert_eq!(bench.run("TASK.RESULT q a"), Reply::Null);
        assert_eq!(bench.run("TASK.ACK q a RESULT 42 KEEP 1000"), codes(&[1]));
        assert_eq!(bench.run("TASK.RESULT q a"), bulk("42"));
        assert_eq!(bench.run("TASK.LEN q"), Reply::Integer(0));
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(1));
        // A later task with the same id has a result of its own.
        taken(bench, "a");
        let token = match bench.run("TASK.LIST q LEASED") {
            Reply::Array(_) => "0000000000000001",
            other => panic!("{other:?}"),
        };
        let foreign = format!("TASK.ACK q a RESULT 43 KEEP 5000 TOKEN {token}");
        assert_eq!(bench.run(&foreign), codes(&[-2]));
        assert_eq!(bench.run("TASK.RESULT q a"), bulk("42"));
        assert_eq!(bench.run("TASK.ACK q a RESULT 43 KEEP 5000"), codes(&[1]));
        bench.clock.advance_ms(1_000);
        reap(bench);
        assert_eq!(bench.run("TASK.RESULT q a"), bulk("43"));
        bench.clock.advance_ms(4_000);
        assert_eq!(bench.run("TASK.RESULT q a"), Reply::Null);
        reap(bench);
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
        assert_eq!(bench.run("TASK.ACK q a RESULT 44 KEEP 5000"), codes(&[0]));
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    });
}

#[test]
fn all_who_wait_for_a_result_get_it_and_no_others() {
    on_both_stores(|bench| {
        let waiting = ["a", "a", "b"].map(|id| bench.wait(&format!("TASK.RESULT q {id} BLOCK 0")));
        let [one, other, mut none] = waiting;
        let consumer = bench.wait("TASK.TAKE q LEASE 60000 BLOCK 0");
        bench.run("TASK.ADD q 1 x ID a");
        assert_eq!(ids(&consumer.reply(bench)), ["a"]);
        let mut idle = bench.wait("TASK.TAKE q BLOCK 0");
        bench.run("TASK.ACK q a RESULT done KEEP 1000");
        assert_eq!(one.reply(bench), bulk("done"));
        assert_eq!(other.reply(bench), bulk("done"));
        assert!(none.is_waiting() && idle.is_waiting());
        assert_eq!(bench.run("TASK.RESULT q a BLOCK 0"), bulk("done"));
        bench.run("TASK.ADD q 1 x ID c");
        assert_eq!(ids(&idle.reply(bench)), ["c"]);
        assert!(none.is_waiting());
    });
}

#[test]
fn progress_is_noted_by_who_has_the_lease() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a");
        let progress = |value: &str| bench.run(&format!("TASK.PROGRESS q a {value}"));
        assert_eq!(progress("10%"), Reply::Integer(-1));
        let token = token(&bench.run("TASK.TAKE q LEASE 1000"));
        assert_eq!(progress("10%"), Reply::Integer(1));
        assert_eq!(progress(&format!("20% TOKEN {token}")), Reply::Integer(1));
        assert_eq!(progress("30% TOKEN 0000000000000001"), Reply::Integer(-2));
        let noted = || match bench.run("TASK.GET q a") {
            Reply::Map(fields) => field(&fields, "progress"),
            other => panic!("{other:?}"),
        };
        assert_eq!(noted(), bulk("20%"));
        // The next consumer can continue from there.
        bench.clock.advance_ms(2_000);
        reap(bench);
        assert_eq!(progress("40%"), Reply::Integer(-1));
        bench.run("TASK.TAKE q LEASE 1000");
        assert_eq!(noted(), bulk("20%"));
        assert_eq!(
            field(&listed(bench, "q", "LEASED", 1)[0], "progress"),
            bulk("20%")
        );
        assert_eq!(bench.run("TASK.PROGRESS q b 1"), Reply::Integer(0));
        assert_eq!(bench.run("TASK.PROGRESS none b 1"), Reply::Integer(0));
        let long = "p".repeat(1_025);
        assert_eq!(
            progress(&long),
            error("ERR progress has more than 1024 bytes")
        );
    });
}

#[test]
fn several_leases_are_extended_at_once() {
    on_both_stores(|bench| {
        for id in ["a", "b", "c"] {
            bench.run(&format!("TASK.ADD q 1 x ID {id}"));
        }
        let token = token(&bench.run("TASK.TAKE q COUNT 2 LEASE 1000"));
        let extended = bench.run(&format!("TASK.MEXTEND q 60000 a b c d TOKEN {token}"));
        assert_eq!(extended, codes(&[1, 1, -1, 0]));
        bench.run("TASK.TAKE q LEASE 60000");
        let extended = bench.run(&format!("TASK.MEXTEND q 60000 c TOKEN {token}"));
        assert_eq!(extended, codes(&[-2]));
        bench.clock.advance_ms(5_000);
        reap(bench);
        assert_eq!(bench.run("TASK.LEN q LEASED"), Reply::Integer(3));
        assert_eq!(bench.run("TASK.MEXTEND none 1000 a b"), codes(&[0, 0]));
    });
}

#[test]
fn what_is_not_understood_is_refused() {
    on_both_stores(|bench| {
        taken(bench, "a");
        let long = "x".repeat(65_537);
        for (line, message) in [
            (
                "TASK.ADD q 1 x UNIQUE t 0",
                "ERR time of UNIQUE is out of range, must be positive",
            ),
            (
                "TASK.ADD q 1 x UNIQUE t x",
                "ERR time of UNIQUE is not an integer or out of range",
            ),
            (
                "TASK.ACK q a RESULT 1 KEEP 0",
                "ERR KEEP is out of range, must be positive",
            ),
            (
                "TASK.ACK q a RESULT 1 KEEP x",
                "ERR KEEP is not an integer or out of range",
            ),
            (
                &format!("TASK.ACK q a RESULT {long} KEEP 1"),
                "ERR result has more than 65536 bytes",
            ),
            (
                "TASK.MEXTEND q 0 a",
                "ERR lease is out of range, must be positive",
            ),
            (
                "TASK.RESULT q a BLOCK x",
                "ERR timeout is not an integer or out of range",
            ),
        ] {
            assert_eq!(bench.run(line), error(message), "{line}");
        }
        for line in [
            "TASK.ADD q 1 x UNIQUE t",
            "TASK.ADD q 1 x UNIQUE t 1 UNIQUE t 1",
            "TASK.ACK q a RESULT 1",
            "TASK.ACK q a RESULT 1 KEEP",
            "TASK.ACK q a RESULT 1 FOR 5",
            "TASK.ACK q a b RESULT 1 KEEP 5",
            "TASK.ACK q a RESULT 1 KEEP 5 x",
            "TASK.RESULT q a b",
            "TASK.PROGRESS q a b c",
        ] {
            assert_eq!(bench.run(line), syntax_error(line), "{line}");
        }
        assert_eq!(bench.run("TASK.LEN q LEASED"), Reply::Integer(1));
        assert_eq!(bench.run("EXISTS t"), Reply::Integer(0));
    });
}

#[test]
fn tokens_and_results_go_along_with_copies_names_and_dumps() {
    on_both_stores(|bench| {
        for tasks in 0..2 {
            for number in 0..20 {
                bench.run(&format!(
                    "TASK.ADD q 1 x ID t{number} UNIQUE u{number} 60000"
                ));
                bench.run("TASK.TAKE q LEASE 60000");
                bench.run(&format!("TASK.ACK q t{number} RESULT r{number} KEEP 60000"));
            }
            if tasks == 1 {
                bench.run("TASK.ADD q 1 x ID left");
            }
            bench.run("COPY q copy");
            bench.run("RENAME copy renamed");
            let Reply::Bulk(payload) = bench.run("DUMP q") else {
                panic!("no payload");
            };
            bench.run_words(&[b"RESTORE", b"restored", b"0", &payload]);
            let mut cursor = "0".to_owned().into_bytes();
            let mut loaded = 0;
            loop {
                let reply = bench.run_words(&[b"TASK.SCANDUMP", b"q", &cursor, b"COUNT", b"7"]);
                let Reply::Array(reply) = reply else {
                    panic!("{reply:?}");
                };
                let [Reply::Bulk(next), Reply::Array(chunks)] = &reply[..] else {
                    panic!("{reply:?}");
                };
                for chunk in chunks {
                    let Reply::Bulk(chunk) = chunk else {
                        panic!("{chunk:?}");
                    };
                    match bench.run_words(&[b"TASK.LOADCHUNK", b"loaded", chunk]) {
                        Reply::Integer(count) => loaded += count,
                        other => panic!("{other:?}"),
                    }
                }
                cursor = next.to_vec();
                if cursor == b"0" {
                    break;
                }
            }
            assert_eq!(loaded, tasks);
            for key in ["renamed", "restored", "loaded"] {
                assert_eq!(
                    bench.run(&format!("TASK.LEN {key}")),
                    Reply::Integer(tasks),
                    "{key}"
                );
                for number in [0, 7, 13, 19] {
                    let result = bench.run(&format!("TASK.RESULT {key} t{number}"));
                    assert_eq!(result, bulk(&format!("r{number}")), "{key}");
                    let again = bench.run(&format!("TASK.ADD {key} 1 x UNIQUE u{number} 1000"));
                    assert_eq!(again, bulk(&format!("t{number}")), "{key}");
                }
                bench.run(&format!("TASK.CANCEL {key} left"));
            }
            bench.run("TASK.CANCEL q left");
            bench.clock.advance_ms(60_000);
            reap(bench);
            let left = bench.run("EXISTS q renamed restored loaded");
            assert_eq!(left, Reply::Integer(0));
        }
    });
}

#[test]
fn a_queue_with_options_stays_when_its_results_are_over() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q MAXTRIES 2");
        taken(bench, "a");
        bench.run("TASK.ACK q a RESULT 1 KEEP 1000");
        bench.run("TASK.SETOPTIONS q MAXTRIES 0");
        assert_eq!(bench.run("TASK.RESULT q a"), bulk("1"));
        bench.run("TASK.SETOPTIONS q MAXTRIES 2");
        bench.clock.advance_ms(1_000);
        reap(bench);
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(1));
        bench.run("TASK.SETOPTIONS q MAXTRIES 0");
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    });
}

/// Tokens and results of random commands, compared with maps.
#[test]
fn a_random_history_of_tokens_and_results_is_that_of_maps() {
    for (seed, bench) in [
        (1, Bench::embedded()),
        (2, Bench::cluster_like()),
        (3, Bench::embedded()),
    ] {
        let random = SeededRandom::new(seed);
        let mut now_ms = quoin_engine::testing::START_MS;
        let mut tokens: BTreeMap<u64, (i64, String)> = BTreeMap::new();
        let mut results: BTreeMap<String, (i64, String)> = BTreeMap::new();
        let mut tasks: Vec<String> = Vec::new();
        for step in 0..800 {
            let told = format!("seed {seed} step {step}");
            let time_ms = 100 * (1 + random.below(50) as i64);
            match random.below(8) {
                0..=2 => {
                    let token = random.below(6);
                    let line = format!("TASK.ADD q 1 x ID t{step} UNIQUE u{token} {time_ms}");
                    let known = tokens
                        .get(&token)
                        .filter(|(until_ms, _)| *until_ms > now_ms);
                    let expected = known.map_or_else(|| format!("t{step}"), |(_, id)| id.clone());
                    assert_eq!(bench.run(&line), bulk(&expected), "{told}");
                    if known.is_none() {
                        tokens.insert(token, (now_ms + time_ms, expected.clone()));
                        tasks.push(expected);
                    }
                }
                3..=4 if !tasks.is_empty() => {
                    let id = tasks.remove(0);
                    assert_eq!(
                        ids(&bench.run("TASK.TAKE q LEASE 600000")),
                        [id.as_str()],
                        "{told}"
                    );
                    let line = format!("TASK.ACK q {id} RESULT r{step} KEEP {time_ms}");
                    assert_eq!(bench.run(&line), codes(&[1]), "{told}");
                    results.insert(id, (now_ms + time_ms, format!("r{step}")));
                }
                5 => {
                    bench.clock.advance_ms(time_ms);
                    now_ms += time_ms;
                }
                6 => reap(&bench),
                _ => {
                    for (id, (until_ms, result)) in &results {
                        let expected = match *until_ms > now_ms {
                            true => bulk(result),
                            false => Reply::Null,
                        };
                        assert_eq!(
                            bench.run(&format!("TASK.RESULT q {id}")),
                            expected,
                            "{told}"
                        );
                    }
                    reap(&bench);
                    let mut ends = { tokens.values() }.chain(results.values());
                    let is_kept = ends.any(|(until_ms, _)| *until_ms > now_ms);
                    let exists = Reply::count(usize::from(is_kept || !tasks.is_empty()));
                    assert_eq!(bench.run("EXISTS q"), exists, "{told}");
                }
            }
        }
    }
}
