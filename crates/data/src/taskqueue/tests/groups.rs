//! GROUP and GROUPLEASES: consumers get tasks from a queue's groups in turn.

use super::*;
use quoin_base::limits::TASK_GROUPS_PASSED_MAX;

/// Adds tasks `<group>0`, `<group>1` and so on; `-` is no group.
fn add(bench: &Bench, group: &str, count: usize) {
    for number in 0..count {
        let words = match group {
            "-" => String::new(),
            group => format!(" GROUP {group}"),
        };
        bench.run(&format!("TASK.ADD q 1 x ID {group}{number}{words}"));
    }
}

fn take_all(bench: &Bench, line: &str) -> Vec<String> {
    let mut taken = Vec::new();
    loop {
        match ids(&bench.run(line)) {
            some if some.is_empty() => return taken,
            some => taken.extend(some),
        }
    }
}

#[test]
fn groups_have_their_turns_and_tasks_without_one_are_a_group() {
    for count in [1, 2, 3, 20] {
        on_both_stores(|bench| {
            for (group, count) in [("b", 4), ("-", 2), ("a", 1), ("c", 2)] {
                add(bench, group, count);
            }
            let expected = ["a0", "b0", "c0", "-0", "b1", "c1", "-1", "b2", "b3"];
            let peeked = ids(&bench.run("TASK.PEEK q COUNT 20"));
            assert_eq!(peeked, expected, "{count}");
            let taken = take_all(bench, &format!("TASK.TAKE q COUNT {count}"));
            assert_eq!(taken, expected, "{count}");
            assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
        });
    }
}

#[test]
fn a_group_has_its_turn_whatever_the_priorities_of_others_are() {
    on_both_stores(|bench| {
        for (id, priority, group) in [
            ("a1", 1, "a"),
            ("a0", 0, "a"),
            ("a2", 2, "a"),
            ("b9", 9, "b"),
            ("b8", 8, "b"),
        ] {
            bench.run(&format!("TASK.ADD q {priority} x ID {id} GROUP {group}"));
        }
        let taken = take_all(bench, "TASK.TAKE q");
        assert_eq!(taken, ["a0", "b8", "a1", "b9", "a2"]);
    });
}

#[test]
fn a_turn_goes_on_where_the_last_one_was_also_after_other_groups_came() {
    on_both_stores(|bench| {
        add(bench, "b", 3);
        add(bench, "d", 3);
        assert_eq!(ids(&bench.run("TASK.TAKE q")), ["b0"]);
        add(bench, "a", 1);
        add(bench, "c", 1);
        let taken = take_all(bench, "TASK.TAKE q");
        assert_eq!(taken, ["c0", "d0", "a0", "b1", "d1", "b2", "d2"]);
    });
}

#[test]
fn a_group_without_a_task_that_fits_is_passed_over() {
    on_both_stores(|bench| {
        for group in 0..40 {
            for number in 0..5 {
                let gb = if group == 30 && number == 4 { 1 } else { 9 };
                bench.run(&format!(
                    "TASK.ADD q 1 x ID {group:02}-{number} NEEDS gb {gb} GROUP g{group:02}"
                ));
            }
        }
        add(bench, "z", 2);
        let line = "TASK.TAKE q HAVING gb 2";
        assert_eq!(take_all(bench, line), ["30-4", "z0", "z1"]);
        reap(bench);
        let taken = take_all(bench, "TASK.TAKE q COUNT 7 HAVING gb 9");
        assert_eq!(taken.len(), 199);
        assert_eq!(taken[..3], ["00-0", "01-0", "02-0"]);
        assert_eq!(taken[198], "39-4");
    });
}

