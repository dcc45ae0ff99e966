//! INCREX.

use super::*;
use quoin_base::number::LongDouble;
use quoin_base::random::{Random, SeededRandom};

fn integers(new: i64, added: i64) -> Reply {
    Reply::Array(vec![Reply::Integer(new), Reply::Integer(added)])
}

fn floats(new: &str, added: &str) -> Reply {
    let number = |text: &str| Reply::Decimal(LongDouble::parse(text.as_bytes()).unwrap());
    Reply::Array(vec![number(new), number(added)])
}

/// What Redis's tests expect, and a few more cases.
#[test]
fn numbers_are_added_within_bounds() {
    on_both_stores(|bench| {
        for (before, options, reply, after) in [
            (None, "", integers(1, 1), Some("1")),
            (Some("10"), "byint -3", integers(7, -3), Some("7")),
            (Some("10"), "BYINT 5 UBOUND 15", integers(15, 5), Some("15")),
            (Some("10"), "BYINT 6 UBOUND 15", integers(10, 0), Some("10")),
            (
                Some("10"),
                "BYINT 6 UBOUND 15 SATURATE",
                integers(15, 5),
                Some("15"),
            ),
            (
                Some("10"),
                "SATURATE LBOUND 5 BYINT -10",
                integers(5, -5),
                Some("5"),
            ),
            (Some("50"), "UBOUND 30", integers(50, 0), Some("50")),
            (
                Some("50"),
                "UBOUND 30 SATURATE",
                integers(30, -20),
                Some("30"),
            ),
            (
                Some("50"),
                "BYINT -25 UBOUND 30",
                integers(25, -25),
                Some("25"),
            ),
            (None, "BYINT 5 LBOUND 10", integers(0, 0), None),
            (
                Some("9223372036854775800"),
                "BYINT 100",
                integers(9_223_372_036_854_775_800, 0),
                Some("9223372036854775800"),
            ),
            (
                Some("-9223372036854775800"),
                "BYINT -100 SATURATE",
                integers(i64::MIN, -8),
                Some("-9223372036854775808"),
            ),
            (
                Some("1.5"),
                "BYFLOAT 0.25",
                floats("1.75", "0.25"),
                Some("1.75"),
            ),
            (Some("7"), "BYFLOAT 1", floats("8", "1"), Some("8")),
            (
                Some("10"),
                "BYFLOAT 10 UBOUND 15.5",
                floats("10", "0"),
                Some("10"),
            ),
            (
                Some("10"),
                "BYFLOAT 10 UBOUND 15.5 SATURATE",
                floats("15.5", "5.5"),
                Some("15.5"),
            ),
            (
                Some("-50.5"),
                "BYFLOAT -5.5 LBOUND -30 SATURATE",
                floats("-30", "20.5"),
                Some("-30"),
            ),
            (None, "BYFLOAT -0.5 UBOUND -1.5", floats("0", "0"), None),
        ] {
            bench.run("DEL k");
            if let Some(before) = before {
                bench.run(&format!("SET k {before}"));
            }
            let line = format!("INCREX k {options}");
            assert_eq!(bench.run(line.trim_end()), reply, "{before:?} {line}");
            let after = after.map_or(Reply::Null, bulk);
            assert_eq!(bench.run("GET k"), after, "{before:?} {line}");
        }
    });
}

#[test]
fn the_expiry_is_set_kept_or_removed() {
    on_both_stores(|bench| {
        let ttl = |seconds| Reply::Integer(seconds);
        for (before, options, after) in [
            ("SET k 10", "EX 100", ttl(100)),
            ("SET k 10 EX 50", "", ttl(50)),
            ("SET k 10 EX 50", "PX 100000", ttl(100)),
            ("SET k 10 EX 50", "EX 100 ENX", ttl(50)),
            ("SET k 10", "ENX EX 100", ttl(100)),
            ("SET k 10 EX 50", "PERSIST", ttl(-1)),
            ("SET k 10 EX 50", "EXAT 1 ENX", ttl(50)),
            ("SET k 10 EX 50", "EXAT 1", ttl(-2)),
            // Nothing changes beyond a bound.
            ("SET k 10 EX 50", "UBOUND 5 EX 100", ttl(50)),
            ("SET k 10 EX 50", "UBOUND 5 PERSIST", ttl(50)),
            ("SET k 10 EX 50", "UBOUND 5 EXAT 1", ttl(50)),
            ("SET k 10 EX 50", "UBOUND 5 SATURATE EX 100", ttl(100)),
        ] {
            bench.run(before);
            let reply = bench.run(format!("INCREX k {options}").trim_end());
            assert!(!matches!(reply, Reply::Error(_)), "{options}: {reply:?}");
            assert_eq!(bench.run("TTL k"), after, "{before} {options}");
        }
        bench.run("DEL k");
        assert_eq!(bench.run("INCREX k PXAT 1"), integers(1, 1));
        assert_eq!(bench.run("EXISTS k"), Reply::Integer(0));
    });
}

