use bytes::Bytes;

use super::*;
use quoin_data::error::CommandError;
use quoin_data::unit::context::{NamespaceCache, WriteContext};
use quoin_data::unit::signals::Signals;
use quoin_engine::testing::START_MS;

#[test]
fn elements_are_sorted_as_numbers_or_as_bytes() {
    on_both_stores(|bench| {
        bench.run("RPUSH l 10 9 -2 1.5 1e1");
        assert_eq!(bench.run("SORT l"), bulks(&["-2", "1.5", "9", "10", "1e1"]));
        assert_eq!(
            bench.run("SORT_RO l DESC"),
            bulks(&["1e1", "10", "9", "1.5", "-2"])
        );
        assert_eq!(
            bench.run("SORT l ALPHA"),
            bulks(&["-2", "1.5", "10", "1e1", "9"])
        );
        assert_eq!(bench.run("SORT l DESC LIMIT 1 2"), bulks(&["10", "9"]));
        assert_eq!(bench.run("SORT l LIMIT 3 -1"), bulks(&["10", "1e1"]));
        assert_eq!(bench.run("SORT l LIMIT -5 1"), bulks(&["-2"]));
        assert_eq!(bench.run("SORT l LIMIT 9 1"), bulks(&[]));
        assert_eq!(bench.run("SORT l LIMIT 1 0"), bulks(&[]));
        assert_eq!(bench.run("SORT nosuch"), bulks(&[]));
    });
}

#[test]
fn a_constant_by_keeps_the_order_of_the_value() {
    on_both_stores(|bench| {
        bench.run("RPUSH l c a b");
        bench.run("ZADD z 3 c 1 a 2 b");
        for (command, expected) in [
            ("SORT l BY nosort", ["c", "a", "b"].as_slice()),
            ("SORT l BY nosort DESC", &["b", "a", "c"]),
            ("SORT l BY nosort DESC LIMIT 1 1", &["a"]),
            ("SORT l BY nosort LIMIT 1 5", &["a", "b"]),
            ("SORT l BY nosort LIMIT 5 5", &[]),
            ("SORT z BY nosort", &["a", "b", "c"]),
            ("SORT z BY nosort DESC LIMIT 0 2", &["c", "b"]),
            ("SORT z BY nosort LIMIT 1 1", &["b"]),
            ("SORT z ALPHA DESC", &["c", "b", "a"]),
        ] {
            assert_eq!(bench.run(command), bulks(expected), "{command}");
        }
    });
}

#[test]
fn elements_are_sorted_by_and_answered_with_the_values_of_other_keys() {
    on_both_stores(|bench| {
        bench.run("RPUSH l 1 2 3 x");
        bench.run("MSET w1 3 w2 1e1 w3 -2 o1 c o2 b o3s \u{e9}");
        assert_eq!(bench.run("SORT l BY w*"), bulks(&["3", "x", "1", "2"]));
        assert_eq!(bench.run("SORT l BY w* DESC LIMIT 0 2"), bulks(&["2", "1"]));
        assert_eq!(
            bench.run("SORT_RO l BY o* ALPHA LIMIT 2 2"),
            bulks(&["2", "1"])
        );
        assert_eq!(
            bench.run("SORT l BY o* ALPHA DESC LIMIT 0 2"),
            bulks(&["1", "2"])
        );
        assert_eq!(
            bench.run("SORT l BY nosort GET o* GET # GET o*s"),
            Reply::Array(vec![
                bulk("c"),
                bulk("1"),
                Reply::Null,
                bulk("b"),
                bulk("2"),
                Reply::Null,
                Reply::Null,
                bulk("3"),
                bulk("\u{e9}"),
                Reply::Null,
                bulk("x"),
                Reply::Null,
            ])
        );
        assert_eq!(bench.run("SORT l BY w* GET w* STORE d"), Reply::Integer(4));
        assert_eq!(bench.run("LRANGE d 0 -1"), bulks(&["-2", "", "3", "1e1"]));
        let no_number = "ERR One or more scores can't be converted into double";
        assert_eq!(bench.run("SORT l BY o*"), error(no_number));
        // A long string, and a key of another type.
        let long = [b'z'; 40_000];
        bench.run_words(&[b"SET", b"o1", &long]);
        bench.run("DEL o2");
        bench.run("RPUSH o2 a");
        assert_eq!(
            bench.run("SORT l BY nosort GET o* LIMIT 0 2"),
            Reply::Array(vec![Reply::bulk(long.to_vec()), Reply::Null])
        );
    });
}

