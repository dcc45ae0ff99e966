//! XREADGROUP with CLAIM. The expected replies come from Redis's own tests (8.4).

use super::*;
use quoin_engine::Reaper;

fn reap(bench: &Bench) {
    let mut reaper = Reaper::new(&bench.executor);
    while bench.block_on(reaper.pass(&bench.executor)).unwrap() {}
}

fn claimed_of_s(entries: Vec<Reply>) -> Reply {
    Reply::Keyed(vec![(bulk("s"), Reply::Array(entries))])
}

#[test]
fn idle_entries_come_before_new_ones() {
    on_both_stores(|bench| {
        with_group(bench, "s", 4);
        bench.run("XREADGROUP GROUP g a COUNT 2 STREAMS s >");
        bench.clock.advance_ms(100);
        let line = "XREADGROUP GROUP g b CLAIM 100 COUNT 3 STREAMS s >";
        let expected = vec![claimed(1, 100, 1), claimed(2, 100, 1), claimed(3, 0, 0)];
        assert_eq!(bench.run(line), claimed_of_s(expected));
        let shown = vec![
            pending(1, "b", 0, 2),
            pending(2, "b", 0, 2),
            pending(3, "b", 0, 1),
        ];
        assert_eq!(all_pending(bench, "s"), Reply::Array(shown));
        bench.clock.advance_ms(99);
        assert_eq!(bench.run(line), claimed_of_s(vec![claimed(4, 0, 0)]));
        assert_eq!(bench.run(line), Reply::NullArray);
        bench.clock.advance_ms(1);
        let expected = vec![claimed(1, 100, 2), claimed(2, 100, 2), claimed(3, 100, 1)];
        assert_eq!(bench.run(line), claimed_of_s(expected));
    });
}

#[test]
fn the_oldest_delivery_comes_first() {
    on_both_stores(|bench| {
        with_group(bench, "s", 3);
        for consumer in ["a", "b", "c"] {
            bench.run(&format!(
                "XREADGROUP GROUP g {consumer} COUNT 1 STREAMS s >"
            ));
            bench.clock.advance_ms(10);
        }
        bench.run("XCLAIM s g a 0 1-0");
        let line = "XREADGROUP GROUP g d COUNT 2 CLAIM 10 STREAMS s >";
        let expected = vec![claimed(2, 20, 1), claimed(3, 10, 1)];
        assert_eq!(bench.run(line), claimed_of_s(expected));
    });
}

#[test]
fn an_entry_is_given_once_with_each_claim_of_no_time() {
    on_both_stores(|bench| {
        with_group(bench, "s", 300);
        bench.run("XREADGROUP GROUP g a STREAMS s >");
        let line = "XREADGROUP GROUP g b CLAIM 0 STREAMS s >";
        for deliveries in 1..3 {
            let expected = (1..=300).map(|number| claimed(number, 0, deliveries));
            assert_eq!(bench.run(line), claimed_of_s(expected.collect()));
        }
    });
}

#[test]
fn what_is_pending_stays_so_without_acknowledgement() {
    on_both_stores(|bench| {
        with_group(bench, "s", 2);
        bench.run("XREADGROUP GROUP g a COUNT 1 STREAMS s >");
        bench.clock.advance_ms(5);
        let line = "XREADGROUP GROUP g b NOACK CLAIM 5 STREAMS s >";
        let expected = vec![claimed(1, 5, 1), claimed(2, 0, 0)];
        assert_eq!(bench.run(line), claimed_of_s(expected));
        let shown = vec![pending(1, "b", 0, 2)];
        assert_eq!(all_pending(bench, "s"), Reply::Array(shown));
    });
}

#[test]
fn an_entry_that_is_gone_stays_pending_and_is_not_given() {
    on_both_stores(|bench| {
        with_group(bench, "s", 3);
        bench.run("XREADGROUP GROUP g a STREAMS s >");
        bench.run("XDEL s 1-0");
        bench.clock.advance_ms(5);
        let line = "XREADGROUP GROUP g b COUNT 1 CLAIM 5 STREAMS s >";
        assert_eq!(bench.run(line), claimed_of_s(vec![claimed(2, 5, 1)]));
        assert_eq!(bench.run(line), claimed_of_s(vec![claimed(3, 5, 1)]));
        assert_eq!(bench.run(line), Reply::NullArray);
        assert_eq!(info(bench, "XINFO GROUPS s", "pending"), int(3));
    });
}

#[test]
fn a_history_and_wrong_times_are_as_without() {
    on_both_stores(|bench| {
        with_group(bench, "s", 2);
        bench.run("XREADGROUP GROUP g a COUNT 1 STREAMS s >");
        let history = bench.run("XREADGROUP GROUP g a CLAIM 0 STREAMS s 0");
        assert_eq!(history, read("s", [1]));
        for (line, text) in [
            (
                "XREADGROUP GROUP g a CLAIM x STREAMS s >",
                "ERR min-idle-time is not an integer or out of range",
            ),
            (
                "XREADGROUP GROUP g a CLAIM -1 STREAMS s >",
                "ERR min-idle-time must be a positive integer",
            ),
            (
                "XREAD CLAIM 1 STREAMS s 0",
                "ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead.",
            ),
        ] {
            assert_eq!(bench.run(line), error(text), "{line}");
        }
    });
}

