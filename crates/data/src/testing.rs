//! Tests that examine what a bench's commands have stored.

use std::sync::Arc;

use quoin_base::clock::Clock;
use quoin_base::random::SeededRandom;
use quoin_engine::testing::Bench;
use quoin_layout::Layout;

use crate::unit::context::Environment;
use crate::unit::startup;

/// An environment for another server on the bench's store. The bench's own environment belongs to
/// the instance of this crate that the engine is built with.
pub(crate) fn environment(bench: &Bench) -> Environment {
    let prepared = startup::prepare(
        &*bench.store,
        Layout::new("test"),
        Arc::clone(&bench.clock) as Arc<dyn Clock>,
        Arc::new(SeededRandom::new(9)),
    );
    bench.block_on(prepared).unwrap()
}
