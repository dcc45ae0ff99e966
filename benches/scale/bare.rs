//! The limit: a client of FoundationDB that writes and clears the same rows as the servers, in
//! transactions of the same size and number. Each uses separate queues, so that nothing conflicts.
//! It does only what a transaction cannot do without: it reads the ends of the queues.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use foundationdb::future::FdbValues;
use foundationdb::options::{MutationType, StreamingMode};
use foundationdb::{Database, FdbResult, RangeOption, Transaction};
use futures_util::future::try_join_all;

use quoin_layout::{
    Id, KeyName, KeyRange, Layout, Member, MemberEntry, Position, StoredValue, StreamId,
    length_delta,
};

use crate::ledger::Ticket;

/// Bytes of the row of a pending entry, which names its consumer.
const PENDING_BYTES: usize = 20;
/// Rows of one transaction when queues are filled.
const FILL_ROWS: usize = 500;
/// Number of concurrent transactions of that kind.
const FILL_AT_ONCE: usize = 4;

/// How much a transaction does on average.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mix {
    pub list_pushes: f64,
    pub list_pops: f64,
    pub set_pushes: f64,
    pub set_pops: f64,
    /// Entries that are read in a group and acknowledged one transaction later.
    pub deliveries: f64,
}

/// Number of kinds of work in a transaction.
const KINDS: usize = 5;

impl Mix {
    fn parts(self) -> [f64; KINDS] {
        [
            self.list_pushes,
            self.list_pops,
            self.set_pushes,
            self.set_pops,
            self.deliveries,
        ]
    }
}

/// What the bare client should do.
pub struct BareCase<'a> {
    pub database: Rc<Database>,
    pub root_prefix: &'a str,
    pub payload_bytes: usize,
    pub queues: usize,
    /// Number of concurrent transactions.
    pub at_once: usize,
    pub mix: Mix,
    /// Elements that are in the queues before.
    pub fill: usize,
    /// Whether to end when a pop finds nothing.
    pub ends_when_empty: bool,
    pub settle: Duration,
    pub warm_up: Duration,
    pub duration: Duration,
}

/// The result.
pub struct BareMeasured {
    pub commits_per_s: f64,
    pub latencies_us: Vec<u32>,
}

struct Queue {
    data: Id,
    length_key: Vec<u8>,
    /// Its only group.
    group: Id,
    /// How many entries the group has read, and the row to continue after.
    delivered: Cell<u64>,
    read_to: RefCell<Vec<u8>>,
    /// The entries that are pending.
    pending: Cell<(u64, u64)>,
}

/// Runs one transaction after another.
pub struct Writer {
    database: Rc<Database>,
    layout: Layout,
    number: u64,
    payload: Vec<u8>,
    queues: Vec<Queue>,
    /// By kind of element: the queue for the next push and for the next pop.
    cursors: [usize; KINDS],
    /// Fractions of elements that the mix still owes.
    owed: [f64; KINDS],
    pushed: u32,
    transactions: u64,
}

/// A transaction's work on one queue.
struct Part<'w> {
    queue: &'w Queue,
    count: usize,
}

impl Writer {
    pub fn new(
        database: Rc<Database>,
        root_prefix: &str,
        number: usize,
        queues: usize,
        payload_bytes: usize,
    ) -> Self {
        let layout = Layout::new(root_prefix);
        let namespace = Id {
            instance: 0,
            sequence: 0,
        };
        let queues = (0..queues.max(1)).map(|queue| {
            let name = Bytes::from(format!("queue:{number}:{queue}"));
            let meta_key = layout.meta_key(namespace, &KeyName::new(&name));
            let data = Id {
                instance: number as u64 + 1,
                sequence: queue as u64,
            };
            Queue {
                data,
                length_key: layout.length_key(&meta_key),
                group: data,
                delivered: Cell::new(0),
                read_to: RefCell::new(layout.elements_prefix(data)),
                pending: Cell::new((0, 0)),
            }
        });
        Self {
            queues: queues.collect(),
            database,
            layout,
            number: number as u64,
            payload: vec![b'.'; payload_bytes],
            cursors: [0; KINDS],
            owed: [0.0; KINDS],
            pushed: 0,
            transactions: 0,
        }
    }

    /// Runs the next transaction of a mix until it is committed. Returns whether all pops found
    /// something.
    pub async fn run(&mut self, mix: Mix) -> FdbResult<bool> {
        let mut counts = [0; KINDS];
        while counts == [0; KINDS] {
            for ((owed, part), count) in self.owed.iter_mut().zip(mix.parts()).zip(&mut counts) {
                *owed += part;
                *count = *owed as usize;
                *owed -= *count as f64;
            }
        }
        let mut transaction = self.database.create_trx()?;
        loop {
            let error = match self.attempt(&transaction, counts).await {
                Ok(is_full) => match transaction.commit().await {
                    Ok(_) => return Ok(is_full),
                    Err(error) => {
                        transaction = error.on_error().await?;
                        continue;
                    }
                },
                Err(error) => error,
            };
            transaction = transaction.on_error(error).await?;
        }
    }

