//! TASK.SETOPTIONS and TASK.GETOPTIONS, and the effects of options.

use super::*;

const SYNTAX: &str = "TASK.SETOPTIONS q x 1";

fn options(bench: &Bench, key: &str) -> Vec<(Reply, Reply)> {
    match bench.run(&format!("TASK.GETOPTIONS {key}")) {
        Reply::Map(fields) => fields,
        other => panic!("{other:?}"),
    }
}

fn delayed_ms(bench: &Bench, key: &str, id: &str) -> i64 {
    match bench.run(&format!("TASK.GET {key} {id}")) {
        Reply::Map(fields) => match field(&fields, "left-ms") {
            Reply::Integer(left_ms) => left_ms,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn options_are_set_one_by_one_and_told_in_the_same_words() {
    on_both_stores(|bench| {
        let set = "TASK.SETOPTIONS q MAXTRIES 3 backoff 100 BackOffMax 5000 JITTER 20 LEASE 60000 TTL 900000 \
                   MAXLEN 1000 LEASES 5 RATE 10 1000 OVERFLOW drop DEADLETTER dead";
        assert_eq!(bench.run(set), Reply::OK);
        assert_eq!(bench.run("TASK.SETOPTIONS q LEASE 0 MAXLEN 7"), Reply::OK);
        let told = options(bench, "q");
        let expected = [
            ("maxtries", Reply::Integer(3)),
            ("backoff", Reply::Integer(100)),
            ("backoffmax", Reply::Integer(5_000)),
            ("jitter", Reply::Integer(20)),
            ("lease", Reply::Integer(0)),
            ("ttl", Reply::Integer(900_000)),
            ("maxlen", Reply::Integer(7)),
            ("leases", Reply::Integer(5)),
            ("groupleases", Reply::Integer(0)),
            ("overflow", bulk("drop")),
            ("rate", codes(&[10, 1_000])),
            ("deadletter", bulk("dead")),
        ];
        assert_eq!(told, expected.map(|(name, value)| (bulk(name), value)));
        let words = told.iter().flat_map(|(name, value)| match value {
            Reply::Integer(number) => [text(name), number.to_string()],
            Reply::Array(numbers) => [text(name), {
                let numbers = numbers.iter().map(|number| match number {
                    Reply::Integer(number) => number.to_string(),
                    other => panic!("{other:?}"),
                });
                numbers.collect::<Vec<_>>().join(" ")
            }],
            value => [text(name), text(value)],
        });
        let words: Vec<_> = words.collect();
        bench.run(&format!("TASK.SETOPTIONS other {}", words.join(" ")));
        assert_eq!(options(bench, "other"), told);
    });
}

#[test]
fn what_is_no_option_is_refused_and_sets_nothing() {
    on_both_stores(|bench| {
        bench.run("SET text x");
        let range = |name, max: i64| format!("ERR {name} must be an integer from 0 to {max}");
        for (words, line) in [
            ("LEASE x", range("LEASE", 31_557_600_000_000)),
            ("LEASE -1", range("LEASE", 31_557_600_000_000)),
            ("TTL 31557600000001", range("TTL", 31_557_600_000_000)),
            ("JITTER 101", range("JITTER", 100)),
            ("MAXLEN 1.5", range("MAXLEN", i64::MAX)),
            ("LEASES -1", range("LEASES", i64::MAX)),
            ("RATE x 1", range("RATE", i64::MAX)),
            ("RATE 1 x", range("PERIOD OF RATE", 31_557_600_000_000)),
            (
                "RATE 1 0",
                "ERR RATE must have two positive numbers, or 0 twice".to_owned(),
            ),
            (
                "DEADLETTER q",
                "ERR DEADLETTER must be another key than the queue's".to_owned(),
            ),
            (
                "DEADLETTER text",
                "WRONGTYPE Operation against a key holding the wrong kind of value".to_owned(),
            ),
        ] {
            let reply = bench.run(&format!("TASK.SETOPTIONS q MAXTRIES 2 {words}"));
            assert_eq!(reply, error(&line), "{words}");
        }
        for words in [
            "x 1",
            "MAXTRIES 1 MAXTRIES 1",
            "OVERFLOW wait",
            "LEASE 1 TTL",
            "RATE 1",
            "RATE 1 1 RATE 1 1",
        ] {
            let reply = bench.run(&format!("TASK.SETOPTIONS q {words}"));
            assert_eq!(reply, syntax_error(SYNTAX), "{words}");
        }
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
        assert_eq!(bench.run("TASK.GETOPTIONS q"), error("ERR no such key"));
    });
}

#[test]
fn a_queue_with_options_exists_without_tasks() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q MAXTRIES 2");
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(1));
        bench.run("TASK.ADD q 1 x ID a");
        bench.run("TASK.TAKE q");
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(1));
        bench.run("TASK.PAUSE q");
        bench.run("TASK.RESUME q");
        assert_eq!(field(&options(bench, "q"), "maxtries"), Reply::Integer(2));
        bench.run("TASK.SETOPTIONS q MAXTRIES 0");
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    });
}

