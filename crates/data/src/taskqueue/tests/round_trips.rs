//! Commands on many tasks wait for the store a few times, not once for each task.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::*;
use crate::taskqueue::commands::{read, steering, write};
use crate::testing::environment;
use crate::unit::context::{NamespaceCache, ReadContext, WriteContext};
use crate::unit::signals::Signals;
use quoin_base::clock::Clock;
use quoin_store::{Isolation, KeyValue, RangeQuery, ReadTransaction, StoreFuture};

/// How often a future is polled until it is ready. On the store that imitates a cluster a read is ready at its second
/// poll, so consecutive reads need a poll each.
pub(super) fn polls<F: Future>(future: F) -> usize {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    (1..100_000)
        .find(|_| matches!(future.as_mut().poll(&mut context), Poll::Ready(_)))
        .unwrap()
}

/// Consecutive reads need a poll for each of 300 tasks. Each poll of concurrent reads completes two, because a set of
/// futures yields to others.
const POLLS_MAX: usize = 220;

/// Counts the rows of range reads.
struct Counting<'s> {
    inner: Box<dyn ReadTransaction + 's>,
    rows: Cell<usize>,
}

impl ReadTransaction for Counting<'_> {
    fn get<'t>(&'t self, key: &[u8], isolation: Isolation) -> StoreFuture<'t, Option<Bytes>> {
        self.inner.get(key, isolation)
    }

    fn get_range<'t>(&'t self, query: RangeQuery<'_>) -> StoreFuture<'t, Vec<KeyValue>> {
        let answered = self.inner.get_range(query);
        StoreFuture::Pending(Box::pin(async {
            let rows = answered.await?;
            self.rows.set(self.rows.get() + rows.len());
            Ok(rows)
        }))
    }

    fn cache_value(&self, key: &[u8], value: &Bytes) {
        self.inner.cache_value(key, value);
    }
}

#[test]
fn a_search_for_many_tasks_reads_each_about_once() {
    on_both_stores(|bench| {
        let line = |number| format!("TASK.ADD q 1 p NEEDS gb {}", 1 + number % 2);
        bench.run_all(&(0..600).map(line).collect::<Vec<_>>());
        reap(bench);
        let transaction = Counting {
            inner: bench.store.begin_read().unwrap(),
            rows: Cell::new(0),
        };
        let namespaces = NamespaceCache::default();
        let environment = &environment(bench);
        let now_ms = bench.clock.now_ms();
        let context = ReadContext::new(&transaction, environment, &namespaces, now_ms, 0);
        let line = "TASK.PEEK q COUNT 300 HAVING gb 1";
        let arguments = line.split_whitespace().map(Bytes::from).collect::<Vec<_>>();
        let peeked = bench.block_on(read::peek(&context, &arguments));
        assert_eq!(parts(&peeked.unwrap()).len(), 300);
        // The rows of the tasks, and some of the index.
        assert!(transaction.rows.get() < 1_000, "{}", transaction.rows.get());
    });
}

/// Number of polls of a command in a transaction that is not committed.
fn polls_of(bench: &Bench, line: &str) -> usize {
    let words = line.split_whitespace().map(str::to_owned);
    let arguments: Vec<Bytes> = words.map(Bytes::from).collect();
    let transaction = bench.store.begin_write().unwrap();
    let namespaces = NamespaceCache::default();
    let signals = Signals::default();
    let environment = &environment(bench);
    let now_ms = bench.clock.now_ms();
    let context = WriteContext::new(&*transaction, environment, &namespaces, &signals, now_ms, 0);
    match arguments[0].as_ref() {
        b"TASK.ACK" => polls(write::ack(&context, &arguments)),
        b"TASK.CANCEL" => polls(steering::cancel(&context, &arguments)),
        b"TASK.REVIVE" => polls(steering::revive(&context, &arguments)),
        b"TASK.TAKE" => polls(write::take(&context, &arguments)),
        b"TASK.PEEK" => polls(read::peek(&context, &arguments)),
        _ => polls(read::dead(&context, &arguments)),
    }
}

