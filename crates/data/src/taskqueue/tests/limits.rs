//! RATE and LEASES: how many tasks consumers get.

use super::*;

fn add(bench: &Bench, count: usize) {
    for number in 0..count {
        bench.run(&format!("TASK.ADD q 1 x ID t{number}"));
    }
}

#[test]
fn consumers_have_no_more_leases_than_the_queue_allows() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q LEASES 2");
        add(bench, 8);
        assert_eq!(
            ids(&bench.run("TASK.TAKE q COUNT 3 LEASE 1000")),
            ["t0", "t1"]
        );
        assert_eq!(bench.run("TASK.TAKE q LEASE 1000"), Reply::NullArray);
        // Without a lease a task is gone, and does not count.
        assert_eq!(ids(&bench.run("TASK.TAKE q")), ["t2"]);
        bench.run("TASK.ACK q t0");
        assert_eq!(ids(&bench.run("TASK.TAKE q COUNT 3 LEASE 1000")), ["t3"]);
        bench.run("TASK.NACK q t1 DELAY 100000");
        assert_eq!(ids(&bench.run("TASK.TAKE q COUNT 3 LEASE 1000")), ["t4"]);
        bench.run("TASK.CANCEL q t3");
        assert_eq!(ids(&bench.run("TASK.TAKE q COUNT 3 LEASE 1000")), ["t5"]);
        bench.clock.advance_ms(2_000);
        assert_eq!(
            ids(&bench.run("TASK.TAKE q COUNT 3 LEASE 1000")),
            ["t4", "t5"]
        );
        bench.run("TASK.PURGE q LEASED");
        assert_eq!(
            ids(&bench.run("TASK.TAKE q COUNT 3 LEASE 1000")),
            ["t6", "t7"]
        );
    });
}

#[test]
fn a_consumer_that_waits_gets_a_task_when_a_lease_ends() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q LEASES 1");
        add(bench, 6);
        bench.run("TASK.TAKE q LEASE 1000");
        for (number, line) in [
            "TASK.ACK q t0",
            "TASK.NACK q t1 DELAY 1000000",
            "TASK.CANCEL q t2",
            "TASK.PURGE q LEASED",
            "TASK.SETOPTIONS q LEASES 2",
        ]
        .iter()
        .enumerate()
        {
            let mut waiting = bench.wait("TASK.TAKE q LEASE 1000 BLOCK 0");
            assert!(waiting.is_waiting(), "{line}");
            bench.run(line);
            assert_eq!(
                ids(&waiting.reply(bench)),
                [format!("t{}", number + 1)],
                "{line}"
            );
        }
        let mut waiting = bench.wait("TASK.TAKE q LEASE 1000 BLOCK 0");
        assert!(waiting.is_waiting());
        bench.clock.advance_ms(2_000);
        reap(bench);
        assert_eq!(ids(&waiting.reply(bench)), ["t4"]);
    });
}

#[test]
fn consumers_get_no_more_tasks_within_a_time_than_the_queue_allows() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q RATE 3 1000");
        add(bench, 9);
        assert_eq!(ids(&bench.run("TASK.TAKE q COUNT 2")), ["t0", "t1"]);
        bench.clock.advance_ms(900);
        assert_eq!(ids(&bench.run("TASK.TAKE q COUNT 2 LEASE 60000")), ["t2"]);
        assert_eq!(bench.run("TASK.TAKE q"), Reply::NullArray);
        let waiting = [
            bench.wait("TASK.TAKE q BLOCK 0"),
            bench.wait("TASK.TAKE q BLOCK 0"),
        ];
        bench.clock.advance_ms(100);
        reap(bench);
        let got = waiting.map(|one| ids(&one.reply(bench))).concat();
        assert_eq!(got, ["t3", "t4"]);
        assert_eq!(ids(&bench.run("TASK.TAKE q COUNT 9")), ["t5"]);
        // Another rate counts from its own beginning.
        bench.run("TASK.SETOPTIONS q RATE 1 1000");
        assert_eq!(ids(&bench.run("TASK.TAKE q COUNT 9")), ["t6"]);
        bench.run("TASK.SETOPTIONS q RATE 0 0");
        assert_eq!(ids(&bench.run("TASK.TAKE q COUNT 9")), ["t7", "t8"]);
        bench.run("TASK.ACK q t2");
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    });
}

#[test]
fn a_queue_with_a_rate_goes_along_with_copies_names_and_dumps() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q RATE 1 1000 LEASES 4");
        add(bench, 2);
        bench.run("TASK.TAKE q");
        bench.run("COPY q copy");
        bench.run("RENAME copy renamed");
        // The count of takes stays with the rows of the queue, and is not in a dump.
        assert_eq!(bench.run("TASK.TAKE renamed"), Reply::NullArray);
        let Reply::Bulk(payload) = bench.run("DUMP q") else {
            panic!("no payload");
        };
        bench.run_words(&[b"RESTORE", b"restored", b"0", &payload]);
        super::dumping::load_chunks(bench, bench, "loaded", 1);
        for key in ["restored", "loaded"] {
            assert_eq!(
                bench.run(&format!("TASK.GETOPTIONS {key}")),
                bench.run("TASK.GETOPTIONS q")
            );
            assert_eq!(ids(&bench.run(&format!("TASK.TAKE {key}"))), ["t1"]);
            assert_eq!(bench.run(&format!("TASK.TAKE {key}")), Reply::NullArray);
        }
    });
}

#[test]
fn takes_of_two_servers_count_each_other() {
    for (options, lines) in [
        (
            "LEASES 2",
            [
                "TASK.TAKE q LEASE 1000 HAVING gb 1",
                "TASK.TAKE q LEASE 1000",
            ],
        ),
        ("RATE 2 1000", ["TASK.TAKE q HAVING gb 1", "TASK.TAKE q"]),
    ] {
        let bench = Bench::cluster_like();
        bench.run(&format!("TASK.SETOPTIONS q {options}"));
        bench.run("TASK.ADD q 2 x ID small");
        bench.run("TASK.ADD q 1 x ID large NEEDS gb 1");
        assert!(bench.race(lines[0], lines[1], false), "{options}");
        bench.run("TASK.SETOPTIONS q LEASES 0 RATE 0 0");
        bench.run("TASK.ADD q 2 x ID other");
        bench.run("TASK.ADD q 1 x ID larger NEEDS gb 1");
        assert!(!bench.race(lines[0], lines[1], false), "{options}");
    }
}
