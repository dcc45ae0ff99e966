//! DUMP, RESTORE, TASK.SCANDUMP and TASK.LOADCHUNK of task queues.

use bytes::Bytes;

use super::*;
use crate::rows::pages::testing::Counting;
use crate::taskqueue::TaskQueue;
use crate::testing::environment;
use crate::unit::context::{NamespaceCache, ReadContext};
use quoin_base::limits::IMPORT_CHUNK_BYTES;
use quoin_layout::ValueType;
use quoin_rdb::testing::sealed;

const WRONG_FORMAT: &str = "ERR Bad data format";

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

/// Fills a queue with tasks in every state and of several classes, with short and long payloads.
fn fill(bench: &Bench, seed: u64) {
    let random = SeededRandom::new(seed);
    for number in 0..300 {
        let mut words = vec![
            "TASK.ADD".to_owned(),
            "q".to_owned(),
            (random.below(5) as f64 / 2.0).to_string(),
            match random.below(40) {
                0 => "p".repeat(150_000),
                _ => format!("payload {number}"),
            },
            "ID".to_owned(),
            format!("t{number}"),
        ];
        let resources = ["cpu", "gb", "cards"];
        let needed = random.below(4) as usize;
        if needed > 0 {
            words.push("NEEDS".to_owned());
        }
        for resource in &resources[..needed] {
            words.extend([(*resource).to_owned(), (1 + random.below(9)).to_string()]);
        }
        if random.below(4) == 0 {
            words.extend(["DELAY".to_owned(), (1 + random.below(90_000)).to_string()]);
        }
        if random.below(2) == 0 {
            words.extend(["MAXTRIES".to_owned(), (1 + random.below(2)).to_string()]);
        }
        let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        bench.run_words(&words);
        if random.below(3) == 0 {
            let having = "HAVING cpu 9 gb 9 cards 9";
            let taken = bench.run(&format!("TASK.TAKE q COUNT 2 {having} LEASE 60000"));
            for id in ids(&taken) {
                match random.below(4) {
                    0 => drop(bench.run(&format!("TASK.NACK q {id}"))),
                    1 => drop(bench.run(&format!("TASK.ACK q {id}"))),
                    _ => {}
                }
            }
        }
    }
}

/// Everything that clients can see of a queue.
fn seen(bench: &Bench, key: &str) -> Vec<Reply> {
    let mut lines: Vec<String> = (0..300).map(|id| format!("TASK.GET {key} t{id}")).collect();
    for state in ["", "READY", "LEASED", "DELAYED", "DEAD"] {
        lines.push(format!("TASK.LEN {key} {state}").trim_end().to_owned());
    }
    lines.push(format!("TASK.DEAD {key} COUNT 1000"));
    for having in ["", "HAVING cpu 5", "HAVING cpu 9 gb 9 cards 9"] {
        lines.push(
            format!("TASK.PEEK {key} COUNT 1000 {having}")
                .trim_end()
                .to_owned(),
        );
    }
    lines.iter().map(|line| bench.run(line)).collect()
}

/// The tasks that consumers get until the queue is empty, while time passes.
fn drained(bench: &Bench, key: &str) -> Vec<String> {
    let mut order = Vec::new();
    for round in 0..40 {
        let having = if round % 3 == 0 {
            "HAVING cpu 4 gb 9"
        } else {
            "HAVING cpu 9 gb 9 cards 9"
        };
        bench.clock.advance_ms(3_000);
        order.extend(ids(
            &bench.run(&format!("TASK.TAKE {key} COUNT 20 {having}"))
        ));
        order.push(format!("round {round}"));
    }
    order
}

/// Moves a queue in chunks of `count` tasks. Returns how many chunks.
pub(super) fn load_chunks(from: &Bench, to: &Bench, key: &str, count: usize) -> usize {
    let mut cursor = Bytes::from_static(b"0");
    let mut chunks = 0;
    loop {
        let count = count.to_string();
        let words: [&[u8]; 5] = [b"TASK.SCANDUMP", b"q", &cursor, b"COUNT", count.as_bytes()];
        let Reply::Array(parts) = from.run_words(&words) else {
            panic!("no array");
        };
        let [next, Reply::Array(chunk)] = &parts[..] else {
            panic!("{parts:?}");
        };
        for chunk in chunk {
            let chunk = bytes(chunk.clone());
            let added = to.run_words(&[b"TASK.LOADCHUNK", key.as_bytes(), &chunk]);
            // There are no schedules.
            assert!(matches!(added, Reply::Integer(0..)), "{added:?}");
            chunks += 1;
        }
        cursor = bytes(next.clone());
        if cursor == "0" {
            return chunks;
        }
    }
}

