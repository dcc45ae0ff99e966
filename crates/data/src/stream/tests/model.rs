//! Random histories of a stream with two groups, compared with a plain model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::*;
use quoin_base::random::{Random, SeededRandom};
use quoin_store::faults::{FaultRates, FaultyStore, OptimisticStore};

const GROUPS: [&str; 2] = ["g", "h"];

#[derive(Clone, Copy, Debug)]
struct Pending {
    /// `None`: it was released.
    consumer: Option<u64>,
    at_ms: i64,
    deliveries: u64,
    /// Whether a policy hands it out again.
    comes_again: bool,
}

#[derive(Clone, Copy, Debug)]
struct Policy {
    min_idle_ms: i64,
    max_tries: Option<u64>,
    has_dead_letters: bool,
}

#[derive(Default, Debug)]
struct Group {
    last: usize,
    pending: BTreeMap<usize, Pending>,
    policy: Option<Policy>,
}

/// A plain model of the stream and its groups.
struct Model {
    now_ms: i64,
    entries: BTreeSet<usize>,
    groups: [Group; 2],
    dead: usize,
}

impl Model {
    fn deliver(&mut self, group: usize, id: usize, consumer: u64, deliveries: u64) {
        let pending = Pending {
            consumer: Some(consumer),
            at_ms: self.now_ms,
            deliveries,
            comes_again: true,
        };
        self.groups[group].pending.insert(id, pending);
    }

    /// XREADGROUP with `>`: ids, each with the time since its last delivery and the number of deliveries.
    fn read(
        &mut self,
        group: usize,
        consumer: u64,
        count: usize,
        no_ack: bool,
        claim: Option<i64>,
    ) -> Vec<(usize, i64, u64)> {
        let mut given = Vec::new();
        let policy = self.groups[group].policy;
        let of_policy = policy.filter(|_| !no_ack).map(|policy| policy.min_idle_ms);
        if let Some(min_idle_ms) = claim.or(of_policy) {
            let until_ms = self.now_ms - min_idle_ms;
            let pending = self.groups[group].pending.iter();
            let idle = pending.filter(|(_, one)| one.comes_again && one.at_ms <= until_ms);
            let mut idle: Vec<_> = idle.map(|(id, one)| (one.at_ms, *id, *one)).collect();
            idle.sort_by_key(|(at_ms, id, _)| (*at_ms, *id));
            for (_, id, mut one) in idle {
                if given.len() == count {
                    break;
                }
                let max_tries = policy.and_then(|policy| policy.max_tries);
                let is_spent = max_tries.is_some_and(|most| one.deliveries >= most);
                if self.entries.contains(&id) && !is_spent {
                    self.deliver(group, id, consumer, one.deliveries.saturating_add(1));
                    given.push((id, self.now_ms - one.at_ms, one.deliveries));
                } else if policy
                    .is_some_and(|policy| !self.entries.contains(&id) || policy.has_dead_letters)
                {
                    self.dead += usize::from(self.entries.contains(&id));
                    self.groups[group].pending.remove(&id);
                } else {
                    one.comes_again = false;
                    self.groups[group].pending.insert(id, one);
                }
            }
        }
        let new = self.entries.range(self.groups[group].last + 1..);
        let new: Vec<usize> = new.copied().take(count - given.len()).collect();
        for id in new {
            self.groups[group].last = id;
            if !no_ack {
                self.deliver(group, id, consumer, 1);
            }
            given.push((id, 0, 0));
        }
        given
    }

    /// Claims an entry if it is idle for long enough; `None` if it is gone.
    fn claim(&mut self, group: usize, id: usize, consumer: u64, min_idle_ms: i64) -> Option<bool> {
        let one = *self.groups[group].pending.get(&id)?;
        if !self.entries.contains(&id) {
            self.groups[group].pending.remove(&id);
            return None;
        }
        let is_idle = one.consumer.is_none() || self.now_ms - one.at_ms >= min_idle_ms;
        if is_idle {
            self.deliver(group, id, consumer, one.deliveries.saturating_add(1));
        }
        Some(is_idle)
    }

    fn is_referenced(&self, id: usize) -> bool {
        let mut groups = self.groups.iter();
        groups.any(|group| id > group.last || group.pending.contains_key(&id))
    }

    fn forget(&mut self, id: usize) {
        for group in &mut self.groups {
            group.pending.remove(&id);
        }
    }

    fn shown(&self, group: usize) -> Reply {
        let pending = self.groups[group].pending.iter();
        let pending = pending.map(|(id, one)| {
            let deliveries = i64::try_from(one.deliveries).unwrap_or(i64::MAX);
            match one.consumer {
                Some(consumer) => {
                    let idle_ms = self.now_ms - one.at_ms;
                    super::pending(*id, &format!("c{consumer}"), idle_ms, deliveries)
                }
                None => super::pending(*id, "", -1, deliveries),
            }
        });
        Reply::Array(pending.collect())
    }
}

