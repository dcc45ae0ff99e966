//! Sorted-set commands on both kinds of store; what they must answer is Redis's documentation
//! and its source. The differential test against redis-server goes further.

use quoin_engine::testing::{Bench, bulk, bulks};
use quoin_resp::reply::Reply;

fn on_both_stores(test: impl Fn(&Bench)) {
    test(&Bench::embedded());
    test(&Bench::cluster_like());
}

fn error(line: &str) -> Reply {
    Reply::Error(line.to_owned())
}

fn pairs(pairs: &[(&str, f64)]) -> Reply {
    Reply::Pairs(
        pairs
            .iter()
            .map(|(member, score)| (bulk(member), Reply::Double(*score)))
            .collect(),
    )
}

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
fn ranges_by_score_know_open_bounds_offsets_and_limits() {
    on_both_stores(|bench| {
        bench.run("ZADD z 1 a 2 b 2 c 3 d 4 e");
        assert_eq!(bench.run("ZRANGEBYSCORE z (1 3"), bulks(&["b", "c", "d"]));
        assert_eq!(
            bench.run("ZREVRANGEBYSCORE z +inf (2 LIMIT 1 5"),
            bulks(&["d"])
        );
        assert_eq!(
            bench.run("ZRANGE z (4 -inf BYSCORE REV LIMIT 1 2"),
            bulks(&["c", "b"])
        );
        assert_eq!(bench.run("ZRANGEBYSCORE z 1 9 LIMIT -1 5"), bulks(&[]));
        assert_eq!(
            bench.run("ZRANGEBYSCORE z 1 9 LIMIT 3 -1"),
            bulks(&["d", "e"])
        );
        assert_eq!(bench.run("ZRANGEBYSCORE z 3 1"), bulks(&[]));
        assert_eq!(bench.run("ZREMRANGEBYSCORE z (1 2"), Reply::Integer(2));
        assert_eq!(bench.run("ZREMRANGEBYRANK z -1 -1"), Reply::Integer(1));
        assert_eq!(bench.run("ZRANGE z 0 -1"), bulks(&["a", "d"]));
        assert_eq!(bench.run("ZREMRANGEBYRANK z 0 -1"), Reply::Integer(2));
        assert_eq!(bench.run("ZRANGE z 0 -1"), bulks(&[]));
        assert_eq!(bench.run("ZCARD z"), Reply::Integer(0));
    });
}

#[test]
fn ranges_by_bytes_know_open_and_infinite_bounds() {
    on_both_stores(|bench| {
        bench.run("ZADD z 0 a 0 b 0 c 0 d");
        assert_eq!(bench.run("ZRANGEBYLEX z - +"), bulks(&["a", "b", "c", "d"]));
        assert_eq!(bench.run("ZRANGEBYLEX z (a [c"), bulks(&["b", "c"]));
        assert_eq!(
            bench.run("ZREVRANGEBYLEX z (d - LIMIT 1 9"),
            bulks(&["b", "a"])
        );
        assert_eq!(bench.run("ZRANGEBYLEX z + -"), bulks(&[]));
        assert_eq!(bench.run("ZRANGEBYLEX z [b (b"), bulks(&[]));
        assert_eq!(bench.run("ZREMRANGEBYLEX z [b [c"), Reply::Integer(2));
        assert_eq!(bench.run("ZRANGE z 0 -1"), bulks(&["a", "d"]));
    });
}

#[test]
fn a_stored_range_replaces_its_destination() {
    on_both_stores(|bench| {
        bench.run("ZADD z 1 a 2 b 3 c");
        bench.run("RPUSH d x");
        assert_eq!(bench.run("ZRANGESTORE d z 0 1 REV"), Reply::Integer(2));
        assert_eq!(
            bench.run("ZRANGE d 0 -1 WITHSCORES"),
            pairs(&[("b", 2.0), ("c", 3.0)])
        );
        assert_eq!(bench.run("ZRANGESTORE z z 0 0"), Reply::Integer(1));
        assert_eq!(bench.run("ZRANGE z 0 -1"), bulks(&["a"]));
        assert_eq!(bench.run("ZRANGESTORE d z 5 9"), Reply::Integer(0));
        assert_eq!(bench.run("RPUSH d x"), Reply::Integer(1));
    });
}

