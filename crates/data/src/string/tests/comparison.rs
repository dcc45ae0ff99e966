//! Conditions about values: SET with IFEQ and its kin, DELEX, DELIFEQ, DIGEST; and MSETEX.

use super::*;

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// Digests are those of Redis's test suite.
#[test]
fn digests_are_those_of_redis() {
    on_both_stores(|bench| {
        for (value, digest) in [
            ("hello", "9555e8555c62dcfd"),
            ("123", "404a763b3f4c8c9a"),
            ("v8", "0cc76dbb41381419"),
            (
                "v8lf0c11xh8ymlqztfd3eeq16kfn4sspw7fqmnuuq3k3t75em5wdizgcdw7uc26nnf961u2jkfzkjytls2kwlj7626sd",
                "00006c38adf31777",
            ),
        ] {
            bench.run(&format!("SET k {value}"));
            assert_eq!(bench.run("DIGEST k"), bulk(digest));
        }
        assert_eq!(bench.run("DIGEST missing"), Reply::Null);
        bench.run("RPUSH l a");
        assert_eq!(bench.run("DIGEST l"), error(WRONG_TYPE));
    });
}

/// Conditions that hold and that do not hold for `hello`.
const CONDITIONS: [(&str, &str); 4] = [
    ("IFEQ hello", "ifeq other"),
    ("IFNE other", "IFNE hello"),
    ("IFDEQ 9555E8555c62dcfd", "IFDEQ 0000000000000000"),
    ("IfDne zzzzzzzzzzzzzzzz", "IFDNE 9555e8555c62dcfd"),
];

#[test]
fn set_depends_on_the_value() {
    on_both_stores(|bench| {
        for (holds, fails) in CONDITIONS {
            bench.run("SET k hello");
            assert_eq!(bench.run(&format!("SET k new {fails}")), Reply::Null);
            let old = bench.run(&format!("SET k new GET EX 10 {fails}"));
            assert_eq!(old, bulk("hello"));
            assert_eq!(bench.run("GET k"), bulk("hello"));
            assert_eq!(bench.run("TTL k"), Reply::Integer(-1));
            let line = format!("SET k new EX 10 {holds} GET");
            assert_eq!(bench.run(&line), bulk("hello"));
            assert_eq!(bench.run("GET k"), bulk("new"));
            assert_eq!(bench.run("TTL k"), Reply::Integer(10));
            bench.run("SET k hello");
            assert_eq!(bench.run(&format!("SET k new {holds}")), Reply::OK);
        }
        for (condition, is_set) in [
            ("IFEQ x", false),
            ("IFNE x", true),
            ("IFDEQ x", false),
            ("IFDNE x", true),
        ] {
            bench.run("DEL k");
            bench.run(&format!("SET k v {condition}"));
            assert_eq!(bench.run("EXISTS k"), Reply::Integer(i64::from(is_set)));
        }
    });
}

#[test]
fn delex_and_delifeq_depend_on_the_value() {
    on_both_stores(|bench| {
        for (holds, fails) in CONDITIONS {
            bench.run("SET k hello");
            assert_eq!(bench.run(&format!("DELEX k {fails}")), Reply::Integer(0));
            assert_eq!(bench.run(&format!("DELEX k {holds}")), Reply::Integer(1));
            assert_eq!(bench.run("EXISTS k"), Reply::Integer(0));
        }
        for line in [
            "DELEX k",
            "DELEX k IFNE a",
            "DELEX k NONSENSE a",
            "DELIFEQ k a",
        ] {
            assert_eq!(bench.run(line), Reply::Integer(0), "{line}");
        }
        bench.run("SET k 123");
        assert_eq!(bench.run("DELIFEQ k 0123"), Reply::Integer(0));
        assert_eq!(bench.run("DELIFEQ k 123"), Reply::Integer(1));
        bench.run("RPUSH l a");
        assert_eq!(bench.run("DELEX l"), Reply::Integer(1));
    });
}

#[test]
fn values_of_all_lengths_are_compared() {
    on_both_stores(|bench| {
        for length in LENGTHS {
            let value = text(length);
            let mut other = value.clone();
            if let Some(last) = other.last_mut() {
                *last ^= 1;
            }
            bench.run_words(&[b"SET", b"k", &value]);
            if length > 0 {
                let reply = bench.run_words(&[b"DELEX", b"k", b"IFEQ", &other]);
                assert_eq!(reply, Reply::Integer(0));
            }
            let reply = bench.run_words(&[b"DELEX", b"k", b"IFEQ", &value]);
            assert_eq!(reply, Reply::Integer(1));
        }
    });
}

