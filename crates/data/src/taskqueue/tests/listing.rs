//! TASK.LIST, and what is stored about workers and reasons.

use super::*;
use bytes::Bytes;
use quoin_base::limits::{TASK_LIST_CHECKED_MAX, TASK_REASON_BYTES_MAX};
use quoin_engine::testing::START_MS;

#[test]
fn each_state_is_listed_with_its_time() {
    on_both_stores(|bench| {
        let tolerance_ms = match bench.store.capabilities().has_other_writers {
            true => 500,
            false => 0,
        };
        bench.run("TASK.ADD q 2 x ID ready NEEDS gb 2");
        bench.run("TASK.ADD q 1 x ID delayed DELAY 7000");
        bench.run("TASK.ADD q 0 x ID dead MAXTRIES 1");
        bench.run("TASK.ADD q 0 x ID leased");
        bench.run("TASK.TAKE q COUNT 2 LEASE 5000 WORKER w1");
        bench.run("TASK.NACK q dead REASON broken");
        let times = [
            ("READY", "ready", START_MS),
            ("LEASED", "leased", START_MS + 5_000 + tolerance_ms),
            ("DELAYED", "delayed", START_MS + 7_000),
            ("DEAD", "dead", START_MS),
        ];
        for (state, id, at_ms) in times {
            let tasks = listed(bench, "q", state, 10);
            assert_eq!(tasks.len(), 1, "{state}");
            assert_eq!(field(&tasks[0], "id"), bulk(id));
            assert_eq!(field(&tasks[0], "at-ms"), Reply::Integer(at_ms), "{state}");
        }
        let Reply::Map(fields) = bench.run("TASK.GET q dead") else {
            panic!("no task");
        };
        assert_eq!(field(&fields, "worker"), bulk("w1"));
        assert_eq!(field(&fields, "reason"), bulk("broken"));
        assert_eq!(field(&fields, "at-ms"), Reply::Integer(START_MS));
        let dead = parts(&bench.run("TASK.DEAD q"));
        assert_eq!(dead[0][5], bulk("broken"));
    });
}

#[test]
fn ready_tasks_of_several_classes_are_listed_in_the_order_of_takes() {
    on_both_stores(|bench| {
        let random = SeededRandom::new(5);
        for number in 0..300 {
            let (gb, cards) = (random.below(40), random.below(3));
            let priority = random.below(4);
            let line = format!("TASK.ADD q {priority} x ID t{number} NEEDS gb {gb} cards {cards}");
            bench.run(&line);
        }
        reap(bench);
        let listed = listed_ids(bench, "q", "READY", 7);
        assert_eq!(listed.len(), 300);
        let order = bench.run("TASK.PEEK q COUNT 400 HAVING gb inf cards inf");
        assert_eq!(listed, ids(&order));
    });
}

#[test]
fn tasks_that_stay_are_listed_once_while_others_come_and_go() {
    on_both_stores(|bench| {
        for number in 0..60 {
            bench.run(&format!("TASK.ADD q {} x ID t{number:02}", number % 3));
        }
        let mut cursor = "0".to_owned();
        let mut seen = Vec::new();
        for round in 0.. {
            let line = format!("TASK.LIST q READY CURSOR {cursor} COUNT 5");
            let (next, tasks) = page(bench.run(&line));
            seen.extend(tasks.iter().map(|task| text(&field(task, "id"))));
            // One task before the cursor, the one that was listed last, and a new one at each end.
            bench.run("TASK.TAKE q");
            if let Some(last) = seen.last() {
                bench.run(&format!("TASK.CANCEL q {last}"));
            }
            bench.run(&format!("TASK.ADD q -1 x ID before{round}"));
            bench.run(&format!("TASK.ADD q 0 x ID between{round}"));
            cursor = next;
            if cursor == "0" {
                break;
            }
        }
        let mut old: Vec<_> = seen.iter().filter(|id| id.starts_with('t')).collect();
        let count = old.len();
        old.sort();
        old.dedup();
        assert_eq!(old.len(), count, "one came twice");
        for number in 0..60 {
            let id = format!("t{number:02}");
            let is_there = bench.run(&format!("TASK.GET q {id}")) != Reply::Null;
            assert!(!is_there || seen.contains(&id), "{id} was left out");
        }
    });
}

#[test]
fn a_list_of_leased_tasks_passes_over_delayed_ones_in_bounded_steps() {
    on_both_stores(|bench| {
        for _ in 0..TASK_LIST_CHECKED_MAX + 50 {
            bench.run("TASK.ADD q 1 x DELAY 1000");
        }
        bench.run("TASK.ADD q 1 x ID leased");
        bench.run("TASK.TAKE q LEASE 90000");
        let (cursor, tasks) = page(bench.run("TASK.LIST q LEASED"));
        assert!(cursor != "0" && tasks.is_empty(), "{cursor} {tasks:?}");
        assert_eq!(listed_ids(bench, "q", "LEASED", 10), ["leased"]);
    });
}

#[test]
fn a_long_reason_is_cut_off_between_characters() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a");
        bench.run("TASK.TAKE q LEASE 1000");
        let long = format!("x{}", "ä".repeat(TASK_REASON_BYTES_MAX));
        let nack: [&[u8]; 5] = [b"TASK.NACK", b"q", b"a", b"REASON", long.as_bytes()];
        assert_eq!(bench.run_words(&nack), Reply::Integer(1));
        let tasks = listed(bench, "q", "READY", 10);
        let kept = text(&field(&tasks[0], "reason"));
        assert_eq!(kept.len(), TASK_REASON_BYTES_MAX - 1);
        assert!(long.starts_with(&kept));
    });
}

