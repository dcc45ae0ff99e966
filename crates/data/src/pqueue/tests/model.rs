//! Random operations against a model in memory.

use std::cmp::Reverse;
use std::sync::Arc;

use proptest::prelude::*;

use quoin_base::random::SeededRandom;
use quoin_engine::testing::Bench;
use quoin_resp::reply::Reply;
use quoin_store::Store;
use quoin_store::faults::{FaultRates, FaultyStore, OptimisticStore};

/// Priorities as clients write them, with their rank.
const PRIORITIES: [(&str, u8); 9] = [
    ("-inf", 0),
    ("-1.5", 1),
    ("0", 2),
    ("1", 3),
    ("1.0", 3),
    ("9007199254740992.0", 4),
    ("9007199254740993", 5),
    ("9007199254740994", 6),
    ("inf", 7),
];

const QUEUES: [&str; 2] = ["a", "b"];

#[derive(Debug, Clone)]
enum Operation {
    /// A queue, and numbers of priorities and values.
    Push(usize, Vec<(usize, usize)>),
    Pop(usize, bool, Option<usize>),
    Peek(usize, bool, Option<usize>),
    /// From one queue to another or to itself.
    Move(usize, usize, bool),
    Range(usize, i64, i64, bool),
    Count(usize, (usize, bool), (usize, bool)),
    /// A priority, a value, and how many.
    Remove(usize, usize, usize, Option<usize>),
}

fn operation() -> impl Strategy<Value = Operation> {
    let queue = 0..QUEUES.len();
    let element = (0..PRIORITIES.len(), 0..6_usize);
    let few = proptest::collection::vec(element, 1..5);
    // Values of one priority share rows.
    let many = (
        0..PRIORITIES.len(),
        proptest::collection::vec(SMALL_VALUES, 2..40),
    );
    let many = many.prop_map(|(priority, values)| {
        let elements = values.into_iter().map(|value| (priority, value));
        elements.collect()
    });
    let pushed = prop_oneof![2 => few, 1 => many];
    let limit = proptest::option::of(prop_oneof![0..7_usize, 7..60_usize]);
    let bound = (0..PRIORITIES.len(), any::<bool>());
    prop_oneof![
        6 => (queue.clone(), pushed).prop_map(|(q, pushed)| Operation::Push(q, pushed)),
        4 => (queue.clone(), any::<bool>(), limit.clone())
            .prop_map(|(q, max, limit)| Operation::Pop(q, max, limit)),
        2 => (queue.clone(), any::<bool>(), limit)
            .prop_map(|(q, max, limit)| Operation::Peek(q, max, limit)),
        3 => (queue.clone(), queue.clone(), any::<bool>())
            .prop_map(|(from, to, max)| Operation::Move(from, to, max)),
        3 => (queue.clone(), -50..50_i64, -50..50_i64, any::<bool>())
            .prop_map(|(q, start, stop, reverse)| Operation::Range(q, start, stop, reverse)),
        3 => (queue.clone(), 0..PRIORITIES.len(), 0..20_usize, proptest::option::of(1..4_usize))
            .prop_map(|(q, priority, value, count)| Operation::Remove(q, priority, value, count)),
        2 => (queue, bound.clone(), bound)
            .prop_map(|(q, min, max)| Operation::Count(q, min, max)),
    ]
}

/// Numbers of values that are not split.
const SMALL_VALUES: std::ops::Range<usize> = 3..1_000;

