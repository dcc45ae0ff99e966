//! Random histories, compared with a model in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::*;
use quoin_store::faults::{FaultRates, FaultyStore, OptimisticStore};

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Ready,
    Leased,
    Delayed,
    Dead,
    Waiting,
}

const STATES: [(&str, State); 5] = [
    ("READY", State::Ready),
    ("LEASED", State::Leased),
    ("DELAYED", State::Delayed),
    ("DEAD", State::Dead),
    ("WAITING", State::Waiting),
];

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
    expires_ms: Option<i64>,
    group: Option<String>,
    /// What it waits for.
    awaited: BTreeSet<String>,
}

/// Groups come by name, followed by tasks without a group.
fn group_place(group: &Option<String>) -> (bool, Option<String>) {
    (group.is_none(), group.clone())
}

/// What TASK.SETOPTIONS has set. 0 means not set.
#[derive(Clone, Default, PartialEq, Debug)]
struct Options {
    tries_max: i64,
    backoff_ms: i64,
    backoff_max_ms: i64,
    lease_ms: i64,
    ttl_ms: i64,
    length_max: usize,
    drops: bool,
    has_dead_letters: bool,
    leases_max: usize,
    group_leases_max: usize,
    /// Tasks within a time.
    rate: (usize, i64),
}

impl Options {
    fn random(random: &SeededRandom) -> Self {
        let mut options = Self::default();
        let or_zero = |value: u64| {
            if random.below(2) == 0 {
                0
            } else {
                value as i64
            }
        };
        options.tries_max = or_zero(1 + random.below(3));
        options.backoff_ms = or_zero(100 * (1 + random.below(10)));
        options.backoff_max_ms = or_zero(100 * (1 + random.below(40)));
        options.lease_ms = or_zero(100 * (1 + random.below(20)));
        options.ttl_ms = or_zero(100 * (1 + random.below(60)));
        options.length_max = or_zero(2 + random.below(8)) as usize;
        options.drops = random.below(2) == 0;
        options.has_dead_letters = random.below(2) == 0;
        options.leases_max = or_zero(1 + random.below(4)) as usize;
        options.group_leases_max = or_zero(1 + random.below(3)) as usize;
        if random.below(2) == 0 {
            let period_ms = 100 * (1 + random.below(40) as i64);
            options.rate = (1 + random.below(4) as usize, period_ms);
        }
        options
    }

    fn line(&self) -> String {
        let Self {
            tries_max,
            backoff_ms,
            backoff_max_ms,
            ..
        } = self;
        let Self {
            lease_ms,
            ttl_ms,
            length_max,
            leases_max,
            group_leases_max,
            rate: (rate_max, period_ms),
            ..
        } = self;
        let overflow = if self.drops { "DROP" } else { "refuse" };
        // An empty value is an empty word, which a line of words cannot express.
        let letters = if self.has_dead_letters {
            " DEADLETTER letters"
        } else {
            ""
        };
        format!(
            "TASK.SETOPTIONS q MAXTRIES {tries_max} BACKOFF {backoff_ms} BACKOFFMAX {backoff_max_ms} \
             LEASE {lease_ms} TTL {ttl_ms} MAXLEN {length_max} LEASES {leases_max} \
             GROUPLEASES {group_leases_max} RATE {rate_max} {period_ms} OVERFLOW {overflow}{letters}"
        )
    }

    fn delay_ms(&self, tries: i64) -> i64 {
        let doubled_ms = (1..tries).fold(self.backoff_ms, |ms, _| ms * 2);
        doubled_ms.min(self.backoff_max_ms).max(self.backoff_ms)
    }
}

/// A task queue in memory.
struct Model {
    now_ms: i64,
    tolerance_ms: i64,
    is_paused: bool,
    options: Options,
    tasks: BTreeMap<String, Task>,
    /// The ids of the tasks in the queue for dead tasks.
    letters: BTreeSet<String>,
    /// The end of the period in which takes are counted, and their number.
    period: (i64, usize),
    /// The group that had the last turn.
    last_turn: Option<String>,
}

