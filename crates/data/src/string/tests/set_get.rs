//! SET, GET and their variants, increments, expiry.

use super::*;
use quoin_engine::testing::{START_MS, bulks};

#[test]
fn a_string_of_any_length_is_set_and_got() {
    on_both_stores(|bench| {
        for length in LENGTHS {
            for earlier in LENGTHS {
                bench.run_words(&[b"SET", b"k", &text(earlier)]);
                let value = text(length);
                assert_eq!(bench.run_words(&[b"SET", b"k", &value]), Reply::OK);
                assert_eq!(bench.run("GET k"), Reply::bulk(value));
                assert_eq!(bench.run("STRLEN k"), Reply::count(length));
            }
        }
        bench.run("SET k short");
        bench.run("DEL k");
        assert_eq!(bench.run("GET k"), Reply::Null);
    });
}

#[test]
fn a_short_string_is_one_row_and_a_long_one_leaves_nothing() {
    let bench = Bench::cluster_like();
    bench.run("SET k v");
    assert_eq!(bench.data_rows(), 0);
    bench.run_words(&[b"SET", b"k", &text(40_000)]);
    assert_eq!(bench.data_rows(), 3);
    bench.run("SET k v");
    assert_eq!(bench.data_rows(), 0);
    bench.run("SETRANGE k 20000000 x");
    assert_eq!(bench.data_rows(), 2);
    bench.run("DEL k");
    assert_eq!(bench.data_rows(), 0);
}

#[test]
fn set_obeys_its_conditions() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("SET k a XX"), Reply::Null);
        assert_eq!(bench.run("SET k a XX GET"), Reply::Null);
        assert_eq!(bench.run("EXISTS k"), Reply::Integer(0));
        assert_eq!(bench.run("SET k a NX GET"), Reply::Null);
        assert_eq!(bench.run("SET k b NX GET"), bulk("a"));
        assert_eq!(bench.run("SET k b NX"), Reply::Null);
        assert_eq!(bench.run("SET k c XX GET"), bulk("a"));
        assert_eq!(bench.run("GETSET k d"), bulk("c"));
        assert_eq!(bench.run("SETNX k e"), Reply::Integer(0));
        assert_eq!(bench.run("SETNX k2 e"), Reply::Integer(1));
        assert_eq!(
            bench.run("MGET k k2 nosuch"),
            Reply::Array(vec![bulk("d"), bulk("e"), Reply::Null])
        );
        for line in [
            "SET k a NX XX",
            "SET k a EX 5 PX 5",
            "SET k a KEEPTTL EX 5",
            "SET k a EX",
        ] {
            assert_eq!(bench.run(line), error("ERR syntax error"), "{line}");
        }
    });
}

#[test]
fn set_gives_and_keeps_an_expiry() {
    on_both_stores(|bench| {
        for (line, at_ms) in [
            ("SET k v EX 10", START_MS + 10_000),
            ("SET k v PX 10", START_MS + 10),
            ("SET k v EXAT 1800000000", 1_800_000_000_000),
            ("SET k v PXAT 1800000000001", 1_800_000_000_001),
            ("SET k v KEEPTTL", 1_800_000_000_001),
            ("APPEND k v", 1_800_000_000_001),
            ("SETEX k 10 v", START_MS + 10_000),
            ("PSETEX k 10 7", START_MS + 10),
            ("INCR k", START_MS + 10),
            ("INCRBYFLOAT k 0.5", START_MS + 10),
            ("SETRANGE k 20000 x", START_MS + 10),
            ("GETEX k EX 5", START_MS + 5_000),
            ("GETEX k", START_MS + 5_000),
            ("GETEX k PERSIST", -1),
            ("SET k v EX 5 EX 6", START_MS + 6_000),
            ("SET k v", -1),
        ] {
            assert!(!matches!(bench.run(line), Reply::Error(_)), "{line}");
            assert_eq!(bench.run("PEXPIRETIME k"), Reply::Integer(at_ms), "{line}");
        }
        for line in [
            "SET k x EX 0",
            "SET k x PX 9223372036854775807",
            "SET k x EXAT -1",
        ] {
            let reply = error("ERR invalid expire time in 'set' command");
            assert_eq!(bench.run(line), reply, "{line}");
        }
        let reply = error("ERR invalid expire time in 'setex' command");
        assert_eq!(bench.run("SETEX k 9223372036854775 x"), reply);
        let reply = error("ERR invalid expire time in 'getex' command");
        assert_eq!(bench.run("GETEX k PX 0"), reply);
        assert_eq!(bench.run("GETEX nosuch PX 0"), Reply::Null);
        assert_eq!(bench.run("GET k"), bulk("v"));
    });
}

