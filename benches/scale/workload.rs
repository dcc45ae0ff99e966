//! One case: clients that push and pop through servers, with a ledger of every element.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::ledger::{Ledger, Verdict};
use crate::queues::{Names, drain, fill};
use crate::servers::{Counters, Cpu};
use crate::settings::{Load, Settings};
use crate::wire::Client;
use crate::worker::{Role, Worker};

/// Elements in each queue before both sides begin.
const BACKLOG_OF_EACH: usize = 10;
/// Pipelines of all clients that are in the queues before both sides begin.
const BACKLOG_PIPELINES: usize = 4;
/// Longest sleep of a client before it checks again whether it may continue.
const RECHECK: Duration = Duration::from_millis(1);

/// What to do.
pub struct Case<'a> {
    pub settings: &'a Settings,
    pub load: Load,
    pub queues: usize,
    pub addresses: Vec<SocketAddr>,
    pub processes: Vec<u32>,
}

/// State that all clients of a case share.
pub struct Shared {
    pub names: Names,
    pub load: Load,
    pub pipeline: usize,
    pub payload_bytes: usize,
    pub start: Instant,
    pub ledger: RefCell<Ledger>,
    pub samples: RefCell<Samples>,
    pub work: Cell<Work>,
    /// The texts of the first errors.
    pub errors: RefCell<Vec<String>>,
    measure_from: Instant,
    until: Cell<Instant>,
    nils: Cell<u64>,
    /// Pushes that were sent and not popped, and their maximum.
    outstanding: Cell<i64>,
    outstanding_max: i64,
    /// Elements that certainly exist and that nobody has requested.
    available: Cell<i64>,
    news: Notify,
}

/// Measurements between warm-up and end.
#[derive(Default)]
pub struct Samples {
    pub operations: u64,
    pub latencies_us: Vec<u32>,
}

/// Elements and transactions that clients were answered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Work {
    pub list_pushes: u64,
    pub list_pops: u64,
    pub set_pushes: u64,
    pub set_pops: u64,
    pub stream_pushes: u64,
    pub stream_pops: u64,
    pub transactions: u64,
}

/// The result of a case.
pub struct Measured {
    pub operations: u64,
    pub window: Duration,
    pub latencies_us: Vec<u32>,
    /// Of the time that was measured.
    pub reading: Reading,
    pub verdict: Verdict,
    pub errors: Vec<String>,
}

/// The counts up to a moment.
pub struct Reading {
    pub at: Instant,
    pub work: Work,
    pub counters: Counters,
    pub cpu: Cpu,
    pub nils: u64,
    pub elapsed: Duration,
}

impl Reading {
    async fn take(case: &Case<'_>, shared: &Shared) -> io::Result<Self> {
        Ok(Self {
            counters: Counters::read(&case.addresses).await?,
            at: Instant::now(),
            work: shared.work.get(),
            cpu: Cpu::now(&case.processes),
            nils: shared.nils.get(),
            elapsed: Duration::ZERO,
        })
    }

    fn since(self, before: &Self) -> Self {
        let Work {
            list_pushes,
            list_pops,
            set_pushes,
            set_pops,
            stream_pushes,
            stream_pops,
            transactions,
        } = before.work;
        Self {
            at: self.at,
            work: Work {
                list_pushes: self.work.list_pushes - list_pushes,
                list_pops: self.work.list_pops - list_pops,
                set_pushes: self.work.set_pushes - set_pushes,
                set_pops: self.work.set_pops - set_pops,
                stream_pushes: self.work.stream_pushes - stream_pushes,
                stream_pops: self.work.stream_pops - stream_pops,
                transactions: self.work.transactions - transactions,
            },
            counters: self.counters.since(&before.counters),
            cpu: self.cpu.since(&before.cpu),
            nils: self.nils - before.nils,
            elapsed: self.at - before.at,
        }
    }
}

impl Shared {
    /// Whether the case has ended.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.until.get()
    }

    /// Microseconds since the start.
    pub fn at_us(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    /// Counts an operation if it falls into the measured time.
    pub fn sample(&self, latency: Duration, is_operation: bool) {
        let now = Instant::now();
        if now < self.measure_from || now >= self.until.get() {
            return;
        }
        let mut samples = self.samples.borrow_mut();
        samples.operations += u64::from(is_operation);
        samples.latencies_us.push(latency.as_micros() as u32);
    }

    /// Notes that a pop found nothing. A load that only pops ends after some of these.
    pub fn note_nil(&self) {
        self.nils.set(self.nils.get() + 1);
        self.available.set(self.available.get() + 1);
        let is_used_up = self.nils.get() > self.names.count() as u64 / 10;
        if self.load.is_filled() && is_used_up {
            self.until.set(self.until.get().min(Instant::now()));
        }
    }

    pub fn note_error(&self, line: &[u8]) {
        let mut errors = self.errors.borrow_mut();
        if errors.len() < 3 {
            errors.push(String::from_utf8_lossy(line).into_owned());
        }
    }

    /// An element has been acknowledged.
    pub fn note_pushed(&self) {
        self.available.set(self.available.get() + 1);
        self.news.notify_one();
    }

    /// An element has been popped.
    pub fn note_popped(&self) {
        self.outstanding.set(self.outstanding.get() - 1);
        self.news.notify_one();
    }

    pub fn add_work(&self, add: impl FnOnce(&mut Work)) {
        let mut work = self.work.get();
        add(&mut work);
        self.work.set(work);
    }

    /// Waits until a client may send; false when the case is over.
    pub async fn may_go_on(&self, role: Role, count: usize) -> bool {
        let count = count as i64;
        while !self.is_over() {
            let is_free = match role {
                _ if !self.load.has_two_sides() => true,
                Role::PushList | Role::PushSet => {
                    self.outstanding.get() + count <= self.outstanding_max
                }
                Role::PopList | Role::PopSet => self.available.get() >= count,
                Role::BlockingList | Role::Multi | Role::PushStream | Role::PopStream => true,
            };
            if is_free {
                match role {
                    Role::PushList | Role::PushSet => {
                        self.outstanding.set(self.outstanding.get() + count);
                    }
                    Role::PopList | Role::PopSet => {
                        self.available.set(self.available.get() - count);
                    }
                    Role::BlockingList | Role::Multi | Role::PushStream | Role::PopStream => {}
                }
                return true;
            }
            let _ = tokio::time::timeout(RECHECK, self.news.notified()).await;
        }
        false
    }
}

