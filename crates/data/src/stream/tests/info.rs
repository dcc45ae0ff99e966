//! XINFO.

use super::*;

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
            ("first-entry", entry(2)),
            ("last-entry", entry(3)),
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

#[test]
fn consumers_know_when_they_were_seen_and_when_they_were_given_something() {
    on_both_stores(|bench| {
        with_group(bench, "s", 0);
        let run = |line: &str| bench.run(line);
        let times = || {
            let field = |field| info(bench, "XINFO CONSUMERS s g", field);
            (field("idle"), field("inactive"))
        };
        run("XREADGROUP GROUP g a STREAMS s >");
        bench.clock.advance_ms(100);
        assert_eq!(times(), (int(100), int(-1)));
        add(bench, "s", 1);
        run("XREADGROUP GROUP g a STREAMS s >");
        bench.clock.advance_ms(100);
        assert_eq!(times(), (int(100), int(100)));
        run("XREADGROUP GROUP g a STREAMS s >");
        assert_eq!(times(), (int(0), int(100)));
        run("XREADGROUP GROUP g a STREAMS s 0");
        run("XCLAIM s g a 1000 1-0");
        assert_eq!(times(), (int(0), int(100)));
        run("XCLAIM s g a 0 1-0");
        assert_eq!(times(), (int(0), int(0)));
    });
}

#[test]
fn what_is_left_to_read_is_known_until_entries_are_deleted() {
    on_both_stores(|bench| {
        with_group(bench, "s", 5);
        let run = |line: &str| bench.run(line);
        let progress = || {
            let field = |field| info(bench, "XINFO GROUPS s", field);
            (field("entries-read"), field("lag"))
        };
        assert_eq!(progress(), (Reply::Null, int(5)));
        run("XREADGROUP GROUP g a COUNT 1 STREAMS s >");
        assert_eq!(progress(), (int(1), int(4)));
        run("XREADGROUP GROUP g a COUNT 1 STREAMS s >");
        assert_eq!(progress(), (int(2), int(3)));
        run("XDEL s 4-0");
        assert_eq!(progress(), (int(2), Reply::Null));
        run("XREADGROUP GROUP g a COUNT 1 STREAMS s >");
        assert_eq!(progress(), (Reply::Null, Reply::Null));
        run("XREADGROUP GROUP g a COUNT 1 STREAMS s >");
        assert_eq!(progress(), (int(5), int(0)));
        run("XGROUP SETID s g 2 ENTRIESREAD 2");
        assert_eq!(progress(), (int(2), Reply::Null));
        run("XGROUP SETID s g $");
        assert_eq!(progress(), (Reply::Null, int(0)));
        run("XTRIM s MAXLEN 0");
        assert_eq!(progress(), (Reply::Null, int(0)));
    });
}

#[test]
fn a_stream_shows_all_of_its_groups() {
    on_both_stores(|bench| {
        with_group(bench, "s", 2);
        bench.run("XREADGROUP GROUP g a COUNT 1 STREAMS s >");
        let Reply::Map(fields) = bench.run("XINFO STREAM s FULL") else {
            panic!();
        };
        let map = |fields: Vec<(&str, Reply)>| {
            Reply::Map(
                fields
                    .into_iter()
                    .map(|(name, value)| (bulk(name), value))
                    .collect(),
            )
        };
        let of_consumer = Reply::Array(vec![bulk("1-0"), int(START_MS), int(1)]);
        let of_group = Reply::Array(vec![bulk("1-0"), bulk("a"), int(START_MS), int(1)]);
        let consumer = map(vec![
            ("name", bulk("a")),
            ("seen-time", int(START_MS)),
            ("active-time", int(START_MS)),
            ("pel-count", int(1)),
            ("pending", Reply::Array(vec![of_consumer])),
        ]);
        let group = map(vec![
            ("name", bulk("g")),
            ("last-delivered-id", bulk("1-0")),
            ("entries-read", int(1)),
            ("lag", int(1)),
            ("pel-count", int(1)),
            ("pending", Reply::Array(vec![of_group])),
            ("consumers", Reply::Array(vec![consumer])),
        ]);
        let shown = fields.into_iter().last();
        assert_eq!(shown, Some((bulk("groups"), Reply::Array(vec![group]))));
        let Reply::Map(fields) = bench.run("XINFO STREAM s") else {
            panic!();
        };
        assert!(fields.contains(&(bulk("groups"), int(1))));
    });
}
