//! Job frameworks from their registries, with their own workers, on Quoin. Each enqueues, works,
//! retries, schedules, fails and cleans up while the server is killed and restarted. No job is lost
//! or stuck, and the outcomes equal those on a `redis-server` that is not killed.
//!
//! A client library of another project speaks TLS with it ([tls]), some find it by its Sentinel
//! port ([sentinel]), and some know its cluster port ([cluster]). The workers in `examples/` run
//! here too ([workers]).
//!
//! - `QUOIN_TEST_FRAMEWORKS=all`: all of them, which takes minutes. Otherwise a few.
//! - `QUOIN_TEST_REQUIRE_REDIS`: fail if there is no `redis-server` to compare with.
//!
//! Packages are installed with pip and npm into the target folder. If no registry can be reached,
//! or Python or Node.js is missing, a test says so and does nothing, unless all are requested. What
//! pip and npm do not have runs if the machine has it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub
)]

mod cluster;
mod dashboard;
mod installed;
mod packages;
mod process;
#[path = "../support/redis.rs"]
mod redis_server;
mod scenario;
mod sentinel;
#[path = "../support/server.rs"]
mod server;
mod tls;
mod workers;

#[path = "../support/authority.rs"]
mod authority;

use std::io::Write;

use packages::Packages;

/// Asks for more than the few.
const VARIABLE: &str = "QUOIN_TEST_FRAMEWORKS";

fn is_all() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| value == "all")
}

/// Runs the scenario of one framework: a file of `tests/frameworks/python` or `node`, and
/// optionally an argument.
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

fn run_where_installed(framework: &installed::Framework) {
    match framework.command() {
        Ok(command) => scenario::compare(&command),
        Err(missing) => {
            let _ = writeln!(std::io::stderr(), "a framework is not run: {missing}");
        }
    }
}

/// A test for each framework. Those of `few` always run, the others if all are requested.
macro_rules! frameworks {
    (few { $($few:ident: $few_packages:ident $few_script:literal,)* }
     more { $($more:ident: $more_packages:ident $more_script:literal,)* }
     where_installed { $($installed:ident: $framework:ident,)* }) => {
        $(#[test] fn $few() { run(Packages::$few_packages, $few_script); })*
        $(#[test] fn $more() {
            if is_all() {
                run(Packages::$more_packages, $more_script);
            }
        })*
        $(#[test] fn $installed() {
            if is_all() {
                run_where_installed(&installed::$framework);
            }
        })*
    };
}

frameworks! {
    few {
        bullmq: Node "bullmq.mjs",
        celery: Python "run_celery.py",
        rq: Python "run_rq.py",
    }
    more {
        arq: OlderPython "run_arq.py",
        asyncmq: MorePython "run_asyncmq.py",
        bee_queue: Node "bee_queue.mjs",
        bull: Node "bull.mjs",
        bullmq_for_python: Python "run_bullmq.py",
        channels_redis: MorePython "run_channels.py",
        django_redis: MorePython "run_django_redis.py",
        dramatiq: MorePython "run_dramatiq.py",
        huey_with_a_list: MorePython "run_huey.py list",
        huey_with_priorities: MorePython "run_huey.py priorities",
        kue: Node "kue.mjs",
        limits: MorePython "run_limits.py",
        redbeat: MorePython "run_redbeat.py",
        redlock_and_rate_limiter_flexible: Node "locks_and_limits.mjs",
        rq_dashboard_and_rq_scheduler: MorePython "run_rq_dashboard.py",
        rsmq: Node "rsmq.mjs",
        saq: OlderPython "run_saq.py",
        scrapy_redis: MorePython "run_scrapy_redis.py",
        socket_io: Node "socket_io.mjs",
        streaq: MorePython "run_streaq.py",
        taskiq_with_a_list: MorePython "run_taskiq.py list",
        taskiq_with_a_stream: MorePython "run_taskiq.py stream",
        taskiq_with_pubsub: MorePython "run_taskiq.py pubsub",
        tasktiger: OldestPython "run_tasktiger.py",
    }
    where_installed {
        laravel: LARAVEL,
        resque: RESQUE,
        sidekiq: SIDEKIQ,
    }
}
