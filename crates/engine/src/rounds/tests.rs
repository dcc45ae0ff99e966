use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::join_all;

use super::WEIGHT_MAX;
use crate::rounds_state::ALONE_SUBMISSIONS_MIN;
use crate::testing::{Bench, bulk, bulks, call, with_handler, words_of};
use crate::{Bundle, Call, Cursor};
use quoin_base::fatal_panic::PANIC_EXIT_CODE;
use quoin_base::fatal_panic::testing::ends_of;
use quoin_data::command::call::Invocation;
use quoin_data::command::row::Handler;
use quoin_data::error::CommandError;
use quoin_data::keyspace::key::ClientKey;
use quoin_data::unit::context::{ReadContext, WriteContext};
use quoin_data::unit::host::{ScriptCall, ScriptCalls};
use quoin_data::{read_handler, write_handler};
use quoin_resp::reply::Reply;

/// The thread of the write lane.
const LANE: &str = "quoin-write";

fn name_of_thread() -> Reply {
    bulk(thread::current().name().unwrap_or(""))
}

/// Does what RPUSH does, and replies with the name of the thread that runs it. RPUSH's own row
/// would run several calls at once through other code.
async fn push(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let Handler::Write(rpush) = quoin_data::table::find(b"RPUSH").unwrap().handler else {
        panic!("RPUSH writes");
    };
    rpush(context, arguments).await?;
    Ok(name_of_thread())
}

/// The same, but waits before it pushes.
async fn push_later(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    push(context, arguments).await?;
    tokio::time::sleep(Duration::from_millis(1)).await;
    push(context, arguments).await
}

/// The same as `push`, but slow.
async fn push_slowly(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    thread::sleep(Duration::from_millis(20));
    push(context, arguments).await
}

/// Changes nothing, so it never waits for a slow sync.
async fn change_nothing(_: &WriteContext<'_>, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(name_of_thread())
}

async fn read(_: &ReadContext<'_>, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(name_of_thread())
}

async fn panics(_: &WriteContext<'_>, _: &[Bytes]) -> Result<Reply, CommandError> {
    panic!("a fault of this test")
}

fn replies(bench: &Bench, calls: Vec<Call>) -> Vec<Reply> {
    bench
        .block_on(bench.executor.submit(calls))
        .unwrap()
        .replies
}

fn pushes(count: usize) -> Vec<Call> {
    let push = with_handler("APPEND list x", write_handler!(push));
    let calls = (0..count).map(|_| Call::command(push.clone(), false));
    calls.collect()
}

fn run(bench: &Bench, invocation: Invocation) -> Reply {
    let mut replies = replies(bench, vec![Call::command(invocation, false)]);
    replies.pop().unwrap()
}

#[test]
fn commands_run_on_the_thread_that_submits_them() {
    let bench = Bench::embedded();
    assert_eq!(replies(&bench, pushes(1)), [name_of_thread()]);
    let read = with_handler("GET string", read_handler!(read));
    assert_eq!(run(&bench, read), name_of_thread());
}

#[test]
fn many_commands_at_once_go_to_the_lane() {
    let bench = Bench::embedded();
    let here = vec![name_of_thread(); WEIGHT_MAX];
    assert_eq!(replies(&bench, pushes(WEIGHT_MAX)), here);
    let lane = vec![bulk(LANE); WEIGHT_MAX + 1];
    assert_eq!(replies(&bench, pushes(WEIGHT_MAX + 1)), lane);
}

#[test]
fn the_commands_of_an_exec_run_here_unless_they_are_many() {
    let bench = Bench::embedded();
    let exec = |count: usize| {
        let push = with_handler("APPEND list x", write_handler!(push));
        let bundle = Bundle {
            invocations: vec![push; count],
            watched: Vec::new(),
            touched: Default::default(),
        };
        replies(&bench, vec![Call::transaction(bundle, false)])
    };
    let here = Reply::Array(vec![name_of_thread(); 2]);
    assert_eq!(exec(2), [here]);
    let lane = Reply::Array(vec![bulk(LANE); WEIGHT_MAX + 1]);
    assert_eq!(exec(WEIGHT_MAX + 1), [lane]);
}