#[test]
fn a_task_says_more_than_the_options_of_its_queue() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q MAXTRIES 1 LEASE 1000 TTL 60000 BACKOFF 500");
        bench.run("TASK.ADD q 1 x ID a");
        bench.run("TASK.ADD q 1 x ID b MAXTRIES 0 TTL 0");
        bench.run("TASK.ADD q 1 x ID c MAXTRIES 5");
        let taken = bench.run("TASK.TAKE q COUNT 3 LEASE 5000 WORKER w");
        assert_eq!(parts(&taken)[0].len(), 6);
        assert_eq!(bench.run("TASK.NACK q a"), Reply::Integer(2));
        assert_eq!(bench.run("TASK.NACK q b"), Reply::Integer(1));
        assert_eq!(bench.run("TASK.NACK q c DELAY 0"), Reply::Integer(1));
        assert_eq!(delayed_ms(bench, "q", "b"), 500);
        assert_eq!(delayed_ms(bench, "q", "c"), -1);
        // The lease of the options.
        let taken = bench.run("TASK.TAKE q");
        assert_eq!(parts(&taken)[0].len(), 6);
        bench.clock.advance_ms(1_500);
        reap(bench);
        // A lease that lapses causes no delay.
        assert_eq!(listed_ids(bench, "q", "READY", 10), ["b", "c"]);
        bench.clock.advance_ms(60_000);
        reap(bench);
        assert_eq!(listed_ids(bench, "q", "READY", 10), ["b"]);
        assert_eq!(listed_ids(bench, "q", "DEAD", 10), ["a"]);
    });
}

#[test]
fn delays_double_up_to_the_greatest() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q BACKOFF 100 BACKOFFMAX 1000");
        bench.run("TASK.ADD q 1 x ID a");
        for expected in [100, 200, 400, 800, 1_000, 1_000] {
            bench.run("TASK.TAKE q LEASE 60000");
            bench.run("TASK.NACK q a");
            assert_eq!(delayed_ms(bench, "q", "a"), expected);
            bench.clock.advance_ms(expected);
            reap(bench);
        }
        bench.run("TASK.SETOPTIONS q BACKOFFMAX 0");
        bench.run("TASK.TAKE q LEASE 60000");
        bench.run("TASK.NACK q a");
        assert_eq!(delayed_ms(bench, "q", "a"), 100);
    });
}

#[test]
fn jitter_leaves_out_up_to_its_percentage() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q BACKOFF 1000 JITTER 30");
        let mut delays = std::collections::BTreeSet::new();
        for number in 0..40 {
            bench.run(&format!("TASK.ADD q 1 x ID t{number}"));
            bench.run("TASK.TAKE q LEASE 60000");
            bench.run(&format!("TASK.NACK q t{number}"));
            delays.insert(delayed_ms(bench, "q", &format!("t{number}")));
        }
        assert!(
            delays
                .iter()
                .all(|delay_ms| (700..=1_000).contains(delay_ms))
        );
        assert!(delays.len() > 10, "{delays:?}");
    });
}

