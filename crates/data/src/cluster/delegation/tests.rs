//! Requests and grants between two servers on one store.

use std::collections::HashSet;

use bytes::Bytes;

use quoin_base::clock::Clock;
use quoin_data::cluster::delegation::{
    Demand, Demands, FoundGrants, GRANT_EXPIRY_MS, Granted, HeldGrants, MadeRequest,
    REQUEST_AGE_MAX_MS,
};
use quoin_data::command::call::{Mode, call as run_command};
use quoin_data::error::CommandError;
use quoin_data::rows::ranks::{RankShape, RankTending};
use quoin_data::unit::Unit;
use quoin_data::unit::context::{Environment, NamespaceCache, WriteContext};
use quoin_data::unit::signals::Signals;
use quoin_engine::testing::{Bench, bulk, bulks, invocation, words_of};
use quoin_layout::{Layout, PopRun, Section, ValueType};
use quoin_resp::reply::Reply;
use quoin_store::{Isolation, RangeQuery, StoreError, Transaction};

/// The requesting server. The bench's own executor is the granting one.
struct Asker<'b> {
    bench: &'b Bench,
    environment: Environment,
}

/// Runs `$body` with a context of `$server` (an environment) and returns the result of the commit.
macro_rules! transact {
    ($bench:expr, $environment:expr, $context:ident, $body:expr) => {{
        let transaction = $bench.store.begin_write().unwrap();
        {
            let namespaces = NamespaceCache::default();
            let signals = Signals::default();
            let $context = WriteContext::new(
                &*transaction,
                $environment,
                &namespaces,
                &signals,
                $bench.clock.now_ms(),
                0,
            );
            $bench.block_on(async {
                $body;
                $context.count_rank_changes().await.unwrap();
            });
        }
        transaction
    }};
}

mod counting;
mod returning;
mod runs;

fn commit(bench: &Bench, transaction: Box<dyn Transaction + '_>) -> Result<(), StoreError> {
    bench.block_on(transaction.commit())
}

fn demand(value_type: ValueType, from_end: bool, count: usize) -> Demand {
    Demand {
        value_type,
        from_end,
        count,
    }
}

impl<'b> Asker<'b> {
    fn new(bench: &'b Bench) -> Self {
        let environment = bench
            .block_on(quoin_data::unit::startup::prepare(
                &*bench.store,
                Layout::new("test"),
                std::sync::Arc::clone(&bench.clock) as std::sync::Arc<dyn Clock>,
                std::sync::Arc::new(quoin_base::random::SeededRandom::new(8)),
            ))
            .unwrap();
        Self { bench, environment }
    }

    /// Makes a request for elements of `q`.
    fn ask(&self, demand: Demand) -> MadeRequest {
        self.ask_all(&demand.into())
    }

    fn ask_all(&self, demands: &Demands) -> MadeRequest {
        let mut made = None;
        let transaction = transact!(self.bench, &self.environment, context, {
            let name = Bytes::from_static(b"q");
            let key = context
                .find(&name, demands.value_type)
                .await
                .unwrap()
                .unwrap();
            let id = self.environment.ids.allocate();
            let row = context.make_request(&key, id, demands);
            made = Some(MadeRequest {
                database: 0,
                key,
                id,
                row,
            });
        });
        commit(self.bench, transaction).unwrap();
        made.unwrap()
    }

    /// Fetches a grant and pops `count` elements from it, without a commit.
    fn fetch(
        &self,
        call: &MadeRequest,
        demand: Demand,
        count: usize,
    ) -> (Vec<String>, Box<dyn Transaction + 'b>) {
        let mut popped = Vec::new();
        let transaction = self.bench.store.begin_write().unwrap();
        {
            let namespaces = NamespaceCache::default();
            let signals = Signals::default();
            let held = HeldGrants::default();
            let now_ms = self.bench.clock.now_ms();
            let context = WriteContext::new(
                &*transaction,
                &self.environment,
                &namespaces,
                &signals,
                now_ms,
                0,
            )
            .with_grants(&held)
            .popping_grants();
            self.bench.block_on(async {
                if !context.fetch_grant(call, &held).await.unwrap() {
                    return;
                }
                let name = Bytes::from_static(b"q");
                let key = context
                    .find(&name, demand.value_type)
                    .await
                    .unwrap()
                    .unwrap();
                let taken = context
                    .pop_elements(&key, demand.from_end, count)
                    .await
                    .unwrap();
                let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
                popped.extend(taken.iter().map(|one| match demand.value_type {
                    ValueType::SortedSet => text(&one.name),
                    _ => text(&one.value),
                }));
                context.return_rest().await.unwrap();
                context.count_rank_changes().await.unwrap();
            });
        }
        (popped, transaction)
    }

