//! Elements of runs that were popped for other servers. None may be lost or duplicated, and
//! returned elements come before the rest.

use super::*;
use quoin_base::random::{Random, SeededRandom};
use quoin_engine::testing::ranks::{TINY, check_blocks, maintain};
use quoin_engine::testing::{call, words_of};

const STEPS: usize = 120;

fn below(random: &SeededRandom, end: usize) -> usize {
    (random.next_u64() % end as u64) as usize
}

/// A number that shows when an element was pushed, with a length for each kind of storage.
fn element(number: usize, random: &SeededRandom) -> String {
    let length = [8, 30, 300, 885, 2_000][below(random, 5)];
    format!("{number:0length$}")
}

/// The elements of a reply, without their priorities.
fn elements(reply: Reply) -> Vec<usize> {
    let elements = match reply {
        Reply::Array(elements) => elements,
        Reply::Pairs(pairs) => pairs.into_iter().map(|(element, _)| element).collect(),
        // LPOP with a count found nothing.
        _ => Vec::new(),
    };
    let elements = elements.into_iter().map(|element| match element {
        Reply::Bulk(text) => String::from_utf8_lossy(&text).parse().unwrap(),
        other => panic!("{other:?}"),
    });
    elements.collect()
}

/// A queue that is pushed at one end and popped at the other.
#[derive(Clone, Copy)]
struct Queue {
    end: End,
    push: &'static [&'static str],
    pop: &'static str,
    /// A range of all elements in pop order, or in reverse if a list is popped `from_end`.
    range: &'static str,
    length: &'static str,
}

const FIRST: Queue = Queue {
    end: HEAD,
    push: &["RPUSH q"],
    pop: "LPOP",
    range: "LRANGE q 0 -1",
    length: "LLEN q",
};

const LAST: Queue = Queue {
    end: End {
        from_end: true,
        ..HEAD
    },
    push: &["LPUSH q"],
    pop: "RPOP",
    ..FIRST
};

/// Elements of one priority. Some pushes write it as a double.
const LOWEST: Queue = Queue {
    end: End {
        value_type: ValueType::PriorityQueue,
        from_end: false,
    },
    push: &["PQ.PUSH q 1", "PQ.PUSH q 1", "PQ.PUSH q 1.0"],
    pop: "PQ.POPMIN",
    range: "PQ.RANGE q 0 -1",
    length: "PQ.LEN q",
};

const HIGHEST: Queue = Queue {
    end: End {
        from_end: true,
        ..LOWEST.end
    },
    pop: "PQ.POPMAX",
    ..LOWEST
};

/// Pops a queue through its clients and other servers. If the queue has blocks, their counts must stay right.
fn stays_in_order(seed: u64, queue: Queue, has_blocks: bool) {
    let bench = Bench::cluster_like();
    let random = SeededRandom::new(seed);
    let (mut pushed, mut popped) = (0, HashSet::new());
    let mut outstanding: Vec<Left> = Vec::new();
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
                let push = queue.push.iter().cycle().skip(pushed);
                let calls = elements
                    .iter()
                    .zip(push)
                    .map(|(element, push)| call(0, &words_of(&format!("{push} {element}"))));
                let finished = bench.executor.submit(calls.collect());
                bench.block_on(finished).unwrap();
                pushed += count;
            }
            3..5 => {
                let count = 1 + below(&random, 12);
                for number in elements(bench.run(&format!("{} q {count}", queue.pop))) {
                    assert!(popped.insert(number), "{number} twice");
                }
            }
            5..8 if bench.run("EXISTS q") == Reply::Integer(1) => {
                outstanding.push(leave(&bench, queue.end, 1 + below(&random, 12)));
            }
            8 if !outstanding.is_empty() => {
                let left = outstanding.swap_remove(below(&random, outstanding.len()));
                commit(&bench, fetch(&bench, &left)).unwrap();
                let values = left.elements.into_iter().map(|element| element.value);
                for number in elements(Reply::Array(values.map(Reply::Bulk).collect())) {
                    assert!(popped.insert(number), "{number} twice");
                }
            }
            9 => {
                bench.clock.advance_ms(GRANT_EXPIRY_MS);
                pass(&bench);
                outstanding.clear();
                let mut left = elements(bench.run(queue.range));
                assert_eq!(bench.run(queue.length), Reply::Integer(left.len() as i64));
                if queue.end.from_end && queue.end.value_type == ValueType::List {
                    left.reverse();
                }
                let rest: Vec<usize> = (0..pushed).filter(|one| !popped.contains(one)).collect();
                assert_eq!(left, rest);
                if has_blocks {
                    maintain(&bench, "q", &TINY);
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
    stays_in_order(1, FIRST, false);
    stays_in_order(2, FIRST, true);
}

#[test]
fn a_queue_popped_at_its_tail_for_others_stays_in_order() {
    stays_in_order(3, LAST, false);
    stays_in_order(4, LAST, true);
}

#[test]
fn a_queue_popped_at_its_lowest_priority_for_others_stays_in_order() {
    stays_in_order(5, LOWEST, false);
    stays_in_order(6, LOWEST, true);
}

#[test]
fn a_queue_popped_at_its_highest_priority_for_others_stays_in_order() {
    stays_in_order(7, HIGHEST, false);
    stays_in_order(8, HIGHEST, true);
}
