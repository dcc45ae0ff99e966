//! XDEL, XDELEX and XACKDEL.

use super::*;

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

fn codes(codes: &[i64]) -> Reply {
    Reply::Array(codes.iter().copied().map(Reply::Integer).collect())
}

#[test]
fn deleted_entries_stay_with_groups_or_go_from_them() {
    on_both_stores(|bench| {
        with_group(bench, "s", 5);
        bench.run("XGROUP CREATE s h 0");
        bench.run("XREADGROUP GROUP g a COUNT 4 STREAMS s >");
        bench.run("XREADGROUP GROUP h a COUNT 2 STREAMS s >");
        assert_eq!(bench.run("XDELEX s IDS 2 1-0 9-0"), codes(&[1, -1]));
        assert_eq!(info(bench, "XINFO GROUPS s", "pending"), int(2));
        assert_eq!(
            bench.run("XDELEX s DELREF IDS 3 2-0 2-0 1-0"),
            codes(&[1, -1, -1])
        );
        // Group h has not read the third entry, and no group has read the fifth.
        bench.run("XACK s g 3-0");
        assert_eq!(bench.run("XDELEX s ACKED IDS 2 3-0 5-0"), codes(&[2, 2]));
        assert_eq!(bench.run("XLEN s"), int(3));
        assert_eq!(
            all_pending(bench, "s"),
            Reply::Array(vec![pending(4, "a", 0, 1)])
        );
        bench.run("XREADGROUP GROUP h a STREAMS s >");
        bench.run("XACK s h 3-0 4-0 5-0");
        assert_eq!(
            bench.run("XDELEX s ACKED IDS 4 3-0 4-0 2-0 9-0"),
            codes(&[1, 2, -1, 2])
        );
        assert_eq!(
            bench.run("XDELEX gone ACKED IDS 2 3-0 4-0"),
            codes(&[-1, -1])
        );
    });
}

#[test]
fn entries_are_acknowledged_and_deleted_at_once() {
    on_both_stores(|bench| {
        with_group(bench, "s", 4);
        bench.run("XGROUP CREATE s h 0");
        for group in ["g", "h"] {
            bench.run(&format!("XREADGROUP GROUP {group} a COUNT 3 STREAMS s >"));
        }
        assert_eq!(
            bench.run("XACKDEL s g IDS 3 1-0 1-0 4-0"),
            codes(&[1, -1, -1])
        );
        assert_eq!(bench.run("XACKDEL s g ACKED IDS 1 2-0"), codes(&[2]));
        assert_eq!(bench.run("XACKDEL s h ACKED IDS 1 2-0"), codes(&[1]));
        assert_eq!(bench.run("XACKDEL s g DELREF IDS 1 3-0"), codes(&[1]));
        assert_eq!(bench.run("XLEN s"), int(1));
        // In group h, only the first is still pending.
        assert_eq!(
            bench.run("XPENDING s h - + 9"),
            Reply::Array(vec![pending(1, "a", 0, 1)])
        );
        assert_eq!(bench.run("XACKDEL s h IDS 1 1-0"), codes(&[1]));
        assert_eq!(bench.run("XACKDEL s i IDS 2 1-0 2-0"), codes(&[-1, -1]));
        for line in ["XACKDEL s g 1-0 2-0 3-0", "XDELEX s ACKED DELREF IDS 1 1-0"] {
            assert_eq!(bench.run(line), error("ERR syntax error"), "{line}");
        }
    });
}
