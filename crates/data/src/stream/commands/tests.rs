//! Stream commands on both kinds of store. What they must answer is Redis's source; the differential
//! test goes further.

use quoin_engine::testing::{Bench, START_MS, bulk, bulks, planned};
use quoin_layout::StreamId;
use quoin_resp::reply::Reply;

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const NOT_GREATER: &str =
    "ERR The ID specified in XADD is equal or smaller than the target stream top item";

fn on_both_stores(test: impl Fn(&Bench)) {
    test(&Bench::embedded());
    test(&Bench::cluster_like());
}

fn error(line: &str) -> Reply {
    Reply::Error(line.to_owned())
}

/// An entry with one field.
fn entry(id: &str, name: &str, value: &str) -> Reply {
    Reply::Array(vec![bulk(id), bulks(&[name, value])])
}

/// Adds entries `1-0`, `2-0`… with a field `n` that counts them.
fn fill(bench: &Bench, key: &str, count: usize) {
    for number in 1..=count {
        let reply = bench.run(&format!("XADD {key} {number}-0 n {number}"));
        assert_eq!(reply, bulk(&format!("{number}-0")));
    }
}

/// The entries `n-0` of [`fill`].
fn entries(numbers: impl IntoIterator<Item = usize>) -> Reply {
    let numbers = numbers.into_iter();
    let entries = numbers.map(|number| entry(&format!("{number}-0"), "n", &number.to_string()));
    Reply::Array(entries.collect())
}

#[test]
fn entries_are_added_and_read_in_the_order_of_their_ids() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("XLEN s"), Reply::Integer(0));
        assert_eq!(bench.run("XRANGE s - +"), Reply::Array(Vec::new()));
        fill(bench, "s", 3);
        assert_eq!(bench.run("XLEN s"), Reply::Integer(3));
        assert_eq!(bench.run("XRANGE s - +"), entries([1, 2, 3]));
        assert_eq!(bench.run("XRANGE s 2 2"), entries([2]));
        assert_eq!(bench.run("XRANGE s (1-0 +"), entries([2, 3]));
        assert_eq!(bench.run("XRANGE s - (3-0"), entries([1, 2]));
        assert_eq!(bench.run("XRANGE s - + COUNT 2"), entries([1, 2]));
        assert_eq!(bench.run("XRANGE s - + COUNT 0"), Reply::NullArray);
        assert_eq!(bench.run("XRANGE s - + COUNT -3"), Reply::NullArray);
        assert_eq!(bench.run("XRANGE s 3 2"), Reply::Array(Vec::new()));
        assert_eq!(bench.run("XREVRANGE s + -"), entries([3, 2, 1]));
        assert_eq!(bench.run("XREVRANGE s + - COUNT 1"), entries([3]));
        assert_eq!(bench.run("XRANGE s - + COUNT"), error("ERR syntax error"));
        assert_eq!(bench.run("TYPE s"), Reply::Simple("stream"));
    });
}

#[test]
fn ids_are_the_time_and_grow() {
    on_both_stores(|bench| {
        let id = |seq: u64| bulk(&format!("{START_MS}-{seq}"));
        assert_eq!(bench.run("XADD s * f v"), id(0));
        assert_eq!(bench.run("XADD s * f v"), id(1));
        assert_eq!(bench.run(&format!("XADD s {START_MS}-* f v")), id(2));
        assert_eq!(
            bench.run(&format!("XADD s {START_MS}-2 f v")),
            error(NOT_GREATER)
        );
        bench.clock.advance_ms(5);
        let later = START_MS + 5;
        assert_eq!(bench.run("XADD s * f v"), bulk(&format!("{later}-0")));
        bench.clock.advance_ms(-5);
        assert_eq!(bench.run("XADD s * f v"), bulk(&format!("{later}-1")));
        assert_eq!(bench.run("XADD t 0-* f v"), bulk("0-1"));
    });
}

#[test]
fn no_entry_follows_the_greatest_id() {
    on_both_stores(|bench| {
        let greatest = format!("{0}-{0}", u64::MAX);
        assert_eq!(
            bench.run(&format!("XADD s {greatest} f v")),
            bulk(&greatest)
        );
        let exhausted =
            "ERR The stream has exhausted the last possible ID, unable to add more items";
        assert_eq!(bench.run("XADD s * f v"), error(exhausted));
        assert_eq!(bench.run("XADD s 1-1 f v"), error(exhausted));
    });
}