/// Members that a key of the store cannot hold, in order.
fn long_members() -> Vec<Vec<u8>> {
    let prefix = vec![0xff; 900];
    let mut members = vec![Vec::new(), vec![0], vec![0, 0xff], prefix.clone()];
    for tail in [
        &b"\0"[..],
        b"\0\0",
        b"a",
        b"aa",
        b"b",
        &[b'x'; 200_000],
        b"\xff",
    ] {
        members.push([&prefix[..], tail].concat());
    }
    members
}

#[test]
fn long_members_keep_their_order_and_their_bytes() {
    on_both_stores(|bench| {
        let members = long_members();
        // Each goes between those that are there.
        for at in [4, 10, 7, 5, 6, 0, 9, 8, 1, 3, 2] {
            let reply = bench.run_words(&[b"ZADD", b"z", b"7", &members[at]]);
            assert_eq!(reply, Reply::Integer(1));
        }
        let all =
            |members: &[Vec<u8>]| Reply::Array(members.iter().cloned().map(Reply::bulk).collect());
        assert_eq!(bench.run("ZRANGE z 0 -1"), all(&members));
        for (at, member) in members.iter().enumerate() {
            let from = [b"[", &member[..]].concat();
            let behind = [b"(", &member[..]].concat();
            let reply = bench.run_words(&[b"ZRANGEBYLEX", b"z", &from, b"+"]);
            assert_eq!(reply, all(&members[at..]));
            let reply = bench.run_words(&[b"ZRANGEBYLEX", b"z", &behind, b"+"]);
            assert_eq!(reply, all(&members[at + 1..]));
            let reply = bench.run_words(&[b"ZRANGEBYLEX", b"z", b"-", &from]);
            assert_eq!(reply, all(&members[..=at]));
            let reply = bench.run_words(&[b"ZRANGEBYLEX", b"z", b"-", &behind]);
            assert_eq!(reply, all(&members[..at]));
        }
        // A bound that is no member.
        let bound = [b"(", &[0xff; 900][..], b"ab"].concat();
        let reply = bench.run_words(&[b"ZRANGEBYLEX", b"z", &bound, b"+"]);
        assert_eq!(reply, all(&members[8..]));
    });
}

#[test]
fn long_members_change_their_score_and_go_without_a_trace() {
    on_both_stores(|bench| {
        let members = long_members();
        for member in &members {
            bench.run_words(&[b"ZADD", b"z", b"1", member]);
        }
        for member in &members {
            let reply = bench.run_words(&[b"ZADD", b"z", b"CH", b"2", member]);
            assert_eq!(reply, Reply::Integer(1));
            let reply = bench.run_words(&[b"ZSCORE", b"z", member]);
            assert_eq!(reply, Reply::Double(2.0));
        }
        assert_eq!(bench.run("ZRANGESTORE d z 0 -1"), Reply::Integer(11));
        assert_eq!(bench.run("ZRANGE d 0 -1"), bench.run("ZRANGE z 0 -1"));
        for member in &members {
            assert_eq!(bench.run_words(&[b"ZREM", b"z", member]), Reply::Integer(1));
        }
        assert_eq!(bench.run("ZRANGE z 0 -1"), bulks(&[]));
        let Reply::Pairs(popped) = bench.run("ZPOPMAX d 20") else {
            panic!("not pairs");
        };
        let popped: Vec<Reply> = popped.into_iter().map(|(member, _)| member).collect();
        let expected: Vec<Reply> = members.into_iter().rev().map(Reply::bulk).collect();
        assert_eq!(popped, expected);
        assert_eq!(bench.run("ZCARD d"), Reply::Integer(0));
    });
}

