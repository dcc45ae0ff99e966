//! Key commands on both kinds of store.

use quoin_engine::testing::{Bench, bulk, bulks};
use quoin_resp::reply::Reply;

mod concurrency;
mod databases;
mod dumping;
mod existence;
mod expiry;
mod listing;
mod moving;
mod object;
mod sort;

fn on_both_stores(test: impl Fn(&Bench)) {
    test(&Bench::embedded());
    test(&Bench::cluster_like());
}

fn error(line: &str) -> Reply {
    Reply::Error(line.to_owned())
}

/// A name that does not fit into a store key.
fn long_name(last: u8) -> Vec<u8> {
    let mut name = vec![b'n'; 5_000];
    name.push(last);
    name
}

/// A value that does not fit into a row.
fn split_value() -> Vec<u8> {
    (0..250_000_u32).map(|at| (at % 251) as u8).collect()
}

/// Makes a list whose last element was popped. On a cluster its metadata is retained.
fn make_emptied_list(bench: &Bench, name: &str) {
    bench.run(&format!("RPUSH {name} a"));
    assert_eq!(bench.run(&format!("LPOP {name}")), bulk("a"));
}
