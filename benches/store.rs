//! The embedded store alone, used as queues use it: one writer, each batch one durable transaction,
//! values of 100 bytes. `cargo bench --bench store -- --help` for settings.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Arg, ArgAction, Command, value_parser};
use futures_util::FutureExt;
use quoin_base::random::{Random, SeededRandom};
use quoin_store::{Isolation, KeyValue, RangeQuery, Store, StoreFuture, Transaction};
use quoin_store_embedded::{EmbeddedOptions, EmbeddedStore};

const BATCHES: [u64; 4] = [1, 16, 256, 4096];
const VALUE: [u8; 100] = [b'v'; 100];
const COUNTER: &[u8] = b"counter";
/// Prefix of the list's rows.
const LIST: &[u8] = b"element/";
const SCORES: &[u8] = b"score/";
const MEMBERS: &[u8] = b"member/";

/// A workload: its initial data, and one operation.
struct Workload {
    name: &'static str,
    items_before: u64,
    fill: fn(&dyn Transaction, &dyn Random),
    /// False when there is nothing left to do.
    operate: fn(&dyn Transaction, &dyn Random, u64) -> bool,
}

const WORKLOADS: [Workload; 8] = [
    Workload {
        name: "push",
        items_before: 0,
        fill: push,
        operate: |transaction, random, _| {
            push(transaction, random);
            true
        },
    },
    Workload {
        name: "pop",
        items_before: 400_000,
        fill: push,
        operate: |transaction, _, _| pop(transaction),
    },
    Workload {
        name: "steady push+pop on 1,000",
        items_before: 1_000,
        fill: push,
        operate: steady,
    },
    Workload {
        name: "steady push+pop on 300,000",
        items_before: 300_000,
        fill: push,
        operate: steady,
    },
    Workload {
        name: "PQ push, random scores",
        items_before: 0,
        fill: add,
        operate: |transaction, random, _| {
            add(transaction, random);
            true
        },
    },
    Workload {
        name: "PQ steady push+popmin on 100,000",
        items_before: 100_000,
        fill: add,
        operate: |transaction, random, number| {
            if number % 2 == 0 {
                add(transaction, random);
                return true;
            }
            pop_min(transaction)
        },
    },
    Workload {
        name: "3 sets",
        items_before: 0,
        fill: push,
        operate: |transaction, _, number| {
            set_three(transaction, number);
            true
        },
    },
    Workload {
        name: "3 sets and a savepoint",
        items_before: 0,
        fill: push,
        operate: |transaction, _, number| {
            let savepoint = transaction.savepoint();
            set_three(transaction, number);
            transaction.release(savepoint);
            true
        },
    },
];

/// Sets three keys, which often exist already.
fn set_three(transaction: &dyn Transaction, number: u64) {
    for part in 0..3_u64 {
        let index = (number * 7 + part) % 10_000;
        transaction.set(&key(LIST, &[&index.to_be_bytes()]), &VALUE);
    }
}

fn steady(transaction: &dyn Transaction, random: &dyn Random, number: u64) -> bool {
    if number.is_multiple_of(2) {
        push(transaction, random);
        return true;
    }
    pop(transaction)
}

/// A result of the embedded store, which is ready immediately.
fn now<T: Unpin>(future: StoreFuture<'_, T>) -> T {
    future.now_or_never().unwrap().unwrap()
}

fn key(prefix: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    [prefix, &parts.concat()].concat()
}

fn outermost(transaction: &dyn Transaction, prefix: &[u8], reverse: bool) -> Option<KeyValue> {
    let rows = now(transaction.get_range(RangeQuery {
        begin: prefix,
        end: &key(prefix, &[&[0xff]]),
        limit: 1,
        reverse,
        isolation: Isolation::Snapshot,
    }));
    rows.into_iter().next()
}

/// Finds the last element, adds one after it, and counts.
fn push(transaction: &dyn Transaction, _: &dyn Random) {
    let index = outermost(transaction, LIST, true).map_or(0, |row| {
        u64::from_be_bytes(row.key[LIST.len()..].try_into().unwrap()) + 1
    });
    transaction.set(&key(LIST, &[&index.to_be_bytes()]), &VALUE);
    transaction.atomic_add(COUNTER, 1);
}

/// Finds the first element, removes it, and counts.
fn pop(transaction: &dyn Transaction) -> bool {
    let Some(row) = outermost(transaction, LIST, false) else {
        return false;
    };
    transaction.clear(&row.key);
    transaction.atomic_add(COUNTER, -1);
    true
}

/// A member of random score: a row by score, a row by member.
fn add(transaction: &dyn Transaction, random: &dyn Random) {
    let score = random.next_u64() >> 1;
    let mut member = VALUE;
    member[..8].copy_from_slice(&random.next_u64().to_be_bytes());
    transaction.set(&key(SCORES, &[&score.to_be_bytes(), &member]), b"");
    transaction.set(&key(MEMBERS, &[&member]), &score.to_be_bytes());
    transaction.atomic_add(COUNTER, 1);
}

fn pop_min(transaction: &dyn Transaction) -> bool {
    let Some(row) = outermost(transaction, SCORES, false) else {
        return false;
    };
    let member = &row.key[SCORES.len() + 8..];
    transaction.clear(&row.key);
    transaction.clear(&key(MEMBERS, &[member]));
    transaction.atomic_add(COUNTER, -1);
    true
}

fn main() {
    let matches = Command::new("store")
        .arg(
            Arg::new("seconds")
                .long("seconds")
                .help("Time for each figure")
                .default_value("1")
                .value_parser(value_parser!(u64)),
        )
        .arg(
            Arg::new("folder")
                .long("folder")
                .help("Where the store's temporary folders are made")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("bench")
                .long("bench")
                .hide(true)
                .action(ArgAction::SetTrue),
        )
        .get_matches();
    let duration = Duration::from_secs(*matches.get_one("seconds").unwrap());
    let folder = matches
        .get_one::<PathBuf>("folder")
        .cloned()
        .unwrap_or_else(std::env::temp_dir);
    println!("Thousands of operations a second, by operations in a transaction:");
    print!("{:36}", "");
    for batch in BATCHES {
        print!("{batch:>9}");
    }
    println!();
    for workload in &WORKLOADS {
        print!("{:36}", workload.name);
        for batch in BATCHES {
            print!(
                "{:>9.1}",
                measure(workload, batch, duration, &folder) / 1_000.0
            );
        }
        println!();
    }
}

/// Operations a second.
fn measure(workload: &Workload, batch: u64, duration: Duration, folder: &PathBuf) -> f64 {
    let folder = tempfile::tempdir_in(folder).unwrap();
    let store = EmbeddedStore::open(folder.path(), EmbeddedOptions::default()).unwrap();
    let random = SeededRandom::new(batch);
    let mut filled = 0;
    while filled < workload.items_before {
        let transaction = store.begin_write().unwrap();
        for _ in 0..workload.items_before.min(10_000) {
            (workload.fill)(&*transaction, &random);
            filled += 1;
        }
        now(transaction.commit());
    }
    let started = Instant::now();
    let mut operations = 0;
    let mut is_empty = false;
    while !is_empty && started.elapsed() < duration {
        let transaction = store.begin_write().unwrap();
        for _ in 0..batch {
            if !(workload.operate)(&*transaction, &random, operations) {
                is_empty = true;
                break;
            }
            operations += 1;
        }
        now(transaction.commit());
    }
    #[allow(clippy::cast_precision_loss)]
    let rate = operations as f64 / started.elapsed().as_secs_f64();
    rate
}
