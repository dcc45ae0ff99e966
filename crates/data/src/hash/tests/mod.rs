//! Hash commands on both kinds of store, with small hashes and with large ones, which are stored in
//! rows. The expected replies come from Redis's source. The differential test goes further.

use quoin_engine::testing::{Bench, bulk, bulks, planned};
use quoin_resp::reply::Reply;

mod expiry;
mod expiry_model;

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

fn on_both_stores(test: impl Fn(&Bench)) {
    test(&Bench::embedded());
    test(&Bench::cluster_like());
}

/// The same with a hash `h` in rows: it has a hundred more fields `f0`, `f1`….
fn with_rows(test: impl Fn(&Bench)) {
    on_both_stores(|bench| {
        fill(bench, "h");
        test(bench);
    });
}

fn fill(bench: &Bench, key: &str) {
    let pairs: String = (0..100).map(|number| format!(" f{number} v")).collect();
    bench.run(&format!("HSET {key}{pairs}"));
}

fn error(line: &str) -> Reply {
    Reply::Error(line.to_owned())
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(Reply, Reply)> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| (bulk(name), bulk(value)))
        .collect()
}

#[test]
fn fields_are_set_and_read() {
    for test in [on_both_stores, with_rows] as [fn(fn(&Bench)); 2] {
        test(|bench| {
            assert_eq!(bench.run("HSET h a 1 b 2 a 3"), Reply::Integer(2));
            assert_eq!(bench.run("HSET h a 4 c 5"), Reply::Integer(1));
            assert_eq!(bench.run("HMSET h c 6"), Reply::OK);
            assert_eq!(bench.run("HGET h a"), bulk("4"));
            assert_eq!(bench.run("HGET h nosuch"), Reply::Null);
            let expected = Reply::Array(vec![bulk("6"), Reply::Null, bulk("2"), bulk("6")]);
            assert_eq!(bench.run("HMGET h c nosuch b c"), expected);
            assert_eq!(bench.run("HEXISTS h a"), Reply::Integer(1));
            assert_eq!(bench.run("HEXISTS h nosuch"), Reply::Integer(0));
            assert_eq!(bench.run("HSTRLEN h a"), Reply::Integer(1));
            assert_eq!(bench.run("HSTRLEN h nosuch"), Reply::Integer(0));
            assert_eq!(bench.run("HSETNX h a 9"), Reply::Integer(0));
            assert_eq!(bench.run("HSETNX h d 9"), Reply::Integer(1));
            let Reply::Integer(length) = bench.run("HLEN h") else {
                panic!("no number");
            };
            assert_eq!(bench.run("HDEL h a a nosuch d"), Reply::Integer(2));
            assert_eq!(bench.run("HLEN h"), Reply::Integer(length - 2));
        });
    }
}

#[test]
fn a_small_hash_is_answered_in_the_order_in_which_it_was_filled() {
    on_both_stores(|bench| {
        bench.run("HSET h z 1 a 2 m 3 z 4");
        let expected = pairs(&[("z", "4"), ("a", "2"), ("m", "3")]);
        assert_eq!(bench.run("HGETALL h"), Reply::Map(expected.clone()));
        assert_eq!(bench.run("HKEYS h"), bulks(&["z", "a", "m"]));
        assert_eq!(bench.run("HVALS h"), bulks(&["4", "2", "3"]));
        assert_eq!(
            bench.run("HRANDFIELD h 3 WITHVALUES"),
            Reply::Pairs(expected)
        );
        let items = bulks(&["z", "4", "a", "2", "m", "3"]);
        assert_eq!(
            bench.run("HSCAN h 0 COUNT 1"),
            Reply::Array(vec![bulk("0"), items])
        );
    });
}