    /// Spreads `count` elements over the queues from a cursor on, one each while there are enough
    /// queues.
    fn parts<'q>(queues: &'q [Queue], cursor: &mut usize, count: usize) -> Vec<Part<'q>> {
        let wanted = count.min(queues.len());
        let parts = (0..wanted).map(|at| Part {
            queue: &queues[(*cursor + at) % queues.len()],
            count: count / wanted + usize::from(at < count % wanted),
        });
        let parts = parts.collect();
        *cursor = (*cursor + wanted) % queues.len();
        parts
    }

    async fn attempt(
        &mut self,
        transaction: &Transaction,
        counts: [usize; KINDS],
    ) -> FdbResult<bool> {
        let Self {
            layout,
            queues,
            cursors,
            payload,
            pushed,
            ..
        } = self;
        let [list_pushes, list_pops, set_pushes, set_pops, deliveries] = {
            let mut kind = 0..KINDS;
            cursors.each_mut().map(|cursor| {
                let count = counts[kind.next().unwrap()];
                Self::parts(queues, cursor, count)
            })
        };
        let mut members = Vec::new();
        let mut member_reads = Vec::new();
        for part in &set_pushes {
            for _ in 0..part.count {
                let ticket = next_ticket(self.number, pushed);
                ticket.write(payload);
                let member = Bytes::copy_from_slice(payload);
                let data = part.queue.data;
                let key = layout.member_key(data, &Member::new(&member));
                member_reads.push(transaction.get(&key, false));
                members.push((data, key, member, f64::from(ticket.number % 1000)));
            }
        }
        // All reads are concurrent, which is the best that a client can do.
        let read = |parts: &[Part<'_>], is_set: bool, is_push: bool| {
            let reads = parts.iter().map(|part| {
                let prefix = match is_set {
                    true => layout.scores_prefix(part.queue.data),
                    false => layout.elements_prefix(part.queue.data),
                };
                let range = KeyRange::children(&prefix);
                let option = RangeOption {
                    limit: Some(if is_push { 1 } else { part.count }),
                    mode: StreamingMode::Exact,
                    reverse: is_push,
                    ..RangeOption::from((range.begin, range.end))
                };
                transaction.get_range(&option, 1, is_push)
            });
            try_join_all(reads.collect::<Vec<_>>())
        };
        let read_on = deliveries.iter().map(|part| {
            let prefix = layout.elements_prefix(part.queue.data);
            let range = KeyRange::children(&prefix);
            let after = quoin_layout::successor(&part.queue.read_to.borrow());
            let option = RangeOption {
                limit: Some(part.count),
                mode: StreamingMode::Exact,
                ..RangeOption::from((after, range.end))
            };
            transaction.get_range(&option, 1, false)
        });
        let read_on = try_join_all(read_on.collect::<Vec<_>>());
        let (tails, list_heads, set_heads, entries, _) = futures_util::try_join!(
            read(&list_pushes, false, true),
            read(&list_pops, false, false),
            read(&set_pops, true, false),
            read_on,
            try_join_all(member_reads),
        )?;
        for (part, tail) in list_pushes.iter().zip(&tails) {
            let length = layout.elements_prefix(part.queue.data).len();
            let tail = tail.iter().next();
            let index = tail.map_or(0, |row| {
                Position::read_index(length, row.key()).map_or(0, |index| index + 1)
            });
            for sequence in 0..part.count {
                let ticket = next_ticket(self.number, pushed);
                ticket.write(payload);
                let random = i64::MAX / 3 + i64::from(ticket.number);
                let position = Position::pushed(index, random, sequence as i64);
                let key = layout.element_key(part.queue.data, &position);
                transaction.set(&key, &StoredValue::encode_plain(payload));
            }
            add(transaction, part.queue, part.count as i64);
        }
        for (data, key, member, score) in &members {
            let entry = MemberEntry {
                score: *score,
                long: None,
            };
            transaction.set(key, &entry.encode());
            transaction.set(&layout.score_key(*data, *score, member, None), b"");
        }
        for part in &set_pushes {
            add(transaction, part.queue, part.count as i64);
        }
        let mut is_full = true;
        for (part, heads) in list_pops.iter().zip(&list_heads) {
            is_full &= clear(transaction, heads) == part.count;
            add(transaction, part.queue, -(heads.len() as i64));
        }
        for (part, heads) in set_pops.iter().zip(&set_heads) {
            is_full &= clear(transaction, heads) == part.count;
            let length = layout.scores_prefix(part.queue.data).len();
            for row in heads.iter() {
                if let Ok(entry) = layout.read_score_key(length, row.key()) {
                    let member = Member::new(&entry.prefix);
                    transaction.clear(&layout.member_key(part.queue.data, &member));
                }
            }
            add(transaction, part.queue, -(heads.len() as i64));
        }
        for (part, entries) in deliveries.iter().zip(&entries) {
            is_full &= entries.len() == part.count;
            deliver(transaction, layout, part.queue, entries);
        }
        // Like the row with which a server recognizes a commit of unknown result.
        self.transactions += 1;
        let key = self.layout.operation_key(self.number, 0);
        transaction.set(&key, &self.transactions.to_be_bytes());
        Ok(is_full)
    }
}

