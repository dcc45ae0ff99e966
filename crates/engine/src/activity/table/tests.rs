use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn key(number: usize) -> ClientKey {
    ClientKey {
        database: 0,
        key: Bytes::from(number.to_string()),
    }
}

fn flow(number: usize, elements_in: u64, elements_out: u64) -> Flow {
    Flow {
        key: key(number),
        value_type: ValueType::List,
        counts: FlowCounts {
            elements_in,
            elements_out,
            ..FlowCounts::default()
        },
    }
}

fn find(table: &Table, number: usize, now: Instant) -> Option<QueueActivity> {
    let mut queues = table.queues(now).into_iter();
    queues.find(|queue| queue.key == key(number))
}

/// What happens to a table.
#[derive(Debug, Clone)]
enum Step {
    Change(usize, u64),
    Tick,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Some queues have many changes, most have few.
    let few = (0..60_usize, 1..4_u64).prop_map(|(queue, count)| Step::Change(queue, count));
    let many = (0..3_usize, 1..40_u64).prop_map(|(queue, count)| Step::Change(queue, count));
    prop::collection::vec(
        prop_oneof![6 => few, 2 => many, 1 => Just(Step::Tick)],
        0..600,
    )
}

proptest! {
    #[test]
    fn a_weight_lacks_no_more_than_its_bound(steps in steps(), places in 4..24_usize) {
        let now = Instant::now();
        let mut table = Table::new(places, now);
        let mut exact: HashMap<usize, f64> = HashMap::new();
        for step in steps {
            match step {
                Step::Change(queue, count) => {
                    table.note(&flow(queue, count, 0));
                    *exact.entry(queue).or_default() += count as f64;
                }
                Step::Tick => {
                    table.tick(now);
                    exact.values_mut().for_each(|weight| *weight *= WEIGHT_DECAY);
                }
            }
            prop_assert!(table.queues.len() <= places);
            let all: f64 = exact.values().sum();
            let bound = all / (places - places / FREED_DIVISOR) as f64 + 1e-6;
            for (queue, weight) in &exact {
                let found = table.queues.get(&key(*queue));
                let found = found.map_or(0.0, |queue| queue.weight);
                prop_assert!(found <= weight + 1e-6, "{found} of {weight}");
                prop_assert!(weight - found <= bound, "{found} of {weight}, {bound}");
            }
        }
    }
}

#[test]
fn a_queue_with_many_changes_keeps_its_counts_among_many_with_one() {
    let now = Instant::now();
    let mut table = Table::new(64, now);
    for number in 1..10_000 {
        table.note(&flow(0, 2, 1));
        table.note(&flow(number, 1, 0));
    }
    let counts = find(&table, 0, now).unwrap().counts;
    assert_eq!((counts.elements_in, counts.elements_out), (19_998, 9_999));
    assert!(table.queues.len() <= 64);
}

#[test]
fn a_new_active_queue_replaces_idle_ones_that_had_more() {
    let now = Instant::now();
    let mut table = Table::new(8, now);
    for number in 0..8 {
        table.note(&flow(number, 1_000_000, 0));
    }
    // An hour later, eight new queues appear, with fewer changes.
    (0..3_600).for_each(|_| table.tick(now));
    for _ in 0..10 {
        for number in 100..108 {
            table.note(&flow(number, 100, 0));
        }
    }
    for number in 100..108 {
        let counts = find(&table, number, now).map(|queue| queue.counts.elements_in);
        assert_eq!(counts, Some(1_000), "{number}");
    }
}

#[test]
fn rates_are_of_the_last_ten_seconds() {
    let begun = Instant::now();
    let at = |seconds: u64| begun + Duration::from_secs(seconds);
    let mut table = Table::new(8, begun);
    table.note(&flow(0, 50, 10));
    // No time has passed, so the rate is that of one second.
    let rates = |table: &Table, now| {
        let queue = find(table, 0, now).unwrap();
        (queue.in_per_second, queue.out_per_second)
    };
    assert_eq!(rates(&table, begun), (50.0, 10.0));
    for second in 1..=5 {
        table.tick(at(second));
    }
    assert_eq!(rates(&table, at(5)), (10.0, 2.0));
    for second in 6..=20 {
        table.tick(at(second));
    }
    assert_eq!(rates(&table, at(20)), (0.0, 0.0));
    table.note(&flow(0, 100, 0));
    assert_eq!(rates(&table, at(20)), (100.0 / 9.0, 0.0));
    assert_eq!(find(&table, 0, at(20)).unwrap().counts.elements_in, 150);
}

#[test]
fn a_queue_with_a_long_name_is_not_counted() {
    let now = Instant::now();
    let mut table = Table::new(8, now);
    for bytes in [
        COUNTED_QUEUE_NAME_BYTES_MAX,
        COUNTED_QUEUE_NAME_BYTES_MAX + 1,
    ] {
        let mut long = flow(0, 1, 0);
        long.key.key = Bytes::from(vec![b'x'; bytes]);
        table.note(&long);
    }
    assert_eq!(table.queues.len(), 1);
}
