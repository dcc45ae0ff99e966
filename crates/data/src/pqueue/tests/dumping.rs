//! DUMP, RESTORE, PQ.SCANDUMP and PQ.LOADCHUNK of priority queues.

use bytes::Bytes;

use super::*;
use crate::pqueue::PriorityQueue;
use crate::rows::pages::testing::Counting;
use crate::testing::environment;
use crate::unit::context::{NamespaceCache, ReadContext};
use quoin_base::limits::IMPORT_CHUNK_BYTES;
use quoin_base::random::{Random, SeededRandom};
use quoin_layout::ValueType;
use quoin_rdb::testing::sealed;

fn bytes(reply: Reply) -> Bytes {
    match reply {
        Reply::Bulk(bytes) => bytes,
        other => panic!("{other:?}"),
    }
}

fn dump(bench: &Bench, key: &str) -> Bytes {
    bytes(bench.run(&format!("DUMP {key}")))
}

fn restore(bench: &Bench, key: &str, payload: &[u8]) -> Reply {
    bench.run_words(&[b"RESTORE", key.as_bytes(), b"0", payload])
}

/// Pushes values with integers and doubles as priorities, some equal. Some values are long or empty.
fn fill(bench: &Bench, seed: u64) {
    let random = SeededRandom::new(seed);
    for number in 0..200 {
        let mut words = vec!["PQ.PUSH".to_owned(), "q".to_owned()];
        for _ in 0..=random.below(4) {
            words.push(match random.below(6) {
                0 => "1".to_owned(),
                1 => "1.0".to_owned(),
                2 => "9007199254740993".to_owned(),
                3 => "-inf".to_owned(),
                4 => (random.below(100) as f64 / 8.0).to_string(),
                _ => (random.below(4) as i64 - 2).to_string(),
            });
            words.push(match random.below(60) {
                0 => "v".repeat(150_000),
                1 => String::new(),
                _ => format!("value {number}"),
            });
        }
        let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        bench.run_words(&words);
        if random.below(4) == 0 {
            bench.run("PQ.POPMIN q 2");
            bench.run("PQ.POPMAX q");
        }
    }
}

fn seen(bench: &Bench, key: &str) -> [Reply; 4] {
    [
        format!("PQ.RANGE {key} 0 -1"),
        format!("PQ.RANGE {key} 0 -1 REV"),
        format!("PQ.LEN {key}"),
        format!("PQ.COUNT {key} 1 (3"),
    ]
    .map(|line| bench.run(&line))
}

fn servers() -> [(Bench, Bench); 3] {
    [
        (Bench::embedded(), Bench::cluster_like()),
        (Bench::cluster_like(), Bench::embedded()),
        (Bench::embedded(), Bench::embedded()),
    ]
}

#[test]
fn a_queue_is_the_same_at_another_server() {
    for (seed, (from, to)) in (1..).zip(servers()) {
        fill(&from, seed);
        let payload = dump(&from, "q");
        assert_eq!(restore(&to, "copy", &payload), Reply::OK);
        assert_eq!(seen(&to, "copy"), seen(&from, "q"));
        assert_eq!(dump(&to, "copy"), payload);
        from.run("PQ.PUSH q 1 last");
        to.run("PQ.PUSH copy 1 last");
        assert_eq!(to.run("PQ.POPMIN copy 999"), from.run("PQ.POPMIN q 999"));
    }
}

#[test]
fn a_queue_in_chunks_is_the_same() {
    for (seed, (from, to)) in (11..).zip(servers()) {
        fill(&from, seed);
        let mut cursor = Bytes::from_static(b"0");
        loop {
            let words: [&[u8]; 5] = [b"PQ.SCANDUMP", b"q", &cursor, b"COUNT", b"7"];
            let Reply::Array(parts) = from.run_words(&words) else {
                panic!("no array");
            };
            let [next, Reply::Array(chunk)] = &parts[..] else {
                panic!("{parts:?}");
            };
            let chunk = bytes(chunk[0].clone());
            let added = to.run_words(&[b"PQ.LOADCHUNK", b"copy", &chunk]);
            assert!(matches!(added, Reply::Integer(1..=7)), "{added:?}");
            cursor = bytes(next.clone());
            if cursor == "0" {
                break;
            }
        }
        assert_eq!(seen(&to, "copy"), seen(&from, "q"));
        assert_eq!(dump(&to, "copy"), dump(&from, "q"));
    }
}

