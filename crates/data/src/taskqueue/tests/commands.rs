//! What each command does, and what it refuses.

use super::*;

#[test]
fn tasks_come_by_priority_and_then_by_arrival() {
    on_both_stores(|bench| {
        for (id, priority) in [("a", "2"), ("b", "1.5"), ("c", "2"), ("d", "-inf")] {
            bench.run(&format!("TASK.ADD q {priority} p{id} ID {id}"));
        }
        assert_eq!(
            ids(&bench.run("TASK.TAKE q COUNT 10")),
            ["d", "b", "a", "c"]
        );
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    });
}

#[test]
fn a_task_is_told_with_all_that_belongs_to_it() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 3 work ID a NEEDS gb 2.5 cards 1");
        let expected = Reply::Array(vec![Reply::Array(vec![
            bulk("a"),
            Reply::Double(3.0),
            Reply::Integer(1),
            Reply::Map(vec![
                (bulk("gb"), Reply::Double(2.5)),
                (bulk("cards"), Reply::Double(1.0)),
            ]),
            bulk("work"),
        ])]);
        assert_eq!(bench.run("TASK.TAKE q HAVING gb 2.5 cards 1"), expected);
    });
}

#[test]
fn a_resource_that_is_not_named_counts_as_zero() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID both NEEDS gb 1 cards 1");
        bench.run("TASK.ADD q 2 x ID gb NEEDS gb 1");
        bench.run("TASK.ADD q 3 x ID nothing NEEDS gb 0");
        assert_eq!(ids(&bench.run("TASK.PEEK q COUNT 9")), ["nothing"]);
        assert_eq!(
            ids(&bench.run("TASK.PEEK q COUNT 9 HAVING gb inf")),
            ["gb", "nothing"]
        );
        assert_eq!(
            ids(&bench.run("TASK.PEEK q COUNT 9 HAVING gb 0.5 cards 4 tapes 1")),
            ["nothing"]
        );
        assert_eq!(
            ids(&bench.run("TASK.PEEK q COUNT 9 HAVING cards 1 gb 1")),
            ["both", "gb", "nothing"]
        );
    });
}

#[test]
fn an_id_that_is_there_is_refused_whatever_its_state() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("TASK.ADD q 1 x ID a"), bulk("a"));
        let refused = error("EXISTS Task id already exists");
        assert_eq!(bench.run("TASK.ADD q 2 y ID a"), refused);
        bench.run("TASK.TAKE q LEASE 1000");
        assert_eq!(bench.run("TASK.ADD q 2 y ID a"), refused);
        assert_eq!(bench.run("TASK.ACK q a"), codes(&[1]));
        assert_eq!(bench.run("TASK.ADD q 2 y ID a"), bulk("a"));
    });
}

#[test]
fn ids_that_the_server_makes_differ() {
    on_both_stores(|bench| {
        let mut made: Vec<String> = (0..20)
            .map(|_| text(&bench.run("TASK.ADD q 1 x")))
            .collect();
        made.sort();
        made.dedup();
        assert_eq!(made.len(), 20);
    });
}

#[test]
fn a_ninth_resource_is_refused() {
    on_both_stores(|bench| {
        let line = "ERR a task queue knows at most 8 resources";
        let eight: String = (0..8).map(|n| format!(" r{n} 1")).collect();
        let nine = format!("TASK.ADD q 1 x NEEDS{eight} r8 1");
        assert_eq!(bench.run(&nine), error(line));
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
        bench.run(&format!("TASK.ADD q 1 x ID a NEEDS{eight}"));
        assert_eq!(bench.run("TASK.ADD q 1 x NEEDS other 1"), error(line));
        assert_eq!(
            ids(&bench.run(&format!("TASK.TAKE q HAVING{eight}"))),
            ["a"]
        );
    });
}

#[test]
fn more_resources_than_a_consumer_may_name_are_refused() {
    let bench = Bench::embedded();
    bench.run("TASK.ADD q 1 x ID a NEEDS r255 1");
    let having = |count: usize| -> String { (0..count).map(|n| format!(" r{n} 1")).collect() };
    let line = error("ERR HAVING names at most 256 resources");
    for command in ["TASK.PEEK", "TASK.TAKE"] {
        assert_eq!(
            bench.run(&format!("{command} q HAVING{}", having(257))),
            line
        );
    }
    let all = format!("TASK.TAKE q HAVING{}", having(256));
    assert_eq!(ids(&bench.run(&all)), ["a"]);
}