#[test]
fn an_entry_that_is_refused_makes_no_stream() {
    on_both_stores(|bench| {
        for (line, expected) in [
            (
                "XADD s 0-0 f v",
                "ERR The ID specified in XADD must be greater than 0-0",
            ),
            (
                "XADD s * f v g",
                "ERR wrong number of arguments for 'xadd' command",
            ),
            (
                "XADD s MAXLEN ~ 10 NOMKSTREAM LIMIT 5",
                "ERR wrong number of arguments for 'xadd' command",
            ),
            (
                "XADD s x f v",
                "ERR Invalid stream ID specified as stream command argument",
            ),
            (
                "XADD s MAXLEN x * f v",
                "ERR value is not an integer or out of range",
            ),
            (
                "XADD s MAXLEN -1 * f v",
                "ERR The MAXLEN argument must be >= 0.",
            ),
            (
                "XADD s MAXLEN 1 MINID 1 * f v",
                "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
            ),
            (
                "XADD s LIMIT 1 * f v",
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
            ),
            (
                "XADD s MAXLEN 1 LIMIT 1 * f v",
                "ERR syntax error, LIMIT cannot be used without the special ~ option",
            ),
            (
                "XADD s MAXLEN ~ 1 LIMIT -1 * f v",
                "ERR The LIMIT argument must be >= 0.",
            ),
        ] {
            assert_eq!(bench.run(line), error(expected), "{line}");
        }
        assert_eq!(bench.run("XADD s NOMKSTREAM * f v"), Reply::Null);
        assert_eq!(bench.run("EXISTS s"), Reply::Integer(0));
        bench.run("SET string x");
        for line in ["XADD string * f v", "XLEN string", "XRANGE string - +"] {
            assert_eq!(bench.run(line), error(WRONG_TYPE), "{line}");
        }
    });
}

#[test]
fn large_entries_are_read_as_they_were_written() {
    on_both_stores(|bench| {
        let value = "v".repeat(300_000);
        bench.run_words(&[b"XADD", b"s", b"1-1", b"f", value.as_bytes(), b"g", b""]);
        let fields = bulks(&["f", &value, "g", ""]);
        let entry = Reply::Array(vec![bulk("1-1"), fields]);
        assert_eq!(bench.run("XRANGE s - +"), Reply::Array(vec![entry]));
        bench.run("XADD s MAXLEN 1 2-0 n 2");
        assert_eq!(bench.run("XRANGE s - +"), entries([2]));
        // The entry and the head.
        assert_eq!(bench.data_rows(), 2);
    });
}

#[test]
fn adders_conflict_with_each_other_and_with_nothing_else() {
    let bench = Bench::cluster_like();
    fill(&bench, "s", 3);
    for (line, meanwhile, conflicts) in [
        ("XADD s * f v", "XADD s * f v", true),
        ("XADD s MAXLEN ~ 1000 * f v", "XADD s * f v", true),
        ("XADD s * f v", "XDEL s 1-0", false),
        ("XADD s MAXLEN ~ 1000 * f v", "XDEL s 2-0", false),
        ("XDEL s 3-0", "XADD s * f v", false),
        ("XTRIM s MAXLEN ~ 1000", "XADD s * f v", false),
        ("XTRIM s MAXLEN 2", "XADD s * f v", true),
        ("XSETID s 99999999999999-0", "XADD s * f v", true),
        ("XREAD STREAMS s 0", "XADD s * f v", false),
    ] {
        assert_eq!(
            bench.race(line, meanwhile, false),
            conflicts,
            "{line}, {meanwhile}"
        );
    }
}

#[test]
fn a_stream_stays_when_its_last_entry_goes() {
    on_both_stores(|bench| {
        fill(bench, "s", 3);
        assert_eq!(bench.run("XDEL s 2-0 9-0 2-0"), Reply::Integer(1));
        assert_eq!(bench.run("XRANGE s - +"), entries([1, 3]));
        assert_eq!(bench.run("XDEL s 1-0 3-0"), Reply::Integer(2));
        assert_eq!(bench.run("XLEN s"), Reply::Integer(0));
        assert_eq!(bench.run("EXISTS s"), Reply::Integer(1));
        assert_eq!(bench.run("TYPE s"), Reply::Simple("stream"));
        assert_eq!(bench.run("XADD s 3-0 n 3"), error(NOT_GREATER));
        assert_eq!(bench.run("RENAME s t"), Reply::OK);
        assert_eq!(bench.run("COPY t s"), Reply::Integer(1));
        assert_eq!(bench.run("XADD s 3-0 n 3"), error(NOT_GREATER));
        assert_eq!(bench.run("XADD s 4-0 n 4"), bulk("4-0"));
        assert_eq!(bench.run("XLEN t"), Reply::Integer(0));
        assert_eq!(bench.run("XTRIM s MAXLEN 0"), Reply::Integer(1));
        assert_eq!(bench.run("DEL s t"), Reply::Integer(2));
        assert_eq!(bench.run("XADD s 1-0 n 1"), bulk("1-0"));
    });
}

