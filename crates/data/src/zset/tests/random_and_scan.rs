//! ZRANDMEMBER and ZSCAN.

use std::collections::{BTreeMap, HashSet};

use super::{error, on_both_stores, pairs};
use quoin_engine::testing::{Bench, bulk, bulks};
use quoin_resp::reply::Reply;

fn fill(bench: &Bench, members: usize) {
    let mut words: Vec<Vec<u8>> = vec![b"ZADD".to_vec(), b"z".to_vec()];
    for number in 0..members {
        words.push(format!("{number}.5").into_bytes());
        words.push(format!("m{number}").into_bytes());
    }
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    bench.run_words(&words);
}

fn items(reply: Reply) -> Vec<Reply> {
    match reply {
        Reply::Array(items) => items,
        other => panic!("not an array: {other:?}"),
    }
}

#[test]
fn a_count_says_whether_members_may_repeat() {
    on_both_stores(|bench| {
        fill(bench, 3);
        assert_eq!(items(bench.run("ZRANDMEMBER z -20")).len(), 20);
        assert_eq!(items(bench.run("ZRANDMEMBER z 2")).len(), 2);
        assert_eq!(
            bench.run("ZRANDMEMBER z 5 WITHSCORES"),
            pairs(&[("m2", 2.5), ("m1", 1.5), ("m0", 0.5)])
        );
        assert_eq!(bench.run("ZRANDMEMBER z 0"), bulks(&[]));
        assert_eq!(bench.run("ZRANDMEMBER none"), Reply::Null);
        assert_eq!(bench.run("ZRANDMEMBER none 3"), bulks(&[]));
        assert!(matches!(bench.run("ZRANDMEMBER z"), Reply::Bulk(_)));
    });
}

#[test]
fn counts_that_cannot_be_are_refused() {
    on_both_stores(|bench| {
        fill(bench, 1);
        for (line, expected) in [
            (
                "ZRANDMEMBER z -9223372036854775808",
                "ERR value is out of range, value must between -9223372036854775807 and \
                 9223372036854775807",
            ),
            (
                "ZRANDMEMBER z -9223372036854775807 WITHSCORES",
                "ERR value is out of range",
            ),
            (
                "ZRANDMEMBER z -9223372036854775807",
                "ERR value is out of range",
            ),
            ("ZRANDMEMBER z 1 WITHSCORE", "ERR syntax error"),
            ("ZRANDMEMBER z 1 WITHSCORES x", "ERR syntax error"),
        ] {
            assert_eq!(bench.run(line), error(expected), "{line}");
        }
    });
}

#[test]
fn distinct_members_of_a_large_set_are_distinct() {
    let bench = Bench::embedded();
    fill(&bench, 3000);
    for count in [1, 100, 900, 1100, 2999] {
        let drawn = items(bench.run(&format!("ZRANDMEMBER z {count}")));
        let distinct: HashSet<String> = drawn.iter().map(|one| format!("{one:?}")).collect();
        assert_eq!(drawn.len(), count);
        assert_eq!(distinct.len(), count);
    }
}

/// Both ways of drawing: 64 draws are made one by one from the member index, 2000 at once. The
/// chances of the former differ by a quarter, as in Redis.
#[test]
fn every_member_of_a_large_set_is_drawn_about_equally_often() {
    let bench = Bench::embedded();
    let members = 1500;
    fill(&bench, members);
    for (draws, times, deviation) in [(64, 940, 0.3_f64), (2000, 30, 0.0)] {
        let mut counts: BTreeMap<String, f64> = BTreeMap::new();
        for _ in 0..times {
            for one in items(bench.run(&format!("ZRANDMEMBER z -{draws}"))) {
                *counts.entry(format!("{one:?}")).or_default() += 1.0;
            }
        }
        let expected = f64::from(draws * times) / members as f64;
        let seen: f64 = counts
            .values()
            .map(|count| (count - expected).powi(2))
            .sum();
        let never = (members - counts.len()) as f64 * expected * expected;
        let chi_square = (seen + never) / expected;
        // For equal chances the mean is 1499 and the standard deviation 55. The limit is six
        // deviations. The seed is fixed.
        let unequal = members as f64 * expected * deviation.powi(2);
        assert!(chi_square < 1830.0 + unequal, "{draws} draws: {chi_square}");
    }
}

#[test]
fn a_small_set_is_scanned_at_once_and_in_order() {
    on_both_stores(|bench| {
        bench.run("ZADD z 0.1 a 2 b 3 ab");
        assert_eq!(
            bench.run("ZSCAN z 0"),
            Reply::Array(vec![bulk("0"), bulks(&["a", "0.1", "b", "2", "ab", "3"])])
        );
        assert_eq!(
            bench.run("ZSCAN z 17 MATCH a* COUNT 1"),
            Reply::Array(vec![bulk("0"), bulks(&["a", "0.1", "ab", "3"])])
        );
        assert_eq!(
            bench.run("ZSCAN none 0 NOSUCH"),
            Reply::Array(vec![bulk("0"), bulks(&[])])
        );
        assert_eq!(bench.run("ZSCAN z x"), error("ERR invalid cursor"));
        assert_eq!(bench.run("ZSCAN z 0 COUNT 0"), error("ERR syntax error"));
        assert_eq!(bench.run("ZSCAN z 0 NOSUCH"), error("ERR syntax error"));
    });
}

#[test]
fn a_scan_meets_every_member_that_stays_exactly_once() {
    on_both_stores(|bench| {
        fill(bench, 500);
        let long = [b'l'; 2000];
        bench.run_words(&[b"ZADD", b"z", b"0.1", &long]);
        let mut met: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        let mut cursor = b"0".to_vec();
        let mut calls = 0;
        loop {
            let reply = bench.run_words(&[b"ZSCAN", b"z", &cursor, b"COUNT", b"50"]);
            let [Reply::Bulk(next), Reply::Array(found)] = &items(reply)[..] else {
                panic!("not a cursor and members");
            };
            for pair in found.chunks(2) {
                let [Reply::Bulk(member), Reply::Bulk(score)] = pair else {
                    panic!("not a member and its score");
                };
                assert_eq!(met.insert(member.to_vec(), score.to_vec()), None);
            }
            // Concurrently added or removed members do not hide the others.
            bench.run(&format!("ZADD z 1 new{calls}"));
            bench.run(&format!("ZREM z m{calls}"));
            calls += 1;
            if next == "0" {
                break;
            }
            cursor = next.to_vec();
        }
        assert!(calls >= 8);
        for number in calls..500 {
            let member = format!("m{number}").into_bytes();
            assert_eq!(met.get(&member), Some(&format!("{number}.5").into_bytes()));
        }
        assert_eq!(met.get(&long[..]), Some(&b"0.10000000000000001".to_vec()));
    });
}
