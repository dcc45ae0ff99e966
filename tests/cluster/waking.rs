//! Everything that fills a key through one server wakes clients that wait for it on the other.

use std::time::Duration;

use quoin_resp::reply::Reply;

use crate::bench::{Bench, bulk, bulks};

/// Runs `before` on the first server, waits on the second, fills by `line` on the first.
fn wakes(bench: &Bench, before: &str, wait: &str, line: &str, expected: &Reply) {
    for cleared in ["0:DEL key other", "3:DEL key other"] {
        bench.run(0, cleared);
    }
    if !before.is_empty() {
        bench.run(0, before);
    }
    let waiting = bench.wait(1, wait);
    match line.strip_prefix("EXEC ") {
        Some(lines) => {
            let lines: Vec<&str> = lines.split("; ").collect();
            drop(bench.block_on(bench.servers[0].exec(&lines)));
        }
        None => drop(bench.run(0, line)),
    }
    assert_eq!(&bench.served(waiting), expected, "{line}");
    assert!(bench.servers[1].0.waiters().is_empty());
}

pub fn every_command_of_the_other_server_that_fills_a_list_wakes(bench: &Bench) {
    for line in [
        "RPUSH key a",
        "LPUSH key a",
        "RENAME other key",
        "RENAMENX other key",
        "COPY other key",
        "COPY other key REPLACE",
        "LMOVE other key LEFT LEFT",
        "RPOPLPUSH other key",
        "BLMOVE other key LEFT LEFT 0",
        "SORT other BY nosort STORE key",
        "EXEC RPUSH key a",
        "EXEC RPUSH key b; DEL key; RPUSH key a",
        "EXEC RENAME other key",
    ] {
        let expected = bulks(&["key", "a"]);
        wakes(bench, "RPUSH other a", "BLPOP key 0", line, &expected);
    }
    for line in ["3:MOVE key 0", "3:COPY key key DB 0", "EXEC 3:MOVE key 0"] {
        let expected = bulks(&["key", "a"]);
        wakes(bench, "3:RPUSH key a", "BLPOP key 0", line, &expected);
    }
    wakes(
        bench,
        "",
        "BLMPOP 0 1 key RIGHT COUNT 2",
        "RPUSH key a b",
        &Reply::Array(vec![bulk("key"), bulks(&["b", "a"])]),
    );
    wakes(
        bench,
        "",
        "BRPOPLPUSH key other 0",
        "RPUSH key a",
        &bulk("a"),
    );
}

pub fn every_command_of_the_other_server_that_fills_a_sorted_set_wakes(bench: &Bench) {
    for line in [
        "ZADD key 1 a",
        "ZINCRBY key 1 a",
        "RENAME other key",
        "COPY other key",
        "ZUNIONSTORE key 1 other",
        "ZINTERSTORE key 1 other",
        "ZDIFFSTORE key 1 other",
        "ZRANGESTORE key other 0 -1",
        "EXEC ZADD key 1 a",
    ] {
        let expected = Reply::Array(vec![bulk("key"), bulk("a"), Reply::Double(1.0)]);
        wakes(bench, "ZADD other 1 a", "BZPOPMIN key 0", line, &expected);
        wakes(bench, "ZADD other 1 a", "BZPOPMAX key 0", line, &expected);
    }
}

pub fn every_command_of_the_other_server_that_fills_a_priority_queue_wakes(bench: &Bench) {
    for line in [
        "PQ.PUSH key 1 a",
        "RENAME other key",
        "COPY other key",
        "PQ.MOVE other key MIN",
        "PQ.MOVE other key MAX",
        "EXEC PQ.PUSH key 0 b; PQ.POPMIN key; PQ.PUSH key 1 a",
    ] {
        let expected = Reply::Array(vec![bulk("key"), bulk("a"), Reply::Whole(1)]);
        wakes(
            bench,
            "PQ.PUSH other 1 a",
            "PQ.BPOPMIN key 0",
            line,
            &expected,
        );
        wakes(
            bench,
            "PQ.PUSH other 1 a",
            "PQ.BPOPMAX key 0",
            line,
            &expected,
        );
    }
}

pub fn a_key_of_another_type_that_makes_way_wakes(bench: &Bench) {
    let mut waiting = bench.wait(1, "BLPOP key 0");
    bench.run(0, "ZADD key 1 a");
    std::thread::sleep(Duration::from_millis(50));
    assert!(waiting.is_waiting());
    bench.run(0, "RPUSH other b");
    bench.run(0, "RENAME other key");
    assert_eq!(bench.served(waiting), bulks(&["key", "b"]));
}

