//! XREAD and XREADGROUP with BLOCK.

use super::*;
use quoin_engine::Reaper;

#[test]
fn all_that_wait_for_a_stream_are_told_of_an_entry() {
    on_both_stores(|bench| {
        fill(bench, "s", 3);
        let waiting = [
            bench.wait("XREAD BLOCK 0 STREAMS s $"),
            bench.wait("XREAD BLOCK 0 STREAMS none s $ 3"),
            bench.wait("XREAD BLOCK 0 COUNT 1 STREAMS s t 3-0 0"),
        ];
        let mut later = bench.wait("XREAD BLOCK 0 STREAMS s 9");
        bench.run("XADD s 4-0 n 4");
        for one in waiting {
            assert_eq!(one.reply(bench), read_all(&[("s", entries([4]))]));
        }
        assert!(later.is_waiting());
        bench.run("XADD s 10-0 n 10");
        assert_eq!(later.reply(bench), read_all(&[("s", entries([10]))]));
    });
}

#[test]
fn the_last_id_is_that_when_the_wait_began() {
    on_both_stores(|bench| {
        let waiting = bench.wait("XREAD BLOCK 0 STREAMS s $");
        // As in Redis, a client that waits for a stream keeps waiting while the key has another
        // type.
        bench.run("RPUSH s a");
        bench.run("DEL s");
        let reply = bench.exec(&["XADD s 1-0 n 1", "XADD s 2-0 n 2"]);
        assert_eq!(reply, bulks(&["1-0", "2-0"]));
        assert_eq!(waiting.reply(bench), read_all(&[("s", entries([1, 2]))]));
        let counted = bench.wait("XREAD BLOCK 0 COUNT 1 STREAMS s $");
        bench.exec(&["XADD s 3-0 n 3", "XADD s 4-0 n 4"]);
        assert_eq!(counted.reply(bench), read_all(&[("s", entries([3]))]));
    });
}

#[test]
fn a_stream_that_gets_its_name_wakes_too() {
    on_both_stores(|bench| {
        fill(bench, "s", 2);
        let waiting = bench.wait("XREAD BLOCK 0 STREAMS t $");
        bench.run("RENAME s t");
        assert_eq!(waiting.reply(bench), read_all(&[("t", entries([1, 2]))]));
    });
}

#[test]
fn another_server_wakes_those_that_wait() {
    let bench = Bench::cluster_like();
    let waiting = bench.wait("XREAD BLOCK 0 STREAMS s $");
    let other = bench.another_server();
    let added = bench.block_on(other.submit(vec![planned("XADD s 1-0 n 1")]));
    assert_eq!(added.unwrap().replies, [bulk("1-0")]);
    assert_eq!(waiting.reply(&bench), read_all(&[("s", entries([1]))]));
}

const NO_GROUP: &str =
    "NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option";

fn blocked(consumer: &str) -> String {
    format!("XREADGROUP GROUP g {consumer} COUNT 1 BLOCK 0 STREAMS s >")
}

#[test]
fn clients_that_wait_are_served_one_after_the_other() {
    on_both_stores(|bench| {
        with_group(bench, "s", 0);
        let first = bench.wait(&blocked("a"));
        let mut second = bench.wait(&blocked("b"));
        let reader = bench.wait("XREAD BLOCK 0 STREAMS s $");
        add(bench, "s", 1);
        assert_eq!(first.reply(bench), read("s", [1]));
        assert_eq!(reader.reply(bench), read("s", [1]));
        assert!(second.is_waiting());
        add(bench, "s", 2);
        assert_eq!(second.reply(bench), read("s", [2]));
        assert_eq!(
            all_pending(bench, "s"),
            Reply::Array(vec![pending(1, "a", 0, 1), pending(2, "b", 0, 1)])
        );
    });
}

#[test]
fn each_group_has_its_own_clients() {
    on_both_stores(|bench| {
        with_group(bench, "s", 0);
        bench.run("XGROUP CREATE s h 0");
        let mut late = bench.wait(&blocked("a"));
        bench.run("XGROUP SETID s g 9");
        let other = bench.wait("XREADGROUP GROUP h a BLOCK 0 STREAMS s >");
        let mut later = bench.wait(&blocked("b"));
        add(bench, "s", 1);
        assert_eq!(other.reply(bench), read("s", [1]));
        assert!(late.is_waiting() && later.is_waiting());
        bench.run("XGROUP SETID s g 1");
        // SETID wakes no client, as in Redis.
        assert!(late.is_waiting());
        add(bench, "s", 2);
        assert_eq!(late.reply(bench), read("s", [2]));
        assert!(later.is_waiting());
    });
}

