//! A server whose keys are owned by a neighbour, reachable or not.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;

use super::contention::AWAITED_FOR;
use super::*;
use crate::owners::ForwardedFuture;
use crate::testing::{Bench, bulk, bulks, invocation, planned, words_of};
use crate::{Executor, ExecutorOptions, Work};
use quoin_base::limits::FORWARDED_BYTES_MAX;
use quoin_data::command::call::Invocation;
use quoin_data::keyspace::key::ClientKey;
use quoin_resp::wire::encode::Protocol;
use quoin_store::faults::{Fault, FaultPoint, FaultyStore, OptimisticStore};
use quoin_store_embedded::EmbeddedStore;

/// What the owner does with forwarded calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owning {
    /// Runs at most this many of them.
    Running(usize),
    Refusing,
    Lost,
}

/// A neighbour that owns all keys except those that begin with `own`.
struct Neighbour {
    executor: Arc<Executor>,
    owning: Mutex<Owning>,
    forwarded: AtomicUsize,
}

impl Owners for Neighbour {
    fn owner_of(&self, keys: &mut dyn Iterator<Item = &Bytes>) -> Option<u64> {
        let mut keys = keys.peekable();
        keys.peek()?;
        (!keys.any(|key| key.starts_with(b"own"))).then_some(1)
    }

    fn forward(&self, _owner: u64, calls: &[Call], reply_bytes_max: usize) -> ForwardedFuture {
        self.forwarded.fetch_add(1, Ordering::SeqCst);
        let owning = *self.owning.lock().unwrap();
        let calls_max = match owning {
            Owning::Running(calls_max) => calls_max,
            Owning::Refusing => return Box::pin(async { Forwarded::NotRun }),
            Owning::Lost => return Box::pin(async { Forwarded::Unknown }),
        };
        let again = calls.iter().take(calls_max).map(|call| match &call.work {
            Work::Command(one) => Call::command(one.clone(), true),
            Work::Transaction(bundle) => Call::transaction(
                crate::Bundle {
                    invocations: bundle.invocations.clone(),
                    watched: Vec::new(),
                    touched: Arc::default(),
                },
                true,
            ),
            _ => unreachable!("no work of a server is forwarded"),
        });
        let again: Vec<Call> = again.collect();
        let executor = Arc::clone(&self.executor);
        Box::pin(async move {
            let ran = executor.submit_here(again, reply_bytes_max).await;
            Forwarded::Ran(ran.unwrap().replies)
        })
    }
}

/// A bench, and a second server that has the bench's server as its neighbour.
struct Pair {
    bench: Bench,
    faulty: Arc<FaultyStore<OptimisticStore<EmbeddedStore>>>,
    neighbour: Arc<Neighbour>,
    executor: Executor,
}

impl Pair {
    fn new() -> Self {
        let (bench, faulty) = Bench::faulty(1);
        let neighbour = Arc::new(Neighbour {
            executor: Arc::clone(&bench.executor),
            owning: Mutex::new(Owning::Running(usize::MAX)),
            forwarded: AtomicUsize::new(0),
        });
        let executor = bench.another_server_with(ExecutorOptions {
            owners: Some(Arc::clone(&neighbour) as Arc<dyn Owners>),
            ..ExecutorOptions::default()
        });
        let pair = Self {
            bench,
            faulty,
            neighbour,
            executor,
        };
        for key in ["jobs", "jobs2", "own"] {
            pair.contention().note_conflict(&Bytes::from(key));
        }
        pair
    }

    fn contention(&self) -> &Contention {
        &self.executor.shared.contention
    }

    fn owning(&self, owning: Owning) {
        *self.neighbour.owning.lock().unwrap() = owning;
    }

    fn submit(&self, calls: Vec<Call>) -> SubmissionResult {
        self.bench.block_on(self.executor.submit(calls)).unwrap()
    }

    /// Runs a pipeline. Returns the replies, and the number of frames sent.
    fn run(&self, lines: &[&str]) -> (Vec<Reply>, usize) {
        let before = self.neighbour.forwarded.load(Ordering::SeqCst);
        let mut calls: Vec<Call> = lines.iter().map(|line| command(line)).collect();
        let mut replies = Vec::new();
        while !calls.is_empty() {
            let finished = self.submit(calls);
            replies.extend(finished.replies);
            calls = finished.rest;
        }
        (
            replies,
            self.neighbour.forwarded.load(Ordering::SeqCst) - before,
        )
    }

    /// Submits a blocking command. Returns its reply, or the receiver of its outcome.
    fn block(&self, line: &str) -> Result<Reply, tokio::sync::oneshot::Receiver<crate::Outcome>> {
        let invocation = as_client(invocation(0, &words_of(line)));
        let spec = invocation.row.waits.unwrap()(&invocation.arguments, 0);
        let spec = spec.ok().flatten().unwrap();
        let (waiter, outcome) = Waiter::new(invocation.clone(), spec);
        let call = Call {
            waiter: Some(waiter),
            ..Call::command(invocation, true)
        };
        let mut finished = self.submit(vec![call]);
        match finished.is_parked {
            true => Err(outcome),
            false => Ok(finished.replies.remove(0)),
        }
    }