#[test]
fn clients_that_come_together_share_a_batch() {
    let bench = Bench::embedded();
    let before = bench.executor.statistics().batches.get();
    let together = (0..50).map(|_| bench.executor.submit(pushes(1)));
    let finished = bench.block_on(join_all(together));
    assert!(finished.into_iter().all(|one| one.is_ok()));
    assert_eq!(bench.executor.statistics().batches.get(), before + 1);
    assert_eq!(bench.run("LLEN list"), Reply::Integer(50));
}

/// Whether a client's command completes as soon as it is submitted, without waiting for others.
fn is_done_at_once(bench: &Bench, client: u64) -> bool {
    let mut command = with_handler("APPEND list x", write_handler!(change_nothing));
    command.origin.client = client;
    bench.block_on(async {
        let submitted = bench.executor.submit(vec![Call::command(command, false)]);
        let mut submitted = Box::pin(submitted);
        let first_poll = submitted.as_mut().now_or_never();
        let is_done = first_poll.is_some();
        if !is_done {
            submitted.await.unwrap();
        }
        is_done
    })
}

/// Retries until nothing interferes. On a busy machine, commands may seem slow and go to the lane.
fn succeeds_once(attempt: impl Fn(&Bench) -> bool) {
    assert!((0..30).any(|_| attempt(&Bench::embedded())));
}

#[test]
fn a_client_that_is_alone_waits_for_nobody_and_others_share_rounds() {
    let alone = ALONE_SUBMISSIONS_MIN as usize;
    let is_alone = |count: usize| count > alone && !count.is_multiple_of(alone);
    let expected: Vec<bool> = (1..=3 * alone).map(is_alone).collect();
    succeeds_once(|bench| {
        let done: Vec<bool> = (0..3 * alone).map(|_| is_done_at_once(bench, 1)).collect();
        done == expected && !is_done_at_once(bench, 2) && !is_done_at_once(bench, 1)
    });
}

#[test]
fn a_client_that_is_alone_waits_for_the_batch_of_the_lane() {
    succeeds_once(|bench| {
        let is_alone = (0..100).any(|_| is_done_at_once(bench, 1));
        let turn = bench.executor.shared.rounds.turn.try_lock().unwrap();
        let mut command = with_handler("APPEND list x", write_handler!(change_nothing));
        command.origin.client = 1;
        bench.block_on(async {
            let submitted = bench.executor.submit(vec![Call::command(command, false)]);
            let mut submitted = Box::pin(submitted);
            assert!(submitted.as_mut().now_or_never().is_none());
            drop(turn);
            is_alone && submitted.await.unwrap().replies == [name_of_thread()]
        })
    });
}

#[test]
fn a_command_that_has_to_wait_goes_to_the_lane_and_is_done_once() {
    let bench = Bench::embedded();
    let later = with_handler("APPEND other x", write_handler!(push_later));
    assert_eq!(run(&bench, later), bulk(LANE));
    assert_eq!(bench.run("LLEN other"), Reply::Integer(2));
}

/// Counts the calls of scripts.
#[derive(Default)]
struct Counted(AtomicU64);

impl ScriptCalls for Counted {
    fn are_shown(&self) -> bool {
        false
    }

