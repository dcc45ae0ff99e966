//! XCLAIM, XAUTOCLAIM and XNACK.

use super::*;

fn ids(numbers: impl IntoIterator<Item = usize>) -> Reply {
    let numbers = numbers.into_iter();
    Reply::Array(numbers.map(|number| bulk(&format!("{number}-0"))).collect())
}

#[test]
fn entries_that_are_idle_are_claimed() {
    on_both_stores(|bench| {
        with_group(bench, "s", 3);
        let run = |line: &str| bench.run(line);
        run("XREADGROUP GROUP g a COUNT 2 STREAMS s >");
        bench.clock.advance_ms(100);
        assert_eq!(run("XCLAIM s g b 101 1-0"), entries([]));
        assert_eq!(run("XCLAIM s g b 100 1-0 3-0"), entries([1]));
        assert_eq!(
            all_pending(bench, "s"),
            Reply::Array(vec![pending(1, "b", 0, 2), pending(2, "a", 100, 1)])
        );
        assert_eq!(run("XCLAIM s g b 0 2-0 JUSTID IDLE 30"), ids([2]));
        assert_eq!(
            run("XCLAIM s g b 0 3-0 FORCE RETRYCOUNT 7 TIME 5"),
            entries([3])
        );
        assert_eq!(
            all_pending(bench, "s"),
            Reply::Array(vec![
                pending(1, "b", 0, 2),
                pending(2, "b", 30, 1),
                pending(3, "b", START_MS + 95, 7),
            ])
        );
        run("XACK s g 3-0");
        run("XCLAIM s g b 0 3-0 FORCE JUSTID");
        assert_eq!(
            run("XPENDING s g 3-0 + 1"),
            Reply::Array(vec![pending(3, "b", 0, 1)])
        );
        run("XCLAIM s g b 0 3-0");
        run("XACK s g 3-0");
        run("XCLAIM s g b 0 3-0 FORCE");
        assert_eq!(
            run("XPENDING s g 3-0 + 1"),
            Reply::Array(vec![pending(3, "b", 0, 2)])
        );
        // A repeated id is claimed twice.
        assert_eq!(run("XCLAIM s g a 0 1-0 1-0"), entries([1, 1]));
        assert_eq!(
            run("XPENDING s g - + 1"),
            Reply::Array(vec![pending(1, "a", 0, 4)])
        );
        assert_eq!(run("XCLAIM s g a 0 9-9 FORCE"), entries([]));
    });
}

#[test]
fn a_claim_may_advance_its_group() {
    on_both_stores(|bench| {
        with_group(bench, "s", 3);
        bench.run("XCLAIM s g a 0 0-1 LASTID 2-0");
        assert_eq!(
            bench.run("XREADGROUP GROUP g a STREAMS s >"),
            read("s", [3])
        );
        bench.run("XCLAIM s g a 0 0-1 LASTID 1-0");
        assert_eq!(
            bench.run("XREADGROUP GROUP g a STREAMS s >"),
            Reply::NullArray
        );
    });
}

#[test]
fn entries_that_are_gone_are_pending_until_they_are_claimed() {
    on_both_stores(|bench| {
        with_group(bench, "s", 3);
        let run = |line: &str| bench.run(line);
        run("XREADGROUP GROUP g a STREAMS s >");
        run("XDEL s 1-0");
        run("XTRIM s MAXLEN 1");
        assert_eq!(info(bench, "XINFO GROUPS s", "pending"), int(3));
        assert_eq!(run("XCLAIM s g b 1000 1-0"), entries([]));
        assert_eq!(info(bench, "XINFO GROUPS s", "pending"), int(2));
        assert_eq!(
            run("XAUTOCLAIM s g b 0 -"),
            Reply::Array(vec![bulk("0-0"), entries([3]), ids([2])])
        );
        assert_eq!(
            all_pending(bench, "s"),
            Reply::Array(vec![pending(3, "b", 0, 2)])
        );
        assert_eq!(run("XACK s g 3-0"), int(1));
    });
}

#[test]
fn autoclaim_goes_on_where_it_ended() {
    on_both_stores(|bench| {
        with_group(bench, "s", 25);
        let run = |line: &str| bench.run(line);
        run("XREADGROUP GROUP g a COUNT 22 STREAMS s >");
        bench.clock.advance_ms(100);
        run("XREADGROUP GROUP g a STREAMS s >");
        let done = |next: &str, claimed| Reply::Array(vec![bulk(next), claimed, ids([])]);
        assert_eq!(
            run("XAUTOCLAIM s g b 100 0 COUNT 2"),
            done("3-0", entries([1, 2]))
        );
        assert_eq!(
            run("XAUTOCLAIM s g b 100 (20 COUNT 100 JUSTID"),
            done("0-0", ids([21, 22]))
        );
        // It examines ten entries for each wanted one.
        assert_eq!(
            run("XAUTOCLAIM s g b 200 5 COUNT 1"),
            done("15-0", entries([]))
        );
        assert_eq!(run("XAUTOCLAIM s g b 0 25"), done("0-0", entries([25])));
        assert_eq!(run("XAUTOCLAIM s g b 0 26"), done("0-0", entries([])));
    });
}

#[test]
fn what_cannot_be_claimed_is_refused_as_in_redis() {
    on_both_stores(|bench| {
        with_group(bench, "s", 1);
        for (line, expected) in [
            (
                "XCLAIM s h a 0 1-0",
                "NOGROUP No such key 's' or consumer group 'h'",
            ),
            (
                "XCLAIM t g a 0 1-0",
                "NOGROUP No such key 't' or consumer group 'g'",
            ),
            (
                "XCLAIM s g a x 1-0",
                "ERR Invalid min-idle-time argument for XCLAIM",
            ),
            ("XCLAIM s g a 0 1-0 x", "ERR Unrecognized XCLAIM option 'x'"),
            (
                "XCLAIM s g a 0 1-0 IDLE",
                "ERR Unrecognized XCLAIM option 'IDLE'",
            ),
            (
                "XCLAIM s g a 0 1-0 TIME x",
                "ERR Invalid TIME option argument for XCLAIM",
            ),
            (
                "XCLAIM s g a 0 1-0 RETRYCOUNT x",
                "ERR Invalid RETRYCOUNT option argument for XCLAIM",
            ),
            (
                "XAUTOCLAIM s g a x -",
                "ERR Invalid min-idle-time argument for XAUTOCLAIM",
            ),
            ("XAUTOCLAIM s g a 0 - COUNT 0", "ERR COUNT must be > 0"),
            ("XAUTOCLAIM s g a 0 - COUNT", "ERR syntax error"),
            (
                "XAUTOCLAIM s h a 0 -",
                "NOGROUP No such key 's' or consumer group 'h'",
            ),
        ] {
            assert_eq!(bench.run(line), error(expected), "{line}");
        }
        assert_eq!(bench.run("XINFO CONSUMERS s g"), Reply::Array(Vec::new()));
    });
}

#[test]
fn a_released_entry_is_nobodys_and_can_be_claimed_at_once() {
    on_both_stores(|bench| {
        with_group(bench, "s", 3);
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
        // A released entry is not new.
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
        with_group(bench, "s", 1);
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
        with_group(bench, "s", 2);
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