#[test]
fn chunks_are_asked_for_and_loaded_as_it_should_be() {
    on_both_stores(|bench| {
        bench.run("PQ.PUSH q 1 a");
        bench.run("SET text x");
        const USAGE: &str = "ERR syntax error, expected PQ.SCANDUMP key cursor [COUNT count]";
        let nothing = Reply::Array(vec![bulk("0"), Reply::Array(Vec::new())]);
        for line in ["PQ.SCANDUMP none 0", "PQ.SCANDUMP q 7"] {
            assert_eq!(bench.run(line), nothing, "{line}");
        }
        for (line, expected) in [
            ("PQ.SCANDUMP q x", "ERR invalid cursor"),
            ("PQ.SCANDUMP q 0 COUNT 0", USAGE),
            ("PQ.SCANDUMP q 0 7", USAGE),
            ("PQ.SCANDUMP text 0", WRONG_TYPE),
            (
                "PQ.LOADCHUNK q x",
                "ERR DUMP payload version or checksum are wrong",
            ),
        ] {
            assert_eq!(bench.run(line), error(expected), "{line}");
        }
        let list = sealed(10, &[1, 1, 1, b'a']);
        let refused = bench.run_words(&[b"PQ.LOADCHUNK", b"q", &list]);
        assert_eq!(refused, error("ERR Bad data format"));
        let chunk = dump(bench, "q");
        let refused = bench.run_words(&[b"PQ.LOADCHUNK", b"text", &chunk]);
        assert_eq!(refused, error(WRONG_TYPE));
        let refused = bench.run_words(&[b"TASK.LOADCHUNK", b"tasks", &chunk]);
        assert_eq!(refused, error("ERR Bad data format"));
    });
}

#[test]
fn a_client_that_waits_gets_a_value_that_is_restored() {
    on_both_stores(|bench| {
        bench.run("PQ.PUSH q 1 a");
        let payload = dump(bench, "q");
        let waiting = bench.wait("PQ.BPOPMIN copy 0");
        assert_eq!(restore(bench, "copy", &payload), Reply::OK);
        let expected = Reply::Array(vec![bulk("copy"), bulk("a"), Reply::Whole(1)]);
        assert_eq!(waiting.reply(bench), expected);
    });
}

#[test]
fn a_damaged_payload_leaves_nothing_or_a_queue_that_works() {
    on_both_stores(|bench| {
        bench.run("PQ.PUSH q 1 one 1 two 2.5 three -inf 12345678");
        let payload = dump(bench, "q");
        let value = payload.slice(..payload.len() - 10);
        for at in 0..value.len() {
            for change in [0x01, 0x02, 0x40, 0x80, 0xff] {
                let mut value = value.to_vec();
                value[at] ^= change;
                let damaged = sealed(10, &value);
                if restore(bench, "copy", &damaged) == Reply::OK {
                    let Reply::Integer(length @ 1..) = bench.run("PQ.LEN copy") else {
                        panic!("no number");
                    };
                    let Reply::Pairs(popped) = bench.run("PQ.POPMAX copy 9") else {
                        panic!("no pairs");
                    };
                    assert_eq!(popped.len(), length as usize, "{at} {change}");
                }
                assert_eq!(bench.run("EXISTS copy"), Reply::Integer(0), "{at} {change}");
            }
        }
        for length in 0..value.len() {
            let refused = restore(bench, "copy", &sealed(10, &value[..length]));
            assert!(
                matches!(&refused, Reply::Error(line) if line.starts_with("ERR Bad data format")),
                "{length}: {refused:?}"
            );
        }
    });
}

#[test]
fn another_version_of_a_payload_is_refused() {
    let bench = Bench::embedded();
    bench.run("PQ.PUSH q 1 a");
    let mut value = dump(&bench, "q").to_vec();
    value.truncate(value.len() - 10);
    // The last byte of the module's id, after the type and the length's form.
    value[9] += 1;
    let refused = restore(&bench, "copy", &sealed(10, &value));
    let expected = "ERR Bad data format: written by another version of Quoin";
    assert_eq!(refused, error(expected));
}

#[test]
fn a_chunk_reads_little_more_than_it_answers() {
    for bench in [Bench::embedded(), Bench::cluster_like()] {
        let value = "v".repeat(80_000);
        for number in 0..100 {
            bench.run(&format!("PQ.PUSH q {number} {value}"));
        }
        for rank in [0, 95] {
            let environment = &environment(&bench);
            let transaction = bench.store.begin_read().unwrap();
            let counting = Counting::of(&*transaction);
            let namespaces = NamespaceCache::default();
            let context = ReadContext::new(&counting, environment, &namespaces, 0, 0);
            let chunk = bench.block_on(async {
                let name = Bytes::from_static(b"q");
                let key = context.find(&name, ValueType::PriorityQueue).await.unwrap();
                let key = key.unwrap();
                let chunk = PriorityQueue::open(&context, &key)
                    .chunk(rank, 10_000)
                    .await;
                chunk.unwrap()
            });
            assert!(chunk.payload.is_some());
            assert_eq!(chunk.next.is_some(), rank == 0);
            assert!(
                counting.bytes() <= 3 * IMPORT_CHUNK_BYTES,
                "{rank}: {}",
                counting.bytes()
            );
        }
    }
}