    fn tell(&self, _: &ScriptCall) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Takes much longer than a round allows, in calls and between them.
const SLOW_SCRIPT: &[u8] = b"for i = 1, 5000 do redis.call('INCR', KEYS[1]) end \
    return redis.call('GET', KEYS[1])";
/// The same, without calling commands or writing.
const SLOW_LOOP: &[u8] = b"local sum = 0 for i = 1, 1000000 do sum = sum + 1 end return sum";

fn script(words: &[&[u8]]) -> Vec<Call> {
    vec![call(0, words)]
}

/// Whether a script runs in a round rather than in a lane. Waits until scripts may run.
fn runs_here(bench: &Bench, words: &[&[u8]]) -> bool {
    let shared = &bench.executor.shared;
    bench.block_on(async {
        let turn = shared.rounds.turn.lock().await;
        let mut submitted = Box::pin(bench.executor.submit(script(words)));
        assert!(submitted.as_mut().now_or_never().is_none());
        let runs_here = !shared.rounds.writes.is_empty();
        drop(turn);
        submitted.await.unwrap();
        runs_here
    })
}

#[test]
fn a_script_runs_here() {
    let bench = Bench::embedded();
    assert!(runs_here(&bench, &[b"EVAL", b"return 1", b"0"]));
    assert!(!runs_here(&bench, &[b"SCRIPT", b"LOAD", b"return 1"]));
}

#[test]
fn a_slow_script_goes_to_the_lane_alone_and_is_done_once() {
    let bench = Bench::embedded();
    let slow: &[&[u8]] = &[b"EVAL", SLOW_SCRIPT, b"1", b"count"];
    let together = [pushes(1), script(slow), pushes(1)];
    let together = together.map(|calls| bench.executor.submit(calls));
    let finished = bench.block_on(join_all(together));
    let replies = finished.into_iter().map(|one| one.unwrap().replies);
    let here = vec![name_of_thread()];
    let expected = [here.clone(), vec![bulk("5000")], here];
    assert_eq!(replies.collect::<Vec<_>>(), expected);
    assert!(!runs_here(&bench, slow));
    assert!(runs_here(&bench, &[b"EVAL", b"return 1", b"0"]));
}

#[test]
fn a_script_that_loops_without_calls_goes_to_the_lane_too() {
    let bench = Bench::embedded();
    let slow: &[&[u8]] = &[b"EVAL", SLOW_LOOP, b"0"];
    assert_eq!(replies(&bench, script(slow)), [Reply::Integer(1_000_000)]);
    assert!(!runs_here(&bench, slow));
}

#[test]
fn a_slow_script_that_reads_leaves_the_others_their_snapshot() {
    let bench = Bench::embedded();
    let slow: &[&[u8]] = &[b"EVAL_RO", SLOW_LOOP, b"0"];
    let read = || {
        vec![Call::command(
            with_handler("GET string", read_handler!(read)),
            false,
        )]
    };
    let together = [read(), script(slow), read()];
    let together = together.map(|calls| bench.executor.submit(calls));
    let finished = bench.block_on(join_all(together));
    let replies = finished.into_iter().map(|one| one.unwrap().replies);
    let here = vec![name_of_thread()];
    let expected = [here.clone(), vec![Reply::Integer(1_000_000)], here];
    assert_eq!(replies.collect::<Vec<_>>(), expected);
}

#[test]
fn after_a_slow_script_the_other_scripts_of_the_round_go_to_the_lane() {
    let bench = Bench::embedded();
    let slow: &[&[u8]] = &[b"EVAL", SLOW_LOOP, b"0"];
    let other: &[&[u8]] = &[
        b"EVAL",
        b"return redis.call('INCR', KEYS[1])",
        b"1",
        b"count",
    ];
    let together = [slow, other].map(|words| bench.executor.submit(script(words)));
    let finished = bench.block_on(join_all(together));
    let replies = finished.into_iter().map(|one| one.unwrap().replies);
    let expected = [vec![Reply::Integer(1_000_000)], vec![Reply::Integer(1)]];
    assert_eq!(replies.collect::<Vec<_>>(), expected);
    // This script was not slow itself.
    assert!(runs_here(&bench, other));
}

#[test]
fn what_comes_before_a_slow_script_is_answered_and_done_once() {
    let bench = Bench::embedded();
    let mut calls = pushes(1);
    calls.extend(script(&[b"EVAL", SLOW_SCRIPT, b"1", b"count"]));
    calls.extend(pushes(1));
    let finished = bench.block_on(bench.executor.submit(calls)).unwrap();
    assert_eq!(finished.replies, [name_of_thread()]);
    // The lane answers it, and may leave the next command to its next batch.
    let mut finished = bench
        .block_on(bench.executor.submit(finished.rest))
        .unwrap();
    assert_eq!(finished.replies[0], bulk("5000"));
    while !finished.rest.is_empty() {
        finished = bench
            .block_on(bench.executor.submit(finished.rest))
            .unwrap();
    }
    assert_eq!(bench.run("LLEN list"), Reply::Integer(2));
}

#[test]
fn the_calls_of_a_slow_script_are_counted_once() {
    let counted = Arc::new(Counted::default());
    let counter: Arc<dyn ScriptCalls> = counted.clone();
    let bench = Bench::embedded().served_with(|environment| {
        environment.script_calls = Some(counter);
    });
    for name in [b"EVAL".as_slice(), b"EVAL_RO"] {
        counted.0.store(0, Ordering::Relaxed);
        let slow = b"for i = 1, 5000 do redis.call('GET', KEYS[1]) end return 1";
        let words: &[&[u8]] = &[name, slow, b"1", b"key"];
        assert_eq!(replies(&bench, script(words)), [Reply::Integer(1)]);
        assert_eq!(counted.0.load(Ordering::Relaxed), 5_000);
    }
}

#[test]
fn a_slow_command_goes_to_the_lane_for_a_while() {
    let bench = Bench::embedded();
    // Redis does not flag LINSERT as fast.
    let slow = with_handler("LINSERT list BEFORE x x", write_handler!(push_slowly));
    let slow = || Invocation {
        arguments: words_of("list x")
            .into_iter()
            .map(Bytes::copy_from_slice)
            .collect(),
        ..slow.clone()
    };
    assert_eq!(run(&bench, slow()), name_of_thread());
    assert_eq!(run(&bench, slow()), bulk(LANE));
    assert_eq!(replies(&bench, pushes(1)), [name_of_thread()]);
}

#[test]
fn reads_do_not_wait_for_the_batch_of_the_lane() {
    let bench = Bench::embedded();
    let turn = bench.executor.shared.rounds.turn.try_lock().unwrap();
    let read = with_handler("GET string", read_handler!(read));
    assert_eq!(run(&bench, read), name_of_thread());
    drop(turn);
}

#[test]
fn while_older_clients_are_to_be_woken_the_lane_serves_them_first() {
    let bench = Bench::embedded();
    let waiting = bench.wait("BLPOP other 0");
    let key = ClientKey {
        database: 0,
        key: Bytes::from_static(b"other"),
    };
    let waiters = bench.executor.waiters();
    // The lane takes a wake-up as soon as it is scheduled, so several attempts may be needed.
    let runs_in_lane = || {
        waiters.schedule_wake_up(key.clone(), Cursor::START);
        replies(&bench, pushes(1)) == [bulk(LANE)]
    };
    assert!((0..1000).any(|_| runs_in_lane()));
    drop(waiting);
}

#[test]
fn writes_wait_for_the_batch_of_the_lane() {
    let bench = Bench::embedded();
    bench.block_on(async {
        let turn = bench.executor.shared.rounds.turn.lock().await;
        let mut push = Box::pin(bench.executor.submit(pushes(1)));
        for _ in 0..10 {
            assert!(push.as_mut().now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        drop(turn);
        assert_eq!(push.await.unwrap().replies, [name_of_thread()]);
    });
}

#[test]
fn a_blocking_command_waits_and_is_woken_by_a_round() {
    let bench = Bench::embedded();
    let waiting = bench.wait("BLPOP list 0");
    assert_eq!(replies(&bench, pushes(1)), [name_of_thread()]);
    assert_eq!(waiting.reply(&bench), bulks(&["list", "x"]));
    assert_eq!(bench.run("LLEN list"), Reply::Integer(0));
}

#[test]
fn on_a_store_with_several_writers_there_are_no_rounds() {
    let bench = Bench::cluster_like();
    assert_eq!(replies(&bench, pushes(1)), [bulk(LANE)]);
}

#[test]
fn a_panic_in_a_round_ends_the_process() {
    let test = "rounds::tests::a_panic_in_a_round_ends_the_process";
    let ended = ends_of(test, || {
        let bench = Bench::embedded();
        let panics = with_handler("APPEND list x", write_handler!(panics));
        let call = Call::command(panics, false);
        let _ = bench.block_on(bench.executor.submit(vec![call]));
    });
    if let Some(ended) = ended {
        assert_eq!(ended.status.code(), Some(PANIC_EXIT_CODE));
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(said.contains("a fault of this test"), "{said}");
        assert!(!said.contains(LANE), "{said}");
    }
}
