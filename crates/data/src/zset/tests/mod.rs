//! Sorted-set commands on both kinds of store. The expected replies come from Redis's documentation
//! and its source; the differential test against redis-server goes further.

use quoin_engine::testing::{Bench, bulk};
use quoin_resp::reply::Reply;

mod add_and_remove;
mod algebra;
mod concurrency;
mod geo;
mod long_members;
mod model;
mod random_and_scan;
mod range;

fn on_both_stores(test: impl Fn(&Bench)) {
    test(&Bench::embedded());
    test(&Bench::cluster_like());
}

fn error(line: &str) -> Reply {
    Reply::Error(line.to_owned())
}

fn pairs(pairs: &[(&str, f64)]) -> Reply {
    Reply::Pairs(
        pairs
            .iter()
            .map(|(member, score)| (bulk(member), Reply::Double(*score)))
            .collect(),
    )
}
