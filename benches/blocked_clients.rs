//! What waiting clients cost: memory and processor time of a server with very many of them, how
//! long it takes to serve them all, and how fast a waiting client is woken, compared with
//! `redis-server` with `appendfsync always`. `cargo bench --bench blocked_clients -- --help` for
//! settings.
//!
//! Each client takes a socket here and one in the server, so check `ulimit -n`.
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

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use clap::ArgMatches;

use measures::{median, used_cpu_us};
use redis_server::Redis;
use resp::Connection;
use server::{Server, request, wait_until};
use settings::{count, folder, number};

/// Keys that each client waits for, like a worker that serves several queues.
const KEYS_OF_EACH: usize = 4;
const MEMORY_MAX_MB: f64 = 300.0;

/// Clients that wait.
struct Crowd {
    name: &'static str,
    /// A client's command, from its number and the number of keys.
    words: fn(usize, usize) -> Vec<String>,
    /// Has everyone served, from the number of keys.
    serve: fn(&mut [TcpStream], &mut Connection, usize),
}

const CROWDS: [Crowd; 3] = [
    Crowd {
        name: "in BRPOP of 4 lists",
        words: |number, keys| {
            let queues = (0..KEYS_OF_EACH).map(|at| format!("queue:{}", (number + at * 7) % keys));
            let words = std::iter::once("BRPOP".to_owned()).chain(queues);
            words.chain(["0".to_owned()]).collect()
        },
        serve: serve_all,
    },
    Crowd {
        name: "in XREAD of one stream",
        words: |_, _| words("XREAD BLOCK 0 STREAMS stream $"),
        serve: |sockets, probe, _| {
            let added = [words("XADD stream * field value")];
            wake_readers(sockets, probe, &added);
        },
    },
    Crowd {
        name: "in XREAD of a stream of its own",
        words: |number, _| words(&format!("XREAD BLOCK 0 STREAMS stream:{number} $")),
        serve: |sockets, probe, _| {
            let added = (0..sockets.len()).map(|at| words(&format!("XADD stream:{at} * f v")));
            let added: Vec<_> = added.collect();
            wake_readers(sockets, probe, &added);
        },
    },
];

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// Adds to streams, and waits until every reader has an entry.
fn wake_readers(sockets: &mut [TcpStream], probe: &mut Connection, added: &[Vec<String>]) {
    let started = Instant::now();
    let bytes = |words: &Vec<String>| words.iter().map(|word| word.as_bytes().to_vec()).collect();
    let added: Vec<Vec<Vec<u8>>> = added.iter().map(bytes).collect();
    for some in added.chunks(1_000) {
        probe.pipeline(some).unwrap();
    }
    for socket in sockets.iter_mut() {
        let mut reply = [0; 256];
        let length = socket.read(&mut reply).unwrap();
        assert!(reply[..length].starts_with(b"*1\r\n"));
    }
    println!(
        "  all have an entry after {:.2} s",
        started.elapsed().as_secs_f64()
    );
}

fn main() {
    let matches = settings();
    let folder = folder(&matches);
    for crowd in &CROWDS {
        of_crowd(crowd, &matches, &folder);
    }
    hand_offs(&matches, &folder);
}

fn settings() -> ArgMatches {
    settings::read(
        "blocked_clients",
        [
            number("clients", "9900", "Clients that wait at once"),
            number("keys", "1000", "Keys that they wait for, some each"),
            number("idle", "10", "Seconds for which processor time is measured"),
            number("turns", "2000", "Turns of two clients that wake each other"),
            number("rounds", "3", "Rounds of turns for each server"),
        ],
    )
}

