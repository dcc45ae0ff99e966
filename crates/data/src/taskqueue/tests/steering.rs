//! TASK.REVIVE with ALL, TASK.PURGE and TASK.MOVE.

use super::*;
use quoin_base::limits::TASK_STEERED_MAX;

/// Adds tasks that are dead when the clock has advanced and background work has run.
fn add_dead(bench: &Bench, count: usize) {
    for _ in 0..count {
        bench.run("TASK.ADD q 1 x MAXTRIES 1");
    }
    let mut left = count;
    while left > 0 {
        let taken = bench.run("TASK.TAKE q COUNT 10000 LEASE 1");
        left -= ids(&taken).len();
    }
    bench.clock.advance_ms(1_000);
    reap(bench);
    assert_eq!(bench.run("TASK.LEN q DEAD"), Reply::count(count));
}

/// Purges a state completely. Returns how many tasks each command removed.
fn purge(bench: &Bench, state: &str) -> Vec<i64> {
    let mut cursor = "0".to_owned();
    let mut removed = Vec::new();
    loop {
        let Reply::Array(parts) = bench.run(&format!("TASK.PURGE q {state} CURSOR {cursor}"))
        else {
            panic!("no array");
        };
        let [next, Reply::Integer(count)] = &parts[..] else {
            panic!("{parts:?}");
        };
        removed.push(*count);
        cursor = text(next);
        if cursor == "0" {
            return removed;
        }
    }
}

/// Checks that an emptied queue leaves no rows. A cluster retains its metadata for a while.
fn has_no_rows(bench: &Bench) {
    reap(bench);
    if !bench.store.capabilities().has_other_writers {
        assert_eq!(bench.data_rows(), 0);
    }
}

#[test]
fn all_dead_tasks_are_revived_in_bounded_steps() {
    on_both_stores(|bench| {
        let count = TASK_STEERED_MAX + 300;
        add_dead(bench, count);
        bench.run("TASK.ADD q 1 x ID ready");
        let mut revived = 0;
        let mut steps = 0;
        loop {
            let Reply::Integer(some) = bench.run("TASK.REVIVE q all") else {
                panic!("no number");
            };
            assert!(some as usize <= TASK_STEERED_MAX);
            if some == 0 {
                break;
            }
            revived += some;
            steps += 1;
        }
        assert!(steps >= 2);
        assert_eq!(revived as usize, count);
        assert_eq!(bench.run("TASK.LEN q DEAD"), Reply::Integer(0));
        assert_eq!(bench.run("TASK.LEN q READY"), Reply::count(count + 1));
        let taken = bench.run("TASK.TAKE q LEASE 1000");
        assert_eq!(parts(&taken)[0][2], Reply::Integer(1), "tries begin again");
    });
}

#[test]
fn consumers_that_wait_get_tasks_that_are_revived_together() {
    on_both_stores(|bench| {
        add_dead(bench, 2);
        let waiting = [(); 2].map(|()| bench.wait("TASK.TAKE q BLOCK 0"));
        assert_eq!(bench.run("TASK.REVIVE q ALL"), Reply::Integer(2));
        for one in waiting {
            assert_eq!(ids(&one.reply(bench)).len(), 1);
        }
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    });
}

#[test]
fn a_state_is_purged_in_bounded_steps_and_others_stay() {
    on_both_stores(|bench| {
        let count = TASK_STEERED_MAX + 100;
        add_dead(bench, count);
        let long = vec![b'x'; 200_000];
        bench.run_words(&[b"TASK.ADD", b"q", b"1", &long, b"ID", b"ready"]);
        bench.run("TASK.ADD q 2 x ID many NEEDS gb 1");
        bench.run("TASK.ADD q 0 x ID leased");
        bench.run("TASK.TAKE q LEASE 90000");
        bench.run("TASK.ADD q 0 x ID delayed DELAY 5000");
        let removed = purge(bench, "DEAD");
        assert!(
            removed.len() >= 2 && removed.iter().all(|some| *some <= 1_000),
            "{removed:?}"
        );
        assert_eq!(removed.iter().sum::<i64>() as usize, count);
        assert_eq!(bench.run("TASK.LEN q"), Reply::Integer(4));
        assert_eq!(purge(bench, "DELAYED").iter().sum::<i64>(), 1);
        assert_eq!(bench.run("TASK.GET q delayed"), Reply::Null);
        assert_eq!(purge(bench, "READY").iter().sum::<i64>(), 2);
        assert_eq!(bench.run("TASK.TAKE q HAVING gb 1"), Reply::NullArray);
        assert_eq!(bench.run("TASK.LEN q"), Reply::Integer(1));
        assert_eq!(purge(bench, "LEASED"), [1]);
        assert_eq!(bench.run("TASK.ACK q leased"), codes(&[0]));
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
        has_no_rows(bench);
    });
}

#[test]
fn a_purge_of_delayed_tasks_passes_over_leased_ones_in_bounded_steps() {
    on_both_stores(|bench| {
        let count = TASK_STEERED_MAX + 200;
        for _ in 0..count {
            bench.run("TASK.ADD q 1 x");
        }
        let mut left = count;
        while left > 0 {
            left -= ids(&bench.run("TASK.TAKE q COUNT 10000 LEASE 1000")).len();
        }
        bench.run("TASK.ADD q 1 x DELAY 90000");
        let removed = purge(bench, "DELAYED");
        assert!(removed.len() >= 2);
        assert_eq!(removed.iter().sum::<i64>(), 1);
        assert_eq!(bench.run("TASK.LEN q LEASED"), Reply::count(count));
    });
}

