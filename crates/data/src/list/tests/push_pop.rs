//! Pushes, pops and moves.

use super::*;
use quoin_engine::testing::call;

#[test]
fn elements_come_out_in_the_order_of_redis() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("RPUSH l a b c"), Reply::Integer(3));
        assert_eq!(bench.run("LPUSH l z y"), Reply::Integer(5));
        assert_eq!(
            bench.run("LRANGE l 0 -1"),
            bulks(&["y", "z", "a", "b", "c"])
        );
        assert_eq!(bench.run("LPOP l"), bulk("y"));
        assert_eq!(bench.run("RPOP l 2"), bulks(&["c", "b"]));
        assert_eq!(bench.run("LLEN l"), Reply::Integer(2));
    });
}

#[test]
fn a_list_that_becomes_empty_ceases_to_exist() {
    on_both_stores(|bench| {
        bench.run("RPUSH l a");
        assert_eq!(bench.run("LPOP l"), bulk("a"));
        assert_eq!(bench.run("LLEN l"), Reply::Integer(0));
        assert_eq!(bench.run("LPUSHX l b"), Reply::Integer(0));
        assert_eq!(bench.run("LPOP l 0"), Reply::NullArray);
        assert_eq!(
            bench.run("LSET l 0 b"),
            Reply::Error("ERR no such key".to_owned())
        );
        assert_eq!(bench.run("LINSERT l BEFORE a b"), Reply::Integer(0));
        assert_eq!(bench.run("LMOVE l m LEFT LEFT"), Reply::Null);
    });
}

#[test]
fn a_list_is_rotated_onto_itself() {
    on_both_stores(|bench| {
        bench.run("RPUSH l a b c");
        assert_eq!(bench.run("RPOPLPUSH l l"), bulk("c"));
        assert_eq!(bench.run("LRANGE l 0 -1"), bulks(&["c", "a", "b"]));
        bench.run("RPUSH single x");
        assert_eq!(bench.run("LMOVE single single LEFT RIGHT"), bulk("x"));
        assert_eq!(bench.run("LRANGE single 0 -1"), bulks(&["x"]));
    });
}

#[test]
fn the_first_list_with_elements_is_popped() {
    on_both_stores(|bench| {
        bench.run("RPUSH b 1 2 3");
        assert_eq!(
            bench.run("LMPOP 2 a b LEFT COUNT 2"),
            Reply::Array(vec![bulk("b"), bulks(&["1", "2"])])
        );
        assert_eq!(bench.run("LMPOP 1 a LEFT"), Reply::NullArray);
    });
}

#[test]
fn nothing_is_moved_from_an_empty_list_whatever_the_destination_is() {
    on_both_stores(|bench| {
        bench.run("ZADD z 1 a");
        bench.run("RPUSH l a");
        bench.run("LTRIM l 1 0");
        assert_eq!(bench.run("RPOPLPUSH l z"), Reply::Null);
        bench.run("RPUSH l b");
        assert_eq!(
            bench.run("RPOPLPUSH l z"),
            Reply::Error(
                "WRONGTYPE Operation against a key holding the wrong kind of value".to_owned()
            )
        );
        assert_eq!(bench.run("LRANGE l 0 -1"), bulks(&["b"]));
    });
}

#[test]
fn a_push_to_the_head_comes_before_a_concurrent_push_to_the_tail() {
    for [line, meanwhile] in [["LPUSH l a", "RPUSH l z"], ["RPUSH l z", "LPUSH l a"]] {
        let bench = Bench::cluster_like();
        bench.run("RPUSH l x");
        bench.run("LPOP l");
        assert!(!bench.race(line, meanwhile, false));
        assert_eq!(bench.run("LRANGE l 0 -1"), bulks(&["a", "z"]));
    }
}

#[test]
fn what_a_batch_pushes_shares_rows() {
    for bench in [Bench::embedded(), Bench::cluster_like()] {
        let calls = |name: &'static [u8]| (0..100).map(move |_| call(0, &[name, b"l", b"element"]));
        for name in [&b"LPUSH"[..], b"RPUSH"] {
            let finished = bench.executor.submit(calls(name).collect());
            bench.block_on(finished).unwrap();
        }
        assert_eq!(bench.data_rows(), 2);
        assert_eq!(bench.run("LLEN l"), Reply::Integer(200));
        bench.run("LPOP l 99");
        bench.run("RPOP l 100");
        assert_eq!(bench.data_rows(), 1);
        bench.run("LPOP l");
        assert_eq!(bench.data_rows(), 0);
    }
}
