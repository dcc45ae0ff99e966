//! XGROUP.

use super::*;

#[test]
fn groups_are_made_moved_and_destroyed() {
    on_both_stores(|bench| {
        let run = |line: &str| bench.run(line);
        let no_key = "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you \
                      may want to use the MKSTREAM option to create an empty stream automatically.";
        assert_eq!(run("XGROUP CREATE s g 0"), error(no_key));
        assert_eq!(run("XGROUP DESTROY s g"), error(no_key));
        assert_eq!(run("XGROUP CREATE s g $ MKSTREAM"), Reply::OK);
        assert_eq!(run("XLEN s"), int(0));
        assert_eq!(run("TYPE s"), Reply::Simple("stream"));
        assert_eq!(
            run("XGROUP CREATE s g 0"),
            error("BUSYGROUP Consumer Group name already exists")
        );
        add(bench, "s", 1);
        assert_eq!(run("XGROUP CREATE s h $"), Reply::OK);
        assert_eq!(run("XREADGROUP GROUP h a STREAMS s >"), Reply::NullArray);
        assert_eq!(run("XGROUP SETID s h 0"), Reply::OK);
        assert_eq!(run("XREADGROUP GROUP h a STREAMS s >"), read("s", [1]));
        assert_eq!(run("XREADGROUP GROUP g a STREAMS s >"), read("s", [1]));
        assert_eq!(run("XGROUP DESTROY s h"), int(1));
        assert_eq!(run("XGROUP DESTROY s h"), int(0));
        let no_group = error("NOGROUP No such consumer group 'h' for key name 's'");
        assert_eq!(run("XGROUP SETID s h 0"), no_group);
        assert_eq!(run("XGROUP CREATECONSUMER s h a"), no_group);
        assert_eq!(run("XGROUP DELCONSUMER s h a"), no_group);
        assert_eq!(run("XINFO CONSUMERS s h"), no_group);
        // These rows are left: the entry, the head, a group, a consumer, a pending entry and two counters.
        assert_eq!(bench.data_rows(), 8);
    });
}

#[test]
fn options_that_xgroup_has_not_are_refused() {
    on_both_stores(|bench| {
        with_group(bench, "s", 0);
        for (line, expected) in [
            (
                "XGROUP CREATE s h 0 NOSTREAM",
                "ERR unknown subcommand or wrong number of arguments for 'CREATE'. Try XGROUP HELP.",
            ),
            (
                "XGROUP SETID s g 0 MKSTREAM",
                "ERR unknown subcommand or wrong number of arguments for 'SETID'. Try XGROUP HELP.",
            ),
            (
                "XGROUP CREATE s h 0 ENTRIESREAD -2",
                "ERR value for ENTRIESREAD must be positive or -1",
            ),
            (
                "XGROUP CREATE s h 0 ENTRIESREAD x",
                "ERR value is not an integer or out of range",
            ),
            (
                "XGROUP CREATE s h -",
                "ERR Invalid stream ID specified as stream command argument",
            ),
            (
                "XGROUP CREATE t h x MKSTREAM",
                "ERR Invalid stream ID specified as stream command argument",
            ),
        ] {
            assert_eq!(bench.run(line), error(expected), "{line}");
        }
        assert_eq!(bench.run("EXISTS t"), int(0));
        assert_eq!(bench.run("XGROUP SETID s g -"), Reply::OK);
    });
}

#[test]
fn consumers_are_made_and_removed_with_what_they_have() {
    on_both_stores(|bench| {
        with_group(bench, "s", 3);
        let run = |line: &str| bench.run(line);
        assert_eq!(run("XGROUP CREATECONSUMER s g a"), int(1));
        assert_eq!(run("XGROUP CREATECONSUMER s g a"), int(0));
        assert_eq!(run("XGROUP DELCONSUMER s g nobody"), int(0));
        run("XREADGROUP GROUP g a COUNT 2 STREAMS s >");
        run("XREADGROUP GROUP g b STREAMS s >");
        assert_eq!(run("XGROUP DELCONSUMER s g a"), int(2));
        assert_eq!(
            all_pending(bench, "s"),
            Reply::Array(vec![pending(3, "b", 0, 1)])
        );
        assert_eq!(info(bench, "XINFO GROUPS s", "pending"), int(1));
        assert_eq!(info(bench, "XINFO GROUPS s", "consumers"), int(1));
        assert_eq!(run("XGROUP DELCONSUMER s g b"), int(1));
        assert_eq!(run("XINFO CONSUMERS s g"), Reply::Array(Vec::new()));
        assert_eq!(info(bench, "XINFO GROUPS s", "pending"), int(0));
    });
}

#[test]
fn long_names_are_names_too() {
    on_both_stores(|bench| {
        let (group, consumer) = ("g".repeat(5_000), "c".repeat(5_000));
        let run = |line: &str| bench.run(line);
        run(&format!("XGROUP CREATE s {group} 0 MKSTREAM"));
        add(bench, "s", 1);
        let reply = run(&format!("XREADGROUP GROUP {group} {consumer} STREAMS s >"));
        assert_eq!(reply, read("s", [1]));
        assert_eq!(info(bench, "XINFO GROUPS s", "name"), bulk(&group));
        let consumers = format!("XINFO CONSUMERS s {group}");
        assert_eq!(info(bench, &consumers, "name"), bulk(&consumer));
        let too_long = "g".repeat(quoin_base::limits::STREAM_NAME_BYTES_MAX + 1);
        let refused = run(&format!("XGROUP CREATE s {too_long} 0"));
        assert!(matches!(refused, Reply::Error(line) if line.contains("longer than")));
    });
}

#[test]
fn help_names_every_subcommand() {
    let bench = Bench::embedded();
    let Reply::Array(lines) = bench.run("XGROUP HELP") else {
        panic!("no lines");
    };
    let text = format!("{lines:?}");
    for row in crate::table::all() {
        if let Some(name) = row.name.strip_prefix("xgroup|") {
            assert!(text.contains(&name.to_ascii_uppercase()), "{name}");
        }
    }
}
