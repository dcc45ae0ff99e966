//! Consumer groups on both kinds of store. What they must answer is Redis's source; the differential
//! test goes further.

use quoin_engine::testing::{Bench, START_MS, bulk, bulks};
use quoin_resp::reply::Reply;

mod blocking;
mod claiming;
mod conflicts;
mod faults;
mod managing;
mod model;
mod policy;
mod reading;
mod releasing;

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

fn on_both_stores(test: impl Fn(&Bench)) {
    test(&Bench::embedded());
    test(&Bench::cluster_like());
}

fn error(line: &str) -> Reply {
    Reply::Error(line.to_owned())
}

fn int(number: i64) -> Reply {
    Reply::Integer(number)
}

/// Adds entries `1-0`, `2-0`… with a field `n` that counts them, and makes a group `g` before the
/// first.
fn fill(bench: &Bench, key: &str, count: usize) {
    let made = bench.run(&format!("XGROUP CREATE {key} g 0 MKSTREAM"));
    assert_eq!(made, Reply::OK);
    for number in 1..=count {
        add(bench, key, number);
    }
}

fn add(bench: &Bench, key: &str, number: usize) {
    let reply = bench.run(&format!("XADD {key} {number}-0 n {number}"));
    assert_eq!(reply, bulk(&format!("{number}-0")));
}

/// The entry `n-0` of [`fill`].
fn entry(number: usize) -> Reply {
    let fields = bulks(&["n", &number.to_string()]);
    Reply::Array(vec![bulk(&format!("{number}-0")), fields])
}

fn entries(numbers: impl IntoIterator<Item = usize>) -> Reply {
    Reply::Array(numbers.into_iter().map(entry).collect())
}

/// What XREADGROUP answers that has read these entries of one stream.
fn read(key: &str, numbers: impl IntoIterator<Item = usize>) -> Reply {
    Reply::Keyed(vec![(bulk(key), entries(numbers))])
}

/// A pending entry as XPENDING shows it.
fn pending(number: usize, consumer: &str, idle_ms: i64, deliveries: i64) -> Reply {
    Reply::Array(vec![
        bulk(&format!("{number}-0")),
        bulk(consumer),
        int(idle_ms),
        int(deliveries),
    ])
}

fn all_pending(bench: &Bench, key: &str) -> Reply {
    bench.run(&format!("XPENDING {key} g - + 100"))
}

/// The fields of the only element of a reply of XINFO.
fn info(bench: &Bench, line: &str, field: &str) -> Reply {
    let Reply::Array(mut elements) = bench.run(line) else {
        panic!("{line}");
    };
    let Some(Reply::Map(fields)) = elements.pop() else {
        panic!("{line}");
    };
    let mut fields = fields.into_iter();
    fields.find(|(name, _)| *name == bulk(field)).unwrap().1
}
