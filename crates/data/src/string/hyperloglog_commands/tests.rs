//! HyperLogLog commands on both kinds of store. The differential test against redis-server goes
//! further.

use quoin_engine::testing::{Bench, bulk};
use quoin_resp::reply::Reply;

fn on_both_stores(test: impl Fn(&Bench)) {
    test(&Bench::embedded());
    test(&Bench::cluster_like());
}

fn error(line: &str) -> Reply {
    Reply::Error(line.to_owned())
}

fn add_numbers(bench: &Bench, key: &str, from: u32, to: u32) {
    let numbers: Vec<String> = (from..to).map(|number| number.to_string()).collect();
    for part in numbers.chunks(1_000) {
        bench.run(&format!("PFADD {key} {}", part.join(" ")));
    }
}

#[test]
fn elements_are_added_counted_and_merged() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("PFADD a"), Reply::Integer(1));
        assert_eq!(bench.run("PFADD a"), Reply::Integer(0));
        assert_eq!(bench.run("PFCOUNT a"), Reply::Integer(0));
        assert_eq!(bench.run("PFADD a x y z"), Reply::Integer(1));
        assert_eq!(bench.run("PFADD a x y z"), Reply::Integer(0));
        assert_eq!(bench.run("PFCOUNT a"), Reply::Integer(3));
        assert_eq!(bench.run("PFADD b z 1"), Reply::Integer(1));
        assert_eq!(bench.run("PFCOUNT a b nothing"), Reply::Integer(4));
        assert_eq!(bench.run("PFMERGE c a b nothing"), Reply::OK);
        assert_eq!(bench.run("PFCOUNT c"), Reply::Integer(4));
        assert_eq!(bench.run("PFCOUNT nothing"), Reply::Integer(0));
        assert_eq!(bench.run("TYPE c"), Reply::Simple("string"));
    });
}

#[test]
fn one_that_grows_leaves_the_metadata_and_becomes_dense() {
    on_both_stores(|bench| {
        add_numbers(bench, "a", 0, 100);
        assert_eq!(bench.run("PFDEBUG ENCODING a"), Reply::Simple("sparse"));
        bench.run("PEXPIREAT a 99999999999999");
        add_numbers(bench, "a", 100, 10_000);
        assert_eq!(bench.run("PFDEBUG ENCODING a"), Reply::Simple("dense"));
        assert_eq!(bench.run("PFCOUNT a"), Reply::Integer(9_987));
        assert_eq!(bench.run("STRLEN a"), Reply::Integer(12_304));
        assert_eq!(
            bench.run("PEXPIRETIME a"),
            Reply::Integer(99_999_999_999_999)
        );
        assert_eq!(bench.run("PFMERGE b a"), Reply::OK);
        assert_eq!(bench.run("PFDEBUG ENCODING b"), Reply::Simple("dense"));
        assert_eq!(bench.run("PFCOUNT b"), Reply::Integer(9_987));
    });
}

#[test]
fn debugging_shows_registers_and_runs() {
    on_both_stores(|bench| {
        bench.run("PFADD a a b c");
        assert_eq!(
            bench.run("PFDEBUG DECODE a"),
            bulk("Z:8436 v:1,1 Z:4274 v:2,1 Z:3068 v:1,1 Z:603")
        );
        assert_eq!(bench.run("PFDEBUG TODENSE a"), Reply::Integer(1));
        assert_eq!(bench.run("PFDEBUG TODENSE a"), Reply::Integer(0));
        assert_eq!(
            bench.run("PFDEBUG DECODE a"),
            error("ERR HLL encoding is not sparse")
        );
        let Reply::Array(registers) = bench.run("PFDEBUG GETREG a") else {
            panic!("no registers");
        };
        let set = registers.iter().filter(|one| **one != Reply::Integer(0));
        assert_eq!((registers.len(), set.count()), (16_384, 3));
        assert_eq!(bench.run("PFCOUNT a"), Reply::Integer(3));
        assert_eq!(
            bench.run("PFDEBUG x a"),
            error("ERR Unknown PFDEBUG subcommand 'x'")
        );
        assert_eq!(
            bench.run("PFDEBUG GETREG nothing"),
            error("ERR The specified key does not exist")
        );
        assert_eq!(bench.run("PFSELFTEST"), Reply::OK);
    });
}

#[test]
fn other_types_are_refused() {
    on_both_stores(|bench| {
        bench.run("RPUSH l x");
        bench.run("PFADD a x");
        let wrong = error("WRONGTYPE Operation against a key holding the wrong kind of value");
        for line in [
            "PFADD l x",
            "PFCOUNT l",
            "PFCOUNT a l",
            "PFMERGE a l",
            "PFMERGE l a",
        ] {
            assert_eq!(bench.run(line), wrong, "{line}");
        }
    });
}
