//! Random histories, compared with a model in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use quoin_store::faults::{FaultRates, FaultyStore, OptimisticStore};

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Ready,
    Leased,
    Delayed,
    Dead,
}

#[derive(Clone, Debug)]
struct Task {
    priority: i64,
    number: u64,
    gb: u64,
    state: State,
    tries: i64,
    tries_max: i64,
    at_ms: i64,
    token: String,
    worker: Option<String>,
    reason: Option<String>,
}

/// A task queue in memory.
struct Model {
    now_ms: i64,
    tolerance_ms: i64,
    is_paused: bool,
    tasks: BTreeMap<String, Task>,
}

impl Model {
    fn settle(&mut self, task: &mut Task) {
        let is_spent = task.tries_max > 0 && task.tries >= task.tries_max;
        task.state = if is_spent { State::Dead } else { State::Ready };
        task.at_ms = if is_spent { self.now_ms } else { 0 };
    }

    fn put_back(&mut self) {
        let mut tasks = std::mem::take(&mut self.tasks);
        for task in tasks.values_mut() {
            let waits = matches!(task.state, State::Leased | State::Delayed);
            if waits && task.at_ms <= self.now_ms {
                self.settle(task);
            }
        }
        self.tasks = tasks;
    }

    fn ready(&self, gb: u64) -> Vec<String> {
        let mut fitting: Vec<_> = self
            .tasks
            .iter()
            .filter(|(_, task)| task.state == State::Ready && task.gb <= gb)
            .map(|(id, task)| ((task.priority, task.number), id.clone()))
            .collect();
        fitting.sort();
        fitting.into_iter().map(|(_, id)| id).collect()
    }

    /// The code for a client that names a lease.
    fn lease(&self, id: &str, token: Option<&str>) -> i64 {
        match self.tasks.get(id) {
            None => 0,
            Some(task) if task.state != State::Leased || task.at_ms <= self.now_ms => -1,
            Some(task) if token.is_some_and(|token| token != task.token) => -2,
            Some(_) => 1,
        }
    }

    /// The tasks of a state in the order of TASK.LIST.
    fn list(&self, state: State) -> Vec<(String, Task)> {
        let tasks = self.tasks.iter();
        let tasks = tasks.filter(|(_, task)| task.state == state);
        let mut tasks: Vec<_> = tasks.map(|(id, task)| (id.clone(), task.clone())).collect();
        tasks.sort_by_key(|(_, task)| match state {
            State::Ready => (task.priority, task.number),
            _ => (task.at_ms, task.number),
        });
        tasks
    }

    fn count(&self, state: State) -> Reply {
        let of_state = self.tasks.values().filter(|task| task.state == state);
        Reply::count(of_state.count())
    }
}

