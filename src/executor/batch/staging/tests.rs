use bytes::Bytes;

use super::*;
use crate::executor::heat::Asked;
use crate::layout::{PopRun, ValueType};
use crate::random::SeededRandom;
use crate::types::key::ClientKey;

const IN_VAIN: Asked = Asked {
    lately: false,
    elements: 0,
};
const FOUND: Asked = Asked {
    lately: true,
    elements: 0,
};
const LOOKED_AT_MAX: usize = STAGED_BUSY_KEYS_LOOKED_AT_MAX + STAGED_OTHER_KEYS_LOOKED_AT_MAX;

fn pops(claim: u64, commands: usize, asked_for: Option<Asked>) -> Pops {
    Pops {
        key: ClientKey {
            database: 0,
            key: Bytes::from(claim.to_string()),
        },
        demands: Demands {
            value_type: ValueType::List,
            from_end: false,
            runs: vec![PopRun { count: 1, commands }],
        },
        claim,
        asked_for,
        fulfilled: Fulfilled::default(),
    }
}

fn looked_at(pops: &[Pops]) -> Vec<u64> {
    let looked_at = pops.iter().filter(|pops| pops.asked_for.is_some());
    looked_at.map(|pops| pops.claim).collect()
}

#[test]
fn of_few_queues_all_are_looked_at() {
    let mut few: Vec<Pops> = (0..LOOKED_AT_MAX as u64)
        .map(|claim| pops(claim, 1, Some(IN_VAIN)))
        .collect();
    let all = looked_at(&few);
    spare_looks(&mut few, &SeededRandom::new(1));
    assert_eq!(looked_at(&few), all);
}

#[test]
fn of_many_queues_those_are_looked_at_where_requests_were_and_the_busiest() {
    let mut many: Vec<Pops> = (0..100)
        .map(|claim| pops(claim, 1, Some(IN_VAIN)))
        .collect();
    many.extend((100..120).map(|claim| pops(claim, 1, Some(FOUND))));
    many.push(pops(120, 5, Some(IN_VAIN)));
    many.push(pops(121, 9, None));
    spare_looks(&mut many, &SeededRandom::new(1));
    let looked_at = looked_at(&many);
    assert!((100..=120).all(|claim| looked_at.contains(&claim)));
    assert!(!looked_at.contains(&121));
    assert_eq!(looked_at.len(), 20 + LOOKED_AT_MAX);
}

#[test]
fn each_of_many_queues_has_its_turn_however_busy_others_are() {
    let random = SeededRandom::new(1);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..200 {
        let mut many: Vec<Pops> = (0..50).map(|claim| pops(claim, 1, Some(IN_VAIN))).collect();
        many.extend((50..60).map(|claim| pops(claim, 10, Some(IN_VAIN))));
        spare_looks(&mut many, &random);
        seen.extend(looked_at(&many));
    }
    assert_eq!(seen.len(), 60);
}