#[test]
fn a_key_ceases_to_exist_with_its_last_field() {
    with_rows(|bench| {
        bench.run("HSET small a 1");
        assert_eq!(bench.run("HDEL small a"), Reply::Integer(1));
        let names: String = (0..100).map(|number| format!(" f{number}")).collect();
        assert_eq!(bench.run(&format!("HDEL h{names}")), Reply::Integer(100));
        assert_eq!(bench.run("EXISTS small h"), Reply::Integer(0));
        assert_eq!(bench.run("TYPE h"), Reply::Simple("none"));
        assert_eq!(bench.run("HGETALL h"), Reply::Map(Vec::new()));
        assert_eq!(bench.run("HRANDFIELD h -5"), bulks(&[]));
        assert_eq!(bench.run("HRANDFIELD h"), Reply::Null);
        assert_eq!(bench.run("HSCAN h 0 NOSUCH"), bench.run("HSCAN none 0"));
        assert_eq!(bench.run("RPUSH h x"), Reply::Integer(1));
        assert_eq!(bench.run("HGET h x"), error(WRONG_TYPE));
    });
}

#[test]
fn numbers_are_added() {
    for test in [on_both_stores, with_rows] as [fn(fn(&Bench)); 2] {
        test(|bench| {
            assert_eq!(bench.run("HINCRBY h n 5"), Reply::Integer(5));
            assert_eq!(bench.run("HINCRBY h n -7"), Reply::Integer(-2));
            assert_eq!(bench.run("HINCRBYFLOAT h n 0.1"), bulk("-1.9"));
            assert_eq!(bench.run("HINCRBYFLOAT h x 0.1"), bulk("0.1"));
            assert_eq!(bench.run("HINCRBYFLOAT h x 0.2"), bulk("0.3"));
            assert_eq!(bench.run("HINCRBYFLOAT h y 3.0e3"), bulk("3000"));
            bench.run("HSET h text abc most 9223372036854775807 inf inf");
            for (line, expected) in [
                ("HINCRBY h text 1", "ERR hash value is not an integer"),
                ("HINCRBY h n 1", "ERR hash value is not an integer"),
                (
                    "HINCRBY h most 1",
                    "ERR increment or decrement would overflow",
                ),
                (
                    "HINCRBY h most x",
                    "ERR value is not an integer or out of range",
                ),
                ("HINCRBYFLOAT h text 1", "ERR hash value is not a float"),
                ("HINCRBYFLOAT h n x", "ERR value is not a valid float"),
                ("HINCRBYFLOAT h n inf", "ERR value is NaN or Infinity"),
                (
                    "HINCRBYFLOAT h inf 1",
                    "ERR increment would produce NaN or Infinity",
                ),
            ] {
                assert_eq!(bench.run(line), error(expected), "{line}");
            }
            assert_eq!(bench.run("HGET h most"), bulk("9223372036854775807"));
        });
    }
}

#[test]
fn what_is_wrong_is_told_before_anything_changes() {
    on_both_stores(|bench| {
        bench.run("RPUSH l x");
        for (line, expected) in [
            (
                "HSET h a 1 b",
                "ERR wrong number of arguments for 'hset' command",
            ),
            (
                "hMsEt l a 1 b",
                "ERR wrong number of arguments for 'hmset' command",
            ),
            ("HSET l a 1", WRONG_TYPE),
            ("HGETALL l", WRONG_TYPE),
            ("HINCRBY l a 1", WRONG_TYPE),
            (
                "HRANDFIELD h 1.5",
                "ERR value is not an integer or out of range",
            ),
            ("HRANDFIELD h 1 WITHVALUES x", "ERR syntax error"),
            ("HRANDFIELD h 1 WITHSCORES", "ERR syntax error"),
            (
                "HRANDFIELD h 4611686018427387904 WITHVALUES",
                "ERR value is out of range",
            ),
            ("HSCAN h x", "ERR invalid cursor"),
            ("HSCAN l 0", WRONG_TYPE),
        ] {
            assert_eq!(bench.run(line), error(expected), "{line}");
        }
        assert_eq!(bench.run("EXISTS h"), Reply::Integer(0));
    });
}

