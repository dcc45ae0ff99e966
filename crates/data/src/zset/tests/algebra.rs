//! Unions, intersections, differences.

use super::{error, on_both_stores, pairs};
use quoin_engine::testing::{Bench, bulks};
use quoin_resp::reply::Reply;

fn fill(bench: &Bench) {
    bench.run("ZADD a 1 x 2 y 3 z");
    bench.run("ZADD b 10 y 20 z 30 w");
}

#[test]
fn scores_are_weighted_and_aggregated() {
    on_both_stores(|bench| {
        fill(bench);
        assert_eq!(
            bench.run("ZUNION 2 a b WITHSCORES"),
            pairs(&[("x", 1.0), ("y", 12.0), ("z", 23.0), ("w", 30.0)])
        );
        assert_eq!(
            bench.run("ZINTER 2 a b WEIGHTS 2 -1 AGGREGATE MIN WITHSCORES"),
            pairs(&[("z", -20.0), ("y", -10.0)])
        );
        assert_eq!(bench.run("ZINTER 3 a b none WITHSCORES"), pairs(&[]));
        assert_eq!(bench.run("ZDIFF 3 a b none"), bulks(&["x"]));
        assert_eq!(bench.run("ZDIFF 2 a a"), bulks(&[]));
        assert_eq!(bench.run("ZINTERCARD 2 a b"), Reply::Integer(2));
        assert_eq!(bench.run("ZINTERCARD 2 a b LIMIT 1"), Reply::Integer(1));
    });
}

#[test]
fn what_is_no_number_counts_as_0() {
    on_both_stores(|bench| {
        bench.run("ZADD a inf x");
        bench.run("ZADD b -inf x");
        assert_eq!(bench.run("ZUNION 2 a b WITHSCORES"), pairs(&[("x", 0.0)]));
        assert_eq!(
            bench.run("ZUNION 1 a WEIGHTS 0 WITHSCORES"),
            pairs(&[("x", 0.0)])
        );
        assert_eq!(
            bench.run("ZINTER 2 a b WEIGHTS 1 1 WITHSCORES"),
            pairs(&[("x", 0.0)])
        );
    });
}

#[test]
fn fractions_are_added_from_the_smallest_set_to_the_largest() {
    on_both_stores(|bench| {
        bench.run("ZADD a 0.1 x 1 p 1 q");
        bench.run("ZADD b 0.2 x 1 p");
        bench.run("ZADD c 0.3 x");
        let Reply::Pairs(all) = bench.run("ZUNION 3 a b c WITHSCORES") else {
            panic!("not pairs");
        };
        assert_eq!(all[0].1, Reply::Double((0.3 + 0.2) + 0.1));
        assert_ne!((0.3 + 0.2) + 0.1, (0.1 + 0.2) + 0.3);
    });
}

#[test]
fn a_stored_result_replaces_its_destination_even_if_that_is_a_source() {
    on_both_stores(|bench| {
        fill(bench);
        bench.run("RPUSH l x");
        assert_eq!(bench.run("ZUNIONSTORE l 2 a b"), Reply::Integer(4));
        assert_eq!(bench.run("ZCARD l"), Reply::Integer(4));
        assert_eq!(
            bench.run("ZINTERSTORE a 2 a b AGGREGATE MAX"),
            Reply::Integer(2)
        );
        assert_eq!(
            bench.run("ZRANGE a 0 -1 WITHSCORES"),
            pairs(&[("y", 10.0), ("z", 20.0)])
        );
        assert_eq!(bench.run("ZDIFFSTORE l 2 a a"), Reply::Integer(0));
        assert_eq!(bench.run("RPUSH l x"), Reply::Integer(1));
        assert_eq!(bench.run("ZDIFFSTORE l 1 a"), Reply::Integer(2));
        assert_eq!(bench.run("ZSCORE l y"), Reply::Double(10.0));
    });
}

#[test]
fn types_are_looked_at_before_options() {
    on_both_stores(|bench| {
        fill(bench);
        bench.run("RPUSH l x");
        let wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
        for (line, expected) in [
            ("ZUNION 2 a l NOSUCH", wrong_type),
            ("ZUNION 2 a b NOSUCH", "ERR syntax error"),
            ("ZUNION 3 a l", "ERR syntax error"),
            (
                "ZUNION 0 a",
                "ERR at least 1 input key is needed for 'zunion' command",
            ),
            (
                "ZDIFFSTORE d 0 a",
                "ERR at least 1 input key is needed for 'zdiffstore' command",
            ),
            ("ZUNION x a", "ERR value is not an integer or out of range"),
            ("ZUNION 2 a b WEIGHTS 1", "ERR syntax error"),
            (
                "ZUNION 2 a b WEIGHTS 1 x",
                "ERR weight value is not a float",
            ),
            ("ZUNION 1 a AGGREGATE AVG", "ERR syntax error"),
            ("ZDIFF 1 a AGGREGATE MIN", "ERR syntax error"),
            ("ZUNIONSTORE d 1 a WITHSCORES", "ERR syntax error"),
            ("ZINTERCARD 1 a WITHSCORES", "ERR syntax error"),
            ("ZINTERCARD 1 a LIMIT -1", "ERR LIMIT can't be negative"),
        ] {
            assert_eq!(bench.run(line), error(expected), "{line}");
        }
    });
}
