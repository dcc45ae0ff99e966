//! WATCH on one server, changes on the other.

use std::time::Duration;

use quoin_resp::reply::Reply;

use crate::bench::Bench;

pub fn every_change_on_the_other_server_spoils_a_transaction(bench: &Bench) {
    let [watching, changing] = &bench.servers;
    for (before, change) in [
        ("DEL key", "RPUSH key a"),
        ("RPUSH key a", "RPUSH key b"),
        ("RPUSH key a", "LPUSH key b"),
        ("RPUSH key a b", "LPOP key"),
        ("RPUSH key a", "LPOP key"),
        ("RPUSH key a", "LSET key 0 b"),
        ("RPUSH key a", "LSET key 0 a"),
        ("RPUSH key a b", "LTRIM key 0 0"),
        ("RPUSH key a b", "LREM key 0 a"),
        ("RPUSH key a b", "LINSERT key AFTER a c"),
        ("RPUSH key a b", "LMOVE key key LEFT RIGHT"),
        ("ZADD key 1 a", "ZADD key 2 a"),
        ("ZADD key 1 a", "ZINCRBY key 1 a"),
        ("ZADD key 1 a", "ZADD key 1 b"),
        ("ZADD key 1 a", "ZREM key a"),
        ("ZADD key 1 a 2 b", "ZPOPMIN key"),
        ("ZADD key 1 a", "DEL key"),
        ("ZADD key 1 a", "UNLINK key"),
        ("RPUSH key a", "RENAME key other"),
        ("RPUSH key a", "MOVE key 3"),
        ("RPUSH key a", "EXPIRE key 100"),
        ("RPUSH key a", "FLUSHDB"),
        ("RPUSH key a", "FLUSHALL"),
        ("RPUSH key a", "SWAPDB 0 3"),
        ("DEL key", "RENAME full key"),
        ("DEL key", "COPY full key"),
    ] {
        for line in ["3:DEL key", "DEL key other", "RPUSH full a", before] {
            bench.run(1, line);
        }
        let replies = bench.block_on(async {
            let watch = watching.watch(&["nothing", "key"]).await;
            changing.run(change).await;
            watching.exec_watching(watch, &["RPUSH done a"]).await
        });
        assert_eq!(replies, Reply::NullArray, "{before}, then {change}");
    }
    // An expiry.
    bench.run(1, "DEL key");
    bench.run(1, "RPUSH key a");
    bench.run(1, "PEXPIRE key 1000");
    let replies = bench.block_on(async {
        let watch = watching.watch(&["key"]).await;
        tokio::time::sleep(Duration::from_millis(1_050)).await;
        watching.exec_watching(watch, &["RPUSH done a"]).await
    });
    assert_eq!(replies, Reply::NullArray);
    assert_eq!(bench.run(0, "EXISTS done"), Reply::Integer(0));
}

pub fn untouched_keys_spoil_nothing(bench: &Bench) {
    let [watching, changing] = &bench.servers;
    for before in ["DEL key", "RPUSH key a", "ZADD set 1 a"] {
        bench.run(1, before);
        for other in [
            "RPUSH other a",
            "LLEN key",
            "ZADD other_set 1 a",
            "DEL nothing",
            "LREM key 0 nothing",
            "ZADD set 1 a",
            "ZREM set nothing",
            "PERSIST key",
            "3:FLUSHDB",
            "SWAPDB 4 5",
        ] {
            if before != "ZADD set 1 a" && other == "ZADD set 1 a" {
                continue;
            }
            let replies = bench.block_on(async {
                let watch = watching.watch(&["key", "set"]).await;
                changing.run(other).await;
                watching.exec_watching(watch, &["RPUSH done a"]).await
            });
            let is_done = matches!(&replies, Reply::Array(replies) if replies.len() == 1);
            assert!(is_done, "{before}, then {other}: {replies:?}");
        }
    }
}

pub fn watching_costs_pushes_no_conflict(bench: &Bench) {
    let [watching, pushing] = &bench.servers;
    let injected = pushing.conflicts();
    bench.run(1, "RPUSH key a");
    bench.block_on(async {
        let pushes = async {
            for _ in 0..100 {
                pushing.run("RPUSH key a").await;
            }
        };
        let watches = async {
            for _ in 0..50 {
                let watch = watching.watch(&["key"]).await;
                tokio::time::sleep(Duration::from_millis(1)).await;
                watching
                    .exec_watching(watch, &["LLEN key", "RPUSH done a"])
                    .await;
            }
        };
        tokio::join!(pushes, watches)
    });
    if !bench.has_faults {
        assert_eq!(pushing.conflicts() - injected, 0);
    }
    assert_eq!(bench.run(0, "LLEN key"), Reply::Integer(101));
}
