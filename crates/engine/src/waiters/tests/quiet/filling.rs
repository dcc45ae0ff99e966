//! Nothing that fills a key goes unnoticed, whether this server does it or another.

use super::{at_once, until_quiet};
use crate::testing::{Bench, bulk, bulks, invocation, planned, words_of};
use crate::{Call, Executor};
use quoin_resp::reply::Reply;

/// A type that clients wait for.
struct Filled {
    /// Fills `other`.
    source: &'static str,
    /// Waits for `key`.
    pop: &'static str,
    /// The reply to it.
    popped: Reply,
    /// Commands that fill `key` from `other`, from `key` of database 3, or from nothing. `D:` runs
    /// in database 3.
    ways: &'static [&'static str],
}

fn types() -> [Filled; 3] {
    [
        Filled {
            source: "RPUSH other a",
            pop: "BLPOP none key 0",
            popped: bulks(&["key", "a"]),
            ways: &[
                "LPUSH key a",
                "RPUSH key a",
                "RENAME other key",
                "RENAMENX other key",
                "COPY other key",
                "D:MOVE key 0",
                "D:COPY key key DB 0",
                "SWAPDB 0 3",
                "SWAPDB 3 0",
                "LMOVE other key LEFT LEFT",
                "RPOPLPUSH other key",
                "BLMOVE other key LEFT LEFT 0",
                "BRPOPLPUSH other key 0",
                "SORT other BY nosort STORE key",
                "EVAL return(redis.call('RPUSH','key','a')) 1 key",
                "EVAL return(redis.call('RENAME','other','key')) 0",
                "RESTORE",
            ],
        },
        Filled {
            source: "ZADD other 1 a",
            pop: "BZPOPMIN none key 0",
            popped: Reply::Array(vec![bulk("key"), bulk("a"), Reply::Double(1.0)]),
            ways: &[
                "ZADD key 1 a",
                "ZADD key INCR 1 a",
                "ZINCRBY key 1 a",
                "RENAME other key",
                "D:MOVE key 0",
                "ZUNIONSTORE key 1 other",
                "ZINTERSTORE key 1 other",
                "ZDIFFSTORE key 1 other",
                "ZRANGESTORE key other 0 -1",
                "SWAPDB 0 3",
                "RESTORE",
            ],
        },
        Filled {
            source: "PQ.PUSH other 1 a",
            pop: "PQ.BPOPMIN none key 0",
            popped: Reply::Array(vec![bulk("key"), bulk("a"), Reply::Whole(1)]),
            ways: &[
                "PQ.PUSH key 1 a",
                "PQ.MOVE other key MIN",
                "COPY other key",
                "RENAME other key",
                "SWAPDB 0 3",
            ],
        },
    ]
}

/// Runs a command on a server and expects no error.
fn run_on(bench: &Bench, server: &Executor, call: Call) -> Reply {
    let finished = bench.block_on(server.submit(vec![call])).unwrap();
    let reply = finished.replies.into_iter().next().unwrap();
    assert!(!matches!(reply, Reply::Error(_)), "{reply:?}");
    reply
}

impl Filled {
    /// Fills `other`, and `key` of database 3. With `has_been_there`, `key` has existed before.
    fn prepare(&self, bench: &Bench, has_been_there: bool) {
        bench.run(self.source);
        bench.run("COPY other key DB 3");
        if has_been_there {
            bench.run("COPY other key");
            assert_eq!(at_once(bench, self.pop), self.popped);
        }
    }

    fn fill(&self, bench: &Bench, server: &Executor, way: &str) {
        if way == "RESTORE" {
            let Reply::Bulk(dump) = run_on(bench, server, planned("DUMP other")) else {
                panic!("no dump");
            };
            let words: [&[u8]; 4] = [b"RESTORE", b"key", b"0", &dump];
            run_on(bench, server, Call::command(invocation(0, &words), true));
            return;
        }
        let (database, line) = match way.strip_prefix("D:") {
            Some(line) => (3, line),
            None => (0, way),
        };
        let invocation = invocation(database, &words_of(line));
        run_on(bench, server, Call::command(invocation, true));
    }
}

/// Runs a test for each way to fill a key, with and without a key that existed before.
fn for_each_way(test: impl Fn(&Filled, &str, bool)) {
    for filled in types() {
        for way in filled.ways {
            for has_been_there in [false, true] {
                test(&filled, way, has_been_there);
            }
        }
    }
}

#[test]
fn what_this_server_puts_into_a_quiet_key_is_found_by_the_next_client() {
    for_each_way(|filled, way, has_been_there| {
        let bench = Bench::cluster_like();
        filled.prepare(&bench, has_been_there);
        let waiting = bench.wait(filled.pop);
        until_quiet(&bench, &waiting);
        assert!(bench.executor.waiters().cancel(&waiting.waiter));
        filled.fill(&bench, &bench.executor, way);
        assert_eq!(at_once(&bench, filled.pop), filled.popped, "{way}");
    });
}

#[test]
fn what_the_only_server_puts_into_a_key_that_a_client_found_empty_is_found() {
    for_each_way(|filled, way, has_been_there| {
        let bench = Bench::embedded();
        filled.prepare(&bench, has_been_there);
        let waiting = bench.wait(filled.pop);
        assert!(bench.executor.waiters().cancel(&waiting.waiter));
        filled.fill(&bench, &bench.executor, way);
        assert_eq!(at_once(&bench, filled.pop), filled.popped, "{way}");
    });
}

#[test]
fn what_another_server_puts_into_a_quiet_key_wakes_one_that_has_not_checked() {
    for_each_way(|filled, way, has_been_there| {
        let bench = Bench::cluster_like();
        let other = bench.another_server();
        filled.prepare(&bench, has_been_there);
        let waiters = bench.executor.waiters();
        let first = bench.wait(filled.pop);
        until_quiet(&bench, &first);
        let parked = waiters.parked_quietly();
        let unseen = bench.wait(filled.pop);
        assert_eq!(waiters.parked_quietly(), parked + 1);
        assert!(waiters.cancel(&first.waiter));
        filled.fill(&bench, &other, way);
        assert_eq!(unseen.reply(&bench), filled.popped, "{way}");
    });
}

#[test]
fn a_quiet_key_that_this_server_makes_one_of_another_type_is_an_error_for_the_next_client() {
    for has_been_there in [false, true] {
        for line in ["SET key x", "HSET key f x", "SADD key x", "XADD key * f x"] {
            for bench in [Bench::cluster_like(), Bench::embedded()] {
                let [lists, ..] = types();
                lists.prepare(&bench, has_been_there);
                let waiting = bench.wait(lists.pop);
                if bench.executor.plans() {
                    until_quiet(&bench, &waiting);
                }
                assert!(bench.executor.waiters().cancel(&waiting.waiter));
                bench.run(line);
                let reply = at_once(&bench, lists.pop);
                assert!(matches!(&reply, Reply::Error(line) if line.starts_with("WRONGTYPE")));
            }
        }
    }
}
