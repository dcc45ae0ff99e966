//! Compares the store as its users see it with a map, wherever its rows are: in any layer or in the
//! data file.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::{EmbeddedOptions, EmbeddedStore, FsyncPolicy};
use quoin_base::random::{Random, SeededRandom};
use quoin_store::{Isolation, ReadTransaction, Store, StoreFuture, Transaction};

const KEYS: u64 = 60;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn now<T: Unpin>(mut future: StoreFuture<'_, T>) -> T {
    match Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer.unwrap(),
        Poll::Pending => panic!("the embedded store must answer at once"),
    }
}

fn open(folder: &tempfile::TempDir, fsync: FsyncPolicy) -> EmbeddedStore {
    let options = EmbeddedOptions {
        fsync,
        map_bytes: 64 << 20,
        ..EmbeddedOptions::default()
    };
    EmbeddedStore::open(folder.path(), options).unwrap()
}

fn key(random: &SeededRandom) -> Vec<u8> {
    let number = random.below(KEYS) as u8;
    // Some keys are prefixes of others.
    if number.is_multiple_of(5) {
        vec![number, 0]
    } else {
        vec![number]
    }
}

fn query<'q>(begin: &'q [u8], end: &'q [u8], limit: usize, reverse: bool) -> RangeQuery<'q> {
    RangeQuery {
        begin,
        end,
        limit,
        reverse,
        isolation: Isolation::Snapshot,
    }
}

fn expected(model: &Model, query: &RangeQuery<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    if query.begin >= query.end {
        return Vec::new();
    }
    let range = model.range(query.begin.to_vec()..query.end.to_vec());
    let owned = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
    if query.reverse {
        range.rev().take(query.limit).map(owned).collect()
    } else {
        range.take(query.limit).map(owned).collect()
    }
}

fn check<R: ReadTransaction + ?Sized>(reader: &R, model: &Model, random: &SeededRandom) {
    for _ in 0..6 {
        let (begin, end) = match random.below(4) {
            0 => (Vec::new(), vec![0xff]),
            _ => (key(random), key(random)),
        };
        let limit = [1, 1, 2, 7, usize::MAX][random.below(5) as usize];
        let query = query(&begin, &end, limit, random.below(2) == 0);
        let rows = now(reader.get_range(query));
        let rows: Vec<_> = rows
            .into_iter()
            .map(|row| (row.key.to_vec(), row.value.to_vec()))
            .collect();
        assert_eq!(rows, expected(model, &query), "{query:?}");
        let key = key(random);
        let value = now(reader.get(&key, Isolation::Snapshot));
        assert_eq!(value.as_deref(), model.get(&key).map(Vec::as_slice));
    }
}

/// Pops some rows like a queue's commands: a range read, then a clear of what it found.
fn pop(transaction: &dyn Transaction, model: &mut Model, random: &SeededRandom) {
    let (begin, end) = (key(random), key(random));
    let limit = 1 + random.below(3) as usize;
    let query = query(&begin, &end, limit, random.below(2) == 0);
    let rows = now(transaction.get_range(query));
    if let [first, .., last] = rows.as_slice()
        && random.below(2) == 0
    {
        let (first, last) = ((&first.key).min(&last.key), (&first.key).max(&last.key));
        let end = [last, [0].as_slice()].concat();
        transaction.clear_range(first, &end);
        model.retain(|key, _| **key < **first || *key >= end);
        return;
    }
    for row in rows {
        if random.below(8) == 0 {
            continue;
        }
        transaction.clear(&row.key);
        model.remove(&*row.key);
    }
}

