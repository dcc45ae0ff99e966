//! Pops on a long and a short list, and the memory of the server.

use std::time::Instant;

use clap::ArgMatches;

use crate::measures::median;
use crate::resp::{Connection, Words};
use crate::server::Server;
use crate::settings::count;

const SHORT: u64 = 1_000;
const FILL_VALUES: u64 = 1_000;
/// Pops on one list before it is the other's turn: few, so that both meet the same disk.
const TURN: u64 = 100;

/// Prints what a pop takes on a long list and on a short one, and what memory the long one takes.
pub(crate) fn pop_times(matches: &ArgMatches, quoin: &Server) {
    let long = count(matches, "long").max(SHORT);
    let mut connection = Connection::open(quoin.address()).unwrap();
    connection.command(&["FLUSHALL"]).unwrap();
    let memory_before = quoin.memory_bytes();
    fill(&mut connection, "bench:long", long);
    let memory_after = quoin.memory_bytes();
    #[allow(clippy::cast_precision_loss)]
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!();
    println!(
        "Memory (RssAnon): {:.1} MiB before, {:.1} MiB after filling a list with {long} elements",
        mebibytes(memory_before),
        mebibytes(memory_after)
    );
    fill(&mut connection, "bench:short", SHORT);
    println!();
    println!("Microseconds for a pop, one client:");
    println!(
        "{:12} {:>12} {:>12} {:>7} {:>7}",
        "load",
        format!("of {long}"),
        format!("of {SHORT}"),
        "ratio",
        "target"
    );
    for (name, depth) in [("-P 1", 1), ("-P 100", 100)] {
        let (mut on_long, mut on_short) = (Vec::new(), Vec::new());
        for _ in 0..(count(matches, "pops") / TURN).max(1) {
            for (key, times) in [("bench:long", &mut on_long), ("bench:short", &mut on_short)] {
                times.push(pop_us(&mut connection, key, TURN, depth));
                fill(&mut connection, key, TURN);
            }
        }
        let (long_us, short_us) = (median(&mut on_long), median(&mut on_short));
        let ratio = long_us / short_us;
        println!(
            "{name:12} {long_us:>12.1} {short_us:>12.1} {ratio:>7.2} {:>7}",
            "≤ 1.2"
        );
    }
}

fn fill(connection: &mut Connection, key: &str, elements: u64) {
    let mut left = elements;
    while left > 0 {
        let count = left.min(FILL_VALUES);
        let mut words: Words = vec![b"RPUSH".to_vec(), key.into()];
        words.extend((0..count).map(|_| vec![b'v'; 100]));
        let reply = connection.command(&words).unwrap();
        assert!(reply.integer().is_some(), "{reply:?}");
        left -= count;
    }
}

/// Microseconds for one pop, of `pops` in pipelines of `depth`.
fn pop_us(connection: &mut Connection, key: &str, pops: u64, depth: u64) -> f64 {
    let pipeline: Vec<Words> = (0..depth)
        .map(|_| vec![b"LPOP".to_vec(), key.into()])
        .collect();
    let started = Instant::now();
    for _ in 0..pops / depth {
        let replies = connection.pipeline(&pipeline).unwrap();
        assert!(replies.iter().all(|reply| reply.bytes().is_some()));
    }
    #[allow(clippy::cast_precision_loss)]
    let each = started.elapsed().as_secs_f64() * 1e6 / pops as f64;
    each
}
