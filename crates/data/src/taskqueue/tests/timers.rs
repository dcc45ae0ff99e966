//! Timers of task queues and background work.

use bytes::Bytes;

use super::round_trips::polls;
use super::*;
use quoin_base::clock::Clock;
use quoin_base::limits::{
    TASK_BUSY_QUEUES_PER_PASS, TASK_QUEUES_PER_PASS, TASK_UNREADABLE_STEP_MS,
};
use quoin_data::taskqueue::timers;
use quoin_data::unit::context::{NamespaceCache, ReadContext, WriteContext};
use quoin_data::unit::signals::Signals;
use quoin_layout::{Space, Timers, ValueType};
use quoin_store::{Isolation, KeyValue, RangeQuery, StoreError, Transaction};

fn timer_rows(bench: &Bench) -> Vec<KeyValue> {
    let range = bench.executor.environment().layout.rows_of(Space::Timers);
    let snapshot = bench.store.begin_read().unwrap();
    let rows = bench.block_on(snapshot.get_range(RangeQuery {
        begin: &range.begin,
        end: &range.end,
        limit: usize::MAX,
        reverse: false,
        isolation: Isolation::Snapshot,
    }));
    rows.unwrap()
}

/// Adds queues with a task each that was taken with a lease of a second and given back.
fn add_quiet(bench: &Bench, queues: usize) {
    let lines = (0..queues).flat_map(|number| {
        [
            format!("TASK.ADD quiet{number} 1 x ID a"),
            format!("TASK.TAKE quiet{number} LEASE 1000"),
            format!("TASK.NACK quiet{number} a"),
        ]
    });
    bench.run_all(&lines.collect::<Vec<_>>());
}

/// Adds queues, each with a task that becomes ready after a second.
fn add_delayed(bench: &Bench, queues: usize) {
    let lines = (0..queues).map(|number| format!("TASK.ADD delayed{number} 1 x DELAY 1000"));
    bench.run_all(&lines.collect::<Vec<_>>());
}

fn passes_once(bench: &Bench) -> bool {
    let mut reaper = Reaper::new(&bench.executor);
    bench.block_on(reaper.pass(&bench.executor)).unwrap()
}

/// A pass before its commit, and how often it was polled.
pub(super) fn begin_pass(bench: &Bench, turn: u64) -> (Box<dyn Transaction + '_>, usize) {
    let transaction = bench.store.begin_write().unwrap();
    let namespaces = NamespaceCache::default();
    let signals = Signals::default();
    let environment = bench.executor.environment();
    let now_ms = bench.clock.now_ms();
    let context = WriteContext::new(&*transaction, environment, &namespaces, &signals, now_ms, 0);
    let polls = polls(async {
        assert!(
            timers::run_due(&context, Timers::Queues, turn, None)
                .await
                .unwrap()
                > 0
        )
    });
    (transaction, polls)
}

#[test]
fn queues_with_nothing_due_do_not_hold_up_others() {
    on_both_stores(|bench| {
        add_quiet(bench, 300);
        bench.run("TASK.ADD probe 1 x ID p DELAY 1500");
        bench.clock.advance_ms(3_000);
        passes_once(bench);
        assert_eq!(bench.run("TASK.LEN probe READY"), Reply::Integer(1));
        assert_eq!(timer_rows(bench).len(), 0);
    });
}

#[test]
fn only_queues_with_something_to_do_are_locked() {
    let bench = Bench::cluster_like();
    add_quiet(&bench, 20);
    bench.run("TASK.ADD probe 1 x DELAY 1500");
    bench.clock.advance_ms(3_000);
    let snapshot = bench.store.begin_read().unwrap();
    let namespaces = NamespaceCache::default();
    let environment = bench.executor.environment();
    let now_ms = bench.clock.now_ms();
    let context = ReadContext::new(&*snapshot, environment, &namespaces, now_ms, 0);
    let queues = bench
        .block_on(timers::due_queues(&context, Timers::Queues, 0))
        .unwrap();
    assert_eq!(queues, [(0, Bytes::from("probe"))]);
}

