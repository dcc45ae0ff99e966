//! HyperLogLogs: their commands, their bytes, and their estimates.

use proptest::prelude::*;

use super::*;
use crate::string::hyperloglog::{Encoding, HyperLogLog, Registers, self_test};

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

const SPARSE_BYTES_MAX: usize = 3_000;

fn of(elements: &[&str]) -> HyperLogLog {
    let mut all = HyperLogLog::empty();
    for element in elements {
        all.add(element.as_bytes(), SPARSE_BYTES_MAX).unwrap();
    }
    all
}

fn with_numbers(count: u32) -> HyperLogLog {
    let mut all = HyperLogLog::empty();
    for number in 0..count {
        let element = number.to_string();
        all.add(element.as_bytes(), SPARSE_BYTES_MAX).unwrap();
    }
    all
}

#[test]
fn the_bytes_are_those_of_redis() {
    assert_eq!(
        HyperLogLog::empty().into_bytes(),
        b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff"[..]
    );
    let mut three = of(&["a", "b", "c"]);
    three.mark_stale();
    assert_eq!(three.cached_count(), None);
    assert_eq!(three.count().unwrap(), 3);
    assert_eq!(three.cached_count(), Some(3));
    // From redis-server 7.0.
    assert_eq!(
        three.describe_runs().unwrap(),
        "Z:8436 v:1,1 Z:4274 v:2,1 Z:3068 v:1,1 Z:603"
    );
}

#[test]
fn a_string_is_judged_by_its_header() {
    let message = |bytes: &[u8]| HyperLogLog::parse(bytes).unwrap_err().to_string();
    let whole = of(&["a"]).into_bytes();
    assert_eq!(HyperLogLog::parse(&whole).unwrap(), of(&["a"]));
    for bytes in [
        &b""[..],
        b"HYLL\x01\0\0\0\0\0\0\0\0\0\0",
        b"HYLL\x02\0\0\0\0\0\0\0\0\0\0\0\x7f\xff",
        b"HYLL\x00\0\0\0\0\0\0\0\0\0\0\0\x7f\xff",
        b"hyll\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff",
    ] {
        assert_eq!(
            message(bytes),
            "WRONGTYPE Key is not a valid HyperLogLog string value."
        );
    }
}

#[test]
fn registers_that_are_missing_or_too_many_are_noticed() {
    let whole = of(&["a"]).into_bytes();
    for bytes in [
        whole.slice(..whole.len() - 1),
        [&whole[..], b"hello"].concat().into(),
    ] {
        let mut damaged = HyperLogLog::parse(&bytes).unwrap();
        for error in [
            damaged.count().unwrap_err(),
            damaged.make_dense().unwrap_err(),
            Registers::default().merge(&damaged).unwrap_err(),
        ] {
            assert_eq!(
                error.to_string(),
                "INVALIDOBJ Corrupted HLL object detected"
            );
        }
    }
    let mut damaged = HyperLogLog::parse(&whole[..16]).unwrap();
    assert!(damaged.add(b"a", SPARSE_BYTES_MAX).is_err());
}

#[test]
fn one_that_grows_becomes_dense_and_estimates_the_same() {
    let mut sparse = with_numbers(1_000);
    assert_eq!(sparse.encoding(), Encoding::Sparse);
    let mut dense = sparse.clone();
    assert!(dense.make_dense().unwrap());
    assert!(!dense.make_dense().unwrap());
    assert_eq!(dense.count().unwrap(), sparse.count().unwrap());
    assert_eq!(dense.describe_runs(), None);

    let mut many = with_numbers(10_000);
    assert_eq!(many.encoding(), Encoding::Dense);
    // From redis-server 7.0.
    assert_eq!(many.count().unwrap(), 9_987);
    assert_eq!(many.into_bytes().len(), 12_304);
}

#[test]
fn the_union_of_several_is_estimated() {
    let mut registers = Registers::default();
    for one in [of(&["a", "b"]), of(&["b", "c"]), with_numbers(5_000)] {
        registers.merge(&one).unwrap();
    }
    let mut merged = HyperLogLog::empty();
    merged.raise_to(&registers, SPARSE_BYTES_MAX);
    assert_eq!(merged.count().unwrap(), registers.count());
    assert!(registers.count().abs_diff(5_003) < 150);
}

#[test]
fn it_tests_itself() {
    assert_eq!(self_test(1), Ok(()));
}

proptest! {
    #[test]
    fn sparse_and_dense_registers_agree(
        elements in prop::collection::vec(0_u16.., 0..400),
        bytes_max in 0_usize..300,
    ) {
        let mut sparse = HyperLogLog::empty();
        let mut dense = HyperLogLog::empty();
        dense.make_dense().unwrap();
        for element in elements {
            let element = element.to_le_bytes();
            let changes = sparse.add(&element, bytes_max).unwrap();
            prop_assert_eq!(dense.add(&element, bytes_max).unwrap(), changes);
        }
        if sparse.encoding() == Encoding::Sparse {
            prop_assert!(sparse.clone().into_bytes().len() <= bytes_max.max(18));
        }
        let registers = |one: &HyperLogLog| {
            let mut registers = Registers::default();
            registers.merge(one).unwrap();
            registers
        };
        prop_assert_eq!(registers(&sparse), registers(&dense));
    }

    #[test]
    fn no_string_makes_it_panic(tail: Vec<u8>, element: Vec<u8>) {
        let bytes = [b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0", tail.as_slice()].concat();
        let mut damaged = HyperLogLog::parse(&bytes).unwrap();
        let _ = damaged.count();
        let _ = damaged.add(&element, SPARSE_BYTES_MAX);
        let _ = damaged.describe_runs();
        let _ = damaged.make_dense();
    }
}
