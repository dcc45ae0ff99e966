use super::*;
use quoin_base::clock::Clock;
use quoin_data::unit::context::{NamespaceCache, ReadContext};
use quoin_engine::testing::Bench;

/// A key that is looked at every five seconds.
struct Watch<'b> {
    bench: &'b Bench,
    key: &'static str,
    ages: Ages,
}

impl<'b> Watch<'b> {
    fn new(bench: &'b Bench, key: &'static str) -> Self {
        Self {
            bench,
            key,
            ages: Ages::default(),
        }
    }

    /// Runs commands, and looks five seconds later. The age in seconds of the oldest that is ready.
    fn after(&mut self, commands: &[&str]) -> Option<i64> {
        for command in commands {
            self.bench.run(command);
        }
        self.bench.clock.advance_ms(5_000);
        self.look()
    }

    fn look(&mut self) -> Option<i64> {
        let now_ms = self.bench.clock.now_ms();
        let Some(mut figures) = self.figures() else {
            self.ages = Ages::default();
            return None;
        };
        self.ages.date(&mut figures, now_ms);
        let since_ms = figures.states[0].since_ms?;
        Some((now_ms - since_ms) / 1_000)
    }

    fn figures(&self) -> Option<KeyFigures> {
        let snapshot = self.bench.store.begin_read().unwrap();
        let namespaces = NamespaceCache::default();
        let environment = self.bench.executor.environment();
        let now_ms = self.bench.clock.now_ms();
        let context = ReadContext::new(&*snapshot, environment, &namespaces, now_ms, 0);
        let name = Bytes::from(self.key);
        self.bench.block_on(context.key_figures(&name)).unwrap()
    }
}

fn on_both(test: impl Fn(&Bench)) {
    test(&Bench::embedded());
    test(&Bench::cluster_like());
}

#[test]
fn a_stuck_queue_grows_old_while_it_is_pushed_to() {
    on_both(|bench| {
        for (key, push) in [
            ("left", "LPUSH left a"),
            ("right", "RPUSH right a"),
            ("pq", "PQ.PUSH pq 1 a"),
            ("tasks", "TASK.ADD tasks 1 a"),
        ] {
            let mut watch = Watch::new(bench, key);
            for age in 0..10 {
                assert_eq!(watch.after(&[push]), Some(5 * age), "{key}");
            }
        }
        let mut members = Watch::new(bench, "zset");
        assert_eq!(members.after(&["ZADD zset 5 a"]), Some(0));
        assert_eq!(members.after(&["ZADD zset 6 b"]), Some(5));
        assert_eq!(members.after(&[]), Some(10));
    });
}

#[test]
fn a_queue_that_keeps_up_stays_young() {
    on_both(|bench| {
        for (key, push, pop) in [
            ("left", "LPUSH left VALUE", "RPOP left"),
            ("right", "RPUSH right VALUE", "LPOP right"),
            ("pq", "PQ.PUSH pq 1 VALUE", "PQ.POPMIN pq"),
            (
                "tasks",
                "TASK.ADD tasks 1 VALUE",
                "TASK.TAKE tasks LEASE 1000000",
            ),
            ("zset", "ZADD zset NX 1 VALUE", "ZPOPMIN zset"),
        ] {
            let mut watch = Watch::new(bench, key);
            for round in 0..20 {
                let push = |n: i32| push.replace("VALUE", &(2 * round + n).to_string());
                let age = watch.after(&[&push(0), pop, &push(1)]);
                assert_eq!(age, Some(0), "{key}, {round}");
                bench.run(pop);
            }
        }
    });
}