#[test]
fn a_policy_limits_what_is_claimed() {
    on_both_stores(|bench| {
        with_group(bench, "s", 2);
        bench.run("XGROUP SETPOLICY s g MINIDLE 1000 MAXTRIES 2 DEADLETTER dead");
        bench.run("XREADGROUP GROUP g a STREAMS s >");
        bench.clock.advance_ms(10);
        let line = "XREADGROUP GROUP g b COUNT 1 CLAIM 10 STREAMS s >";
        assert_eq!(bench.run(line), claimed_of_s(vec![claimed(1, 10, 1)]));
        bench.clock.advance_ms(10);
        let line = "XREADGROUP GROUP g b CLAIM 10 STREAMS s >";
        assert_eq!(bench.run(line), claimed_of_s(vec![claimed(2, 20, 1)]));
        assert_eq!(bench.run("XLEN dead"), int(1));
    });
}

#[test]
fn groups_without_claims_have_no_rows_by_delivery() {
    on_both_stores(|bench| {
        with_group(bench, "s", 2);
        bench.run("XREADGROUP GROUP g a STREAMS s >");
        let rows = bench.data_rows();
        bench.run("XREADGROUP GROUP g a CLAIM 1000 STREAMS s >");
        assert_eq!(bench.data_rows(), rows + 2);
        bench.run("XACK s g 1-0");
        // The pending entry, the same by consumer and by delivery.
        assert_eq!(bench.data_rows(), rows - 1);
        bench.run("XGROUP SETPOLICY s g");
        assert_eq!(bench.data_rows(), rows - 2);
        bench.run("XGROUP DESTROY s g");
        bench.run("XTRIM s MAXLEN 0");
        assert_eq!(bench.data_rows(), 1);
    });
}

const WAIT: &str = "XREADGROUP GROUP g b COUNT 1 BLOCK 0 CLAIM 1000 STREAMS s >";

#[test]
fn a_client_that_waits_is_woken_when_an_entry_is_idle_for_long_enough() {
    on_both_stores(|bench| {
        with_group(bench, "s", 1);
        bench.run("XREADGROUP GROUP g a STREAMS s >");
        bench.clock.advance_ms(500);
        let mut waiting = bench.wait(WAIT);
        bench.clock.advance_ms(499);
        reap(bench);
        assert!(waiting.is_waiting());
        bench.clock.advance_ms(101);
        reap(bench);
        let expected = vec![claimed(1, 1_100, 1)];
        assert_eq!(waiting.reply(bench), claimed_of_s(expected));
    });
}

#[test]
fn what_is_delivered_while_a_client_waits_wakes_it_later() {
    on_both_stores(|bench| {
        with_group(bench, "s", 0);
        let mut waiting = bench.wait(WAIT);
        let mut other = bench.wait("XREADGROUP GROUP g c BLOCK 0 STREAMS s >");
        bench.clock.advance_ms(300);
        bench.exec(&["XADD s 1-0 n 1", "XREADGROUP GROUP g a STREAMS s >"]);
        assert!(waiting.is_waiting());
        for _ in 0..9 {
            bench.clock.advance_ms(100);
            reap(bench);
            assert!(waiting.is_waiting());
        }
        for _ in 0..3 {
            bench.clock.advance_ms(100);
            reap(bench);
        }
        let expected = vec![claimed(1, 1_000, 1)];
        assert_eq!(waiting.reply(bench), claimed_of_s(expected));
        assert!(other.is_waiting());
        bench.run("XACK s g 1-0");
        add(bench, "s", 2);
        assert_eq!(other.reply(bench), read("s", [2]));
    });
}

#[test]
fn a_new_entry_and_a_released_one_wake_at_once() {
    on_both_stores(|bench| {
        with_group(bench, "s", 1);
        bench.run("XREADGROUP GROUP g a STREAMS s >");
        let waiting = bench.wait(WAIT);
        add(bench, "s", 2);
        assert_eq!(waiting.reply(bench), claimed_of_s(vec![claimed(2, 0, 0)]));
        let waiting = bench.wait(WAIT);
        bench.run("XNACK s g FAIL IDS 1 1-0");
        let expected = vec![claimed(1, START_MS, 1)];
        assert_eq!(waiting.reply(bench), claimed_of_s(expected));
    });
}

#[test]
fn a_client_of_another_server_is_woken_too() {
    let bench = Bench::cluster_like();
    with_group(&bench, "s", 1);
    bench.run("XREADGROUP GROUP g a STREAMS s >");
    let waiting = bench.wait(WAIT);
    let other = bench.another_server();
    bench.clock.advance_ms(1_100);
    let mut reaper = Reaper::new(&other);
    while bench.block_on(reaper.pass(&other)).unwrap() {}
    let expected = vec![claimed(1, 1_100, 1)];
    assert_eq!(waiting.reply(&bench), claimed_of_s(expected));
}

#[test]
fn claims_of_the_same_entry_conflict() {
    const CLAIM: &str = "XREADGROUP GROUP g c COUNT 1 CLAIM 0 STREAMS s >";
    for (meanwhile, conflicts) in [
        ("XREADGROUP GROUP g d COUNT 1 CLAIM 0 STREAMS s >", true),
        ("XACK s g 1-0", true),
        ("XACK s g 2-0", false),
        ("XADD s * f v", false),
    ] {
        let bench = Bench::cluster_like();
        with_group(&bench, "s", 2);
        bench.run("XREADGROUP GROUP g a STREAMS s >");
        bench.run("XREADGROUP GROUP g a CLAIM 1000 STREAMS s >");
        let found = bench.race(CLAIM, meanwhile, false);
        assert_eq!(found, conflicts, "{meanwhile}");
    }
}
