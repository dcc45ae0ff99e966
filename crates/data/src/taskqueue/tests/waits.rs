//! AFTER: tasks that wait until others are acknowledged.

use super::*;

fn lease_and_ack(bench: &Bench, id: &str) {
    let taken = ids(&bench.run("TASK.TAKE q LEASE 1000"));
    assert_eq!(taken, [id]);
    assert_eq!(bench.run(&format!("TASK.ACK q {id}")), codes(&[1]));
}

fn of_task(bench: &Bench, key: &str, id: &str, name: &str) -> Reply {
    match bench.run(&format!("TASK.GET {key} {id}")) {
        Reply::Map(fields) => field(&fields, name),
        other => panic!("{key} {id} {other:?}"),
    }
}

fn after(bench: &Bench, key: &str, id: &str) -> Vec<String> {
    match of_task(bench, key, id, "after") {
        Reply::Array(ids) => ids.iter().map(text).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_task_is_held_until_all_that_it_waits_for_are_acknowledged() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 2 x ID a");
        bench.run("TASK.ADD q 3 x ID b");
        assert_eq!(bench.run("TASK.ADD q 1 x ID c AFTER 2 a b"), bulk("c"));
        assert_eq!(of_task(bench, "q", "c", "state"), bulk("waiting"));
        assert_eq!(after(bench, "q", "c"), ["a", "b"]);
        assert_eq!(after(bench, "q", "a"), [""; 0]);
        assert_eq!(bench.run("TASK.LEN q WAITING"), Reply::Integer(1));
        assert_eq!(bench.run("TASK.LEN q READY"), Reply::Integer(2));
        assert_eq!(bench.run("TASK.LEN q"), Reply::Integer(3));
        let waiting = listed(bench, "q", "WAITING", 9);
        assert_eq!(field(&waiting[0], "id"), bulk("c"));
        let expected = Reply::Array(vec![bulk("a"), bulk("b")]);
        assert_eq!(field(&waiting[0], "after"), expected);
        lease_and_ack(bench, "a");
        assert_eq!(after(bench, "q", "c"), ["b"]);
        // Giving it back is not enough.
        bench.run("TASK.TAKE q LEASE 1000");
        bench.run("TASK.NACK q b");
        assert_eq!(of_task(bench, "q", "c", "state"), bulk("waiting"));
        lease_and_ack(bench, "b");
        assert_eq!(of_task(bench, "q", "c", "state"), bulk("ready"));
        lease_and_ack(bench, "c");
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    });
}

#[test]
fn what_the_queue_does_not_have_counts_as_acknowledged() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a AFTER 2 gone a");
        assert_eq!(of_task(bench, "q", "a", "state"), bulk("ready"));
        lease_and_ack(bench, "a");
        bench.run("TASK.ADD q 1 x ID b AFTER 1 a DELAY 5000");
        assert_eq!(of_task(bench, "q", "b", "state"), bulk("delayed"));
    });
}

#[test]
fn a_task_that_is_taken_for_good_is_waited_for_no_more() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a");
        bench.run("TASK.ADD q 1 x ID b AFTER 1 a");
        assert_eq!(ids(&bench.run("TASK.TAKE q")), ["a"]);
        assert_eq!(ids(&bench.run("TASK.TAKE q")), ["b"]);
    });
}

#[test]
fn what_waits_for_a_dead_task_waits_until_that_is_revived_and_acknowledged() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a MAXTRIES 1");
        bench.run("TASK.ADD q 1 x ID b AFTER 1 a");
        bench.run("TASK.TAKE q LEASE 1000");
        bench.run("TASK.NACK q a");
        bench.run("TASK.ADD q 1 x ID c AFTER 1 a");
        assert_eq!(bench.run("TASK.LEN q WAITING"), Reply::Integer(2));
        bench.run("TASK.REVIVE q ALL");
        assert_eq!(bench.run("TASK.LEN q WAITING"), Reply::Integer(2));
        lease_and_ack(bench, "a");
        assert_eq!(listed_ids(bench, "q", "READY", 9), ["b", "c"]);
    });
}

