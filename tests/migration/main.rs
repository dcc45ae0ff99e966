//! Values in transit between Quoin and a real `redis-server`: DUMP and RESTORE both ways,
//! `quoin import` and `quoin export`.
//!
//! - `REDIS_ORACLE`: the `redis-server`, instead of the one on the PATH.
//! - `QUOIN_TEST_LATER_REDIS`: a `redis-server` of 7.4 or later, which writes what Redis 7.2 cannot
//!   read.
//! - `QUOIN_TEST_REQUIRE_REDIS`: fail if there is none.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub
)]

mod append_only;
mod between;
mod dumping;
mod exporting;
mod files;
mod importing;
mod interference;
mod later;
mod leaving;
mod own_types;
#[path = "../support/redis.rs"]
mod redis_server;
#[path = "../support/resp.rs"]
mod resp;
#[path = "../support/server.rs"]
mod server;
mod values;

use std::io::Write;
use std::path::Path;

use redis_server::Redis;

/// A Redis with a port, if one can be started. Otherwise the test says so and ends.
fn start_redis(folder: &Path) -> Option<Redis> {
    or_say_so(Redis::start_with_port(folder, &[]))
}

fn or_say_so(started: std::io::Result<Redis>) -> Option<Redis> {
    match started {
        Ok(redis) => Some(redis),
        Err(error) if std::env::var_os("QUOIN_TEST_REQUIRE_REDIS").is_none() => {
            // Written past the capture of a passing test's output.
            let _ = writeln!(std::io::stderr(), "nothing comes from Redis: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}