pub fn a_key_that_has_expired_and_come_anew_wakes(bench: &Bench) {
    let waiting = bench.wait(1, "BLPOP key 0");
    bench.run(0, "ZADD key 1 a");
    bench.run(0, "PEXPIRE key 100");
    std::thread::sleep(Duration::from_millis(150));
    assert_eq!(bench.run(0, "RPUSH key b"), Reply::Integer(1));
    assert_eq!(bench.served(waiting), bulks(&["key", "b"]));
}

pub fn databases_that_the_other_server_exchanges_wake(bench: &Bench) {
    bench.run(0, "3:RPUSH list a");
    bench.run(0, "3:ZADD set 1 a");
    let list = bench.wait(1, "BLPOP list 0");
    let set = bench.wait(1, "BZPOPMIN set 0");
    let mut other_type = bench.wait(1, "BZPOPMIN list 0");
    bench.run(0, "SWAPDB 0 3");
    assert_eq!(bench.served(list), bulks(&["list", "a"]));
    let expected = Reply::Array(vec![bulk("set"), bulk("a"), Reply::Double(1.0)]);
    assert_eq!(bench.served(set), expected);
    assert!(other_type.is_waiting());
}

/// Exchanges meet the watch on the database at every stage of its being armed.
pub fn databases_that_are_exchanged_again_and_again_wake(bench: &Bench) {
    for round in 0..60 {
        let waiting = bench.wait(1, "BLPOP list 0");
        for _ in 0..=(round % 3) * 2 {
            bench.run(0, "SWAPDB 0 3");
            std::thread::sleep(Duration::from_micros(round % 7 * 300));
        }
        bench.run(0, "RPUSH list a");
        assert_eq!(bench.served(waiting), bulks(&["list", "a"]), "{round}");
    }
}

pub fn a_flushed_database_wakes_when_it_is_filled(bench: &Bench) {
    for flush in ["FLUSHDB", "FLUSHALL", "3:FLUSHALL"] {
        bench.run(0, "RPUSH other a");
        let waiting = bench.wait(1, "BLPOP list 0");
        bench.run(0, flush);
        bench.run(0, "RPUSH list b");
        assert_eq!(bench.served(waiting), bulks(&["list", "b"]), "{flush}");
    }
}

pub fn a_chain_of_moves_over_both_servers_is_followed(bench: &Bench) {
    for _ in 0..20 {
        let first = bench.wait(1, "BRPOPLPUSH a b 0");
        let second = bench.wait(0, "BLMOVE b c LEFT RIGHT 0");
        let third = bench.wait(1, "BLPOP c 0");
        bench.run(0, "RPUSH a job");
        assert_eq!(bench.served(first), bulk("job"));
        assert_eq!(bench.served(second), bulk("job"));
        assert_eq!(bench.served(third), bulks(&["c", "job"]));
    }
}

pub fn one_waiter_for_several_keys_is_served_once(bench: &Bench) {
    for _ in 0..20 {
        let waiting = bench.wait(1, "BLPOP a b 0");
        let (left, right) = (&bench.servers[0], &bench.servers[1]);
        bench.block_on(async { tokio::join!(left.run("RPUSH a 1"), right.run("RPUSH b 1")) });
        drop(bench.served(waiting));
        std::thread::sleep(Duration::from_millis(5));
        let left = bench.block_on(bench.servers[0].exec(&["LLEN a", "LLEN b", "DEL a b"]));
        let Reply::Array(left) = left else {
            panic!("{left:?}")
        };
        let is_one = |reply: &&Reply| **reply == Reply::Integer(1);
        assert_eq!(left.iter().take(2).filter(is_one).count(), 1, "{left:?}");
    }
}

pub fn who_waits_for_several_keys_is_not_overtaken(bench: &Bench) {
    for round in 0..30 {
        let first = bench.wait(1, "BLMPOP 0 2 a b LEFT COUNT 1");
        let second = bench.wait(1, "BLMPOP 0 2 a b RIGHT COUNT 10");
        let third = bench.wait(1, "BLMPOP 0 2 a b LEFT COUNT 10");
        let lines = ["RPUSH a 1 2 3", "RPUSH b 4 5 6"];
        drop(bench.block_on(bench.servers[0].exec(&lines)));
        let popped = |key: &str, items: &[&str]| Reply::Array(vec![bulk(key), bulks(items)]);
        assert_eq!(bench.served(first), popped("a", &["1"]), "{round}");
        assert_eq!(bench.served(second), popped("a", &["3", "2"]), "{round}");
        assert_eq!(
            bench.served(third),
            popped("b", &["4", "5", "6"]),
            "{round}"
        );
    }
}