#[test]
fn a_full_queue_refuses_tasks_until_there_is_room() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q MAXLEN 2 MAXTRIES 1");
        bench.run("TASK.ADD q 1 x ID a");
        bench.run("TASK.ADD q 1 x ID b DELAY 60000");
        let full = error("FULL Task queue is full");
        assert_eq!(bench.run("TASK.ADD q 1 x ID c"), full);
        bench.run("TASK.TAKE q LEASE 60000");
        assert_eq!(bench.run("TASK.ADD q 1 x ID c"), full);
        // Dead tasks do not count.
        bench.run("TASK.NACK q a");
        assert_eq!(bench.run("TASK.ADD q 1 x ID c"), bulk("c"));
        assert_eq!(bench.run("TASK.ADD q 1 x ID d"), full);
        // No ready task is left to drop.
        bench.run("TASK.TAKE q LEASE 60000");
        bench.run("TASK.SETOPTIONS q OVERFLOW DROP");
        assert_eq!(bench.run("TASK.ADD q 1 x ID d"), full);
    });
}

#[test]
fn a_full_queue_drops_the_oldest_of_its_last_priority() {
    on_both_stores(|bench| {
        for (priority, id) in [(1, "a"), (9, "b"), (9, "c"), (1, "d")] {
            bench.run(&format!("TASK.ADD q {priority} x ID {id}"));
        }
        bench.run("TASK.ADD q 9 x ID e NEEDS gb 1");
        bench.run("TASK.SETOPTIONS q MAXLEN 4 OVERFLOW DROP");
        bench.run("TASK.ADD q 9 x ID f");
        let left = || listed_ids(bench, "q", "READY", 10);
        assert_eq!(left(), ["a", "d", "e", "f"]);
        bench.run("TASK.ADD q 5 x ID g");
        bench.run("TASK.ADD q 5 x ID h");
        assert_eq!(left(), ["a", "d", "g", "h"]);
        // A length that was lowered is reached by and by.
        bench.run("TASK.SETOPTIONS q MAXLEN 1");
        bench.run("TASK.ADD q 7 x ID i");
        assert_eq!(left(), ["i"]);
    });
}

#[test]
fn a_task_that_is_too_old_is_gone() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a TTL 1000");
        bench.run("TASK.ADD q 1 x ID b TTL 1000 DELAY 5000");
        bench.run("TASK.ADD q 1 x ID c TTL 1000");
        bench.run("TASK.TAKE q LEASE 3000");
        bench.clock.advance_ms(1_000);
        assert_eq!(bench.run("TASK.GET q c"), Reply::Null);
        assert_eq!(bench.run("TASK.PEEK q"), Reply::Array(Vec::new()));
        reap(bench);
        assert_eq!(bench.run("TASK.LEN q"), Reply::Integer(1));
        // Its consumer may still acknowledge it, but the task is not handed out again.
        bench.clock.advance_ms(4_000);
        reap(bench);
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
        bench.run("TASK.ADD q 1 x ID a TTL 1000");
        bench.run("TASK.TAKE q LEASE 60000");
        bench.clock.advance_ms(2_000);
        assert_eq!(bench.run("TASK.NACK q a"), Reply::Integer(2));
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    });
}

#[test]
fn a_take_passes_over_tasks_that_are_too_old() {
    on_both_stores(|bench| {
        let lines = (0..100).map(|number| format!("TASK.ADD q 1 x ID old{number} TTL 1000"));
        bench.run_all(&lines.collect::<Vec<_>>());
        bench.run("TASK.ADD q 1 x ID young");
        bench.clock.advance_ms(1_000);
        assert_eq!(ids(&bench.run("TASK.TAKE q")), ["young"]);
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    });
}