    fn outcome(&self, outcome: tokio::sync::oneshot::Receiver<crate::Outcome>) -> crate::Outcome {
        let arrived = async { tokio::time::timeout(Duration::from_secs(20), outcome).await };
        self.bench.block_on(arrived).unwrap().unwrap()
    }
}

/// Marks a command as a client's, so that another server may run it.
fn as_client(mut invocation: Invocation) -> Invocation {
    invocation.origin.forwarded_as = Some(Protocol::Resp2);
    invocation
}

fn command(line: &str) -> Call {
    Call::command(as_client(invocation(0, &words_of(line))), true)
}

#[test]
fn what_contends_is_forwarded_with_what_comes_with_it() {
    let pair = Pair::new();
    let lines = ["RPUSH jobs a b", "LPOP jobs", "LLEN jobs", "GET own"];
    let (replies, frames) = pair.run(&lines);
    let expected = [Reply::Integer(2), bulk("a"), Reply::Integer(1), Reply::Null];
    assert_eq!((replies.as_slice(), frames), (&expected[..], 1));
    let ran = pair.executor.statistics().forwarded_commands.get();
    assert_eq!(ran, 4);
}

#[test]
fn what_does_not_contend_runs_here() {
    let pair = Pair::new();
    for line in [
        "RPUSH jobs a",
        "SET jobs2 a",
        "LLEN jobs",
        "ZADD set 1 a",
        "LPOP own",
    ] {
        assert_eq!(pair.run(&[line]).1, 0, "{line}");
    }
}

#[test]
fn what_did_not_conflict_runs_here() {
    let pair = Pair::new();
    assert_eq!(pair.run(&["LPOP jobs3"]).1, 0);
    assert_eq!(pair.run(&["LPOP jobs3", "LPOP jobs2"]).1, 1);
}

#[test]
fn a_command_that_conflicts_makes_its_key_contended() {
    let pair = Pair::new();
    pair.run(&["RPUSH jobs3 a b"]);
    pair.faulty
        .script(FaultPoint::Commit, [Some(Fault::Conflict)]);
    assert_eq!(pair.run(&["LPOP jobs3"]).1, 0);
    assert_eq!(pair.run(&["LPOP jobs3"]), (vec![bulk("b")], 1));
}

#[test]
fn pops_from_keys_of_two_owners_run_here() {
    let pair = Pair::new();
    assert_eq!(pair.run(&["LPOP jobs", "LPOP own"]).1, 0);
}

#[test]
fn clients_that_need_their_own_server_keep_it() {
    let pair = Pair::new();
    let before = pair.neighbour.forwarded.load(Ordering::SeqCst);
    pair.submit(vec![planned("LPOP jobs")]);
    let mut named = as_client(invocation(0, &words_of("LPOP jobs")));
    named.origin.lacks_named_keys = true;
    pair.submit(vec![Call::command(named, true)]);
    assert_eq!(pair.neighbour.forwarded.load(Ordering::SeqCst), before);
}

#[test]
fn scripts_and_large_commands_run_here() {
    let pair = Pair::new();
    let script = "EVAL return(redis.call('LPOP',KEYS[1])) 1 jobs";
    assert_eq!(pair.run(&[script, "LPOP jobs"]).1, 0);
    let large = format!("APPEND jobs2 {}", "x".repeat(FORWARDED_BYTES_MAX));
    assert_eq!(pair.run(&[&large]).1, 0);
}

#[test]
fn what_an_owner_does_not_take_runs_here() {
    let pair = Pair::new();
    pair.run(&["RPUSH jobs a b"]);
    pair.owning(Owning::Refusing);
    assert_eq!(pair.run(&["LPOP jobs"]), (vec![bulk("a")], 1));
    pair.owning(Owning::Running(usize::MAX));
    assert_eq!(pair.run(&["LPOP jobs"]), (vec![bulk("b")], 1));
}

#[test]
fn what_a_lost_owner_may_have_run_is_told_unknown_and_not_repeated() {
    let pair = Pair::new();
    pair.run(&["RPUSH jobs a"]);
    pair.owning(Owning::Lost);
    let (replies, frames) = pair.run(&["LPOP jobs", "LLEN jobs"]);
    let is_unknown =
        |reply: &Reply| matches!(reply, Reply::Error(line) if line.starts_with("UNKNOWN "));
    assert!(
        replies.len() == 2 && replies.iter().all(is_unknown),
        "{replies:?}"
    );
    assert_eq!(frames, 1);
    assert_eq!(pair.executor.statistics().forwarded_unknown.get(), 1);
    assert_eq!(pair.run(&["LLEN jobs"]).0, [Reply::Integer(1)]);
}

#[test]
fn calls_that_an_owner_left_out_are_submitted_again_in_order() {
    let pair = Pair::new();
    pair.run(&["RPUSH jobs a b c"]);
    pair.owning(Owning::Running(1));
    let (replies, frames) = pair.run(&["LPOP jobs", "LPOP jobs", "LPOP jobs"]);
    assert_eq!(
        (replies, frames),
        (vec![bulk("a"), bulk("b"), bulk("c")], 3)
    );
}

