//! Commands that only read and wait, and clients that are all woken together.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;

use super::{find_nothing, on_both};
use crate::batch::WAITERS_TRIED_PER_KEY_MAX;
use crate::testing::{Bench, Waiting, bulks, planned, with_row};
use crate::{Call, Waiter};
use quoin_data::command::arguments::{argument, integer};
use quoin_data::command::call::Invocation;
use quoin_data::command::row::Row;
use quoin_data::command::waits::{WaitFunction, WaitSpec, Wake};
use quoin_data::error::CommandError;
use quoin_data::list::List;
use quoin_data::unit::context::ReadContext;
use quoin_data::unit::signals::{Offer, Wants};
use quoin_data::{read_handler, write_handler};
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// Reads a list as XREAD reads a stream: `key above _` → the elements after the first `above`, or
/// null if there are no more.
async fn read_above(context: &ReadContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let above = integer(argument(arguments, 2)?)?;
    let name = argument(arguments, 1)?;
    let values = match context.find(name, ValueType::List).await? {
        Some(key) => List::open(context, &key).range(above, -1).await?,
        None => Vec::new(),
    };
    Ok(match values.is_empty() {
        true => Reply::NullArray,
        false => Reply::Array(values.into_iter().map(Reply::Bulk).collect()),
    })
}

/// How many elements a client has read.
#[derive(Debug, PartialEq)]
struct Above(i64);

impl Wants for Above {
    fn accepts(&self, _: &dyn Offer) -> bool {
        true
    }

    fn is_same(&self, other: &dyn Wants) -> bool {
        (other as &dyn Any).downcast_ref() == Some(self)
    }
}

fn wait_for_more(arguments: &[Bytes], _: i64) -> Result<Option<WaitSpec>, CommandError> {
    let keys = std::slice::from_ref(argument(arguments, 1)?);
    Ok(Some(WaitSpec {
        wants: Some(Arc::new(Above(integer(argument(arguments, 2)?)?))),
        wake: Wake::All,
        ..WaitSpec::to_take(ValueType::List, keys, None)
    }))
}

/// The same for a client that does not say how much it has read.
fn wait_for_any(arguments: &[Bytes], now_ms: i64) -> Result<Option<WaitSpec>, CommandError> {
    let spec = wait_for_more(arguments, now_ms)?;
    Ok(spec.map(|spec| WaitSpec {
        wants: None,
        ..spec
    }))
}

fn reading(above: usize, waits: WaitFunction) -> Invocation {
    with_row(&format!("LRANGE list {above} _"), |row| Row {
        handler: read_handler!(read_above),
        waits: Some(waits),
        ..row
    })
}

fn reader(bench: &Bench, above: usize) -> Waiting {
    bench.wait_with(reading(above, wait_for_more))
}

#[test]
fn a_command_that_only_reads_is_woken_and_what_it_reads_stays() {
    on_both(|bench| {
        let waiting = reader(bench, 0);
        assert_eq!(bench.run("RPUSH list a"), Reply::Integer(1));
        assert_eq!(waiting.reply(bench), bulks(&["a"]));
        assert_eq!(bench.run("LRANGE list 0 -1"), bulks(&["a"]));
        assert!(bench.executor.waiters().is_empty());
    });
}

#[test]
fn a_command_that_only_reads_is_woken_by_another_server() {
    let bench = Bench::cluster_like();
    let waiting = reader(&bench, 0);
    let other = bench.another_server();
    let calls = vec![planned("RPUSH list a")];
    bench.block_on(other.submit(calls)).unwrap();
    assert_eq!(waiting.reply(&bench), bulks(&["a"]));
}

#[test]
fn a_command_that_only_reads_and_finds_something_does_not_wait() {
    on_both(|bench| {
        bench.run("RPUSH list a");
        let reading = reading(0, wait_for_more);
        let spec = wait_for_more(&reading.arguments, 0).unwrap().unwrap();
        let (waiter, _outcome) = Waiter::new(reading.clone(), spec);
        let call = Call {
            waiter: Some(waiter),
            ..Call::command(reading, true)
        };
        // It follows a write of its client.
        let calls = vec![planned("RPUSH other b"), call];
        let finished = bench.block_on(bench.executor.submit(calls)).unwrap();
        assert!(!finished.is_parked);
        assert_eq!(finished.replies, [Reply::Integer(1), bulks(&["a"])]);
    });
}

#[test]
fn all_that_read_are_woken_together() {
    for waits in [wait_for_more as WaitFunction, wait_for_any] {
        on_both(|bench| {
            let waiting: Vec<Waiting> = (0..10)
                .map(|_| bench.wait_with(reading(0, waits)))
                .collect();
            bench.run("RPUSH list a b");
            for waiting in waiting {
                assert_eq!(waiting.reply(bench), bulks(&["a", "b"]));
            }
        });
    }
}

#[test]
fn one_that_has_read_more_does_not_keep_others_waiting() {
    for waits in [wait_for_more as WaitFunction, wait_for_any] {
        on_both(|bench| {
            let mut ahead = bench.wait_with(reading(2, waits));
            let behind = bench.wait_with(reading(1, waits));
            let far_behind = bench.wait_with(reading(0, waits));
            bench.run("RPUSH list a b");
            assert_eq!(behind.reply(bench), bulks(&["b"]));
            assert_eq!(far_behind.reply(bench), bulks(&["a", "b"]));
            assert!(ahead.is_waiting());
            bench.run("RPUSH list c");
            assert_eq!(ahead.reply(bench), bulks(&["c"]));
        });
    }
}

#[test]
fn one_that_takes_gets_one_beside_those_that_read() {
    on_both(|bench| {
        let before: Vec<Waiting> = (0..3).map(|_| reader(bench, 0)).collect();
        let taker = bench.wait("BLPOP list 0");
        let after: Vec<Waiting> = (0..3).map(|_| reader(bench, 0)).collect();
        bench.run("RPUSH list a b");
        for waiting in before {
            assert_eq!(waiting.reply(bench), bulks(&["a", "b"]));
        }
        assert_eq!(taker.reply(bench), bulks(&["list", "a"]));
        for waiting in after {
            assert_eq!(waiting.reply(bench), bulks(&["b"]));
        }
        assert_eq!(bench.run("LRANGE list 0 -1"), bulks(&["b"]));
    });
}

#[test]
fn one_that_takes_in_vain_ends_the_check_for_those_that_take_only() {
    on_both(|bench| {
        let mut in_vain = bench.wait_with(with_row("BLPOP list 0", |row| Row {
            handler: write_handler!(find_nothing),
            ..row
        }));
        let mut taker = bench.wait("BLPOP list 0");
        let waiting = reader(bench, 0);
        bench.run("RPUSH list a");
        assert_eq!(waiting.reply(bench), bulks(&["a"]));
        assert!(in_vain.is_waiting() && taker.is_waiting());
    });
}

#[test]
fn those_after_many_that_find_nothing_have_their_turn() {
    on_both(|bench| {
        let many = (1..=WAITERS_TRIED_PER_KEY_MAX + 10).map(|above| reader(bench, above));
        let mut many: Vec<Waiting> = many.collect();
        let last = reader(bench, 0);
        let taker = bench.wait("BLPOP list 0");
        bench.run("RPUSH list a");
        assert_eq!(last.reply(bench), bulks(&["a"]));
        assert_eq!(taker.reply(bench), bulks(&["list", "a"]));
        assert!(many.iter_mut().all(Waiting::is_waiting));
    });
}