#[test]
fn keys_that_clients_need_are_counted_apart() {
    on_both_stores(|bench| {
        with_group(bench, "s", 0);
        let waiters = bench.executor.waiters();
        let _pops = bench.wait("BLPOP l 0");
        let client = bench.wait(&blocked("a"));
        assert_eq!((waiters.key_count(), waiters.needed_key_count()), (2, 1));
        bench.run("DEL s");
        client.reply(bench);
        assert_eq!((waiters.key_count(), waiters.needed_key_count()), (1, 0));
    });
}

#[test]
fn clients_that_wait_hear_that_the_group_or_the_stream_is_gone() {
    for line in [
        "XGROUP DESTROY s g",
        "DEL s",
        "UNLINK s",
        "FLUSHDB",
        "FLUSHALL",
        "RENAME s t",
        "MOVE s 5",
        "SWAPDB 0 7",
        "RENAME other s",
        "PEXPIREAT s 1",
    ] {
        on_both_stores(|bench| {
            with_group(bench, "s", 0);
            with_group(bench, "other", 0);
            bench.run("XGROUP DESTROY other g");
            let clients = [bench.wait(&blocked("a")), bench.wait(&blocked("b"))];
            assert!(!matches!(bench.run(line), Reply::Error(_)), "{line}");
            for client in clients {
                assert_eq!(client.reply(bench), error(NO_GROUP), "{line}");
            }
        });
    }
}

#[test]
fn clients_that_wait_hear_that_the_key_has_become_another() {
    for line in [
        "SET s x",
        "RENAME list s",
        "SUNIONSTORE s set",
        "COPY list s REPLACE",
    ] {
        on_both_stores(|bench| {
            with_group(bench, "s", 0);
            bench.run("RPUSH list x");
            bench.run("SADD set x");
            let client = bench.wait(&blocked("a"));
            let mut reader = bench.wait("XREAD BLOCK 0 STREAMS s $");
            assert!(!matches!(bench.run(line), Reply::Error(_)), "{line}");
            assert_eq!(client.reply(bench), error(WRONG_TYPE), "{line}");
            assert!(reader.is_waiting(), "{line}");
        });
    }
}

#[test]
fn a_stream_that_is_made_again_with_its_group_is_the_same_to_those_that_wait() {
    on_both_stores(|bench| {
        with_group(bench, "s", 0);
        let client = bench.wait(&blocked("a"));
        bench.exec(&["DEL s", "XGROUP CREATE s g 0 MKSTREAM"]);
        add(bench, "s", 1);
        assert_eq!(client.reply(bench), read("s", [1]));
    });
}

#[test]
fn clients_of_other_servers_hear_it_too() {
    for (line, expected) in [
        ("XADD s 1-0 n 1", read("s", [1])),
        ("XGROUP DESTROY s g", error(NO_GROUP)),
        ("DEL s", error(NO_GROUP)),
        ("SET s x", error(WRONG_TYPE)),
        ("FLUSHALL", error(NO_GROUP)),
    ] {
        let bench = Bench::cluster_like();
        with_group(&bench, "s", 0);
        let other = bench.another_server();
        let client = bench.wait(&blocked("a"));
        let call = quoin_engine::testing::planned(line);
        let finished = bench.block_on(other.submit(vec![call])).unwrap();
        assert!(!matches!(finished.replies[0], Reply::Error(_)), "{line}");
        assert_eq!(client.reply(&bench), expected, "{line}");
    }
}

#[test]
fn a_stream_that_expires_is_gone() {
    on_both_stores(|bench| {
        with_group(bench, "s", 0);
        bench.run("PEXPIRE s 10");
        let client = bench.wait(&blocked("a"));
        bench.clock.advance_ms(11);
        let mut reaper = Reaper::new(&bench.executor);
        while bench.block_on(reaper.pass(&bench.executor)).unwrap() {}
        assert_eq!(client.reply(bench), error(NO_GROUP));
    });
}
