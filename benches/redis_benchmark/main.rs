//! `redis-benchmark` against Quoin, against `redis-server` with `appendfsync always`, and against a server that does
//! nothing, in turns, on folders of one disk: requests a second, the 99th percentile, and the servers' processor time a
//! request, in all threads and with the work that they put off; then pop times on a long and a short list.
//! `cargo bench --bench redis_benchmark -- --help` for settings.
//!
//! Uses `redis-server` (or the one that `REDIS_ORACLE` names) and `redis-benchmark` of the PATH. With the feature `fdb`
//! and `QUOIN_TEST_STORE=fdb`, Quoin is on FoundationDB, and a bare client of FoundationDB does the same.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

#[cfg(feature = "fdb")]
mod bare;
#[path = "../support/measures.rs"]
mod measures;
mod null_server;
mod pops;
#[path = "../../tests/support/redis.rs"]
mod redis_server;
#[path = "../../tests/support/resp.rs"]
mod resp;
mod rows;
#[path = "../../tests/support/server.rs"]
mod server;
#[path = "../support/settings.rs"]
mod settings;

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use measures::{median, used_cpu_us};
use null_server::{Exchange, NullServer};
use redis_server::Redis;
use rows::{RANDOM, ROWS, Row};
use server::{Server, Socket, request};
use settings::{count, folder, number, read, text};

/// Clients, and requests in flight of each.
const LOADS: [(u64, u64); 3] = [(50, 16), (50, 1), (1, 1)];
/// A trial run, which tells how many requests a run needs, takes at least this part of its time.
const TRIAL_PART: f64 = 0.1;
/// Interval at which a server is checked for work that it has put off, and the processor time below
/// which it has none.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
const IDLE_PERCENT: f64 = 5.0;
const SETTLE_TIMEOUT: Duration = Duration::from_secs(20);
/// A number as redis-benchmark writes it.
const DIGITS: &str = "000000000007";

fn main() {
    let matches = read(
        "redis_benchmark",
        [
            number("rounds", "3", "Rounds of which the medians are taken"),
            number(
                "seconds",
                "2",
                "How long each run takes, about (to judge by: 20)",
            ),
            number(
                "keys",
                "1000000",
                "Strings that are there (to judge by: 10000000)",
            ),
            text(
                "rows",
                "Names of the rows, separated by semicolons; empty: all",
            ),
            text("loads", "Loads, as 50x16,50x1,1x1; empty: all"),
            number(
                "long",
                "300000",
                "Elements of the long list (to judge by: 10000000)",
            ),
            number("pops", "4000", "Pops on each list; 0: none"),
        ],
    );
    let folder = folder(&matches);
    let [rounds, seconds, keys] =
        ["rounds", "seconds", "keys"].map(|name| count(&matches, name).max(1));
    let chosen = |name: &str, value: &str, separator: char| {
        let all: &String = matches.get_one(name).unwrap();
        all.is_empty() || all.split(separator).any(|one| one.trim() == value)
    };
    let quoin_folder = tempfile::tempdir_in(&folder).unwrap();
    let redis_folder = tempfile::tempdir_in(&folder).unwrap();
    let quoin = Server::start_in(quoin_folder.path(), &[]).unwrap();
    let redis = Redis::start_durable(redis_folder.path()).unwrap();
    let servers = Servers {
        quoin: quoin.address(),
        redis: redis.address().unwrap(),
        null: NullServer::start(),
    };
    for address in [servers.quoin, servers.redis] {
        rows::fill(address, keys);
        settle(address);
    }
    println!(
        "{keys} strings; values of 100 bytes; medians of {rounds} rounds of {seconds} s; thousands of requests a second, \
         p99 in milliseconds, and microseconds of the server's processor time a request:\n"
    );
    println!("| load | command | Quoin | Redis | ratio | null | p99 | Redis | us | Redis |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    #[cfg(feature = "fdb")]
    let bare = server::is_on_foundationdb().then(|| bare::Bare::open(keys.min(100_000)));
    for (clients, pipeline) in LOADS {
        if !chosen("loads", &format!("{clients}x{pipeline}"), ',') {
            continue;
        }
        for row in ROWS.iter().filter(|row| chosen("rows", row.name, ';')) {
            let load = Load {
                row,
                clients,
                pipeline,
                below: row.below(keys),
            };
            let [ours, theirs, null] = measure(&servers, &load, rounds, seconds);
            print!(
                "| -c {clients} -P {pipeline} | {} | {:.1} | {:.1} | {:.2} | {:.1} | {:.2} | {:.2} | {:.2} | {:.2} |",
                row.name,
                ours.rate / 1e3,
                theirs.rate / 1e3,
                ours.rate / theirs.rate,
                null.rate / 1e3,
                ours.p99_ms,
                theirs.p99_ms,
                ours.processor_us,
                theirs.processor_us,
            );
            #[cfg(feature = "fdb")]
            if let Some(rate) = bare
                .as_ref()
                .and_then(|bare| bare.rate(row.name, clients, pipeline))
            {
                print!(" bare {:.1}, ratio {:.2} |", rate / 1e3, ours.rate / rate);
            }
            println!();
        }
    }
    #[cfg(feature = "fdb")]
    drop(bare);
    drop(redis);
    if count(&matches, "pops") > 0 {
        pops::pop_times(&matches, &quoin);
    }
}

struct Servers {
    quoin: SocketAddr,
    redis: SocketAddr,
    null: NullServer,
}

struct Load<'r> {
    row: &'r Row,
    clients: u64,
    pipeline: u64,
    below: u64,
}

