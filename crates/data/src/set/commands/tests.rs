//! Set commands on both kinds of store, with small sets and with large ones, which lie in rows.
//! What they must answer is Redis's source; the differential test goes further.

use std::collections::BTreeSet;

use quoin_base::random::{Random, SeededRandom};
use quoin_engine::testing::{Bench, bulk};
use quoin_resp::reply::Reply;

mod algebra;

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

fn on_both_stores(test: impl Fn(&Bench)) {
    test(&Bench::embedded());
    test(&Bench::cluster_like());
}

/// The same with a set `s` that has, besides, so many members `m0`, `m1`… that it lies in rows.
fn with_rows(test: impl Fn(&Bench)) {
    on_both_stores(|bench| {
        fill(bench, "s", 100);
        test(bench);
    });
}

fn fill(bench: &Bench, key: &str, count: usize) {
    let members: String = (0..count).map(|number| format!(" m{number}")).collect();
    bench.run(&format!("SADD {key}{members}"));
}

fn error(line: &str) -> Reply {
    Reply::Error(line.to_owned())
}

fn set(members: &[&str]) -> Reply {
    Reply::Set(members.iter().map(|member| bulk(member)).collect())
}

/// The members in a reply, in their order.
fn members(reply: Reply) -> BTreeSet<String> {
    let (Reply::Set(items) | Reply::Array(items)) = reply else {
        panic!("{reply:?}");
    };
    let count = items.len();
    let texts = items.into_iter().map(|item| match item {
        Reply::Bulk(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    });
    let distinct: BTreeSet<String> = texts.collect();
    assert_eq!(distinct.len(), count);
    distinct
}

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
        // A source that is not there is not a reason to look at the destination.
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

#[test]
fn every_member_is_popped_once() {
    for count in [1, 40, 150, 3_000] {
        on_both_stores(|bench| {
            fill(bench, "s", count);
            let mut popped = BTreeSet::new();
            for round in 0.. {
                let some = match round % 3 {
                    0 => match bench.run("SPOP s") {
                        Reply::Null => break,
                        one => members(Reply::Array(vec![one])),
                    },
                    _ => members(bench.run(&format!("SPOP s {}", count / 4 + round % 2))),
                };
                let before = popped.len();
                let some_count = some.len();
                popped.extend(some);
                assert_eq!(popped.len(), before + some_count);
            }
            assert_eq!(popped.len(), count);
            assert_eq!(bench.run("EXISTS s"), Reply::Integer(0));
        });
    }
}

#[test]
fn each_member_is_drawn_as_often_as_another() {
    let bench = Bench::embedded();
    // Many at once, and so few at once of a large set that each is drawn by itself.
    for (count, at_once) in [(10, 10), (100, 100), (400, 400), (400, 10)] {
        fill(&bench, "s", count);
        let mut times = vec![0; count];
        for _ in 0..20 * count / at_once {
            let Reply::Array(drawn) = bench.run(&format!("SRANDMEMBER s -{at_once}")) else {
                panic!("no array");
            };
            for one in drawn {
                let Reply::Bulk(name) = one else {
                    panic!("{one:?}");
                };
                let number: usize = str::from_utf8(&name[1..]).unwrap().parse().unwrap();
                times[number] += 1;
            }
        }
        // 20 are expected, with a deviation of 4.5.
        assert!(
            times.iter().all(|times| (1..50).contains(times)),
            "{times:?}"
        );
        bench.run("DEL s");
    }
}

#[test]
fn pops_conflict_on_what_they_take_only() {
    let conflicts = |line: &str, meanwhile: &str, is_strict: bool| {
        let bench = Bench::cluster_like();
        fill(&bench, "s", 100);
        bench.race(line, meanwhile, is_strict)
    };
    for meanwhile in ["SADD s new", "SADD s m1"] {
        assert!(!conflicts("SPOP s", meanwhile, false), "{meanwhile}");
        assert!(!conflicts("SPOP s 1000", meanwhile, false), "{meanwhile}");
    }
    assert!(conflicts("SPOP s 1000", "SREM s m1", false));
    assert!(conflicts("SPOP s 1000", "SPOP s", false));
    // Within EXEC that there is no more may be what the rest depends on.
    assert!(conflicts("SPOP s 1000", "SADD s new", true));
    for line in ["SADD s new", "SREM s m1", "SMOVE s t m1"] {
        for meanwhile in ["SADD s other", "SREM s m2", "SMOVE s u m2"] {
            assert!(!conflicts(line, meanwhile, false), "{line} {meanwhile}");
        }
    }
    assert!(conflicts("SREM s m1", "SREM s m1", false));
    assert!(conflicts("SADD s new", "SADD s new", false));
}

#[test]
fn pops_of_two_servers_take_each_member_once() {
    let bench = Bench::cluster_like();
    fill(&bench, "s", 300);
    let other = bench.another_server();
    let random = SeededRandom::new(5);
    let mut popped = BTreeSet::new();
    loop {
        let line = format!("SPOP s {}", random.below(9) + 1);
        let calls = || vec![quoin_engine::testing::planned(&line)];
        let (ours, theirs) = bench.block_on(async {
            futures_util::join!(bench.executor.submit(calls()), other.submit(calls()))
        });
        let mut is_over = true;
        for finished in [ours, theirs] {
            for reply in finished.unwrap().replies {
                let some = members(reply);
                is_over &= some.is_empty();
                for one in some {
                    assert!(popped.insert(one));
                }
            }
        }
        if is_over {
            break;
        }
    }
    assert_eq!(popped.len(), 300);
}
