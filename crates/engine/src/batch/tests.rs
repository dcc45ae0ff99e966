use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, Semaphore};

use crate::testing::{Bench, bulks, invocation, unplanned, with_handler, words_of};
use crate::watchers::Touched;
use crate::{Bundle, Call, WatchedKey};
use quoin_base::limits::{BATCH_AGE_MAX_MS, COMMIT_ATTEMPTS_MAX, PUBLISHED_BYTES_MAX};
use quoin_data::command::access::KeyLocks;
use quoin_data::command::row::HandlerFuture;
use quoin_data::error::CommandError;
use quoin_data::keyspace::key::ClientKey;
use quoin_data::list::{End, ListMut};
use quoin_data::unit::context::WriteContext;
use quoin_data::unit::signals::{ChannelKind, Message, Subscribers};
use quoin_data::write_handler;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;
use quoin_store::faults::{Fault, FaultPoint, FaultRates};
use quoin_store::{Isolation, StoreError};

fn push(key: &'static str) -> Call {
    unplanned(&format!("RPUSH {key} 1"))
}

fn job(run: impl for<'c> Fn(&'c WriteContext<'c>) -> HandlerFuture<'c> + Send + 'static) -> Call {
    Call::write_job(0, KeyLocks::Nothing, run)
}

/// A command that reads for longer than a cluster's transactions may last.
fn too_slow() -> Call {
    job(|_| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(BATCH_AGE_MAX_MS)).await;
            Err(CommandError::Store(StoreError::TooOld))
        })
    })
}

#[test]
fn a_command_that_is_too_slow_fails_alone() {
    let bench = Bench::cluster_like();
    let calls = vec![push("before"), too_slow(), push("behind")];
    let finished = bench.block_on(bench.executor.submit(calls)).unwrap();
    assert_eq!(finished.replies, [Reply::Integer(1)]);
    let finished = bench
        .block_on(bench.executor.submit(finished.rest))
        .unwrap();
    let line = CommandError::Store(StoreError::TooOld).to_line();
    assert_eq!(finished.replies, [Reply::Error(line)]);
    let finished = bench
        .block_on(bench.executor.submit(finished.rest))
        .unwrap();
    assert_eq!(finished.replies, [Reply::Integer(1)]);
    assert_eq!(bench.run("LRANGE before 0 -1"), bulks(&["1"]));
    assert_eq!(bench.run("LRANGE behind 0 -1"), bulks(&["1"]));
}

#[test]
fn a_command_whose_write_the_store_refuses_fails_alone() {
    let bench = Bench::embedded();
    let refused = job(|context| {
        Box::pin(async {
            context.transaction.set(&[1; 3000], b"");
            context.transaction.get(b"k", Isolation::Snapshot).await?;
            Ok(Reply::OK)
        })
    });
    let calls = vec![push("before"), refused, push("behind")];
    let finished = bench.block_on(bench.executor.submit(calls)).unwrap();
    assert_eq!(finished.replies, [Reply::Integer(1)]);
    let finished = bench
        .block_on(bench.executor.submit(finished.rest))
        .unwrap();
    let line = CommandError::TooLarge.to_line();
    assert_eq!(finished.replies, [Reply::Error(line), Reply::Integer(1)]);
}

/// A push that fails after pushing.
fn push_and_fail() -> Call {
    job(|context| {
        Box::pin(async {
            let name = Bytes::from_static(b"undone");
            let key = context.find_or_create(&name, ValueType::List).await?;
            let list = ListMut::open(context, &key);
            list.push(std::slice::from_ref(&name), End::Right).await?;
            Err(CommandError::Syntax)
        })
    })
}

#[test]
fn a_command_that_fails_midway_is_undone_alone_and_nothing_runs_again() {
    for bench in [Bench::embedded(), Bench::cluster_like()] {
        let statistics = bench.executor.statistics();
        let commits = statistics.commits.get();
        let calls = vec![push("before"), push_and_fail(), push("after")];
        let finished = bench.block_on(bench.executor.submit(calls)).unwrap();
        let line = CommandError::Syntax.to_line();
        let expected = [Reply::Integer(1), Reply::Error(line), Reply::Integer(1)];
        assert_eq!(finished.replies, expected);
        assert_eq!(bench.run("EXISTS before undone after"), Reply::Integer(2));
        assert_eq!(statistics.commits.get(), commits + 1);
        assert_eq!(statistics.retries.get(), 0);
        assert_eq!(statistics.commands_rolled_back.get(), 1);
    }
}

