//! Ranges by rank, by score and by bytes; ranks and counts.

use super::{error, on_both_stores, pairs};
use quoin_engine::testing::{Bench, bulks};
use quoin_resp::reply::Reply;

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
