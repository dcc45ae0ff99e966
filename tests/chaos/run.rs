//! One run: load and faults for a while, then peace, then the checks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::client::{Client, HANG};
use crate::fleet::Fleet;
use crate::history::{Call, Moment};
use crate::transfers::Ledger;
use crate::{
    conservation, contents, jobs, linear, nemesis, order, streams, transfers, waking, workers,
};

const PRODUCERS: u32 = 5;
const CONSUMERS: u32 = 7;
const TRANSFERRERS: u32 = 3;
/// Clients that add to streams, that read as consumers of groups, and that follow.
const STREAM_CLIENTS: [u32; 3] = [2, 4, 2];
/// Clients that add to job streams, and that work on them.
const JOB_CLIENTS: [u32; 2] = [2, 5];
const LINEAR: u32 = linear::CLIENTS as u32;
const WORKERS: u32 = PRODUCERS
    + CONSUMERS
    + TRANSFERRERS
    + STREAM_CLIENTS[0]
    + STREAM_CLIENTS[1]
    + STREAM_CLIENTS[2]
    + JOB_CLIENTS[0]
    + JOB_CLIENTS[1]
    + LINEAR;

/// How long the load continues once nothing is broken.
const PEACE: Duration = Duration::from_millis(1_500);

/// Counts for the report.
#[derive(Debug, Default)]
pub struct Statistics {
    pub answered: AtomicU64,
    pub refused: AtomicU64,
    pub unknown: AtomicU64,
    pub server_kills: AtomicU64,
    pub server_pauses: AtomicU64,
    pub cuts: AtomicU64,
    pub process_kills: AtomicU64,
    pub process_pauses: AtomicU64,
}

/// State that the threads of a run share.
pub struct Shared {
    started: Instant,
    pub has_faults: AtomicBool,
    goes_on: AtomicBool,
    /// When all faults were healed. 0 before that.
    healed: AtomicU64,
    /// When each worker last got a reply.
    progress: Vec<AtomicU64>,
    pub statistics: Statistics,
    /// Counts pipelines.
    pub pipelines: AtomicU64,
    errors: Mutex<BTreeMap<String, u64>>,
    wrongs: Mutex<Vec<String>>,
}

impl Shared {
    fn new() -> Self {
        Self {
            started: Instant::now(),
            has_faults: AtomicBool::new(true),
            goes_on: AtomicBool::new(true),
            healed: AtomicU64::new(0),
            progress: (0..WORKERS).map(|_| AtomicU64::new(0)).collect(),
            statistics: Statistics::default(),
            pipelines: AtomicU64::new(0),
            errors: Mutex::default(),
            wrongs: Mutex::default(),
        }
    }

    pub fn now(&self) -> Moment {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap()
    }

    /// When all faults were healed, if they have been.
    pub fn healed(&self) -> Option<Moment> {
        Some(self.healed.load(Ordering::Relaxed)).filter(|healed| *healed > 0)
    }

    /// Records behaviour that no server may ever show.
    pub fn report(&self, wrong: String) {
        self.wrongs.lock().unwrap().push(wrong);
    }

    /// Counts an error that a client was answered.
    pub fn count_error(&self, line: &str) {
        *self
            .errors
            .lock()
            .unwrap()
            .entry(line.to_owned())
            .or_default() += 1;
    }

    /// Records a worker's progress, and returns whether it should continue.
    fn goes_on(&self, worker: u32) -> bool {
        self.progress[worker as usize].store(self.now(), Ordering::Relaxed);
        self.goes_on.load(Ordering::Relaxed)
    }
}

impl fmt::Display for Shared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let statistics = &self.statistics;
        write!(
            out,
            "{} answered, {} refused, {} of unknown result; servers killed {}, paused {}; \
             connections cut {}; fdbserver processes killed {}, paused {}; errors {:?}",
            count(&statistics.answered),
            count(&statistics.refused),
            count(&statistics.unknown),
            count(&statistics.server_kills),
            count(&statistics.server_pauses),
            count(&statistics.cuts),
            count(&statistics.process_kills),
            count(&statistics.process_pauses),
            self.errors.lock().unwrap(),
        )
    }
}

/// Load, faults, peace and checks, on empty queues. Returns a report.
///
/// # Errors
/// Everything that was wrong.
pub fn run(fleet: &Fleet, seed: u64, faults_for: Duration) -> Result<String, String> {
    let shared = Shared::new();
    let rounds = linear::Rounds::default();
    streams::prepare(&mut fleet.connections()[0]);
    jobs::prepare(&mut fleet.connections()[0]);
    let Load {
        calls,
        transfers: ledgers,
        streams: stream_ledgers,
        jobs: job_ledgers,
    } = load(fleet, &shared, &rounds, seed, faults_for);
    let mut wrongs = std::mem::take(&mut *shared.wrongs.lock().unwrap());
    fleet.examine();
    wrongs.extend(fleet.wrongs());
    let mut connections = fleet.connections();
    let mut told = String::new();
    match contents::read_and_drain(&mut connections) {
        Ok(contents) => {
            wrongs.extend(conservation::check(&calls, &contents).err());
            wrongs.extend(order::check(&calls, &contents).err());
        }
        Err(wrong) => wrongs.push(wrong),
    }
    let transferred = transfers::read_state(&mut connections[0])
        .and_then(|state| transfers::check(&ledgers, &state));
    wrongs.extend(transferred.err());
    let streamed = streams::read_state(&mut connections)
        .and_then(|state| streams::check(&stream_ledgers, &state));
    wrongs.extend(streamed.err());
    let worked =
        jobs::read_state(&mut connections).and_then(|state| jobs::check(&job_ledgers, &state));
    match worked {
        Ok(of_jobs) => told.push_str(&of_jobs),
        Err(wrong) => wrongs.push(wrong),
    }
    wrongs.extend(waking::check(fleet).err());
    wrongs.extend(fleet.examine_store().err());
    let mut connections = fleet.connections();
    connections[0].command(&["FLUSHALL"]).unwrap();
    let histories = linear::check(rounds, fleet.is_cluster());
    let histories = histories.unwrap_or_else(|wrong| {
        wrongs.push(wrong);
        String::new()
    });
    if wrongs.is_empty() {
        Ok(format!("{shared}; {told}{histories}"))
    } else {
        wrongs.truncate(20);
        Err(format!("{}\n{shared}\n{}", wrongs.join("\n"), fleet.logs()))
    }
}