fn pairs() -> [(Bench, Bench); 3] {
    [
        (Bench::embedded(), Bench::cluster_like()),
        (Bench::cluster_like(), Bench::embedded()),
        (Bench::embedded(), Bench::embedded()),
    ]
}

#[test]
fn a_queue_is_the_same_at_another_server() {
    for (seed, (from, to)) in (1..).zip(pairs()) {
        fill(&from, seed);
        let payload = dump(&from, "q");
        assert_eq!(restore(&to, "copy", &payload), Reply::OK);
        assert_eq!(seen(&to, "copy"), seen(&from, "q"));
        assert_eq!(dump(&to, "copy"), payload);
        // A task that is added later comes after the others of its priority.
        for (bench, key) in [(&from, "q"), (&to, "copy")] {
            bench.run(&format!("TASK.ADD {key} 0 last ID last"));
        }
        assert_eq!(drained(&to, "copy"), drained(&from, "q"));
    }
}

#[test]
fn a_queue_in_chunks_is_the_same() {
    for (seed, (from, to)) in (11..).zip(pairs()) {
        fill(&from, seed);
        assert!(load_chunks(&from, &to, "copy", 7) > 20);
        assert_eq!(dump(&to, "copy"), dump(&from, "q"));
        assert_eq!(seen(&to, "copy"), seen(&from, "q"));
        assert_eq!(to.run("RENAME copy renamed"), Reply::OK);
        reap(&to);
        assert_eq!(drained(&to, "renamed"), drained(&from, "q"));
    }
}

#[test]
fn a_lease_goes_along_with_its_token_and_its_end() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 a ID a MAXTRIES 3");
        bench.run("TASK.ADD q 1 b ID b DELAY 5000");
        let token = token(&bench.run("TASK.TAKE q LEASE 10000"));
        let payload = dump(bench, "q");
        bench.clock.advance_ms(4_000);
        assert_eq!(restore(bench, "copy", &payload), Reply::OK);
        let left = |id: &str| match bench.run(&format!("TASK.GET copy {id}")) {
            Reply::Map(fields) => fields[5].1.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(left("b"), Reply::Integer(1_000));
        let extended = bench.run(&format!("TASK.EXTEND copy a 10000 TOKEN {token}"));
        assert_eq!(extended, Reply::Integer(1));
        bench.clock.advance_ms(2_000);
        assert_eq!(ids(&bench.run("TASK.TAKE copy")), ["b"]);
        let done = bench.run(&format!("TASK.ACK copy a TOKEN {token}"));
        assert_eq!(done, Reply::Array(vec![Reply::Integer(1)]));
        assert_eq!(bench.run("EXISTS copy"), Reply::Integer(0));
    });
}

#[test]
fn a_lease_that_has_ended_meanwhile_is_given_back_by_background_work() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 a ID a");
        bench.run("TASK.TAKE q LEASE 1000");
        let payload = dump(bench, "q");
        bench.clock.advance_ms(60_000);
        restore(bench, "copy", &payload);
        reap(bench);
        assert_eq!(bench.run("TASK.LEN copy READY"), Reply::Integer(1));
    });
}

#[test]
fn a_consumer_that_waits_gets_a_task_that_is_restored() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 a ID a NEEDS gb 2");
        let payload = dump(bench, "q");
        let small = bench.wait("TASK.TAKE copy HAVING gb 1 BLOCK 0");
        let large = bench.wait("TASK.TAKE copy HAVING gb 2 BLOCK 0");
        assert_eq!(restore(bench, "copy", &payload), Reply::OK);
        assert_eq!(ids(&large.reply(bench)), ["a"]);
        drop(small);
    });
}

