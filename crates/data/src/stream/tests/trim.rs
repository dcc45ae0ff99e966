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