#[test]
fn exact_trimming_leaves_what_was_asked_for() {
    on_both_stores(|bench| {
        fill(bench, "s", 10);
        assert_eq!(bench.run("XTRIM s MAXLEN 10"), Reply::Integer(0));
        assert_eq!(bench.run("XTRIM s MAXLEN = 8"), Reply::Integer(2));
        assert_eq!(bench.run("XTRIM s MINID 5"), Reply::Integer(2));
        assert_eq!(bench.run("XRANGE s - +"), entries(5..=10));
        assert_eq!(bench.run("XTRIM s MINID = 7-1"), Reply::Integer(3));
        assert_eq!(bench.run("XADD s MAXLEN 2 11-0 n 11"), bulk("11-0"));
        assert_eq!(bench.run("XRANGE s - +"), entries([10, 11]));
        assert_eq!(bench.run("XADD s MINID 100 12-0 n 12"), bulk("12-0"));
        assert_eq!(bench.run("XLEN s"), Reply::Integer(0));
        // The head, and nothing of what was trimmed.
        assert_eq!(bench.data_rows(), 1);
        assert_eq!(bench.run("XTRIM none MAXLEN 0"), Reply::Integer(0));
        assert_eq!(
            bench.run("XTRIM s LIMIT 0"),
            error("ERR syntax error, XTRIM must be called with a trimming strategy")
        );
    });
}

/// The tables of Redis: its nodes have 100 entries.
#[test]
fn approximate_trimming_removes_whole_nodes() {
    on_both_stores(|bench| {
        let lines: Vec<String> = (1..=1_000)
            .map(|number| format!("XADD s MAXLEN ~ 555 {number}-0 n {number}"))
            .collect();
        bench.run_all(&lines);
        assert_eq!(bench.run("XLEN s"), Reply::Integer(600));
        assert_eq!(bench.run("XRANGE s - + COUNT 1"), entries([401]));
        assert_eq!(bench.run("XTRIM s MAXLEN ~ 501"), Reply::Integer(0));
        assert_eq!(bench.run("XTRIM s MAXLEN ~ 500"), Reply::Integer(100));
        assert_eq!(
            bench.run("XTRIM s MAXLEN ~ 0 LIMIT 199"),
            Reply::Integer(100)
        );
        assert_eq!(bench.run("XTRIM s MINID ~ 700"), Reply::Integer(0));
        assert_eq!(bench.run("XTRIM s MINID ~ 701"), Reply::Integer(100));
        assert_eq!(bench.run("XTRIM s MAXLEN 250"), Reply::Integer(50));
        // The first node has 50 left.
        assert_eq!(bench.run("XTRIM s MAXLEN ~ 210"), Reply::Integer(0));
        assert_eq!(bench.run("XTRIM s MAXLEN ~ 200"), Reply::Integer(50));
        assert_eq!(bench.run("XRANGE s - + COUNT 1"), entries([801]));
        assert_eq!(bench.run("XADD s 1001-0 n 1001"), bulk("1001-0"));
        assert_eq!(bench.run("XTRIM s MAXLEN ~ 0 LIMIT 0"), Reply::Integer(201));
    });
}

#[test]
fn approximate_trimming_reads_a_bounded_part_and_goes_on_with_the_next_command() {
    on_both_stores(|bench| {
        let value = "v".repeat(80_000);
        for number in 1..=1_000 {
            bench.run(&format!("XADD s {number}-0 f {value}"));
        }
        for (trim, count) in [("MINID ~ 951-0", 950), ("MAXLEN ~ 10", 40)] {
            let mut trimmed = Vec::new();
            while trimmed.last() != Some(&0) {
                let Reply::Integer(more) = bench.run(&format!("XTRIM s {trim}")) else {
                    panic!("XTRIM failed");
                };
                trimmed.push(more);
            }
            assert_eq!(trimmed.iter().sum::<i64>(), count);
            assert!(trimmed.iter().all(|one| *one < 900), "{trimmed:?}");
        }
        assert_eq!(bench.run("XLEN s"), Reply::Integer(10));
    });
}

