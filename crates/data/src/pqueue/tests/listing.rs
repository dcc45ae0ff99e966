//! PQ.LIST and PQ.REM.

use super::*;
use quoin_base::random::{Random, SeededRandom};

/// A page of PQ.LIST: the next cursor, and the values.
fn page(reply: Reply) -> (String, Vec<String>) {
    let Reply::Array(parts) = reply else {
        panic!("{reply:?}");
    };
    let [Reply::Bulk(cursor), Reply::Pairs(pairs)] = &parts[..] else {
        panic!("{parts:?}");
    };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let values = pairs.iter().map(|(value, _)| match value {
        Reply::Bulk(bytes) => text(bytes),
        other => panic!("{other:?}"),
    });
    (text(cursor), values.collect())
}

fn values(bench: &Bench) -> Vec<String> {
    let Reply::Pairs(pairs) = bench.run("PQ.RANGE q 0 -1") else {
        panic!("no pairs");
    };
    let reply = Reply::Array(vec![bulk("0"), Reply::Pairs(pairs)]);
    page(reply).1
}

#[test]
fn a_list_goes_on_where_it_ended() {
    on_both_stores(|bench| {
        let mut line = "PQ.PUSH q 1.0 first".to_owned();
        for number in 0..400 {
            line += &format!(" {} v{number}", number % 2);
        }
        bench.run(&line);
        let long = "x".repeat(100_000);
        bench.run_words(&[b"PQ.PUSH", b"q", b"9", long.as_bytes()]);
        for count in [1, 7, 300, 1_000] {
            let (mut cursor, mut all) = ("0".to_owned(), Vec::new());
            loop {
                let line = format!("PQ.LIST q CURSOR {cursor} COUNT {count}");
                let (next, some) = page(bench.run(&line));
                assert!(some.len() <= count);
                all.extend(some);
                cursor = next;
                if cursor == "0" {
                    break;
                }
            }
            assert_eq!(all, values(bench), "{count}");
        }
    });
}

#[test]
fn values_that_stay_are_listed_once_while_others_come_and_go() {
    on_both_stores(|bench| {
        let pairs: String = (0..200).map(|number| format!(" 1 v{number:03}")).collect();
        bench.run(&format!("PQ.PUSH q{pairs}"));
        let random = SeededRandom::new(3);
        let (mut cursor, mut seen) = ("0".to_owned(), Vec::new());
        for round in 0.. {
            let (next, some) = page(bench.run(&format!("PQ.LIST q CURSOR {cursor} COUNT 7")));
            seen.extend(some);
            bench.run("PQ.POPMIN q");
            bench.run("PQ.POPMAX q");
            bench.run(&format!("PQ.REM q 1 v{:03}", random.below(200)));
            bench.run(&format!("PQ.PUSH q 0 low{round} 1 new{round}"));
            cursor = next;
            if cursor == "0" {
                break;
            }
        }
        let mut old: Vec<_> = seen.iter().filter(|value| value.starts_with('v')).collect();
        let count = old.len();
        old.sort();
        old.dedup();
        assert_eq!(old.len(), count, "one came twice");
        let left = values(bench);
        for value in left.iter().filter(|value| value.starts_with('v')) {
            assert!(seen.contains(value), "{value} was left out");
        }
    });
}

#[test]
fn the_oldest_equal_value_of_a_priority_is_removed() {
    on_both_stores(|bench| {
        bench.run("PQ.PUSH q 1 a 1 b 1.0 b 1 c 2 b 1 b");
        assert_eq!(bench.run("PQ.REM q 1.0 b"), Reply::Integer(1));
        assert_eq!(bench.run("PQ.REM q 3 b"), Reply::Integer(0));
        assert_eq!(bench.run("PQ.REM q 1 x"), Reply::Integer(0));
        assert_eq!(values(bench), ["a", "b", "c", "b", "b"]);
        assert_eq!(bench.run("PQ.REM q 1 b COUNT 9"), Reply::Integer(2));
        assert_eq!(values(bench), ["a", "c", "b"]);
        assert_eq!(bench.run("PQ.LEN q"), Reply::Integer(3));
        for (priority, value) in [(1, "c"), (1, "a"), (2, "b")] {
            let line = format!("PQ.REM q {priority} {value}");
            assert_eq!(bench.run(&line), Reply::Integer(1));
        }
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    });
}

#[test]
fn what_is_not_understood_is_refused() {
    let bench = Bench::embedded();
    bench.run("PQ.PUSH q 1 a");
    for (line, text) in [
        ("PQ.LIST q 0", "ERR syntax error"),
        (
            "PQ.LIST q COUNT 0",
            "ERR COUNT is out of range, must be positive",
        ),
        ("PQ.LIST q CURSOR x1", "ERR invalid cursor"),
        ("PQ.LIST q CURSOR 15", "ERR invalid cursor"),
        ("PQ.REM q x a", "ERR priority is not a valid float"),
        ("PQ.REM q 1 a 2", "ERR syntax error"),
        (
            "PQ.REM q 1 a COUNT 0",
            "ERR COUNT is out of range, must be positive",
        ),
    ] {
        let expected = match text {
            "ERR syntax error" => syntax_error(line),
            text => error(text),
        };
        assert_eq!(bench.run(line), expected, "{line}");
    }
    bench.run("RPUSH list a");
    assert_eq!(bench.run("PQ.LIST list"), error(WRONG_TYPE));
    assert_eq!(bench.run("PQ.REM list 1 a"), error(WRONG_TYPE));
    assert_eq!(bench.run("PQ.REM none 1 a"), Reply::Integer(0));
}