#[test]
fn resources_beyond_the_limit_are_not_read_to_their_end() {
    let bench = Bench::embedded();
    let names = |count: usize| -> String { (0..count).map(|n| format!(" r{n} 1")).collect() };
    // The words after them would cause another error.
    let line = error("ERR a task queue knows at most 8 resources");
    assert_eq!(
        bench.run(&format!("TASK.ADD q 1 x NEEDS{} gb x", names(9))),
        line
    );
    let line = error("ERR HAVING names at most 256 resources");
    assert_eq!(
        bench.run(&format!("TASK.TAKE q HAVING{} gb x", names(257))),
        line
    );
}

#[test]
fn a_lease_is_told_from_others_by_its_token() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a");
        let taken = bench.run("TASK.TAKE q LEASE 1000");
        let own = token(&taken);
        assert_eq!(bench.run("TASK.TAKE q"), Reply::NullArray);
        let foreign = "0123456789abcdef";
        let ack = |token: &str| bench.run(&format!("TASK.ACK q a b TOKEN {token}"));
        assert_eq!(ack(foreign), codes(&[-2, 0]));
        let line = format!("TASK.NACK q a TOKEN {foreign}");
        assert_eq!(bench.run(&line), Reply::Integer(-2));
        let line = format!("TASK.EXTEND q a 5 TOKEN {foreign}");
        assert_eq!(bench.run(&line), Reply::Integer(-2));
        assert_eq!(ack(&own), codes(&[1, 0]));
        assert_eq!(ack(&own), codes(&[0, 0]));
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    });
}

#[test]
fn a_lease_that_lapses_brings_the_task_back_to_its_place() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a");
        bench.run("TASK.ADD q 1 x ID b");
        let own = token(&bench.run("TASK.TAKE q LEASE 1000"));
        bench.clock.advance_ms(999);
        assert_eq!(ids(&bench.run("TASK.PEEK q COUNT 9")), ["b"]);
        bench.clock.advance_ms(501);
        let line = format!("TASK.ACK q a TOKEN {own}");
        assert_eq!(bench.run(&line), codes(&[-1]));
        let taken = bench.run("TASK.TAKE q LEASE 1000 COUNT 9");
        assert_eq!(ids(&taken), ["a", "b"]);
        assert_eq!(parts(&taken)[0][2], Reply::Integer(2));
        assert_eq!(bench.run(&line), codes(&[-2]));
    });
}

#[test]
fn a_lease_that_is_extended_lapses_later() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a");
        bench.run("TASK.TAKE q LEASE 1000");
        assert_eq!(bench.run("TASK.EXTEND q a 10000"), Reply::Integer(1));
        bench.clock.advance_ms(9_000);
        assert_eq!(bench.run("TASK.TAKE q"), Reply::NullArray);
        bench.clock.advance_ms(2_000);
        assert_eq!(ids(&bench.run("TASK.TAKE q")), ["a"]);
    });
}

#[test]
fn a_task_that_was_tried_often_enough_is_dead_until_it_is_revived() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a MAXTRIES 2");
        bench.run("TASK.TAKE q LEASE 1000");
        assert_eq!(bench.run("TASK.NACK q a"), Reply::Integer(1));
        bench.run("TASK.TAKE q LEASE 1000");
        assert_eq!(bench.run("TASK.NACK q a DELAY 5"), Reply::Integer(2));
        assert_eq!(bench.run("TASK.TAKE q"), Reply::NullArray);
        assert_eq!(bench.run("TASK.LEN q DEAD"), Reply::Integer(1));
        assert_eq!(ids(&bench.run("TASK.DEAD q")), ["a"]);
        assert_eq!(bench.run("TASK.REVIVE q a b"), Reply::Integer(1));
        assert_eq!(bench.run("TASK.REVIVE q a"), Reply::Integer(0));
        let taken = bench.run("TASK.TAKE q LEASE 1000");
        assert_eq!(parts(&taken)[0][2], Reply::Integer(1));
    });
}