fn field_of(process: u32, file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    let number = line.split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

fn resident_mb(server: &Server) -> f64 {
    field_of(server.process_id(), "status", "VmRSS:") as f64 / 1024.0
}

fn info(probe: &mut Connection, name: &str) -> u64 {
    let reply = probe.command(&["INFO", "clients"]).unwrap();
    let text = String::from_utf8_lossy(reply.bytes().unwrap()).into_owned();
    let prefix = format!("{name}:");
    let line = text.lines().find_map(|line| line.strip_prefix(&prefix));
    line.unwrap().parse().unwrap()
}

/// The fraction of one processor that an idle server uses.
fn idle_percent(matches: &ArgMatches, server: &Server) -> f64 {
    let idle = Duration::from_secs(count(matches, "idle"));
    let before_us = used_cpu_us(server.address());
    std::thread::sleep(idle);
    (used_cpu_us(server.address()) - before_us) / idle.as_micros() as f64 * 100.0
}

/// Very many clients that wait.
fn of_crowd(crowd: &Crowd, matches: &ArgMatches, folder: &std::path::Path) {
    let clients = count(matches, "clients") as usize;
    let keys = count(matches, "keys") as usize;
    let data = tempfile::tempdir_in(folder).unwrap();
    let maxclients = (clients + 100).to_string();
    let server = Server::start_in(data.path(), &["--maxclients", &maxclients]).unwrap();
    let mut probe = Connection::open(server.address()).unwrap();
    probe.command(&["RPUSH", "warm", "x"]).unwrap();
    let empty_mb = resident_mb(&server);
    let empty_load = idle_percent(matches, &server);
    let mut sockets: Vec<TcpStream> = (0..clients)
        .map(|_| TcpStream::connect(server.address()).unwrap())
        .collect();
    wait_until("all are connected", || {
        info(&mut probe, "connected_clients") > clients as u64
    });
    let connected_mb = resident_mb(&server);
    for (number, socket) in sockets.iter_mut().enumerate() {
        let words = (crowd.words)(number, keys);
        socket.write_all(&request(&words)).unwrap();
    }
    wait_until("all are blocked", || {
        info(&mut probe, "blocked_clients") == clients as u64
    });
    let blocked_mb = resident_mb(&server);
    let blocking_keys = info(&mut probe, "total_blocking_keys");
    let blocked_load = idle_percent(matches, &server);
    let growth_mb = blocked_mb - empty_mb;
    println!(
        "{clients} clients, each {} of {blocking_keys} keys",
        crowd.name
    );
    println!(
        "  resident memory: {empty_mb:.1} MB empty, {connected_mb:.1} connected, {blocked_mb:.1} blocked"
    );
    println!(
        "  growth {growth_mb:.1} MB, {:.1} KB a client{}",
        growth_mb * 1024.0 / clients as f64,
        if growth_mb > MEMORY_MAX_MB {
            " (TOO MUCH)"
        } else {
            ""
        }
    );
    println!(
        "  idle: {blocked_load:.2} % of one processor, {empty_load:.2} % while the server was empty"
    );
    (crowd.serve)(&mut sockets, &mut probe, keys);
}

/// Pushes until every client has exactly one element.
fn serve_all(sockets: &mut [TcpStream], probe: &mut Connection, keys: usize) {
    let clients = sockets.len();
    let started = Instant::now();
    let mut pushed = 0;
    while info(probe, "blocked_clients") > 0 {
        let pushes: Vec<_> = (0..keys)
            .map(|key| {
                let words = [
                    "RPUSH".to_owned(),
                    format!("queue:{key}"),
                    "element".to_owned(),
                ];
                words.map(String::into_bytes).to_vec()
            })
            .collect();
        pushed += pushes.len();
        probe.pipeline(&pushes).unwrap();
    }
    let pushing = started.elapsed();
    for socket in sockets.iter_mut() {
        let mut reply = [0; 256];
        let length = socket.read(&mut reply).unwrap();
        assert!(reply[..length].starts_with(b"*2\r\n"));
    }
    let left: i64 = (0..keys)
        .map(|key| {
            let reply = probe.command(&["LLEN".to_owned(), format!("queue:{key}")]);
            reply.unwrap().integer().unwrap()
        })
        .sum();
    assert_eq!(pushed, clients + left as usize, "pushed and popped");
    println!(
        "  all served by {pushed} pushes in {:.2} s ({:.0} hand-offs a second), none lost, none twice",
        pushing.as_secs_f64(),
        clients as f64 / pushing.as_secs_f64()
    );
}

/// Two clients that wake each other in turn.
fn hand_offs(matches: &ArgMatches, folder: &std::path::Path) {
    let turns = count(matches, "turns") as usize;
    let quoin_folder = tempfile::tempdir_in(folder).unwrap();
    let redis_folder = tempfile::tempdir_in(folder).unwrap();
    let quoin = Server::start_in(quoin_folder.path(), &[]).unwrap();
    let redis = Redis::start_durable(redis_folder.path()).unwrap();
    let mut medians: [Vec<f64>; 2] = Default::default();
    println!(
        "{turns} turns of LPUSH that wakes BRPOP, µs from before the push to the other's reply"
    );
    for _ in 0..count(matches, "rounds") {
        let servers = [
            ("quoin", quoin.address()),
            ("redis", redis.address().unwrap()),
        ];
        for ((name, address), medians) in servers.into_iter().zip(&mut medians) {
            let mut times_us = ping_pong(address, turns);
            times_us.sort_by(f64::total_cmp);
            let at = |part: f64| times_us[(times_us.len() as f64 * part) as usize];
            println!(
                "  {name}: median {:.0}, 99 % {:.0}, most {:.0}",
                at(0.5),
                at(0.99),
                times_us[times_us.len() - 1]
            );
            medians.push(at(0.5));
        }
    }
    let [ours, theirs] = medians.map(|mut medians| median(&mut medians));
    println!("  quoin takes {:.2} of redis's time", ours / theirs);
}

fn ping_pong(address: SocketAddr, turns: usize) -> Vec<f64> {
    let open = || Connection::open(address).unwrap();
    let (mut first, mut second) = (open(), open());
    let other = std::thread::spawn(move || {
        for _ in 0..turns {
            second.command(&["BRPOP", "ping", "0"]).unwrap();
            second.command(&["LPUSH", "pong", "x"]).unwrap();
        }
    });
    let times_us = (0..turns)
        .map(|_| {
            let started = Instant::now();
            first.command(&["LPUSH", "ping", "x"]).unwrap();
            first.command(&["BRPOP", "pong", "0"]).unwrap();
            // A round trip is two wake-ups.
            started.elapsed().as_secs_f64() * 1e6 / 2.0
        })
        .collect();
    other.join().unwrap();
    times_us
}
