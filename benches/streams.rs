//! Streams on the embedded store compared with `redis-server` with `appendfsync always`, in turns:
//! commands per second, and the servers' processor time per command, which depends little on the
//! machine's load. RPUSH and LRANGE are included for comparison.
//! `cargo bench --bench streams -- --help` for settings.
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
use std::time::Instant;

use clap::ArgMatches;

use measures::{median, used_cpu_us};
use redis_server::Redis;
use resp::{Connection, Value, Words};
use server::Server;
use settings::{count, folder, number, text};

/// Entries in the range that is read.
const RANGE: usize = 100;

/// What a client does.
#[derive(Clone, Copy, PartialEq)]
enum Work {
    /// Repeats this command.
    Command(&'static str),
    /// Reads a new entry in a group and acknowledges it: two commands.
    ReadAndAcknowledge,
}

/// Clients and commands in a pipeline.
const LOADS: [(u64, u64); 4] = [(1, 1), (50, 1), (1, 16), (50, 16)];

const WORKS: [(&str, Work); 6] = [
    ("RPUSH", Work::Command("RPUSH list VALUE")),
    ("XADD", Work::Command("XADD stream * field VALUE")),
    (
        "XADD MAXLEN ~ 1000",
        Work::Command("XADD trimmed MAXLEN ~ 1000 * field VALUE"),
    ),
    ("LRANGE of 100", Work::Command("LRANGE elements 0 99")),
    (
        "XRANGE of 100",
        Work::Command("XRANGE entries - + COUNT 100"),
    ),
    ("XREADGROUP, XACK", Work::ReadAndAcknowledge),
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
    let addresses = [quoin.address(), redis.address().unwrap()];
    let rounds = count(&matches, "rounds").max(1);
    println!(
        "Commands a second, and microseconds of the server's processor time a command; medians of \
         {rounds} rounds; values of 100 bytes:"
    );
    println!(
        "{:11} {:20} {:>9} {:>9} {:>6} {:>9} {:>9} {:>6}",
        "load", "commands", "Quoin", "Redis", "ratio", "Quoin µs", "Redis µs", "ratio"
    );
    let only: &String = matches.get_one("only").unwrap();
    for (clients, pipeline) in LOADS {
        let commands = count(&matches, "commands") * if pipeline > 1 { 4 } else { 1 };
        for (name, work) in WORKS.into_iter().filter(|(name, _)| name.contains(only)) {
            // By server, by round.
            let mut speeds = [Vec::new(), Vec::new()];
            let mut costs_us = [Vec::new(), Vec::new()];
            for round in 0..rounds {
                for turn in 0..2 {
                    let which = usize::from((round + turn) % 2 == 1);
                    let address = addresses[which];
                    prepare(address, commands);
                    let before_us = used_cpu_us(address);
                    let (done, seconds) = run(address, work, clients, pipeline, commands);
                    speeds[which].push(done / seconds);
                    costs_us[which].push((used_cpu_us(address) - before_us) / done);
                }
            }
            let [ours, theirs] = speeds.map(|mut speeds| median(&mut speeds));
            let [our_us, their_us] = costs_us.map(|mut costs_us| median(&mut costs_us));
            println!(
                "{:11} {name:20} {ours:>9.0} {theirs:>9.0} {:>6.2} {our_us:>9.2} {their_us:>9.2} \
                 {:>6.2}",
                format!("-c {clients} -P {pipeline}"),
                ours / theirs,
                our_us / their_us,
            );
        }
    }
}

fn settings() -> ArgMatches {
    settings::read(
        "streams",
        [
            number("rounds", "3", "Rounds of which the medians are taken"),
            number(
                "commands",
                "10000",
                "Commands of each run with -P 1; four times as many with -P 16",
            ),
            text("only", "Only commands whose name contains this"),
        ],
    )
}

fn words(line: &str) -> Words {
    let value = "v".repeat(100);
    let words = line.split(' ').map(|word| match word {
        "VALUE" => value.clone().into_bytes(),
        word => word.as_bytes().to_vec(),
    });
    words.collect()
}

/// An empty server with the data to read: as many entries as commands, and ranges.
fn prepare(address: SocketAddr, commands: u64) {
    let mut connection = Connection::open(address).unwrap();
    let mut ask = |lines: Vec<Words>| {
        for reply in connection.pipeline(&lines).unwrap() {
            assert_eq!(reply.error(), None);
        }
    };
    ask(vec![
        words("FLUSHALL"),
        words("XGROUP CREATE group g 0 MKSTREAM"),
    ]);
    ask((0..RANGE).map(|_| words("RPUSH elements VALUE")).collect());
    ask((0..RANGE)
        .map(|_| words("XADD entries * field VALUE"))
        .collect());
    let mut left = commands / 2;
    while left > 0 {
        let some = left.min(1_000);
        ask((0..some)
            .map(|_| words("XADD group * field VALUE"))
            .collect());
        left -= some;
    }
}

/// Runs about `commands` commands. Returns their exact number and the seconds they took.
fn run(address: SocketAddr, work: Work, clients: u64, pipeline: u64, commands: u64) -> (f64, f64) {
    let rounds = (commands / clients / pipeline).max(1);
    let started = Instant::now();
    let done: u64 = std::thread::scope(|scope| {
        let clients = (0..clients).map(|number| {
            scope.spawn(move || {
                let mut connection = Connection::open(address).unwrap();
                match work {
                    Work::Command(line) => repeat(&mut connection, line, pipeline, rounds),
                    Work::ReadAndAcknowledge => consume(&mut connection, number, pipeline, rounds),
                }
            })
        });
        let clients: Vec<_> = clients.collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .sum()
    });
    #[allow(clippy::cast_precision_loss)]
    let done = done as f64;
    (done, started.elapsed().as_secs_f64())
}

fn repeat(connection: &mut Connection, line: &str, pipeline: u64, rounds: u64) -> u64 {
    let commands: Vec<Words> = (0..pipeline).map(|_| words(line)).collect();
    for _ in 0..rounds {
        let replies = connection.pipeline(&commands).unwrap();
        assert!(replies.iter().all(|reply| reply.error().is_none()));
    }
    pipeline * rounds
}

/// Half of the commands read, and half acknowledge.
fn consume(connection: &mut Connection, number: u64, pipeline: u64, rounds: u64) -> u64 {
    let read = words(&format!(
        "XREADGROUP GROUP g c{number} COUNT 1 STREAMS group >"
    ));
    let reads: Vec<Words> = (0..pipeline).map(|_| read.clone()).collect();
    let mut done = 0;
    for _ in 0..rounds.div_ceil(2) {
        let replies = connection.pipeline(&reads).unwrap();
        let ids = replies.iter().filter_map(first_id);
        let acknowledgements: Vec<Words> = ids
            .map(|id| vec![b"XACK".to_vec(), b"group".to_vec(), b"g".to_vec(), id])
            .collect();
        let acknowledged = connection.pipeline(&acknowledgements).unwrap();
        assert!(acknowledged.iter().all(|reply| reply.integer() == Some(1)));
        done += pipeline + acknowledgements.len() as u64;
    }
    done
}

/// The id of the first entry of a reply of XREADGROUP.
fn first_id(reply: &Value) -> Option<Vec<u8>> {
    let stream = reply.items()?.first()?;
    let entry = stream.items()?.get(1)?.items()?.first()?;
    Some(entry.items()?.first()?.bytes()?.to_vec())
}