#[test]
fn the_head_of_a_backlog_is_as_old_as_it_is() {
    on_both(|bench| {
        for (key, push, pop) in [
            ("left", "LPUSH left a", "RPOP left"),
            ("right", "RPUSH right a", "LPOP right"),
            ("pq", "PQ.PUSH pq 1 a", "PQ.POPMIN pq"),
            (
                "tasks",
                "TASK.ADD tasks 1 a",
                "TASK.TAKE tasks LEASE 1000000",
            ),
        ] {
            let mut watch = Watch::new(bench, key);
            for _ in 0..8 {
                watch.after(&[push, push]);
            }
            assert_eq!(watch.look(), Some(35), "{key}");
            for age in [40, 40, 45, 45, 50] {
                assert_eq!(watch.after(&[push, pop]), Some(age), "{key}");
            }
            assert_eq!(watch.after(&[pop; 20]), None, "{key}");
            assert_eq!(watch.after(&[push]), Some(0), "{key}");
        }
    });
}

#[test]
fn the_bottom_of_a_stack_grows_old() {
    let bench = Bench::embedded();
    let mut watch = Watch::new(&bench, "stack");
    watch.after(&["LPUSH stack bottom"]);
    for round in 1..10 {
        let age = watch.after(&[
            "LPUSH stack a b c",
            "LPOP stack",
            "LPOP stack",
            "LPOP stack",
        ]);
        assert_eq!(age, Some(5 * round));
    }
}

#[test]
fn a_starved_priority_grows_old() {
    on_both(|bench| {
        let mut watch = Watch::new(bench, "pq");
        watch.after(&["PQ.PUSH pq 9 starved", "PQ.PUSH pq 1 0"]);
        for round in 1..20 {
            let push = format!("PQ.PUSH pq 1 {round}");
            let age = watch.after(&["PQ.POPMIN pq", &push]);
            assert_eq!(age, Some(5 * round));
        }
        // The others all had one place on a store with a single writer, and are told apart.
        assert_eq!(watch.after(&["PQ.POPMAX pq"]), Some(5));
    });
}

#[test]
fn a_task_that_comes_back_counts_from_then() {
    on_both(|bench| {
        let mut watch = Watch::new(bench, "tasks");
        watch.after(&["TASK.ADD tasks 1 a ID one", "TASK.TAKE tasks LEASE 60000"]);
        assert_eq!(watch.after(&[]), None);
        watch.after(&["TASK.ADD tasks 1 b"]);
        assert_eq!(watch.after(&[]), Some(5));
        // It stands in front again, and the other one is still there.
        assert_eq!(watch.after(&["TASK.NACK tasks one"]), Some(10));
        assert_eq!(watch.after(&["TASK.CANCEL tasks one"]), Some(15));
    });
}

#[test]
fn many_looks_take_bounded_room_and_stay_precise() {
    let bench = Bench::embedded();
    let mut watch = Watch::new(&bench, "list");
    // One pushed every five seconds for more than an hour, and none popped.
    for _ in 0..1_000 {
        watch.after(&["RPUSH list a"]);
    }
    assert_eq!(watch.look(), Some(5 * 999));
    for popped in (100..1_000).step_by(100) {
        bench.run("LPOP list 100");
        let (age, expected) = (watch.look().unwrap(), 5 * (999 - popped));
        let allowed = 5 * 1_000 / 30 + 5;
        assert!(
            (expected - allowed..=expected).contains(&age),
            "{age}, {expected}"
        );
    }
    let looks: Vec<usize> = watch
        .ages
        .parts
        .values()
        .map(|part| part.looks.len())
        .collect();
    assert!(looks.iter().all(|looks| *looks <= LOOKS_MAX), "{looks:?}");
}

#[test]
fn parts_are_few() {
    let bench = Bench::embedded();
    let mut watch = Watch::new(&bench, "pq");
    watch.after(&["PQ.PUSH pq 1000 last"]);
    for priority in (0..100).rev() {
        watch.after(&[&format!("PQ.PUSH pq {priority} a")]);
    }
    assert_eq!(watch.ages.parts.len(), PARTS_MAX);
    assert_eq!(watch.look(), Some(500));
}
