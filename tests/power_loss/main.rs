//! The embedded store survives a power loss: whatever a disk may have kept of unsynced data, a
//! server starts on it and has what it must have.
//!
//! Servers run under load with a library that logs what they do to their files (`recorder`). From
//! that the test computes, for chosen moments, what the disk would have had if the power had failed
//! then (`disk`). It starts a server on that, as on a rebooted machine, and compares its content
//! with the replies that clients got (`history`). The library can also make the disk appear full,
//! and kill tools after each of their operations (`killed_tools`).
//!
//! `QUOIN_TEST_ROUNDS`, `QUOIN_TEST_SEED`: how long, and another run.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

#[path = "../support/resp.rs"]
mod resp;
#[path = "../support/server.rs"]
mod server;

mod boots;
mod disk;
#[path = "recorder/entry.rs"]
mod entry;
mod history;
mod in_part;
mod killed_tools;
mod little_room;
mod load;
mod machine;
mod recorded;
mod recorder_sees;
mod steps;

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;

use machine::{Machine, Plan};

const ROUNDS: u64 = 2;
/// With `fsync = everysec` the journal is synced every second; a busy machine takes longer.
const EVERY_SECOND_MAX: Duration = Duration::from_secs(10);

fn seed() -> u64 {
    environment("QUOIN_TEST_SEED").unwrap_or(1)
}

fn rounds(few: u64) -> u64 {
    environment("QUOIN_TEST_ROUNDS").unwrap_or(few)
}

fn environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs some rounds. The error says what was wrong and where the files are.
fn run(plan: &Plan, rounds: u64) -> Result<Machine, String> {
    let seed = seed();
    let folder = tempfile::tempdir().unwrap();
    let random = StdRng::seed_from_u64(seed);
    let mut machine = Machine::new(folder.path(), plan.clone(), random);
    for round in 0..self::rounds(rounds) {
        if let Err(wrong) = machine.live() {
            let _ = folder.keep();
            return Err(format!("QUOIN_TEST_SEED={seed}, round {round}: {wrong}"));
        }
    }
    Ok(machine)
}

fn outlives(plan: &Plan, rounds: u64) {
    let machine = run(plan, rounds).unwrap_or_else(|wrong| panic!("{wrong}"));
    println!(
        "{} power losses, {} steps answered, up to {:?} without a sync",
        machine.losses, machine.answered, machine.age_max
    );
    // Fewer would mean that servers were killed before they did anything.
    assert!(machine.answered > machine::CLIENTS);
    assert!(machine.age_max < EVERY_SECOND_MAX, "{:?}", machine.age_max);
}

#[test]
fn with_fsync_always_nothing_acknowledged_is_lost_at_a_power_loss() {
    let plan = Plan {
        points: 6,
        load_ms: 100..900,
        fsync: Some("always"),
        disk_is_honest: true,
        is_large: false,
        fills_disk: None,
    };
    outlives(&plan, ROUNDS);
}

#[test]
fn with_fsync_everysec_a_power_loss_goes_back_to_a_state_that_was_and_was_synced() {
    let plan = Plan {
        points: 6,
        load_ms: 900..2_300,
        fsync: Some("everysec"),
        disk_is_honest: true,
        is_large: false,
        fills_disk: None,
    };
    outlives(&plan, ROUNDS);
}

#[test]
fn what_lmdb_has_in_part_is_put_right_after_a_power_loss() {
    let plan = Plan {
        points: 4,
        load_ms: 900..1_500,
        fsync: None,
        disk_is_honest: true,
        is_large: true,
        fills_disk: None,
    };
    outlives(&plan, 1);
}

#[test]
fn a_disk_that_is_full_for_a_while_costs_nothing_acknowledged_and_no_restart() {
    let plan = Plan {
        points: 3,
        load_ms: 400..600,
        fsync: None,
        disk_is_honest: true,
        is_large: true,
        fills_disk: Some("longer"),
    };
    outlives(&plan, 1);
}

#[test]
fn a_disk_that_takes_no_write_at_all_for_a_while_costs_a_restart_at_most() {
    let plan = Plan {
        points: 3,
        load_ms: 400..600,
        fsync: None,
        disk_is_honest: true,
        is_large: true,
        fills_disk: Some(load::ALL),
    };
    outlives(&plan, 1);
}

#[test]
fn a_server_starts_after_a_power_loss_amid_its_first_start() {
    let plan = Plan {
        points: 0,
        load_ms: 0..1,
        fsync: None,
        disk_is_honest: true,
        is_large: false,
        fills_disk: None,
    };
    let folder = tempfile::tempdir().unwrap();
    let mut machine = Machine::new(folder.path(), plan.clone(), StdRng::seed_from_u64(seed()));
    if let Err(wrong) = machine.lose_power_amid_the_first_start(8 * rounds(2)) {
        let _ = folder.keep();
        panic!("{wrong}");
    }
}

#[test]
fn a_disk_that_lies_about_syncs_is_found_out() {
    let plan = Plan {
        points: 20,
        load_ms: 300..301,
        fsync: Some("always"),
        disk_is_honest: false,
        is_large: false,
        fills_disk: None,
    };
    let folder = tempfile::tempdir().unwrap();
    let mut machine = Machine::new(folder.path(), plan, StdRng::seed_from_u64(seed()));
    let wrong = (0..3).find_map(|_| machine.live().err());
    let wrong = wrong.expect("what the disk lost must be missed");
    let is_missed = ["must be there, and only", "the journal is damaged"]
        .iter()
        .any(|text| wrong.contains(text));
    assert!(is_missed, "{wrong}");
}