#[test]
fn a_large_hash_is_drawn_from_and_iterated() {
    with_rows(|bench| {
        let Reply::Array(drawn) = bench.run("HRANDFIELD h 50") else {
            panic!("no array");
        };
        assert_eq!(drawn.len(), 50);
        let mut distinct = drawn.clone();
        distinct.dedup();
        assert_eq!(distinct.len(), 50);
        let Reply::Pairs(drawn) = bench.run("HRANDFIELD h -300 WITHVALUES") else {
            panic!("no pairs");
        };
        assert_eq!(drawn.len(), 300);
        assert!(drawn.iter().all(|(_, value)| *value == bulk("v")));
        let (mut cursor, mut found) = ("0".to_owned(), 0);
        loop {
            let reply = bench.run(&format!("HSCAN h {cursor} COUNT 7 MATCH f?"));
            let Reply::Array(parts) = reply else {
                panic!("no array");
            };
            let [Reply::Bulk(next), Reply::Array(items)] = parts.as_slice() else {
                panic!("{parts:?}");
            };
            found += items.len() / 2;
            cursor = String::from_utf8(next.to_vec()).unwrap();
            if cursor == "0" {
                break;
            }
        }
        assert_eq!(found, 10);
    });
}

#[test]
fn random_answers_have_a_bound() {
    on_both_stores(|bench| {
        bench.run("HSET h a 1");
        let refused = error("ERR value is out of range");
        assert_eq!(bench.run("HRANDFIELD h -1000001"), refused);
        assert_eq!(bench.run("HRANDFIELD none -1000001"), bulks(&[]));
    });
}

#[test]
fn fields_of_a_large_hash_do_not_get_into_each_others_way() {
    let conflicts = |line: &str, meanwhile: &str| {
        let bench = Bench::cluster_like();
        fill(&bench, "h");
        bench.race(line, meanwhile, false)
    };
    for line in [
        "HSET h f1 w",
        "HSET h new w",
        "HINCRBY h number 1",
        "HSETNX h new 1",
        "HDEL h f1 f2",
        "HINCRBYFLOAT h number 1",
    ] {
        for meanwhile in [
            "HSET h f3 w",
            "HSET h other w",
            "HDEL h f3",
            "HINCRBY h n 1",
        ] {
            assert!(!conflicts(line, meanwhile), "{line} {meanwhile}");
        }
    }
    assert!(conflicts("HSET h f1 w", "HSET h f1 x"));
    assert!(conflicts("HSET h new w", "HSET h new x"));
    assert!(conflicts("HINCRBY h n 1", "HINCRBY h n 1"));
    assert!(conflicts("HDEL h f1", "HDEL h f1"));
    assert!(conflicts("HSETNX h new 1", "HSET h new 2"));
}

#[test]
fn two_servers_count_in_one_hash_and_lose_nothing() {
    const ROUNDS: i64 = 100;
    let bench = Bench::cluster_like();
    let other = bench.another_server();
    let calls = |field: &str| {
        (0..10)
            .map(|_| planned(&format!("HINCRBY h {field} 1")))
            .collect()
    };
    for round in 1..=ROUNDS {
        let (ours, theirs) = bench.block_on(async {
            futures_util::join!(bench.executor.submit(calls("a")), other.submit(calls("b")))
        });
        for finished in [ours, theirs] {
            let last = finished.unwrap().replies.pop();
            assert_eq!(last, Some(Reply::Integer(round * 10)));
        }
    }
    let count = (ROUNDS * 10).to_string();
    assert_eq!(bench.run("HMGET h a b"), bulks(&[&count, &count]));
}

#[test]
fn several_values_are_answered_up_to_a_bound() {
    let bench = Bench::embedded();
    let value = vec![b'v'; 60_000_000];
    bench.run_words(&[b"HSET", b"h", b"f", &value]);
    let line = format!("HMGET h{}", " f".repeat(9));
    assert_eq!(
        bench.run(&line),
        error("ERR too long an answer of HMGET (more than 536870912 bytes)")
    );
    assert_eq!(bench.run("HSTRLEN h f"), Reply::Integer(60_000_000));
}

#[test]
fn hscan_leaves_values_out() {
    on_both_stores(|bench| {
        bench.run("HSET h a 1 b 2 c 3");
        let names = |names| Reply::Array(vec![bulk("0"), bulks(names)]);
        let reply = bench.run("HSCAN h 0 novalues COUNT 10");
        assert_eq!(reply, names(&["a", "b", "c"]));
        let reply = bench.run("HSCAN h 0 MATCH b NOVALUES");
        assert_eq!(reply, names(&["b"]));
    });
}
