//! Commands on keys that are priority queues.

use std::sync::Arc;

use super::{error, on_both_stores, one, pairs};
use quoin_base::events::EventClasses;
use quoin_data::unit::signals::{ChannelKind, Message, Subscribers};
use quoin_engine::testing::{Bench, bulk, bulks};
use quoin_resp::reply::Reply;

#[test]
fn its_type_has_a_name_that_scan_knows() {
    on_both_stores(|bench| {
        bench.run("PQ.PUSH q 1 a");
        bench.run("RPUSH l a");
        bench.run("ZADD z 1 a");
        assert_eq!(bench.run("TYPE q"), Reply::Simple("pqueue"));
        let only = Reply::Array(vec![bulk("0"), bulks(&["q"])]);
        assert_eq!(bench.run("SCAN 0 COUNT 100 TYPE pqueue"), only);
        assert_eq!(bench.run("SCAN 0 COUNT 100 TYPE PQUEUE"), only);
        assert_eq!(bench.run("OBJECT ENCODING q"), bulk("ordered-rows"));
        assert_eq!(bench.run("DBSIZE"), Reply::Integer(3));
    });
}

#[test]
fn it_is_renamed_moved_and_copied_whole() {
    on_both_stores(|bench| {
        let long = "v".repeat(200_000);
        bench.run(&format!("PQ.PUSH q 1 a 1 b 2.5 {long}"));
        bench.run("RENAME q r");
        assert_eq!(bench.run("COPY r s"), Reply::Integer(1));
        assert_eq!(bench.run("DEL r"), Reply::Integer(1));
        assert_eq!(bench.run("PQ.LEN s"), Reply::Integer(3));
        assert_eq!(bench.run("PQ.POPMIN s 2"), pairs(&[("a", 1), ("b", 1)]));
        let last = Reply::Array(vec![bulk(&long), Reply::Double(2.5)]);
        assert_eq!(bench.run("PQ.PEEKMAX s"), last);
        assert_eq!(bench.run("MOVE s 3"), Reply::Integer(1));
        assert_eq!(bench.run("EXISTS q r s"), Reply::Integer(0));
        assert_eq!(bench.run_in(3, &[b"PQ.POPMAX", b"s"]), last);
    });
}

#[test]
fn it_expires() {
    on_both_stores(|bench| {
        bench.run("PQ.PUSH q 1 a");
        assert_eq!(bench.run("PEXPIRE q 1000"), Reply::Integer(1));
        bench.run("PQ.PUSH q 1 b");
        assert_eq!(bench.run("PQ.POPMIN q"), one("a", 1));
        bench.clock.advance_ms(1000);
        assert_eq!(bench.run("PQ.LEN q"), Reply::Integer(0));
        assert_eq!(bench.run("PQ.PUSH q 1 c"), Reply::Integer(1));
        assert_eq!(bench.run("TTL q"), Reply::Integer(-1));
    });
}

#[test]
fn it_is_not_sorted() {
    on_both_stores(|bench| {
        bench.run("PQ.PUSH q 1 a");
        for line in ["SORT q", "SORT_RO q ALPHA", "SORT q BY nosort LIMIT 0 0"] {
            assert_eq!(bench.run(line), error(super::WRONG_TYPE), "{line}");
        }
    });
}

#[test]
fn memory_usage_counts_its_values_and_their_chunks() {
    on_both_stores(|bench| {
        let usage = |bench: &Bench| match bench.run("MEMORY USAGE q") {
            Reply::Integer(bytes) => bytes,
            other => panic!("{other:?}"),
        };
        bench.run("PQ.PUSH q 1 a");
        let small = usage(bench);
        assert!((50..200).contains(&small), "{small}");
        bench.run(&format!("PQ.PUSH q 1 {}", "v".repeat(200_000)));
        let large = usage(bench) - small;
        assert!((200_000..200_200).contains(&large), "{large}");
    });
}

#[test]
fn pops_leave_nothing_behind() {
    on_both_stores(|bench| {
        let long = "v".repeat(200_000);
        for line in ["PQ.POPMIN q 9", "PQ.POPMAX q 9"] {
            bench.run(&format!("PQ.PUSH q 1 a 1 {long} 2 b"));
            assert!(bench.data_rows() > 3);
            bench.run(line);
            assert_eq!(bench.data_rows(), 0);
            assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
        }
    });
}

#[test]
fn retained_metadata_of_it_makes_room_for_another_type() {
    on_both_stores(|bench| {
        bench.run("PQ.PUSH q 1 a");
        bench.run("PQ.POPMAX q");
        assert_eq!(bench.run("TYPE q"), Reply::Simple("none"));
        assert_eq!(bench.run("RPUSH q x"), Reply::Integer(1));
        bench.run("LPOP q");
        assert_eq!(bench.run("PQ.PUSH q 1 b"), Reply::Integer(1));
    });
}

/// Keeps the published messages.
#[derive(Default)]
struct Ear(std::sync::Mutex<Vec<String>>);

impl Subscribers for Ear {
    fn is_empty(&self) -> bool {
        false
    }

    fn count(&self, _kind: ChannelKind, _channel: &[u8]) -> usize {
        1
    }

    fn deliver(&self, message: &Message) {
        let text = format!(
            "{} {}",
            String::from_utf8_lossy(&message.channel),
            String::from_utf8_lossy(&message.payload)
        );
        self.0.lock().unwrap().push(text);
    }
}

#[test]
fn its_changes_are_told_as_those_of_modules_values() {
    for bench in [Bench::embedded(), Bench::cluster_like()] {
        let ear = Arc::new(Ear::default());
        let bench = bench.served_with(|environment| {
            let classes = EventClasses::parse("Edg").unwrap();
            environment.keyspace_events.set(classes);
            environment.subscribers = Some(ear.clone());
        });
        bench.run("PQ.PUSH q 1 a 2 b");
        bench.run("PQ.POPMIN q");
        bench.run("PQ.MOVE q r MAX");
        bench.run("PQ.BPOPMAX r 0");
        bench.run("PQ.POPMAX r");
        let received = ear.0.lock().unwrap().clone();
        let expected = [
            "__keyevent@0__:pq.push q",
            "__keyevent@0__:pq.popmin q",
            "__keyevent@0__:pq.push r",
            "__keyevent@0__:pq.popmax q",
            "__keyevent@0__:del q",
            "__keyevent@0__:pq.popmax r",
            "__keyevent@0__:del r",
        ];
        assert_eq!(received, expected);
    }
}