/// One of a few values, so that values repeat. One of them is split.
fn value(number: usize) -> Vec<u8> {
    match number {
        0 => Vec::new(),
        1 => vec![0, 0xff],
        2 => vec![b'v'; 100_000],
        _ => number.to_string().into_bytes(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Element {
    age: u64,
    priority: usize,
    value: usize,
}

impl Element {
    fn rank(&self) -> u8 {
        PRIORITIES[self.priority].1
    }

    fn replies(&self) -> (Reply, Reply) {
        let (text, _) = PRIORITIES[self.priority];
        let priority = match text.parse::<i64>() {
            Ok(whole) => Reply::Whole(whole),
            Err(_) => Reply::Double(text.parse().unwrap()),
        };
        (Reply::bulk(value(self.value)), priority)
    }
}

#[derive(Default)]
struct Model {
    next_age: u64,
    queues: [Vec<Element>; QUEUES.len()],
}

impl Model {
    fn push(&mut self, queue: usize, priority: usize, value: usize) {
        self.next_age += 1;
        self.queues[queue].push(Element {
            age: self.next_age,
            priority,
            value,
        });
    }

    /// All elements in pop order from one end.
    fn in_order(&self, queue: usize, max: bool) -> Vec<Element> {
        let mut elements = self.queues[queue].clone();
        if max {
            elements.sort_by_key(|element| (Reverse(element.rank()), element.age));
        } else {
            elements.sort_by_key(|element| (element.rank(), element.age));
        }
        elements
    }

    fn pop(&mut self, queue: usize, max: bool, count: usize) -> Vec<Element> {
        let mut taken = self.in_order(queue, max);
        taken.truncate(count);
        self.queues[queue].retain(|element| !taken.contains(element));
        taken
    }
}

fn pairs(elements: &[Element]) -> Reply {
    Reply::Pairs(elements.iter().map(Element::replies).collect())
}

fn some_or_one(elements: &[Element], limit: Option<usize>) -> Reply {
    match limit {
        Some(_) => pairs(elements),
        None => flat(elements),
    }
}

fn flat(elements: &[Element]) -> Reply {
    let replies = elements.iter().map(Element::replies);
    Reply::Array(
        replies
            .flat_map(|(value, priority)| [value, priority])
            .collect(),
    )
}

fn line(words: &[&str]) -> String {
    words.join(" ")
}

fn apply(bench: &Bench, model: &mut Model, operation: &Operation) {
    let end = |max: bool| if max { "MAX" } else { "MIN" };
    let limited = |verb: &str, queue: usize, max: bool, limit: Option<usize>| {
        let limit = limit.map(|limit| limit.to_string()).unwrap_or_default();
        line(&[&format!("PQ.{verb}{}", end(max)), QUEUES[queue], &limit])
    };
    match operation {
        Operation::Push(queue, pushed) => {
            let values: Vec<(&str, Vec<u8>)> = pushed
                .iter()
                .map(|(priority, number)| (PRIORITIES[*priority].0, value(*number)))
                .collect();
            let mut words: Vec<&[u8]> = vec![b"PQ.PUSH", QUEUES[*queue].as_bytes()];
            for (priority, value) in &values {
                words.extend([priority.as_bytes(), value]);
            }
            for (priority, value) in pushed {
                model.push(*queue, *priority, *value);
            }
            let length = model.queues[*queue].len();
            assert_eq!(bench.run_words(&words), Reply::count(length));
        }
        Operation::Pop(queue, max, limit) => {
            let reply = bench.run(&limited("POP", *queue, *max, *limit));
            let taken = model.pop(*queue, *max, limit.unwrap_or(1));
            assert_eq!(reply, some_or_one(&taken, *limit));
        }
        Operation::Peek(queue, max, limit) => {
            let reply = bench.run(&limited("PEEK", *queue, *max, *limit));
            let mut seen = model.in_order(*queue, *max);
            seen.truncate(limit.unwrap_or(1));
            assert_eq!(reply, some_or_one(&seen, *limit));
        }
        Operation::Move(from, to, max) => {
            let reply = bench.run(&line(&["PQ.MOVE", QUEUES[*from], QUEUES[*to], end(*max)]));
            let taken = model.pop(*from, *max, 1);
            let expected = match taken.as_slice() {
                [] => Reply::NullArray,
                some => flat(some),
            };
            for one in taken {
                model.push(*to, one.priority, one.value);
            }
            assert_eq!(reply, expected);
        }
        Operation::Range(queue, start, stop, reverse) => {
            let words = [start.to_string(), stop.to_string()];
            let order = if *reverse { "REV" } else { "" };
            let reply = bench.run(&line(&[
                "PQ.RANGE",
                QUEUES[*queue],
                &words[0],
                &words[1],
                order,
            ]));
            let all = model.in_order(*queue, *reverse);
            let length = all.len() as i64;
            let from_end = |index: i64| if index < 0 { index + length } else { index };
            let inside = from_end(*start).max(0)..=from_end(*stop);
            let expected: Vec<Element> = (0..)
                .zip(all)
                .filter(|(rank, _)| inside.contains(rank))
                .map(|(_, element)| element)
                .collect();
            assert_eq!(reply, pairs(&expected));
        }
        Operation::Remove(queue, priority, number, count) => {
            let (text, rank) = PRIORITIES[*priority];
            let count_text = count.map(|count| count.to_string());
            let value = value(*number);
            let mut words: Vec<&[u8]> = vec![b"PQ.REM", QUEUES[*queue].as_bytes()];
            words.extend([text.as_bytes(), &value]);
            if let Some(count) = &count_text {
                words.extend([b"COUNT", count.as_bytes()]);
            }
            let mut removed = model.in_order(*queue, false);
            removed.retain(|one| one.rank() == rank && one.value == *number);
            removed.truncate(count.unwrap_or(1));
            model.queues[*queue].retain(|element| !removed.contains(element));
            assert_eq!(bench.run_words(&words), Reply::count(removed.len()));
        }
        Operation::Count(queue, min, max) => {
            let bound = |(priority, is_exclusive): (usize, bool)| {
                format!(
                    "{}{}",
                    if is_exclusive { "(" } else { "" },
                    PRIORITIES[priority].0
                )
            };
            let reply = bench.run(&line(&[
                "PQ.COUNT",
                QUEUES[*queue],
                &bound(*min),
                &bound(*max),
            ]));
            let lowest = PRIORITIES[min.0].1 + u8::from(min.1);
            let highest = i32::from(PRIORITIES[max.0].1) - i32::from(max.1);
            let elements = model.queues[*queue].iter();
            let inside = elements
                .filter(|one| one.rank() >= lowest && i32::from(one.rank()) <= highest)
                .count();
            assert_eq!(reply, Reply::count(inside));
        }
    }
}

fn check(bench: &Bench, model: &Model) {
    for (queue, name) in QUEUES.iter().enumerate() {
        let elements = model.in_order(queue, false);
        assert_eq!(
            bench.run(&line(&["PQ.LEN", name])),
            Reply::count(elements.len())
        );
        let up = bench.run(&line(&["PQ.RANGE", name, "0", "-1"]));
        assert_eq!(up, pairs(&elements));
        let listed = bench.run(&line(&["PQ.LIST", name, "COUNT", "10000"]));
        let complete = Reply::Array(vec![Reply::bulk("0"), pairs(&elements)]);
        assert_eq!(listed, complete);
        let down = bench.run(&line(&["PQ.RANGE", name, "0", "-1", "REV"]));
        assert_eq!(down, pairs(&model.in_order(queue, true)));
        let exists = Reply::Integer(i64::from(!elements.is_empty()));
        assert_eq!(bench.run(&line(&["EXISTS", name])), exists);
    }
}

/// Applies operations to a bench and to a model, and then removes all elements.
fn run_against_model(bench: &Bench, operations: &[Operation]) {
    let mut model = Model::default();
    for (number, operation) in operations.iter().enumerate() {
        apply(bench, &mut model, operation);
        if number % 8 == 0 {
            check(bench, &model);
        }
    }
    check(bench, &model);
    for (queue, max) in [(0, false), (1, true)] {
        apply(bench, &mut model, &Operation::Pop(queue, max, Some(1000)));
    }
    check(bench, &model);
    assert_eq!(bench.data_rows(), 0);
}

/// Runs operations on a store that fails often, and checks the result. Returns the number of faults.
fn is_done_once<S: Store + 'static>(
    wrap: impl FnOnce(quoin_store_embedded::EmbeddedStore) -> S,
    operations: &[Operation],
    seed: u64,
) -> u64 {
    let mut faulty = None;
    let bench = Bench::with(|store| {
        let random = Arc::new(SeededRandom::new(seed));
        let store = FaultyStore::new(wrap(store), FaultRates::default(), random);
        let store = Arc::new(store);
        faulty = Some(Arc::clone(&store));
        store
    });
    let faulty = faulty.unwrap();
    faulty.set_rates(FaultRates {
        conflict_ppm: 100_000,
        unknown_applied_ppm: 100_000,
        unknown_not_applied_ppm: 100_000,
        too_old_ppm: 10_000,
        ..FaultRates::default()
    });
    let mut model = Model::default();
    for operation in operations {
        apply(&bench, &mut model, operation);
    }
    let faults = faulty.counts().total();
    faulty.set_rates(FaultRates::default());
    check(&bench, &model);
    faults
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
        operations in proptest::collection::vec(operation(), 30..50),
        seed: u64,
        is_cluster_like: bool,
    ) {
        let faults = if is_cluster_like {
            is_done_once(OptimisticStore::new, &operations, seed)
        } else {
            is_done_once(|store| store, &operations, seed)
        };
        prop_assert!(faults > 0);
    }
}