#[test]
fn a_pass_leaves_queues_alone_that_it_has_not_locked() {
    let bench = Bench::cluster_like();
    add_delayed(&bench, 2);
    bench.clock.advance_ms(2_000);
    let transaction = bench.store.begin_write().unwrap();
    let namespaces = NamespaceCache::default();
    let signals = Signals::default();
    let environment = bench.executor.environment();
    let now_ms = bench.clock.now_ms();
    let context = WriteContext::new(&*transaction, environment, &namespaces, &signals, now_ms, 0);
    let locked = [(0, Bytes::from("delayed1"))].into();
    let checked = bench.block_on(timers::run_due(&context, Timers::Queues, 0, Some(&locked)));
    assert_eq!(checked.unwrap(), 1);
    bench.block_on(transaction.commit()).unwrap();
    assert_eq!(bench.run("TASK.LEN delayed0 READY"), Reply::Integer(0));
    assert_eq!(bench.run("TASK.LEN delayed1 READY"), Reply::Integer(1));
    reap(&bench);
    assert_eq!(bench.run("TASK.LEN delayed0 READY"), Reply::Integer(1));
}

#[test]
fn passes_of_two_servers_choose_among_many_queues() {
    let bench = Bench::cluster_like();
    add_quiet(&bench, TASK_QUEUES_PER_PASS + 20);
    bench.clock.advance_ms(3_000);
    let (one, _) = begin_pass(&bench, 0);
    let (same, _) = begin_pass(&bench, 0);
    let (other, _) = begin_pass(&bench, 1);
    bench.block_on(one.commit()).unwrap();
    bench.block_on(other.commit()).unwrap();
    let same = bench.block_on(same.commit());
    assert!(matches!(same, Err(StoreError::Conflict)), "{same:?}");
    assert_eq!(timer_rows(&bench).len(), 0);
}

#[test]
fn a_timer_that_is_set_while_a_pass_finds_nothing_to_do_stays() {
    let bench = Bench::cluster_like();
    bench.run("TASK.ADD q 1 x ID a");
    bench.run("TASK.TAKE q LEASE 1300");
    bench.run("TASK.ACK q a");
    bench.run("TASK.ADD q 1 x ID b DELAY 5000");
    bench.clock.advance_ms(1_800);
    let (pass, _) = begin_pass(&bench, 0);
    // Its timer is for this time, so it is the row that the pass clears.
    bench.run("RENAME q r");
    bench.run("RENAME r q");
    let committed = bench.block_on(pass.commit());
    assert!(matches!(committed, Err(StoreError::Conflict)));
}

#[test]
fn a_timer_that_additions_may_be_setting_meanwhile_is_left_for_later() {
    let bench = Bench::cluster_like();
    let now_ms = bench.clock.now_ms();
    bench.clock.advance_ms(500 - now_ms % 500);
    bench.run("TASK.ADD q 1 x");
    bench.run("RENAME q r");
    assert_eq!(timer_rows(&bench).len(), 1);
    bench.clock.advance_ms(100);
    reap(&bench);
    assert_eq!(timer_rows(&bench).len(), 1);
    bench.clock.advance_ms(100);
    reap(&bench);
    assert_eq!(timer_rows(&bench).len(), 0);
}

#[test]
fn the_work_of_several_queues_is_done_concurrently() {
    let bench = Bench::cluster_like();
    // A pass chooses at random how many of them it handles.
    for _ in 0..100 {
        add_delayed(&bench, 64);
        bench.clock.advance_ms(2_000);
        let (pass, polls) = begin_pass(&bench, 0);
        bench.block_on(pass.commit()).unwrap();
        let done = 64 - timer_rows(&bench).len();
        if done >= 16 {
            assert!(polls < 2 * done, "{polls} for {done} queues");
            return;
        }
        bench.run("FLUSHALL");
        reap(&bench);
    }
    panic!("no pass has done the work of sixteen queues");
}

#[test]
fn more_queues_than_one_pass_looks_after_have_their_turn_later() {
    on_both_stores(|bench| {
        let queues = TASK_BUSY_QUEUES_PER_PASS + 40;
        add_delayed(bench, queues);
        bench.clock.advance_ms(2_000);
        passes_once(bench);
        let left = |bench: &Bench| {
            let lines = (0..queues).map(|number| format!("TASK.LEN delayed{number} DELAYED"));
            let counts = bench.run_all(&lines.collect::<Vec<_>>());
            counts
                .iter()
                .filter(|count| **count == Reply::Integer(1))
                .count()
        };
        assert!((40..queues).contains(&left(bench)), "{}", left(bench));
        reap(bench);
        assert_eq!(left(bench), 0);
    });
}

