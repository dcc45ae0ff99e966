//! Age of the oldest element of a queue. Rows hold no time, so it is estimated from samples of the
//! queue's ends.
//!
//! Elements of a [`QueueSpan`] stay in the order of arrival. An element existed at an earlier sample
//! if its place was between the ends at that sample. So the oldest element is as old as the first
//! sample since which one place was between the ends at every sample. This holds whichever end is
//! pushed to and popped from. The age is a lower bound: an element that arrived between two samples
//! counts from the later one, and an element from before the first sample counts from the first.

use std::collections::BTreeMap;

use bytes::Bytes;

use quoin_data::keyspace::figures::{KeyFigures, QueueSpan};

/// Maximum number of remembered samples of a part of a queue. Beyond it, the two samples that are closest in
/// time are merged, which costs about a thirtieth of the age in precision.
const SAMPLES_MAX: usize = 64;
/// Maximum number of remembered parts of one key. A priority that is first or last only sometimes keeps
/// its age.
const PARTS_MAX: usize = 8;

/// The samples of the parts of one key's queue.
#[derive(Debug, Default)]
pub(super) struct Ages {
    parts: BTreeMap<Bytes, Part>,
}

/// The samples of one part.
#[derive(Debug, Default)]
struct Part {
    /// Oldest first. One place is between the ends in all of them.
    samples: Vec<Sample>,
    first_digest: Option<u64>,
    seen_ms: i64,
}

/// The ends at one time. A merged sample holds the range that was between the ends in all of its samples.
#[derive(Debug)]
struct Sample {
    at_ms: i64,
    first: Bytes,
    last: Bytes,
}

impl Ages {
    /// Samples a key, and sets in `figures` since when the oldest elements exist.
    pub(super) fn date(&mut self, figures: &mut KeyFigures, now_ms: i64) {
        let spans = figures.states.iter().flat_map(|state| &state.spans);
        let ids = || spans.clone().map(|span| &span.id);
        match (ids().min(), ids().max()) {
            // Parts before the first and after the last one are empty.
            (Some(first), Some(last)) => self.parts.retain(|id, _| (first..=last).contains(&id)),
            _ => self.parts.clear(),
        }
        for state in &mut figures.states {
            let dated = state
                .spans
                .iter()
                .map(|span| self.part(&span.id).add_sample(span, now_ms));
            state.since_ms = state.since_ms.or(dated.min());
        }
        while self.parts.len() > PARTS_MAX {
            let longest_unseen = self.parts.iter().min_by_key(|(_, part)| part.seen_ms);
            let Some(id) = longest_unseen.map(|(id, _)| id.clone()) else {
                return;
            };
            self.parts.remove(&id);
        }
    }

    fn part(&mut self, id: &Bytes) -> &mut Part {
        self.parts.entry(id.clone()).or_default()
    }
}

impl Part {
    /// Adds a sample. Returns since when the oldest element exists.
    fn add_sample(&mut self, span: &QueueSpan, now_ms: i64) -> i64 {
        if self.has_restarted(span) {
            self.samples.clear();
        }
        self.first_digest = span.first_digest;
        self.seen_ms = now_ms;
        let is_new = |last: &Sample| last.first != span.first || last.last != span.last;
        if self.samples.last().is_none_or(is_new) {
            self.samples.push(Sample {
                at_ms: now_ms,
                first: span.first.clone(),
                last: span.last.clone(),
            });
        }
        self.drop_outdated();
        if self.samples.len() > SAMPLES_MAX {
            self.merge_closest();
        }
        self.samples.first().map_or(now_ms, |sample| sample.at_ms)
    }

    /// Whether the part was empty since the last sample, so that its places started over.
    fn has_restarted(&self, span: &QueueSpan) -> bool {
        let (Some(digest), Some(last)) = (span.first_digest, self.samples.last()) else {
            return false;
        };
        span.first < last.first || span.first == last.first && Some(digest) != self.first_digest
    }

    /// Drops samples without any remaining element.
    fn drop_outdated(&mut self) {
        let Some(newest) = self.samples.last() else {
            return;
        };
        let (mut first, mut last) = (newest.first.clone(), newest.last.clone());
        let is_useful = |sample: &&Sample| {
            first = sample.first.clone().max(first.clone());
            last = sample.last.clone().min(last.clone());
            first <= last
        };
        let useful = self.samples.iter().rev().take_while(is_useful).count();
        self.samples.drain(..self.samples.len() - useful);
    }

    /// Merges the two samples that are closest in time, except the newest.
    fn merge_closest(&mut self) {
        let spans = self.samples.windows(3).enumerate();
        let closest = spans.min_by_key(|(_, samples)| match samples {
            [one, _, next] => next.at_ms.saturating_sub(one.at_ms),
            _ => i64::MAX,
        });
        let Some((at, _)) = closest else {
            return;
        };
        let gone = self.samples.remove(at + 1);
        if let Some(kept) = self.samples.get_mut(at) {
            kept.first = gone.first.max(std::mem::take(&mut kept.first));
            kept.last = gone.last.min(std::mem::take(&mut kept.last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quoin_base::clock::Clock;
    use quoin_data::unit::context::{NamespaceCache, ReadContext};
    use quoin_engine::testing::Bench;

    /// A key that is observed every five seconds.
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

        /// Runs commands, and observes the key five seconds later. Returns the age in seconds of
        /// the oldest ready element.
        fn after(&mut self, commands: &[&str]) -> Option<i64> {
            for command in commands {
                self.bench.run(command);
            }
            self.bench.clock.advance_ms(5_000);
            self.sample()
        }

        fn sample(&mut self) -> Option<i64> {
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
                assert_eq!(watch.sample(), Some(35), "{key}");
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
            // On a store with a single writer, the others all had one place, but they are
            // distinguished.
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
            // It is first again, and the other one still exists.
            assert_eq!(watch.after(&["TASK.NACK tasks one"]), Some(10));
            assert_eq!(watch.after(&["TASK.CANCEL tasks one"]), Some(15));
        });
    }

    #[test]
    fn many_samples_take_bounded_room_and_stay_precise() {
        let bench = Bench::embedded();
        let mut watch = Watch::new(&bench, "list");
        // One element is pushed every five seconds for more than an hour, and none is popped.
        for _ in 0..1_000 {
            watch.after(&["RPUSH list a"]);
        }
        assert_eq!(watch.sample(), Some(5 * 999));
        for popped in (100..1_000).step_by(100) {
            bench.run("LPOP list 100");
            let (age, expected) = (watch.sample().unwrap(), 5 * (999 - popped));
            let allowed = 5 * 1_000 / 30 + 5;
            assert!(
                (expected - allowed..=expected).contains(&age),
                "{age}, {expected}"
            );
        }
        let samples: Vec<usize> = watch
            .ages
            .parts
            .values()
            .map(|part| part.samples.len())
            .collect();
        assert!(
            samples.iter().all(|samples| *samples <= SAMPLES_MAX),
            "{samples:?}"
        );
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
        assert_eq!(watch.sample(), Some(500));
    }
}
