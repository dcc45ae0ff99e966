//! Adding, finding, removing and moving members.

use super::{WRONG_TYPE, error, members, on_both_stores, set, with_rows};
use quoin_engine::testing::{Bench, bulk};
use quoin_resp::reply::Reply;

#[test]
fn members_are_added_found_and_removed() {
    for test in [on_both_stores, with_rows] as [fn(fn(&Bench)); 2] {
        test(|bench| {
            assert_eq!(bench.run("SADD s a b a"), Reply::Integer(2));
            assert_eq!(bench.run("SADD s b c"), Reply::Integer(1));
            assert_eq!(bench.run("SADD s b c"), Reply::Integer(0));
            assert_eq!(bench.run("SISMEMBER s a"), Reply::Integer(1));
            assert_eq!(bench.run("SISMEMBER s x"), Reply::Integer(0));
            let expected = Reply::Array([1, 0, 1].map(Reply::Integer).to_vec());
            assert_eq!(bench.run("SMISMEMBER s a x c"), expected);
            let Reply::Integer(length) = bench.run("SCARD s") else {
                panic!("no number");
            };
            assert_eq!(bench.run("SREM s a a x"), Reply::Integer(1));
            assert_eq!(bench.run("SCARD s"), Reply::Integer(length - 1));
            assert_eq!(members(bench.run("SMEMBERS s")).len() as i64, length - 1);
        });
    }
}

#[test]
fn small_sets_are_answered_in_the_order_of_redis() {
    on_both_stores(|bench| {
        bench.run("SADD s 10 9 -1");
        assert_eq!(bench.run("SMEMBERS s"), set(&["-1", "9", "10"]));
        bench.run("SADD s x 3 a");
        let expected = set(&["-1", "9", "10", "x", "3", "a"]);
        assert_eq!(bench.run("SMEMBERS s"), expected);
    });
}

#[test]
fn a_key_ceases_to_exist_with_its_last_member() {
    with_rows(|bench| {
        bench.run("SADD small a");
        assert_eq!(bench.run("SPOP small"), bulk("a"));
        assert_eq!(members(bench.run("SPOP s 1000")).len(), 100);
        assert_eq!(bench.run("EXISTS small s"), Reply::Integer(0));
        assert_eq!(bench.run("SPOP s"), Reply::Null);
        assert_eq!(bench.run("SPOP s 3"), set(&[]));
        assert_eq!(bench.run("SMEMBERS s"), set(&[]));
        assert_eq!(bench.run("SRANDMEMBER s"), Reply::Null);
        assert_eq!(bench.run("SRANDMEMBER s -3"), Reply::Array(Vec::new()));
        // The destination is not checked if the source does not exist.
        assert_eq!(bench.run("RPUSH l x"), Reply::Integer(1));
        assert_eq!(bench.run("SMOVE s l a"), Reply::Integer(0));
        assert_eq!(bench.run("RPUSH s x"), Reply::Integer(1));
        assert_eq!(bench.run("SPOP s"), error(WRONG_TYPE));
    });
}

#[test]
fn a_member_is_moved() {
    for test in [on_both_stores, with_rows] as [fn(fn(&Bench)); 2] {
        test(|bench| {
            bench.run("SADD s a b");
            bench.run("SADD other b");
            bench.run("RPUSH l x");
            assert_eq!(bench.run("SMOVE s s a"), Reply::Integer(1));
            assert_eq!(bench.run("SMOVE s s x"), Reply::Integer(0));
            assert_eq!(bench.run("SMOVE s other a"), Reply::Integer(1));
            assert_eq!(bench.run("SMOVE s other b"), Reply::Integer(1));
            assert_eq!(bench.run("SMOVE s other b"), Reply::Integer(0));
            assert_eq!(bench.run("SMEMBERS other"), set(&["b", "a"]));
            assert_eq!(bench.run("SMOVE other new a"), Reply::Integer(1));
            assert_eq!(bench.run("SMOVE other new b"), Reply::Integer(1));
            assert_eq!(bench.run("EXISTS other"), Reply::Integer(0));
            assert_eq!(bench.run("SMOVE other l a"), Reply::Integer(0));
            assert_eq!(bench.run("SMOVE new l a"), error(WRONG_TYPE));
            assert_eq!(bench.run("SMOVE l new a"), error(WRONG_TYPE));
            assert_eq!(bench.run("SMEMBERS new"), set(&["a", "b"]));
        });
    }
}

#[test]
fn what_is_wrong_is_told_before_anything_changes() {
    on_both_stores(|bench| {
        bench.run("SADD s a");
        bench.run("RPUSH l x");
        for (line, expected) in [
            ("SADD l a", WRONG_TYPE),
            ("SISMEMBER l a", WRONG_TYPE),
            ("SPOP s 1 2", "ERR syntax error"),
            ("SPOP s -1", "ERR value is out of range, must be positive"),
            ("SRANDMEMBER s 1 2", "ERR syntax error"),
            (
                "SRANDMEMBER s x",
                "ERR value is not an integer or out of range",
            ),
            ("SRANDMEMBER s -1000001", "ERR value is out of range"),
            ("SSCAN s x", "ERR invalid cursor"),
            ("SSCAN s 0 COUNT 0", "ERR syntax error"),
            ("SSCAN l 0", WRONG_TYPE),
        ] {
            assert_eq!(bench.run(line), error(expected), "{line}");
        }
        assert_eq!(bench.run("SMEMBERS s"), set(&["a"]));
    });
}