fn write(transaction: &dyn Transaction, model: &mut Model, random: &SeededRandom) {
    let at = key(random);
    match random.below(10) {
        0..4 => {
            let value = vec![random.next_u64() as u8; random.below(20) as usize];
            transaction.set(&at, &value);
            model.insert(at, value);
        }
        4 | 5 => {
            transaction.clear(&at);
            model.remove(&at);
        }
        6 => {
            let end = key(random);
            transaction.clear_range(&at, &end);
            model.retain(|key, _| *key < at || *key >= end);
        }
        7 => {
            let mut number = [0; 8];
            let before = model.get(&at).cloned().unwrap_or_default();
            number
                .iter_mut()
                .zip(&before)
                .for_each(|(to, from)| *to = *from);
            let sum = u64::from_le_bytes(number).wrapping_add(7);
            transaction.atomic_add(&at, 7);
            model.insert(at, sum.to_le_bytes().to_vec());
        }
        _ => pop(transaction, model, random),
    }
}

fn run(seed: u64, fsync: FsyncPolicy) {
    let random = SeededRandom::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(&folder, fsync);
    let mut model = Model::new();
    for _ in 0..120 {
        match random.below(10) {
            0 => store.drain_now(),
            1 | 2 => store.shared.overlay.close_newest(),
            3 if random.below(6) == 0 => {
                drop(store);
                store = open(&folder, fsync);
            }
            _ => {}
        }
        let before = store.begin_read().unwrap();
        let model_before = model.clone();
        let transaction = store.begin_write().unwrap();
        for _ in 0..random.below(12) {
            write(&*transaction, &mut model, &random);
            if random.below(4) == 0 {
                check(&*transaction, &model, &random);
            }
        }
        if random.below(5) == 0 {
            drop(transaction);
            model.clone_from(&model_before);
        } else {
            now(transaction.commit());
        }
        check(&*store.begin_read().unwrap(), &model, &random);
        check(&*before, &model_before, &random);
        if random.below(3) == 0 {
            store.drain_now();
            check(&*before, &model_before, &random);
        }
    }
}

#[test]
fn layers_and_data_file_read_as_one() {
    for seed in 0..30 {
        run(seed, FsyncPolicy::EverySecond);
    }
}

#[test]
fn layers_and_data_file_read_as_one_with_every_commit_synced() {
    for seed in 100..106 {
        run(seed, FsyncPolicy::Always);
    }
}

fn element(index: u32) -> Vec<u8> {
    [b"list/".as_slice(), &index.to_be_bytes()].concat()
}

fn pop_all_but_one(reverse: bool, rows_at_once: usize) {
    const ELEMENTS: u32 = 300;
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder, FsyncPolicy::EverySecond);
    let transaction = store.begin_write().unwrap();
    for index in 0..ELEMENTS {
        transaction.set(&element(index), b"value");
    }
    now(transaction.commit());
    store.drain_now();
    for _ in 0..(ELEMENTS - 1) / 13 {
        let transaction = store.begin_write().unwrap();
        for _ in 0..13 / rows_at_once {
            let query = query(b"list/", b"list0", rows_at_once, reverse);
            let mut keys: Vec<_> = now(transaction.get_range(query))
                .into_iter()
                .map(|row| row.key)
                .collect();
            keys.sort();
            match keys.as_slice() {
                [key] => transaction.clear(key),
                [first, .., last] => {
                    transaction.clear_range(first, &[last, [0].as_slice()].concat());
                }
                [] => panic!("the list is not empty yet"),
            }
            // The command also writes something else.
            transaction.set(b"counter", b"");
        }
        now(transaction.commit());
    }
    let (layers, _) = store
        .shared
        .overlay
        .snapshot(&store.environment, 0)
        .unwrap();
    let ranges: usize = layers.iter().map(|layer| layer.cleared().len()).sum();
    assert_eq!(ranges, 1, "a run of pops is one range");
    let left =
        now(store
            .begin_read()
            .unwrap()
            .get_range(query(b"list/", b"list0", usize::MAX, reverse)));
    assert_eq!(left.len(), (ELEMENTS - ELEMENTS / 13 * 13) as usize);
}

#[test]
fn pops_from_the_front_leave_one_cleared_range() {
    pop_all_but_one(false, 1);
    pop_all_but_one(false, 13);
}

#[test]
fn pops_from_the_back_leave_one_cleared_range() {
    pop_all_but_one(true, 1);
    pop_all_but_one(true, 13);
}
