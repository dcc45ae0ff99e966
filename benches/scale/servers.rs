//! The servers of a case, their own statistics, and the processor time of all processes.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use crate::server::Server;
use crate::wire::Client;

/// Clock ticks per second, the unit of processor time in Linux (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// Starts servers that share a cluster and a root prefix.
pub fn start(count: usize, cluster_file: &Path, root_prefix: &str) -> Vec<Server> {
    let cluster_file = cluster_file.to_str().unwrap();
    let flags = [
        "--store",
        "fdb",
        "--cluster-file",
        cluster_file,
        "--root-prefix",
        root_prefix,
    ];
    (0..count).map(|_| Server::start_with(&flags)).collect()
}

/// Counters of INFO, of all servers together.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counters {
    pub commits: u64,
    pub conflicts: u64,
    pub retries: u64,
    pub unknown_results: u64,
    /// Time of all batches.
    pub batches_us: u64,
}

impl Counters {
    pub async fn read(addresses: &[SocketAddr]) -> io::Result<Self> {
        let mut sum = Self::default();
        for address in addresses {
            let mut client = Client::connect(*address).await?;
            let reply = client.command(&[b"INFO", b"quoin"]).await?;
            let text = String::from_utf8_lossy(&reply);
            let field = |name: &str| {
                let value = text.lines().find_map(|line| {
                    let (field, value) = line.split_once(':')?;
                    (field == name).then(|| value.trim().parse::<u64>().ok())?
                });
                value.ok_or_else(|| io::Error::other(format!("INFO does not tell {name}")))
            };
            sum.commits += field("commits")?;
            sum.conflicts += field("conflicts")?;
            sum.retries += field("retries")?;
            sum.unknown_results += field("unknown_results")?;
            sum.batches_us += field("batches_usec")?;
        }
        Ok(sum)
    }

    pub fn since(self, before: &Self) -> Self {
        Self {
            commits: self.commits - before.commits,
            conflicts: self.conflicts - before.conflicts,
            retries: self.retries - before.retries,
            unknown_results: self.unknown_results - before.unknown_results,
            batches_us: self.batches_us - before.batches_us,
        }
    }
}

/// Processor time in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cpu {
    /// Of this program.
    pub load_s: f64,
    /// Of the servers.
    pub servers_s: f64,
    /// Of everything else on the machine, including the cluster if it runs here.
    pub others_s: f64,
}

impl Cpu {
    pub fn now(processes: &[u32]) -> Self {
        let load_s = process_s(std::process::id());
        let servers_s = processes.iter().map(|process| process_s(*process)).sum();
        Self {
            load_s,
            servers_s,
            others_s: machine_s() - load_s - servers_s,
        }
    }

    pub fn since(self, before: &Self) -> Self {
        Self {
            load_s: self.load_s - before.load_s,
            servers_s: self.servers_s - before.servers_s,
            others_s: self.others_s - before.others_s,
        }
    }
}

fn process_s(process: u32) -> f64 {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{process}/stat")) else {
        return 0.0;
    };
    // After the name in parentheses, which may contain blanks: user and system time.
    let fields = text.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks = fields.split(' ').skip(11).take(2);
    ticks
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum::<f64>()
        / TICKS_PER_SECOND
}

/// Busy time of all processors: all columns except those for idling, waiting for disks, and guests,
/// whose time is included in others.
fn machine_s() -> f64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let columns: Vec<f64> = line
        .split_whitespace()
        .skip(1)
        .filter_map(|ticks| ticks.parse().ok())
        .collect();
    let busy = columns
        .iter()
        .enumerate()
        .filter(|(at, _)| ![3, 4, 7, 8, 9].contains(at));
    busy.map(|(_, ticks)| ticks).sum::<f64>() / TICKS_PER_SECOND
}

/// How busy the machine has been: the load averages of 1, 5 and 15 minutes.
pub fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}
