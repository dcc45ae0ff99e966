//! Random operations against a model in memory.

use std::collections::BTreeMap;

use proptest::prelude::*;

use quoin_engine::testing::Bench;
use quoin_resp::reply::Reply;
use quoin_store::faults::FaultRates;

#[derive(Debug, Clone)]
enum Operation {
    Add(usize, i32),
    Increment(usize, i32),
    Remove(usize, usize),
    PopMin(usize),
    PopMax(usize),
    RemoveRanks(i64, i64),
    RemoveScores(i32, i32),
}

fn operation() -> impl Strategy<Value = Operation> {
    let member = 0..MEMBERS;
    let score = -2..3_i32;
    prop_oneof![
        8 => (member.clone(), score.clone()).prop_map(|(m, s)| Operation::Add(m, s)),
        3 => (member.clone(), score.clone()).prop_map(|(m, s)| Operation::Increment(m, s)),
        3 => (member.clone(), member).prop_map(|(m, n)| Operation::Remove(m, n)),
        1 => (0..4_usize).prop_map(Operation::PopMin),
        1 => (0..4_usize).prop_map(Operation::PopMax),
        1 => (-4..4_i64, -4..4_i64).prop_map(|(a, b)| Operation::RemoveRanks(a, b)),
        1 => (score.clone(), score).prop_map(|(a, b)| Operation::RemoveScores(a, b)),
    ]
}

const MEMBERS: usize = 20;

/// Short members, binary ones, and long ones that share the bytes that a key can hold.
fn member(number: usize) -> Vec<u8> {
    let zeros = vec![0; 900];
    let letters = vec![b'p'; 900];
    match number {
        0 => Vec::new(),
        1..=3 => vec![0; number],
        4..=7 => vec![0xff, 0, number as u8],
        8 => zeros,
        9..=11 => [zeros, vec![0; number]].concat(),
        12 => letters,
        13..=18 => [letters, vec![number as u8; number]].concat(),
        _ => [letters, vec![0xff; 100_000]].concat(),
    }
}

/// Scores and members; scores are small integers, so their order is that of integers.
type Model = BTreeMap<(i32, Vec<u8>), ()>;

fn score_of(model: &Model, member: &[u8]) -> Option<i32> {
    model
        .keys()
        .find(|(_, other)| other == member)
        .map(|(score, _)| *score)
}

fn put(model: &mut Model, member: &[u8], score: i32) -> i64 {
    let old = score_of(model, member);
    if let Some(old) = old {
        model.remove(&(old, member.to_vec()));
    }
    model.insert((score, member.to_vec()), ());
    i64::from(old.is_none())
}

fn as_pairs<'m>(entries: impl Iterator<Item = &'m (i32, Vec<u8>)>) -> Reply {
    Reply::Pairs(
        entries
            .map(|(score, member)| {
                (
                    Reply::bulk(member.clone()),
                    Reply::Double(f64::from(*score)),
                )
            })
            .collect(),
    )
}