impl Model {
    fn settle(&mut self, task: &mut Task) {
        let is_spent = task.tries_max > 0 && task.tries >= task.tries_max;
        task.state = if is_spent { State::Dead } else { State::Ready };
        task.at_ms = if is_spent { self.now_ms } else { 0 };
    }

    fn put_back(&mut self) {
        let due = { self.tasks.iter() }.filter(|(_, task)| {
            let waits = matches!(task.state, State::Leased | State::Delayed);
            waits && task.at_ms <= self.now_ms
        });
        let due: Vec<_> = due.map(|(id, _)| id.clone()).collect();
        for id in due {
            let mut task = self.tasks.remove(&id).unwrap();
            self.settle(&mut task);
            self.place(id, task);
        }
    }

    /// Puts a task where it belongs in its new state.
    fn place(&mut self, id: String, task: Task) {
        let waits = !matches!(task.state, State::Leased | State::Dead);
        let is_too_old = waits && task.expires_ms.is_some_and(|at_ms| at_ms <= self.now_ms);
        if is_too_old {
            self.discard(id, task, "expired");
        } else if task.state == State::Dead
            && self.options.has_dead_letters
            && self.letters.insert(id.clone())
        {
            // It is there now.
        } else {
            self.tasks.insert(id, task);
        }
    }

    /// Removes a task that is too old, or one of too many.
    fn discard(&mut self, id: String, mut task: Task, reason: &str) {
        if self.options.has_dead_letters && !self.letters.insert(id.clone()) {
            task.state = State::Dead;
            task.at_ms = self.now_ms;
            task.reason = Some(reason.to_owned());
            self.tasks.insert(id, task);
        }
    }

    /// Ends the waits for a task that was acknowledged, or taken without a lease.
    fn release(&mut self, acknowledged: &str) {
        let ids: Vec<_> = self.tasks.keys().cloned().collect();
        for id in ids {
            let mut task = self.tasks.remove(&id).unwrap();
            let waited = task.awaited.remove(acknowledged);
            if !waited || !task.awaited.is_empty() {
                self.tasks.insert(id, task);
                continue;
            }
            task.state = match task.at_ms > self.now_ms {
                true => State::Delayed,
                false => State::Ready,
            };
            self.place(id, task);
        }
    }

    fn expire(&mut self) {
        let ids: Vec<_> = self.tasks.keys().cloned().collect();
        for id in ids {
            let task = self.tasks.remove(&id).unwrap();
            match task.state {
                State::Ready | State::Delayed | State::Waiting => self.place(id, task),
                State::Leased | State::Dead => drop(self.tasks.insert(id, task)),
            }
        }
    }

    /// Makes room for a task. If there is none, nothing changes.
    fn has_made_room(&mut self, group: &Option<String>) -> bool {
        let before = (self.tasks.clone(), self.letters.clone());
        let has_room = self.make_room(group);
        if !has_room {
            (self.tasks, self.letters) = before;
        }
        has_room
    }

    /// The id of the task that is dropped first.
    fn dropped(&self, group: &Option<String>) -> Option<String> {
        let ready = || { self.tasks.iter() }.filter(|(_, task)| task.state == State::Ready);
        let order = |task: &Task| (task.priority, u64::MAX - task.number);
        let own = ready().filter(|(_, task)| task.group == *group);
        let own = own.max_by_key(|(_, task)| order(task));
        // Otherwise, of the last group among tasks with the same needs.
        let of_class = |needs: bool| {
            let class = ready().filter(|(_, task)| (task.gb > 0) == needs);
            class.max_by_key(|(_, task)| (group_place(&task.group), order(task)))
        };
        let others = [false, true].into_iter().filter_map(of_class);
        let found = own.or_else(|| others.max_by_key(|(_, task)| order(task)));
        found.map(|(id, _)| id.clone())
    }

    fn make_room(&mut self, group: &Option<String>) -> bool {
        let alive = self
            .tasks
            .values()
            .filter(|task| task.state != State::Dead)
            .count();
        let max = self.options.length_max;
        let surplus = if max == 0 {
            0
        } else {
            (alive + 1).saturating_sub(max)
        };
        for _ in 0..surplus.min(4) {
            let (Some(id), true) = (self.dropped(group), self.options.drops) else {
                return false;
            };
            let task = self.tasks.remove(&id).unwrap();
            self.discard(id, task, "dropped");
        }
        true
    }