    fn fetched(&self, call: &MadeRequest, demand: Demand, count: usize) -> Vec<String> {
        let (popped, transaction) = self.fetch(call, demand, count);
        commit(self.bench, transaction).unwrap();
        popped
    }
}

/// Makes the bench's server pop for others, without a commit.
fn grant(bench: &Bench, demand: Demand) -> (u64, Box<dyn Transaction + '_>) {
    let mut granted = Granted::default();
    let environment = bench.executor.environment();
    let transaction = transact!(bench, environment, context, {
        let name = Bytes::from_static(b"q");
        if let Some(key) = context.find(&name, demand.value_type).await.unwrap() {
            granted = context
                .grant_requests(&key, demand.from_end, || true)
                .await
                .unwrap();
        }
    });
    (granted.requests, transaction)
}

fn granted(bench: &Bench, demand: Demand) -> u64 {
    let (count, transaction) = grant(bench, demand);
    commit(bench, transaction).unwrap();
    count
}

fn pass(bench: &Bench) -> i64 {
    pass_with(bench, &HashSet::new())
}

fn pass_with(bench: &Bench, overdue: &HashSet<Bytes>) -> i64 {
    let mut expired = 0;
    let environment = bench.executor.environment();
    let transaction = transact!(bench, environment, context, {
        for row in context.find_grants(overdue).await.unwrap().expired {
            let elements = context.end_grant(&row).await.unwrap();
            expired += i64::from(elements.is_some());
        }
        context.remove_old_requests().await.unwrap();
    });
    commit(bench, transaction).unwrap();
    expired
}

/// Number of rows of requests, grants and their elements.
fn rows_left(bench: &Bench) -> usize {
    let layout = Layout::new("test");
    let begin = layout.all_pop_requests().begin;
    let end = [&layout.all_grants().end[..], &[0xff]].concat();
    let transaction = bench.store.begin_read().unwrap();
    let rows = bench.block_on(transaction.get_range(RangeQuery {
        begin: &begin,
        end: &end,
        limit: 1000,
        reverse: false,
        isolation: Isolation::Snapshot,
    }));
    rows.unwrap().len()
}

const LEFT: Demand = Demand {
    value_type: ValueType::List,
    from_end: false,
    count: 2,
};

#[test]
fn a_server_gets_what_another_pops_for_it_and_nobody_else_does() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b c d");
    let asker = Asker::new(&bench);
    let call = asker.ask(LEFT);
    assert_eq!(bench.run("LPOP q"), bulk("a"));
    assert_eq!(granted(&bench, LEFT), 1);
    assert_eq!(bench.run("LLEN q"), Reply::Integer(1));
    assert_eq!(bench.run("LRANGE q 0 -1"), bulks(&["d"]));
    assert_eq!(asker.fetched(&call, LEFT, 2), ["b", "c"]);
    assert_eq!(bench.run("LRANGE q 0 -1"), bulks(&["d"]));
    assert_eq!(rows_left(&bench), 0);
}

#[test]
fn queues_of_every_type_are_popped_from_both_ends() {
    for (value_type, push) in [
        (ValueType::List, "RPUSH q a b c"),
        (ValueType::SortedSet, "ZADD q 1 a 2.5 b 3 c"),
        (ValueType::PriorityQueue, "PQ.PUSH q 1 a 2.5 b 3 c"),
    ] {
        for (from_end, expected) in [(false, ["a", "b"]), (true, ["c", "b"])] {
            let bench = Bench::cluster_like();
            bench.run(push);
            let asker = Asker::new(&bench);
            let demand = demand(value_type, from_end, 2);
            let call = asker.ask(demand);
            assert_eq!(granted(&bench, demand), 1);
            assert_eq!(asker.fetched(&call, demand, 2), expected, "{push}");
            assert_eq!(rows_left(&bench), 0);
        }
    }
}