fn history(bench: &Bench, seed: u64, tolerance_ms: i64) {
    let random = SeededRandom::new(seed);
    let mut model = Model {
        now_ms: quoin_engine::testing::START_MS,
        tolerance_ms,
        is_paused: false,
        tasks: BTreeMap::new(),
    };
    let mut number = 0;
    for step in 0..500 {
        let id = format!("t{}", random.below(25));
        let told = format!("seed {seed} step {step} id {id}");
        let lease_ms = 100 * (1 + random.below(30) as i64);
        let known = model.tasks.get(&id).cloned();
        let token = match (&known, random.below(3)) {
            (Some(task), 0) if !task.token.is_empty() => Some(task.token.clone()),
            (_, 1) => Some(format!("{:016x}", random.next_u64())),
            _ => None,
        };
        let named = token
            .as_ref()
            .map_or(String::new(), |token| format!(" TOKEN {token}"));
        let code = model.lease(&id, token.as_deref());
        match random.below(18) {
            0..=3 => {
                let task = Task {
                    priority: random.below(4) as i64,
                    number,
                    gb: random.below(6),
                    state: State::Ready,
                    tries: 0,
                    tries_max: random.below(4) as i64,
                    at_ms: 0,
                    token: String::new(),
                    worker: None,
                    reason: None,
                };
                let mut line = format!("TASK.ADD q {} p{id} ID {id}", task.priority);
                if task.gb > 0 {
                    line += &format!(" NEEDS gb {}", task.gb);
                }
                if task.tries_max > 0 {
                    line += &format!(" MAXTRIES {}", task.tries_max);
                }
                let mut task = task;
                if random.below(3) == 0 {
                    line += &format!(" DELAY {lease_ms}");
                    task.state = State::Delayed;
                    task.at_ms = model.now_ms + lease_ms;
                }
                let reply = bench.run(&line);
                if known.is_some() {
                    assert_eq!(reply, error("EXISTS Task id already exists"), "{told}");
                } else {
                    assert_eq!(reply, bulk(&id), "{told}");
                    model.tasks.insert(id, task);
                    number += 1;
                }
            }
            4..=6 => {
                let (count, gb) = (1 + random.below(3), random.below(7));
                let is_leased = random.below(3) != 0;
                let worker = (random.below(2) == 0).then(|| format!("w{}", random.below(3)));
                let lease = match (&worker, is_leased) {
                    (_, false) => String::new(),
                    (None, true) => format!(" LEASE {lease_ms}"),
                    (Some(worker), true) => format!(" LEASE {lease_ms} WORKER {worker}"),
                };
                let reply = bench.run(&format!("TASK.TAKE q COUNT {count} HAVING gb {gb}{lease}"));
                model.put_back();
                let mut expected = match model.is_paused {
                    true => Vec::new(),
                    false => model.ready(gb),
                };
                expected.truncate(count as usize);
                assert_eq!(ids(&reply), expected, "{told}");
                for parts in parts(&reply) {
                    let id = text(&parts[0]);
                    let mut task = model.tasks.remove(&id).unwrap();
                    task.tries += 1;
                    assert_eq!(parts[2], Reply::Integer(task.tries), "{told}");
                    assert_eq!(parts[4], bulk(&format!("p{id}")), "{told}");
                    if is_leased {
                        task.state = State::Leased;
                        task.at_ms = model.now_ms + lease_ms + model.tolerance_ms;
                        task.token = text(&parts[5]);
                        task.worker.clone_from(&worker);
                        model.tasks.insert(id, task);
                    }
                }
            }
            7 => {
                let reply = bench.run(&format!("TASK.ACK q {id}{named}"));
                assert_eq!(reply, codes(&[code]), "{told}");
                if code == 1 {
                    model.tasks.remove(&id);
                }
            }
            8 => {
                let delay_ms = 100 * random.below(20) as i64;
                let reason = (random.below(2) == 0).then(|| format!("r{step}"));
                let why = { reason.iter() }.map(|reason| format!(" REASON {reason}"));
                let why: String = why.collect();
                let line = format!("TASK.NACK q {id} DELAY {delay_ms}{why}{named}");
                let reply = bench.run(&line);
                let mut expected = code;
                if let (1, Some(mut task)) = (code, known) {
                    task.reason = reason.or(task.reason);
                    model.settle(&mut task);
                    if task.state == State::Dead {
                        expected = 2;
                    } else if delay_ms > 0 {
                        task.state = State::Delayed;
                        task.at_ms = model.now_ms + delay_ms;
                    }
                    model.tasks.insert(id, task);
                }
                assert_eq!(reply, Reply::Integer(expected), "{told}");
            }
            9 => {
                let reply = bench.run(&format!("TASK.EXTEND q {id} {lease_ms}{named}"));
                assert_eq!(reply, Reply::Integer(code), "{told}");
                if let (1, Some(task)) = (code, model.tasks.get_mut(&id)) {
                    task.at_ms = model.now_ms + lease_ms + model.tolerance_ms;
                }
            }
            10 if random.below(3) == 0 => {
                let reply = bench.run(&format!("TASK.CANCEL q {id}"));
                assert_eq!(reply, Reply::count(usize::from(known.is_some())), "{told}");
                model.tasks.remove(&id);
            }
            11 => {
                let reply = bench.run(&format!("TASK.REVIVE q {id}"));
                let is_dead = known.as_ref().is_some_and(|task| task.state == State::Dead);
                assert_eq!(reply, Reply::count(usize::from(is_dead)), "{told}");
                if let (true, Some(task)) = (is_dead, model.tasks.get_mut(&id)) {
                    task.state = State::Ready;
                    task.tries = 0;
                    task.at_ms = 0;
                }
            }
            13 if random.below(3) == 0 => {
                assert_eq!(
                    bench.run("TASK.REVIVE q ALL"),
                    model.count(State::Dead),
                    "{told}"
                );
                for task in model.tasks.values_mut() {
                    if task.state == State::Dead {
                        task.state = State::Ready;
                        task.tries = 0;
                        task.at_ms = 0;
                    }
                }
            }
            14 if random.below(4) == 0 => {
                let (word, state) = [
                    ("READY", State::Ready),
                    ("LEASED", State::Leased),
                    ("DELAYED", State::Delayed),
                    ("DEAD", State::Dead),
                ][random.below(4) as usize];
                let purged = Reply::Array(vec![bulk("0"), model.count(state)]);
                assert_eq!(
                    bench.run(&format!("TASK.PURGE q {word}")),
                    purged,
                    "{told} {word}"
                );
                model.tasks.retain(|_, task| task.state != state);
            }
            15 => {
                let done = Reply::count(usize::from(model.is_paused));
                assert_eq!(bench.run("TASK.RESUME q"), done, "{told}");
                model.is_paused = false;
            }
            16 if random.below(3) == 0 => {
                let done = Reply::count(usize::from(!model.is_paused));
                assert_eq!(bench.run("TASK.PAUSE q"), done, "{told}");
                model.is_paused = true;
            }
            12 => {
                bench.clock.advance_ms(lease_ms);
                model.now_ms += lease_ms;
            }
            _ => {
                reap(bench);
                model.put_back();
                for (word, state) in [
                    ("READY", State::Ready),
                    ("LEASED", State::Leased),
                    ("DELAYED", State::Delayed),
                    ("DEAD", State::Dead),
                ] {
                    let reply = bench.run(&format!("TASK.LEN q {word}"));
                    assert_eq!(reply, model.count(state), "{told} {word}");
                    let expected = model.list(state);
                    let count = 1 + random.below(9) as usize;
                    let listed = listed(bench, "q", word, count);
                    assert_eq!(listed.len(), expected.len(), "{told} {word}");
                    for (fields, (id, task)) in listed.iter().zip(expected) {
                        let note = |note: Option<String>| note.map_or(Reply::Null, |it| bulk(&it));
                        assert_eq!(field(fields, "id"), bulk(&id), "{told} {word}");
                        assert_eq!(field(fields, "tries"), Reply::Integer(task.tries), "{told}");
                        assert_eq!(field(fields, "worker"), note(task.worker), "{told} {word}");
                        assert_eq!(field(fields, "reason"), note(task.reason), "{told} {word}");
                        if state != State::Ready {
                            assert_eq!(
                                field(fields, "at-ms"),
                                Reply::Integer(task.at_ms),
                                "{told}"
                            );
                        }
                    }
                }
                let reply = bench.run("TASK.PEEK q COUNT 100 HAVING gb inf");
                assert_eq!(ids(&reply), model.ready(100), "{told}");
                let mut dead: Vec<_> = model
                    .tasks
                    .iter()
                    .filter(|(_, task)| task.state == State::Dead)
                    .map(|(id, task)| ((task.at_ms, task.number), id.clone()))
                    .collect();
                dead.sort();
                let dead: Vec<_> = dead.into_iter().map(|(_, id)| id).collect();
                assert_eq!(ids(&bench.run("TASK.DEAD q COUNT 100")), dead, "{told}");
                let exists = Reply::count(usize::from(model.is_paused || !model.tasks.is_empty()));
                assert_eq!(bench.run("EXISTS q"), exists, "{told}");
            }
        }
    }
}

#[test]
fn a_random_history_is_that_of_the_model() {
    for seed in 1..=3 {
        history(&Bench::embedded(), seed, 0);
    }
}

#[test]
fn a_random_history_is_that_of_the_model_with_many_writers() {
    for seed in 4..=6 {
        history(&Bench::cluster_like(), seed, 500);
    }
}

fn faults() -> FaultRates {
    FaultRates {
        conflict_ppm: 50_000,
        ..FaultRates::default()
    }
}

#[test]
fn a_random_history_is_that_of_the_model_through_faults() {
    let random = || Arc::new(SeededRandom::new(11));
    let bench = Bench::with(|store| Arc::new(FaultyStore::new(store, faults(), random())));
    history(&bench, 7, 0);
    let rates = FaultRates {
        unknown_applied_ppm: 20_000,
        unknown_not_applied_ppm: 20_000,
        ..faults()
    };
    let bench = Bench::with(|store| {
        Arc::new(FaultyStore::new(
            OptimisticStore::new(store),
            rates,
            random(),
        ))
    });
    history(&bench, 8, 500);
}