/// Runs a case to its end, and empties its queues.
pub async fn run(case: &Case<'_>) -> io::Result<Measured> {
    let Case { settings, load, .. } = case;
    let clients = settings.clients_of(case.addresses.len());
    let names = Names::new(*load, case.queues);
    let mut ledger = Ledger::new(clients + 1, settings.payload_bytes);
    let backlog = if load.is_filled() {
        settings.fill
    } else if load.has_two_sides() && *load != Load::Blocking {
        (clients * settings.pipeline * BACKLOG_PIPELINES).max(case.queues * BACKLOG_OF_EACH)
    } else {
        0
    };
    let filler = clients as u32;
    fill(&case.addresses, &names, backlog, &mut ledger, filler).await?;
    if load.is_filled() {
        tokio::time::sleep(settings.settle).await;
    }
    let start = Instant::now();
    let measure_from = start + settings.warm_up;
    let outstanding_max = match load {
        Load::Blocking => clients / 2,
        _ => backlog * 2,
    };
    let shared = Rc::new(Shared {
        names,
        load: *load,
        pipeline: match load {
            Load::Blocking => 1,
            _ => settings.pipeline,
        },
        payload_bytes: settings.payload_bytes,
        start,
        ledger: RefCell::new(ledger),
        samples: RefCell::default(),
        work: Cell::default(),
        errors: RefCell::default(),
        measure_from,
        until: Cell::new(measure_from + settings.duration),
        nils: Cell::new(0),
        outstanding: Cell::new(backlog as i64),
        outstanding_max: outstanding_max as i64,
        available: Cell::new(backlog as i64),
        news: Notify::new(),
    });
    let mut tasks = Vec::new();
    for number in 0..clients {
        let (role, turn) = role_of(*load, number, clients);
        let address = case.addresses[turn % case.addresses.len()];
        let client = Client::connect(address).await?;
        let worker = Worker::new(Rc::clone(&shared), client, role, number, clients);
        tasks.push(tokio::task::spawn_local(worker.run()));
    }
    tokio::time::sleep_until(measure_from.into()).await;
    let before = Reading::take(case, &shared).await?;
    while !shared.is_over() {
        tokio::time::sleep(RECHECK).await;
    }
    let reading = Reading::take(case, &shared).await?.since(&before);
    for task in tasks {
        task.await??;
    }
    let left = drain(&case.addresses, &shared).await?;
    let window = shared.until.get().saturating_duration_since(measure_from);
    let samples = shared.samples.take();
    let verdict = shared.ledger.borrow().verdict(left);
    Ok(Measured {
        operations: samples.operations,
        window,
        latencies_us: samples.latencies_us,
        reading,
        verdict,
        errors: shared.errors.take(),
    })
}

/// The number of operations of a load. An operation is an element that went through, or a
/// transaction.
pub fn operations(load: Load, work: &Work) -> u64 {
    match load {
        Load::Multi => work.transactions,
        _ if load.only_pushes() => work.list_pushes + work.set_pushes + work.stream_pushes,
        _ => work.list_pops + work.set_pops + work.stream_pops,
    }
}

/// A client's role, and its turn in choosing a server, so that each side is spread over all
/// servers.
fn role_of(load: Load, number: usize, clients: usize) -> (Role, usize) {
    let producers = clients / 2;
    let is_producer = number < producers;
    let role = match load {
        Load::Push => Role::PushList,
        Load::Pop => Role::PopList,
        Load::Zadd => Role::PushSet,
        Load::Zpopmin => Role::PopSet,
        Load::Xadd => Role::PushStream,
        Load::Xreadgroup => Role::PopStream,
        Load::Multi | Load::Idle => Role::Multi,
        Load::Steady | Load::Blocking if is_producer => Role::PushList,
        Load::Steady => Role::PopList,
        Load::Blocking => Role::BlockingList,
        Load::Zsteady if is_producer => Role::PushSet,
        Load::Zsteady => Role::PopSet,
    };
    let turn = match load.has_two_sides() && !is_producer {
        true => number - producers,
        false => number,
    };
    (role, turn)
}