#[test]
fn pops_from_the_other_end_count_in_blocks_that_were_made_since_the_request() {
    let bench = Bench::cluster_like();
    for member in 0..40 {
        bench.run(&format!("ZADD q {member} m{member}"));
    }
    let asker = Asker::new(&bench);
    let call = asker.ask(demand(ValueType::SortedSet, false, 2));
    assert_eq!(granted(&bench, demand(ValueType::SortedSet, false, 2)), 1);
    let small = RankShape {
        block_elements: 4,
        ..RankShape::DEFAULT
    };
    let environment = bench.executor.environment();
    let transaction = transact!(bench, environment, context, {
        let name = Bytes::from_static(b"q");
        let from = RankTending::default();
        let tended = context.tend_ranks(&name, &from, &small);
        assert_eq!(tended.await.unwrap(), None);
    });
    commit(&bench, transaction).unwrap();
    let popped = asker.fetched(&call, demand(ValueType::SortedSet, true, 30), 30);
    assert_eq!(popped.len(), 30);
    bench.run("ZADD q 99 last");
    assert_eq!(bench.run("ZRANK q last"), Reply::Integer(10));
}

#[test]
fn a_request_that_is_taken_back_is_not_granted() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b c");
    let asker = Asker::new(&bench);
    let call = asker.ask(LEFT);
    assert!(asker.fetched(&call, LEFT, 2).is_empty());
    assert_eq!(granted(&bench, LEFT), 0);
    assert_eq!(rows_left(&bench), 0);
}

#[test]
fn a_request_is_either_taken_back_or_granted() {
    for asker_first in [true, false] {
        let bench = Bench::cluster_like();
        bench.run("RPUSH q a b c");
        let asker = Asker::new(&bench);
        let call = asker.ask(LEFT);
        let (count, granting) = grant(&bench, LEFT);
        assert_eq!(count, 1);
        let (popped, taking_back) = asker.fetch(&call, LEFT, 2);
        assert!(popped.is_empty());
        let (first, second) = match asker_first {
            true => (taking_back, granting),
            false => (granting, taking_back),
        };
        commit(&bench, first).unwrap();
        let conflict = commit(&bench, second);
        assert!(matches!(conflict, Err(StoreError::Conflict)));
        if !asker_first {
            assert_eq!(asker.fetched(&call, LEFT, 2), ["a", "b"]);
        }
    }
}

#[test]
fn a_request_is_granted_once() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b c d e f");
    let asker = Asker::new(&bench);
    asker.ask(LEFT);
    let (_, first) = grant(&bench, LEFT);
    let (_, second) = grant(&bench, LEFT);
    commit(&bench, first).unwrap();
    let conflict = commit(&bench, second);
    assert!(matches!(conflict, Err(StoreError::Conflict)));
    assert_eq!(bench.run("LLEN q"), Reply::Integer(4));
}

#[test]
fn requests_conflict_with_nobody() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b c");
    let asker = Asker::new(&bench);
    let (_, granting) = grant(&bench, LEFT);
    let mutations = granting.mutation_count();
    asker.ask(LEFT);
    assert_eq!(mutations, 0);
    let transaction = transact!(bench, &asker.environment, context, {
        let name = Bytes::from_static(b"q");
        let key = context.find(&name, ValueType::List).await.unwrap().unwrap();
        context.make_request(&key, asker.environment.ids.allocate(), &LEFT.into());
    });
    assert_eq!(bench.run("LPOP q"), bulk("a"));
    assert_eq!(bench.run("RPUSH q d"), Reply::Integer(3));
    commit(&bench, transaction).unwrap();
}

#[test]
fn a_grant_is_never_larger_than_what_can_be_put_back_at_once() {
    let bench = Bench::cluster_like();
    let value = "v".repeat(500);
    for _ in 0..20 {
        bench.run(&format!("RPUSH q{}", format!(" {value}").repeat(1_000)));
    }
    let asker = Asker::new(&bench);
    let demands = Demands {
        value_type: ValueType::List,
        from_end: false,
        runs: vec![PopRun {
            count: 1_000,
            commands: 20,
        }],
    };
    asker.ask_all(&demands);
    assert_eq!(granted(&bench, LEFT), 1);
    let left = bench.run("LLEN q");
    let Reply::Integer(left) = left else {
        panic!("{left:?}");
    };
    assert!((1..20_000).contains(&left), "{left}");
    bench.clock.advance_ms(GRANT_EXPIRY_MS);
    assert_eq!(pass(&bench), 1);
    assert_eq!(bench.run("LLEN q"), Reply::Integer(20_000));
}