#[test]
fn errors_are_those_of_redis() {
    let bench = Bench::embedded();
    bench.run("SET k hello");
    bench.run("RPUSH l a");
    let digest = "ERR must be exactly 16 hexadecimal characters";
    let of_delex = "ERR wrong number of arguments for 'delex' command";
    for (line, text) in [
        ("SET k v IFEQ a NX", "ERR syntax error"),
        ("SET k v XX IFEQ a", "ERR syntax error"),
        ("SET k v IFEQ a IFEQ a", "ERR syntax error"),
        ("SET k v IFEQ", "ERR syntax error"),
        ("SET k v IFDEQ 9555", digest),
        ("SET k v IFDNE 09555e8555c62dcfd", digest),
        ("SET l v IFEQ a", WRONG_TYPE),
        ("SET l v IFDEQ 9555", WRONG_TYPE),
        ("DELEX k IFDNE 9555", digest),
        ("DELEX k IFEQ", of_delex),
        ("DELEX missing IFEQ a b", of_delex),
        (
            "DELEX k NX a",
            "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE",
        ),
        (
            "DELEX l NX a",
            "ERR Key should be of string type if conditions are specified",
        ),
        ("DELIFEQ l a", WRONG_TYPE),
        ("MSETEX a 1 EX 10", "ERR invalid numkeys value"),
        ("MSETEX 0 a 1", "ERR invalid numkeys value"),
        ("MSETEX 2147483648 a 1", "ERR invalid numkeys value"),
        (
            "MSETEX 2147483647 a 1",
            "ERR wrong number of key-value pairs",
        ),
        ("MSETEX 2 a 1 b", "ERR wrong number of key-value pairs"),
        ("MSETEX 1 a 1 b 2", "ERR syntax error"),
        ("MSETEX 1 a 1 NX XX", "ERR syntax error"),
        ("MSETEX 1 a 1 EX 1 KEEPTTL", "ERR syntax error"),
        ("MSETEX 1 a 1 EX 1 PX 1", "ERR syntax error"),
        (
            "MSETEX 1 a 1 EX 0",
            "ERR invalid expire time in 'msetex' command",
        ),
    ] {
        assert_eq!(bench.run(line), error(text), "{line}");
    }
    assert_eq!(bench.run("EXISTS a b"), Reply::Integer(0));
    assert_eq!(bench.run("GET k"), bulk("hello"));
}

#[test]
fn msetex_sets_all_keys_or_none() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("MSETEX 2 a 1 b 2 EX 100 NX"), Reply::Integer(1));
        assert_eq!(bench.run("MSETEX 2 b 9 c 9 NX"), Reply::Integer(0));
        assert_eq!(bench.run("MSETEX 2 b 9 c 9 XX"), Reply::Integer(0));
        assert_eq!(bench.run("EXISTS c"), Reply::Integer(0));
        assert_eq!(bench.run("MSETEX 2 a 3 b 4 XX KEEPTTL"), Reply::Integer(1));
        let values = Reply::Array(vec![bulk("3"), bulk("4")]);
        assert_eq!(bench.run("MGET a b"), values);
        assert_eq!(bench.run("TTL b"), Reply::Integer(100));
        assert_eq!(bench.run("MSETEX 2 a 5 a 6"), Reply::Integer(1));
        assert_eq!(bench.run("GET a"), bulk("6"));
        assert_eq!(bench.run("TTL a"), Reply::Integer(-1));
    });
}

#[test]
fn a_condition_conflicts_with_a_change_of_the_value() {
    let bench = Bench::cluster_like();
    for line in ["SET k b IFEQ a", "DELEX k IFEQ a", "DELIFEQ k a"] {
        bench.run("SET k a");
        assert!(bench.race(line, "SET k c", false), "{line}");
    }
    bench.run("SET k a");
    for line in ["SET k b IFEQ x", "DELEX k IFEQ x"] {
        assert!(!bench.race(line, "SET k2 c", false), "{line}");
    }
}
