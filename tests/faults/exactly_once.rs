//! With frequent faults, every push and every pop happens exactly once or, if its client was told
//! so, not at all. Lengths match the content.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use quoin_engine::Executor;
use quoin_resp::reply::Reply;
use quoin_store::Store;
use quoin_store::faults::FaultRates;

use crate::bench::{Bench, Words, bulks, cluster, embedded, error, submit};

const SUBMITTERS: usize = 12;
const PIPELINES: usize = 80;
const LISTS: [&str; 2] = ["list:a", "list:b"];
const SETS: [&str; 2] = ["set:a", "set:b"];
const QUEUES: [&str; 2] = ["queue:a", "queue:b"];

const RATES: FaultRates = FaultRates {
    conflict_ppm: 150_000,
    unknown_applied_ppm: 100_000,
    unknown_not_applied_ppm: 100_000,
    too_old_ppm: 1_000,
    unavailable_ppm: 0,
};

/// What a client knows about its pushes and pops.
#[derive(Default)]
struct Account {
    /// Payloads whose push succeeded.
    pushed: Vec<Vec<u8>>,
    /// Payloads whose push was refused.
    refused: Vec<Vec<u8>>,
    popped: Vec<Vec<u8>>,
}

fn is_payload(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'p')
}

/// Clients push and pop without order between them.
async fn client(server: &Executor, number: usize) -> Account {
    let mut account = Account::default();
    for round in 0..PIPELINES {
        let mut commands: Vec<Words> = Vec::new();
        for step in 0..=(round + number) % 3 {
            commands.push(command(number, round, step));
        }
        let replies = submit(server, &commands).await;
        assert_eq!(replies.len(), commands.len());
        for (words, reply) in commands.iter().zip(&replies) {
            account.note(words, reply);
        }
    }
    account
}

fn command(number: usize, round: usize, step: usize) -> Words {
    let payload = |part: usize| format!("p{number}-{round}-{step}-{part}");
    let mix = number * 7 + round * 3 + step;
    let list = LISTS[mix % 2];
    let set = SETS[mix / 2 % 2];
    let queue = QUEUES[mix / 3 % 2];
    let line = match mix % 13 {
        0 | 1 => format!("LPUSH {list} {} {}", payload(0), payload(1)),
        2 => format!("RPUSH {list} {}", payload(0)),
        3 => format!("LPOP {list}"),
        4 => format!("RPOP {list} 2"),
        5 => format!("LMOVE {list} {} LEFT RIGHT", LISTS[(mix + 1) % 2]),
        6 => format!("ZADD {set} {} {} 5 {}", mix % 11, payload(0), payload(1)),
        7 => format!("ZPOPMIN {set} 2"),
        8 => format!(
            "PQ.PUSH {queue} {} {} 1.5 {}",
            mix % 3,
            payload(0),
            payload(1)
        ),
        9 => format!("PQ.PUSH {queue} {} {}", mix % 2, payload(0)),
        10 => format!("PQ.POPMIN {queue} 2"),
        11 => format!("PQ.POPMAX {queue}"),
        12 => format!("PQ.MOVE {queue} {} MAX", QUEUES[(mix / 3 + 1) % 2]),
        _ => format!("ZADD {set} {} {}", mix % 7, payload(0)),
    };
    crate::bench::words(&line)
}

impl Account {
    fn note(&mut self, words: &Words, reply: &Reply) {
        let payloads = words.iter().filter(|word| is_payload(word)).cloned();
        match error(reply) {
            Some(line) => {
                // Conflicts may cause only this error, and what it says must be true.
                assert!(line.starts_with("TRYAGAIN"), "{line}");
                self.refused.extend(payloads);
            }
            None if words[0].ends_with(b"PUSH") || words[0] == b"ZADD" => {
                self.pushed.extend(payloads);
            }
            None if words[0].ends_with(b"MOVE") => {}
            None => {
                let taken = bulks(reply).into_iter().filter(|item| is_payload(item));
                self.popped.extend(taken);
            }
        }
    }
}

fn every_write_happens_once<S: Store>(bench: &Bench<S>) {
    bench.store.set_rates(RATES);
    let accounts = bench
        .runtime
        .block_on(join_all((0..SUBMITTERS).map(|number| {
            let server = &bench.servers[number % bench.servers.len()];
            client(server, number)
        })));
    let faults = bench.store.counts();
    assert!(faults.conflict > 0 && faults.unknown_applied > 0 && faults.unknown_not_applied > 0);
    bench.heal();

    let mut seen: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for payload in accounts.iter().flat_map(|account| &account.popped) {
        *seen.entry(payload.clone()).or_default() += 1;
    }
    for payload in there(bench) {
        *seen.entry(payload).or_default() += 1;
    }
    for payload in accounts.iter().flat_map(|account| &account.pushed) {
        let times = seen.remove(payload);
        assert_eq!(times, Some(1), "{}", payload.escape_ascii());
    }
    for payload in accounts.iter().flat_map(|account| &account.refused) {
        assert_eq!(seen.get(payload), None, "{}", payload.escape_ascii());
    }
    assert!(seen.is_empty(), "never pushed: {seen:?}");
}

/// Everything that is stored. Compares it with lengths, and checks that emptied keys cease to
/// exist.
fn there<S: Store>(bench: &Bench<S>) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for (keys, length, read, pop) in [
        (LISTS, "LLEN", "LRANGE", "LPOP"),
        (SETS, "ZCARD", "ZRANGE", "ZPOPMIN"),
        (QUEUES, "PQ.LEN", "PQ.RANGE", "PQ.POPMAX"),
    ] {
        for key in keys {
            let items = bench.items(&format!("{read} {key} 0 -1"));
            let length = bench.run(&format!("{length} {key}"));
            assert_eq!(length, Reply::count(items.len()), "length of {key}");
            if let Some(count) = Some(items.len()).filter(|count| *count > 0) {
                bench.run(&format!("{pop} {key} {count}"));
            }
            assert_eq!(bench.run(&format!("EXISTS {key}")), Reply::Integer(0));
            found.extend(items);
        }
    }
    found
}

#[test]
fn every_write_happens_once_with_a_single_writer() {
    every_write_happens_once(&embedded());
}

#[test]
fn every_write_happens_once_with_parallel_batches() {
    every_write_happens_once(&cluster(1));
}

#[test]
fn every_write_happens_once_with_two_servers_on_one_store() {
    every_write_happens_once(&cluster(2));
}
