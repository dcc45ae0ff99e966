//! Keys that need not be read, because they were empty and nothing was reported about them since.

mod filling;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::on_both;
use crate::testing::{Bench, Waiting, bulks, invocation, planned, words_of};
use crate::waiters::{Cursor, Waiters};
use crate::{Call, Executor, Outcome, Waiter};
use quoin_base::random::SeededRandom;
use quoin_data::cluster::relay::{LogReader, News};
use quoin_data::keyspace::key::ClientKey;
use quoin_data::unit::host::Change;
use quoin_resp::reply::Reply;
use quoin_store::faults::{FaultRates, FaultyStore, OptimisticStore};

/// So many keys that a test would time out if each key made the client read all of them.
const THOUSANDS: usize = 6_000;

fn key(name: &str) -> ClientKey {
    ClientKey {
        database: 0,
        key: Bytes::copy_from_slice(name.as_bytes()),
    }
}

/// A command that waits if it finds nothing, and the receiver of its outcome.
fn waiting_call(line: &str) -> (Call, oneshot::Receiver<Outcome>) {
    let invocation = invocation(0, &words_of(line));
    let spec = invocation.row.waits.unwrap()(&invocation.arguments, 0).unwrap();
    let (waiter, outcome) = Waiter::new(invocation.clone(), spec.unwrap());
    let call = Call {
        waiter: Some(waiter),
        ..Call::command(invocation, true)
    };
    (call, outcome)
}