/// Redis keeps each of them in a node of its own.
#[test]
fn approximate_trimming_of_entries_that_are_split_is_exact() {
    on_both_stores(|bench| {
        let value = "v".repeat(200_000);
        for number in 1..=20 {
            bench.run(&format!("XADD s MAXLEN ~ 10 {number}-0 f {value}"));
        }
        assert_eq!(bench.run("XLEN s"), Reply::Integer(10));
        assert_eq!(bench.run("XTRIM s MAXLEN ~ 3"), Reply::Integer(7));
        assert_eq!(bench.run("XADD s 21-0 f small"), bulk("21-0"));
        assert_eq!(bench.run("XTRIM s MAXLEN ~ 1"), Reply::Integer(3));
    });
}

/// How many entries a reply has of a stream, or of the only one that it names.
fn delivered(reply: &Reply) -> usize {
    match reply {
        Reply::Keyed(streams) => streams.iter().map(|(_, entries)| delivered(entries)).sum(),
        Reply::Array(entries) => entries.len(),
        _ => panic!("no entries"),
    }
}

#[test]
fn what_a_group_hands_out_at_once_is_bounded_in_bytes() {
    let bench = Bench::embedded();
    let value = "v".repeat(20_000_000);
    bench.run("XGROUP CREATE s g 0 MKSTREAM");
    for number in 1..=5 {
        bench.run(&format!("XADD s {number}-0 f {value}"));
    }
    let read = |id: &str| {
        let line = format!("XREADGROUP GROUP g c COUNT 100 STREAMS s {id}");
        delivered(&bench.run(&line))
    };
    assert_eq!(read(">"), 4);
    assert_eq!(read(">"), 1);
    assert_eq!(read("0"), 4);
    let Reply::Array(claimed) = bench.run("XAUTOCLAIM s g d 0 0 COUNT 100") else {
        panic!("XAUTOCLAIM failed");
    };
    assert_eq!(claimed.first(), Some(&bulk("5-0")));
    assert_eq!(claimed.get(1).map(delivered), Some(4));
}

#[test]
fn xsetid_contradicts_no_entry() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("XSETID s 5-0"), error("ERR no such key"));
        fill(bench, "s", 3);
        let smaller = "ERR The ID specified in XSETID is smaller than the target stream top item";
        assert_eq!(bench.run("XSETID s 2-9"), error(smaller));
        assert_eq!(
            bench.run("XSETID s 5-0 ENTRIESADDED 2"),
            error(
                "ERR The entries_added specified in XSETID is smaller than the target stream length"
            )
        );
        assert_eq!(
            bench.run("XSETID s 5-0 ENTRIESADDED -1"),
            error("ERR entries_added must be positive")
        );
        assert_eq!(
            bench.run("XSETID s 5-0 MAXDELETEDID 6-0"),
            error(
                "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"
            )
        );
        let set = bench.run("XSETID s 9-0 ENTRIESADDED 7 MAXDELETEDID 4-0");
        assert_eq!(set, Reply::OK);
        assert_eq!(bench.run("XADD s 9-* n 9"), bulk("9-1"));
        assert_eq!(field(bench, "entries-added"), Reply::Integer(8));
        assert_eq!(field(bench, "max-deleted-entry-id"), bulk("4-0"));
        bench.run("XTRIM s MAXLEN 0");
        assert_eq!(
            bench.run("XSETID s 3-0"),
            error("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id")
        );
    });
}

/// A field of XINFO STREAM s.
fn field(bench: &Bench, name: &str) -> Reply {
    let Reply::Map(fields) = bench.run("XINFO STREAM s") else {
        panic!("no map");
    };
    let mut fields = fields.into_iter();
    fields.find(|(found, _)| *found == bulk(name)).unwrap().1
}