#[test]
fn what_is_wrong_changes_nothing() {
    on_both_stores(|bench| {
        bench.run("SET k 9223372036854775800");
        bench.run("SET t text");
        bench.run("SET i inf");
        bench.run("RPUSH l a");
        let syntax = "ERR syntax error";
        let overflow = "ERR applied increment would overflow";
        for (line, text) in [
            ("INCREX k FOO", syntax),
            ("INCREX k BYINT", syntax),
            ("INCREX k BYINT 1 BYFLOAT 1", syntax),
            ("INCREX k BYINT 1 BYINT 1", syntax),
            ("INCREX k LBOUND 0 LBOUND 0", syntax),
            ("INCREX k SATURATE SATURATE", syntax),
            ("INCREX k EX 10 PX 10", syntax),
            ("INCREX k EX 10 EX 10", syntax),
            ("INCREX k PERSIST EX 10", syntax),
            ("INCREX k EX 10 PERSIST", syntax),
            ("INCREX k PERSIST ENX", syntax),
            ("INCREX k ENX PERSIST", syntax),
            ("INCREX k ENX", "ERR ENX flag requires an expiration"),
            (
                "INCREX k BYINT 1.5",
                "ERR Increment is not an integer or out of range",
            ),
            (
                "INCREX k LBOUND 1.5",
                "ERR LBOUND is not an integer or out of range",
            ),
            ("INCREX k BYFLOAT x", "ERR Increment is not a valid float"),
            (
                "INCREX k BYFLOAT 1 UBOUND x",
                "ERR UBOUND is not a valid float",
            ),
            (
                "INCREX k BYFLOAT inf",
                "ERR BYFLOAT increment cannot be Infinity",
            ),
            ("INCREX i BYFLOAT 1", "ERR value cannot be Infinity"),
            (
                "INCREX k LBOUND 10 UBOUND 5",
                "ERR LBOUND can't be greater than UBOUND",
            ),
            (
                "INCREX k BYFLOAT 1 LBOUND 10.5 UBOUND 1.5",
                "ERR LBOUND can't be greater than UBOUND",
            ),
            (
                "INCREX k EX 0",
                "ERR invalid expire time in 'increx' command",
            ),
            ("INCREX k SATURATE UBOUND -9223372036854775808", overflow),
            ("INCREX t", "ERR value is not an integer or out of range"),
            ("INCREX t BYFLOAT 1", "ERR value is not a valid float"),
            (
                "INCREX l",
                "WRONGTYPE Operation against a key holding the wrong kind of value",
            ),
        ] {
            assert_eq!(bench.run(line), error(text), "{line}");
        }
        assert_eq!(bench.run("GET k"), bulk("9223372036854775800"));
    });
}

/// Near the limits of 64 bits, where the sum or the difference overflows.
#[test]
fn random_integers_equal_a_model() {
    let bench = Bench::embedded();
    let random = SeededRandom::new(23);
    let number = || {
        let near = i64::try_from(random.below(9)).unwrap() - 4;
        match random.below(4) {
            0 => i64::MAX.wrapping_add(near.min(0)),
            1 => i64::MIN.wrapping_add(near.max(0)),
            _ => near,
        }
    };
    for _ in 0..3_000 {
        let (old, by) = (number(), number());
        let (lower, upper) = (number(), number());
        if lower > upper {
            continue;
        }
        let saturates = random.below(2) == 0;
        let sum = i128::from(old) + i128::from(by);
        let bounded = sum.clamp(lower.into(), upper.into());
        let expected = match i64::try_from(bounded - i128::from(old)) {
            _ if bounded != sum && !saturates => integers(old, 0),
            Ok(added) => integers(i64::try_from(bounded).unwrap(), added),
            Err(_) => error("ERR applied increment would overflow"),
        };
        bench.run(&format!("SET k {old}"));
        let saturate = if saturates { "SATURATE" } else { "" };
        let line = format!("INCREX k BYINT {by} LBOUND {lower} UBOUND {upper} {saturate}");
        assert_eq!(bench.run(line.trim_end()), expected, "{old}: {line}");
    }
}