#[test]
fn a_group_at_its_limit_is_passed_over_until_a_lease_ends() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q GROUPLEASES 2");
        for group in ["a", "b", "-"] {
            add(bench, group, 6);
        }
        let take = || ids(&bench.run("TASK.TAKE q COUNT 9 LEASE 1000"));
        assert_eq!(take(), ["a0", "b0", "-0", "a1", "b1", "-1"]);
        assert!(take().is_empty());
        // Without a lease a task is gone, and does not count.
        assert_eq!(ids(&bench.run("TASK.TAKE q")), ["a2"]);
        bench.run("TASK.ACK q b0");
        assert_eq!(take(), ["b2"]);
        bench.run("TASK.NACK q -0 DELAY 100000");
        assert_eq!(take(), ["-2"]);
        bench.run("TASK.EXTEND q a0 9000");
        assert!(take().is_empty());
        bench.run("TASK.CANCEL q a0");
        assert_eq!(take(), ["a3"]);
        bench.clock.advance_ms(2_000);
        assert_eq!(take(), ["b1", "-1", "a1", "b2", "-2", "a3"]);
        bench.run("TASK.PURGE q LEASED");
        assert_eq!(take(), ["b3", "-3", "a4", "b4", "-4", "a5"]);
        bench.run("TASK.SETOPTIONS q GROUPLEASES 0");
        assert_eq!(take(), ["b5", "-5"]);
    });
}

#[test]
fn a_limit_counts_leases_that_were_there_before() {
    on_both_stores(|bench| {
        add(bench, "a", 3);
        add(bench, "-", 3);
        bench.run("TASK.TAKE q COUNT 4 LEASE 1000");
        bench.run("TASK.SETOPTIONS q GROUPLEASES 2");
        assert!(ids(&bench.run("TASK.TAKE q LEASE 1000")).is_empty());
        bench.run("TASK.ACK q a0 -1");
        let taken = ids(&bench.run("TASK.TAKE q COUNT 4 LEASE 1000"));
        assert_eq!(taken, ["a2", "-2"]);
    });
}

#[test]
fn a_limit_holds_in_a_queue_without_groups() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q GROUPLEASES 2");
        add(bench, "-", 3);
        assert_eq!(
            ids(&bench.run("TASK.TAKE q COUNT 3 LEASE 1000")),
            ["-0", "-1"]
        );
        assert!(ids(&bench.run("TASK.TAKE q LEASE 1000")).is_empty());
    });
}

#[test]
fn a_consumer_that_waits_gets_a_task_when_a_lease_of_its_group_ends() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q GROUPLEASES 1");
        add(bench, "a", 6);
        bench.run("TASK.TAKE q LEASE 1000");
        for (number, line) in [
            "TASK.ACK q a0",
            "TASK.NACK q a1 DELAY 1000000",
            "TASK.CANCEL q a2",
            "TASK.PURGE q LEASED",
            "TASK.SETOPTIONS q GROUPLEASES 2",
        ]
        .iter()
        .enumerate()
        {
            let mut waiting = bench.wait("TASK.TAKE q LEASE 1000 BLOCK 0");
            assert!(waiting.is_waiting(), "{line}");
            bench.run(line);
            let expected = format!("a{}", number + 1);
            assert_eq!(ids(&waiting.reply(bench)), [expected], "{line}");
        }
        let mut waiting = bench.wait("TASK.TAKE q LEASE 1000 BLOCK 0");
        assert!(waiting.is_waiting());
        // Meanwhile a task of another group becomes ready.
        bench.run("TASK.ADD q 1 x ID b0 GROUP b");
        assert_eq!(ids(&waiting.reply(bench)), ["b0"]);
    });
}

#[test]
fn a_take_passes_over_a_bounded_number_of_groups_and_the_next_goes_on() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q GROUPLEASES 1");
        let groups = TASK_GROUPS_PASSED_MAX + 20;
        for group in 0..groups {
            for number in 0..2 {
                bench.run(&format!(
                    "TASK.ADD q 1 x ID {group}-{number} GROUP g{group:03}"
                ));
            }
        }
        let line = format!("TASK.TAKE q COUNT {groups} LEASE 100000");
        assert_eq!(ids(&bench.run(&line)).len(), groups);
        let last = groups - 2;
        bench.run(&format!("TASK.ACK q {last}-0"));
        assert!(ids(&bench.run(&line)).is_empty());
        assert_eq!(ids(&bench.run(&line)), [format!("{last}-1")]);
    });
}

