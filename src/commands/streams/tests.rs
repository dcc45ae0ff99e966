//! Stream commands on both kinds of store. What they must answer is Redis's source; the differential
//! test goes further.

use crate::commands::testing::{Bench, START_MS, bulk, bulks};
use crate::reply::Reply;

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

/// An entry with one field.
fn entry(id: &str, name: &str, value: &str) -> Reply {
    Reply::Array(vec![bulk(id), bulks(&[name, value])])
}

/// Adds entries `1-0`, `2-0`… with a field `n` that counts them.
fn fill(bench: &Bench, key: &str, count: usize) {
    for number in 1..=count {
        let reply = bench.run(&format!("XADD {key} {number}-0 n {number}"));
        assert_eq!(reply, bulk(&format!("{number}-0")));
    }
}

/// The entries `n-0` of [`fill`].
fn entries(numbers: impl IntoIterator<Item = usize>) -> Reply {
    let numbers = numbers.into_iter();
    let entries = numbers.map(|number| entry(&format!("{number}-0"), "n", &number.to_string()));
    Reply::Array(entries.collect())
}

#[test]
fn entries_are_added_and_read_in_the_order_of_their_ids() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("XLEN s"), Reply::Integer(0));
        assert_eq!(bench.run("XRANGE s - +"), Reply::Array(Vec::new()));
        fill(bench, "s", 3);
        assert_eq!(bench.run("XLEN s"), Reply::Integer(3));
        assert_eq!(bench.run("XRANGE s - +"), entries([1, 2, 3]));
        assert_eq!(bench.run("XRANGE s 2 2"), entries([2]));
        assert_eq!(bench.run("XRANGE s (1-0 +"), entries([2, 3]));
        assert_eq!(bench.run("XRANGE s - (3-0"), entries([1, 2]));
        assert_eq!(bench.run("XRANGE s - + COUNT 2"), entries([1, 2]));
        assert_eq!(bench.run("XRANGE s - + COUNT 0"), Reply::NullArray);
        assert_eq!(bench.run("XRANGE s - + COUNT -3"), Reply::NullArray);
        assert_eq!(bench.run("XRANGE s 3 2"), Reply::Array(Vec::new()));
        assert_eq!(bench.run("XREVRANGE s + -"), entries([3, 2, 1]));
        assert_eq!(bench.run("XREVRANGE s + - COUNT 1"), entries([3]));
        assert_eq!(bench.run("XRANGE s - + COUNT"), error("ERR syntax error"));
        assert_eq!(bench.run("TYPE s"), Reply::Simple("stream"));
    });
}

#[test]
fn ids_are_the_time_and_grow() {
    on_both_stores(|bench| {
        let id = |seq: u64| bulk(&format!("{START_MS}-{seq}"));
        assert_eq!(bench.run("XADD s * f v"), id(0));
        assert_eq!(bench.run("XADD s * f v"), id(1));
        assert_eq!(bench.run(&format!("XADD s {START_MS}-* f v")), id(2));
        assert_eq!(
            bench.run(&format!("XADD s {START_MS}-2 f v")),
            error(NOT_GREATER)
        );
        bench.clock.advance_ms(5);
        let later = START_MS + 5;
        assert_eq!(bench.run("XADD s * f v"), bulk(&format!("{later}-0")));
        bench.clock.advance_ms(-5);
        assert_eq!(bench.run("XADD s * f v"), bulk(&format!("{later}-1")));
        assert_eq!(bench.run("XADD t 0-* f v"), bulk("0-1"));
    });
}

#[test]
fn no_entry_follows_the_greatest_id() {
    on_both_stores(|bench| {
        let greatest = format!("{0}-{0}", u64::MAX);
        assert_eq!(
            bench.run(&format!("XADD s {greatest} f v")),
            bulk(&greatest)
        );
        let exhausted =
            "ERR The stream has exhausted the last possible ID, unable to add more items";
        assert_eq!(bench.run("XADD s * f v"), error(exhausted));
        assert_eq!(bench.run("XADD s 1-1 f v"), error(exhausted));
    });
}

#[test]
fn an_entry_that_is_refused_makes_no_stream() {
    on_both_stores(|bench| {
        for (line, expected) in [
            (
                "XADD s 0-0 f v",
                "ERR The ID specified in XADD must be greater than 0-0",
            ),
            (
                "XADD s * f",
                "ERR wrong number of arguments for 'xadd' command",
            ),
            (
                "XADD s * f v g",
                "ERR wrong number of arguments for 'xadd' command",
            ),
            (
                "XADD s MAXLEN ~ 10 NOMKSTREAM LIMIT 5",
                "ERR wrong number of arguments for 'xadd' command",
            ),
            (
                "XADD s x f v",
                "ERR Invalid stream ID specified as stream command argument",
            ),
            (
                "XADD s MAXLEN x * f v",
                "ERR value is not an integer or out of range",
            ),
            (
                "XADD s MAXLEN -1 * f v",
                "ERR The MAXLEN argument must be >= 0.",
            ),
            (
                "XADD s MAXLEN 1 MINID 1 * f v",
                "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
            ),
            (
                "XADD s LIMIT 1 * f v",
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
            ),
            (
                "XADD s MAXLEN 1 LIMIT 1 * f v",
                "ERR syntax error, LIMIT cannot be used without the special ~ option",
            ),
            (
                "XADD s MAXLEN ~ 1 LIMIT -1 * f v",
                "ERR The LIMIT argument must be >= 0.",
            ),
        ] {
            assert_eq!(bench.run(line), error(expected), "{line}");
        }
        assert_eq!(bench.run("XADD s NOMKSTREAM * f v"), Reply::Null);
        assert_eq!(bench.run("EXISTS s"), Reply::Integer(0));
        bench.run("SET string x");
        for line in ["XADD string * f v", "XLEN string", "XRANGE string - +"] {
            assert_eq!(bench.run(line), error(WRONG_TYPE), "{line}");
        }
    });
}

#[test]
fn large_entries_are_read_as_they_were_written() {
    on_both_stores(|bench| {
        let value = "v".repeat(300_000);
        bench.run_words(&[b"XADD", b"s", b"1-1", b"f", value.as_bytes(), b"g", b""]);
        let fields = bulks(&["f", &value, "g", ""]);
        let entry = Reply::Array(vec![bulk("1-1"), fields]);
        assert_eq!(bench.run("XRANGE s - +"), Reply::Array(vec![entry]));
        bench.run("XADD s MAXLEN 1 2-0 n 2");
        assert_eq!(bench.run("XRANGE s - +"), entries([2]));
        // The entry and the head.
        assert_eq!(bench.data_rows(), 2);
    });
}

#[test]
fn adders_conflict_with_each_other_and_with_nothing_else() {
    let bench = Bench::cluster_like();
    fill(&bench, "s", 3);
    assert!(bench.race("XADD s * f v", "XADD s * f v", false));
    assert!(!bench.race("XADD s * f v", "XRANGE s - +", false));
}
