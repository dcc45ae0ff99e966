//! Job frameworks as their registries carry them, with their own workers, on Quoin: each enqueues,
//! works, retries, schedules, fails and cleans up while the server is killed and started again.
//! No job is lost, none is stuck, and the outcomes are those on a `redis-server` that nobody kills.
//!
//! - `QUOIN_TEST_FRAMEWORKS=all`: all of them, which takes minutes; else a few.
//! - `QUOIN_TEST_REQUIRE_REDIS`: fail where there is no `redis-server` to compare with.
//!
//! Packages come from pip and npm into the target folder. Where no registry can be reached, or
//! Python or Node.js is missing, a test says so and does nothing, unless all are asked for.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub
)]

mod packages;
mod process;
#[path = "../support/redis.rs"]
mod redis_server;
mod scenario;
#[path = "../support/server.rs"]
mod server;

use std::io::Write;

use packages::Packages;

/// Asks for more than the few.
const VARIABLE: &str = "QUOIN_TEST_FRAMEWORKS";

fn is_all() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| value == "all")
}

/// Runs the scenario of one framework: a file of `tests/frameworks/python` or `node`.
fn run(packages: Packages, script: &str) {
    match packages.install() {
        Ok(installed) => scenario::compare(&installed.command(script)),
        Err(missing) if !is_all() => {
            // Written past the capture of a passing test's output.
            let _ = writeln!(std::io::stderr(), "{script} is not run: {missing}");
        }
        Err(missing) => panic!("{script} is not run: {missing}"),
    }
}

/// A test for each framework. Those of `few` run always, the others where all are asked for.
macro_rules! frameworks {
    (few { $($few:ident: $few_packages:ident $few_script:literal,)* }
     more { $($more:ident: $more_packages:ident $more_script:literal,)* }) => {
        $(#[test] fn $few() { run(Packages::$few_packages, $few_script); })*
        $(#[test] fn $more() {
            if is_all() {
                run(Packages::$more_packages, $more_script);
            }
        })*
    };
}

frameworks! {
    few {
        rq: Python "run_rq.py",
    }
    more {
    }
}