#[test]
fn a_command_that_reads_too_much_for_a_transaction_fails_alone() {
    let bench = Bench::cluster_like();
    let keys: Vec<Vec<u8>> = (0..100_000)
        .map(|n| format!("{n:030}").into_bytes())
        .collect();
    let mut words: Vec<&[u8]> = vec![b"DEL"];
    words.extend(keys.iter().map(Vec::as_slice));
    let delete = Call::command(invocation(0, &words), false);
    let mut rest = vec![push("before"), delete, push("after")];
    let mut replies = Vec::new();
    while !rest.is_empty() {
        let finished = bench.block_on(bench.executor.submit(rest)).unwrap();
        replies.extend(finished.replies);
        rest = finished.rest;
    }
    let line = CommandError::TooLarge.to_line();
    let expected = [Reply::Integer(1), Reply::Error(line), Reply::Integer(1)];
    assert_eq!(replies, expected);
}

#[test]
fn whatever_becomes_of_commits_and_fences_a_push_is_done_once() {
    let (bench, faulty) = Bench::faulty(1);
    let outcomes = [
        None,
        Some(Fault::Conflict),
        Some(Fault::UnknownApplied),
        Some(Fault::UnknownNotApplied),
    ];
    for number in 0..4_usize.pow(4) {
        let script: Vec<_> = (0..4)
            .map(|place| outcomes[number / 4_usize.pow(place) % 4])
            .collect();
        faulty.script(FaultPoint::Commit, script.clone());
        // Enough commands to use up the script, however many attempts there are.
        for length in 1..=5 {
            assert_eq!(bench.run("RPUSH l x"), Reply::Integer(length), "{script:?}");
        }
        assert_eq!(bench.run("DEL l"), Reply::Integer(1));
    }
}

/// An EXEC with one command.
fn exec_of(line: &str) -> Call {
    let bundle = Bundle {
        invocations: vec![invocation(0, &words_of(line))],
        watched: Vec::new(),
        touched: Touched::default(),
    };
    Call::transaction(bundle, true)
}

#[test]
fn transactions_of_a_pipeline_that_conflict_again_and_again_are_made_fewer() {
    let (bench, faulty) = Bench::faulty(1);
    let execs = ["a", "b", "c", "d"].map(|key| exec_of(&format!("INCR {key}")));
    faulty.script(FaultPoint::Commit, [Some(Fault::Conflict); 6]);
    let finished = bench.block_on(bench.executor.submit(execs.into())).unwrap();
    let one = Reply::Array(vec![Reply::Integer(1)]);
    assert_eq!(finished.replies, [one.clone(), one.clone()]);
    let finished = bench
        .block_on(bench.executor.submit(finished.rest))
        .unwrap();
    assert_eq!(finished.replies, [one.clone(), one]);
    assert!(finished.rest.is_empty());
}

#[test]
fn a_transaction_that_always_conflicts_fails_alone() {
    let (bench, faulty) = Bench::faulty(1);
    let execs = ["a", "b", "c", "d"].map(|key| exec_of(&format!("INCR {key}")));
    let attempts = COMMIT_ATTEMPTS_MAX as usize;
    faulty.script(FaultPoint::Commit, vec![Some(Fault::Conflict); attempts]);
    let finished = bench.block_on(bench.executor.submit(execs.into())).unwrap();
    let line = CommandError::Store(StoreError::Conflict).to_line();
    assert_eq!(finished.replies, [Reply::Error(line)]);
    assert_eq!(finished.rest.len(), 3);
    faulty.script(FaultPoint::Commit, []);
    let finished = bench
        .block_on(bench.executor.submit(finished.rest))
        .unwrap();
    assert_eq!(finished.replies.len(), 3);
    assert_eq!(bench.run("EXISTS a b c d"), Reply::Integer(3));
}

#[test]
fn a_watched_key_that_came_and_went_in_the_same_batch_fails_exec() {
    let bench = Bench::embedded();
    let bundle = Bundle {
        invocations: vec![invocation(0, &words_of("RPUSH done 1"))],
        watched: vec![WatchedKey {
            key: ClientKey {
                database: 0,
                key: Bytes::from_static(b"k"),
            },
            fingerprint: None,
        }],
        touched: Touched::default(),
    };
    let exec = Call::transaction(bundle, false);
    let calls = vec![push("k"), unplanned("DEL k"), exec];
    let finished = bench.block_on(bench.executor.submit(calls)).unwrap();
    let expected = [Reply::Integer(1), Reply::Integer(1), Reply::NullArray];
    assert_eq!(finished.replies, expected);
    assert_eq!(bench.run("EXISTS done"), Reply::Integer(0));
}