#[test]
fn a_task_is_moved_with_its_state_and_comes_after_the_others_of_its_priority() {
    on_both_stores(|bench| {
        let long = "x".repeat(200_000);
        bench.run("TASK.ADD q 1 old ID old MAXTRIES 1");
        bench.run("TASK.TAKE q LEASE 1000 WORKER w1");
        bench.run("TASK.NACK q old REASON broken");
        bench.run(&format!("TASK.ADD q 1 {long} ID long NEEDS gb 2"));
        bench.run("TASK.ADD q 1 x ID late DELAY 5000");
        bench.run("TASK.ADD q -1 x ID leased");
        bench.run("TASK.TAKE q LEASE 90000");
        bench.run("TASK.ADD other 1 first ID first NEEDS cpu 1");
        let moved = bench.run("TASK.MOVE q other old long late leased none long");
        assert_eq!(moved, Reply::Integer(3));
        let dead = listed(bench, "other", "DEAD", 10);
        assert_eq!(field(&dead[0], "id"), bulk("old"));
        assert_eq!(field(&dead[0], "reason"), bulk("broken"));
        assert_eq!(field(&dead[0], "worker"), bulk("w1"));
        assert_eq!(bench.run("TASK.LEN q"), Reply::Integer(1));
        let having = "HAVING gb 2 cpu 1";
        let peeked = bench.run(&format!("TASK.PEEK other COUNT 9 {having}"));
        assert_eq!(ids(&peeked), ["first", "long"]);
        bench.clock.advance_ms(5_000);
        reap(bench);
        bench.run("TASK.REVIVE other old");
        let taken = bench.run(&format!("TASK.TAKE other COUNT 9 {having}"));
        assert_eq!(ids(&taken), ["first", "old", "long", "late"]);
        assert_eq!(parts(&taken)[2][4], bulk(&long));
        // The last task is removed, and the queue with it.
        bench.run("TASK.NACK q leased");
        assert_eq!(bench.run("TASK.MOVE q other leased"), Reply::Integer(1));
        assert_eq!(bench.run("EXISTS q other"), Reply::Integer(1));
        bench.run("TASK.CANCEL other leased");
        has_no_rows(bench);
    });
}

#[test]
fn a_move_that_is_refused_moves_nothing() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a");
        bench.run("TASK.ADD q 1 x ID b NEEDS gb 1");
        bench.run("TASK.ADD other 1 x ID b");
        let exists = error("EXISTS Task id already exists");
        assert_eq!(bench.run("TASK.MOVE q other a b"), exists);
        let eight: String = (0..8).map(|n| format!(" r{n} 1")).collect();
        bench.run(&format!("TASK.ADD full 1 x NEEDS{eight}"));
        let full = error("ERR a task queue knows at most 8 resources");
        assert_eq!(bench.run("TASK.MOVE q full a b"), full);
        bench.run("RPUSH list a");
        let wrong = "WRONGTYPE Operation against a key holding the wrong kind of value";
        assert_eq!(bench.run("TASK.MOVE q list a"), error(wrong));
        let same = error("ERR source and destination objects are the same");
        assert_eq!(bench.run("TASK.MOVE q q a"), same);
        assert_eq!(bench.run("TASK.LEN q"), Reply::Integer(2));
        assert_eq!(bench.run("TASK.LEN full"), Reply::Integer(1));
        assert_eq!(bench.run("TASK.MOVE none new a"), Reply::Integer(0));
        assert_eq!(bench.run("TASK.MOVE q new z"), Reply::Integer(0));
        assert_eq!(bench.run("EXISTS new"), Reply::Integer(0));
    });
}

#[test]
fn a_consumer_that_waits_gets_a_task_that_is_moved() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a NEEDS gb 2");
        let small = bench.wait("TASK.TAKE other HAVING gb 1 BLOCK 0");
        let large = bench.wait("TASK.TAKE other HAVING gb 2 BLOCK 0");
        assert_eq!(bench.run("TASK.MOVE q other a"), Reply::Integer(1));
        assert_eq!(ids(&large.reply(bench)), ["a"]);
        drop(small);
    });
}

#[test]
fn what_is_not_understood_is_refused() {
    let bench = Bench::embedded();
    bench.run("TASK.ADD q 1 x ID a");
    for line in [
        "TASK.REVIVE q ALL a",
        "TASK.REVIVE q a ALL",
        "TASK.CANCEL q ALL",
        "TASK.PURGE q ALL",
        "TASK.PURGE q a",
        "TASK.PURGE q DEAD 0",
        "TASK.PURGE q DEAD COUNT 5",
        "TASK.PURGE q DEAD CURSOR 0 COUNT 5",
        "TASK.MOVE q other ALL",
    ] {
        assert_eq!(bench.run(line), syntax_error(line), "{line}");
    }
    let cursor = "TASK.PURGE q DEAD CURSOR zz";
    assert_eq!(bench.run(cursor), error("ERR invalid cursor"));
    assert_eq!(bench.run("TASK.LEN q"), Reply::Integer(1));
}