#[test]
fn leases_that_are_acknowledged_leave_few_timers() {
    on_both_stores(|bench| {
        for number in 0..50 {
            bench.run(&format!("TASK.ADD q 1 x ID t{number}"));
            bench.run("TASK.TAKE q LEASE 86400000");
            bench.run(&format!("TASK.ACK q t{number}"));
            bench.clock.advance_ms(100);
        }
        assert!(timer_rows(bench).len() <= 2, "{}", timer_rows(bench).len());
        bench.clock.advance_ms(3_700_000);
        reap(bench);
        assert_eq!(timer_rows(bench).len(), 0);
    });
}

#[test]
fn a_task_that_falls_due_after_a_long_time_wakes_who_waits_then() {
    on_both_stores(|bench| {
        for delay_ms in [61_000, 3_000_000, 3_700_000, 20_000_000] {
            bench.run(&format!("TASK.ADD q 1 x ID a DELAY {delay_ms}"));
            let mut waiting = bench.wait("TASK.TAKE q BLOCK 0");
            let due_ms = bench.clock.now_ms() + delay_ms;
            while bench.clock.now_ms() < due_ms {
                assert!(waiting.is_waiting(), "{delay_ms}");
                let is_near = due_ms - bench.clock.now_ms() <= 200_000;
                bench.clock.advance_ms(if is_near { 100 } else { 100_000 });
                reap(bench);
            }
            assert_eq!(ids(&waiting.reply(bench)), ["a"]);
        }
    });
}

/// The rows of a queue with a task, for damaging them: its metadata, the task's own row, and its
/// row by due time.
fn rows_of_queue(bench: &Bench, name: &str, id: &str) -> [Vec<u8>; 3] {
    let snapshot = bench.store.begin_read().unwrap();
    let namespaces = NamespaceCache::default();
    let environment = bench.executor.environment();
    let now_ms = bench.clock.now_ms();
    let context = ReadContext::new(&*snapshot, environment, &namespaces, now_ms, 0);
    let name = Bytes::from(name.to_owned());
    let key = bench.block_on(context.find(&name, ValueType::TaskQueue));
    let key = key.unwrap().unwrap();
    let layout = &environment.layout;
    let due = layout.task_due(key.data()).begin;
    [
        key.meta_key.clone(),
        layout.task_key(key.data(), id.as_bytes()),
        [due.as_slice(), b"\x7f"].concat(),
    ]
}

fn put_row(bench: &Bench, row: &[u8], value: Option<&[u8]>) {
    let transaction = bench.store.begin_write().unwrap();
    match value {
        Some(value) => transaction.set(row, value),
        None => transaction.clear(row),
    }
    bench.block_on(transaction.commit()).unwrap();
}

#[test]
fn a_queue_that_cannot_be_read_does_not_hold_up_the_others_and_has_its_turn_later() {
    on_both_stores(|bench| {
        for part in 0..3 {
            let queue = format!("spoilt{part}");
            bench.run(&format!("TASK.ADD {queue} 1 x ID a DELAY 1000"));
            bench.run(&format!("TASK.ADD other{part} 1 x ID a DELAY 1000"));
            let row = &rows_of_queue(bench, &queue, "a")[part];
            let snapshot = bench.store.begin_read().unwrap();
            let sound = bench.block_on(snapshot.get(row, Isolation::Snapshot));
            let sound = sound.unwrap();
            put_row(bench, row, Some(b"?"));
            bench.clock.advance_ms(2_000);
            reap(bench);
            let others = bench.run(&format!("TASK.LEN other{part} READY"));
            assert_eq!(others, Reply::Integer(1), "{part}");
            put_row(bench, row, sound.as_deref());
            bench.clock.advance_ms(TASK_UNREADABLE_STEP_MS);
            reap(bench);
            let own = bench.run(&format!("TASK.LEN {queue} READY"));
            assert_eq!(own, Reply::Integer(1), "{part}");
        }
    });
}
