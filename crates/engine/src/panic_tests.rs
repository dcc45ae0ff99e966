//! A panic in a thread of the executor ends the process. Each test runs in a process of its own.

use super::Call;
use crate::testing::Bench;
use quoin_base::fatal_panic::PANIC_EXIT_CODE;
use quoin_base::fatal_panic::testing::ends_of;
use quoin_data::command::access::KeyLocks;

fn ends_with_a_message(test: &str, call: fn() -> Call) {
    let ended = ends_of(&format!("panic_tests::{test}"), || {
        let bench = Bench::embedded();
        // If the process survives, this line must not fail: the check below should.
        let _ = bench.block_on(bench.executor.submit(vec![call()]));
    });
    if let Some(ended) = ended {
        assert_eq!(ended.status.code(), Some(PANIC_EXIT_CODE));
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(said.contains("a fault of this test"), "{said}");
    }
}

#[test]
fn a_panic_in_the_write_lane_ends_the_process() {
    ends_with_a_message("a_panic_in_the_write_lane_ends_the_process", || {
        Call::write_job(0, KeyLocks::Nothing, |_| {
            Box::pin(async { panic!("a fault of this test") })
        })
    });
}

#[test]
fn a_panic_in_the_read_lane_ends_the_process() {
    ends_with_a_message("a_panic_in_the_read_lane_ends_the_process", || {
        Call::read_job(0, |_| Box::pin(async { panic!("a fault of this test") }))
    });
}
