//! Runs `redis-benchmark` against Quoin on the embedded store and against `redis-server` with
//! `appendfsync always`, in turns, on folders of one disk, and measures the servers' processor time
//! per request. Then measures pop times on a long and a short list, and the server's memory.
//! `cargo bench --bench redis_benchmark -- --help` for settings.
//!
//! Uses `redis-server` (or the one that `REDIS_ORACLE` names) and `redis-benchmark` from the PATH.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

#[path = "support/measures.rs"]
mod measures;
#[path = "../tests/support/redis.rs"]
mod redis_server;
#[path = "../tests/support/resp.rs"]
mod resp;
#[path = "../tests/support/server.rs"]
mod server;
#[path = "support/settings.rs"]
mod settings;

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Instant;

use clap::ArgMatches;

use measures::{median, used_cpu_us};
use redis_server::Redis;
use resp::{Connection, Words};
use server::Server;
use settings::{count, folder, number};

/// 100 bytes, the twelve digits that redis-benchmark fills in among them.
const VALUE_PADDING: usize = 88;
const RANDOM: &str = "__rand_int__";
const RANDOM_BELOW: &str = "100000000";

/// One kind of load.
struct Load {
    name: &'static str,
    clients: u32,
    pipeline: u32,
    /// Percentage of the requests given by `--requests`.
    requests_percent: u64,
    target_lists: f64,
    target_sets: Option<f64>,
}

const LOADS: [Load; 3] = [
    Load {
        name: "-c 50 -P 1",
        clients: 50,
        pipeline: 1,
        requests_percent: 100,
        target_lists: 0.8,
        target_sets: Some(0.8),
    },
    Load {
        name: "-c 50 -P 16",
        clients: 50,
        pipeline: 16,
        requests_percent: 400,
        target_lists: 0.4,
        target_sets: None,
    },
    Load {
        name: "-c 1",
        clients: 1,
        pipeline: 1,
        requests_percent: 15,
        target_lists: 0.6,
        target_sets: Some(0.6),
    },
];

const COMMANDS: [&str; 4] = ["lpush", "rpop", "zadd", "zpopmin"];

fn main() {
    let matches = settings();
    let folder = folder(&matches);
    let quoin_folder = tempfile::tempdir_in(&folder).unwrap();
    let redis_folder = tempfile::tempdir_in(&folder).unwrap();
    let quoin = Server::start_in(quoin_folder.path(), &[]).unwrap();
    let redis = Redis::start_durable(redis_folder.path()).unwrap();
    speeds(&matches, quoin.address(), redis.address().unwrap());
    drop(redis);
    pop_times(&matches, &quoin);
}

fn settings() -> ArgMatches {
    settings::read(
        "redis_benchmark",
        [
            number("rounds", "3", "Rounds of which the medians are taken"),
            number("requests", "20000", "Requests of each run with -c 50 -P 1"),
            number(
                "long",
                "300000",
                "Elements of the long list (to judge by: 10000000)",
            ),
            number("pops", "4000", "Pops on each list"),
        ],
    )
}

fn speeds(matches: &ArgMatches, quoin: SocketAddr, redis: SocketAddr) {
    let rounds = count(matches, "rounds").max(1);
    println!(
        "Requests a second, and microseconds of the server's processor time a request, in all its \
         threads; medians of {rounds} rounds; values of 100 bytes:"
    );
    println!(
        "{:12} {:8} {:>10} {:>10} {:>7} {:>7} {:>9} {:>9}",
        "load", "command", "Quoin", "Redis", "ratio", "target", "Quoin µs", "Redis µs"
    );
    for load in &LOADS {
        let requests = count(matches, "requests") * load.requests_percent / 100;
        // By server, by command, by round.
        let mut results = [const { [const { Vec::new() }; COMMANDS.len()] }; 2];
        let mut processor_us = results.clone();
        for round in 0..rounds {
            for turn in 0..2 {
                let which = usize::from((round + turn) % 2 == 1);
                let address = [quoin, redis][which];
                let flushed = Connection::open(address)
                    .unwrap()
                    .command(&["FLUSHALL"])
                    .unwrap();
                assert_eq!(flushed.error(), None);
                for (at, command) in COMMANDS.iter().enumerate() {
                    let before_us = used_cpu_us(address);
                    results[which][at].push(requests_per_second(address, load, command, requests));
                    #[allow(clippy::cast_precision_loss)]
                    let each_us = (used_cpu_us(address) - before_us) / requests as f64;
                    processor_us[which][at].push(each_us);
                }
            }
        }
        let [of_quoin, of_redis] = &mut results;
        for (at, command) in COMMANDS.iter().enumerate() {
            let (ours, theirs) = (median(&mut of_quoin[at]), median(&mut of_redis[at]));
            let is_list = at < 2;
            let target = if is_list {
                Some(load.target_lists)
            } else {
                load.target_sets
            };
            println!(
                "{:12} {:8} {:>10.0} {:>10.0} {:>7.2} {:>7} {:>9.2} {:>9.2}",
                load.name,
                command,
                ours,
                theirs,
                ours / theirs,
                target.map_or("–".to_owned(), |target| target.to_string()),
                median(&mut processor_us[0][at]),
                median(&mut processor_us[1][at]),
            );
        }
    }
}