#[test]
fn commands_on_many_tasks_read_them_concurrently() {
    let bench = Bench::cluster_like();
    let names: String = (0..300).map(|number| format!(" t{number}")).collect();
    let lines: Vec<String> = (0..300)
        .map(|number| format!("TASK.ADD q 1 p ID t{number} MAXTRIES 1"))
        .collect();
    bench.run_all(&lines);
    for line in ["TASK.PEEK q COUNT 300", "TASK.TAKE q COUNT 300 LEASE 1000"] {
        let polls = polls_of(&bench, line);
        assert!(polls < POLLS_MAX, "{polls}: {line}");
    }
    bench.run("TASK.TAKE q COUNT 300 LEASE 1000");
    for command in ["TASK.ACK", "TASK.CANCEL"] {
        let polls = polls_of(&bench, &format!("{command} q{names}"));
        assert!(polls < POLLS_MAX, "{command}: {polls}");
    }
    bench.clock.advance_ms(2_000);
    reap(&bench);
    assert_eq!(bench.run("TASK.LEN q DEAD"), Reply::Integer(300));
    for line in [
        format!("TASK.REVIVE q{names}"),
        "TASK.DEAD q COUNT 300".to_owned(),
    ] {
        let polls = polls_of(&bench, &line);
        assert!(polls < POLLS_MAX, "{polls}: {line}");
    }
}

#[test]
fn commands_without_options_write_the_rows_of_a_task_and_no_others() {
    let bench = Bench::embedded();
    // The registry, the number of tasks ever added, the task, its place.
    bench.run("TASK.ADD q 1 x ID a");
    assert_eq!(bench.data_rows(), 4);
    bench.run("TASK.ADD q 1 x ID b");
    assert_eq!(bench.data_rows(), 6);
    // The number of leased tasks. The place moves.
    bench.run("TASK.TAKE q LEASE 60000");
    assert_eq!(bench.data_rows(), 7);
    bench.run("TASK.ACK q a");
    assert_eq!(bench.data_rows(), 5);
}

#[test]
fn options_write_no_rows_and_what_is_kept_for_a_time_writes_one_or_two() {
    let bench = Bench::embedded();
    bench.run("TASK.SETOPTIONS q MAXTRIES 3 BACKOFF 100 LEASE 60000 MAXLEN 9 LEASES 9 OVERFLOW DROP DEADLETTER dead");
    assert_eq!(bench.data_rows(), 1);
    bench.run("TASK.ADD q 1 x ID a");
    assert_eq!(bench.data_rows(), 4);
    // The end of its time to live.
    bench.run("TASK.ADD q 1 x ID b TTL 60000");
    assert_eq!(bench.data_rows(), 7);
    // The token and its end.
    bench.run("TASK.ADD q 1 x ID c UNIQUE t 60000");
    assert_eq!(bench.data_rows(), 11);
    bench.run("TASK.TAKE q COUNT 3");
    assert_eq!(bench.data_rows(), 12);
    bench.run("TASK.ACK q a b");
    assert_eq!(bench.data_rows(), 7);
    // The result and its end instead of the task and its place.
    bench.run("TASK.ACK q c RESULT 1 KEEP 60000");
    assert_eq!(bench.data_rows(), 7);
    // How many tasks consumers got, and until when that counts.
    bench.run("TASK.SETOPTIONS q RATE 5 1000");
    bench.run("TASK.ADD q 1 x ID d");
    bench.run("TASK.TAKE q");
    assert_eq!(bench.data_rows(), 11);
    // A schedule and its next moment.
    bench.run("TASK.SCHEDULE q s EVERY 60000 TASK 1 x");
    assert_eq!(bench.data_rows(), 13);
}