#[test]
fn xinfo_reports_what_a_stream_knows_of_itself() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("XINFO STREAM s"), error("ERR no such key"));
        fill(bench, "s", 3);
        bench.run("XDEL s 1-0");
        for (name, expected) in [
            ("length", Reply::Integer(2)),
            ("radix-tree-keys", Reply::Integer(1)),
            ("radix-tree-nodes", Reply::Integer(2)),
            ("last-generated-id", bulk("3-0")),
            ("max-deleted-entry-id", bulk("1-0")),
            ("entries-added", Reply::Integer(3)),
            ("recorded-first-entry-id", bulk("2-0")),
            ("groups", Reply::Integer(0)),
            ("first-entry", entry("2-0", "n", "2")),
            ("last-entry", entry("3-0", "n", "3")),
        ] {
            assert_eq!(field(bench, name), expected, "{name}");
        }
        bench.run("XTRIM s MAXLEN 0");
        assert_eq!(field(bench, "first-entry"), Reply::Null);
        assert_eq!(field(bench, "recorded-first-entry-id"), bulk("0-0"));
        assert_eq!(
            bench.run("XINFO STREAM s FUL"),
            error(
                "ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP."
            )
        );
    });
}

/// The reply of XREAD: entries by key.
fn read(streams: &[(&str, Reply)]) -> Reply {
    let streams = streams.iter();
    Reply::Keyed(
        streams
            .map(|(name, entries)| (bulk(name), entries.clone()))
            .collect(),
    )
}

#[test]
fn xread_answers_what_is_new_in_each_stream() {
    on_both_stores(|bench| {
        fill(bench, "s", 3);
        fill(bench, "t", 2);
        assert_eq!(
            bench.run("XREAD STREAMS s t 1 0"),
            read(&[("s", entries([2, 3])), ("t", entries([1, 2]))])
        );
        assert_eq!(
            bench.run("XREAD COUNT 1 STREAMS none s t 0 3-0 1-0"),
            read(&[("t", entries([2]))])
        );
        assert_eq!(bench.run("XREAD STREAMS s t $ 2-0"), Reply::NullArray);
        bench.run("SET string x");
        for (line, expected) in [
            ("XREAD STREAMS s string 0 0", WRONG_TYPE),
            (
                "XREAD STREAMS s string x 0",
                "ERR Invalid stream ID specified as stream command argument",
            ),
            (
                "XREAD STREAMS s t 0",
                "ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be \
                 specified.",
            ),
            ("XREAD COUNT 1 s 0", "ERR syntax error"),
            (
                "XREAD BLOCK x STREAMS s 0",
                "ERR timeout is not an integer or out of range",
            ),
            ("XREAD BLOCK -1 STREAMS s 0", "ERR timeout is negative"),
            (
                "XREAD GROUP g c STREAMS s 0",
                "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.",
            ),
        ] {
            assert_eq!(bench.run(line), error(expected), "{line}");
        }
    });
}

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
            assert_eq!(one.reply(bench), read(&[("s", entries([4]))]));
        }
        assert!(later.is_waiting());
        bench.run("XADD s 10-0 n 10");
        assert_eq!(later.reply(bench), read(&[("s", entries([10]))]));
    });
}

#[test]
fn the_last_id_is_that_when_the_wait_began() {
    on_both_stores(|bench| {
        let waiting = bench.wait("XREAD BLOCK 0 STREAMS s $");
        // As in Redis, a client that waits for a stream waits on while the key is another.
        bench.run("RPUSH s a");
        bench.run("DEL s");
        let reply = bench.exec(&["XADD s 1-0 n 1", "XADD s 2-0 n 2"]);
        assert_eq!(reply, bulks(&["1-0", "2-0"]));
        assert_eq!(waiting.reply(bench), read(&[("s", entries([1, 2]))]));
        let counted = bench.wait("XREAD BLOCK 0 COUNT 1 STREAMS s $");
        bench.exec(&["XADD s 3-0 n 3", "XADD s 4-0 n 4"]);
        assert_eq!(counted.reply(bench), read(&[("s", entries([3]))]));
    });
}

#[test]
fn a_stream_that_gets_its_name_wakes_too() {
    on_both_stores(|bench| {
        fill(bench, "s", 2);
        let waiting = bench.wait("XREAD BLOCK 0 STREAMS t $");
        bench.run("RENAME s t");
        assert_eq!(waiting.reply(bench), read(&[("t", entries([1, 2]))]));
    });
}

#[test]
fn another_server_wakes_those_that_wait() {
    let bench = Bench::cluster_like();
    let waiting = bench.wait("XREAD BLOCK 0 STREAMS s $");
    let other = bench.another_server();
    let added = bench.block_on(other.submit(vec![planned("XADD s 1-0 n 1")]));
    assert_eq!(added.unwrap().replies, [bulk("1-0")]);
    assert_eq!(waiting.reply(&bench), read(&[("s", entries([1]))]));
}