#[test]
fn a_time_that_is_over_leaves_no_string() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("SET k v"), Reply::OK);
        assert_eq!(bench.run("SET k v EXAT 1"), Reply::OK);
        assert_eq!(bench.run("GET k"), Reply::Null);
        assert_eq!(bench.run("SET k v2 KEEPTTL"), Reply::OK);
        assert_eq!(bench.run("TTL k"), Reply::Integer(-1));
        assert_eq!(bench.run("GETEX k PXAT 1"), bulk("v2"));
        assert_eq!(bench.run("EXISTS k"), Reply::Integer(0));
    });
}

#[test]
fn other_types_are_refused_or_replaced() {
    on_both_stores(|bench| {
        for line in [
            "GET l",
            "INCR l",
            "APPEND l x",
            "SETRANGE l 0 x",
            "SETRANGE l 0 ",
            "GETRANGE l 0 1",
            "STRLEN l",
            "GETSET l x",
            "GETDEL l",
            "GETEX l",
            "SET l x GET",
            "INCRBYFLOAT l 1",
        ] {
            bench.run("DEL l");
            bench.run("RPUSH l a");
            let words: Vec<_> = line.split(' ').map(str::as_bytes).collect();
            let reply = "WRONGTYPE Operation against a key holding the wrong kind of value";
            assert_eq!(bench.run_words(&words), error(reply), "{line}");
        }
        assert_eq!(bench.run("MGET l"), Reply::Array(vec![Reply::Null]));
        assert_eq!(bench.run("MSETNX n 1 l 2"), Reply::Integer(0));
        assert_eq!(bench.run("SET l x"), Reply::OK);
        assert_eq!(bench.run("TYPE l"), Reply::Simple("string"));
        let reply = "WRONGTYPE Operation against a key holding the wrong kind of value";
        assert_eq!(bench.run("RPUSH l a"), error(reply));
    });
}

#[test]
fn numbers_are_added_to() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("INCR n"), Reply::Integer(1));
        assert_eq!(bench.run("DECRBY n 10"), Reply::Integer(-9));
        assert_eq!(
            bench.run("INCRBY n 9223372036854775807"),
            Reply::Integer(i64::MAX - 9)
        );
        let overflow = error("ERR increment or decrement would overflow");
        assert_eq!(bench.run("INCRBY n 10"), overflow);
        let overflow = error("ERR decrement would overflow");
        assert_eq!(bench.run("DECRBY n -9223372036854775808"), overflow);
        bench.run("SET n 01");
        let no_integer = error("ERR value is not an integer or out of range");
        assert_eq!(bench.run("INCR n"), no_integer);
        assert_eq!(bench.run("INCRBY n x"), no_integer);
        assert_eq!(bench.run("INCRBYFLOAT n 0.2"), bulk("1.2"));
        assert_eq!(bench.run("INCRBYFLOAT f 0.1"), bulk("0.1"));
        assert_eq!(bench.run("INCRBYFLOAT f 0.2"), bulk("0.3"));
        assert_eq!(
            bench.run("INCRBYFLOAT f inf"),
            error("ERR increment would produce NaN or Infinity")
        );
        // A number that is too long for metadata becomes short again.
        let long = [b"1.".as_slice(), &[b'0'; 3_000]].concat();
        bench.run_words(&[b"SET", b"f", &long]);
        assert_eq!(bench.run("INCRBYFLOAT f 1"), bulk("2"));
        assert_eq!(bench.run("INCR f"), Reply::Integer(3));
    });
}

#[test]
fn several_strings_are_answered_up_to_a_bound() {
    let bench = Bench::embedded();
    bench.run("SETRANGE far 400000000 x");
    assert_eq!(
        bench.run("MGET far far"),
        error("ERR too long an answer of MGET (more than 536870912 bytes)")
    );
    assert_eq!(
        bench.run("MSET a 1 b"),
        error("ERR wrong number of arguments for 'mset' command")
    );
    assert_eq!(bench.run("MSET a 1 a 2"), Reply::OK);
    assert_eq!(bench.run("MGET a a"), bulks(&["2", "2"]));
}