#[test]
fn what_waits_for_a_task_that_was_removed_waits_until_it_is_revived_or_purged() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a");
        for id in ["b", "c", "d"] {
            bench.run(&format!("TASK.ADD q 1 x ID {id} AFTER 1 a"));
        }
        bench.run("TASK.CANCEL q a");
        assert_eq!(after(bench, "q", "b"), ["a"]);
        assert_eq!(bench.run("TASK.REVIVE q b"), Reply::Integer(1));
        assert_eq!(of_task(bench, "q", "b", "state"), bulk("ready"));
        bench.run("TASK.CANCEL q c");
        // Another task of this id may not wait, but is waited for.
        let refused = error("ERR task cannot wait for others, as others wait for its id");
        assert_eq!(bench.run("TASK.ADD q 0 x ID a AFTER 1 d"), refused);
        bench.run("TASK.ADD q 0 x ID a");
        lease_and_ack(bench, "a");
        assert_eq!(of_task(bench, "q", "d", "state"), bulk("ready"));
        bench.run("TASK.ADD q 9 x ID e AFTER 2 b d");
        let purged = Reply::Array(vec![bulk("0"), Reply::Integer(1)]);
        assert_eq!(bench.run("TASK.PURGE q WAITING"), purged);
        lease_and_ack(bench, "b");
        lease_and_ack(bench, "d");
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    });
}

#[test]
fn delays_and_ages_of_waiting_tasks_count_from_their_addition() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a");
        bench.run("TASK.ADD q 1 x ID b AFTER 1 a DELAY 5000");
        bench.run("TASK.ADD q 1 x ID c AFTER 1 a TTL 3000");
        bench.run("TASK.ADD q 1 x ID d AFTER 1 a DELAY 1000");
        bench.clock.advance_ms(2_000);
        lease_and_ack(bench, "a");
        assert_eq!(of_task(bench, "q", "b", "state"), bulk("delayed"));
        assert_eq!(listed_ids(bench, "q", "READY", 9), ["c", "d"]);
        bench.run("TASK.ADD q 1 x ID e AFTER 1 d TTL 1000");
        bench.clock.advance_ms(4_000);
        reap(bench);
        assert_eq!(listed_ids(bench, "q", "READY", 9), ["b", "d"]);
        assert_eq!(bench.run("TASK.LEN q"), Reply::Integer(2));
    });
}

#[test]
fn an_acknowledgement_releases_some_and_background_work_the_rest() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 0 x ID a");
        let line = |number| format!("TASK.ADD q 1 x ID t{number:04} AFTER 1 a");
        bench.run_all(&(0..1_200).map(line).collect::<Vec<_>>());
        assert_eq!(bench.run("TASK.LEN q WAITING"), Reply::Integer(1_200));
        lease_and_ack(bench, "a");
        let Reply::Integer(left) = bench.run("TASK.LEN q WAITING") else {
            panic!("no length");
        };
        assert!((1..1_200).contains(&left), "{left}");
        // A dump shows that they wait for nothing.
        let Reply::Bulk(payload) = bench.run("DUMP q") else {
            panic!("no payload");
        };
        bench.run_words(&[b"RESTORE", b"restored", b"0", &payload]);
        let ready = bench.run("TASK.LEN restored READY");
        assert_eq!(ready, Reply::Integer(1_200));
        // Tasks that later wait for another task with this id must not be released.
        let refused = error("EXISTS Task id already exists");
        assert_eq!(bench.run("TASK.ADD q 0 x ID a"), refused);
        reap(bench);
        assert_eq!(bench.run("TASK.LEN q READY"), Reply::Integer(1_200));
        assert_eq!(bench.run("TASK.ADD q 0 x ID a"), bulk("a"));
        let all = (0..1_200).map(|number| format!("t{number:04}"));
        let expected: Vec<_> = std::iter::once("a".to_owned()).chain(all).collect();
        let mut taken = Vec::new();
        while taken.len() < expected.len() {
            let some = ids(&bench.run("TASK.TAKE q COUNT 2000"));
            assert!(!some.is_empty());
            taken.extend(some);
        }
        assert_eq!(taken, expected);
    });
}

#[test]
fn a_client_that_waits_gets_a_task_that_is_released() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a");
        bench.run("TASK.ADD q 1 x ID b AFTER 1 a");
        bench.run("TASK.TAKE q LEASE 1000");
        let mut waiting = bench.wait("TASK.TAKE q BLOCK 0");
        assert!(waiting.is_waiting());
        bench.run("TASK.ACK q a");
        assert_eq!(ids(&waiting.reply(bench)), ["b"]);
    });
}