#[test]
fn a_long_reason_that_is_no_text_is_cut_off_at_its_limit() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a");
        bench.run("TASK.TAKE q LEASE 1000");
        let long = [0x9f; TASK_REASON_BYTES_MAX + 100];
        let nack: [&[u8]; 5] = [b"TASK.NACK", b"q", b"a", b"REASON", &long];
        assert_eq!(bench.run_words(&nack), Reply::Integer(1));
        let tasks = listed(bench, "q", "READY", 10);
        let kept = Reply::Bulk(Bytes::copy_from_slice(&long[..TASK_REASON_BYTES_MAX]));
        assert_eq!(field(&tasks[0], "reason"), kept);
    });
}

#[test]
fn the_last_reason_stays_until_there_is_another_and_the_last_worker_until_the_next_take() {
    on_both_stores(|bench| {
        let notes = || {
            let Reply::Map(fields) = bench.run("TASK.GET q a") else {
                panic!("no task");
            };
            (field(&fields, "worker"), field(&fields, "reason"))
        };
        bench.run("TASK.ADD q 1 x ID a MAXTRIES 3");
        assert_eq!(notes(), (Reply::Null, Reply::Null));
        bench.run("TASK.TAKE q LEASE 1000 WORKER w1");
        bench.run("TASK.NACK q a REASON first");
        assert_eq!(notes(), (bulk("w1"), bulk("first")));
        bench.run("TASK.TAKE q LEASE 1000");
        bench.run("TASK.NACK q a");
        assert_eq!(notes(), (Reply::Null, bulk("first")));
        bench.run("TASK.TAKE q LEASE 1000 WORKER w2");
        bench.run("TASK.NACK q a REASON second");
        bench.run("TASK.REVIVE q a");
        assert_eq!(notes(), (bulk("w2"), bulk("second")));
    });
}

#[test]
fn notes_go_along_with_dumps_and_copies() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a NEEDS gb 1 MAXTRIES 1");
        bench.run("TASK.ADD q 1 x ID b");
        bench.run("TASK.TAKE q HAVING gb 1 LEASE 1000 WORKER w1");
        bench.run("TASK.NACK q a REASON broken");
        let Reply::Bulk(payload) = bench.run("DUMP q") else {
            panic!("no payload");
        };
        bench.run_words(&[b"RESTORE", b"restored", b"0", &payload]);
        bench.run("COPY q copy");
        let dead = listed(bench, "q", "DEAD", 10);
        assert_eq!(field(&dead[0], "reason"), bulk("broken"));
        for key in ["restored", "copy"] {
            assert_eq!(listed(bench, key, "DEAD", 10), dead, "{key}");
            assert_eq!(
                bench.run(&format!("TASK.GET {key} b")),
                bench.run("TASK.GET q b")
            );
            assert_eq!(
                bench.run(&format!("DUMP {key}")),
                Reply::Bulk(payload.clone())
            );
        }
    });
}

#[test]
fn a_resource_may_be_called_worker() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a NEEDS worker 1");
        let taken = bench.run("TASK.TAKE q HAVING worker 1 LEASE 1000 WORKER w1");
        assert_eq!(ids(&taken), ["a"]);
    });
}

#[test]
fn words_that_are_not_known_are_refused_and_never_ids() {
    let bench = Bench::embedded();
    bench.run("TASK.ADD q 1 x ID a");
    let place = "21".repeat(9);
    for (line, text) in [
        ("TASK.LIST q ALL", "ERR syntax error"),
        ("TASK.LIST q READY 0", "ERR syntax error"),
        ("TASK.LIST q READY COUNT", "ERR syntax error"),
        (
            "TASK.LIST q READY COUNT 0",
            "ERR COUNT is out of range, must be positive",
        ),
        ("TASK.LIST q READY LIMIT 5", "ERR syntax error"),
        ("TASK.LIST q READY CURSOR 5", "ERR invalid cursor"),
        ("TASK.LIST q READY CURSOR +5", "ERR invalid cursor"),
        (
            &format!("TASK.LIST q READY CURSOR {place}"),
            "ERR invalid cursor",
        ),
        (
            &format!("TASK.LIST q DEAD CURSOR {place}"),
            "ERR invalid cursor",
        ),
        ("TASK.TAKE q WORKER w", "ERR syntax error"),
        ("TASK.TAKE q LEASE 5 WORKER", "ERR syntax error"),
        ("TASK.NACK q a REASON", "ERR syntax error"),
        ("TASK.NACK q a WHY broken", "ERR syntax error"),
        ("TASK.ACK q a TOKEN", "ERR syntax error"),
        ("TASK.CANCEL q a token", "ERR syntax error"),
        (
            "TASK.ADD q 1 x ID all",
            "ERR task id cannot be the name of an option",
        ),
    ] {
        let expected = match text {
            "ERR syntax error" => syntax_error(line),
            text => error(text),
        };
        assert_eq!(bench.run(line), expected, "{line}");
    }
    let long = format!("TASK.TAKE q LEASE 5 WORKER {}", "w".repeat(257));
    let refused = error("ERR name of a worker must have 1 to 256 bytes");
    assert_eq!(bench.run(&long), refused);
    assert_eq!(bench.run("TASK.LEN q READY"), Reply::Integer(1));
    assert_eq!(
        bench.run("TASK.LIST none READY"),
        bench.run("TASK.LIST q DEAD")
    );
}