#[test]
fn a_client_that_waits_gets_what_is_after_many_tasks_that_are_too_old() {
    on_both_stores(|bench| {
        let lines = (0..400).map(|number| format!("TASK.ADD q 1 x ID old{number} TTL 1000"));
        bench.run_all(&lines.collect::<Vec<_>>());
        bench.run("TASK.ADD q 2 x ID young");
        bench.clock.advance_ms(1_000);
        let waiting = bench.wait("TASK.TAKE q BLOCK 0");
        reap(bench);
        assert_eq!(ids(&waiting.reply(bench)), ["young"]);
    });
}

#[test]
fn dead_tasks_go_to_another_queue_with_reason_and_worker() {
    on_both_stores(|bench| {
        let large = "p".repeat(200_000);
        bench.run("TASK.SETOPTIONS q DEADLETTER dead MAXTRIES 1 MAXLEN 4 OVERFLOW DROP");
        bench.run(&format!("TASK.ADD q 1 {large} ID nacked NEEDS gb 2"));
        bench.run("TASK.ADD q 1 lapsed ID lapsed");
        bench.run("TASK.ADD q 1 old ID old TTL 500");
        bench.run("TASK.TAKE q COUNT 2 HAVING gb 4 LEASE 1000 WORKER w");
        assert_eq!(
            bench.run("TASK.NACK q nacked REASON disk"),
            Reply::Integer(2)
        );
        bench.run("TASK.ADD q 1 x ID l");
        bench.run("TASK.ADD q 2 x ID m");
        bench.run("TASK.ADD q 1 x ID n");
        bench.clock.advance_ms(2_000);
        reap(bench);
        let dead = listed(bench, "dead", "READY", 10);
        let notes = dead.iter().map(|task| {
            let note = |name| match field(task, name) {
                Reply::Null => String::new(),
                note => text(&note),
            };
            [text(&field(task, "id")), note("worker"), note("reason")]
        });
        let mut notes: Vec<_> = notes.collect();
        notes.sort();
        let expected = [
            ["lapsed", "w", ""],
            ["m", "", "dropped"],
            ["nacked", "w", "disk"],
            ["old", "", "expired"],
        ];
        assert_eq!(notes, expected);
        assert_eq!(listed_ids(bench, "q", "READY", 10), ["l", "n"]);
        assert_eq!(bench.run("TASK.LEN q"), Reply::Integer(2));
        let taken = bench.run("TASK.TAKE dead COUNT 9 HAVING gb 4");
        let task = parts(&taken)
            .into_iter()
            .find(|task| task[0] == bulk("nacked"));
        let task = task.unwrap();
        assert_eq!((&task[2], &task[4]), (&Reply::Integer(1), &bulk(&large)));
    });
}

#[test]
fn a_client_that_waits_for_dead_tasks_gets_them() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q DEADLETTER dead MAXTRIES 1");
        bench.run("TASK.ADD q 1 x ID a");
        bench.run("TASK.ADD q 1 x ID b");
        bench.run("TASK.TAKE q COUNT 2 LEASE 1000");
        let waiting = bench.wait("TASK.TAKE dead BLOCK 0");
        bench.run("TASK.NACK q a");
        assert_eq!(ids(&waiting.reply(bench)), ["a"]);
        let waiting = bench.wait("TASK.TAKE dead BLOCK 0");
        bench.clock.advance_ms(2_000);
        reap(bench);
        assert_eq!(ids(&waiting.reply(bench)), ["b"]);
    });
}

