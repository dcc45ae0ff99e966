use bytes::Bytes;

use super::contention::Expected;
use super::*;
use quoin_base::random::SeededRandom;
use quoin_data::keyspace::key::ClientKey;
use quoin_layout::{PopRun, ValueType};

const IN_VAIN: Expected = Expected {
    lately: false,
    elements: 0,
};
const FOUND: Expected = Expected {
    lately: true,
    elements: 0,
};
const LOOKED_AT_MAX: usize = BUSY_QUEUES_LOOKED_AT_MAX + OTHER_QUEUES_LOOKED_AT_MAX;

fn pops(lock: u64, commands: usize, expected: Option<Expected>) -> Pops {
    Pops {
        key: ClientKey {
            database: 0,
            key: Bytes::from(lock.to_string()),
        },
        demands: Demands {
            value_type: ValueType::List,
            from_end: false,
            runs: vec![PopRun { count: 1, commands }],
        },
        lock,
        expected,
        granted: Granted::default(),
    }
}

fn looked_at(pops: &[Pops]) -> Vec<u64> {
    let looked_at = pops.iter().filter(|pops| pops.expected.is_some());
    looked_at.map(|pops| pops.lock).collect()
}

#[test]
fn of_few_queues_all_are_looked_at() {
    let mut few: Vec<Pops> = (0..LOOKED_AT_MAX as u64)
        .map(|lock| pops(lock, 1, Some(IN_VAIN)))
        .collect();
    let all = looked_at(&few);
    spare_looks(&mut few, &SeededRandom::new(1));
    assert_eq!(looked_at(&few), all);
}

#[test]
fn of_many_queues_those_are_looked_at_where_requests_were_and_the_busiest() {
    let mut many: Vec<Pops> = (0..100).map(|lock| pops(lock, 1, Some(IN_VAIN))).collect();
    many.extend((100..120).map(|lock| pops(lock, 1, Some(FOUND))));
    many.push(pops(120, 5, Some(IN_VAIN)));
    many.push(pops(121, 9, None));
    spare_looks(&mut many, &SeededRandom::new(1));
    let looked_at = looked_at(&many);
    assert!((100..=120).all(|lock| looked_at.contains(&lock)));
    assert!(!looked_at.contains(&121));
    assert_eq!(looked_at.len(), 20 + LOOKED_AT_MAX);
}

#[test]
fn each_of_many_queues_has_its_turn_however_busy_others_are() {
    let random = SeededRandom::new(1);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..200 {
        let mut many: Vec<Pops> = (0..50).map(|lock| pops(lock, 1, Some(IN_VAIN))).collect();
        many.extend((50..60).map(|lock| pops(lock, 10, Some(IN_VAIN))));
        spare_looks(&mut many, &random);
        seen.extend(looked_at(&many));
    }
    assert_eq!(seen.len(), 60);
}
