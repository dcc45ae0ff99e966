//! Tests of priority queues on both kinds of store.

use quoin_engine::testing::{Bench, bulk};
use quoin_resp::reply::Reply;

mod concurrency;
mod dumping;
mod keys;
mod listing;
mod model;
mod push_pop;
mod range;

fn on_both_stores(test: impl Fn(&Bench)) {
    test(&Bench::embedded());
    test(&Bench::cluster_like());
}

fn error(line: &str) -> Reply {
    Reply::Error(line.to_owned())
}

/// The syntax error of a line's command.
fn syntax_error(line: &str) -> Reply {
    let name = line.split(' ').next().unwrap();
    let row = quoin_data::table::find(name.as_bytes()).unwrap();
    let usage = quoin_data::command::grammar::Syntax(row.arguments);
    assert!(!usage.to_string().is_empty());
    error(&format!("ERR syntax error, expected {name} {usage}"))
}

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// Pairs of values and integer priorities.
fn pairs(pairs: &[(&str, i64)]) -> Reply {
    let pairs = pairs
        .iter()
        .map(|(value, priority)| (bulk(value), Reply::Whole(*priority)));
    Reply::Pairs(pairs.collect())
}

fn one(value: &str, priority: i64) -> Reply {
    Reply::Array(vec![bulk(value), Reply::Whole(priority)])
}