#[test]
fn a_delayed_task_is_ready_when_its_delay_is_over() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a DELAY 1000");
        assert_eq!(bench.run("TASK.TAKE q"), Reply::NullArray);
        assert_eq!(bench.run("TASK.LEN q DELAYED"), Reply::Integer(1));
        bench.clock.advance_ms(1_000);
        reap(bench);
        assert_eq!(bench.run("TASK.LEN q READY"), Reply::Integer(1));
        assert_eq!(ids(&bench.run("TASK.TAKE q")), ["a"]);
    });
}

#[test]
fn commands_on_keys_know_task_queues() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a NEEDS gb 1");
        bench.run("TASK.ADD q 1 x ID b DELAY 1000");
        assert_eq!(bench.run("TYPE q"), Reply::Simple("taskqueue"));
        assert_eq!(bench.run("OBJECT ENCODING q"), bulk("indexed-rows"));
        assert!(matches!(bench.run("MEMORY USAGE q"), Reply::Integer(100..)));
        assert!(matches!(bench.run("DUMP q"), Reply::Bulk(_)));
        assert!(matches!(bench.run("SORT q"), Reply::Error(_)));
        assert_eq!(bench.run("COPY q copy"), Reply::Integer(1));
        assert_eq!(bench.run("RENAME q other"), Reply::OK);
        let wrong = "WRONGTYPE Operation against a key holding the wrong kind of value";
        assert_eq!(bench.run("LPUSH other a"), error(wrong));
        bench.run("RPUSH list a");
        assert_eq!(bench.run("TASK.ADD list 1 x"), error(wrong));
        assert_eq!(bench.run("TASK.TAKE list"), error(wrong));
        bench.clock.advance_ms(1_100);
        reap(bench);
        // The new names have timers, too.
        assert_eq!(bench.run("TASK.LEN other READY"), Reply::Integer(2));
        assert_eq!(bench.run("TASK.LEN copy READY"), Reply::Integer(2));
        assert_eq!(bench.run("DEL other"), Reply::Integer(1));
        assert_eq!(bench.run("TASK.LEN other"), Reply::Integer(0));
        assert_eq!(
            ids(&bench.run("TASK.TAKE copy COUNT 9 HAVING gb 1")),
            ["a", "b"]
        );
        bench.run("TASK.ADD q 1 x");
        bench.run("PEXPIRE q 1000");
        bench.clock.advance_ms(1_000);
        assert_eq!(bench.run("TASK.TAKE q"), Reply::NullArray);
    });
}

