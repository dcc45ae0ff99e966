//! XREADGROUP, XPENDING and XACK.

use super::*;

#[test]
fn each_entry_goes_to_one_consumer_until_it_is_acknowledged() {
    on_both_stores(|bench| {
        with_group(bench, "s", 4);
        let run = |line: &str| bench.run(line);
        assert_eq!(
            run("XREADGROUP GROUP g a COUNT 2 STREAMS s >"),
            read("s", [1, 2])
        );
        assert_eq!(run("XREADGROUP GROUP g b STREAMS s >"), read("s", [3, 4]));
        assert_eq!(run("XREADGROUP GROUP g c STREAMS s >"), Reply::NullArray);
        assert_eq!(run("XACK s g 1-0 3-0 3-0 9-9"), int(2));
        assert_eq!(run("XACK s g 1-0"), int(0));
        assert_eq!(
            all_pending(bench, "s"),
            Reply::Array(vec![pending(2, "a", 0, 1), pending(4, "b", 0, 1)])
        );
        let of_each = |name| Reply::Array(vec![bulk(name), bulk("1")]);
        assert_eq!(
            run("XPENDING s g"),
            Reply::Array(vec![
                int(2),
                bulk("2-0"),
                bulk("4-0"),
                Reply::Array(vec![of_each("a"), of_each("b")]),
            ])
        );
        assert_eq!(run("XACK s g 2-0 4-0"), int(2));
        assert_eq!(
            run("XPENDING s g"),
            Reply::Array(vec![int(0), Reply::Null, Reply::Null, Reply::NullArray])
        );
    });
}

#[test]
fn a_consumer_reads_its_own_pending_entries_again() {
    on_both_stores(|bench| {
        with_group(bench, "s", 3);
        let run = |line: &str| bench.run(line);
        run("XREADGROUP GROUP g a COUNT 2 STREAMS s >");
        run("XREADGROUP GROUP g b STREAMS s >");
        run("XDEL s 1-0");
        bench.clock.advance_ms(100);
        let gone = Reply::Array(vec![bulk("1-0"), Reply::NullArray]);
        let again = |all| Reply::Keyed(vec![(bulk("s"), Reply::Array(all))]);
        assert_eq!(
            run("XREADGROUP GROUP g a STREAMS s 0"),
            again(vec![gone.clone(), entry(2)])
        );
        assert_eq!(
            run("XREADGROUP GROUP g a COUNT 1 STREAMS s 0"),
            again(vec![gone])
        );
        assert_eq!(run("XREADGROUP GROUP g a STREAMS s 2"), again(vec![]));
        assert_eq!(
            all_pending(bench, "s"),
            Reply::Array(vec![
                pending(1, "a", 100, 1),
                pending(2, "a", 0, 2),
                pending(3, "b", 100, 1),
            ])
        );
        // With a history id, the command does not wait.
        assert_eq!(
            run("XREADGROUP GROUP g b BLOCK 0 STREAMS s s > 0"),
            Reply::Keyed(vec![(bulk("s"), entries([3]))])
        );
    });
}

#[test]
fn a_stream_that_is_named_twice_is_read_on() {
    on_both_stores(|bench| {
        with_group(bench, "s", 3);
        let read_twice = "XREADGROUP GROUP g a COUNT 2 STREAMS s s > >";
        let both = |first: Reply, second: Reply| {
            Reply::Keyed(vec![(bulk("s"), first), (bulk("s"), second)])
        };
        assert_eq!(bench.run(read_twice), both(entries([1, 2]), entries([3])));
        assert_eq!(bench.run(read_twice), Reply::NullArray);
        assert_eq!(info(bench, "XINFO GROUPS s", "pending"), int(3));
    });
}

#[test]
fn entries_without_acknowledgement_are_not_pending() {
    on_both_stores(|bench| {
        with_group(bench, "s", 2);
        assert_eq!(
            bench.run("XREADGROUP GROUP g a NOACK STREAMS s >"),
            read("s", [1, 2])
        );
        assert_eq!(all_pending(bench, "s"), Reply::Array(Vec::new()));
        assert_eq!(info(bench, "XINFO CONSUMERS s g", "inactive"), int(-1));
    });
}

