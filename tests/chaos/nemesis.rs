//! Breaks things, in an order that follows from the seed.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

#[cfg(feature = "fdb")]
use crate::cluster::Cluster;
use crate::fleet::Fleet;
use crate::run::Shared;

/// Kills and pauses Quoin servers.
pub fn trouble_servers(fleet: &Fleet, shared: &Shared, mut random: StdRng) {
    let calm = random.random_range(1..=4);
    while rest(shared, calm * random.random_range(50..500)) {
        let number = random.random_range(0..fleet.len());
        let statistics = &shared.statistics;
        if random.random_range(0..3) > 0 {
            fleet.kill(number);
            statistics.server_kills.fetch_add(1, Ordering::Relaxed);
            if !rest(shared, random.random_range(0..400)) {
                return;
            }
        } else {
            // Some are considered dead meanwhile, and come back.
            let pause_max_ms = if random.random_range(0..4) == 0 {
                6_000
            } else {
                2_000
            };
            let duration = Duration::from_millis(random.random_range(20..pause_max_ms));
            fleet.pause(number, duration);
            statistics.server_pauses.fetch_add(1, Ordering::Relaxed);
        }
        // Whichever is down; while the cluster is away, none starts.
        for number in 0..fleet.len() {
            fleet.try_start(number, random.random_range(0..2) == 0);
        }
    }
}

/// Cuts connections.
pub fn trouble_connections(fleet: &Fleet, shared: &Shared, mut random: StdRng) {
    while rest(shared, random.random_range(20..500)) {
        let number = random.random_range(0..fleet.len());
        let one_in = random.random_range(1..8);
        let cuts = fleet.cut(number, one_in, &mut random);
        shared.statistics.cuts.fetch_add(cuts, Ordering::Relaxed);
    }
}

/// Kills and pauses processes of the cluster, rarely more than its redundancy allows. It recovers
/// even then, because everything that they have acknowledged is on their disks.
#[cfg(feature = "fdb")]
pub fn trouble_cluster(cluster: &Cluster, shared: &Shared, mut random: StdRng) {
    // Some runs are calmer than others, because little happens while a cluster recovers.
    let calm = random.random_range(1..=4);
    while rest(shared, calm * random.random_range(500..3_000)) {
        let statistics = &shared.statistics;
        let count = match random.random_range(0..10) {
            0 => cluster.len(),
            1 => random.random_range(2..cluster.len()),
            _ => 1,
        };
        let first = random.random_range(0..cluster.len());
        let victims: Vec<usize> = (first..first + count).map(|n| n % cluster.len()).collect();
        if random.random_range(0..3) > 0 {
            victims.iter().for_each(|number| cluster.kill(*number));
            let killed = victims.len() as u64;
            statistics
                .process_kills
                .fetch_add(killed, Ordering::Relaxed);
            rest(shared, random.random_range(0..2_500));
            victims.iter().for_each(|number| cluster.revive(*number));
        } else {
            victims
                .iter()
                .for_each(|number| cluster.signal(*number, "STOP"));
            let paused = victims.len() as u64;
            statistics
                .process_pauses
                .fetch_add(paused, Ordering::Relaxed);
            // Some are longer than a transaction lives, and than its result is waited for.
            let pause_ms = match random.random_range(0..4) {
                0 => random.random_range(4_000..15_000),
                _ => random.random_range(50..4_000),
            };
            rest(shared, pause_ms);
            victims
                .iter()
                .for_each(|number| cluster.signal(*number, "CONT"));
        }
    }
}

/// Waits, and says whether the faults go on.
pub fn rest(shared: &Shared, duration_ms: u64) -> bool {
    for _ in 0..duration_ms.div_ceil(10) {
        if !shared.has_faults.load(Ordering::Relaxed) {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    shared.has_faults.load(Ordering::Relaxed)
}
