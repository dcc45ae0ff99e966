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

#[test]
fn several_elements_move_one_by_one_or_keep_their_order() {
    for (ends, moved, destination) in [
        ("LEFT LEFT COUNT 2 OBO", "2 1", "2 1 x y"),
        ("LEFT LEFT COUNT 2 BULK", "1 2", "1 2 x y"),
        ("LEFT RIGHT COUNT 2 OBO", "1 2", "x y 1 2"),
        ("LEFT RIGHT EXACTLY 2 BULK", "1 2", "x y 1 2"),
        ("RIGHT LEFT COUNT 2 OBO", "3 4", "3 4 x y"),
        ("RIGHT LEFT EXACTLY 2 BULK", "3 4", "3 4 x y"),
        ("RIGHT RIGHT COUNT 2 OBO", "4 3", "x y 4 3"),
        ("RIGHT RIGHT COUNT 2 BULK", "3 4", "x y 3 4"),
        ("LEFT RIGHT", "1", "x y 1"),
        ("LEFT RIGHT COUNT 9 BULK", "1 2 3 4", "x y 1 2 3 4"),
    ] {
        let words = |text: &str| bulks(&text.split(' ').collect::<Vec<_>>());
        on_both_stores(|bench| {
            bench.run("RPUSH l 1 2 3 4");
            bench.run("RPUSH m x y");
            assert_eq!(
                bench.run(&format!("LMOVEM l m {ends}")),
                words(moved),
                "{ends}"
            );
            assert_eq!(bench.run("LRANGE m 0 -1"), words(destination), "{ends}");
            let left = 4 - i64::try_from(moved.split(' ').count()).unwrap();
            assert_eq!(bench.run("LLEN l"), Reply::Integer(left), "{ends}");
            assert_eq!(bench.run("EXISTS l"), Reply::Integer(i64::from(left > 0)));
        });
    }
}

#[test]
fn elements_move_onto_their_own_list_as_a_block() {
    on_both_stores(|bench| {
        bench.run("RPUSH l 1 2 3 4");
        let moved = bench.run("LMOVEM l l LEFT RIGHT COUNT 2 BULK");
        assert_eq!(moved, bulks(&["1", "2"]));
        assert_eq!(bench.run("LRANGE l 0 -1"), bulks(&["3", "4", "1", "2"]));
        let moved = bench.run("LMOVEM l l LEFT LEFT COUNT 2 OBO");
        assert_eq!(moved, bulks(&["4", "3"]));
        assert_eq!(bench.run("LRANGE l 0 -1"), bulks(&["4", "3", "1", "2"]));
        bench.run("LMOVEM l l RIGHT LEFT EXACTLY 4 BULK");
        assert_eq!(bench.run("LRANGE l 0 -1"), bulks(&["4", "3", "1", "2"]));
    });
}

#[test]
fn too_few_elements_do_not_move() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("LMOVEM l m LEFT LEFT"), Reply::NullArray);
        bench.run("RPUSH l 1 2");
        let moved = bench.run("LMOVEM l m LEFT LEFT EXACTLY 3 BULK");
        assert_eq!(moved, Reply::NullArray);
        assert_eq!(bench.run("LRANGE l 0 -1"), bulks(&["1", "2"]));
        assert_eq!(bench.run("EXISTS m"), Reply::Integer(0));
        bench.run("SET m text");
        let moved = bench.run("LMOVEM l m LEFT LEFT EXACTLY 2 BULK");
        assert!(matches!(moved, Reply::Error(line) if line.starts_with("WRONGTYPE")));
        assert_eq!(bench.run("LLEN l"), Reply::Integer(2));
    });
}

#[test]
fn how_many_elements_move_is_checked_before_any_does() {
    let bench = Bench::embedded();
    bench.run("RPUSH l 1 2");
    for (options, line) in [
        (
            "LEFT LEFT COUNT 0 BULK",
            "ERR count should be greater than 0",
        ),
        (
            "LEFT LEFT EXACTLY -1 OBO",
            "ERR count should be greater than 0",
        ),
        (
            "LEFT LEFT COUNT x OBO",
            "ERR count should be greater than 0",
        ),
        ("LEFT LEFT COUNT 1", "ERR syntax error"),
        ("LEFT LEFT COUNT 1 OBO BULK", "ERR syntax error"),
        ("LEFT LEFT ABOUT 1 OBO", "ERR syntax error"),
        ("LEFT LEFT COUNT 1 ANYHOW", "ERR syntax error"),
        ("LEFT MIDDLE COUNT 1 OBO", "ERR syntax error"),
    ] {
        let refused = Reply::Error(line.to_owned());
        assert_eq!(
            bench.run(&format!("LMOVEM l m {options}")),
            refused,
            "{options}"
        );
        let blocking = options.replacen("LEFT LEFT", "LEFT LEFT 0", 1);
        let blocking = blocking.replacen("LEFT MIDDLE", "LEFT MIDDLE 0", 1);
        assert_eq!(
            bench.run(&format!("BLMOVEM l m {blocking}")),
            refused,
            "{blocking}"
        );
    }
    assert_eq!(bench.run("LLEN l"), Reply::Integer(2));
}