#[test]
fn an_exec_that_one_transaction_cannot_hold_is_refused_whole() {
    let bench = Bench::cluster_like();
    let value = vec![b'v'; 1_000_000];
    let pushes = (0..20).map(|_| invocation(0, &[b"RPUSH", b"k", &value]));
    let bundle = Bundle {
        invocations: pushes.collect(),
        watched: Vec::new(),
        touched: Touched::default(),
    };
    let exec = Call::transaction(bundle, false);
    // The commands around the EXEC must not be affected.
    let calls = vec![push("before"), exec, push("behind")];
    let mut replies = Vec::new();
    let mut rest = calls;
    while !rest.is_empty() {
        let finished = bench.block_on(bench.executor.submit(rest)).unwrap();
        replies.extend(finished.replies);
        rest = finished.rest;
    }
    let line = CommandError::TooLarge.to_line();
    let expected = [Reply::Integer(1), Reply::Error(line), Reply::Integer(1)];
    assert_eq!(replies, expected);
    assert_eq!(bench.run("EXISTS k"), Reply::Integer(0));
    assert_eq!(bench.run("EXISTS before behind"), Reply::Integer(2));
}

/// Whether one batch's commands on empty queues conflict with another server adding to those
/// queues.
fn conflict(lines: &[&str], meanwhile: &str) -> bool {
    let bench = Bench::cluster_like();
    // The keys have metadata from now on, so the batch does not create them.
    for line in ["RPUSH l x", "LPOP l", "RPUSH m x", "LPOP m"] {
        bench.run(line);
    }
    for line in ["ZADD z 1 x", "ZPOPMIN z", "PQ.PUSH q 1 x", "PQ.POPMIN q"] {
        bench.run(line);
    }
    for line in ["PQ.PUSH r 1 x", "PQ.POPMIN r"] {
        bench.run(line);
    }
    bench.race_all(lines, meanwhile, false)
}

#[test]
fn what_is_put_into_an_empty_queue_and_taken_in_one_batch_does_not_conflict() {
    for (push, pop, meanwhile) in [
        ("RPUSH l a", "LPOP l", "RPUSH l b"),
        ("LPUSH l a", "RPOP l", "LPUSH l b"),
        ("ZADD z 5 a", "ZPOPMIN z", "ZADD z 1 b"),
        ("ZADD z 5 a", "ZPOPMAX z", "ZADD z 9 b"),
        ("PQ.PUSH q 5 a", "PQ.POPMIN q", "PQ.PUSH q 1 b"),
    ] {
        // The first pop finds nothing. It stands in for the batch's own check of the queue.
        assert!(!conflict(&[pop, push, pop], meanwhile), "{push}");
        let lines = [pop, push, pop, push];
        assert!(!conflict(&lines, meanwhile), "{push} again");
    }
}

#[test]
fn what_is_taken_of_what_a_batch_puts_somewhere_conflicts_while_something_is_left() {
    for (push, pop, meanwhile) in [
        ("RPUSH l a b", "LPOP l", "LPUSH l c"),
        ("ZADD z 5 a 7 b", "ZPOPMIN z", "ZADD z 1 c"),
        ("PQ.PUSH q 5 a 7 b", "PQ.POPMIN q", "PQ.PUSH q 1 c"),
    ] {
        assert!(conflict(&[pop, push, pop], meanwhile), "{push}");
        let lines = [pop, push, pop, pop];
        assert!(!conflict(&lines, meanwhile), "{push}, all");
    }
}

#[test]
fn what_moves_on_to_another_queue_conflicts() {
    let lines = ["RPUSH l a", "LMOVE l m LEFT RIGHT"];
    assert!(conflict(&lines, "LPUSH l b"));
    // So does a pop of the moved element.
    let lines = ["RPUSH l a", "LMOVE l m LEFT RIGHT", "LPOP m"];
    assert!(conflict(&lines, "LPUSH m b"));
    let lines = ["PQ.PUSH q 5 a", "PQ.MOVE q r MIN"];
    assert!(conflict(&lines, "PQ.PUSH q 1 b"));
}