/// Returns when all keys of a waiter are quiet.
fn until_quiet(bench: &Bench, waiting: &Waiting) {
    let waiters = bench.executor.waiters();
    let keys = waiting.waiter.spec.keys.len();
    let started = Instant::now();
    while waiters.quiet_keys(&waiting.waiter).len() < keys {
        assert!(started.elapsed() < Duration::from_secs(10), "never quiet");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The reply to a blocking command that does not wait.
fn at_once(bench: &Bench, line: &str) -> Reply {
    let (call, _outcome) = waiting_call(line);
    let finished = bench.block_on(bench.executor.submit(vec![call])).unwrap();
    assert!(!finished.is_parked, "{line}");
    finished.replies.into_iter().next().unwrap()
}

/// Makes the server know that these keys are empty.
fn make_quiet(bench: &Bench, keys: &str) {
    let waiting = bench.wait(&format!("BLPOP {keys} 0"));
    until_quiet(bench, &waiting);
    assert!(bench.executor.waiters().cancel(&waiting.waiter));
}

/// A server that follows the log, without a relay.
fn following(bench: &Bench) -> Waiters {
    let waiters = Waiters::new(true);
    let transaction = bench.store.begin_read().unwrap();
    let environment = bench.executor.environment();
    let reader = bench.block_on(LogReader::start(&*transaction, environment));
    waiters.begin_following(&reader.unwrap());
    waiters
}

#[test]
fn one_that_waits_for_quiet_keys_needs_no_batch() {
    let bench = Bench::cluster_like();
    // A key that has existed, and one that has not.
    bench.run_all(&["RPUSH a 0".to_owned(), "LPOP a".to_owned()]);
    let first = bench.wait("BLPOP a b 0");
    until_quiet(&bench, &first);
    let batches = || bench.executor.statistics().batches.get();
    let before = batches();
    let second = bench.wait("BLPOP b a 0");
    assert_eq!(batches(), before);
    bench.run("RPUSH b 1");
    assert_eq!(first.reply(&bench), bulks(&["b", "1"]));
    bench.run("RPUSH a 2");
    assert_eq!(second.reply(&bench), bulks(&["a", "2"]));
    assert!(bench.executor.waiters().is_empty());
}

#[test]
fn one_that_waits_unseen_is_woken_by_another_server() {
    let bench = Bench::cluster_like();
    let other = bench.another_server();
    for round in 0..50 {
        let first = bench.wait("BLPOP a b 0");
        until_quiet(&bench, &first);
        let second = bench.wait("BLPOP a b 0");
        for value in [round, round + 1000] {
            let pushed = planned(&format!("RPUSH b {value}"));
            bench.block_on(other.submit(vec![pushed])).unwrap();
        }
        assert_eq!(first.reply(&bench), bulks(&["b", &round.to_string()]));
        let expected = (round + 1000).to_string();
        assert_eq!(second.reply(&bench), bulks(&["b", &expected]));
    }
}

#[test]
fn one_that_waits_for_thousands_of_keys_makes_each_wake_it_cheaply() {
    let bench = Bench::cluster_like();
    let other = bench.another_server();
    let keys: Vec<String> = (0..THOUSANDS).map(|number| format!("k{number}")).collect();
    let waiting = bench.wait(&format!("BLPOP {} 0", keys.join(" ")));
    // When the server begins to follow the log, each key wakes the client.
    until_quiet(&bench, &waiting);
    let last = format!("k{}", THOUSANDS - 1);
    let pushed = planned(&format!("RPUSH {last} 1"));
    bench.block_on(other.submit(vec![pushed])).unwrap();
    assert_eq!(waiting.reply(&bench), bulks(&[&last, "1"]));
}

#[test]
fn what_this_server_pushes_to_a_quiet_key_is_popped_at_once() {
    let bench = Bench::cluster_like();
    for round in 0..50 {
        let waiting = bench.wait("BLPOP a b 0");
        until_quiet(&bench, &waiting);
        assert!(bench.executor.waiters().cancel(&waiting.waiter));
        let value = round.to_string();
        bench.run(&format!("RPUSH b {value}"));
        assert_eq!(at_once(&bench, "BLPOP a b 0"), bulks(&["b", &value]));
    }
}

#[test]
fn one_that_finds_something_gets_it_from_the_first_key_whatever_was_believed() {
    let bench = Bench::cluster_like();
    let other = bench.another_server();
    make_quiet(&bench, "a b c");
    // This server may not have read of these yet.
    let pushed = ["RPUSH b 1", "RPUSH c 2"].map(planned);
    bench.block_on(other.submit(pushed.into())).unwrap();
    bench.run("RPUSH d 3");
    for expected in [["b", "1"], ["c", "2"], ["d", "3"]] {
        assert_eq!(at_once(&bench, "BLPOP a b c d e 0"), bulks(&expected));
    }
}

#[test]
fn what_a_pipeline_pushes_to_a_quiet_key_its_next_command_pops() {
    let bench = Bench::cluster_like();
    make_quiet(&bench, "a b");
    let (call, _outcome) = waiting_call("BLPOP a b 0");
    let calls = vec![planned("RPUSH b 1"), call];
    let finished = bench.block_on(bench.executor.submit(calls)).unwrap();
    let expected = [Reply::Integer(1), bulks(&["b", "1"])];
    assert_eq!(finished.replies, expected);
}

#[test]
fn one_is_woken_for_the_key_that_became_ready() {
    on_both(|bench| {
        let waiting = bench.wait("BLPOP a b c 0");
        bench.exec(&["RPUSH c 1", "RPUSH b 2"]);
        assert_eq!(waiting.reply(bench), bulks(&["b", "2"]));
        assert_eq!(bench.run("LLEN c"), Reply::Integer(1));
    });
}

#[test]
fn a_key_that_became_of_another_type_while_a_client_waits_is_not_passed_over() {
    on_both(|bench| {
        let waiting = bench.wait("BLPOP a b 0");
        bench.run("SET a text");
        bench.run("RPUSH b 1");
        assert!(
            matches!(waiting.reply(bench), Reply::Error(line) if line.starts_with("WRONGTYPE"))
        );
        assert_eq!(bench.run("LLEN b"), Reply::Integer(1));
    });
}

#[test]
fn a_key_filled_while_its_client_was_parked_is_checked_again() {
    let waiters = Waiters::new(true);
    let (waiter, _outcome) = super::slow_blpop();
    let list = super::list_key();
    waiters.expect(&waiter);
    let began = waiters.fills();
    waiters.park(&waiter, 1);
    waiters.queues().quiet.note_filled(&list);
    waiters.settle(&waiter, began);
    assert_eq!(waiters.take_scheduled(1), [(list.clone(), Cursor::START)]);
    waiters.cancel(&waiter);
    // An earlier fill does not matter.
    let (waiter, _outcome) = super::slow_blpop();
    waiters.park(&waiter, 1);
    waiters.settle(&waiter, waiters.fills());
    assert!(waiters.take_scheduled(1).is_empty());
}

#[test]
fn a_key_that_was_forgotten_while_its_client_checked_is_checked_again() {
    let waiters = Waiters::new(true);
    let (waiter, _outcome) = super::slow_blpop();
    waiters.expect(&waiter);
    let began = waiters.fills();
    // Twice, because a client came between the first two calls.
    waiters.keep_following();
    waiters.keep_following();
    assert!(!waiters.queues().quiet.is_any_known());
    waiters.park(&waiter, 1);
    waiters.settle(&waiter, began);
    assert_eq!(waiters.take_scheduled(1).len(), 1);
}

#[test]
fn a_key_that_may_have_been_filled_during_a_check_is_not_quiet() {
    let bench = Bench::cluster_like();
    let waiters = following(&bench);
    let list = super::list_key();
    let waiter = waiting_call("BLPOP list 0").0.waiter.unwrap();
    waiters.expect(&waiter);
    let left = |is_empty| HashMap::from([(list.clone(), is_empty)]);
    // Whether the key is quiet after a batch that left it empty, if something happens during the
    // batch.
    let is_quiet_after = |happens: &dyn Fn()| {
        let began = waiters.fills();
        happens();
        waiters.note_committed(&left(true), began);
        !waiters.quiet_keys(&waiter).is_empty()
    };
    assert!(is_quiet_after(&|| {}));
    assert!(!is_quiet_after(&|| waiters.note_changes(&left(false))));
    assert!(!is_quiet_after(&|| waiters.note_committed(&left(false), 0)));
    assert!(!is_quiet_after(&|| waiters.note_new_namespace(0)));
    assert!(is_quiet_after(&|| waiters.note_new_namespace(1)));
    assert!(!is_quiet_after(&|| waiters.note_missed()));
    assert!(!is_quiet_after(&|| waiters.note_ready([&list].into_iter())));
    assert!(is_quiet_after(&|| waiters.note_changes(&left(true))));
}

#[test]
fn a_key_that_was_not_known_when_a_batch_began_is_not_quiet_after_it() {
    let bench = Bench::cluster_like();
    let waiters = following(&bench);
    let began = waiters.fills();
    // Another server may have reported the key before a client came.
    let waiter = waiting_call("BLPOP list 0").0.waiter.unwrap();
    waiters.expect(&waiter);
    waiters.note_committed(&HashMap::from([(super::list_key(), true)]), began);
    assert!(waiters.quiet_keys(&waiter).is_empty());
}

#[test]
fn a_quiet_key_of_a_database_that_the_same_pipeline_exchanges_is_checked() {
    let bench = Bench::cluster_like();
    bench.run_in(1, &words_of("RPUSH a 1"));
    bench.run_in(1, &words_of("RPUSH b 2"));
    make_quiet(&bench, "a");
    let (call, _outcome) = waiting_call("BLPOP a b 0");
    let calls = vec![planned("SWAPDB 0 1"), call];
    let finished = bench.block_on(bench.executor.submit(calls)).unwrap();
    assert_eq!(finished.replies, [Reply::OK, bulks(&["a", "1"])]);
}

#[test]
fn what_other_servers_tell_of_a_key_ends_its_quiet_and_wakes_its_clients() {
    let bench = Bench::cluster_like();
    let ready = |key: ClientKey| News {
        ready: [key].into(),
        ..News::default()
    };
    let database = |number| News {
        ready_databases: vec![number],
        ..News::default()
    };
    let changed = |change| News {
        changes: vec![change],
        ..News::default()
    };
    let anything = News {
        is_any_ready: true,
        ..News::default()
    };
    for (news, concerns) in [
        (ready(key("list")), true),
        (ready(key("other")), false),
        (database(0), true),
        (database(1), false),
        (changed(Change::Unwatched("list".into())), false),
        (changed(Change::AllKeys), false),
        (anything, true),
    ] {
        let waiters = following(&bench);
        let (call, _outcome) = waiting_call("BLPOP list 0");
        let waiter = call.waiter.unwrap();
        waiters.expect(&waiter);
        waiters.park(&waiter, 1);
        waiters.settle(&waiter, waiters.fills());
        assert_eq!(waiters.quiet_keys(&waiter).len(), 1);
        let reader = waiters.log_reader().unwrap();
        waiters.process_news(&news, &reader);
        assert_eq!(waiters.quiet_keys(&waiter).is_empty(), concerns, "{news:?}");
        assert_eq!(waiters.take_scheduled(1).len(), usize::from(concerns));
    }
}

#[test]
fn a_server_follows_the_log_while_clients_come_and_go() {
    let bench = Bench::cluster_like();
    let waiters = following(&bench);
    for _ in 0..3 {
        let (waiter, _outcome) = super::slow_blpop();
        waiters.park(&waiter, 1);
        waiters.settle(&waiter, 0);
        assert!(waiters.keep_following());
        waiters.cancel(&waiter);
    }
    // Clients often come back.
    assert!(waiters.keep_following());
    assert!(!waiters.keep_following());
    assert!(waiters.log_reader().is_none());
}

/// Waits for some keys repeatedly, until it receives the word to end. Returns what it got.
async fn work(executor: Arc<Executor>, line: String, popped: Arc<AtomicUsize>) -> Vec<String> {
    let mut got = Vec::new();
    loop {
        let (call, outcome) = waiting_call(&line);
        let finished = executor.submit(vec![call]).await.unwrap();
        let reply = match finished.is_parked {
            true => match outcome.await.unwrap() {
                Outcome::Replied(reply) => reply,
                other => panic!("{other:?}"),
            },
            false => finished.replies.into_iter().next().unwrap(),
        };
        let Reply::Array(parts) = reply else {
            panic!("{reply:?}");
        };
        let Some(Reply::Bulk(value)) = parts.get(1) else {
            panic!("{parts:?}");
        };
        let value = String::from_utf8(value.to_vec()).unwrap();
        if value == "end" {
            return got;
        }
        got.push(value);
        popped.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn workers_of_many_queues_on_two_servers_get_each_element_once() {
    const QUEUES: usize = 12;
    const ELEMENTS: usize = 600;
    let bench = Bench::with(|store| {
        let random = Arc::new(SeededRandom::new(24));
        let rates = FaultRates {
            conflict_ppm: 50_000,
            unknown_applied_ppm: 20_000,
            unknown_not_applied_ppm: 20_000,
            ..FaultRates::default()
        };
        Arc::new(FaultyStore::new(OptimisticStore::new(store), rates, random))
    });
    let servers = [
        Arc::clone(&bench.executor),
        Arc::new(bench.another_server()),
    ];
    // Each queue has three workers, two of them on the other server.
    let lines: Vec<String> = (0..6)
        .map(|worker| {
            let keys = (0..QUEUES).filter(|queue| queue % 2 == worker % 2);
            let keys: Vec<String> = keys.map(|queue| format!("q{queue}")).collect();
            format!("BLPOP {} end{worker} 0", keys.join(" "))
        })
        .collect();
    let popped = Arc::new(AtomicUsize::new(0));
    let mut got = bench.block_on(async {
        let workers: Vec<_> = lines
            .iter()
            .enumerate()
            .map(|(worker, line)| {
                let server = Arc::clone(&servers[usize::from(worker % 3 > 0)]);
                tokio::spawn(work(server, line.clone(), Arc::clone(&popped)))
            })
            .collect();
        for element in 0..ELEMENTS {
            let server = &servers[element / 3 % 2];
            let push = format!("RPUSH q{} {element}", element * 7 % QUEUES);
            server.submit(vec![planned(&push)]).await.unwrap();
            if element % 40 == 0 {
                // Lets all keys become quiet.
                tokio::time::sleep(Duration::from_millis(15)).await;
            }
        }
        // Nobody waits while there are elements.
        let started = Instant::now();
        while popped.load(Ordering::SeqCst) < ELEMENTS {
            assert!(started.elapsed() < Duration::from_secs(60), "{popped:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for worker in 0..workers.len() {
            let push = planned(&format!("RPUSH end{worker} end"));
            servers[worker % 2].submit(vec![push]).await.unwrap();
        }
        let mut got = Vec::new();
        for worker in workers {
            let ended = tokio::time::timeout(Duration::from_secs(60), worker).await;
            got.extend(ended.expect("a worker has no end").unwrap());
        }
        got
    });
    got.sort_by_key(|value| value.parse::<usize>().unwrap());
    let expected: Vec<String> = (0..ELEMENTS).map(|element| element.to_string()).collect();
    assert_eq!(got, expected);
}
