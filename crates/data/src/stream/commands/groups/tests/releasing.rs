//! XNACK, XACKDEL and XDELEX, of Redis 8.

use super::*;

fn codes(codes: &[i64]) -> Reply {
    Reply::Array(codes.iter().copied().map(Reply::Integer).collect())
}

/// What XPENDING shows of an entry that was released.
fn released(number: usize, deliveries: i64) -> Reply {
    pending(number, "", -1, deliveries)
}

#[test]
fn a_released_entry_is_nobodys_and_can_be_claimed_at_once() {
    on_both_stores(|bench| {
        fill(bench, "s", 3);
        bench.run("XREADGROUP GROUP g a STREAMS s >");
        bench.clock.advance_ms(5);
        assert_eq!(bench.run("XNACK s g SILENT IDS 1 1-0"), int(1));
        assert_eq!(bench.run("XNACK s g FAIL IDS 3 2-0 2-0 9-0"), int(1));
        assert_eq!(bench.run("XNACK s g FATAL IDS 1 3-0"), int(1));
        assert_eq!(
            all_pending(bench, "s"),
            Reply::Array(vec![released(1, 0), released(2, 1), released(3, i64::MAX)])
        );
        assert_eq!(
            bench.run("XPENDING s g"),
            Reply::Array(vec![int(3), bulk("1-0"), bulk("3-0"), Reply::Array(vec![])])
        );
        assert_eq!(info(bench, "XINFO CONSUMERS s g", "pending"), int(0));
        // It is not new.
        assert_eq!(
            bench.run("XREADGROUP GROUP g b STREAMS s >"),
            Reply::NullArray
        );
        assert_eq!(bench.run("XCLAIM s g b 1000 1-0 JUSTID"), bulks(&["1-0"]));
        bench.run("XAUTOCLAIM s g b 1000 0 COUNT 1");
        assert_eq!(
            bench.run("XPENDING s g - + 2"),
            Reply::Array(vec![pending(1, "b", 0, 0), pending(2, "b", 0, 2)])
        );
        assert_eq!(bench.run("XACK s g 1-0 3-0"), int(2));
        assert_eq!(info(bench, "XINFO GROUPS s", "pending"), int(1));
    });
}

#[test]
fn a_group_with_a_policy_hands_a_released_entry_to_those_that_wait() {
    on_both_stores(|bench| {
        fill(bench, "s", 1);
        bench.run("XGROUP SETPOLICY s g MINIDLE 1000 MAXTRIES 3 DEADLETTER dead");
        bench.run("XREADGROUP GROUP g a STREAMS s >");
        let waiting = bench.wait("XREADGROUP GROUP g b BLOCK 0 STREAMS s >");
        bench.run("XNACK s g FAIL IDS 1 1-0");
        assert_eq!(waiting.reply(bench), read("s", [1]));
        let mut waiting = bench.wait("XREADGROUP GROUP g b BLOCK 0 STREAMS s >");
        bench.run("XNACK s g FATAL IDS 1 1-0");
        assert!(waiting.is_waiting());
        assert_eq!(bench.run("XLEN dead"), int(1));
        assert_eq!(all_pending(bench, "s"), Reply::Array(vec![]));
    });
}

#[test]
fn xnack_takes_what_redis_takes() {
    on_both_stores(|bench| {
        fill(bench, "s", 2);
        bench.run("XREADGROUP GROUP g a COUNT 1 STREAMS s >");
        assert_eq!(
            bench.run("XNACK s g FAIL IDS 2 1-0 2-0 RETRYCOUNT 7 FORCE"),
            int(2)
        );
        assert_eq!(
            all_pending(bench, "s"),
            Reply::Array(vec![released(1, 7), released(2, 7)])
        );
        assert_eq!(bench.run("XNACK s g FAIL IDS 1 9-0 FORCE"), int(0));
        for (line, reply) in [
            (
                "XNACK s g LOUD IDS 1 1-0",
                "ERR mode must be SILENT, FAIL, or FATAL",
            ),
            (
                "XNACK s g FAIL IDS 0 1-0",
                "ERR Number of IDs must be a positive integer",
            ),
            (
                "XNACK s g FAIL IDS 2 1-0",
                "ERR The `numids` parameter must match the number of arguments",
            ),
            ("XNACK s g FAIL FORCE FORCE FORCE", "ERR syntax error"),
            (
                "XNACK s h FAIL IDS 1 1-0",
                "NOGROUP No such key 's' or consumer group 'h'",
            ),
        ] {
            assert_eq!(bench.run(line), error(reply), "{line}");
        }
    });
}

#[test]
fn released_entries_survive_dump_and_restore() {
    on_both_stores(|bench| {
        fill(bench, "s", 2);
        bench.run("XREADGROUP GROUP g a STREAMS s >");
        bench.run("XNACK s g FAIL IDS 1 2-0");
        let Reply::Bulk(payload) = bench.run("DUMP s") else {
            panic!("no payload");
        };
        let restored = bench.run_words(&[b"RESTORE", b"t", b"0", &payload]);
        assert_eq!(restored, Reply::OK);
        for key in ["s", "t"] {
            assert_eq!(
                all_pending(bench, key),
                Reply::Array(vec![pending(1, "a", 0, 1), released(2, 1)])
            );
            assert_eq!(
                info(bench, &format!("XINFO GROUPS {key}"), "consumers"),
                int(1)
            );
            assert_eq!(
                info(bench, &format!("XINFO CONSUMERS {key} g"), "pending"),
                int(1)
            );
        }
    });
}

#[test]
fn deleted_entries_stay_with_groups_or_go_from_them() {
    on_both_stores(|bench| {
        fill(bench, "s", 5);
        bench.run("XGROUP CREATE s h 0");
        bench.run("XREADGROUP GROUP g a COUNT 4 STREAMS s >");
        bench.run("XREADGROUP GROUP h a COUNT 2 STREAMS s >");
        assert_eq!(bench.run("XDELEX s IDS 2 1-0 9-0"), codes(&[1, -1]));
        assert_eq!(info(bench, "XINFO GROUPS s", "pending"), int(2));
        assert_eq!(
            bench.run("XDELEX s DELREF IDS 3 2-0 2-0 1-0"),
            codes(&[1, -1, -1])
        );
        // Group h has not read the third, and neither has read the fifth.
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
        fill(bench, "s", 4);
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
        // Only the first is left, of which h still knows.
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
