//! A store that keeps failing: clients get errors within bounded time, and are served again
//! afterwards.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use quoin_base::limits::COMMIT_RETRY_MAX_MS;
use quoin_resp::reply::Reply;
use quoin_store::Store;
use quoin_store::faults::FaultRates;

use crate::bench::{Bench, cluster, embedded, error, submit, words};

const ALWAYS_PPM: u32 = 1_000_000;
const CLIENTS: usize = 10;
/// A batch may be given up, and clients that arrived after it wait for the next one.
const TIME_MAX: Duration = Duration::from_millis(3 * COMMIT_RETRY_MAX_MS);

/// The errors that clients get while the store fails at these rates.
fn told_while_failing<S: Store>(bench: &Bench<S>, rates: FaultRates, line: &str) -> Vec<String> {
    bench.store.set_rates(rates);
    let started = Instant::now();
    let server = &bench.servers[0];
    let replies = bench.runtime.block_on(join_all(
        (0..CLIENTS).map(|_| async move { submit(server, &[words(line)]).await }),
    ));
    assert!(started.elapsed() < TIME_MAX, "{:?}", started.elapsed());
    bench.heal();
    replies
        .iter()
        .flatten()
        .map(|reply| error(reply).unwrap_or("no error").to_owned())
        .collect()
}

fn is_served_again<S: Store>(bench: &Bench<S>) {
    assert_eq!(bench.run("DEL list"), bench.run("EXISTS nothing"));
    assert_eq!(bench.run("RPUSH list a b"), Reply::Integer(2));
    assert_eq!(bench.run("LLEN list"), Reply::Integer(2));
}

#[test]
fn conflicts_for_good_end_with_tryagain_and_change_nothing() {
    let bench = cluster(1);
    let rates = FaultRates {
        conflict_ppm: ALWAYS_PPM,
        ..FaultRates::default()
    };
    for line in told_while_failing(&bench, rates, "RPUSH list lost") {
        assert!(line.starts_with("TRYAGAIN"), "{line}");
    }
    assert!(bench.store.counts().conflict > 1, "it did not try again");
    is_served_again(&bench);
}

#[test]
fn an_unavailable_store_is_told_and_changes_nothing() {
    let bench = embedded();
    let rates = FaultRates {
        unavailable_ppm: ALWAYS_PPM,
        ..FaultRates::default()
    };
    for line in told_while_failing(&bench, rates, "RPUSH list lost") {
        assert!(line.starts_with("MISCONF"), "{line}");
    }
    is_served_again(&bench);
}

#[test]
fn an_unavailable_store_is_told_to_readers() {
    let bench = embedded();
    let rates = FaultRates {
        unavailable_ppm: ALWAYS_PPM,
        ..FaultRates::default()
    };
    for line in told_while_failing(&bench, rates, "LLEN list") {
        assert!(line.starts_with("MISCONF"), "{line}");
    }
    is_served_again(&bench);
}

#[test]
fn reads_that_are_too_old_for_good_end_with_tryagain() {
    let bench = cluster(1);
    let rates = FaultRates {
        too_old_ppm: ALWAYS_PPM,
        ..FaultRates::default()
    };
    for line in told_while_failing(&bench, rates, "LLEN list") {
        assert!(line.starts_with("TRYAGAIN"), "{line}");
    }
    is_served_again(&bench);
}

#[test]
fn results_that_stay_unknown_are_told_as_unknown() {
    let bench = cluster(1);
    let rates = FaultRates {
        unknown_not_applied_ppm: ALWAYS_PPM,
        ..FaultRates::default()
    };
    for line in told_while_failing(&bench, rates, "RPUSH list maybe") {
        assert!(line.starts_with("UNKNOWN"), "{line}");
    }
    is_served_again(&bench);
}
