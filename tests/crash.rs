//! The server is killed under load and restarted on the same folder: every acknowledged push is
//! there, or was taken by a pop. Every acknowledged pop is gone. Nothing is duplicated.
//!
//! `QUOIN_TEST_ROUNDS`: the number of rounds, instead of the few that CI has time for.
//! `QUOIN_TEST_SEED`: the seed for the moments of the kills and for what the clients do.
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
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use resp::{Connection, Value, Words};
use server::Server;

const ROUNDS: u64 = 8;
const CLIENTS: u64 = 8;
const PIPELINE_MAX: usize = 12;
const LISTS: [&str; 2] = ["list:a", "list:b"];
const SETS: [&str; 2] = ["set:a", "set:b"];
const QUEUES: [&str; 2] = ["queue:a", "queue:b"];
/// Number of kinds of requests. Those from `POPS_FROM` on are pops.
const KINDS: u32 = 14;
const POPS_FROM: u32 = 10;

/// What is known about a payload. Payloads are unique, so each is pushed once and popped once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Its push was sent and not answered.
    PushInFlight,
    /// Its push was answered.
    Pushed,
    /// A pop's answer held it.
    Popped,
}

/// What a client saw until its connection broke.
#[derive(Default)]
struct Account {
    fates: BTreeMap<Vec<u8>, Fate>,
    /// Payloads from pops with replies. This client need not have pushed them.
    popped: Vec<Vec<u8>>,
    /// How many payloads its unanswered pops may have taken.
    pops_in_flight: usize,
    answered: usize,
}

#[derive(Clone)]
enum Request {
    Push(Vec<Vec<u8>>),
    Pop(usize),
    Move,
}

#[test]
fn acknowledged_writes_outlive_a_kill() {
    let seed = environment("QUOIN_TEST_SEED").unwrap_or(1);
    let rounds = environment("QUOIN_TEST_ROUNDS").unwrap_or(ROUNDS);
    let folder = tempfile::tempdir().unwrap();
    let mut random = StdRng::seed_from_u64(seed);
    let mut expected = BTreeSet::new();
    let mut answered = 0;
    for round in 0..rounds {
        // Starting says that the lock of the killed server is free.
        let mut server = Server::start_in(folder.path(), &[]).unwrap();
        let kill_after = Duration::from_millis(random.random_range(20..600));
        let accounts = load_until_killed(&mut server, seed, round, kill_after);
        answered += accounts
            .iter()
            .map(|account| account.answered)
            .sum::<usize>();
        let server = Server::start_in(folder.path(), &[]).unwrap();
        let there = contents(&server);
        check(&expected, &accounts, &there)
            .unwrap_or_else(|wrong| panic!("QUOIN_TEST_SEED={seed}, round {round}: {wrong}"));
        expected = there;
    }
    // Fewer would mean that the rounds killed an idle server.
    assert!(
        answered as u64 > rounds * CLIENTS,
        "only {answered} commands were answered"
    );
}

/// In every other round nothing pops, so every acknowledged payload must be there. In the others,
/// pops without a reply may have taken as many as they requested.
fn has_pops(round: u64) -> bool {
    round % 2 == 1
}

fn environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn load_until_killed(
    server: &mut Server,
    seed: u64,
    round: u64,
    kill_after: Duration,
) -> Vec<Account> {
    let address = server.address();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                scope.spawn(move || {
                    let mut account = Account::default();
                    let connection = Connection::open(address).unwrap();
                    let kinds = 0..if has_pops(round) { KINDS } else { POPS_FROM };
                    let random = StdRng::seed_from_u64(seed ^ (round << 32) ^ (client << 16));
                    // The thread ends with the server.
                    let name = format!("{round}-{client}");
                    let _ = load(connection, random, &name, kinds, &mut account);
                    account
                })
            })
            .collect();
        std::thread::sleep(kill_after);
        server.signal("KILL");
        server.wait();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    })
}

/// Sends pipelines until the connection breaks.
fn load(
    mut connection: Connection,
    mut random: StdRng,
    name: &str,
    kinds: std::ops::Range<u32>,
    account: &mut Account,
) -> io::Result<()> {
    let mut payloads = 0_u64;
    loop {
        let length = if random.random() {
            1
        } else {
            random.random_range(1..=PIPELINE_MAX)
        };
        let mut requests = Vec::new();
        for _ in 0..length {
            let kind = random.random_range(kinds.clone());
            let (request, words) = request(&mut random, name, kind, &mut payloads);
            account.sent(&request);
            connection.send_raw(&resp::encode(&words))?;
            requests.push(request);
        }
        for request in requests {
            let reply = connection.read()?;
            account.answered(&request, &reply);
        }
    }
}

