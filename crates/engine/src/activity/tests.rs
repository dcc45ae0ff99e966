//! What is counted for commands, on both stores.

use super::*;
use crate::Reaper;
use crate::testing::Bench;
use quoin_data::unit::flows::FlowCounts;
use quoin_store::faults::FaultRates;

fn on_both_stores(test: impl Fn(&Bench)) {
    for bench in [Bench::embedded(), Bench::cluster_like()] {
        test(&bench);
    }
}

/// In, out, retries and deaths.
fn counts(bench: &Bench, name: &str) -> [u64; 4] {
    let queues = bench.executor.activity().queues(Instant::now());
    let mut queues = queues.into_iter();
    let found = queues.find(|queue| queue.key.key == name);
    let FlowCounts {
        elements_in,
        elements_out,
        retries,
        deaths,
    } = found.map(|queue| queue.counts).unwrap_or_default();
    [elements_in, elements_out, retries, deaths]
}

#[test]
fn commands_transactions_and_coalesced_commands_count() {
    on_both_stores(|bench| {
        bench.run("RPUSH q a b c");
        bench.run("LPOP q");
        assert_eq!(counts(bench, "q"), [3, 1, 0, 0]);
        bench.exec(&["RPUSH q d e", "RPOP q", "LPOP q"]);
        assert_eq!(counts(bench, "q"), [5, 3, 0, 0]);
        let lines: Vec<String> = (0..50).map(|_| "RPUSH q x".to_owned()).collect();
        bench.run_all(&lines);
        let lines: Vec<String> = (0..50).map(|_| "LPOP q".to_owned()).collect();
        bench.run_all(&lines);
        assert_eq!(counts(bench, "q"), [55, 53, 0, 0]);
    });
}

#[test]
fn a_command_that_fails_counts_nothing() {
    on_both_stores(|bench| {
        bench.run("RPUSH q a");
        bench.run("SET string x");
        bench.run("LMOVE q string LEFT LEFT");
        bench.run("ZADD q 1 a");
        assert_eq!(counts(bench, "q"), [1, 0, 0, 0]);
    });
}

#[test]
fn a_client_that_is_served_later_counts() {
    on_both_stores(|bench| {
        let waiting = bench.wait("BLMOVE from to LEFT LEFT 0");
        bench.run("RPUSH from a");
        waiting.reply(bench);
        assert_eq!(counts(bench, "from"), [1, 1, 0, 0]);
        assert_eq!(counts(bench, "to"), [1, 0, 0, 0]);
    });
}

#[test]
fn a_lease_that_ends_in_the_background_counts() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 x MAXTRIES 2");
        for failed in [[1, 0, 1, 0], [1, 0, 1, 1]] {
            bench.run("TASK.TAKE q LEASE 1000");
            bench.clock.advance_ms(60_000);
            let mut reaper = Reaper::new(&bench.executor);
            bench.block_on(reaper.pass(&bench.executor)).unwrap();
            assert_eq!(counts(bench, "q"), failed);
        }
    });
}

#[test]
fn a_batch_that_runs_again_counts_once() {
    let (bench, store) = Bench::faulty(3);
    store.set_rates(FaultRates {
        conflict_ppm: 500_000,
        ..FaultRates::default()
    });
    for _ in 0..50 {
        bench.run("RPUSH q a");
    }
    assert!(bench.executor.statistics().conflicts.get() > 0);
    assert_eq!(counts(&bench, "q"), [50, 0, 0, 0]);
}