/// What a client does.
enum Role {
    Producer,
    Consumer,
    Transferrer,
    StreamAdder,
    StreamConsumer,
    StreamFollower,
    JobAdder,
    JobWorker,
    /// Its index among those of the short histories.
    Linear(usize),
}

impl Role {
    fn of(worker: u32) -> Self {
        let mut left = worker;
        let [adders, readers, followers] = STREAM_CLIENTS;
        let [job_adders, job_workers] = JOB_CLIENTS;
        for (clients, role) in [
            (PRODUCERS, Self::Producer),
            (CONSUMERS, Self::Consumer),
            (TRANSFERRERS, Self::Transferrer),
            (adders, Self::StreamAdder),
            (readers, Self::StreamConsumer),
            (followers, Self::StreamFollower),
            (job_adders, Self::JobAdder),
            (job_workers, Self::JobWorker),
        ] {
            if left < clients {
                return role;
            }
            left -= clients;
        }
        Self::Linear(left as usize)
    }
}

/// What clients know at the end of the load.
struct Load {
    calls: Vec<Call>,
    transfers: Vec<Ledger>,
    streams: Vec<streams::Ledger>,
    jobs: Vec<jobs::Ledger>,
}

fn load(
    fleet: &Fleet,
    shared: &Shared,
    rounds: &linear::Rounds,
    seed: u64,
    faults_for: Duration,
) -> Load {
    // Payloads are unique beyond this run, so that one from an earlier run would be recognized.
    let first_number = u32::try_from(seed % 10_000_000).unwrap() * 100;
    let random = |number: u64| StdRng::seed_from_u64(seed.wrapping_mul(1_000).wrapping_add(number));
    thread::scope(|scope| {
        let mut calling = Vec::new();
        let mut transferring = Vec::new();
        let mut streaming = Vec::new();
        let mut working = Vec::new();
        for number in 0..WORKERS {
            let mut client = Client::new(fleet, shared, random(u64::from(number)));
            let goes_on = move || shared.goes_on(number);
            let name = first_number + number;
            match Role::of(number) {
                Role::Producer => {
                    let work = move || workers::produce(&mut client, name, goes_on);
                    calling.push(scope.spawn(work));
                }
                Role::Consumer => {
                    calling.push(scope.spawn(move || workers::consume(&mut client, goes_on)));
                }
                Role::Transferrer => {
                    let work = move || transfers::transfer(&mut client, name, goes_on);
                    transferring.push(scope.spawn(work));
                }
                Role::StreamAdder => {
                    let work = move || streams::add(&mut client, name, goes_on);
                    streaming.push(scope.spawn(work));
                }
                Role::StreamConsumer => {
                    let work = move || streams::consume(&mut client, name, goes_on);
                    streaming.push(scope.spawn(work));
                }
                Role::StreamFollower => {
                    let work = move || streams::follow(&mut client, goes_on);
                    streaming.push(scope.spawn(work));
                }
                Role::JobAdder => {
                    let work = move || jobs::add(&mut client, name, goes_on);
                    working.push(scope.spawn(work));
                }
                Role::JobWorker => {
                    let work = move || jobs::work(&mut client, name, goes_on);
                    working.push(scope.spawn(work));
                }
                Role::Linear(place) => {
                    scope.spawn(move || rounds.take_part(&mut client, place, goes_on));
                }
            }
        }
        let troubles = [
            scope.spawn(|| nemesis::trouble_servers(fleet, shared, random(901))),
            scope.spawn(|| nemesis::trouble_connections(fleet, shared, random(902))),
            #[cfg(feature = "fdb")]
            scope.spawn(|| {
                if let Some(cluster) = fleet.cluster() {
                    nemesis::trouble_cluster(cluster, shared, random(903));
                }
            }),
        ];
        thread::sleep(faults_for);
        shared.has_faults.store(false, Ordering::Relaxed);
        for trouble in troubles {
            trouble.join().unwrap();
        }
        fleet.heal();
        shared.healed.store(shared.now(), Ordering::Relaxed);
        thread::sleep(PEACE);
        wait_for_everyone(shared);
        shared.goes_on.store(false, Ordering::Relaxed);
        let calls = calling
            .into_iter()
            .flat_map(|worker| worker.join().unwrap());
        let calls = calls.collect();
        let transfers = transferring.into_iter();
        let streams = streaming.into_iter();
        let jobs = working.into_iter();
        Load {
            calls,
            transfers: transfers.map(|worker| worker.join().unwrap()).collect(),
            streams: streams.map(|worker| worker.join().unwrap()).collect(),
            jobs: jobs.map(|worker| worker.join().unwrap()).collect(),
        }
    })
}

/// Every client has been served since all was well.
fn wait_for_everyone(shared: &Shared) {
    let healed = shared.healed().unwrap_or_default();
    let started = Instant::now();
    for (worker, progress) in shared.progress.iter().enumerate() {
        while progress.load(Ordering::Relaxed) <= healed {
            if started.elapsed() > 2 * HANG {
                shared.report(format!("client {worker} is not served though all is well"));
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}
