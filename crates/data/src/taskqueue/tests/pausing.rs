//! TASK.PAUSE and TASK.RESUME.

use super::*;

fn is_paused(bench: &Bench, key: &str) -> bool {
    match bench.run(&format!("TASK.INFO {key}")) {
        Reply::Map(fields) => field(&fields, "paused") == Reply::Integer(1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_paused_queue_gives_nothing_and_takes_everything() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a");
        bench.run("TASK.ADD q 1 x ID b");
        bench.run("TASK.TAKE q LEASE 60000");
        assert_eq!(bench.run("TASK.PAUSE q"), Reply::Integer(1));
        assert_eq!(bench.run("TASK.PAUSE q"), Reply::Integer(0));
        assert!(is_paused(bench, "q"));
        assert_eq!(bench.run("TASK.TAKE q"), Reply::NullArray);
        assert_eq!(bench.run("TASK.TAKE q LEASE 1000"), Reply::NullArray);
        bench.run("TASK.ADD q 1 x ID c NEEDS gb 1");
        bench.run("TASK.ADD q 1 x ID d DELAY 1000");
        assert_eq!(bench.run("TASK.EXTEND q a 60000"), Reply::Integer(1));
        assert_eq!(bench.run("TASK.ACK q a"), codes(&[1]));
        bench.clock.advance_ms(1_000);
        reap(bench);
        let waiting = ["b", "c", "d"];
        assert_eq!(listed_ids(bench, "q", "READY", 10), waiting);
        assert_eq!(bench.run("TASK.TAKE q HAVING gb 1"), Reply::NullArray);
        assert_eq!(bench.run("TASK.RESUME q"), Reply::Integer(1));
        assert_eq!(bench.run("TASK.RESUME q"), Reply::Integer(0));
        assert!(!is_paused(bench, "q"));
        let taken = bench.run("TASK.TAKE q COUNT 9 HAVING gb 1");
        assert_eq!(ids(&taken), waiting);
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    });
}

#[test]
fn a_queue_stays_paused_without_tasks() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("TASK.PAUSE q"), Reply::Integer(1));
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(1));
        assert_eq!(bench.run("TYPE q"), Reply::Simple("taskqueue"));
        assert_eq!(bench.run("TASK.LEN q"), Reply::Integer(0));
        for _ in 0..2 {
            bench.run("TASK.ADD q 1 x ID a");
            assert_eq!(bench.run("TASK.TAKE q"), Reply::NullArray);
            assert_eq!(bench.run("TASK.CANCEL q a"), Reply::Integer(1));
            bench.clock.advance_ms(60_000);
            reap(bench);
            assert!(is_paused(bench, "q"));
        }
        assert_eq!(bench.run("TASK.RESUME q"), Reply::Integer(1));
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
        assert_eq!(bench.run("TASK.RESUME q"), Reply::Integer(0));
        bench.run("TASK.PAUSE q");
        assert_eq!(bench.run("DEL q"), Reply::Integer(1));
        bench.run("TASK.ADD q 1 x ID a");
        assert_eq!(ids(&bench.run("TASK.TAKE q")), ["a"]);
        bench.run("TASK.PAUSE q");
        bench.run("PEXPIRE q 1000");
        bench.clock.advance_ms(1_000);
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    });
}

#[test]
fn consumers_that_wait_get_their_tasks_when_the_queue_goes_on() {
    on_both_stores(|bench| {
        let before = bench.wait("TASK.TAKE q HAVING gb 1 BLOCK 0");
        bench.run("TASK.PAUSE q");
        let small = bench.wait("TASK.TAKE q LEASE 1000 BLOCK 0");
        let large = bench.wait("TASK.TAKE q HAVING gb 4 LEASE 1000 BLOCK 0");
        let none = bench.wait("TASK.TAKE q HAVING cards 1 BLOCK 0");
        bench.run("TASK.ADD q 1 x ID first NEEDS gb 1");
        bench.run("TASK.ADD q 1 x ID large NEEDS gb 3");
        bench.run("TASK.ADD q 1 x ID small");
        assert_eq!(bench.run("TASK.LEN q READY"), Reply::Integer(3));
        assert_eq!(bench.run("TASK.RESUME q"), Reply::Integer(1));
        assert_eq!(ids(&before.reply(bench)), ["first"]);
        assert_eq!(ids(&small.reply(bench)), ["small"]);
        assert_eq!(ids(&large.reply(bench)), ["large"]);
        bench.run("TASK.ADD q 1 x ID last");
        assert_eq!(ids(&none.reply(bench)), ["last"]);
    });
}

#[test]
fn a_pause_goes_along_with_copies_names_and_dumps() {
    on_both_stores(|bench| {
        bench.run("TASK.PAUSE q");
        for tasks in 0..2 {
            bench.run("COPY q copy");
            let Reply::Bulk(payload) = bench.run("DUMP q") else {
                panic!("no payload");
            };
            bench.run_words(&[b"RESTORE", b"restored", b"0", &payload]);
            let Reply::Array(parts) = bench.run("TASK.SCANDUMP q 0") else {
                panic!("no array");
            };
            let Reply::Array(chunks) = &parts[1] else {
                panic!("{parts:?}");
            };
            let Reply::Bulk(chunk) = &chunks[0] else {
                panic!("{chunks:?}");
            };
            let loaded = bench.run_words(&[b"TASK.LOADCHUNK", b"loaded", chunk]);
            assert_eq!(loaded, Reply::Integer(tasks));
            bench.run("RENAME copy renamed");
            for key in ["restored", "loaded", "renamed"] {
                assert!(is_paused(bench, key), "{key}");
                assert_eq!(bench.run(&format!("TASK.LEN {key}")), Reply::Integer(tasks));
                assert_eq!(bench.run(&format!("TASK.TAKE {key}")), Reply::NullArray);
                assert_eq!(bench.run(&format!("TASK.RESUME {key}")), Reply::Integer(1));
                bench.run(&format!("DEL {key}"));
            }
            bench.run("TASK.ADD q 1 x");
        }
    });
}

#[test]
fn a_take_that_has_not_seen_the_pause_conflicts() {
    let bench = Bench::cluster_like();
    bench.run("TASK.ADD q 1 x");
    bench.run("TASK.ADD q 1 x");
    assert!(bench.race("TASK.TAKE q LEASE 1000", "TASK.PAUSE q", false));
}

#[test]
fn a_pause_within_a_transaction_holds_for_what_follows() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a");
        let replies = bench.exec(&[
            "TASK.PAUSE q",
            "TASK.TAKE q",
            "TASK.RESUME q",
            "TASK.TAKE q",
        ]);
        let Reply::Array(replies) = replies else {
            panic!("{replies:?}");
        };
        assert_eq!(replies[1], Reply::NullArray);
        assert_eq!(ids(&replies[3]), ["a"]);
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    });
}