#[test]
fn values_that_are_too_long_together_are_refused() {
    let bench = Bench::embedded();
    bench.run("RPUSH l 1 1");
    bench.run("SETRANGE w1 400000000 x");
    let too_long = "ERR too long an answer of SORT with GET (more than 536870912 bytes)";
    assert_eq!(bench.run("SORT l BY nosort GET w*"), error(too_long));
    let too_long = "ERR too long values for SORT with BY (more than 536870912 bytes)";
    assert_eq!(bench.run("SORT l BY w* ALPHA"), error(too_long));
}

#[test]
fn weights_and_values_of_other_keys_are_absent() {
    on_both_stores(|bench| {
        bench.run("RPUSH l b c a");
        assert_eq!(bench.run("SORT l BY w_*"), bulks(&["a", "b", "c"]));
        assert_eq!(bench.run("SORT l BY w_* DESC"), bulks(&["c", "b", "a"]));
        assert_eq!(bench.run("SORT l BY w_* ALPHA"), bulks(&["b", "c", "a"]));
        assert_eq!(bench.run("SORT l BY x BY w_*"), bulks(&["b", "c", "a"]));
        assert_eq!(
            bench.run("SORT l ALPHA GET # GET o_* LIMIT 0 1"),
            Reply::Array(vec![bulk("a"), Reply::Null])
        );
    });
}

#[test]
fn patterns_end_at_a_zero_byte() {
    let bench = Bench::embedded();
    bench.run("RPUSH l 3 1");
    for (option, pattern, expected) in [
        ("GET", "#\0abc", vec![bulk("1"), bulk("3")]),
        ("GET", "#abc", vec![Reply::Null, Reply::Null]),
        ("GET", "\0#", vec![Reply::Null, Reply::Null]),
        ("BY", "w\0*", vec![bulk("3"), bulk("1")]),
        ("BY", "w*\0", vec![bulk("1"), bulk("3")]),
    ] {
        let words = ["SORT", "l", option, pattern].map(str::as_bytes);
        assert_eq!(
            bench.run_words(&words),
            Reply::Array(expected),
            "{option} {pattern:?}"
        );
    }
}

#[test]
fn the_key_of_store_is_found_as_in_redis() {
    for (command, expected) in [
        ("SORT a", [1].as_slice()),
        ("SORT a STORE b BY store DESC", &[1, 3]),
        ("SORT a STORE b GET store ALPHA", &[1, 3]),
        ("SORT a LIMIT 0 STORE b", &[1]),
        ("SORT a LIMIT 0 1 STORE b", &[1, 6]),
        ("SORT a LIMIT STORE b STORE c", &[1, 6]),
        ("SORT a BY store b", &[1]),
        ("SORT a GET", &[1]),
        ("SORT a STORE", &[1]),
        ("SORT a STORE STORE b", &[1, 4]),
        ("SORT a STORE b STORE", &[1, 3]),
        ("SORT a STORE b store c", &[1, 5]),
        ("SORT a STORE limit x STORE c", &[1, 3]),
        ("SORT a STORE get STORE d", &[1, 3]),
        ("SORT_RO a STORE b", &[1]),
    ] {
        let words: Vec<Bytes> = command.split(' ').map(Bytes::from).collect();
        let row = quoin_data::table::find(&words[0]).unwrap();
        assert_eq!(row.key_indexes(&words), expected, "{command}");
    }
}

#[test]
fn store_replaces_the_destination_by_a_list() {
    on_both_stores(|bench| {
        bench.run("RPUSH l 3 1 2");
        bench.run("ZADD d 1 m");
        bench.run("EXPIRE d 100");
        assert_eq!(bench.run("SORT l STORE d"), Reply::Integer(3));
        assert_eq!(bench.run("LRANGE d 0 -1"), bulks(&["1", "2", "3"]));
        assert_eq!(bench.run("TTL d"), Reply::Integer(-1));
        assert_eq!(bench.run("SORT l DESC STORE l"), Reply::Integer(3));
        assert_eq!(bench.run("LRANGE l 0 -1"), bulks(&["3", "2", "1"]));
        assert_eq!(
            bench.run("SORT l GET x GET # LIMIT 0 1 STORE d"),
            Reply::Integer(2)
        );
        assert_eq!(bench.run("LRANGE d 0 -1"), bulks(&["", "1"]));
        assert_eq!(bench.run("SORT nosuch STORE d"), Reply::Integer(0));
        assert_eq!(bench.run("EXISTS d"), Reply::Integer(0));
    });
}

