//! Strings, hashes and sets compared with `redis-server` with `appendfsync always`, in turns, using
//! `redis-benchmark`: requests per second, and the servers' processor time per request.
//! `cargo bench --bench types -- --help` for settings.
//!
//! With the feature `fdb` and `QUOIN_TEST_STORE=fdb`, Quoin is on FoundationDB, and a bare client
//! of FoundationDB does the same.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

#[cfg(feature = "fdb")]
mod bare;
#[path = "../support/measures.rs"]
mod measures;
#[path = "../../tests/support/redis.rs"]
mod redis_server;
#[path = "../../tests/support/resp.rs"]
mod resp;
#[path = "../../tests/support/server.rs"]
mod server;
#[path = "../support/settings.rs"]
mod settings;

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use measures::{median, used_cpu_us};
use redis_server::Redis;
use resp::{Connection, Words};
use server::Server;
use settings::{count, folder, number, read};

const VALUE: &str = "v23456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789";
/// redis-benchmark replaces it with a number of twelve digits.
const RANDOM: &str = "__rand_int__";
/// Number of existing hashes of ten fields.
const JOBS: u64 = 100_000;
const JOB_FIELDS: usize = 10;
/// Keys of one MSET that fills a server, and such commands in a pipeline.
const FILL_KEYS: u64 = 100;
const FILL_DEPTH: u64 = 8;

/// The loads: name, words, and what the random numbers choose from.
const WORKS: [(&str, &str, Among); 8] = [
    ("SET", "SET key:RANDOM VALUE", Among::Keys),
    ("GET", "GET key:RANDOM", Among::Keys),
    ("INCR", "INCR counter:RANDOM", Among::Keys),
    ("HSET", "HSET hash field:RANDOM VALUE", Among::Keys),
    ("HGETALL of 10", "HGETALL job:RANDOM", Among::Jobs),
    ("SADD", "SADD set member:RANDOM", Among::Keys),
    ("SPOP", "SPOP set", Among::Keys),
    (
        "MSET of 10",
        "MSET key:RANDOM VALUE key:RANDOM VALUE key:RANDOM VALUE key:RANDOM VALUE key:RANDOM VALUE \
         key:RANDOM VALUE key:RANDOM VALUE key:RANDOM VALUE key:RANDOM VALUE key:RANDOM VALUE",
        Among::Keys,
    ),
];

#[derive(Clone, Copy)]
enum Among {
    Keys,
    Jobs,
}

/// Clients, requests in flight of each, and requests in hundredths of `--requests`.
const LOADS: [(u64, u64, u64); 3] = [(50, 1, 100), (50, 16, 400), (1, 1, 10)];

