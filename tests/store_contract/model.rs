//! Long random histories, compared with a plain map.

use std::collections::BTreeMap;

use bytes::Bytes;
use quoin_base::random::{Random, SeededRandom};
use quoin_store::{Isolation, RangeQuery, ReadTransaction, StoreError, Transaction};
use quoin_store_embedded::{EmbeddedOptions, EmbeddedStore, FsyncPolicy};

use crate::stores;
use crate::subject::{Subject, wait};

const STEPS: usize = 4000;
const ATTEMPTS_MAX: u32 = 100;

pub type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// One of few short keys, so that writes, clears and ranges often overlap.
fn random_key(random: &SeededRandom) -> Vec<u8> {
    let length = 1 + random.below(3) as usize;
    (0..length)
        .map(|_| [b'a', b'b', b'c', 0, 0xfe][random.below(5) as usize])
        .collect()
}

pub enum Step {
    Set(Vec<u8>, Vec<u8>),
    Add(Vec<u8>, i64),
    Min(Vec<u8>, u64),
    Clear(Vec<u8>),
    ClearRange(Vec<u8>, Vec<u8>),
    Get(Vec<u8>),
    Range(Vec<u8>, Vec<u8>, usize, bool),
}

pub fn random_step(random: &SeededRandom) -> Step {
    let key = random_key(random);
    match random.below(16) {
        0..=3 => {
            let length = random.below(20) as usize;
            Step::Set(key, vec![random.next_u64() as u8; length])
        }
        4..=5 => Step::Add(key, random.next_u64() as i64),
        6 => Step::Min(key, random.next_u64()),
        7 => Step::Clear(key),
        8 => Step::ClearRange(key, random_key(random)),
        9..=11 => Step::Get(key),
        _ => Step::Range(
            key,
            random_key(random),
            random.below(12) as usize,
            random.below(2) == 1,
        ),
    }
}

fn apply(step: &Step, map: &mut Map) {
    match step {
        Step::Set(key, value) => drop(map.insert(key.clone(), value.clone())),
        Step::Add(key, delta) => {
            let mut number = [0; 8];
            if let Some(value) = map.get(key) {
                let length = value.len().min(8);
                number[..length].copy_from_slice(&value[..length]);
            }
            let sum = i64::from_le_bytes(number).wrapping_add(*delta);
            map.insert(key.clone(), sum.to_le_bytes().to_vec());
        }
        Step::Min(key, operand) => {
            let mut number = operand.to_le_bytes();
            if let Some(value) = map.get(key) {
                let mut before = [0; 8];
                let length = value.len().min(8);
                before[..length].copy_from_slice(&value[..length]);
                if u64::from_le_bytes(before) < *operand {
                    number = before;
                }
            }
            map.insert(key.clone(), number.to_vec());
        }
        Step::Clear(key) => drop(map.remove(key)),
        Step::ClearRange(begin, end) => map.retain(|key, _| key < begin || key >= end),
        Step::Get(_) | Step::Range(..) => {}
    }
}

fn expected_rows(map: &Map, step: (&[u8], &[u8], usize, bool)) -> Rows {
    let (begin, end, limit, reverse) = step;
    let inside = map
        .iter()
        .filter(|(key, _)| begin <= key.as_slice() && key.as_slice() < end)
        .map(|(key, value)| (key.clone(), value.clone()));
    if reverse {
        inside.rev().take(limit).collect()
    } else {
        inside.take(limit).collect()
    }
}

/// Runs a step and compares what it reads with the map.
pub fn run(
    subject: &Subject,
    step: &Step,
    transaction: &dyn Transaction,
    map: &mut Map,
) -> Result<(), StoreError> {
    let key = |key: &[u8]| subject.key(key);
    match step {
        Step::Set(at, value) => transaction.set(&key(at), value),
        Step::Add(at, delta) => transaction.atomic_add(&key(at), *delta),
        Step::Min(at, operand) => transaction.atomic_min(&key(at), *operand),
        Step::Clear(at) => transaction.clear(&key(at)),
        Step::ClearRange(begin, end) => transaction.clear_range(&key(begin), &key(end)),
        Step::Get(at) => {
            let found = wait(transaction.get(&key(at), Isolation::Serializable))?;
            assert_eq!(found.as_deref(), map.get(at).map(Vec::as_slice));
        }
        Step::Range(begin, end, limit, reverse) => {
            let found = read_rows(subject, transaction, (begin, end, *limit, *reverse))?;
            assert_eq!(found, expected_rows(map, (begin, end, *limit, *reverse)));
        }
    }
    apply(step, map);
    Ok(())
}

