//! The Quoin servers of a run, each behind a proxy, which can be killed, paused and restarted.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::rngs::StdRng;

#[cfg(feature = "fdb")]
use crate::cluster::Cluster;
use crate::doors::Doors;
use crate::proxy::Proxy;
use crate::resp::Connection;
use crate::server::Server;

/// Maximum number of errors to report.
const WRONGS_MAX: usize = 3;

/// How long all servers together may take to start once nothing is broken.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// How many servers share a cluster.
#[cfg(feature = "fdb")]
const SERVERS: usize = 3;

/// The FoundationDB client's own faults: conflicts, transactions that are too old, and results
/// that are unknown, whether the commit was applied or not.
const CLIENT_FAULTS: [(&str, &str); 3] = [
    ("FDB_NETWORK_OPTION_CLIENT_BUGGIFY_ENABLE", ""),
    (
        "FDB_NETWORK_OPTION_CLIENT_BUGGIFY_SECTION_ACTIVATED_PROBABILITY",
        "100",
    ),
    (
        "FDB_NETWORK_OPTION_CLIENT_BUGGIFY_SECTION_FIRED_PROBABILITY",
        "5",
    ),
];

/// Several servers on one store (or one on an embedded store).
pub struct Fleet {
    slots: Vec<Slot>,
    /// The flags that select the store.
    flags: Vec<String>,
    /// Servers may be started with faults in their FoundationDB client.
    has_client_faults: bool,
    /// Behaviour that servers may never show, such as ending by themselves.
    wrongs: Mutex<Vec<String>>,
    folder: tempfile::TempDir,
    #[cfg(feature = "fdb")]
    cluster: Option<Cluster>,
}

struct Slot {
    proxy: Proxy,
    doors: Doors,
    server: Mutex<Option<Running>>,
}

struct Running {
    server: Server,
    has_client_faults: bool,
}