#[test]
fn a_transaction_adds_and_takes() {
    on_both_stores(|bench| {
        let replies = bench.exec(&["TASK.ADD q 1 x ID a NEEDS gb 1", "TASK.TAKE q HAVING gb 1"]);
        match replies {
            Reply::Array(replies) => assert_eq!(ids(&replies[1]), ["a"]),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_long_payload_goes_and_comes_whole() {
    on_both_stores(|bench| {
        let payload = vec![b'x'; 300_000];
        bench.run_words(&[b"TASK.ADD", b"q", b"1", &payload, b"ID", b"a"]);
        bench.run("TASK.TAKE q LEASE 1000");
        bench.run("TASK.NACK q a");
        let taken = bench.run("TASK.TAKE q");
        assert_eq!(parts(&taken)[0][4], Reply::bulk(payload));
    });
}

#[test]
fn what_is_not_understood_is_refused() {
    let bench = Bench::embedded();
    for (line, text) in [
        ("TASK.ADD q x p", "ERR priority is not a valid float"),
        ("TASK.ADD q nan p", "ERR priority is not a valid float"),
        ("TASK.ADD q 1 p ID", "ERR syntax error"),
        ("TASK.ADD q 1 p NEEDS", "ERR syntax error"),
        ("TASK.ADD q 1 p NEEDS gb", "ERR syntax error"),
        (
            "TASK.ADD q 1 p NEEDS gb x",
            "ERR amount of a resource is not a valid float",
        ),
        (
            "TASK.ADD q 1 p NEEDS gb -1",
            "ERR amount of a resource is out of range, must be a finite number, zero or more",
        ),
        (
            "TASK.ADD q 1 p NEEDS gb inf",
            "ERR amount of a resource is out of range, must be a finite number, zero or more",
        ),
        (
            "TASK.ADD q 1 p NEEDS gb 1 gb 2",
            "ERR resource is named twice",
        ),
        (
            "TASK.ADD q 1 p NEEDS gb 1 NEEDS cards 1",
            "ERR syntax error",
        ),
        ("TASK.TAKE q HAVING gb 1 HAVING cards 1", "ERR syntax error"),
        (
            "TASK.PEEK q HAVING gb 1 COUNT 1 HAVING cards 1",
            "ERR syntax error",
        ),
        (
            "TASK.ADD q 1 p NEEDS gb 1 Lease 1",
            "ERR name of a resource cannot be that of an option",
        ),
        (
            "TASK.ADD q 1 p NEEDS count 1",
            "ERR name of a resource cannot be that of an option",
        ),
        (
            "TASK.ADD q 1 p ID token",
            "ERR task id cannot be the name of an option",
        ),
        (
            "TASK.ADD q 1 p DELAY -1",
            "ERR delay is out of range, must be zero or more",
        ),
        (
            "TASK.ADD q 1 p MAXTRIES -1",
            "ERR MAXTRIES must be zero or more",
        ),
        (
            "TASK.TAKE q COUNT x",
            "ERR COUNT is out of range, must be positive",
        ),
        (
            "TASK.TAKE q LEASE 0",
            "ERR lease is out of range, must be positive",
        ),
        ("TASK.TAKE q BLOCK -1", "ERR timeout is negative"),
        (
            "TASK.TAKE q BLOCK 9223372036854775807",
            "ERR timeout is out of range",
        ),
        (
            "TASK.TAKE q BLOCK 31557600000001",
            "ERR timeout is out of range",
        ),
        (
            "TASK.TAKE q BLOCK x",
            "ERR timeout is not an integer or out of range",
        ),
        (
            "TASK.TAKE q LEASE 31557600000001",
            "ERR lease is out of range, must be at most 31557600000000 milliseconds",
        ),
        (
            "TASK.ADD q 1 p DELAY 9223372036854775807",
            "ERR delay is out of range, must be at most 31557600000000 milliseconds",
        ),
        (
            "TASK.NACK q a DELAY 31557600000001",
            "ERR delay is out of range, must be at most 31557600000000 milliseconds",
        ),
        (
            "TASK.EXTEND q a 31557600000001",
            "ERR lease is out of range, must be at most 31557600000000 milliseconds",
        ),
        ("TASK.TAKE q HAVING", "ERR syntax error"),
        ("TASK.TAKE q FOO 1", "ERR syntax error"),
        ("TASK.ACK q a TOKEN x", "ERR lease token is not valid"),
        ("TASK.NACK q a DELAY", "ERR syntax error"),
        (
            "TASK.EXTEND q a 0",
            "ERR lease is out of range, must be positive",
        ),
        ("TASK.EXTEND q a 1 FOO", "ERR syntax error"),
        ("TASK.LEN q FOO", "ERR syntax error"),
        ("TASK.DEAD q COUNT", "ERR syntax error"),
        ("TASK.INFO q", "ERR no such key"),
    ] {
        let expected = match text {
            "ERR syntax error" => syntax_error(line),
            text => error(text),
        };
        assert_eq!(bench.run(line), expected, "{line}");
    }
    assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
}

#[test]
fn tasks_that_are_handed_out_at_once_are_bounded_in_bytes() {
    let bench = Bench::embedded();
    let payload = "p".repeat(20_000_000);
    for _ in 0..5 {
        bench.run(&format!("TASK.ADD q 1 {payload}"));
    }
    let count = |line: &str| ids(&bench.run(line)).len();
    assert_eq!(count("TASK.PEEK q COUNT 100"), 4);
    assert_eq!(count("TASK.TAKE q LEASE 1000 COUNT 100"), 4);
    assert_eq!(count("TASK.TAKE q LEASE 1000 COUNT 100"), 1);
}