fn next_ticket(source: u64, pushed: &mut u32) -> Ticket {
    *pushed += 1;
    Ticket {
        source: source as u32,
        number: *pushed,
        at_us: 0,
    }
}

fn add(transaction: &Transaction, queue: &Queue, delta: i64) {
    let delta = length_delta(delta).to_le_bytes();
    transaction.atomic_op(&queue.length_key, &delta, MutationType::Add);
}

fn clear(transaction: &Transaction, rows: &FdbValues) -> usize {
    for row in rows.iter() {
        transaction.clear(row.key());
    }
    rows.len()
}

/// Makes entries pending, and acknowledges those of the previous delivery.
fn deliver(transaction: &Transaction, layout: &Layout, queue: &Queue, entries: &FdbValues) {
    let Queue { data, group, .. } = *queue;
    let keys = |number| {
        let id = StreamId { ms: number, seq: 0 };
        [
            layout.stream_pending_key(data, group, id),
            layout.stream_consumer_pending_key(data, group, group, id),
        ]
    };
    let (first, end) = queue.pending.get();
    for key in (first..end).flat_map(keys) {
        transaction.clear(&key);
    }
    let new = queue.delivered.get()..queue.delivered.get() + entries.len() as u64;
    for [of_group, of_consumer] in new.clone().map(keys) {
        transaction.set(&of_group, &[0; PENDING_BYTES]);
        transaction.set(&of_consumer, b"");
    }
    queue.pending.set((new.start, new.end));
    queue.delivered.set(new.end);
    if let Some(last) = entries.iter().last() {
        queue.read_to.replace(last.key().to_vec());
    }
    // The group's own row.
    transaction.set(&queue.length_key, &new.end.to_le_bytes());
}

/// Runs the bare client to its end. The rows stay.
pub async fn run(case: &BareCase<'_>) -> FdbResult<BareMeasured> {
    let at_once = case.at_once.max(1);
    let mut writers: Vec<Writer> = (0..at_once)
        .map(|number| {
            let queues = case.queues / at_once;
            let database = Rc::clone(&case.database);
            Writer::new(
                database,
                case.root_prefix,
                number,
                queues,
                case.payload_bytes,
            )
        })
        .collect();
    let of_each = case.fill.div_ceil(at_once);
    for some in writers.chunks_mut(FILL_AT_ONCE) {
        try_join_all(
            some.iter_mut()
                .map(|writer| fill(writer, case.mix, of_each)),
        )
        .await?;
    }
    if case.ends_when_empty {
        tokio::time::sleep(case.settle).await;
    }
    let start = Instant::now();
    let measure_from = start + case.warm_up;
    let until = Rc::new(Cell::new(measure_from + case.duration));
    let latencies_us = Rc::new(RefCell::new(Vec::new()));
    let ends_when_empty = case.ends_when_empty;
    let running = writers.iter_mut().map(|writer| {
        let (until, latencies_us) = (Rc::clone(&until), Rc::clone(&latencies_us));
        async move {
            loop {
                let begun = Instant::now();
                if begun >= until.get() {
                    return FdbResult::Ok(());
                }
                let is_full = writer.run(case.mix).await?;
                let now = Instant::now();
                if ends_when_empty && !is_full {
                    until.set(until.get().min(now));
                }
                if now >= measure_from && now < until.get() {
                    let latency_us = (now - begun).as_micros() as u32;
                    latencies_us.borrow_mut().push(latency_us);
                }
            }
        }
    });
    try_join_all(running).await?;
    let window = until.get().saturating_duration_since(measure_from);
    let latencies_us = latencies_us.take();
    Ok(BareMeasured {
        commits_per_s: latencies_us.len() as f64 / window.as_secs_f64(),
        latencies_us,
    })
}

async fn fill(writer: &mut Writer, mix: Mix, count: usize) -> FdbResult<()> {
    let (lists, sets) = (mix.list_pops + mix.deliveries, mix.set_pops);
    let of_lists = count as f64 * lists / (lists + sets).max(f64::MIN_POSITIVE);
    let mut left = [of_lists as usize, count - of_lists as usize];
    if lists + sets == 0.0 {
        return Ok(());
    }
    while left != [0; 2] {
        let now = left.map(|left| left.min(FILL_ROWS));
        let mix = Mix {
            list_pushes: now[0] as f64,
            set_pushes: now[1] as f64,
            ..Mix::default()
        };
        writer.run(mix).await?;
        left = [left[0] - now[0], left[1] - now[1]];
    }
    Ok(())
}

/// Removes everything of a root prefix.
pub async fn clear_root(database: &Database, root_prefix: &str) -> FdbResult<()> {
    let root = quoin_root(root_prefix);
    let mut transaction = database.create_trx()?;
    loop {
        transaction.clear_range(&root.begin, &root.end);
        match transaction.commit().await {
            Ok(_) => return Ok(()),
            Err(error) => transaction = error.on_error().await?,
        }
    }
}

fn quoin_root(root_prefix: &str) -> KeyRange {
    KeyRange::children(&foundationdb::tuple::pack(&(root_prefix,)))
}