#[test]
fn a_dump_is_restored_as_the_same_stream() {
    on_both_stores(|bench| {
        for number in 1..=250_u64 {
            let name = if number % 7 == 0 { "other" } else { "n" };
            bench.run(&format!(
                "XADD s {number}-{} {name} {number} m x{number}",
                number % 3
            ));
        }
        bench.run("XDEL s 10-1 250-1");
        let Reply::Bulk(payload) = bench.run("DUMP s") else {
            panic!("no payload");
        };
        bench.run("RENAME s old");
        assert_eq!(
            bench.run_words(&[b"RESTORE", b"s", b"0", &payload]),
            Reply::OK
        );
        assert_eq!(bench.run("XRANGE s - +"), bench.run("XRANGE old - +"));
        let info = bench.run("XINFO STREAM s");
        assert_eq!(info, bench.run("XINFO STREAM old"));
        assert_eq!(bench.run("XADD s 250-1 n 1"), error(NOT_GREATER));
        bench.run("XTRIM s MAXLEN 0");
        let Reply::Bulk(payload) = bench.run("DUMP s") else {
            panic!("no payload");
        };
        bench.run_words(&[b"RESTORE", b"empty", b"0", &payload]);
        assert_eq!(bench.run("XLEN empty"), Reply::Integer(0));
        assert_eq!(bench.run("XADD empty 1-1 n 1"), error(NOT_GREATER));
    });
}

#[test]
fn scripts_do_not_wait() {
    on_both_stores(|bench| {
        let eval = |script: &str| bench.run_words(&[b"EVAL", script.as_bytes(), b"0"]);
        let Reply::Error(line) = eval("return redis.call('xread','BLOCK','0','STREAMS','s','$')")
        else {
            panic!("no error");
        };
        assert!(
            line.starts_with("ERR xread command is not allowed with BLOCK option from scripts"),
            "{line}"
        );
        eval("redis.call('XADD','s','1-0','n','1')");
        let reply = eval("return redis.call('XREAD','STREAMS','s','0')");
        let stream = Reply::Array(vec![bulk("s"), entries([1])]);
        assert_eq!(reply, Reply::Array(vec![stream]));
    });
}

#[test]
fn commands_of_one_pipeline_run_as_they_would_alone() {
    on_both_stores(|bench| {
        let lines = [
            "XADD s 1-0 n 1",
            "XADD s 2-0 n 2",
            "XADD s 2-0 n 2",
            "XADD s MAXLEN 2 3-0 n 3",
            "XADD s NOMKSTREAM 4-0 n 4",
            "XADD s MINID 4 5-* n 5",
            "XADD s 6-* n 6",
        ];
        let replies = bench.run_all(&lines.map(str::to_owned));
        let mut expected = ["1-0", "2-0", "", "3-0", "4-0", "5-0", "6-0"].map(bulk);
        expected[2] = error(NOT_GREATER);
        assert_eq!(replies, expected);
        assert_eq!(bench.run("XRANGE s - +"), entries([4, 5, 6]));
        assert_eq!(bench.run("XLEN s"), Reply::Integer(3));
        assert_eq!(field(bench, "entries-added"), Reply::Integer(6));
    });
}

/// Two servers whose clocks differ add to one stream at the same time.
#[test]
fn ids_grow_in_the_order_of_commits_on_all_servers() {
    let bench = Bench::cluster_like();
    let other = bench.another_server();
    let line = "XADD s * f v";
    let mut last = StreamId::MIN;
    for round in 0..20 {
        let (one, two) = bench.block_on(async {
            let one = bench.executor.submit(vec![planned(line), planned(line)]);
            let two = other.submit(vec![planned(line)]);
            futures_util::join!(one, two)
        });
        let mut replies = one.unwrap().replies;
        replies.extend(two.unwrap().replies);
        let mut ids: Vec<StreamId> = replies.iter().map(id_of).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 3, "{replies:?}");
        assert!(ids[0] > last, "round {round}");
        last = ids[2];
        bench.clock.advance_ms(if round % 3 == 0 { -1 } else { 1 });
    }
    assert_eq!(bench.run("XLEN s"), Reply::Integer(60));
}

fn id_of(reply: &Reply) -> StreamId {
    let Reply::Bulk(text) = reply else {
        panic!("{reply:?}");
    };
    super::ids::id(text, 0).unwrap()
}
