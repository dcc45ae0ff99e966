//! String commands on both kinds of store, and the operations that they use. The differential test
//! against redis-server goes further.

mod bitmaps;
mod comparison;
mod comparison_model;
mod hyperloglog;
mod increx;
mod lcs;
mod model;
mod ranges;
mod set_get;

use quoin_engine::testing::{Bench, bulk};
use quoin_resp::reply::Reply;

fn on_both_stores(test: impl Fn(&Bench)) {
    test(&Bench::embedded());
    test(&Bench::cluster_like());
}

fn error(line: &str) -> Reply {
    Reply::Error(line.to_owned())
}

/// Lengths near the limits of a value in metadata and of a piece.
const LENGTHS: [usize; 10] = [
    0, 1, 1_023, 1_024, 1_025, 16_383, 16_384, 16_385, 32_768, 40_000,
];

fn text(length: usize) -> Vec<u8> {
    (0..length).map(|at| b'a' + (at % 23) as u8).collect()
}