#[test]
fn a_command_that_wants_more_than_could_be_put_back_is_not_granted() {
    let bench = Bench::cluster_like();
    let value = "v".repeat(6_000);
    for _ in 0..10 {
        bench.run(&format!("RPUSH q{}", format!(" {value}").repeat(100)));
    }
    let asker = Asker::new(&bench);
    asker.ask(demand(ValueType::List, false, 1_000));
    let environment = bench.executor.environment();
    let _transaction = transact!(bench, environment, context, {
        let name = Bytes::from_static(b"q");
        let key = context.find(&name, ValueType::List).await.unwrap().unwrap();
        let outcome = context.grant_requests(&key, false, || true).await;
        assert!(matches!(outcome, Err(StoreError::TooLarge)), "{outcome:?}");
    });
}

#[test]
fn an_old_request_is_removed_rather_than_granted() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b c");
    let asker = Asker::new(&bench);
    asker.ask(LEFT);
    bench.clock.advance_ms(REQUEST_AGE_MAX_MS + 1);
    assert_eq!(granted(&bench, LEFT), 0);
    assert_eq!(rows_left(&bench), 0);
    asker.ask(LEFT);
    bench.clock.advance_ms(2 * REQUEST_AGE_MAX_MS + 1);
    pass(&bench);
    assert_eq!(rows_left(&bench), 0);
    assert_eq!(bench.run("LLEN q"), Reply::Integer(3));
}

#[test]
fn an_expiring_queue_is_not_popped_from_for_others() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b c");
    let asker = Asker::new(&bench);
    asker.ask(LEFT);
    bench.run("EXPIRE q 1000");
    assert_eq!(granted(&bench, LEFT), 0);
    assert_eq!(bench.run("LLEN q"), Reply::Integer(3));
}

#[test]
fn large_elements_come_through_and_back() {
    let bench = Bench::cluster_like();
    let large = "x".repeat(250_000);
    bench.run(&format!("RPUSH q {large} b"));
    let asker = Asker::new(&bench);
    let call = asker.ask(LEFT);
    granted(&bench, LEFT);
    assert_eq!(asker.fetched(&call, LEFT, 0), Vec::<String>::new());
    let again = asker.ask(LEFT);
    granted(&bench, LEFT);
    assert_eq!(asker.fetched(&again, LEFT, 2), [large, "b".to_owned()]);
}

#[test]
fn a_grant_holds_whole_commands_of_a_request() {
    let bench = Bench::cluster_like();
    for number in 0..4 {
        let elements = (0..100).map(|element| format!(" {}", 100 * number + element));
        bench.run(&format!("RPUSH q{}", elements.collect::<String>()));
    }
    let asker = Asker::new(&bench);
    let runs = [(1, 2), (100, 5)].map(|(count, commands)| PopRun { count, commands });
    let demands = Demands {
        runs: runs.to_vec(),
        ..LEFT.into()
    };
    let call = asker.ask_all(&demands);
    // Room for two commands after the first.
    let room = std::cell::Cell::new(3);
    let environment = bench.executor.environment();
    let transaction = transact!(bench, environment, context, {
        let name = Bytes::from_static(b"q");
        let key = context.find(&name, ValueType::List).await.unwrap().unwrap();
        let has_room = || {
            room.set(room.get() - 1);
            room.get() >= 0
        };
        let granted = context.grant_requests(&key, false, has_room).await;
        let expected = Granted {
            requests: 1,
            elements: 202,
        };
        assert_eq!(granted.unwrap(), expected);
    });
    commit(&bench, transaction).unwrap();
    assert_eq!(bench.run("LLEN q"), Reply::Integer(400 - 202));
    let fetched = asker.fetched(&call, LEFT, 999);
    let expected: Vec<String> = (0..202).map(|number| number.to_string()).collect();
    assert_eq!(fetched, expected);
}

#[test]
fn a_request_that_cannot_be_read_does_not_keep_others_from_theirs() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b c d");
    let asker = Asker::new(&bench);
    let unreadable = asker.ask(LEFT);
    let transaction = bench.store.begin_write().unwrap();
    transaction.set(&unreadable.row, b"?");
    commit(&bench, transaction).unwrap();
    let call = asker.ask(LEFT);
    assert_eq!(granted(&bench, LEFT), 1);
    assert_eq!(asker.fetched(&call, LEFT, 2), ["a", "b"]);
    bench.clock.advance_ms(3 * REQUEST_AGE_MAX_MS);
    assert_eq!(pass(&bench), 0);
}