    /// Up to `count` tasks that fit, with groups taking turns.
    fn ready(&self, gb: u64, count: usize, is_leased: bool) -> Vec<String> {
        let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (id, task) in &self.tasks {
            if task.state == State::Ready && task.gb <= gb {
                let group = groups.entry(group_place(&task.group)).or_default();
                group.push(((task.priority, task.number), id.clone()));
            }
        }
        for (group, tasks) in &mut groups {
            tasks.sort();
            let max = self.options.group_leases_max;
            if is_leased && max > 0 {
                let leased = { self.tasks.values() }
                    .filter(|task| task.state == State::Leased && task.group == group.1);
                tasks.truncate(max.saturating_sub(leased.count()));
            }
        }
        let last = group_place(&self.last_turn);
        let earlier = groups.range(..=last.clone());
        let circle: Vec<_> = { groups.range((Bound::Excluded(last), Bound::Unbounded)) }
            .chain(earlier)
            .map(|(_, tasks)| tasks)
            .collect();
        let rounds = circle.iter().map(|tasks| tasks.len()).max().unwrap_or(0);
        let taken = (0..rounds).flat_map(|round| circle.iter().filter_map(move |it| it.get(round)));
        taken.take(count).map(|(_, id)| id.clone()).collect()
    }

    /// How many tasks consumers may get.
    fn room(&self, is_leased: bool) -> usize {
        let mut room = usize::MAX;
        if self.options.leases_max > 0 && is_leased {
            let leased = { self.tasks.values() }.filter(|task| task.state == State::Leased);
            room = self.options.leases_max.saturating_sub(leased.count());
        }
        if let (max @ 1.., _) = self.options.rate {
            let (until_ms, taken) = self.period;
            let taken = if until_ms > self.now_ms { taken } else { 0 };
            room = room.min(max.saturating_sub(taken));
        }
        room
    }

    fn count_taken(&mut self, taken: usize) {
        if self.options.rate.0 > 0 && taken > 0 {
            if self.period.0 <= self.now_ms {
                self.period = (self.now_ms + self.options.rate.1, 0);
            }
            self.period.1 += taken;
        }
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
            State::Ready => (group_place(&task.group), task.priority, task.number),
            _ => (group_place(&None), task.at_ms, task.number),
        });
        tasks
    }

    fn count(&self, state: State) -> Reply {
        let of_state = self.tasks.values().filter(|task| task.state == state);
        Reply::count(of_state.count())
    }
}