#[test]
fn a_task_keeps_its_group_wherever_it_goes() {
    on_both_stores(|bench| {
        let group_of = |key: &str, id: &str| {
            let Reply::Map(fields) = bench.run(&format!("TASK.GET {key} {id}")) else {
                panic!("{key} {id}");
            };
            field(&fields, "group")
        };
        add(bench, "a", 1);
        add(bench, "-", 1);
        assert_eq!(group_of("q", "-0"), Reply::Null);
        bench.run("TASK.ADD q 5 x ID late GROUP a MAXTRIES 1 DELAY 5000");
        let of_state = |state| field(&listed(bench, "q", state, 9)[0], "group");
        assert_eq!(of_state("DELAYED"), bulk("a"));
        assert_eq!(of_state("READY"), bulk("a"));
        bench.clock.advance_ms(6_000);
        reap(bench);
        bench.run("TASK.TAKE q COUNT 3 LEASE 1000");
        assert_eq!(of_state("LEASED"), bulk("a"));
        bench.clock.advance_ms(2_000);
        reap(bench);
        assert_eq!(of_state("DEAD"), bulk("a"));
        bench.run("TASK.REVIVE q late");
        bench.run("TASK.TAKE q COUNT 3 LEASE 1000");
        bench.run("TASK.NACK q a0 DELAY 7000");
        let Reply::Bulk(payload) = bench.run("DUMP q") else {
            panic!("no payload");
        };
        bench.run_words(&[b"RESTORE", b"restored", b"0", &payload]);
        super::dumping::load_chunks(bench, bench, "loaded", 1);
        bench.run("COPY q copied");
        for key in ["q", "restored", "loaded", "copied"] {
            assert_eq!(group_of(key, "a0"), bulk("a"), "{key}");
            assert_eq!(group_of(key, "late"), bulk("a"), "{key}");
            bench.run(&format!("TASK.SETOPTIONS {key} GROUPLEASES 1"));
            bench.run(&format!("TASK.ADD {key} 1 x ID more GROUP a"));
            let line = format!("TASK.TAKE {key} LEASE 1000");
            assert_eq!(bench.run(&line), Reply::NullArray, "{key}");
        }
        bench.run("TASK.MOVE q other a0");
        assert_eq!(group_of("other", "a0"), bulk("a"));
    });
}

#[test]
fn a_dead_task_takes_its_group_to_the_queue_for_them() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q DEADLETTER letters");
        bench.run("TASK.ADD q 1 x ID b0 GROUP b MAXTRIES 1");
        bench.run("TASK.ADD letters 1 x ID c0 GROUP c");
        bench.run("TASK.ADD letters 1 x ID c1 GROUP c");
        bench.run("TASK.TAKE q LEASE 1000");
        bench.run("TASK.NACK q b0");
        assert_eq!(take_all(bench, "TASK.TAKE letters"), ["b0", "c0", "c1"]);
    });
}

#[test]
fn a_full_queue_drops_tasks_of_the_group_that_gets_one() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q MAXLEN 4 OVERFLOW DROP");
        add(bench, "a", 2);
        add(bench, "b", 2);
        bench.run("TASK.ADD q 1 x ID new GROUP a");
        let left: Vec<_> = listed_ids(bench, "q", "READY", 9);
        assert_eq!(left, ["a1", "new", "b0", "b1"]);
        // This group has nothing ready.
        bench.run("TASK.ADD q 1 x ID other GROUP c");
        let left: Vec<_> = listed_ids(bench, "q", "READY", 2);
        assert_eq!(left, ["a1", "new", "b1", "other"]);
    });
}

