//! Random commands against Quoin and against `redis-server`. Replies are compared byte for byte.
//!
//! - `REDIS_ORACLE`: the `redis-server` to compare with, instead of the one on the PATH.
//! - `QUOIN_TEST_SEED`: the seed of the first round. A failure reports its own.
//! - `QUOIN_TEST_STEPS`: how many commands, instead of as many as fit into some seconds.
//! - `QUOIN_TEST_LATER_REDIS`: a `redis-server` of 8.0 or later, for what Redis 7.2 does not have.
//! - `QUOIN_TEST_REQUIRE_REDIS`: fail if there is no `redis-server` to compare with.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub
)]

mod acl;
mod bitmaps;
mod channels;
mod cluster;
mod compact;
mod differences;
mod errors;
mod events;
mod field_expiry;
mod functions;
mod geo;
mod getkeys;
mod globs;
mod hashes;
mod hyperloglogs;
mod keys;
mod later;
mod lists;
mod maxmemory;
mod numbers;
#[path = "../support/redis.rs"]
mod redis_server;
mod reports;
#[path = "../support/resp.rs"]
mod resp;
mod scripts;
mod sentinel;
#[path = "../support/server.rs"]
mod server;
mod servers;
mod sets;
mod shrink;
mod sorted_sets;
mod stream_groups;
mod stream_references;
mod streams;
mod strings;
mod transactions;
mod waiting;
mod words;

use std::io::Write;
use std::time::{Duration, Instant};

use keys::Step;
use servers::{Batch, PROTOCOLS, Servers};
use transactions::Session;
use words::Dice;

/// After this many commands the servers are emptied and the next seed begins.
const ROUND_STEPS: usize = 400;
/// Commands in one pipeline.
const PIPELINE_MAX: usize = 40;
const DURATION: Duration = Duration::from_secs(20);
const FIRST_SEED: u64 = 1;

