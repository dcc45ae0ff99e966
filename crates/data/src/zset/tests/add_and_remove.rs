//! ZADD, ZREM and the commands that pop.

use super::{error, on_both_stores, pairs};
use quoin_engine::testing::{bulk, bulks};
use quoin_resp::reply::Reply;

#[test]
fn members_are_ordered_by_score_and_then_by_bytes() {
    on_both_stores(|bench| {
        assert_eq!(
            bench.run("ZADD z 2 b 1 c 2 a -inf d inf e"),
            Reply::Integer(5)
        );
        assert_eq!(
            bench.run("ZRANGE z 0 -1"),
            bulks(&["d", "c", "a", "b", "e"])
        );
        assert_eq!(
            bench.run("ZRANGE z -2 -1 REV WITHSCORES"),
            pairs(&[("c", 1.0), ("d", f64::NEG_INFINITY)])
        );
        assert_eq!(bench.run("ZCARD z"), Reply::Integer(5));
        assert_eq!(bench.run("ZSCORE z b"), Reply::Double(2.0));
        assert_eq!(bench.run("ZSCORE z nosuch"), Reply::Null);
    });
}

#[test]
fn the_conditions_of_zadd_are_those_of_redis() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("ZADD z XX 1 a"), Reply::Integer(0));
        assert_eq!(bench.run("ZADD z XX INCR 1 a"), Reply::Null);
        assert_eq!(bench.run("ZCARD z"), Reply::Integer(0));
        assert_eq!(bench.run("ZADD z 5 a"), Reply::Integer(1));
        assert_eq!(bench.run("ZADD z NX CH 6 a 1 b"), Reply::Integer(1));
        assert_eq!(bench.run("ZADD z GT CH 4 a 2 b 9 c"), Reply::Integer(2));
        assert_eq!(bench.run("ZADD z LT INCR 1 a"), Reply::Null);
        assert_eq!(bench.run("ZADD z INCR 1 a"), Reply::Double(6.0));
        assert_eq!(bench.run("ZINCRBY z 0 a"), Reply::Double(6.0));
        assert_eq!(
            bench.run("ZRANGE z 0 -1 WITHSCORES"),
            pairs(&[("b", 2.0), ("a", 6.0), ("c", 9.0)])
        );
    });
}

#[test]
fn a_member_that_is_named_twice_counts_once() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("ZADD z 1 a 2 a 3 a"), Reply::Integer(1));
        assert_eq!(bench.run("ZRANGE z 0 -1 WITHSCORES"), pairs(&[("a", 3.0)]));
        assert_eq!(bench.run("ZREM z a a b"), Reply::Integer(1));
        assert_eq!(bench.run("ZCARD z"), Reply::Integer(0));
    });
}

#[test]
fn an_increment_that_gives_no_number_is_refused() {
    on_both_stores(|bench| {
        bench.run("ZADD z inf a");
        assert_eq!(
            bench.run("ZINCRBY z -inf a"),
            error("ERR resulting score is not a number (NaN)")
        );
        assert_eq!(bench.run("ZSCORE z a"), Reply::Double(f64::INFINITY));
    });
}

#[test]
fn pops_take_from_their_end_until_the_set_is_gone() {
    on_both_stores(|bench| {
        bench.run("ZADD z 1 a 2 b 3 c 4 d");
        assert_eq!(
            bench.run("ZPOPMIN z"),
            Reply::Array(vec![bulk("a"), Reply::Double(1.0)])
        );
        assert_eq!(bench.run("ZPOPMAX z 2"), pairs(&[("d", 4.0), ("c", 3.0)]));
        assert_eq!(bench.run("ZPOPMIN z 0"), pairs(&[]));
        assert_eq!(
            bench.run("ZMPOP 2 none z MAX COUNT 5"),
            Reply::Array(vec![
                bulk("z"),
                Reply::Array(vec![Reply::Array(vec![bulk("b"), Reply::Double(2.0)])])
            ])
        );
        assert_eq!(bench.run("ZPOPMIN z"), Reply::Array(Vec::new()));
        assert_eq!(bench.run("ZMPOP 1 z MIN"), Reply::NullArray);
        assert_eq!(bench.run("RPUSH z x"), Reply::Integer(1));
    });
}

#[test]
fn what_is_wrong_is_told_before_anything_changes() {
    on_both_stores(|bench| {
        bench.run("RPUSH l x");
        for (line, expected) in [
            (
                "ZADD z NX XX 1 a",
                "ERR XX and NX options at the same time are not compatible",
            ),
            (
                "ZADD z GT LT 1 a",
                "ERR GT, LT, and/or NX options at the same time are not compatible",
            ),
            (
                "ZADD z INCR 1 a 2 b",
                "ERR INCR option supports a single increment-element pair",
            ),
            ("ZADD z 1 a nan b", "ERR value is not a valid float"),
            ("ZADD z 1 a 2", "ERR syntax error"),
            (
                "ZADD l 1 a",
                "WRONGTYPE Operation against a key holding the wrong kind of value",
            ),
            (
                "ZPOPMIN z -1",
                "ERR value is out of range, must be positive",
            ),
            ("ZPOPMIN z 1 2", "ERR syntax error"),
            (
                "ZRANGE z a b",
                "ERR value is not an integer or out of range",
            ),
            ("ZRANGE z a b BYSCORE", "ERR min or max is not a float"),
            (
                "ZRANGE z a b BYLEX",
                "ERR min or max not valid string range item",
            ),
            ("ZRANGE z 0 1 REV REV", "ERR syntax error"),
            (
                "ZRANGE z 0 1 LIMIT 0 1",
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or \
                 BYLEX",
            ),
            (
                "ZRANGE z - + BYLEX WITHSCORES",
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ),
            ("ZRANGESTORE d z 0 1 WITHSCORES", "ERR syntax error"),
            ("ZMPOP 0 z MIN", "ERR numkeys should be greater than 0"),
            ("ZMPOP 1 z MIDDLE", "ERR syntax error"),
            (
                "ZMPOP 1 z MIN COUNT 0",
                "ERR count should be greater than 0",
            ),
        ] {
            assert_eq!(bench.run(line), error(expected), "{line}");
        }
        assert_eq!(bench.run("ZCARD z"), Reply::Integer(0));
    });
}