fn apply(bench: &Bench, model: &mut Model, operation: &Operation) {
    let number = |number: &dyn ToString| number.to_string().into_bytes();
    match operation {
        Operation::Add(at, score) => {
            let reply = bench.run_words(&[b"ZADD", b"z", &number(score), &member(*at)]);
            let added = put(model, &member(*at), *score);
            assert_eq!(reply, Reply::Integer(added));
        }
        Operation::Increment(at, by) => {
            let reply = bench.run_words(&[b"ZINCRBY", b"z", &number(by), &member(*at)]);
            let score = score_of(model, &member(*at)).unwrap_or(0) + by;
            put(model, &member(*at), score);
            assert_eq!(reply, Reply::Double(f64::from(score)));
        }
        Operation::Remove(first, second) => {
            let reply = bench.run_words(&[b"ZREM", b"z", &member(*first), &member(*second)]);
            let before = model.len();
            model.retain(|(_, other), ()| *other != member(*first) && *other != member(*second));
            assert_eq!(reply, Reply::count(before - model.len()));
        }
        Operation::PopMin(count) => {
            let reply = bench.run_words(&[b"ZPOPMIN", b"z", &number(count)]);
            assert_eq!(reply, as_pairs(model.keys().take(*count)));
            let taken: Vec<_> = model.keys().take(*count).cloned().collect();
            model.retain(|entry, ()| !taken.contains(entry));
        }
        Operation::PopMax(count) => {
            let reply = bench.run_words(&[b"ZPOPMAX", b"z", &number(count)]);
            assert_eq!(reply, as_pairs(model.keys().rev().take(*count)));
            let taken: Vec<_> = model.keys().rev().take(*count).cloned().collect();
            model.retain(|entry, ()| !taken.contains(entry));
        }
        Operation::RemoveRanks(start, stop) => {
            let reply = bench.run_words(&[b"ZREMRANGEBYRANK", b"z", &number(start), &number(stop)]);
            let length = model.len() as i64;
            let from_end = |rank: i64| if rank < 0 { rank + length } else { rank };
            let inside = from_end(*start).max(0)..=from_end(*stop);
            let mut rank = -1;
            model.retain(|_, ()| {
                rank += 1;
                !inside.contains(&rank)
            });
            assert_eq!(reply, Reply::Integer(length - model.len() as i64));
        }
        Operation::RemoveScores(min, max) => {
            let reply = bench.run_words(&[b"ZREMRANGEBYSCORE", b"z", &number(min), &number(max)]);
            let before = model.len();
            model.retain(|(score, _), ()| !(*min..=*max).contains(score));
            assert_eq!(reply, Reply::count(before - model.len()));
        }
    }
}

fn check(bench: &Bench, model: &Model) {
    assert_eq!(bench.run("ZCARD z"), Reply::count(model.len()));
    assert_eq!(
        bench.run("ZRANGE z 0 -1 WITHSCORES"),
        as_pairs(model.keys())
    );
    assert_eq!(
        bench.run("ZRANGE z 0 -1 REV WITHSCORES"),
        as_pairs(model.keys().rev())
    );
    for (rank, (score, member)) in model.keys().enumerate() {
        let reply = bench.run_words(&[b"ZRANK", b"z", member, b"WITHSCORE"]);
        let score = Reply::Double(f64::from(*score));
        assert_eq!(reply, Reply::Array(vec![Reply::count(rank), score]));
    }
}

/// Applies operations to a bench and to a model, and then removes all members.
fn run_against_model(bench: &Bench, operations: &[Operation]) {
    let mut model = Model::new();
    for (number, operation) in operations.iter().enumerate() {
        apply(bench, &mut model, operation);
        if number % 8 == 0 {
            check(bench, &model);
        }
    }
    check(bench, &model);
    for (_, member) in model.keys() {
        let reply = bench.run_words(&[b"ZREM", b"z", member]);
        assert_eq!(reply, Reply::Integer(1));
    }
    assert_eq!(bench.data_rows(), 0);
    assert_eq!(bench.run("RPUSH z x"), Reply::Integer(1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_operations_leave_what_they_leave_in_the_model(
        operations in proptest::collection::vec(operation(), 1..60),
        is_cluster_like: bool,
    ) {
        let bench = if is_cluster_like { Bench::cluster_like() } else { Bench::embedded() };
        run_against_model(&bench, &operations);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn each_operation_is_done_once_whatever_the_store_does(
        operations in proptest::collection::vec(operation(), 20..40),
        seed: u64,
    ) {
        let (bench, faulty) = Bench::faulty(seed);
        faulty.set_rates(FaultRates {
            conflict_ppm: 100_000,
            unknown_applied_ppm: 100_000,
            unknown_not_applied_ppm: 100_000,
            too_old_ppm: 10_000,
            ..FaultRates::default()
        });
        let mut model = Model::new();
        for operation in &operations {
            apply(&bench, &mut model, operation);
        }
        let faults = faulty.counts().total();
        faulty.set_rates(FaultRates::default());
        check(&bench, &model);
        prop_assert!(faults > 0);
    }
}