fn main() {
    let matches = read(
        "types",
        [
            number("rounds", "3", "Rounds of which the medians are taken"),
            number("requests", "40000", "Requests of each run with -c 50 -P 1"),
            number(
                "keys",
                "200000",
                "Strings that are there (to judge by: 10000000)",
            ),
        ],
    );
    let folder = folder(&matches);
    let [rounds, requests, keys] =
        ["rounds", "requests", "keys"].map(|name| count(&matches, name).max(1));
    let (quoin_folder, redis_folder) = (
        tempfile::tempdir_in(&folder).unwrap(),
        tempfile::tempdir_in(&folder).unwrap(),
    );
    let quoin = Server::start_in(quoin_folder.path(), &[]).unwrap();
    let redis = Redis::start_durable(redis_folder.path()).unwrap();
    let addresses = [quoin.address(), redis.address().unwrap()];
    for address in addresses {
        fill(address, keys);
    }
    println!(
        "{keys} strings and {JOBS} hashes; values of 100 bytes; medians of {rounds} rounds; \
         requests a second, and microseconds of the server's processor time a request:"
    );
    println!(
        "{:11} {:14} {:>9} {:>9} {:>6} {:>9} {:>9}{}",
        "load",
        "command",
        "Quoin",
        "Redis",
        "ratio",
        "Quoin µs",
        "Redis µs",
        if server::is_on_foundationdb() {
            "      bare  ratio"
        } else {
            ""
        }
    );
    #[cfg(feature = "fdb")]
    let bare = server::is_on_foundationdb().then(|| bare::Bare::open(keys.min(JOBS)));
    for (clients, pipeline, percent) in LOADS {
        let requests = (requests * percent / 100).max(1);
        for (name, words, among) in WORKS {
            let below = match among {
                Among::Keys => keys,
                Among::Jobs => JOBS,
            };
            if name == "SPOP" {
                for address in addresses {
                    fill_set(address, requests * rounds);
                }
            }
            let mut rates = [Vec::new(), Vec::new()];
            let mut costs = rates.clone();
            for turn in 0..rounds * 2 {
                let which = usize::from(turn % 4 == 1 || turn % 4 == 2);
                let before_us = used_cpu_us(addresses[which]);
                let rate = run(
                    addresses[which],
                    (clients, pipeline),
                    requests,
                    below,
                    words,
                );
                let used_us = used_cpu_us(addresses[which]) - before_us;
                rates[which].push(rate);
                #[allow(clippy::cast_precision_loss)]
                costs[which].push(used_us / requests as f64);
            }
            let [ours, theirs] = rates.each_mut().map(|rates| median(rates));
            let [our_us, their_us] = costs.each_mut().map(|costs| median(costs));
            let ratio = ours / theirs;
            print!(
                "-c {clients:<2} -P {pipeline:<3} {name:14} {ours:>9.0} {theirs:>9.0} {ratio:>6.2} \
                 {our_us:>9.2} {their_us:>9.2}"
            );
            #[cfg(feature = "fdb")]
            if let Some(bare) = &bare {
                let rate = bare.rate(name, clients, pipeline);
                print!(" {rate:>9.0} {:>6.2}", ours / rate);
            }
            println!();
        }
    }
    #[cfg(feature = "fdb")]
    drop(bare);
}

/// Creates the keys that are requested.
fn fill(address: SocketAddr, keys: u64) {
    let mut connection = Connection::open(address).unwrap();
    let strings = (0..keys)
        .step_by(usize::try_from(FILL_KEYS).unwrap())
        .map(|from| {
            let mut words: Words = vec![b"MSET".to_vec()];
            for number in from..(from + FILL_KEYS).min(keys) {
                words.push(format!("key:{number:012}").into());
                words.push(VALUE.into());
            }
            words
        });
    let jobs = (0..JOBS).map(|number| {
        let mut words: Words = vec![b"HSET".to_vec(), format!("job:{number:012}").into()];
        for field in 0..JOB_FIELDS {
            words.push(format!("field{field}").into());
            words.push(VALUE[..20].into());
        }
        words
    });
    let mut commands = strings.chain(jobs).peekable();
    while commands.peek().is_some() {
        let depth = usize::try_from(FILL_DEPTH).unwrap();
        let pipeline: Vec<Words> = commands.by_ref().take(depth).collect();
        for reply in connection.pipeline(&pipeline).unwrap() {
            assert_eq!(reply.error(), None);
        }
    }
}

/// Adds as many members as are popped.
fn fill_set(address: SocketAddr, members: u64) {
    let mut connection = Connection::open(address).unwrap();
    for from in (0..members).step_by(usize::try_from(FILL_KEYS).unwrap()) {
        let mut words: Words = vec![b"SADD".to_vec(), b"set".to_vec()];
        let numbers = from..(from + FILL_KEYS).min(members);
        words.extend(numbers.map(|number| format!("filled:{number:012}").into_bytes()));
        assert_eq!(connection.command(&words).unwrap().error(), None);
    }
}

/// Requests per second in one run of redis-benchmark.
fn run(
    address: SocketAddr,
    (clients, pipeline): (u64, u64),
    requests: u64,
    below: u64,
    words: &str,
) -> f64 {
    let words = words.replace("RANDOM", RANDOM).replace("VALUE", VALUE);
    let output = Command::new("redis-benchmark")
        .args(["-h", &address.ip().to_string()])
        .args(["-p", &address.port().to_string()])
        .args(["-c", &clients.to_string(), "-P", &pipeline.to_string()])
        .args(["-n", &requests.to_string(), "-r", &below.to_string()])
        .arg("--csv")
        .args(words.split(' '))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .last()
        .and_then(|line| line.split("\",\"").nth(1)?.trim_matches('"').parse().ok())
        .unwrap_or_else(|| panic!("redis-benchmark says: {text}"))
}