#[test]
fn a_schedule_may_have_a_group() {
    on_both_stores(|bench| {
        bench.run("TASK.SCHEDULE q s EVERY 1000 TASK 1 x GROUP a");
        let Reply::Array(parts) = bench.run("TASK.SCHEDULES q") else {
            panic!("no schedules");
        };
        let [_, Reply::Array(found)] = &parts[..] else {
            panic!("{parts:?}");
        };
        let [Reply::Map(fields)] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(field(fields, "group"), bulk("a"));
        let Reply::Bulk(payload) = bench.run("DUMP q") else {
            panic!("no payload");
        };
        bench.run_words(&[b"RESTORE", b"restored", b"0", &payload]);
        bench.clock.advance_ms(1_500);
        reap(bench);
        for key in ["q", "restored"] {
            let tasks = listed(bench, key, "READY", 9);
            assert_eq!(field(&tasks[0], "group"), bulk("a"), "{key}");
        }
    });
}

#[test]
fn what_is_no_group_is_refused() {
    let bench = Bench::embedded();
    let name = error("ERR name of a group must have 1 to 256 bytes");
    let words: [&[u8]; 6] = [b"TASK.ADD", b"q", b"1", b"x", b"GROUP", b""];
    assert_eq!(bench.run_words(&words), name);
    let long = "g".repeat(257);
    assert_eq!(bench.run(&format!("TASK.ADD q 1 x GROUP {long}")), name);
    let line = "TASK.ADD q 1 x GROUP";
    assert_eq!(bench.run(line), syntax_error(line));
    let limit = error("ERR GROUPLEASES must be an integer from 0 to 1000");
    assert_eq!(bench.run("TASK.SETOPTIONS q GROUPLEASES 1001"), limit);
    assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
}

#[test]
fn groups_write_a_row_for_the_turn_and_one_for_each_lease() {
    let bench = Bench::embedded();
    // The registry, the number of tasks ever added, the task, its place.
    bench.run("TASK.ADD q 1 x ID a GROUP a");
    assert_eq!(bench.data_rows(), 4);
    bench.run("TASK.ADD q 1 x ID b GROUP b");
    bench.run("TASK.ADD q 1 x ID c");
    assert_eq!(bench.data_rows(), 8);
    // The turn, two counters of leased tasks, and the lease of the group. The place moves.
    bench.run("TASK.TAKE q LEASE 60000");
    assert_eq!(bench.data_rows(), 12);
    bench.run("TASK.TAKE q COUNT 2 LEASE 60000");
    assert_eq!(bench.data_rows(), 13);
    bench.run("TASK.ACK q a b");
    assert_eq!(bench.data_rows(), 7);
}

#[test]
fn takes_of_two_servers_count_each_other_within_a_group() {
    let lines = [
        "TASK.TAKE q LEASE 1000",
        "TASK.TAKE q LEASE 1000 HAVING gb 1",
    ];
    for (options, conflicts) in [("GROUPLEASES 2", true), ("GROUPLEASES 0", false)] {
        let bench = Bench::cluster_like();
        bench.run(&format!("TASK.SETOPTIONS q MAXTRIES 9 {options}"));
        bench.run("TASK.ADD q 2 x ID small GROUP a");
        bench.run("TASK.ADD q 1 x ID large NEEDS gb 1 GROUP a");
        // They want different tasks of the group.
        assert_eq!(
            bench.race(lines[0], lines[1], false),
            conflicts,
            "{options}"
        );
    }
    // Of other groups they do not.
    let bench = Bench::cluster_like();
    bench.run("TASK.SETOPTIONS q GROUPLEASES 2");
    bench.run("TASK.ADD q 2 x ID small GROUP b");
    bench.run("TASK.ADD q 1 x ID large NEEDS gb 1 GROUP a");
    assert!(!bench.race(lines[0], lines[1], false));
}

#[test]
fn a_take_of_many_tasks_goes_round_the_groups() {
    let bench = Bench::cluster_like();
    let line = |number| format!("TASK.ADD q 1 p ID t{number} GROUP g{}", number % 3);
    bench.run_all(&(0..300).map(line).collect::<Vec<_>>());
    let taken = ids(&bench.run("TASK.TAKE q COUNT 300 LEASE 1000"));
    let expected: Vec<_> = (0..300).map(|number| format!("t{number}")).collect();
    assert_eq!(taken, expected);
}
