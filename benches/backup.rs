//! What a backup costs clients: commands per second and the duration of a pipeline, alternately
//! without a backup and with one constantly in progress. `cargo bench --bench backup -- --help` for
//! settings.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

#[path = "../tests/support/resp.rs"]
mod resp;
#[path = "../tests/support/server.rs"]
mod server;
#[path = "support/settings.rs"]
mod settings;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::ArgMatches;

use resp::{Connection, Words};
use server::Server;
use settings::{count, folder, number};

const MIB: u64 = 1024 * 1024;
/// Elements of the ballast pushed by one command.
const BALLAST_ELEMENTS: u64 = 64;

fn main() {
    let matches = settings();
    let folder = folder(&matches);
    for fsync in ["always", "everysec"] {
        measure(&matches, &folder, fsync);
    }
}

fn settings() -> ArgMatches {
    settings::read(
        "backup",
        [
            number("ballast", "1024", "MiB that lie in the store"),
            number("clients", "16", "Clients that push and pop"),
            number("pipeline", "16", "Commands that each sends at once"),
            number("payload", "200", "Bytes of an element"),
            number("seconds", "10", "Seconds of a turn"),
            number("turns", "3", "Turns without and with a backup"),
        ],
    )
}

fn measure(matches: &ArgMatches, folder: &std::path::Path, fsync: &str) {
    let data = tempfile::tempdir_in(folder).unwrap();
    let flags = ["--fsync", fsync, "--backups-keep", "1"];
    let server = Server::start_in(data.path(), &flags).unwrap();
    let ballast = count(matches, "ballast");
    load(&server, ballast * MIB);
    println!("fsync {fsync}, {ballast} MiB in the store");
    let mut ratios = Vec::new();
    for _ in 0..count(matches, "turns") {
        let without = turn(matches, &server, false);
        let with = turn(matches, &server, true);
        println!("  without a backup: {without}");
        println!("  with backups:     {with}");
        ratios.push(with.per_second / without.per_second);
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "  throughput with backups: {:.0} to {:.0} %",
        ratios[0] * 100.0,
        ratios[ratios.len() - 1] * 100.0
    );
}

fn load(server: &Server, bytes: u64) {
    let mut connection = Connection::open(server.address()).unwrap();
    let element = vec![b'b'; 1024];
    let mut words: Words = vec![b"RPUSH".to_vec(), b"ballast".to_vec()];
    words.extend((0..BALLAST_ELEMENTS).map(|_| element.clone()));
    for _ in 0..bytes / (BALLAST_ELEMENTS * 1024) {
        assert_eq!(connection.command(&words).unwrap().error(), None);
    }
}

struct Turn {
    per_second: f64,
    median: Duration,
    late: Duration,
    worst: Duration,
    backups: u64,
    backup_s: f64,
    backup_mib: f64,
}

impl std::fmt::Display for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        write!(
            f,
            "{:8.0} commands/s; a pipeline takes {:.2} ms (median), {:.2} (99th of 100), {:.1} (worst)",
            self.per_second,
            ms(self.median),
            ms(self.late),
            ms(self.worst)
        )?;
        if self.backups > 0 {
            write!(
                f,
                "; {} backups of {:.0} MiB, {:.1} s each",
                self.backups, self.backup_mib, self.backup_s
            )?;
        }
        Ok(())
    }
}

fn turn(matches: &ArgMatches, server: &Server, with_backup: bool) -> Turn {
    let duration = Duration::from_secs(count(matches, "seconds"));
    let is_over = AtomicBool::new(false);
    let begun = Instant::now();
    let (mut times, backups, backup_s) = std::thread::scope(|scope| {
        let saver = with_backup.then(|| scope.spawn(|| save(server, &is_over)));
        let clients: Vec<_> = (0..count(matches, "clients"))
            .map(|number| {
                scope.spawn(move || push_and_pop(matches, server, number, begun + duration))
            })
            .collect();
        let times: Vec<Duration> = clients
            .into_iter()
            .flat_map(|client| client.join().unwrap())
            .collect();
        is_over.store(true, Ordering::SeqCst);
        let (backups, backup_s) = saver.map_or((0, 0.0), |saver| saver.join().unwrap());
        (times, backups, backup_s)
    });
    times.sort_unstable();
    let commands = times.len() as u64 * count(matches, "pipeline");
    Turn {
        per_second: commands as f64 / duration.as_secs_f64(),
        median: times[times.len() / 2],
        late: times[times.len() * 99 / 100],
        worst: times[times.len() - 1],
        backups,
        backup_s,
        backup_mib: last_bytes(server) as f64 / MIB as f64,
    }
}

/// Makes one backup after another. Returns how many there were, and the seconds of each.
fn save(server: &Server, is_over: &AtomicBool) -> (u64, f64) {
    let mut connection =
        Connection::open_with_timeout(server.address(), Duration::from_secs(600)).unwrap();
    let begun = Instant::now();
    let mut backups = 0;
    while !is_over.load(Ordering::SeqCst) {
        assert_eq!(connection.command(&["SAVE"]).unwrap().error(), None);
        backups += 1;
    }
    (backups, begun.elapsed().as_secs_f64() / backups as f64)
}

fn last_bytes(server: &Server) -> u64 {
    let mut connection = Connection::open(server.address()).unwrap();
    let reply = connection.command(&["INFO", "persistence"]).unwrap();
    let text = String::from_utf8_lossy(reply.bytes().unwrap()).into_owned();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("backup_last_bytes:"));
    line.unwrap().parse().unwrap()
}

/// Pushes and pops until the time is up; answers how long each pipeline took.
fn push_and_pop(
    matches: &ArgMatches,
    server: &Server,
    number: u64,
    until: Instant,
) -> Vec<Duration> {
    let mut connection = Connection::open(server.address()).unwrap();
    let key = format!("queue:{number}").into_bytes();
    let payload = vec![b'p'; count(matches, "payload") as usize];
    let commands: Vec<Words> = (0..count(matches, "pipeline"))
        .map(|at| match at % 2 {
            0 => vec![b"RPUSH".to_vec(), key.clone(), payload.clone()],
            _ => vec![b"LPOP".to_vec(), key.clone()],
        })
        .collect();
    let mut times = Vec::new();
    while Instant::now() < until {
        let begun = Instant::now();
        connection.pipeline(&commands).unwrap();
        times.push(begun.elapsed());
    }
    times
}
