//! List commands on both kinds of store. The expected replies are those of Redis's documentation.
//! The differential test against redis-server goes further.

mod access;
mod blocks;
mod model;
mod push_pop;

use quoin_engine::testing::{Bench, bulk, bulks};
use quoin_resp::reply::Reply;

fn on_both_stores(test: impl Fn(&Bench)) {
    test(&Bench::embedded());
    test(&Bench::cluster_like());
}