impl Fleet {
    /// One server on an embedded store.
    pub fn embedded() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data").to_str().unwrap().to_owned();
        let fleet = Self::new(folder, 1, vec!["--data-dir".to_owned(), data], false);
        fleet.heal();
        fleet
    }

    /// Several servers on a cluster.
    #[cfg(feature = "fdb")]
    pub fn on(cluster: Cluster) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = cluster.file().to_str().unwrap().to_owned();
        let flags = ["--store", "fdb", "--cluster-file", &file];
        let flags = flags.map(str::to_owned).to_vec();
        let mut fleet = Self::new(folder, SERVERS, flags, true);
        fleet.cluster = Some(cluster);
        fleet.heal();
        fleet
    }

    fn new(
        folder: tempfile::TempDir,
        count: usize,
        flags: Vec<String>,
        has_client_faults: bool,
    ) -> Self {
        let slots = (0..count).map(|_| {
            let proxy = Proxy::start();
            Slot {
                doors: Doors::new(proxy.address()),
                proxy,
                server: Mutex::new(None),
            }
        });
        Self {
            slots: slots.collect(),
            flags,
            has_client_faults,
            wrongs: Mutex::default(),
            folder,
            #[cfg(feature = "fdb")]
            cluster: None,
        }
    }

    /// The cluster that they share, if they do.
    #[cfg(feature = "fdb")]
    pub fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_ref()
    }

    /// The number of servers.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether servers share a cluster, on which some replies are not exact.
    pub fn is_cluster(&self) -> bool {
        self.has_client_faults
    }

    /// Where a client connects, using one of the ways to find a server. If that fails, uses any
    /// server.
    pub fn a_door(&self, random: &mut StdRng) -> SocketAddr {
        let first = random.random_range(0..self.slots.len());
        let any = self.slots[first].proxy.address();
        let in_turn = self.slots.iter().cycle().skip(first);
        let mut doors = in_turn.take(self.slots.len()).map(|slot| &slot.doors);
        let place = random.random_range(0..1_000);
        let found = match random.random_range(0..4) {
            0 => None,
            1 => doors.find_map(Doors::by_sentinel),
            2 => doors.find_map(|doors| doors.by_cluster(place)),
            _ => doors.find_map(Doors::by_leader),
        };
        found.unwrap_or(any)
    }

    /// A connection to each server, bypassing the proxies. Only while all servers are well.
    pub fn connections(&self) -> Vec<Connection> {
        let addresses = self.slots.iter().map(|slot| {
            let server = slot.server.lock().unwrap();
            server.as_ref().unwrap().server.address()
        });
        addresses
            .map(|address| Connection::open(address).unwrap())
            .collect()
    }

    /// Behaviour that servers may never show.
    pub fn wrongs(&self) -> Vec<String> {
        std::mem::take(&mut self.wrongs.lock().unwrap())
    }

    /// Cuts about one in `one_in` connections of a server.
    pub fn cut(&self, number: usize, one_in: u32, random: &mut StdRng) -> u64 {
        self.slots[number].proxy.cut(one_in, random)
    }

    /// Kills a server, if it runs.
    pub fn kill(&self, number: usize) {
        let slot = &self.slots[number];
        let Some(mut running) = slot.server.lock().unwrap().take() else {
            return;
        };
        slot.proxy.lead_to(None);
        self.check_for_wrongs(number, &mut running.server);
        running.server.signal("KILL");
        running.server.wait();
    }

    /// Stops a server's processor time for a while, if it runs.
    pub fn pause(&self, number: usize, duration: Duration) {
        let slot = self.slots[number].server.lock().unwrap();
        if let Some(running) = slot.as_ref() {
            running.server.signal("STOP");
            thread::sleep(duration);
            running.server.signal("CONT");
        }
    }

    /// Starts a server that does not run, with faults in its FoundationDB client or without. Says
    /// whether it runs: while a cluster is away none starts.
    pub fn try_start(&self, number: usize, has_client_faults: bool) -> bool {
        let slot = &self.slots[number];
        let mut server = slot.server.lock().unwrap();
        if server.is_some() {
            return true;
        }
        let has_client_faults = has_client_faults && self.has_client_faults;
        let faults: &[(&str, &str)] = if has_client_faults {
            &CLIENT_FAULTS
        } else {
            &[]
        };
        let folder = self.server_folder(number);
        let flags = [self.flags.clone(), slot.doors.flags()].concat();
        match Server::start_on_store(&folder, &flags, faults) {
            Ok(started) => {
                slot.proxy.lead_to(Some(started.address()));
                *server = Some(Running {
                    server: started,
                    has_client_faults,
                });
                true
            }
            Err(log) => {
                self.report_panic(number, &log);
                // The embedded store has no excuse.
                if !self.has_client_faults {
                    self.report(format!("server {number} does not start: {log}"));
                }
                false
            }
        }
    }

    /// Sees to it that all servers run, without faults in their clients.
    pub fn heal(&self) {
        #[cfg(feature = "fdb")]
        if let Some(cluster) = &self.cluster {
            cluster.heal();
        }
        let started = Instant::now();
        for number in 0..self.slots.len() {
            let is_faulty =
                |running: &Option<Running>| running.as_ref().is_some_and(|r| r.has_client_faults);
            if is_faulty(&self.lock(number)) {
                self.kill(number);
            }
            while !self.try_start(number, false) {
                assert!(
                    started.elapsed() < START_TIMEOUT,
                    "server {number} does not start: {:?}",
                    self.wrongs.lock().unwrap()
                );
                thread::sleep(Duration::from_millis(100));
            }
        }
    }

    /// Checks that all servers are as they should be.
    pub fn examine(&self) {
        for number in 0..self.slots.len() {
            if let Some(running) = self.lock(number).as_mut() {
                self.check_for_wrongs(number, &mut running.server);
            }
        }
    }

    /// Makes `quoin doctor` compare counters, indexes and elements. Whatever was killed, it must
    /// find nothing to repair.
    pub fn examine_store(&self) -> Result<(), String> {
        // Only the doctor may have an embedded store open.
        if !self.is_cluster() {
            self.kill(0);
        }
        let output = Command::new(env!("CARGO_BIN_EXE_quoin"))
            .args(["doctor", "--deep"])
            .args(&self.flags)
            .current_dir(self.folder.path())
            .output()
            .unwrap();
        self.heal();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_wrong = |line: &&str| {
            let about_data = ["counters", "indexes", "data ", "keys ", "databases"];
            let warns = line
                .strip_prefix("warn  ")
                .is_some_and(|rest| about_data.iter().any(|check| rest.starts_with(check)));
            warns || line.starts_with("fail")
        };
        match said.lines().find(is_wrong) {
            None if said.lines().any(|line| line.starts_with("ok    counters")) => Ok(()),
            wrong => Err(format!("quoin doctor: {}", wrong.unwrap_or(&said))),
        }
    }

    /// The last lines of each server's log.
    pub fn logs(&self) -> String {
        let logs = (0..self.slots.len()).map(|number| {
            let log = self
                .lock(number)
                .as_ref()
                .map(|running| running.server.log())
                .unwrap_or_default();
            let lines: Vec<&str> = log.lines().rev().take(30).collect();
            let lines: Vec<&str> = lines.into_iter().rev().collect();
            format!("--- server {number}\n{}\n", lines.join("\n"))
        });
        logs.collect()
    }

    fn lock(&self, number: usize) -> MutexGuard<'_, Option<Running>> {
        self.slots[number].server.lock().unwrap()
    }

    fn server_folder(&self, number: usize) -> PathBuf {
        let folder = self.folder.path().join(format!("server{number}"));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn check_for_wrongs(&self, number: usize, server: &mut Server) {
        let log = server.log();
        self.report_panic(number, &log);
        if let Some(status) = server.ending() {
            self.report(format!("server {number} ended by itself, {status}: {log}"));
        }
    }

    fn report_panic(&self, number: usize, log: &str) {
        if let Some(line) = log.lines().find(|line| line.contains("panicked")) {
            self.report(format!("server {number}: {line}"));
        }
    }

    fn report(&self, wrong: String) {
        let mut wrongs = self.wrongs.lock().unwrap();
        // The first ones are enough.
        if wrongs.len() < WRONGS_MAX {
            wrongs.push(wrong);
        }
    }
}