fn number_of_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_commands_are_answered_as_redis_answers_them() {
    let mut servers = match Servers::start() {
        Ok(servers) => servers,
        Err(error) if std::env::var_os("QUOIN_TEST_REQUIRE_REDIS").is_none() => {
            // Written past the capture of a passing test's output.
            let _ = writeln!(std::io::stderr(), "nothing is compared with Redis: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let steps_max = number_of_environment("QUOIN_TEST_STEPS");
    let started = Instant::now();
    let mut steps = 0;
    let mut seed = number_of_environment("QUOIN_TEST_SEED").unwrap_or(FIRST_SEED);
    let goes_on = |steps: u64| match steps_max {
        Some(steps_max) => steps < steps_max,
        None => started.elapsed() < DURATION,
    };
    while goes_on(steps) {
        let history = history(seed, servers.version(), true);
        steps += ROUND_STEPS as u64;
        if let Err(failure) = run(&mut servers, &history) {
            let shrunk = shrink::shrink(&mut servers, &history, failure.at);
            panic!(
                "{steps} commands in, round with QUOIN_TEST_SEED={seed}: batch {}\n{}\n{shrunk}",
                failure.at, failure.text
            );
        }
        seed += 1;
    }
    let _ = writeln!(
        std::io::stderr(),
        "{steps} commands compared with Redis {:?}, seeds up to {}",
        servers.version(),
        seed - 1
    );
}

#[test]
fn fields_expire_as_in_a_later_redis() {
    compare_with_a_later_redis(&[], field_expiry::history);
}

/// Commands whose replies have changed since Redis 7.2.
#[test]
fn replies_are_those_of_the_version_that_is_told() {
    compare_with_a_later_redis(&["--compatible-version", "8.4"], later::history);
}

#[test]
fn streams_keep_or_drop_references_as_in_a_later_redis() {
    compare_with_a_later_redis(&[], stream_references::history);
}

fn compare_with_a_later_redis(flags: &[&str], history: fn(u64) -> Vec<Batch>) {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = std::env::var_os("QUOIN_TEST_LATER_REDIS") else {
        // Written past the capture of a passing test's output.
        let _ = writeln!(std::io::stderr(), "nothing is compared with a later Redis");
        return;
    };
    let redis = redis_server::Redis::start_other(&program, folder.path(), &[]).unwrap();
    let mut servers = Servers::beside_with(redis, flags);
    let rounds = number_of_environment("QUOIN_TEST_STEPS").unwrap_or(3_000) / 300;
    let first = number_of_environment("QUOIN_TEST_SEED").unwrap_or(FIRST_SEED);
    for seed in first..=first + rounds {
        let history = history(seed);
        if let Err(failure) = run(&mut servers, &history) {
            let shrunk = shrink::shrink(&mut servers, &history, failure.at);
            panic!(
                "round with QUOIN_TEST_SEED={seed}: batch {}\n{}\n{shrunk}",
                failure.at, failure.text
            );
        }
    }
}

/// The commands of a round.
fn history(seed: u64, version: (u32, u32), has_transactions: bool) -> Vec<Batch> {
    let mut dice = Dice::new(seed);
    let mut sessions = [Session::default(); PROTOCOLS.len()];
    let mut batches = Vec::new();
    let mut steps_left = ROUND_STEPS;
    while steps_left > 0 {
        let length = if dice.one_in(2) {
            1
        } else {
            dice.below(PIPELINE_MAX.min(steps_left)) + 1
        };
        steps_left -= length;
        let connection = dice.below(PROTOCOLS.len());
        let session = &mut sessions[connection];
        let mut next = || {
            let transaction = has_transactions
                .then(|| transactions::command(&mut dice, session))
                .flatten();
            match transaction {
                Some(words) => Step::Command(words),
                None => step(&mut dice, version, *session),
            }
        };
        let steps = (0..length).map(|_| next()).collect();
        batches.push(Batch { connection, steps });
    }
    // The effects of an unfinished transaction do not show.
    batches.extend((0..PROTOCOLS.len()).map(|connection| Batch {
        connection,
        steps: vec![Step::Command(vec![b"DISCARD".to_vec()])],
    }));
    batches
}

fn step(dice: &mut Dice, version: (u32, u32), session: Session) -> Step {
    let words = match dice.below(60) {
        26..32 => hashes::command(dice),
        32..38 => sets::command(dice),
        38..45 => strings::command(dice),
        45..49 => bitmaps::command(dice),
        49..53 => streams::command(dice),
        53..56 => stream_groups::command(dice),
        56.. => hyperloglogs::command(dice),
        0..8 => lists::command(dice),
        8..16 => sorted_sets::command(dice, version >= (7, 2)),
        16..21 => geo::command(dice),
        // A mistake could make it wait for a long time.
        21 => return Step::Command(transactions::blocking(dice, session)),
        _ => match keys::command(dice) {
            Step::Command(words) => words,
            // An iteration needs each reply before it can continue.
            Step::Iteration(..) if session.is_in_multi => {
                return Step::Command(vec![b"PING".to_vec()]);
            }
            iteration => return iteration,
        },
    };
    let mut words = sets::without_chance(dice.spoil(words));
    let is_rank = differences::upper(&words, 0).ends_with("RANK");
    if session.is_in_multi && is_rank && version < (7, 2) {
        // Another word, which Redis supports since 7.2, would spoil the transaction.
        words.truncate(3);
    }
    Step::Command(words)
}

struct Failure {
    /// The number of its batch.
    at: usize,
    text: String,
}

fn run(servers: &mut Servers, history: &[Batch]) -> Result<(), Failure> {
    servers.reset();
    for (at, batch) in history.iter().enumerate() {
        if let Some(mismatch) = servers.compare(batch) {
            let text = match &batch.steps[mismatch.step] {
                Step::Command(words) | Step::Iteration(words, _) => servers::show(words),
            };
            let text = format!("{text}\n{}", mismatch.text);
            return Err(Failure { at, text });
        }
    }
    servers.compare_contents().map_or(Ok(()), |text| {
        let at = history.len() - 1;
        Err(Failure { at, text })
    })
}