#[test]
fn a_dead_task_stays_where_it_is_if_it_cannot_move() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q DEADLETTER dead MAXTRIES 1");
        let die = |id: &str| {
            bench.run(&format!("TASK.ADD q 1 x ID {id}"));
            bench.run("TASK.TAKE q LEASE 1000");
            bench.run(&format!("TASK.NACK q {id}"))
        };
        bench.run("TASK.ADD dead 1 x ID a");
        assert_eq!(die("a"), Reply::Integer(2));
        bench.run("DEL dead");
        bench.run("SET dead x");
        assert_eq!(die("b"), Reply::Integer(2));
        bench.run("DEL dead");
        bench.run("TASK.SETOPTIONS q DEADLETTER dead2");
        bench.run("RENAME q dead2");
        bench.run("TASK.ADD dead2 1 x ID c");
        bench.run("TASK.TAKE dead2 LEASE 1000");
        bench.clock.advance_ms(2_000);
        reap(bench);
        assert_eq!(listed_ids(bench, "dead2", "DEAD", 10), ["a", "b", "c"]);
    });
}

#[test]
fn dead_tasks_move_within_their_database() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q DEADLETTER dead MAXTRIES 1");
        bench.run("TASK.ADD q 1 x ID a");
        bench.run("TASK.TAKE q LEASE 1000");
        bench.run("MOVE q 3");
        bench.clock.advance_ms(2_000);
        reap(bench);
        assert_eq!(bench.run("EXISTS dead"), Reply::Integer(0));
        bench.run("SWAPDB 0 3");
        assert_eq!(listed_ids(bench, "dead", "READY", 10), ["a"]);
    });
}

#[test]
fn a_revived_task_is_of_any_age() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a TTL 1000 MAXTRIES 1");
        bench.run("TASK.TAKE q LEASE 100");
        bench.run("TASK.NACK q a");
        bench.clock.advance_ms(5_000);
        reap(bench);
        assert_eq!(bench.run("TASK.REVIVE q ALL"), Reply::Integer(1));
        reap(bench);
        assert_eq!(ids(&bench.run("TASK.TAKE q")), ["a"]);
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    });
}

#[test]
fn options_and_ages_go_along_with_copies_names_and_dumps() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q MAXTRIES 3 TTL 1000 OVERFLOW DROP DEADLETTER dead");
        let told = options(bench, "q");
        for tasks in 0..2 {
            bench.run("COPY q copy");
            let Reply::Bulk(payload) = bench.run("DUMP q") else {
                panic!("no payload");
            };
            bench.run_words(&[b"RESTORE", b"restored", b"0", &payload]);
            bench.run("RENAME copy renamed");
            for key in ["restored", "renamed"] {
                assert_eq!(options(bench, key), told, "{key}");
                assert_eq!(bench.run(&format!("TASK.LEN {key}")), Reply::Integer(tasks));
            }
            if tasks == 1 {
                bench.clock.advance_ms(1_000);
                reap(bench);
                let left = ["q", "restored", "renamed"].map(|key| {
                    assert_eq!(
                        bench.run(&format!("TASK.LEN {key} READY")),
                        Reply::Integer(0)
                    );
                    bench.run(&format!("TASK.LEN {key} DEAD"))
                });
                let stayed = { left.iter() }.filter(|count| **count == Reply::Integer(1));
                assert_eq!(stayed.count(), 2, "{left:?}");
                // The id appears once.
                assert_eq!(listed_ids(bench, "dead", "READY", 10), ["a"]);
            }
            bench.run("DEL restored renamed");
            bench.run("TASK.ADD q 1 x ID a");
        }
    });
}

#[test]
fn a_task_keeps_its_age_when_it_is_moved() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a TTL 1000");
        bench.run("TASK.MOVE q r a");
        bench.clock.advance_ms(1_000);
        reap(bench);
        assert_eq!(bench.run("EXISTS q r"), Reply::Integer(0));
    });
}

#[test]
fn a_take_that_has_not_seen_an_option_conflicts() {
    let bench = Bench::cluster_like();
    bench.run("TASK.ADD q 1 x");
    assert!(bench.race("TASK.TAKE q", "TASK.SETOPTIONS q LEASE 1000", false));
    assert!(bench.race("TASK.ADD q 1 x", "TASK.SETOPTIONS q MAXLEN 1", false));
}