#[test]
fn entries_that_are_read_twice_change_their_consumer() {
    on_both_stores(|bench| {
        with_group(bench, "s", 2);
        bench.run("XREADGROUP GROUP g a STREAMS s >");
        bench.run("XGROUP SETID s g 1-0");
        assert_eq!(
            bench.run("XREADGROUP GROUP g b STREAMS s >"),
            read("s", [2])
        );
        assert_eq!(
            all_pending(bench, "s"),
            Reply::Array(vec![pending(1, "a", 0, 1), pending(2, "b", 0, 1)])
        );
        assert_eq!(info(bench, "XINFO GROUPS s", "pending"), int(2));
    });
}

#[test]
fn pending_entries_are_found_by_range_consumer_and_idle_time() {
    on_both_stores(|bench| {
        with_group(bench, "s", 4);
        let run = |line: &str| bench.run(line);
        run("XREADGROUP GROUP g a COUNT 2 STREAMS s >");
        bench.clock.advance_ms(50);
        run("XREADGROUP GROUP g b STREAMS s >");
        let (first, second) = (pending(1, "a", 50, 1), pending(2, "a", 50, 1));
        let third = pending(3, "b", 0, 1);
        let array = |all: &[&Reply]| Reply::Array(all.iter().map(|one| (*one).clone()).collect());
        assert_eq!(run("XPENDING s g - + 2"), array(&[&first, &second]));
        assert_eq!(run("XPENDING s g (1 3 9"), array(&[&second, &third]));
        assert_eq!(run("XPENDING s g - + 1 b"), array(&[&third]));
        assert_eq!(run("XPENDING s g - + 9 nobody"), array(&[]));
        assert_eq!(run("XPENDING s g - + 0"), array(&[]));
        assert_eq!(run("XPENDING s g 3 2 9"), array(&[]));
        assert_eq!(run("XPENDING s g IDLE 50 - + 1"), array(&[&first]));
        assert_eq!(run("XPENDING s g IDLE 1 - + 9"), array(&[&first, &second]));
        assert_eq!(run("XPENDING s g IDLE 51 - + 9"), array(&[]));
        assert_eq!(run("XPENDING s g IDLE 1 - + 9 b"), array(&[]));
    });
}

#[test]
fn what_cannot_be_read_is_refused_as_in_redis() {
    on_both_stores(|bench| {
        with_group(bench, "s", 1);
        bench.run("SET string x");
        for (line, expected) in [
            (
                "XREADGROUP GROUP h a STREAMS s >",
                "NOGROUP No such key 's' or consumer group 'h' in XREADGROUP with GROUP option",
            ),
            (
                "XREADGROUP GROUP g a STREAMS s t > >",
                "NOGROUP No such key 't' or consumer group 'g' in XREADGROUP with GROUP option",
            ),
            (
                "XREADGROUP GROUP g a STREAMS s $",
                "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the \
                 history of this consumer by specifying a proper ID, or use the > ID to get new \
                 messages. The $ ID would just return an empty result set.",
            ),
            (
                "XREADGROUP GROUP g a STREAMS s x",
                "ERR Invalid stream ID specified as stream command argument",
            ),
            (
                "XREADGROUP COUNT 1 COUNT 1 STREAMS s >",
                "ERR Missing GROUP option for XREADGROUP",
            ),
            ("XREADGROUP GROUP g a STREAMS string >", WRONG_TYPE),
            ("XACK string g 1-0", WRONG_TYPE),
            ("XPENDING string g", WRONG_TYPE),
            (
                "XPENDING s h",
                "NOGROUP No such key 's' or consumer group 'h'",
            ),
            ("XPENDING s g - +", "ERR syntax error"),
            ("XPENDING s g IDLE 5 - +", "ERR syntax error"),
            (
                "XACK s g 1-0 x",
                "ERR Invalid stream ID specified as stream command argument",
            ),
        ] {
            assert_eq!(bench.run(line), error(expected), "{line}");
        }
        // The refused commands have delivered nothing.
        assert_eq!(
            bench.run("XREADGROUP GROUP g STREAMS STREAMS s >"),
            read("s", [1])
        );
        assert_eq!(bench.run("XACK none g x"), int(0));
        assert_eq!(bench.run("XACK s none x"), int(0));
    });
}

#[test]
fn in_exec_nobody_waits() {
    on_both_stores(|bench| {
        with_group(bench, "s", 0);
        let replies = bench.exec(&[
            "XREADGROUP GROUP g a BLOCK 0 STREAMS s >",
            "XADD s 1-0 n 1",
            "XREADGROUP GROUP g a BLOCK 0 STREAMS s >",
        ]);
        assert_eq!(
            replies,
            Reply::Array(vec![Reply::NullArray, bulk("1-0"), read("s", [1])])
        );
    });
}

/// The number of entries in a reply.
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