#[test]
fn waiting_tasks_go_along_with_copies_and_dumps_but_not_to_other_queues() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID y");
        bench.run("TASK.ADD q 1 x ID z");
        bench.run("TASK.ADD q 1 x ID b AFTER 2 y z GROUP g");
        bench.run("TASK.ADD q 1 x ID c AFTER 1 b");
        assert_eq!(bench.run("TASK.MOVE q other b"), Reply::Integer(0));
        let Reply::Bulk(payload) = bench.run("DUMP q") else {
            panic!("no payload");
        };
        bench.run_words(&[b"RESTORE", b"restored", b"0", &payload]);
        super::dumping::load_chunks(bench, bench, "loaded", 1);
        bench.run("COPY q copied");
        for key in ["restored", "loaded", "copied", "q"] {
            assert_eq!(after(bench, key, "b"), ["y", "z"], "{key}");
            assert_eq!(after(bench, key, "c"), ["b"], "{key}");
            let two = format!("TASK.TAKE {key} COUNT 9");
            assert_eq!(ids(&bench.run(&two)), ["y", "z"], "{key}");
            assert_eq!(ids(&bench.run(&two)), ["b"], "{key}");
            assert_eq!(ids(&bench.run(&two)), ["c"], "{key}");
        }
    });
}

#[test]
fn a_task_that_comes_back_from_the_queue_for_dead_ones_is_still_waited_for() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q DEADLETTER letters");
        bench.run("TASK.ADD q 1 x ID a MAXTRIES 1");
        bench.run("TASK.ADD q 1 x ID b AFTER 1 a");
        bench.run("TASK.TAKE q LEASE 1000");
        bench.run("TASK.NACK q a");
        assert_eq!(bench.run("TASK.MOVE letters q a"), Reply::Integer(1));
        lease_and_ack(bench, "a");
        assert_eq!(of_task(bench, "q", "b", "state"), bulk("ready"));
    });
}

#[test]
fn waits_leave_no_rows_behind() {
    let bench = Bench::embedded();
    bench.run("TASK.ADD q 1 x ID keep DELAY 1000000");
    bench.run("TASK.ADD q 1 x ID a");
    let rows = bench.data_rows();
    // The task, its place among waiting tasks, two rows for each task that it waits for, and a
    // counter.
    bench.run("TASK.ADD q 1 x ID b AFTER 2 a keep");
    assert_eq!(bench.data_rows(), rows + 7);
    bench.run("TASK.CANCEL q b");
    assert_eq!(bench.data_rows(), rows + 1);
    bench.run("TASK.ADD q 1 x ID b AFTER 1 a");
    assert_eq!(bench.run("TASK.REVIVE q b"), Reply::Integer(1));
    bench.run("TASK.ADD q 1 x ID c AFTER 2 a b");
    assert_eq!(ids(&bench.run("TASK.TAKE q COUNT 2")), ["a", "b"]);
    assert_eq!(ids(&bench.run("TASK.TAKE q COUNT 2")), ["c"]);
    assert_eq!(bench.data_rows(), rows - 1);
}

#[test]
fn acknowledgements_of_the_last_two_that_a_task_waits_for_conflict() {
    let bench = Bench::cluster_like();
    bench.run("TASK.ADD q 1 x ID a");
    bench.run("TASK.ADD q 1 x ID b");
    bench.run("TASK.ADD q 1 x ID c AFTER 2 a b");
    bench.run("TASK.TAKE q COUNT 2 LEASE 60000");
    assert!(bench.race("TASK.ACK q a", "TASK.ACK q b", false));
    let bench = Bench::cluster_like();
    bench.run("TASK.ADD q 1 x ID a");
    bench.run("TASK.TAKE q LEASE 60000");
    assert!(bench.race("TASK.ADD q 1 x ID b AFTER 1 a", "TASK.ACK q a", false));
}

#[test]
fn what_no_task_can_wait_for_is_refused() {
    let bench = Bench::embedded();
    let number = error("ERR number of ids after AFTER must be from 1 to 1000");
    for count in ["0", "1001", "x", "-1"] {
        let line = format!("TASK.ADD q 1 x AFTER {count} a");
        assert_eq!(bench.run(&line), number, "{count}");
    }
    for line in [
        "TASK.ADD q 1 x AFTER",
        "TASK.ADD q 1 x AFTER 2 a",
        "TASK.ADD q 1 x AFTER 1 a AFTER 1 b",
        "TASK.SCHEDULE q s EVERY 1000 TASK 1 x AFTER 1 a",
    ] {
        assert_eq!(bench.run(line), syntax_error(line), "{line}");
    }
    let keyword = error("ERR task id cannot be the name of an option");
    assert_eq!(bench.run("TASK.ADD q 1 x AFTER 1 token"), keyword);
    assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
}
