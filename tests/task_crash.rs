//! A server with a task queue is killed under load and restarted on the same folder. Every task
//! whose addition got a reply is there, unless it was acknowledged or taken without a lease. Tasks
//! that were acknowledged or taken that way never come back. No task has two live leases. Leases
//! lapse, tasks die and are revived across the kills. Tasks belong to groups, and some wait for
//! others: none waits for one that has ended.
//!
//! A schedule adds the task of each of its moments once, and consumers get no more than the rate of
//! a queue, across kills. On FoundationDB, three servers do this together, and one after the other
//! is killed.
//!
//! `QUOIN_TEST_ROUNDS`: the number of rounds, instead of the few that CI has time for.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

#[path = "support/resp.rs"]
mod resp;
#[path = "support/server.rs"]
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quoin_base::random::{Random, SeededRandom};

use resp::{Connection, Value, Words};
use server::{Server, wait_until};

const CLIENTS: u64 = 6;
const ROUNDS: u64 = 5;
const LEASE: Duration = Duration::from_millis(60);

/// What all clients together know.
#[derive(Default)]
struct Ledger {
    /// Tasks whose addition got a reply.
    added: BTreeSet<String>,
    /// Tasks that were acknowledged, or taken without a lease, with a reply.
    ended: BTreeSet<String>,
    /// Tasks that may have ended: the acknowledgement was sent.
    perhaps_ended: BTreeSet<String>,
    /// Takes for good that were sent and not answered.
    takes_in_flight: usize,
    /// When the request for the last lease of each task was sent, until it is given up.
    leases: BTreeMap<String, Instant>,
    taken: usize,
}

