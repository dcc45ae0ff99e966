//! Latencies on the embedded store compared with `redis-server` with `appendfsync always`, in
//! turns. Each server gets half of the requests per second that it can handle, at even intervals,
//! whether earlier ones have been answered or not. `cargo bench --bench latency -- --help` for
//! settings.
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
use std::time::{Duration, Instant};

use clap::ArgMatches;

use measures::{median, used_cpu_us};
use redis_server::Redis;
use resp::{Connection, Words};
use server::Server;
use settings::{count, folder, number};

/// What is measured, and what fills the key first.
const LOADS: [(&str, Option<&str>); 4] = [
    ("LPUSH list VALUE", None),
    ("RPOP list", Some("LPUSH list VALUE")),
    ("ZADD set NUMBER VALUENUMBER", None),
    ("ZPOPMIN set", Some("ZADD set NUMBER VALUENUMBER")),
];

fn main() {
    let matches = settings();
    let folder = folder(&matches);
    let (quoin_folder, redis_folder) = (
        tempfile::tempdir_in(&folder).unwrap(),
        tempfile::tempdir_in(&folder).unwrap(),
    );
    let quoin = Server::start_in(quoin_folder.path(), &[]).unwrap();
    let redis = Redis::start_durable(redis_folder.path()).unwrap();
    let servers = [
        ("Quoin", quoin.address()),
        ("Redis", redis.address().unwrap()),
    ];
    let rounds = count(&matches, "rounds").max(1);
    let clients = count(&matches, "clients").max(1);
    let requests = count(&matches, "requests");
    println!(
        "Milliseconds from when a request was due until its reply, at half of the greatest rate of {clients} \
         clients; medians of {rounds} rounds of {requests} requests; values of 100 bytes:"
    );
    println!(
        "{:10} {:8} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8}",
        "command", "", "greatest", "rate", "p50", "p99", "p99.9", "cpu µs"
    );
    for (line, fill) in LOADS {
        // By server: the greatest rate, the rate, three percentiles, processor time a request.
        let mut figures = [const { [const { Vec::new() }; 6] }; 2];
        for round in 0..rounds {
            for turn in 0..2 {
                let which = usize::from((round + turn) % 2 == 1);
                let measured = measure(servers[which].1, line, fill, clients, requests);
                for (figures, figure) in figures[which].iter_mut().zip(measured) {
                    figures.push(figure);
                }
            }
        }
        for ((name, _), figures) in servers.iter().zip(&mut figures) {
            let [greatest, rate, p50, p99, p999, cpu_us] =
                figures.each_mut().map(|one| median(one));
            let command = line.split(' ').next().unwrap_or_default();
            println!(
                "{command:10} {name:8} {greatest:>9.0} {rate:>9.0} {p50:>8.2} {p99:>8.2} {p999:>8.2} \
                 {cpu_us:>8.1}"
            );
        }
    }
}

fn settings() -> ArgMatches {
    settings::read(
        "latency",
        [
            number("rounds", "3", "Rounds of which the medians are taken"),
            number("clients", "50", "Clients"),
            number("requests", "100000", "Requests of each run"),
        ],
    )
}

/// The maximum rate, half of it, and the latencies and processor time at that rate.
fn measure(
    address: SocketAddr,
    line: &str,
    fill: Option<&str>,
    clients: u64,
    requests: u64,
) -> [f64; 6] {
    prepare(address, fill, 2 * requests);
    let started = Instant::now();
    run(address, line, clients, requests, None);
    #[allow(clippy::cast_precision_loss)]
    let greatest = requests as f64 / started.elapsed().as_secs_f64();
    let rate = greatest / 2.0;
    let distance = Duration::from_secs_f64(1.0 / rate);
    let before_us = used_cpu_us(address);
    let mut latencies = run(address, line, clients, requests, Some(distance));
    #[allow(clippy::cast_precision_loss)]
    let cpu_us = (used_cpu_us(address) - before_us) / requests as f64;
    latencies.sort_unstable();
    let percentile = |part: f64| {
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )]
        let at = (latencies.len() as f64 * part) as usize;
        latencies[at.min(latencies.len() - 1)].as_secs_f64() * 1e3
    };
    [
        greatest,
        rate,
        percentile(0.5),
        percentile(0.99),
        percentile(0.999),
        cpu_us,
    ]
}

/// An empty server, or one with enough elements for the pops.
fn prepare(address: SocketAddr, fill: Option<&str>, elements: u64) {
    let mut connection = Connection::open(address).unwrap();
    let mut ask = |lines: Vec<Words>| {
        for reply in connection.pipeline(&lines).unwrap() {
            assert_eq!(reply.error(), None);
        }
    };
    ask(vec![words("FLUSHALL", 0)]);
    let Some(fill) = fill else {
        return;
    };
    let numbers: Vec<u64> = (0..elements).collect();
    for some in numbers.chunks(1_000) {
        ask(some.iter().map(|number| words(fill, *number)).collect());
    }
}

fn words(line: &str, number: u64) -> Words {
    let number = number.to_string();
    let value = "v".repeat(100);
    let words = line.split(' ').map(|word| {
        let word = word.replace("VALUE", &value);
        word.replace("NUMBER", &number).into_bytes()
    });
    words.collect()
}

/// Sends requests over this many connections: at these intervals, or as soon as each client has its
/// reply. Returns how long after their due times the replies came.
fn run(
    address: SocketAddr,
    line: &str,
    clients: u64,
    requests: u64,
    distance: Option<Duration>,
) -> Vec<Duration> {
    let of_each = requests / clients;
    let started = Instant::now() + Duration::from_millis(50);
    std::thread::scope(|scope| {
        let clients = (0..clients).map(|client| {
            scope.spawn(move || {
                let mut connection = Connection::open(address).unwrap();
                let request = |turn: u64| {
                    let number = turn * clients + client;
                    let words = words(line, number);
                    let due = distance.map(|distance| {
                        started + Duration::from_secs_f64(distance.as_secs_f64() * number as f64)
                    });
                    let now = Instant::now();
                    let sent = match due {
                        Some(due) if due > now => {
                            std::thread::sleep(due - now);
                            // The sleep took longer, which is not the server's fault.
                            Instant::now()
                        }
                        Some(due) => due,
                        None => now,
                    };
                    let replies = connection.pipeline(&[words]).unwrap();
                    assert_eq!(replies[0].error(), None);
                    sent.elapsed()
                };
                (0..of_each).map(request).collect::<Vec<Duration>>()
            })
        });
        let clients: Vec<_> = clients.collect();
        let latencies = clients.into_iter().map(|client| client.join().unwrap());
        latencies.flatten().collect()
    })
}
