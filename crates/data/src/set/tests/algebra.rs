//! Unions, intersections, differences.

use super::{WRONG_TYPE, error, fill, members, on_both_stores, set};
use quoin_base::random::{Random, SeededRandom};
use quoin_engine::testing::{Bench, bulk, bulks};
use quoin_resp::reply::Reply;
use std::collections::BTreeSet;

fn fill_small(bench: &Bench) {
    bench.run("SADD a x y z");
    bench.run("SADD b y z w");
}

#[test]
fn small_sets_are_combined_in_the_order_of_redis() {
    on_both_stores(|bench| {
        fill_small(bench);
        assert_eq!(bench.run("SUNION a none b"), set(&["x", "y", "z", "w"]));
        assert_eq!(bench.run("SINTER a b"), set(&["y", "z"]));
        assert_eq!(bench.run("SINTER a none b"), set(&[]));
        assert_eq!(bench.run("SDIFF a none b"), set(&["x"]));
        assert_eq!(bench.run("SDIFF none a"), set(&[]));
        assert_eq!(bench.run("SDIFF a a"), set(&[]));
        assert_eq!(bench.run("SINTERCARD 2 a b"), Reply::Integer(2));
        assert_eq!(bench.run("SINTERCARD 2 a b LIMIT 1"), Reply::Integer(1));
        assert_eq!(bench.run("SINTERCARD 2 a b LIMIT 0"), Reply::Integer(2));
        for (line, count) in [
            ("SUNIONCARD 3 a none b", 4),
            ("SUNIONCARD 2 a b LIMIT 3", 3),
            ("SUNIONCARD 2 a b LIMIT 0 APPROX", 4),
            ("SUNIONCARD 1 none", 0),
            ("SDIFFCARD 3 a none b", 1),
            ("SDIFFCARD 1 a limit 2", 2),
            ("SDIFFCARD 2 none a", 0),
            ("SDIFFCARD 2 a a", 0),
        ] {
            assert_eq!(bench.run(line), Reply::Integer(count), "{line}");
        }
        bench.run("SADD n 3 1");
        bench.run("SADD m 2 k 0");
        assert_eq!(bench.run("SUNION n m"), set(&["1", "2", "3", "k", "0"]));
    });
}

#[test]
fn a_result_replaces_its_destination_even_if_that_is_a_source() {
    on_both_stores(|bench| {
        fill_small(bench);
        bench.run("RPUSH l x");
        assert_eq!(bench.run("SUNIONSTORE l a b"), Reply::Integer(4));
        assert_eq!(bench.run("SCARD l"), Reply::Integer(4));
        bench.run("EXPIRE a 1000");
        assert_eq!(bench.run("SINTERSTORE a a b"), Reply::Integer(2));
        assert_eq!(bench.run("SMEMBERS a"), set(&["y", "z"]));
        assert_eq!(bench.run("TTL a"), Reply::Integer(-1));
        assert_eq!(bench.run("SDIFFSTORE l a b"), Reply::Integer(0));
        assert_eq!(bench.run("EXISTS l"), Reply::Integer(0));
        assert_eq!(bench.run("SDIFFSTORE l b a"), Reply::Integer(1));
        assert_eq!(bench.run("SINTERSTORE l l none"), Reply::Integer(0));
        assert_eq!(bench.run("EXISTS l"), Reply::Integer(0));
    });
}

#[test]
fn what_is_wrong_is_told_before_anything_changes() {
    on_both_stores(|bench| {
        fill_small(bench);
        bench.run("RPUSH l x");
        for (line, expected) in [
            ("SUNION a l", WRONG_TYPE),
            ("SINTER none l", WRONG_TYPE),
            ("SDIFFSTORE a b l", WRONG_TYPE),
            ("SINTERCARD 0 a", "ERR numkeys should be greater than 0"),
            ("SINTERCARD x a", "ERR numkeys should be greater than 0"),
            (
                "SINTERCARD 3 a b",
                "ERR Number of keys can't be greater than number of args",
            ),
            ("SINTERCARD 1 a LIMIT", "ERR syntax error"),
            ("SINTERCARD 1 a LIMIT -1", "ERR LIMIT can't be negative"),
            ("SINTERCARD 1 a b", "ERR syntax error"),
            ("SINTERCARD 1 a APPROX", "ERR syntax error"),
            ("SDIFFCARD 1 a APPROX", "ERR syntax error"),
            ("SDIFFCARD 0 a", "ERR numkeys should be greater than 0"),
            ("SDIFFCARD 2 a l", WRONG_TYPE),
            ("SUNIONCARD 2 none l", WRONG_TYPE),
            ("SUNIONCARD 1 a LIMIT x", "ERR LIMIT can't be negative"),
            (
                "SUNIONCARD 3 a b",
                "ERR Number of keys can't be greater than number of args",
            ),
        ] {
            assert_eq!(bench.run(line), error(expected), "{line}");
        }
        assert_eq!(bench.run("SMEMBERS a"), set(&["x", "y", "z"]));
    });
}