#[test]
fn a_command_that_may_wait_comes_after_the_rest_of_its_pipeline() {
    let pair = Pair::new();
    let mut calls = vec![command("RPUSH jobs a"), command("LPOP jobs")];
    let invocation = as_client(invocation(0, &words_of("BLPOP jobs 0")));
    let spec = invocation.row.waits.unwrap()(&invocation.arguments, 0)
        .ok()
        .flatten();
    let (waiter, _outcome) = Waiter::new(invocation.clone(), spec.unwrap());
    calls.push(Call {
        waiter: Some(waiter),
        ..Call::command(invocation, true)
    });
    let finished = pair.submit(calls);
    assert_eq!(finished.replies, [Reply::Integer(1), bulk("a")]);
    assert_eq!((finished.rest.len(), finished.is_parked), (1, false));
    assert!(pair.submit(finished.rest).is_parked);
}

#[test]
fn a_client_that_finds_something_at_the_owner_does_not_wait() {
    let pair = Pair::new();
    pair.run(&["RPUSH jobs a"]);
    assert_eq!(pair.block("BLPOP jobs 0").unwrap(), bulks(&["jobs", "a"]));
    let waiting = pair.executor.waiters().count_waiting([key("jobs")].iter());
    assert_eq!(waiting, [0]);
}

fn key(name: &'static str) -> ClientKey {
    ClientKey {
        database: 0,
        key: Bytes::from_static(name.as_bytes()),
    }
}

#[test]
fn a_client_that_waits_is_served_whoever_pushes() {
    let pair = Pair::new();
    for pushed_here in [true, false] {
        let waiting = pair.block("BLPOP jobs 0").unwrap_err();
        match pushed_here {
            true => assert_eq!(pair.run(&["RPUSH jobs a"]), (vec![Reply::Integer(1)], 0)),
            false => assert_eq!(pair.bench.run("RPUSH jobs a"), Reply::Integer(1)),
        }
        let replied = crate::Outcome::Replied(bulks(&["jobs", "a"]));
        assert_eq!(pair.outcome(waiting), replied);
    }
    assert_eq!(pair.bench.run("LLEN jobs"), Reply::Integer(0));
}

#[test]
fn a_client_whose_owner_is_lost_while_it_checks_is_told_unknown() {
    let pair = Pair::new();
    pair.owning(Owning::Lost);
    let reply = pair.block("BLPOP jobs 0").unwrap();
    assert!(
        matches!(&reply, Reply::Error(line) if line.starts_with("UNKNOWN ")),
        "{reply:?}"
    );
    assert_eq!(
        pair.executor.waiters().count_waiting([key("jobs")].iter()),
        [0]
    );
}

#[test]
fn a_key_of_another_type_is_nothing_to_a_client_that_waits() {
    let pair = Pair::new();
    let mut waiting = pair.block("BLPOP jobs 0").unwrap_err();
    assert_eq!(pair.run(&["ZADD jobs 1 a"]).0, [Reply::Integer(1)]);
    pair.bench.run("DEL jobs");
    pair.bench.run("ZADD jobs 1 a");
    std::thread::sleep(Duration::from_millis(300));
    assert!(waiting.try_recv().is_err());
    pair.bench.run("DEL jobs");
    pair.bench.run("RPUSH jobs a");
    let replied = crate::Outcome::Replied(bulks(&["jobs", "a"]));
    assert_eq!(pair.outcome(waiting), replied);
}

#[test]
fn clients_that_wait_for_several_keys_are_served_here() {
    let pair = Pair::new();
    let before = pair.neighbour.forwarded.load(Ordering::SeqCst);
    let waiting = pair.block("BLPOP jobs jobs2 0").unwrap_err();
    pair.bench.run("RPUSH jobs2 a");
    let replied = crate::Outcome::Replied(bulks(&["jobs2", "a"]));
    assert_eq!(pair.outcome(waiting), replied);
    assert_eq!(pair.neighbour.forwarded.load(Ordering::SeqCst), before);
}

#[test]
fn a_client_does_not_overtake_those_that_wait_here() {
    let pair = Pair::new();
    let first = pair.block("BLPOP jobs 0").unwrap_err();
    std::thread::sleep(AWAITED_FOR);
    let before = pair.neighbour.forwarded.load(Ordering::SeqCst);
    let second = pair.block("BLPOP jobs 0").unwrap_err();
    assert_eq!(pair.neighbour.forwarded.load(Ordering::SeqCst), before);
    pair.bench.run("RPUSH jobs a b");
    for (waiting, element) in [(first, "a"), (second, "b")] {
        let replied = crate::Outcome::Replied(bulks(&["jobs", element]));
        assert_eq!(pair.outcome(waiting), replied);
    }
}

#[test]
fn a_key_is_not_contended_while_clients_begin_to_wait_for_it() {
    let pair = Pair::new();
    let _waiting = pair.block("BLPOP jobs 0").unwrap_err();
    let jobs = Bytes::from("jobs");
    pair.contention().note_conflict(&jobs);
    assert!(!pair.contention().has_any([&jobs].into_iter()));
}