#[test]
fn ranks_count_from_either_end() {
    on_both_stores(|bench| {
        bench.run("ZADD z 1 a 2 b 3 c");
        assert_eq!(bench.run("ZRANK z a"), Reply::Integer(0));
        assert_eq!(bench.run("ZREVRANK z a"), Reply::Integer(2));
        assert_eq!(
            bench.run("ZRANK z c WITHSCORE"),
            Reply::Array(vec![Reply::Integer(2), Reply::Double(3.0)])
        );
        assert_eq!(bench.run("ZRANK z nosuch"), Reply::Null);
        assert_eq!(bench.run("ZREVRANK none a WITHSCORE"), Reply::NullArray);
        assert_eq!(bench.run("ZRANK z a WITHSCORES"), error("ERR syntax error"));
        assert_eq!(
            bench.run("ZRANK z a WITHSCORE x"),
            error("ERR wrong number of arguments for 'zrank' command")
        );
    });
}

#[test]
fn counts_are_those_of_the_ranges() {
    on_both_stores(|bench| {
        bench.run("ZADD z 1 a 2 b 3 c");
        bench.run("ZADD l 0 a 0 b 0 c");
        assert_eq!(bench.run("ZCOUNT z (1 3"), Reply::Integer(2));
        assert_eq!(bench.run("ZCOUNT z 3 1"), Reply::Integer(0));
        assert_eq!(bench.run("ZCOUNT z -inf +inf"), Reply::Integer(3));
        assert_eq!(bench.run("ZLEXCOUNT l [b +"), Reply::Integer(2));
        assert_eq!(bench.run("ZLEXCOUNT l + -"), Reply::Integer(0));
        assert_eq!(bench.run("ZCOUNT none 0 1"), Reply::Integer(0));
        assert_eq!(
            bench.run("ZMSCORE z a nosuch c"),
            Reply::Array(vec![Reply::Double(1.0), Reply::Null, Reply::Double(3.0),])
        );
    });
}

#[test]
fn ranks_and_counts_are_right_beyond_a_page() {
    let bench = Bench::embedded();
    for begin in (0..5000).step_by(500) {
        let mut words: Vec<Vec<u8>> = vec![b"ZADD".to_vec(), b"z".to_vec()];
        for number in begin..begin + 500 {
            words.push(number.to_string().into_bytes());
            words.push(format!("m{number}").into_bytes());
        }
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        assert_eq!(bench.run_words(&words), Reply::Integer(500));
    }
    for rank in [0, 1023, 1024, 2500, 3976, 4999] {
        let reverse = 4999 - rank;
        assert_eq!(bench.run(&format!("ZRANK z m{rank}")), Reply::Integer(rank));
        assert_eq!(
            bench.run(&format!("ZREVRANK z m{rank}")),
            Reply::Integer(reverse)
        );
        assert_eq!(
            bench.run(&format!("ZCOUNT z {rank} +inf")),
            Reply::Integer(reverse + 1)
        );
        assert_eq!(
            bench.run(&format!("ZCOUNT z (10 ({rank}")),
            Reply::Integer((rank - 11).max(0))
        );
        assert_eq!(
            bench.run(&format!("ZRANGE z {rank} {rank}")),
            bulks(&[&format!("m{rank}")])
        );
        assert_eq!(
            bench.run(&format!("ZRANGEBYSCORE z -inf +inf LIMIT {rank} 1")),
            bulks(&[&format!("m{rank}")])
        );
    }
    assert_eq!(bench.run("ZCOUNT z -inf +inf"), Reply::Integer(5000));
    assert_eq!(bench.run("ZREMRANGEBYRANK z 10 -11"), Reply::Integer(4980));
    assert_eq!(bench.run("ZCARD z"), Reply::Integer(20));
}

mod algebra;
mod conflicts;
mod model;
mod random_and_scan;
