//! Real clients use several servers while servers, the store's processes and connections are
//! killed, paused and cut. Then what was acknowledged is compared with the final state.
//!
//! Each `cargo test` makes a short run. `QUOIN_TEST_CHAOS_SECONDS` makes it longer, and
//! `QUOIN_TEST_CHAOS_SEED` selects another order of faults (docs/contribute/testing.md).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub
)]

#[cfg(test)]
mod bad_histories;
mod client;
#[cfg(feature = "fdb")]
mod cluster;
mod conservation;
mod contents;
mod doors;
mod fleet;
mod history;
mod jobs;
mod linear;
mod nemesis;
mod order;
mod proxy;
#[path = "../support/resp.rs"]
mod resp;
mod run;
#[path = "../support/server.rs"]
mod server;
mod streams;
mod transfers;
mod waking;
mod workers;

use std::io::Write;
use std::time::{Duration, Instant};

use fleet::Fleet;

/// How long faults last in a run of `cargo test`.
const SHORT: Duration = Duration::from_secs(3);

/// Maximum duration of one history. Longer runs consist of several, with consecutive seeds.
const HISTORY_MAX: Duration = Duration::from_secs(45);

fn environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Makes runs until the time is over, and reports on each.
fn runs(store: &str, fleet: &Fleet) {
    let seconds = environment("QUOIN_TEST_CHAOS_SECONDS");
    let time = seconds.map_or(SHORT, Duration::from_secs);
    let mut seed = environment("QUOIN_TEST_CHAOS_SEED").unwrap_or(1);
    let started = Instant::now();
    loop {
        let faults_for = time.saturating_sub(started.elapsed()).min(HISTORY_MAX);
        match run::run(fleet, seed, faults_for) {
            // Written past the capture of a passing test's output.
            Ok(told) => {
                let mut errors = std::io::stderr();
                writeln!(
                    errors,
                    "chaos on {store}, QUOIN_TEST_CHAOS_SEED={seed}: {told}"
                )
                .unwrap();
            }
            Err(wrong) => panic!("QUOIN_TEST_CHAOS_SEED={seed} on {store}: {wrong}"),
        }
        seed += 1;
        if started.elapsed() + Duration::from_secs(1) > time {
            return;
        }
    }
}

#[test]
fn nothing_is_lost_or_doubled_on_the_embedded_store() {
    runs("the embedded store", &Fleet::embedded());
}

#[cfg(feature = "fdb")]
#[test]
fn nothing_is_lost_or_doubled_on_foundationdb() {
    match cluster::Cluster::start() {
        Ok(cluster) => runs("FoundationDB", &Fleet::on(cluster)),
        Err(reason) => server::foundationdb::skip(&reason),
    }
}