fn read_reply(given: Vec<(usize, i64, u64)>, is_claim: bool) -> Reply {
    let shown = given.iter().map(|(id, idle_ms, deliveries)| {
        let deliveries = i64::try_from(*deliveries).unwrap_or(i64::MAX);
        claimed(*id, *idle_ms, deliveries)
    });
    match is_claim {
        _ if given.is_empty() => Reply::NullArray,
        true => Reply::Keyed(vec![(bulk("s"), Reply::Array(shown.collect()))]),
        false => read("s", given.iter().map(|(id, ..)| *id)),
    }
}

fn id_reply(id: usize) -> Reply {
    bulk(&format!("{id}-0"))
}

fn history(bench: &Bench, seed: u64) {
    let random = SeededRandom::new(seed);
    let mut model = Model {
        now_ms: START_MS,
        entries: BTreeSet::new(),
        groups: Default::default(),
        dead: 0,
    };
    for group in GROUPS {
        bench.run(&format!("XGROUP CREATE s {group} 0 MKSTREAM"));
    }
    let mut next = 1;
    for step in 0..400 {
        let number = random.below(2) as usize;
        let group = GROUPS[number];
        let consumer = random.below(3);
        let count = 1 + random.below(3) as usize;
        // Usually one of the latest ids.
        let id = next.max(15) - random.below(15) as usize;
        let min_idle_ms = 10 * random.below(4) as i64;
        let run = |line: String, expected: Reply| {
            assert_eq!(
                bench.run(&line),
                expected,
                "seed {seed} step {step}: {line}"
            );
        };
        match random.below(16) {
            0..=2 => {
                model.entries.insert(next);
                let max = 5 + random.below(10) as usize;
                let excess = model.entries.len().saturating_sub(max);
                let word = ["", "KEEPREF", "DELREF", "ACKED"][random.below(4) as usize];
                let goes = |id: &usize| word != "ACKED" || !model.is_referenced(*id);
                let gone = model.entries.iter().copied().filter(goes).take(excess);
                for id in gone.collect::<Vec<_>>() {
                    model.entries.remove(&id);
                    if word == "DELREF" {
                        model.forget(id);
                    }
                }
                let words = format!("{word} MAXLEN {max}");
                let line = format!("XADD s {} {next}-0 n {next}", words.trim());
                run(line, id_reply(next));
                next += 1;
            }
            3..=5 => {
                let no_ack = random.below(6) == 0;
                let word = if no_ack { "NOACK " } else { "" };
                let claim = (random.below(3) == 0).then_some(min_idle_ms);
                let words = claim.map_or(String::new(), |ms| format!("CLAIM {ms} "));
                let line = format!(
                    "XREADGROUP GROUP {group} c{consumer} COUNT {count} {words}{word}STREAMS s >"
                );
                let given = model.read(number, consumer, count, no_ack, claim);
                run(line, read_reply(given, claim.is_some()));
            }
            6 => {
                let mine = model.groups[number].pending.iter();
                let mine = mine.filter(|(_, one)| one.consumer == Some(consumer));
                let mine: Vec<(usize, u64)> = mine.map(|(id, one)| (*id, one.deliveries)).collect();
                let mut expected = Vec::new();
                for (id, deliveries) in mine {
                    expected.push(match model.entries.contains(&id) {
                        true => {
                            model.deliver(number, id, consumer, deliveries.saturating_add(1));
                            entry(id)
                        }
                        false => Reply::Array(vec![id_reply(id), Reply::NullArray]),
                    });
                }
                let line = format!("XREADGROUP GROUP {group} c{consumer} STREAMS s 0");
                run(
                    line,
                    Reply::Keyed(vec![(bulk("s"), Reply::Array(expected))]),
                );
            }
            7 => {
                let was = model.groups[number].pending.remove(&id).is_some();
                run(
                    format!("XACK s {group} {id}-0"),
                    Reply::count(usize::from(was)),
                );
            }
            8 => {
                let claimed = model.claim(number, id, consumer, min_idle_ms) == Some(true);
                let line = format!("XCLAIM s {group} c{consumer} {min_idle_ms} {id}-0");
                run(line, entries(claimed.then_some(id)));
            }
            9 => {
                let (mut left, mut tries) = (count, count * 10);
                let (mut claimed, mut deleted, mut then) = (Vec::new(), Vec::new(), 0);
                let ids: Vec<usize> = model.groups[number].pending.keys().copied().collect();
                for id in ids.into_iter().filter(|one| *one >= id) {
                    if left == 0 || tries == 0 {
                        then = id;
                        break;
                    }
                    tries -= 1;
                    match model.claim(number, id, consumer, min_idle_ms) {
                        None => deleted.push(id_reply(id)),
                        Some(true) => claimed.push(id),
                        Some(false) => continue,
                    }
                    left -= 1;
                }
                let line =
                    format!("XAUTOCLAIM s {group} c{consumer} {min_idle_ms} {id} COUNT {count}");
                let expected = vec![id_reply(then), entries(claimed), Reply::Array(deleted)];
                run(line, Reply::Array(expected));
            }
            10 => {
                let (mode, change): (&str, fn(u64) -> u64) = match random.below(3) {
                    0 => ("SILENT", |deliveries| deliveries.saturating_sub(1)),
                    1 => ("FAIL", |deliveries| deliveries),
                    _ => ("FATAL", |_| i64::MAX as u64),
                };
                let mut released = 0;
                if let Some(one) = model.groups[number].pending.get_mut(&id) {
                    one.consumer = None;
                    one.at_ms = 0;
                    one.deliveries = change(one.deliveries);
                    one.comes_again = true;
                    released = 1;
                }
                run(
                    format!("XNACK s {group} {mode} IDS 1 {id}-0"),
                    int(released),
                );
            }
            11 => {
                let is_there = model.entries.contains(&id);
                let (word, code) = match random.below(4) {
                    0 => ("KEEPREF", 1),
                    1 => {
                        model.forget(id);
                        ("DELREF", 1)
                    }
                    _ if model.is_referenced(id) => ("ACKED", 2),
                    _ => ("ACKED", 1),
                };
                if code == 1 {
                    model.entries.remove(&id);
                }
                let code = if is_there || code == 2 { code } else { -1 };
                run(
                    format!("XDELEX s {word} IDS 1 {id}-0"),
                    Reply::Array(vec![int(code)]),
                );
            }
            12 => {
                let was = model.groups[number].pending.remove(&id).is_some();
                let (word, code) = match random.below(4) {
                    _ if !was => ("ACKED", -1),
                    0 => ("KEEPREF", 1),
                    1 => {
                        model.forget(id);
                        ("DELREF", 1)
                    }
                    _ if model.is_referenced(id) => ("ACKED", 2),
                    _ => ("ACKED", 1),
                };
                if code == 1 {
                    model.entries.remove(&id);
                }
                let line = format!("XACKDEL s {group} {word} IDS 1 {id}-0");
                run(line, Reply::Array(vec![int(code)]));
            }
            13 if random.below(2) == 0 => {
                let policy = (random.below(4) != 0).then(|| {
                    let max_tries = (random.below(2) == 0).then(|| 1 + random.below(3));
                    Policy {
                        min_idle_ms: 10 * (1 + random.below(3) as i64),
                        max_tries,
                        has_dead_letters: max_tries.is_some() && random.below(2) == 0,
                    }
                });
                let mut line = format!("XGROUP SETPOLICY s {group}");
                if let Some(policy) = policy {
                    line += &format!(" MINIDLE {}", policy.min_idle_ms);
                    if let Some(max_tries) = policy.max_tries {
                        line += &format!(" MAXTRIES {max_tries}");
                    }
                    if policy.has_dead_letters {
                        line += " DEADLETTER dead";
                    }
                }
                model.groups[number].policy = policy;
                for one in model.groups[number].pending.values_mut() {
                    one.comes_again = true;
                }
                run(line, Reply::OK);
            }
            13 if random.below(4) == 0 => {
                let before = model.groups[number].pending.len();
                let pending = &mut model.groups[number].pending;
                pending.retain(|_, one| one.consumer != Some(consumer));
                let gone = before - model.groups[number].pending.len();
                let line = format!("XGROUP DELCONSUMER s {group} c{consumer}");
                run(line, Reply::count(gone));
            }
            13 | 14 => {
                let passed_ms = 5 * random.below(5) as i64;
                bench.clock.advance_ms(passed_ms);
                model.now_ms += passed_ms;
            }
            _ => {
                for (number, group) in GROUPS.iter().enumerate() {
                    run(format!("XPENDING s {group} - + 1000"), model.shown(number));
                    let Reply::Array(summary) = bench.run(&format!("XPENDING s {group}")) else {
                        panic!("no summary");
                    };
                    assert_eq!(summary[0], Reply::count(model.groups[number].pending.len()));
                }
                run(
                    "XRANGE s - +".to_owned(),
                    entries(model.entries.iter().copied()),
                );
                run("XLEN dead".to_owned(), Reply::count(model.dead));
            }
        }
    }
}

#[test]
fn a_random_history_is_that_of_the_model() {
    for seed in 1..=4 {
        history(&Bench::embedded(), seed);
    }
}

#[test]
fn a_random_history_is_that_of_the_model_with_many_writers() {
    for seed in 5..=8 {
        history(&Bench::cluster_like(), seed);
    }
}

#[test]
fn a_random_history_is_that_of_the_model_through_faults() {
    let conflicts = FaultRates {
        conflict_ppm: 50_000,
        ..FaultRates::default()
    };
    let random = || Arc::new(SeededRandom::new(11));
    let bench = Bench::with(|store| Arc::new(FaultyStore::new(store, conflicts, random())));
    history(&bench, 9);
    let rates = FaultRates {
        unknown_applied_ppm: 20_000,
        unknown_not_applied_ppm: 20_000,
        too_old_ppm: 1_000,
        ..conflicts
    };
    for seed in 10..=12 {
        let bench = Bench::with(|store| {
            let store = OptimisticStore::new(store);
            Arc::new(FaultyStore::new(store, rates, random()))
        });
        history(&bench, seed);
    }
}