/// Runs redis-benchmark once.
fn requests_per_second(address: SocketAddr, load: &Load, command: &str, requests: u64) -> f64 {
    let value = format!("{}{RANDOM}", "v".repeat(VALUE_PADDING));
    let words: Vec<&str> = match command {
        "lpush" => vec!["lpush", "bench:list", &value],
        "rpop" => vec!["rpop", "bench:list"],
        "zadd" => vec!["zadd", "bench:set", RANDOM, &value],
        _ => vec!["zpopmin", "bench:set"],
    };
    let output = Command::new("redis-benchmark")
        .args([
            "-h",
            &address.ip().to_string(),
            "-p",
            &address.port().to_string(),
        ])
        .args([
            "-c",
            &load.clients.to_string(),
            "-P",
            &load.pipeline.to_string(),
        ])
        .args(["-n", &requests.to_string(), "-r", RANDOM_BELOW, "--csv"])
        .args(words)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    // The name of the test, its speed, its latencies.
    text.lines()
        .last()
        .and_then(|line| line.split(',').nth(1)?.trim_matches('"').parse().ok())
        .unwrap_or_else(|| panic!("redis-benchmark says: {text}"))
}

const SHORT: u64 = 1_000;
const FILL_VALUES: u64 = 1_000;
/// Number of pops on one list before the other's turn. Few, so that both see the same disk.
const TURN: u64 = 100;

fn pop_times(matches: &ArgMatches, quoin: &Server) {
    let long = count(matches, "long").max(SHORT);
    let mut connection = Connection::open(quoin.address()).unwrap();
    connection.command(&["FLUSHALL"]).unwrap();
    let memory_before = quoin.memory_bytes();
    fill(&mut connection, "bench:long", long);
    let memory_after = quoin.memory_bytes();
    #[allow(clippy::cast_precision_loss)]
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!();
    println!(
        "Memory (RssAnon): {:.1} MiB before, {:.1} MiB after filling a list with {long} elements",
        mebibytes(memory_before),
        mebibytes(memory_after)
    );
    fill(&mut connection, "bench:short", SHORT);
    println!();
    println!("Microseconds for a pop, one client:");
    println!(
        "{:12} {:>12} {:>12} {:>7} {:>7}",
        "load",
        format!("of {long}"),
        format!("of {SHORT}"),
        "ratio",
        "target"
    );
    for (name, depth) in [("-P 1", 1), ("-P 100", 100)] {
        let (mut on_long, mut on_short) = (Vec::new(), Vec::new());
        for _ in 0..(count(matches, "pops") / TURN).max(1) {
            for (key, times) in [("bench:long", &mut on_long), ("bench:short", &mut on_short)] {
                times.push(pop_us(&mut connection, key, TURN, depth));
                fill(&mut connection, key, TURN);
            }
        }
        let (long_us, short_us) = (median(&mut on_long), median(&mut on_short));
        let ratio = long_us / short_us;
        println!(
            "{name:12} {long_us:>12.1} {short_us:>12.1} {ratio:>7.2} {:>7}",
            "≤ 1.2"
        );
    }
}

fn fill(connection: &mut Connection, key: &str, elements: u64) {
    let mut left = elements;
    while left > 0 {
        let count = left.min(FILL_VALUES);
        let mut words: Words = vec![b"RPUSH".to_vec(), key.into()];
        words.extend((0..count).map(|_| vec![b'v'; 100]));
        let reply = connection.command(&words).unwrap();
        assert!(reply.integer().is_some(), "{reply:?}");
        left -= count;
    }
}

/// Microseconds per pop, for `pops` in pipelines of `depth`.
fn pop_us(connection: &mut Connection, key: &str, pops: u64, depth: u64) -> f64 {
    let pipeline: Vec<Words> = (0..depth)
        .map(|_| vec![b"LPOP".to_vec(), key.into()])
        .collect();
    let started = Instant::now();
    for _ in 0..pops / depth {
        let replies = connection.pipeline(&pipeline).unwrap();
        assert!(replies.iter().all(|reply| reply.bytes().is_some()));
    }
    #[allow(clippy::cast_precision_loss)]
    let each = started.elapsed().as_secs_f64() * 1e6 / pops as f64;
    each
}
