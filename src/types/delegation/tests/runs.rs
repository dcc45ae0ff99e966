//! Elements of runs that are popped for other servers: none is lost or doubled, and what returns
//! stands in front of the rest.

use super::*;
use crate::commands::testing::call;
use crate::random::{Random, SeededRandom};
use crate::types::ranks::testing::{TINY, check_blocks, tend};

const STEPS: usize = 300;

fn below(random: &SeededRandom, end: usize) -> usize {
    (random.next_u64() % end as u64) as usize
}

/// A number that tells when an element was pushed, at all lengths that are stored differently.
fn element(number: usize, random: &SeededRandom) -> String {
    let length = [8, 30, 300, 885, 2_000][below(random, 5)];
    format!("{number:0length$}")
}

fn numbers(elements: Vec<String>) -> Vec<usize> {
    let elements = elements.into_iter();
    elements.map(|text| text.parse().unwrap()).collect()
}

fn list(bench: &Bench) -> Vec<usize> {
    let Reply::Array(elements) = bench.run("LRANGE q 0 -1") else {
        panic!("LRANGE");
    };
    let elements = elements.into_iter().map(|element| match element {
        Reply::Bulk(text) => String::from_utf8(text.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    });
    numbers(elements.collect())
}

/// A queue that is pushed at one end and popped at the other, by its clients and for other servers.
/// Where it has blocks, their counts stay right.
fn stays_in_order(seed: u64, from_end: bool, has_blocks: bool) {
    let bench = Bench::cluster_like();
    let random = SeededRandom::new(seed);
    let asker = Asker::new(&bench);
    let push: &[u8] = if from_end { b"LPUSH" } else { b"RPUSH" };
    let (mut pushed, mut popped) = (0, HashSet::new());
    let mut outstanding: Vec<(MadeRequest, Demand)> = Vec::new();
    let mut first = true;
    let mut blocks_max = 0;
    for _ in 0..STEPS {
        let choice = if first { 0 } else { below(&random, 10) };
        first = false;
        match choice {
            0..3 => {
                let count = 1 + below(&random, 30);
                let elements: Vec<String> = (0..count)
                    .map(|number| element(pushed + number, &random))
                    .collect();
                let calls =
                    { elements.iter() }.map(|element| call(0, &[push, b"q", element.as_bytes()]));
                let finished = bench.executor.submit(calls.collect());
                bench.block_on(finished).unwrap();
                pushed += count;
            }
            3..5 => {
                let name = if from_end { "RPOP" } else { "LPOP" };
                let count = 1 + below(&random, 12);
                let Reply::Array(elements) = bench.run(&format!("{name} q {count}")) else {
                    continue;
                };
                for element in elements {
                    let Reply::Bulk(text) = element else {
                        panic!("{element:?}");
                    };
                    let number = String::from_utf8(text.to_vec()).unwrap().parse().unwrap();
                    assert!(popped.insert(number), "{number} twice");
                }
            }
            5..8 if bench.run("EXISTS q") == Reply::Integer(1) => {
                let demand = demand(ValueType::List, from_end, 1 + below(&random, 12));
                let request = asker.ask(demand);
                assert_eq!(granted(&bench, demand), 1);
                outstanding.push((request, demand));
            }
            8 if !outstanding.is_empty() => {
                let (request, demand) = outstanding.swap_remove(below(&random, outstanding.len()));
                // Of an emptied queue the key must be found by its grant.
                for number in numbers(asker.fetched(&request, demand, demand.count)) {
                    assert!(popped.insert(number), "{number} twice");
                }
            }
            9 => {
                bench.clock.advance_ms(GRANT_EXPIRY_MS);
                pass(&bench);
                outstanding.clear();
                let mut list = list(&bench);
                assert_eq!(bench.run("LLEN q"), Reply::Integer(list.len() as i64));
                if from_end {
                    list.reverse();
                }
                assert!(list.is_sorted(), "{list:?}");
                let rest: Vec<usize> = (0..pushed).filter(|one| !popped.contains(one)).collect();
                assert_eq!(list, rest);
                if has_blocks {
                    tend(&bench, "q", &TINY);
                }
            }
            _ => {}
        }
        let blocks = check_blocks(&bench, "q");
        blocks_max = blocks_max.max(blocks.first().copied().unwrap_or(0));
    }
    assert_eq!(blocks_max > 10, has_blocks, "{blocks_max}");
}

#[test]
fn a_queue_popped_at_its_head_for_others_stays_in_order() {
    stays_in_order(1, false, false);
    stays_in_order(2, false, true);
}

#[test]
fn a_queue_popped_at_its_tail_for_others_stays_in_order() {
    stays_in_order(3, true, false);
    stays_in_order(4, true, true);
}