fn read_rows<R: ReadTransaction + ?Sized>(
    subject: &Subject,
    transaction: &R,
    (begin, end, limit, reverse): (&[u8], &[u8], usize, bool),
) -> Result<Rows, StoreError> {
    let rows = wait(transaction.get_range(RangeQuery {
        begin: &subject.key(begin),
        end: &subject.key(end),
        limit,
        reverse,
        isolation: Isolation::Serializable,
    }))?;
    Ok(rows
        .into_iter()
        .map(|row| (row.key[subject.prefix.len()..].to_vec(), row.value.to_vec()))
        .collect())
}

/// Runs one transaction until it is known to be applied. Returns the resulting map. Every
/// transaction writes its own number, which shows whether one with an unknown result was applied.
fn transact(subject: &Subject, number: u64, steps: &[Step], map: &Map) -> Map {
    let marker = [subject.prefix.as_slice(), &[0xff; 2], b"marker"].concat();
    for _ in 0..ATTEMPTS_MAX {
        let mut after = map.clone();
        let mut attempt = || -> Result<(), StoreError> {
            let transaction = subject.store.begin_write()?;
            for step in steps {
                run(subject, step, transaction.as_ref(), &mut after)?;
            }
            transaction.set(&marker, &number.to_le_bytes());
            wait(transaction.commit())
        };
        match attempt() {
            Ok(()) => return after,
            Err(StoreError::UnknownResult) => {
                if applied(subject, &marker)
                    .is_some_and(|found| found == number.to_le_bytes().as_slice())
                {
                    return after;
                }
            }
            Err(
                StoreError::Conflict
                | StoreError::TooOld
                | StoreError::Unreachable(_)
                | StoreError::Unavailable(_),
            ) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("no success in {ATTEMPTS_MAX} attempts");
}

fn applied(subject: &Subject, marker: &[u8]) -> Option<Bytes> {
    for _ in 0..ATTEMPTS_MAX {
        let Ok(snapshot) = subject.store.begin_read() else {
            continue;
        };
        if let Ok(found) = wait(snapshot.get(marker, Isolation::Snapshot)) {
            return found;
        }
    }
    panic!("no read in {ATTEMPTS_MAX} attempts");
}

fn history(subject: &Subject, seed: u64, mut map: Map) -> Map {
    let random = SeededRandom::new(seed);
    let mut steps_left = STEPS;
    let mut number = 0;
    while steps_left > 0 {
        let count = steps_left.min(1 + random.below(30) as usize);
        steps_left -= count;
        number += 1;
        let steps: Vec<Step> = (0..count).map(|_| random_step(&random)).collect();
        if random.below(8) == 0 {
            abandon(subject, &steps, &map);
        } else {
            map = transact(subject, number, &steps, &map);
        }
    }
    check(subject, &map, seed);
    assert!(!map.is_empty());
    map
}

/// Compares everything stored with the map.
pub fn check(subject: &Subject, map: &Map, seed: u64) {
    let whole: (&[u8], &[u8], usize, bool) = (b"", &[0xff], usize::MAX >> 1, false);
    let stored = (0..ATTEMPTS_MAX)
        .find_map(|_| {
            let snapshot = subject.store.begin_read().ok()?;
            read_rows(subject, snapshot.as_ref(), whole).ok()
        })
        .unwrap();
    assert_eq!(stored, expected_rows(map, whole), "seed {seed}");
}

/// Runs a transaction and drops it.
fn abandon(subject: &Subject, steps: &[Step], map: &Map) {
    let mut dropped = map.clone();
    if let Ok(transaction) = subject.store.begin_write() {
        for step in steps {
            if run(subject, step, transaction.as_ref(), &mut dropped).is_err() {
                return;
            }
        }
    }
}

pub fn a_random_history_matches_a_map(subject: &Subject) {
    history(subject, 1, Map::new());
}

#[test]
fn a_random_history_matches_a_map_under_faults() {
    for seed in 1..=4 {
        history(&stores::failing("faults", seed, false), seed, Map::new());
    }
}

#[test]
fn a_random_history_matches_a_map_under_faults_of_a_cluster() {
    for seed in 1..=4 {
        history(&stores::failing("faults", seed, true), seed, Map::new());
    }
}

#[test]
fn a_random_history_goes_on_after_a_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let mut map = Map::new();
    for seed in 1..=4 {
        let fsync = [FsyncPolicy::Always, FsyncPolicy::EverySecond][seed as usize % 2];
        let options = EmbeddedOptions {
            fsync,
            map_bytes: 64 << 20,
            ..EmbeddedOptions::default()
        };
        let subject = Subject {
            store: Box::new(EmbeddedStore::open(folder.path(), options).unwrap()),
            prefix: b"reopened/".to_vec(),
            is_shared: false,
            _folder: None,
        };
        map = history(&subject, seed, map);
    }
}
