//! XTRIM, and XADD with MAXLEN and MINID.

use super::*;

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
        // Only the head is left.
        assert_eq!(bench.data_rows(), 1);
        assert_eq!(bench.run("XTRIM none MAXLEN 0"), Reply::Integer(0));
        assert_eq!(
            bench.run("XTRIM s LIMIT 0"),
            error("ERR syntax error, XTRIM must be called with a trimming strategy")
        );
    });
}

/// A node of Redis has 100 entries by default.
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

/// Redis keeps each of them in its own node.
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

/// Entries 1 to 10. Group g has read up to 6 and acknowledged 2, 3 and 5; h has read all and acknowledged
/// all but 1.
fn with_references(bench: &Bench) {
    with_group(bench, "s", 10);
    bench.run("XGROUP CREATE s h 0");
    bench.run("XREADGROUP GROUP g a COUNT 6 STREAMS s >");
    bench.run("XREADGROUP GROUP h a STREAMS s >");
    bench.run("XACK s g 2-0 3-0 5-0");
    bench.run("XACK s h 2-0 3-0 4-0 5-0 6-0 7-0 8-0 9-0 10-0");
}

fn pending_ids(bench: &Bench, group: &str) -> Vec<Reply> {
    let Reply::Array(pending) = bench.run(&format!("XPENDING s {group} - + 100")) else {
        panic!("no array");
    };
    let id = |one: Reply| match one {
        Reply::Array(mut parts) => parts.swap_remove(0),
        other => panic!("{other:?}"),
    };
    pending.into_iter().map(id).collect()
}

#[test]
fn acked_leaves_what_a_group_has_not_acknowledged() {
    on_both_stores(|bench| {
        with_references(bench);
        assert_eq!(bench.run("XTRIM s MAXLEN 9 ACKED"), int(1));
        assert_eq!(
            bench.run("XRANGE s - +"),
            entries([1, 3, 4, 5, 6, 7, 8, 9, 10])
        );
        assert_eq!(bench.run("XADD s ACKED MAXLEN 0 11-0 n 11"), bulk("11-0"));
        // 7 to 11 were not read by g.
        let left = [1, 4, 6, 7, 8, 9, 10, 11];
        assert_eq!(bench.run("XRANGE s - +"), entries(left));
        assert_eq!(bench.run("XLEN s"), int(8));
        assert_eq!(bench.run("XTRIM s ACKED MINID ~ 100"), int(0));
        bench.run("XACK s g 1-0 4-0");
        assert_eq!(bench.run("XTRIM s ACKED MINID ~ 100"), int(1));
        assert_eq!(bench.run("XRANGE s - + COUNT 1"), entries([1]));
    });
}

#[test]
fn delref_takes_pending_entries_along() {
    on_both_stores(|bench| {
        with_references(bench);
        bench.run("XDEL s 4-0");
        assert_eq!(bench.run("XTRIM s DELREF MAXLEN 4"), int(5));
        assert_eq!(bench.run("XRANGE s - +"), entries(7..=10));
        // The stream did not have the entry any more.
        assert_eq!(pending_ids(bench, "g"), [bulk("4-0")]);
        assert_eq!(pending_ids(bench, "h"), []);
        assert_eq!(info(bench, "XINFO CONSUMERS s g", "pending"), int(1));
        assert_eq!(info(bench, "XINFO CONSUMERS s h", "pending"), int(0));
    });
}

#[test]
fn keepref_leaves_pending_entries() {
    on_both_stores(|bench| {
        with_references(bench);
        assert_eq!(bench.run("XTRIM s MAXLEN 4 KEEPREF"), int(6));
        assert_eq!(
            pending_ids(bench, "g"),
            [bulk("1-0"), bulk("4-0"), bulk("6-0")]
        );
    });
}

#[test]
fn approximate_trimming_with_delref_is_exact_up_to_its_limit() {
    on_both_stores(|bench| {
        with_group(bench, "s", 250);
        bench.run("XREADGROUP GROUP g a STREAMS s >");
        assert_eq!(bench.run("XTRIM s MAXLEN ~ 247 DELREF"), int(3));
        // The first node, of 97, is within the limit; the second is not.
        assert_eq!(bench.run("XTRIM s MAXLEN ~ 10 LIMIT 150 DELREF"), int(97));
        assert_eq!(bench.run("XTRIM s MAXLEN ~ 10 LIMIT 99 DELREF"), int(0));
        assert_eq!(info(bench, "XINFO CONSUMERS s g", "pending"), int(150));
    });
}

#[test]
fn a_second_word_about_references_is_refused() {
    on_both_stores(|bench| {
        assert_eq!(
            bench.run("XTRIM s MAXLEN 1 ACKED KEEPREF"),
            error("ERR syntax error")
        );
        assert_eq!(
            bench.run("XADD s ACKED DELREF * f v"),
            error("ERR Invalid stream ID specified as stream command argument")
        );
    });
}