/// Compares with a model. Sets of all sizes are read in all ways.
#[test]
fn sets_of_all_sizes_are_combined_as_a_model_does() {
    on_both_stores(|bench| {
        let random = SeededRandom::new(17);
        for _ in 0..12 {
            bench.run("FLUSHALL");
            let mut model: Vec<BTreeSet<String>> = Vec::new();
            for key in 0..3 {
                let size = [0, 5, 60, 200, 2_500][random.below(5) as usize];
                let range = [300, 3_000][random.below(2) as usize];
                let mut set = BTreeSet::new();
                for _ in 0..size {
                    let number = random.below(range);
                    set.insert(match number {
                        // Too long for a row's key.
                        7 => "7".repeat(1_000),
                        _ => format!("m{number}"),
                    });
                }
                let words: String = set.iter().map(|member| format!(" {member}")).collect();
                if !set.is_empty() {
                    bench.run(&format!("SADD {key}{words}"));
                }
                model.push(set);
            }
            let inter: BTreeSet<_> = (&model[0] & &model[1]).iter().cloned().collect();
            let inter = &inter & &model[2];
            let union = &(&model[0] | &model[1]) | &model[2];
            let diff = &(&model[0] - &model[1]) - &model[2];
            for (operation, expected) in [("INTER", inter), ("UNION", union), ("DIFF", diff)] {
                assert_eq!(members(bench.run(&format!("S{operation} 0 1 2"))), expected);
                let count = Reply::Integer(expected.len() as i64);
                let line = format!("S{operation}STORE d 0 1 2");
                assert_eq!(bench.run(&line), count, "{line}");
                assert_eq!(members(bench.run("SMEMBERS d")), expected);
                assert_eq!(bench.run("SCARD d"), count);
                let scored = members(bench.run(&format!("Z{operation} 3 0 1 2")));
                assert_eq!(scored, expected);
                let card = format!("S{operation}CARD 3 0 1 2");
                assert_eq!(bench.run(&card), count);
                let limited = Reply::Integer(expected.len().min(40) as i64);
                assert_eq!(bench.run(&format!("{card} LIMIT 40")), limited);
                if operation == "INTER" {
                    assert_eq!(bench.run("ZINTERCARD 3 0 1 2"), count);
                }
                if operation == "UNION" {
                    // The replies of PFADD and PFCOUNT.
                    bench.run("DEL p");
                    for member in &expected {
                        bench.run(&format!("PFADD p {member}"));
                    }
                    let estimate = bench.run("PFCOUNT p");
                    assert_eq!(bench.run(&format!("{card} APPROX")), estimate);
                    let limited = bench.run(&format!("{card} LIMIT 3 APPROX"));
                    assert_eq!(limited, Reply::Integer(expected.len().min(3) as i64));
                }
            }
        }
    });
}

#[test]
fn members_of_sets_have_the_score_1_in_sorted_sets() {
    on_both_stores(|bench| {
        fill_small(bench);
        fill(bench, "large", 100);
        bench.run("ZADD z 5 y 6 m7");
        let scored = |pairs: &[(&str, f64)]| {
            let pairs = pairs.iter();
            Reply::Pairs(
                pairs
                    .map(|(member, score)| (bulk(member), Reply::Double(*score)))
                    .collect(),
            )
        };
        assert_eq!(
            bench.run("ZUNION 2 a z WEIGHTS 3 1 WITHSCORES"),
            scored(&[("x", 3.0), ("z", 3.0), ("m7", 6.0), ("y", 8.0)])
        );
        assert_eq!(
            bench.run("ZINTER 2 large z AGGREGATE SUM WITHSCORES"),
            scored(&[("m7", 7.0)])
        );
        assert_eq!(bench.run("ZDIFF 2 z large"), bulks(&["y"]));
        assert_eq!(bench.run("ZDIFF 2 b z"), bulks(&["w", "z"]));
        assert_eq!(bench.run("ZDIFFSTORE d 2 a z"), Reply::Integer(2));
        assert_eq!(bench.run("ZSCORE d x"), Reply::Double(1.0));
        assert_eq!(bench.run("ZUNIONSTORE a 1 a"), Reply::Integer(3));
        assert_eq!(bench.run("TYPE a"), Reply::Simple("zset"));
    });
}

#[test]
fn a_stored_result_conflicts_with_changes_of_its_sources() {
    let conflicts = |line: &str, meanwhile: &str| {
        let bench = Bench::cluster_like();
        fill(&bench, "s", 100);
        bench.race(line, meanwhile, false)
    };
    assert!(conflicts("SUNIONSTORE d s", "SADD s new"));
    assert!(conflicts("SINTERSTORE d s", "SREM s m1"));
    assert!(!conflicts("SUNIONSTORE d s", "SADD other new"));
}