fn request(random: &mut StdRng, name: &str, kind: u32, payloads: &mut u64) -> (Request, Words) {
    let list = LISTS[random.random_range(0..LISTS.len())];
    let set = SETS[random.random_range(0..SETS.len())];
    let queue = QUEUES[random.random_range(0..QUEUES.len())];
    let count = random.random_range(1..4_usize);
    let new_payloads: Vec<Vec<u8>> = (0..count)
        .map(|_| {
            *payloads += 1;
            let padding = if random.random_range(0..50) == 0 {
                3_000
            } else {
                0
            };
            format!("{name}-{payloads}-{}", "x".repeat(padding)).into_bytes()
        })
        .collect();
    let (request, words): (Request, Vec<Vec<u8>>) = match kind {
        0..4 => {
            let end = if random.random() { "LPUSH" } else { "RPUSH" };
            let words = [vec![end.into(), list.into()], new_payloads.clone()].concat();
            (Request::Push(new_payloads), words)
        }
        4 => {
            let (from, to) = if random.random() {
                ("LEFT", "RIGHT")
            } else {
                ("RIGHT", "RIGHT")
            };
            let other = LISTS[random.random_range(0..LISTS.len())];
            let words = vec![
                "LMOVE".into(),
                list.into(),
                other.into(),
                from.into(),
                to.into(),
            ];
            (Request::Move, words)
        }
        5..9 => {
            // Priorities that values share.
            let (verb, key, spread) = match kind {
                5 | 6 => ("ZADD", set, 50),
                _ => ("PQ.PUSH", queue, 3),
            };
            let mut words: Vec<Vec<u8>> = vec![verb.into(), key.into()];
            for payload in &new_payloads {
                words.push(random.random_range(-spread..spread).to_string().into());
                words.push(payload.clone());
            }
            (Request::Push(new_payloads), words)
        }
        9 => {
            let end = if random.random() { "MIN" } else { "MAX" };
            let other = QUEUES[random.random_range(0..QUEUES.len())];
            let words = ["PQ.MOVE", queue, other, end];
            (Request::Move, words.map(Into::into).into())
        }
        10 | 11 => {
            let end = if random.random() { "LPOP" } else { "RPOP" };
            let words = vec![end.into(), list.into(), count.to_string().into()];
            (Request::Pop(count), words)
        }
        12 => {
            let words = vec!["ZPOPMIN".into(), set.into(), count.to_string().into()];
            (Request::Pop(count), words)
        }
        _ => {
            let end = if random.random() {
                "PQ.POPMIN"
            } else {
                "PQ.POPMAX"
            };
            let words = vec![end.into(), queue.into(), count.to_string().into()];
            (Request::Pop(count), words)
        }
    };
    (request, words)
}

impl Account {
    fn sent(&mut self, request: &Request) {
        match request {
            Request::Push(payloads) => {
                for payload in payloads {
                    self.fates.insert(payload.clone(), Fate::PushInFlight);
                }
            }
            Request::Pop(count) => self.pops_in_flight += count,
            Request::Move => {}
        }
    }

    fn answered(&mut self, request: &Request, reply: &Value) {
        assert_eq!(reply.error(), None, "the store failed under load");
        self.answered += 1;
        match request {
            Request::Push(payloads) => {
                for payload in payloads {
                    self.fates.insert(payload.clone(), Fate::Pushed);
                }
            }
            Request::Pop(count) => {
                self.pops_in_flight -= count;
                let items = reply.items().unwrap_or_default().iter();
                // A sorted set's reply alternates members and scores, and a priority queue's is
                // similar.
                let payloads = items
                    .filter_map(Value::bytes)
                    .filter(|item| item.contains(&b'-'));
                let payloads = payloads.filter(|item| item.ends_with(b"-") || item.ends_with(b"x"));
                self.popped.extend(payloads.map(<[u8]>::to_vec));
            }
            Request::Move => {}
        }
    }
}

/// Every payload in a restarted server. Checks that lengths match the content.
fn contents(server: &Server) -> BTreeSet<Vec<u8>> {
    let mut connection = Connection::open(server.address()).unwrap();
    let mut there = BTreeSet::new();
    for (keys, length, read, parts) in [
        (LISTS, "LLEN", "LRANGE", 1),
        (SETS, "ZCARD", "ZRANGE", 1),
        // With priorities.
        (QUEUES, "PQ.LEN", "PQ.RANGE", 2),
    ] {
        for key in keys {
            let length = connection.command(&[length, key]).unwrap();
            let reply = connection.command(&[read, key, "0", "-1"]).unwrap();
            let items: Vec<&Value> = reply.items().unwrap().iter().step_by(parts).collect();
            assert_eq!(
                length.integer(),
                i64::try_from(items.len()).ok(),
                "length of {key}"
            );
            for item in items {
                let payload = item.bytes().unwrap().to_vec();
                assert!(there.insert(payload), "{item:?} is there twice");
            }
        }
    }
    there
}

/// `before`: the content of the server before the clients started.
fn check(
    before: &BTreeSet<Vec<u8>>,
    accounts: &[Account],
    there: &BTreeSet<Vec<u8>>,
) -> Result<(), String> {
    let mut fates: BTreeMap<&[u8], Fate> = before
        .iter()
        .map(|payload| (payload.as_slice(), Fate::Pushed))
        .collect();
    for (payload, fate) in accounts.iter().flat_map(|account| &account.fates) {
        fates.insert(payload, *fate);
    }
    for payload in accounts.iter().flat_map(|account| &account.popped) {
        match fates.insert(payload, Fate::Popped) {
            Some(Fate::Popped) => return Err(format!("{} was popped twice", show(payload))),
            None => return Err(format!("{} was popped and never pushed", show(payload))),
            Some(Fate::Pushed | Fate::PushInFlight) => {}
        }
    }
    for payload in there {
        match fates.get(payload.as_slice()) {
            None => return Err(format!("{} was never pushed", show(payload))),
            Some(Fate::Popped) => return Err(format!("{} came back", show(payload))),
            Some(Fate::Pushed | Fate::PushInFlight) => {}
        }
    }
    // Pops in flight when the server was killed may have taken some.
    let may_miss: usize = accounts.iter().map(|account| account.pops_in_flight).sum();
    let missing: Vec<String> = fates
        .iter()
        .filter(|(payload, fate)| **fate == Fate::Pushed && !there.contains(**payload))
        .map(|(payload, _)| show(payload))
        .collect();
    if missing.len() > may_miss {
        return Err(format!(
            "{} acknowledged payloads are lost where pops in flight can have taken {may_miss}: {missing:?}",
            missing.len()
        ));
    }
    Ok(())
}

fn show(payload: &[u8]) -> String {
    quoin_resp::wire::reply_reader::show_bytes(payload)
}