fn words(line: &str) -> Words {
    line.split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

fn command(connection: &mut Connection, line: &str) -> io::Result<Value> {
    connection.command(&words(line))
}

fn text(value: &Value) -> String {
    String::from_utf8(value.bytes().unwrap().to_vec()).unwrap()
}

/// Adds and takes until the connection breaks.
fn client(address: SocketAddr, name: &str, seed: u64, ledger: &Mutex<Ledger>) -> io::Result<()> {
    let random = SeededRandom::new(seed);
    let mut connection = Connection::open(address)?;
    let mut last = None;
    for number in 0.. {
        match random.below(8) {
            0..=3 => {
                let id = format!("{name}-{number}");
                let mut line = format!(
                    "TASK.ADD q {} payload ID {id} NEEDS gb {} MAXTRIES 3",
                    random.below(3),
                    1 + random.below(9)
                );
                if random.below(4) > 0 {
                    line += &format!(" GROUP g{}", random.below(4));
                }
                let last = last.replace(id.clone()).filter(|_| random.below(4) == 0);
                if let Some(last) = last {
                    line += &format!(" AFTER 1 {last}");
                }
                command(&mut connection, &line)?;
                ledger.lock().unwrap().added.insert(id);
            }
            4 => {
                ledger.lock().unwrap().takes_in_flight += 1;
                let reply = command(&mut connection, "TASK.TAKE q HAVING gb 5")?;
                let mut ledger = ledger.lock().unwrap();
                ledger.takes_in_flight -= 1;
                for task in reply.items().unwrap_or_default() {
                    let id = text(&task.items().unwrap()[0]);
                    assert!(ledger.ended.insert(id.clone()), "{id} was taken twice");
                }
            }
            _ => lease(&mut connection, &random, ledger)?,
        }
    }
    Ok(())
}

/// Takes a task on lease, and acknowledges it, gives it back, or forgets it.
fn lease(
    connection: &mut Connection,
    random: &SeededRandom,
    ledger: &Mutex<Ledger>,
) -> io::Result<()> {
    let sent = Instant::now();
    let line = format!("TASK.TAKE q HAVING gb 9 LEASE {}", LEASE.as_millis());
    let reply = command(connection, &line)?;
    let Some([task]) = reply.items() else {
        return Ok(());
    };
    let task = task.items().unwrap();
    let (id, token) = (text(&task[0]), text(&task[5]));
    {
        let mut ledger = ledger.lock().unwrap();
        ledger.taken += 1;
        assert!(!ledger.ended.contains(&id), "{id} came again after its end");
        match ledger.leases.get(&id) {
            // This thread was delayed for so long that the next lease has already been recorded.
            Some(before) if *before > sent => {}
            Some(before) => {
                // The store counts whole milliseconds.
                let passed = before.elapsed() + Duration::from_millis(1);
                assert!(passed >= LEASE, "{id} is on two leases");
                ledger.leases.insert(id.clone(), sent);
            }
            None => drop(ledger.leases.insert(id.clone(), sent)),
        }
    }
    match random.below(4) {
        0 | 1 => {
            ledger.lock().unwrap().perhaps_ended.insert(id.clone());
            let reply = command(connection, &format!("TASK.ACK q {id} TOKEN {token}"))?;
            let code = reply.items().unwrap()[0].integer().unwrap();
            let mut ledger = ledger.lock().unwrap();
            if code == 1 {
                assert!(ledger.ended.insert(id.clone()), "{id} has ended twice");
            } else {
                ledger.perhaps_ended.remove(&id);
            }
        }
        2 => {
            // Whoever takes it next may do so before this is answered.
            ledger.lock().unwrap().leases.remove(&id);
            command(connection, &format!("TASK.NACK q {id} TOKEN {token}"))?;
        }
        _ => {}
    }
    Ok(())
}

#[test]
fn tasks_outlive_a_kill() {
    let rounds = std::env::var("QUOIN_TEST_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(ROUNDS);
    let folder = tempfile::tempdir().unwrap();
    let ledger = Mutex::new(Ledger::default());
    for round in 0..rounds {
        let mut server = Server::start_in(folder.path(), &[]).unwrap();
        let address = server.address();
        std::thread::scope(|scope| {
            for number in 0..CLIENTS {
                let ledger = &ledger;
                scope.spawn(move || {
                    let name = format!("{round}-{number}");
                    client(address, &name, round * CLIENTS + number, ledger).unwrap_err();
                });
            }
            std::thread::sleep(Duration::from_millis(200 + 70 * round));
            server.signal("KILL");
        });
        server.wait();
        drop(server);
        check(folder.path(), &mut ledger.lock().unwrap());
    }
    let ledger = ledger.into_inner().unwrap();
    assert!(
        ledger.taken > 20,
        "only {} were taken on lease",
        ledger.taken
    );
    assert!(ledger.ended.len() > 20, "only {} ended", ledger.ended.len());
}

fn check(folder: &std::path::Path, ledger: &mut Ledger) {
    let server = Server::start_in(folder, &[]).unwrap();
    let mut connection = Connection::open(server.address()).unwrap();
    let mut missing = Vec::new();
    for id in &ledger.added {
        let reply = command(&mut connection, &format!("TASK.GET q {id}")).unwrap();
        let is_there = reply.items().is_some_and(|fields| !fields.is_empty());
        if ledger.ended.contains(id) {
            assert!(!is_there, "{id} is there after its end");
        } else if !is_there && !ledger.perhaps_ended.contains(id) {
            missing.push(id.clone());
        }
    }
    assert!(
        missing.len() <= ledger.takes_in_flight,
        "{missing:?} are gone, and only {} takes were not answered",
        ledger.takes_in_flight
    );
    ledger.ended.extend(missing);
    ledger.takes_in_flight = 0;
    let mut count = |line: &str| command(&mut connection, line).unwrap().integer().unwrap();
    // Leases of the killed server lapse on this one.
    wait_until("leases lapse", || count("TASK.LEN q LEASED") == 0);
    assert_eq!(
        count("TASK.LEN q"),
        count("TASK.LEN q READY") + count("TASK.LEN q DEAD") + count("TASK.LEN q WAITING")
    );
    let waiting = command(&mut connection, "TASK.LIST q WAITING COUNT 10000").unwrap();
    for task in waiting.items().unwrap()[1].items().unwrap() {
        let fields = task.items().unwrap();
        let awaited = fields.last().unwrap().items().unwrap();
        assert!(!awaited.is_empty());
        for id in awaited.iter().map(text) {
            assert!(
                !ledger.ended.contains(&id),
                "{id} is waited for after its end"
            );
        }
    }
    let dead = command(&mut connection, "TASK.DEAD q COUNT 10000").unwrap();
    for task in dead.items().unwrap() {
        let line = format!("TASK.REVIVE q {}", text(&task.items().unwrap()[0]));
        let revived = command(&mut connection, &line).unwrap();
        assert_eq!(revived.integer(), Some(1));
    }
    let left = command(&mut connection, "TASK.LEN q DEAD").unwrap();
    assert_eq!(left.integer(), Some(0));
    ledger.leases.clear();
}

#[test]
fn each_task_that_waits_is_released_once_over_kills() {
    const TASKS: usize = 6_000;
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(folder.path(), &[]).unwrap();
    let mut connection = Connection::open(server.address()).unwrap();
    command(&mut connection, "TASK.ADD q 1 x ID a").unwrap();
    let add = |number| format!("TASK.ADD q 1 x ID t{number} AFTER 1 a");
    let words = |line: String| {
        line.split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect()
    };
    let adds: Vec<Words> = (0..TASKS).map(|number| words(add(number))).collect();
    connection.pipeline(&adds).unwrap();
    assert!(
        command(&mut connection, "TASK.TAKE q")
            .unwrap()
            .items()
            .is_some()
    );
    let mut known = TASKS;
    for round in 0..ROUNDS {
        std::thread::sleep(Duration::from_millis(40 * round));
        server.signal("KILL");
        server.wait();
        server = Server::start_in(folder.path(), &[]).unwrap();
        connection = Connection::open(server.address()).unwrap();
        let left = command(&mut connection, "TASK.LEN q WAITING").unwrap();
        let left = usize::try_from(left.integer().unwrap()).unwrap();
        assert!(left <= known, "{left} of {known}");
        known = left;
    }
    let mut count = |line: &str| command(&mut connection, line).unwrap().integer().unwrap();
    wait_until("all are released", || count("TASK.LEN q WAITING") == 0);
    let mut taken = BTreeSet::new();
    while taken.len() < TASKS {
        let some = command(&mut connection, "TASK.TAKE q COUNT 1000").unwrap();
        for task in some.items().unwrap() {
            let id = text(&task.items().unwrap()[0]);
            assert!(taken.insert(id.clone()), "{id} came twice");
        }
    }
    assert_eq!(
        command(&mut connection, "EXISTS q").unwrap().integer(),
        Some(0)
    );
}

/// The moments of the tasks that a consumer takes for good.
fn take_moments(connection: &mut Connection, moments: &mut BTreeSet<i64>) {
    let taken = command(connection, "TASK.TAKE q COUNT 1000").unwrap();
    for task in taken.items().unwrap_or_default() {
        let id = text(&task.items().unwrap()[0]);
        let at_ms = id.strip_prefix("s@").unwrap().parse().unwrap();
        assert!(moments.insert(at_ms), "{id} came twice");
    }
}

/// Servers that share a store: three on FoundationDB, and one on the embedded store.
struct Fleet {
    folder: tempfile::TempDir,
    servers: Vec<Server>,
}

impl Fleet {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let count = if server::is_on_foundationdb() { 3 } else { 1 };
        let servers = (0..count).map(|_| Server::start_in(folder.path(), &[]).unwrap());
        let servers = servers.collect();
        Self { folder, servers }
    }

    /// One of them, by any number.
    fn connect(&self, number: u64) -> Connection {
        let at = number as usize % self.servers.len();
        Connection::open(self.servers[at].address()).unwrap()
    }

    /// Kills one of them, and starts another in its place.
    fn replace(&mut self, number: u64) {
        let at = number as usize % self.servers.len();
        self.servers[at].signal("KILL");
        self.servers[at].wait();
        self.servers[at] = Server::start_in(self.folder.path(), &[]).unwrap();
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.servers.iter().map(Server::address).collect()
    }
}

#[test]
fn a_schedule_adds_the_task_of_each_moment_once_over_kills() {
    let mut fleet = Fleet::start();
    let random = SeededRandom::new(9);
    let set = "TASK.SCHEDULE q s EVERY 1000 MISSED ALL TASK 1 x";
    command(&mut fleet.connect(0), set).unwrap();
    let mut moments = BTreeSet::new();
    for _ in 0..ROUNDS {
        take_moments(&mut fleet.connect(random.next_u64()), &mut moments);
        std::thread::sleep(Duration::from_millis(200 + random.below(1_500)));
        fleet.replace(random.next_u64());
    }
    let mut connection = fleet.connect(0);
    let known = moments.len();
    wait_until("more moments come", || {
        take_moments(&mut connection, &mut moments);
        moments.len() > known + 2
    });
    let moments: Vec<i64> = moments.into_iter().collect();
    let is_whole = moments.is_sorted_by(|one, next| next - one == 1_000);
    assert!(is_whole, "{moments:?}");
}

/// Takes tasks for good until the server dies or the time is over.
fn take_until(
    address: SocketAddr,
    is_over: &AtomicBool,
    taken: &Mutex<BTreeSet<String>>,
) -> io::Result<()> {
    let mut connection = Connection::open(address)?;
    while !is_over.load(Ordering::Relaxed) {
        let reply = command(&mut connection, "TASK.TAKE q COUNT 4")?;
        let tasks = reply.items().unwrap_or_default();
        if tasks.is_empty() {
            std::thread::sleep(Duration::from_millis(2));
        }
        for task in tasks {
            let id = text(&task.items().unwrap()[0]);
            assert!(taken.lock().unwrap().insert(id.clone()), "{id} came twice");
        }
    }
    Ok(())
}

#[test]
fn a_rate_holds_over_kills() {
    const RATE: usize = 20;
    const PERIOD_MS: usize = 500;
    const TASKS: usize = 3_000;
    let mut fleet = Fleet::start();
    let mut connection = fleet.connect(0);
    let set = format!("TASK.SETOPTIONS q RATE {RATE} {PERIOD_MS}");
    command(&mut connection, &set).unwrap();
    let additions = (0..TASKS).map(|number| format!("TASK.ADD q 1 x ID t{number}"));
    let additions: Vec<Words> = additions.map(|line| words(&line)).collect();
    for reply in connection.pipeline(&additions).unwrap() {
        assert_eq!(reply.error(), None);
    }
    let random = SeededRandom::new(10);
    let (taken, is_over) = (Mutex::default(), AtomicBool::new(false));
    let addresses = Mutex::new(fleet.addresses());
    let started = Instant::now();
    std::thread::scope(|scope| {
        for consumer in 0..CLIENTS as usize {
            let (addresses, is_over, taken) = (&addresses, &is_over, &taken);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let known = addresses.lock().unwrap().clone();
                    let _ = take_until(known[consumer % known.len()], is_over, taken);
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
        }
        for _ in 0..ROUNDS {
            std::thread::sleep(Duration::from_millis(300 + random.below(900)));
            fleet.replace(random.next_u64());
            *addresses.lock().unwrap() = fleet.addresses();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let periods = started.elapsed().as_millis() as usize / PERIOD_MS + 1;
    let taken = taken.into_inner().unwrap().len();
    assert!(taken <= periods * RATE, "{taken} in {periods} periods");
    assert!(taken > 2 * RATE, "{taken} in {periods} periods");
    assert!(taken < TASKS, "the queue was empty before the end");
}