#[test]
fn refusals_of_sort_are_those_of_redis() {
    let bench = Bench::embedded();
    bench.run("RPUSH l a b");
    let syntax = "ERR syntax error";
    for (command, line) in [
        (
            "SORT l",
            "ERR One or more scores can't be converted into double",
        ),
        (
            "SORT l STORE d",
            "ERR One or more scores can't be converted into double",
        ),
        ("SORT l LIMIT 1", syntax),
        (
            "SORT l LIMIT a b",
            "ERR value is not an integer or out of range",
        ),
        ("SORT l BY", syntax),
        ("SORT l STORE", syntax),
        ("SORT l FOO", syntax),
        ("SORT_RO l STORE d", syntax),
    ] {
        assert_eq!(bench.run(command), error(line), "{command}");
    }
    assert_eq!(bench.run("EXISTS d"), Reply::Integer(0));
}

const TOO_MANY: &str = "ERR too many values for SORT with GET (more than 1000000)";

/// SORT of `l` without an order, with GET repeated `count` times, and then `options`.
fn sort_with_gets(bench: &Bench, get: &str, count: usize, options: &str) -> Reply {
    let gets = format!(" GET {get}").repeat(count);
    bench.run(&format!("SORT l BY nosort{gets} {options}"))
}

#[test]
fn what_store_cannot_hold_is_refused_before_it_is_made() {
    let bench = Bench::cluster_like();
    for _ in 0..10 {
        bench.run_words(&[b"RPUSH", b"l", &[b'x'; 100_000]]);
    }
    let transaction = bench.store.begin_write().unwrap();
    let (namespaces, signals) = (NamespaceCache::default(), Signals::default());
    let environment = bench.executor.environment();
    let context = WriteContext::new(
        &*transaction,
        environment,
        &namespaces,
        &signals,
        START_MS,
        0,
    );
    let store = |get: &'static str, count: usize| {
        let options = ["SORT", "l", "BY", "nosort", "STORE", "d"];
        let gets = ["GET", get].repeat(count);
        let words: Vec<Bytes> = options.into_iter().chain(gets).map(Bytes::from).collect();
        bench.block_on(quoin_data::keys::sort::sort(&context, &words))
    };
    assert!(matches!(store("#", 10), Err(CommandError::TooLarge)));
    assert_eq!(transaction.mutation_count(), 0);
    assert_eq!(store("#", 8).unwrap(), Reply::Integer(80));
}

#[test]
fn what_one_reply_should_not_hold_is_refused_before_it_is_made() {
    let bench = Bench::embedded();
    bench.run_words(&[b"RPUSH", b"l", &[b'x'; 600_000]]);
    let too_long = "ERR too long an answer of SORT with GET (more than 536870912 bytes)";
    assert_eq!(sort_with_gets(&bench, "#", 1_000, ""), error(too_long));
    for (get, count) in [("#", 800), ("absent", 1_000)] {
        let answer = sort_with_gets(&bench, get, count, "");
        assert!(matches!(answer, Reply::Array(values) if values.len() == count));
    }
}

#[test]
fn values_that_get_makes_are_counted() {
    on_both_stores(|bench| {
        bench.run("RPUSH l a b c d e f g h i j");
        for get in ["#", "absent"] {
            let most = sort_with_gets(bench, get, 100_000, "");
            assert!(matches!(most, Reply::Array(values) if values.len() == 1_000_000));
            for options in ["", "STORE d"] {
                let refused = sort_with_gets(bench, get, 100_001, options);
                assert_eq!(refused, error(TOO_MANY), "{get} {options}");
            }
            // Nothing is computed for elements that LIMIT leaves out.
            let limited = sort_with_gets(bench, get, 100_001, "LIMIT 0 2");
            assert!(matches!(limited, Reply::Array(values) if values.len() == 200_002));
        }
    });
}

#[test]
fn one_get_for_each_of_very_many_elements_is_not_too_much() {
    let check = quoin_data::keys::sort::check_value_count;
    for (element_count, get_count, is_taken) in [
        (5_000_000, 0, true),
        (5_000_000, 1, true),
        (5_000_000, 2, false),
        (500_000, 2, true),
        (500_000, 3, false),
        (0, 5_000_000, true),
        (usize::MAX, usize::MAX, false),
    ] {
        assert_eq!(
            check(element_count, get_count).is_ok(),
            is_taken,
            "{element_count} {get_count}"
        );
    }
}
