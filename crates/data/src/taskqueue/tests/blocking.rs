use super::*;

#[test]
fn a_task_goes_to_the_first_who_waits_and_has_what_it_needs() {
    on_both_stores(|bench| {
        let mut small = bench.wait("TASK.TAKE q HAVING gb 1 BLOCK 0");
        let large = bench.wait("TASK.TAKE q HAVING gb 8 BLOCK 0");
        let mut larger = bench.wait("TASK.TAKE q HAVING gb 9 BLOCK 0");
        bench.run("TASK.ADD q 1 x ID a NEEDS gb 5");
        assert_eq!(ids(&large.reply(bench)), ["a"]);
        assert!(small.is_waiting() && larger.is_waiting());
        bench.run("TASK.ADD q 1 x ID b NEEDS gb 1");
        assert_eq!(ids(&small.reply(bench)), ["b"]);
        assert!(larger.is_waiting());
        bench.run("TASK.ADD q 1 x ID c");
        assert_eq!(ids(&larger.reply(bench)), ["c"]);
    });
}

#[test]
fn a_task_that_fits_nobody_wakes_nobody() {
    on_both_stores(|bench| {
        let mut waiting = bench.wait("TASK.TAKE q HAVING gb 1 BLOCK 0");
        bench.run("TASK.ADD q 1 x NEEDS gb 2");
        bench.run("TASK.ADD q 1 x NEEDS cards 1");
        bench.run("TASK.ADD q 1 x DELAY 1000");
        assert!(waiting.is_waiting());
    });
}

#[test]
fn many_who_have_too_little_do_not_hold_up_who_has_enough() {
    on_both_stores(|bench| {
        let others: Vec<_> = (0..300)
            .map(|number| bench.wait(&format!("TASK.TAKE q HAVING gb 1 n{number} 1 BLOCK 0")))
            .collect();
        let enough = bench.wait("TASK.TAKE q HAVING gb 4 BLOCK 0");
        // The server knows nothing about the tasks of a renamed queue, so all clients try.
        bench.run("TASK.ADD other 1 x ID a NEEDS gb 3");
        bench.run("RENAME other q");
        assert_eq!(ids(&enough.reply(bench)), ["a"]);
        for mut other in others {
            assert!(other.is_waiting());
            bench.executor.waiters().cancel(&other.waiter);
        }
    });
}

#[test]
fn the_end_of_a_delay_or_a_lease_wakes() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a DELAY 1000 NEEDS gb 1");
        let waiting = bench.wait("TASK.TAKE q HAVING gb 1 LEASE 2000 BLOCK 0");
        bench.clock.advance_ms(1_000);
        reap(bench);
        assert_eq!(ids(&waiting.reply(bench)), ["a"]);
        let waiting = bench.wait("TASK.TAKE q HAVING gb 1 BLOCK 0");
        bench.clock.advance_ms(3_000);
        reap(bench);
        assert_eq!(ids(&waiting.reply(bench)), ["a"]);
    });
}

#[test]
fn a_task_that_is_given_back_or_revived_wakes() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x ID a MAXTRIES 2");
        bench.run("TASK.TAKE q LEASE 1000");
        let waiting = bench.wait("TASK.TAKE q LEASE 1000 BLOCK 0");
        bench.run("TASK.NACK q a");
        assert_eq!(ids(&waiting.reply(bench)), ["a"]);
        let waiting = bench.wait("TASK.TAKE q BLOCK 0");
        assert_eq!(bench.run("TASK.NACK q a"), Reply::Integer(2));
        bench.run("TASK.REVIVE q a");
        assert_eq!(ids(&waiting.reply(bench)), ["a"]);
    });
}

#[test]
fn tasks_that_come_at_once_go_to_as_many_who_wait() {
    on_both_stores(|bench| {
        let waiting: Vec<_> = (0..3).map(|_| bench.wait("TASK.TAKE q BLOCK 0")).collect();
        bench.exec(&[
            "TASK.ADD q 1 x ID a",
            "TASK.ADD q 1 x ID b",
            "TASK.ADD q 1 x ID c",
        ]);
        let taken: Vec<_> = waiting
            .into_iter()
            .map(|one| ids(&one.reply(bench)))
            .collect();
        assert_eq!(taken, [["a"], ["b"], ["c"]]);
    });
}

#[test]
fn tasks_that_are_revived_at_once_go_to_as_many_who_wait() {
    on_both_stores(|bench| {
        bench.exec(&[
            "TASK.ADD q 1 x ID a MAXTRIES 1",
            "TASK.ADD q 1 x ID b MAXTRIES 1",
        ]);
        bench.run("TASK.TAKE q COUNT 2 LEASE 1000");
        bench.exec(&["TASK.NACK q a", "TASK.NACK q b"]);
        let first = bench.wait("TASK.TAKE q BLOCK 0");
        let second = bench.wait("TASK.TAKE q BLOCK 0");
        bench.run("TASK.REVIVE q a b");
        assert_eq!(ids(&first.reply(bench)), ["a"]);
        assert_eq!(ids(&second.reply(bench)), ["b"]);
    });
}

#[test]
fn leases_that_end_together_wake_as_many_who_wait() {
    on_both_stores(|bench| {
        for number in 0..10 {
            bench.run(&format!("TASK.ADD q 1 x ID {number}"));
        }
        bench.run("TASK.TAKE q COUNT 10 LEASE 1000");
        let waiting: Vec<_> = (0..10).map(|_| bench.wait("TASK.TAKE q BLOCK 0")).collect();
        bench.clock.advance_ms(2_000);
        reap(bench);
        for one in waiting {
            assert_eq!(parts(&one.reply(bench)).len(), 1);
        }
    });
}

#[test]
fn a_task_is_there_for_the_next_where_the_first_takes_a_better_one() {
    on_both_stores(|bench| {
        let large = bench.wait("TASK.TAKE q HAVING gb 8 BLOCK 0");
        let small = bench.wait("TASK.TAKE q HAVING gb 1 BLOCK 0");
        bench.exec(&[
            "TASK.ADD q 5 x ID a NEEDS gb 1",
            "TASK.ADD q 1 x ID b NEEDS gb 8",
        ]);
        assert_eq!(ids(&large.reply(bench)), ["b"]);
        assert_eq!(ids(&small.reply(bench)), ["a"]);
    });
}

#[test]
fn a_task_is_there_for_the_last_where_the_first_take_those_that_have_lapsed() {
    on_both_stores(|bench| {
        bench.exec(&["TASK.ADD q 1 x ID a", "TASK.ADD q 1 x ID b"]);
        bench.run("TASK.TAKE q COUNT 2 LEASE 1000");
        let waiting: Vec<_> = (0..3).map(|_| bench.wait("TASK.TAKE q BLOCK 0")).collect();
        bench.clock.advance_ms(2_000);
        bench.run("TASK.ADD q 5 x ID new");
        let taken = waiting.into_iter().map(|one| ids(&one.reply(bench)));
        assert_eq!(taken.collect::<Vec<_>>(), [["a"], ["b"], ["new"]]);
    });
}

#[test]
fn a_transaction_does_not_wait() {
    let bench = Bench::embedded();
    let replies = bench.exec(&["TASK.TAKE q BLOCK 0"]);
    assert_eq!(replies, Reply::Array(vec![Reply::NullArray]));
}
