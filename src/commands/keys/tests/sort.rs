use super::*;

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