#[test]
fn what_is_there_already_is_not_replaced_by_a_chunk() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 a ID a");
        let Reply::Array(parts) = bench.run("TASK.SCANDUMP q 0") else {
            panic!("no array");
        };
        let Reply::Array(chunks) = &parts[1] else {
            panic!("{parts:?}");
        };
        let chunk = bytes(chunks[0].clone());
        let load = |key: &[u8]| bench.run_words(&[b"TASK.LOADCHUNK", key, &chunk]);
        let exists = error("EXISTS Task id or place already exists");
        assert_eq!(load(b"q"), exists);
        bench.run("TASK.ADD other 1 b ID b");
        // On a cluster a place has a random number.
        let loaded = match bench.store.capabilities().has_other_writers {
            false => exists,
            true => Reply::Integer(1),
        };
        assert_eq!(load(b"other"), loaded, "its place is taken");
        bench.run("SET text x");
        assert!(matches!(load(b"text"), Reply::Error(_)));
        assert_eq!(
            bench.run("TASK.SCANDUMP none 0"),
            bench.run("TASK.SCANDUMP none after:x")
        );
        let refused = bench.run("TASK.SCANDUMP q x");
        assert_eq!(refused, error("ERR invalid cursor"));
    });
}

#[test]
fn a_damaged_payload_leaves_nothing_or_a_queue_that_works() {
    on_both_stores(|bench| {
        bench.run("TASK.ADD q 1 ready ID a NEEDS gb 2 cpu 1");
        bench.run("TASK.ADD q 2.5 delayed ID b DELAY 5000 MAXTRIES 2");
        bench.run("TASK.ADD q 2 leased ID c MAXTRIES 9");
        bench.run("TASK.TAKE q LEASE 5000");
        bench.run("TASK.ADD q 3 dead ID d MAXTRIES 1");
        bench.run("TASK.TAKE q LEASE 5000");
        bench.run("TASK.NACK q d");
        let payload = dump(bench, "q");
        let value = payload.slice(..payload.len() - 10);
        reap(bench);
        let rows = bench.data_rows();
        for at in 0..value.len() {
            for change in [0x01, 0x02, 0x40, 0x80, 0xff] {
                let mut value = value.to_vec();
                value[at] ^= change;
                let damaged = sealed(10, &value);
                if restore(bench, "copy", &damaged) == Reply::OK {
                    let Reply::Integer(length) = bench.run("TASK.LEN copy") else {
                        panic!("no number");
                    };
                    bench.run("TASK.TAKE copy COUNT 9 HAVING gb inf cpu inf");
                    let dead = parts(&bench.run("TASK.DEAD copy")).len();
                    assert!(length > 0 && dead <= 4, "{at} {change}");
                    bench.run("DEL copy");
                } else {
                    assert_eq!(bench.run("EXISTS copy"), Reply::Integer(0), "{at} {change}");
                }
            }
        }
        for length in 0..value.len() {
            let refused = restore(bench, "copy", &sealed(10, &value[..length]));
            assert!(
                matches!(&refused, Reply::Error(line) if line.starts_with(WRONG_FORMAT)),
                "{length}: {refused:?}"
            );
        }
        reap(bench);
        assert_eq!(bench.data_rows(), rows);
    });
}

#[test]
fn a_chunk_reads_little_more_than_it_answers() {
    for bench in [Bench::embedded(), Bench::cluster_like()] {
        let payload = "p".repeat(80_000);
        for _ in 0..100 {
            bench.run(&format!("TASK.ADD q 1 {payload}"));
        }
        let environment = &environment(&bench);
        let transaction = bench.store.begin_read().unwrap();
        let counting = Counting::of(&*transaction);
        let namespaces = NamespaceCache::default();
        let context = ReadContext::new(&counting, environment, &namespaces, 0, 0);
        let chunk = bench.block_on(async {
            let name = Bytes::from_static(b"q");
            let key = context.find(&name, ValueType::TaskQueue).await.unwrap();
            let key = key.unwrap();
            let chunk = TaskQueue::open(&context, &key).chunk(None, 10_000).await;
            chunk.unwrap()
        });
        assert!(chunk.payload.is_some() && chunk.next.is_some());
        let bytes = counting.bytes();
        assert!(bytes <= 3 * IMPORT_CHUNK_BYTES, "{bytes}");
    }
}