struct Figures {
    rate: f64,
    p99_ms: f64,
    processor_us: f64,
}

/// Places of the second and third server in what is measured. Quoin is the first.
const REDIS: usize = 1;
const NULL: usize = 2;

/// Medians for Quoin, Redis and the server that does nothing.
fn measure(servers: &Servers, load: &Load<'_>, rounds: u64, seconds: u64) -> [Figures; 3] {
    let addresses = [servers.quoin, servers.redis, servers.null.address()];
    let in_flight = load.clients * load.pipeline;
    // As many for each server as it answers in the time.
    let mut requests = [0; 3];
    for (which, address) in addresses.into_iter().enumerate() {
        if which == NULL {
            servers.null.answer(exchange(servers.quoin, load.row));
        }
        let mut trial = in_flight * 200;
        let rate = loop {
            if which != NULL {
                load.row.fill(address, trial, which == REDIS);
            }
            let rate = run(address, load, trial, which == REDIS).rate;
            let enough = rate * seconds as f64 * TRIAL_PART;
            if trial as f64 >= enough * 0.5 {
                break rate;
            }
            trial = enough as u64;
        };
        requests[which] = ((rate * seconds as f64) as u64).max(in_flight);
    }
    let mut figures = [const { Vec::new() }; 3];
    for round in 0..rounds {
        for turn in 0..3 {
            let which = ((round + turn) % 3) as usize;
            let (address, requests) = (addresses[which], requests[which]);
            if which == NULL {
                figures[which].push(run(address, load, requests, false));
                continue;
            }
            load.row.fill(address, requests, which == REDIS);
            settle(address);
            let before_us = used_cpu_us(address);
            let mut one = run(address, load, requests, which == REDIS);
            settle(address);
            one.processor_us = (used_cpu_us(address) - before_us) / requests as f64;
            figures[which].push(one);
        }
    }
    figures.map(|figures| {
        let of =
            |part: fn(&Figures) -> f64| median(&mut figures.iter().map(part).collect::<Vec<_>>());
        Figures {
            rate: of(|one| one.rate),
            p99_ms: of(|one| one.p99_ms),
            processor_us: of(|one| one.processor_us),
        }
    })
}

/// What a server answers to a row's request.
fn exchange(address: SocketAddr, row: &Row) -> Exchange {
    row.fill(address, 1_000, false);
    let words = row.words(false).into_iter();
    let words: Vec<String> = words.map(|word| word.replace(RANDOM, DIGITS)).collect();
    let request = request(&words);
    let mut socket = Socket::connect(address);
    socket.send(&request);
    Exchange {
        request_bytes: request.len(),
        reply: socket.reply_bytes(),
    }
}

/// Waits until a server has done what it has put off.
fn settle(address: SocketAddr) {
    let started = Instant::now();
    let mut before_us = used_cpu_us(address);
    while started.elapsed() < SETTLE_TIMEOUT {
        std::thread::sleep(CHECK_INTERVAL);
        let now_us = used_cpu_us(address);
        if (now_us - before_us) * 100.0 < CHECK_INTERVAL.as_micros() as f64 * IDLE_PERCENT {
            return;
        }
        before_us = now_us;
    }
}

/// One run of redis-benchmark.
fn run(address: SocketAddr, load: &Load<'_>, requests: u64, is_redis: bool) -> Figures {
    let output = Command::new("redis-benchmark")
        .args(["-h", &address.ip().to_string()])
        .args(["-p", &address.port().to_string()])
        .args([
            "-c",
            &load.clients.to_string(),
            "-P",
            &load.pipeline.to_string(),
        ])
        .args(["-n", &requests.to_string(), "-r", &load.below.to_string()])
        .arg("--csv")
        .args(load.row.words(is_redis))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    // The name, which may have commas, then requests a second, and latencies: mean, least, p50, p95, p99, greatest.
    let figures: Vec<f64> = text
        .lines()
        .last()
        .map(|line| {
            line.split("\",\"")
                .skip(1)
                .filter_map(|one| one.trim_matches('"').parse().ok())
                .collect()
        })
        .unwrap_or_default();
    assert!(figures.len() == 7, "redis-benchmark says: {text}");
    Figures {
        rate: figures[0],
        p99_ms: figures[5],
        processor_us: 0.0,
    }
}