#[test]
fn what_was_not_in_a_transaction_of_unknown_result_has_its_turn() {
    let (bench, faulty) = Bench::faulty(1);
    let value = vec![b'v'; 1_000];
    let large = |key: &str| {
        let push = invocation(0, &[b"RPUSH", key.as_bytes(), &value]);
        Call::command(push, false)
    };
    faulty.set_transaction_bytes_max(2_500);
    faulty.set_rates(FaultRates {
        unknown_not_applied_ppm: 1_000_000,
        ..FaultRates::default()
    });
    let calls = vec![large("a"), large("b"), large("c"), large("d")];
    let finished = bench.block_on(bench.executor.submit(calls)).unwrap();
    faulty.set_rates(FaultRates::default());
    let line = CommandError::Store(StoreError::UnknownResult).to_line();
    assert!(finished.replies.len() < 4, "{}", finished.replies.len());
    assert!(
        finished
            .replies
            .iter()
            .all(|reply| *reply == Reply::Error(line.clone()))
    );
    let rest = finished.rest.len();
    assert_eq!(finished.replies.len() + rest, 4);
    let finished = bench
        .block_on(bench.executor.submit(finished.rest))
        .unwrap();
    assert_eq!(finished.replies[0], Reply::Integer(1));
}

/// A command that blocks its batch until other clients have run theirs.
fn gate() -> Call {
    job(|_| {
        Box::pin(async {
            GATE_REACHED.notify_one();
            // The gate stays closed, so the next attempt does not wait.
            let _ = GATE.acquire().await;
            Ok(Reply::OK)
        })
    })
}

static GATE_REACHED: Notify = Notify::const_new();
static GATE: Semaphore = Semaphore::const_new(0);

#[test]
fn a_read_after_a_write_sees_what_others_have_done_before_the_write_took_effect() {
    let bench = Bench::cluster_like();
    let length_of = |key: &'static str| unplanned(&format!("LLEN {key}"));
    // The key already exists, so the push conflicts with nothing.
    bench.run("RPUSH a x");
    let executor = Arc::clone(&bench.executor);
    let other = bench.another_server();
    let finished = bench.block_on(async {
        let pipeline = vec![length_of("b"), push("a"), gate(), length_of("b")];
        let first = executor.submit(pipeline).await.unwrap();
        assert_eq!(first.replies, [Reply::Integer(0)]);
        let meanwhile = async {
            GATE_REACHED.notified().await;
            let found = other.submit(vec![length_of("a")]).await.unwrap();
            assert_eq!(found.replies, [Reply::Integer(1)]);
            let pushed = other.submit(vec![push("b")]).await.unwrap();
            assert_eq!(pushed.replies, [Reply::Integer(1)]);
            GATE.close();
        };
        let (finished, ()) = tokio::join!(executor.submit(first.rest), meanwhile);
        let finished = finished.unwrap();
        // The writes are answered without the conflicting read.
        assert_eq!(finished.replies, [Reply::Integer(2), Reply::OK]);
        executor.submit(finished.rest).await.unwrap()
    });
    assert_eq!(finished.replies, [Reply::Integer(1)]);
    assert_eq!(bench.executor.statistics().conflicts.get(), 1);
}

/// A subscriber of everything.
struct Listening;

impl Subscribers for Listening {
    fn count(&self, _: ChannelKind, _: &[u8]) -> usize {
        1
    }

    fn deliver(&self, _: &Message) {}

    fn is_empty(&self) -> bool {
        false
    }
}

/// Publishes nearly as much as one call may, if the list has an element.
async fn publish_much(
    context: &WriteContext<'_>,
    _arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = Bytes::from_static(b"list");
    let Some(key) = context.find(&name, ValueType::List).await? else {
        return Ok(Reply::NullArray);
    };
    ListMut::open(context, &key).pop(1, End::Left).await?;
    let half = Bytes::from(vec![0; PUBLISHED_BYTES_MAX / 2 - 1_000]);
    for _ in 0..2 {
        context.publish(ChannelKind::Global, Bytes::from_static(b"c"), half.clone());
    }
    Ok(Reply::OK)
}

#[test]
fn what_a_woken_client_publishes_is_not_its_wakers() {
    let bench = Bench::embedded().served_with(|environment| {
        environment.subscribers = Some(Arc::new(Listening));
    });
    let waiting = bench.wait_with(with_handler("BLPOP list 0", write_handler!(publish_much)));
    let script = "redis.call('PUBLISH', 'c', string.rep('m', 1000000)) \
                  return redis.call('RPUSH', 'list', 'a')";
    let pushed = bench.run_words(&[b"EVAL", script.as_bytes(), b"0"]);
    assert_eq!(pushed, Reply::Integer(1));
    assert_eq!(waiting.reply(&bench), Reply::OK);
}
