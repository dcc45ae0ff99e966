//! Streams and consumer groups on both kinds of store. The replies are those of Redis's source. The
//! differential test goes further.

use quoin_engine::testing::{Bench, START_MS, bulk, bulks, planned};
use quoin_resp::reply::Reply;

mod add;
mod blocking;
mod claim;
mod claiming_reads;
mod concurrency;
mod delete;
mod dump;
mod group;
mod info;
mod model;
mod policy;
mod producers;
mod read;
mod read_group;
mod trim;

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const NOT_GREATER: &str =
    "ERR The ID specified in XADD is equal or smaller than the target stream top item";

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

/// Adds entries `1-0`, `2-0`… with a field `n` that counts them.
fn fill(bench: &Bench, key: &str, count: usize) {
    for number in 1..=count {
        add(bench, key, number);
    }
}

/// Makes a stream with a group `g`, and then [`fill`]s it.
fn with_group(bench: &Bench, key: &str, count: usize) {
    let made = bench.run(&format!("XGROUP CREATE {key} g 0 MKSTREAM"));
    assert_eq!(made, Reply::OK);
    fill(bench, key, count);
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

/// The reply of an XREADGROUP that read these entries of one stream.
fn read(key: &str, numbers: impl IntoIterator<Item = usize>) -> Reply {
    Reply::Keyed(vec![(bulk(key), entries(numbers))])
}

/// The entry `n-0` as XREADGROUP with CLAIM gives it.
fn claimed(number: usize, idle_ms: i64, deliveries: i64) -> Reply {
    let Reply::Array(mut parts) = entry(number) else {
        unreachable!("an entry is an array");
    };
    parts.extend([int(idle_ms), int(deliveries)]);
    Reply::Array(parts)
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

/// A released entry as XPENDING shows it.
fn released(number: usize, deliveries: i64) -> Reply {
    pending(number, "", -1, deliveries)
}

fn all_pending(bench: &Bench, key: &str) -> Reply {
    bench.run(&format!("XPENDING {key} g - + 100"))
}

/// A field of the only element of a reply of XINFO.
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

/// A field of XINFO STREAM s.
fn field(bench: &Bench, name: &str) -> Reply {
    let Reply::Map(fields) = bench.run("XINFO STREAM s") else {
        panic!("no map");
    };
    let mut fields = fields.into_iter();
    fields.find(|(found, _)| *found == bulk(name)).unwrap().1
}

/// The reply of XREAD: entries by key.
fn read_all(streams: &[(&str, Reply)]) -> Reply {
    let streams = streams.iter();
    Reply::Keyed(
        streams
            .map(|(name, entries)| (bulk(name), entries.clone()))
            .collect(),
    )
}
