//! XADD and XSETID.

use super::*;
use crate::stream::commands::ids::id;
use quoin_layout::StreamId;

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

/// Two servers with different clocks add to one stream at the same time.
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
    id(text, 0).unwrap()
}