fn history(bench: &Bench, seed: u64, tolerance_ms: i64, with_options: bool) {
    let random = SeededRandom::new(seed);
    let mut model = Model {
        now_ms: quoin_engine::testing::START_MS,
        tolerance_ms,
        is_paused: false,
        options: Options::default(),
        tasks: BTreeMap::new(),
        letters: BTreeSet::new(),
        period: (0, 0),
        last_turn: None,
    };
    let mut number = 0;
    for step in 0..500 {
        if with_options && random.below(40) == 0 {
            let former = std::mem::replace(&mut model.options, Options::random(&random));
            let limits =
                |options: &Options| (options.leases_max, options.group_leases_max, options.rate);
            if limits(&former) != limits(&model.options) {
                model.period = (0, 0);
            }
            bench.run_words(&[b"TASK.SETOPTIONS", b"q", b"DEADLETTER", b""]);
            assert_eq!(bench.run(&model.options.line()), Reply::OK);
        }
        if with_options && random.below(40) == 0 {
            bench.run("DEL letters");
            model.letters.clear();
        }
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
                    expires_ms: None,
                    group: (with_options && random.below(3) > 0)
                        .then(|| format!("g{}", random.below(3))),
                    awaited: BTreeSet::new(),
                };
                let mut line = format!("TASK.ADD q {} p{id} ID {id}", task.priority);
                if task.gb > 0 {
                    line += &format!(" NEEDS gb {}", task.gb);
                }
                if task.tries_max > 0 {
                    line += &format!(" MAXTRIES {}", task.tries_max);
                }
                if let Some(group) = &task.group {
                    line += &format!(" GROUP {group}");
                }
                let mut task = task;
                if task.tries_max == 0 {
                    task.tries_max = model.options.tries_max;
                }
                let mut ttl_ms = model.options.ttl_ms;
                if with_options && random.below(4) == 0 {
                    ttl_ms = 100 * random.below(30) as i64;
                    line += &format!(" TTL {ttl_ms}");
                }
                task.expires_ms = (ttl_ms > 0).then_some(model.now_ms + ttl_ms);
                if random.below(3) == 0 {
                    line += &format!(" DELAY {lease_ms}");
                    task.state = State::Delayed;
                    task.at_ms = model.now_ms + lease_ms;
                }
                let named = match with_options && random.below(3) == 0 {
                    true => 1 + random.below(3),
                    false => 0,
                };
                let named = (0..named).map(|_| format!("t{}", random.below(25)));
                let named: Vec<_> = named.collect();
                if !named.is_empty() {
                    line += &format!(" AFTER {} {}", named.len(), named.join(" "));
                }
                let reply = bench.run(&line);
                let before = (model.tasks.clone(), model.letters.clone());
                let is_awaited = { model.tasks.values() }.any(|other| other.awaited.contains(&id));
                if known.is_some() {
                    assert_eq!(reply, error("EXISTS Task id already exists"), "{told}");
                } else if !model.has_made_room(&task.group) {
                    assert_eq!(reply, error("FULL Task queue is full"), "{told}");
                } else {
                    let known = named.into_iter().filter(|id| model.tasks.contains_key(id));
                    task.awaited = known.collect();
                    if is_awaited && !task.awaited.is_empty() {
                        let refused = "ERR task cannot wait for others, as others wait for its id";
                        assert_eq!(reply, error(refused), "{told}");
                        (model.tasks, model.letters) = before;
                        continue;
                    }
                    if !task.awaited.is_empty() {
                        task.state = State::Waiting;
                        task.at_ms = task.at_ms.max(model.now_ms);
                    }
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
                let lease_ms = if is_leased {
                    lease_ms
                } else {
                    model.options.lease_ms
                };
                let count = model.room(lease_ms > 0).min(count as usize);
                let expected = match model.is_paused {
                    true => Vec::new(),
                    false => model.ready(gb, count, lease_ms > 0),
                };
                assert_eq!(ids(&reply), expected, "{told}");
                model.count_taken(expected.len());
                let worker = worker.filter(|_| is_leased);
                let is_leased = lease_ms > 0;
                for parts in parts(&reply) {
                    let id = text(&parts[0]);
                    let mut task = model.tasks.remove(&id).unwrap();
                    model.last_turn.clone_from(&task.group);
                    task.tries += 1;
                    assert_eq!(parts[2], Reply::Integer(task.tries), "{told}");
                    assert_eq!(parts[4], bulk(&format!("p{id}")), "{told}");
                    if is_leased {
                        task.state = State::Leased;
                        task.at_ms = model.now_ms + lease_ms + model.tolerance_ms;
                        task.token = text(&parts[5]);
                        task.worker.clone_from(&worker);
                        model.tasks.insert(id, task);
                    } else {
                        model.release(&id);
                    }
                }
            }
            7 => {
                let reply = bench.run(&format!("TASK.ACK q {id}{named}"));
                assert_eq!(reply, codes(&[code]), "{told}");
                if code == 1 {
                    model.tasks.remove(&id);
                    model.release(&id);
                }
            }
            8 => {
                let delay_ms = 100 * random.below(20) as i64;
                let reason = (random.below(2) == 0).then(|| format!("r{step}"));
                let why = { reason.iter() }.map(|reason| format!(" REASON {reason}"));
                let why: String = why.collect();
                let is_delayed = !with_options || random.below(2) == 0;
                let delay = match is_delayed {
                    true => format!(" DELAY {delay_ms}"),
                    false => String::new(),
                };
                let line = format!("TASK.NACK q {id}{delay}{why}{named}");
                let reply = bench.run(&line);
                let mut expected = code;
                if let (1, Some(mut task)) = (code, known) {
                    task.reason = reason.or(task.reason);
                    model.settle(&mut task);
                    let is_too_old = { task.expires_ms }.is_some_and(|at_ms| at_ms <= model.now_ms);
                    let delay_ms = match is_delayed {
                        true => delay_ms,
                        false => model.options.delay_ms(task.tries),
                    };
                    if task.state == State::Dead || is_too_old {
                        expected = 2;
                    } else if delay_ms > 0 {
                        task.state = State::Delayed;
                        task.at_ms = model.now_ms + delay_ms;
                    }
                    model.tasks.remove(&id);
                    model.place(id, task);
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
                let is_waiting = { known.as_ref() }.is_some_and(|it| it.state == State::Waiting);
                let is_dead = known.as_ref().is_some_and(|task| task.state == State::Dead);
                let is_revived = is_dead || is_waiting;
                assert_eq!(reply, Reply::count(usize::from(is_revived)), "{told}");
                if let (true, Some(task)) = (is_waiting, model.tasks.get_mut(&id)) {
                    task.state = State::Ready;
                    task.awaited.clear();
                }
                if let (true, Some(task)) = (is_dead, model.tasks.get_mut(&id)) {
                    task.state = State::Ready;
                    task.tries = 0;
                    task.at_ms = 0;
                    task.expires_ms = None;
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
                        task.expires_ms = None;
                    }
                }
            }
            14 if random.below(4) == 0 => {
                let (word, state) = STATES[random.below(5) as usize];
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
                if with_options {
                    // Removes tasks that are too old. The model does not know when a take finds
                    // them.
                    reap(bench);
                    model.put_back();
                    model.expire();
                }
            }
            _ => {
                reap(bench);
                model.put_back();
                let letters = listed_ids(bench, "letters", "READY", 50);
                let letters: BTreeSet<_> = letters.into_iter().collect();
                assert_eq!(letters, model.letters, "{told}");
                for (word, state) in STATES {
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
                        assert_eq!(field(fields, "group"), note(task.group), "{told} {word}");
                        let awaited: Vec<_> = task.awaited.iter().map(|id| bulk(id)).collect();
                        assert_eq!(field(fields, "after"), Reply::Array(awaited), "{told}");
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
                assert_eq!(ids(&reply), model.ready(100, 100, false), "{told}");
                let mut dead: Vec<_> = model
                    .tasks
                    .iter()
                    .filter(|(_, task)| task.state == State::Dead)
                    .map(|(id, task)| ((task.at_ms, task.number), id.clone()))
                    .collect();
                dead.sort();
                let dead: Vec<_> = dead.into_iter().map(|(_, id)| id).collect();
                assert_eq!(ids(&bench.run("TASK.DEAD q COUNT 100")), dead, "{told}");
                let is_set = model.is_paused || model.options != Options::default();
                let exists = Reply::count(usize::from(is_set || !model.tasks.is_empty()));
                assert_eq!(bench.run("EXISTS q"), exists, "{told}");
            }
        }
        let is_set = model.is_paused || model.options != Options::default();
        if with_options && model.tasks.is_empty() && !is_set {
            // On a cluster the key would only be hidden, and remember the last turn.
            bench.run("SET q x");
            bench.run("DEL q");
            model.last_turn = None;
        }
    }
}

#[test]
fn a_random_history_is_that_of_the_model() {
    for seed in 1..=3 {
        history(&Bench::embedded(), seed, 0, false);
    }
    for seed in 11..=18 {
        history(&Bench::embedded(), seed, 0, true);
    }
}

#[test]
fn a_random_history_is_that_of_the_model_with_many_writers() {
    for seed in 4..=6 {
        history(&Bench::cluster_like(), seed, 500, false);
    }
    for seed in 21..=26 {
        history(&Bench::cluster_like(), seed, 500, true);
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
    history(&bench, 7, 0, true);
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
    history(&bench, 8, 500, true);
}
