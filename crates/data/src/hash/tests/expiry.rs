//! Fields that expire, on both kinds of store. The expected replies and errors are those of Redis
//! 8.2.

use bytes::Bytes;
use quoin_base::clock::Clock;
use quoin_data::taskqueue::timers;
use quoin_data::unit::context::{NamespaceCache, WriteContext};
use quoin_data::unit::signals::Signals;
use quoin_engine::reaper::Reaper;
use quoin_engine::testing::{Bench, bulk};
use quoin_layout::{KeyRange, Section, Space, Timers};
use quoin_resp::reply::Reply;
use quoin_store::{Isolation, RangeQuery, StoreError};

use super::{error, on_both_stores, with_rows};

fn integers(numbers: &[i64]) -> Reply {
    Reply::Array(numbers.iter().copied().map(Reply::Integer).collect())
}

/// Runs background work until there is nothing left to do.
pub(super) fn run_dry(bench: &Bench) {
    let mut reaper = Reaper::new(&bench.executor);
    for _ in 0..1_000 {
        if !bench.block_on(reaper.pass(&bench.executor)).unwrap() {
            return;
        }
    }
    panic!("the reaper finds no end");
}

/// The rows of a space.
pub(super) fn rows_in(bench: &Bench, space: Space) -> Vec<(Bytes, Bytes)> {
    let layout = &bench.executor.environment().layout;
    let KeyRange { begin, end } = layout.rows_of(space);
    let snapshot = bench.store.begin_read().unwrap();
    let rows = bench.block_on(snapshot.get_range(RangeQuery {
        begin: &begin,
        end: &end,
        limit: usize::MAX,
        reverse: false,
        isolation: Isolation::Snapshot,
    }));
    let rows = rows.unwrap().into_iter();
    rows.map(|row| (row.key, row.value)).collect()
}

/// Number of rows in a section, over all keys.
fn rows_of(bench: &Bench, section: Section) -> usize {
    let layout = &bench.executor.environment().layout;
    let is_of_section = |(key, _): &(Bytes, Bytes)| {
        let (_, number) = layout.read_data_key(key).unwrap();
        number == section as u64
    };
    let rows = rows_in(bench, Space::Data);
    rows.into_iter().filter(is_of_section).count()
}

#[test]
fn a_field_is_hidden_from_the_moment_it_expires() {
    for test in [on_both_stores, with_rows] as [fn(fn(&Bench)); 2] {
        test(|bench| {
            bench.run("HSET h a 1 b 2");
            let set = bench.run("HPEXPIRE h 100 FIELDS 2 a nosuch");
            assert_eq!(set, integers(&[1, -2]));
            bench.clock.advance_ms(99);
            assert_eq!(bench.run("HGET h a"), bulk("1"));
            assert_eq!(bench.run("HPTTL h FIELDS 3 a b x"), integers(&[1, -1, -2]));
            bench.clock.advance_ms(1);
            assert_eq!(bench.run("HGET h a"), Reply::Null);
            assert_eq!(bench.run("HEXISTS h a"), Reply::Integer(0));
            assert_eq!(bench.run("HSTRLEN h a"), Reply::Integer(0));
            let read = bench.run("HMGET h a b");
            assert_eq!(read, Reply::Array(vec![Reply::Null, bulk("2")]));
            for line in [
                "HKEYS h",
                "HGETALL h",
                "HSCAN h 0 COUNT 1000",
                "HRANDFIELD h 1000",
            ] {
                let shown = format!("{:?}", bench.run(line));
                assert!(!shown.contains("b\"a\""), "{line}: {shown}");
                assert!(shown.contains("b\"b\""), "{line}: {shown}");
            }
            assert_eq!(bench.run("HTTL h FIELDS 1 a"), integers(&[-2]));
            assert_eq!(
                bench.run("HGETDEL h FIELDS 1 a"),
                Reply::Array(vec![Reply::Null])
            );
            assert_eq!(bench.run("HSETNX h a 3"), Reply::Integer(1));
            assert_eq!(bench.run("HTTL h FIELDS 1 a"), integers(&[-1]));
            // As in Redis, HDEL counts an expired field.
            bench.run("HPEXPIRE h 1 FIELDS 1 a");
            bench.clock.advance_ms(1);
            assert_eq!(bench.run("HDEL h a"), Reply::Integer(1));
            assert_eq!(bench.run("HDEL h a"), Reply::Integer(0));
        });
    }
}

#[test]
fn background_work_removes_fields_and_at_last_the_key() {
    on_both_stores(|bench| {
        let fields: Vec<String> = (0..1_300).map(|number| format!("f{number}")).collect();
        let pairs: String = fields.iter().map(|field| format!(" {field} v")).collect();
        bench.run(&format!("HSET h stays 1 later 2{pairs}"));
        bench.run(&format!("HPEXPIRE h 100 FIELDS 1300 {}", fields.join(" ")));
        bench.run("HEXPIRE h 7200 FIELDS 1 later");
        assert_eq!(rows_of(bench, Section::FieldExpiries), 1_301);
        run_dry(bench);
        assert_eq!(bench.run("HLEN h"), Reply::Integer(1_302));
        bench.clock.advance_ms(300);
        assert_eq!(bench.run("HLEN h"), Reply::Integer(1_302));
        run_dry(bench);
        assert_eq!(bench.run("HLEN h"), Reply::Integer(2));
        assert_eq!(rows_of(bench, Section::FieldExpiries), 1);
        bench.clock.advance_ms(7_200_000);
        run_dry(bench);
        assert_eq!(
            bench.run("HGETALL h"),
            Reply::Map(vec![(bulk("stays"), bulk("1"))])
        );
        bench.run("HPEXPIRE h 1 FIELDS 1 stays");
        bench.clock.advance_ms(300);
        run_dry(bench);
        assert_eq!(bench.run("EXISTS h"), Reply::Integer(0));
        assert_eq!(rows_in(bench, Space::Data), []);
        assert_eq!(rows_in(bench, Space::HashTimers), []);
    });
}

#[test]
fn of_a_removed_key_nothing_is_left() {
    on_both_stores(|bench| {
        for line in ["DEL h", "FLUSHDB", "SET h v", "PEXPIRE h 1", "HDEL h a b"] {
            bench.run("HSETEX h EX 5 FIELDS 2 a 1 b 2");
            bench.run(line);
            bench.run("DEL other");
            bench.clock.advance_ms(6_000);
            run_dry(bench);
            bench.run("DEL h");
            run_dry(bench);
            assert_eq!(rows_in(bench, Space::Data), [], "{line}");
            assert_eq!(rows_in(bench, Space::HashTimers), [], "{line}");
        }
    });
}

#[test]
fn a_moved_or_copied_hash_keeps_its_expiries() {
    on_both_stores(|bench| {
        bench.run("HSETEX h PX 5000 FIELDS 1 a 1");
        bench.run("HSET h b 2");
        let Reply::Bulk(payload) = bench.run("DUMP h") else {
            panic!("no payload");
        };
        bench.run("COPY h copy");
        bench.run("RENAME h renamed");
        bench.run_words(&[b"RESTORE", b"restored", b"0", &payload]);
        bench.run("MOVE copy 3");
        for (database, name) in [(0, "renamed"), (0, "restored"), (3, "copy")] {
            let ttl: [&[u8]; 5] = [b"HPTTL", name.as_bytes(), b"FIELDS", b"2", b"a"];
            let ttl = [&ttl[..], &[b"b"]].concat();
            assert_eq!(
                bench.run_in(database, &ttl),
                integers(&[5_000, -1]),
                "{name}"
            );
        }
        bench.clock.advance_ms(5_200);
        run_dry(bench);
        for (database, name) in [(0, "renamed"), (0, "restored"), (3, "copy")] {
            let length = bench.run_in(database, &[b"HLEN", name.as_bytes()]);
            assert_eq!(length, Reply::Integer(1), "{name}");
        }
    });
}

#[test]
fn a_small_hash_is_dumped_as_redis_8_dumps_it() {
    // `HSET h a 1 b 2`, `HPEXPIREAT h 4000000000000 FIELDS 1 b`, `DUMP h` of Redis 8.2.3.
    on_both_stores(|bench| {
        bench.run("HSET h a 1 b 2");
        bench.run("HPEXPIREAT h 4000000000000 FIELDS 1 b");
        let Reply::Bulk(payload) = bench.run("DUMP h") else {
            panic!("no payload");
        };
        let hex: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "1900409452a30300001d1d00000006008162020201f400409452a30300000981610201010001ff0c001e47b2251d920c24"
        );
        assert_eq!(bench.run("OBJECT ENCODING h"), bulk("listpackex"));
        bench.run("HPERSIST h FIELDS 1 b");
        assert_eq!(bench.run("OBJECT ENCODING h"), bulk("listpackex"));
        assert_eq!(bench.run("OBJECT ENCODING nosuch"), Reply::Null);
    });
}

#[test]
fn expired_fields_are_not_dumped() {
    on_both_stores(|bench| {
        bench.run("HSETEX h PX 10 FIELDS 1 a 1");
        bench.run("HSETEX h PX 1000 FIELDS 1 b 2");
        bench.run("HSET h c 3");
        bench.clock.advance_ms(10);
        let Reply::Bulk(payload) = bench.run("DUMP h") else {
            panic!("no payload");
        };
        bench.run_words(&[b"RESTORE", b"r", b"0", &payload]);
        assert_eq!(bench.run("HLEN r"), Reply::Integer(2));
        assert_eq!(bench.run("HPTTL r FIELDS 2 b c"), integers(&[990, -1]));
    });
}

#[test]
fn conditions_compare_with_the_present_expiry() {
    on_both_stores(|bench| {
        bench.run("HSET h a 1 b 2");
        let run = |line: &str| bench.run(line);
        assert_eq!(run("HEXPIRE h 10 XX FIELDS 2 a b"), integers(&[0, 0]));
        assert_eq!(run("HEXPIRE h 10 GT FIELDS 1 a"), integers(&[0]));
        assert_eq!(run("HEXPIRE h 10 LT FIELDS 2 a a"), integers(&[1, 0]));
        assert_eq!(run("HEXPIRE h 10 NX FIELDS 3 a b b"), integers(&[0, 1, 0]));
        assert_eq!(run("HEXPIRE h 20 gt fields 2 a x"), integers(&[1, -2]));
        assert_eq!(run("HEXPIRE h 20 XX FIELDS 1 b"), integers(&[1]));
        assert_eq!(run("HEXPIRE h 0 NX FIELDS 1 a"), integers(&[0]));
        assert_eq!(run("HEXPIRE h 0 FIELDS 3 a a b"), integers(&[2, -2, 2]));
        assert_eq!(run("EXISTS h"), Reply::Integer(0));
        assert_eq!(run("HEXPIRE h 10 FIELDS 2 a b"), integers(&[-2, -2]));
    });
}

#[test]
fn times_are_told_in_all_forms() {
    on_both_stores(|bench| {
        bench.run("HSET h a 1");
        bench.run("HPEXPIREAT h 4000000000001 FIELDS 1 a");
        let read = |command: &str| bench.run(&format!("{command} h FIELDS 1 a"));
        assert_eq!(read("HPEXPIRETIME"), integers(&[4_000_000_000_001]));
        // Rounded up.
        assert_eq!(read("HEXPIRETIME"), integers(&[4_000_000_001]));
        bench.run("HEXPIREAT h 4000000000 FIELDS 1 a");
        assert_eq!(read("HPEXPIRETIME"), integers(&[4_000_000_000_000]));
        bench.run("HPEXPIRE h 1001 FIELDS 1 a");
        assert_eq!(read("HTTL"), integers(&[2]));
        assert_eq!(read("HPTTL"), integers(&[1_001]));
        assert_eq!(read("HPERSIST"), integers(&[1]));
        assert_eq!(read("HPERSIST"), integers(&[-1]));
        assert_eq!(bench.run("HTTL nosuch FIELDS 2 a b"), integers(&[-2, -2]));
    });
}

#[test]
fn arithmetic_keeps_an_expiry_and_hset_removes_it() {
    on_both_stores(|bench| {
        bench.run("HSETEX h EX 100 FIELDS 1 a 1");
        assert_eq!(bench.run("HINCRBY h a 2"), Reply::Integer(3));
        assert_eq!(bench.run("HINCRBYFLOAT h a 0.5"), bulk("3.5"));
        assert_eq!(bench.run("HTTL h FIELDS 1 a"), integers(&[100]));
        bench.run("HSETEX h KEEPTTL FIELDS 2 a 4 b 5");
        assert_eq!(bench.run("HTTL h FIELDS 2 a b"), integers(&[100, -1]));
        assert_eq!(bench.run("HSET h a 5"), Reply::Integer(0));
        assert_eq!(bench.run("HTTL h FIELDS 1 a"), integers(&[-1]));
        bench.run("HPEXPIRE h 10 FIELDS 1 a");
        bench.clock.advance_ms(10);
        assert_eq!(bench.run("HINCRBY h a 2"), Reply::Integer(2));
        assert_eq!(bench.run("HTTL h FIELDS 1 a"), integers(&[-1]));
        assert_eq!(bench.run("HLEN h"), Reply::Integer(2));
    });
}

#[test]
fn values_are_read_and_expire_or_go_at_once() {
    for test in [on_both_stores, with_rows] as [fn(fn(&Bench)); 2] {
        test(|bench| {
            bench.run("HSET h a 1 b 2 c 3");
            let one = || Reply::Array(vec![bulk("1"), Reply::Null]);
            assert_eq!(bench.run("HGETEX h FIELDS 2 a x"), one());
            assert_eq!(bench.run("HGETEX h EX 10 FIELDS 2 a x"), one());
            assert_eq!(bench.run("HTTL h FIELDS 1 a"), integers(&[10]));
            assert_eq!(bench.run("HGETEX h PERSIST FIELDS 2 a x"), one());
            assert_eq!(bench.run("HTTL h FIELDS 1 a"), integers(&[-1]));
            assert_eq!(bench.run("HGETEX h PXAT 1 FIELDS 2 a a"), one());
            assert_eq!(bench.run("HEXISTS h a"), Reply::Integer(0));
            let three = Reply::Array(vec![bulk("2"), Reply::Null, bulk("3")]);
            assert_eq!(bench.run("HGETDEL h FIELDS 3 b b c"), three);
            let none = || Reply::Array(vec![Reply::Null, Reply::Null]);
            assert_eq!(bench.run("HGETDEL h FIELDS 2 b c"), none());
            assert_eq!(bench.run("HGETEX nosuch EX 1 FIELDS 2 b c"), none());
        });
    }
}

#[test]
fn hsetex_sets_all_fields_or_none() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("HSETEX h FXX FIELDS 1 a 1"), Reply::Integer(0));
        assert_eq!(bench.run("EXISTS h"), Reply::Integer(0));
        assert_eq!(
            bench.run("HSETEX h FNX EX 9 FIELDS 2 a 1 a 2"),
            Reply::Integer(1)
        );
        assert_eq!(
            bench.run("HSETEX h FNX FIELDS 2 a 3 b 3"),
            Reply::Integer(0)
        );
        assert_eq!(
            bench.run("HSETEX h FXX FIELDS 2 a 3 b 3"),
            Reply::Integer(0)
        );
        assert_eq!(
            bench.run("HGETALL h"),
            Reply::Map(vec![(bulk("a"), bulk("2"))])
        );
        assert_eq!(
            bench.run("HSETEX h FXX PXAT 1 FIELDS 1 a 3"),
            Reply::Integer(1)
        );
        assert_eq!(bench.run("EXISTS h"), Reply::Integer(0));
        assert_eq!(bench.run("HSETEX h PX 0 FIELDS 1 a 3"), Reply::Integer(1));
        assert_eq!(bench.run("EXISTS h"), Reply::Integer(0));
    });
}

#[test]
fn refusals_are_those_of_redis_8() {
    let bench = Bench::embedded();
    bench.run("HSET h a 1");
    bench.run("SET s v");
    let missing = "ERR Mandatory argument FIELDS is missing or not at the right position";
    let other = "ERR The `numfields` parameter must match the number of arguments";
    let positive = "ERR Number of fields must be a positive integer";
    let greater = "ERR Parameter `numFields` should be greater than 0";
    let negative = "ERR invalid expire time, must be >= 0";
    let not_a_number = "ERR value is not an integer or out of range";
    let of_hsetex = "ERR wrong number of arguments for 'hsetex' command";
    let of_hgetex = "ERR wrong number of arguments for 'hgetex' command";
    let two_times = "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified";
    let two_conditions = "ERR Only one of FXX or FNX arguments can be specified";
    for (line, expected) in [
        ("HEXPIRE h 10 FOO 1 a", missing),
        ("HEXPIRE h 10 NX XX FIELDS 1 a", missing),
        ("HEXPIRE h 10 NX FIELDS 2 a", other),
        ("HEXPIRE h 10 NX FIELDS 1", other),
        ("HEXPIRE nosuch 10 FIELDS 5 a", other),
        ("HEXPIRE h 10 FIELDS 0 a", greater),
        ("HEXPIRE h 10 FIELDS 01 a", greater),
        ("HEXPIRE h x FOO 1 a", not_a_number),
        ("HEXPIRE h -1 FOO 1 a", negative),
        (
            "HPEXPIREAT h 70368744177664 FIELDS 1 a",
            "ERR invalid expire time in 'hpexpireat' command",
        ),
        (
            "HEXPIRE h 9223372036854775807 FOO 1 a",
            "ERR invalid expire time in 'hexpire' command",
        ),
        ("HTTL h FIELDS 0 a", positive),
        ("HTTL h FIELDS 2 a", other),
        ("HPERSIST h FOO 2 a", missing),
        ("HGETDEL h FIELDS x a", positive),
        ("HGETEX h EX 10 FIELDS", of_hgetex),
        ("HGETEX h EX 10 PERSIST FIELDS 1 a", missing),
        ("HGETEX h KEEPTTL FIELDS 1 a", missing),
        ("HGETEX h EX -1 FIELDS 5 a", negative),
        ("HGETEX h EX x FOO 5 a", not_a_number),
        ("HSETEX h FIELDS 2 a 1 b 2 c 3", of_hsetex),
        ("HSETEX h EX 10 FNX FIELDS", of_hsetex),
        ("HSETEX h FNX FIELDS 0 a", of_hsetex),
        (
            "HSETEX h FIELDS 2147483648 a b",
            "ERR invalid number of fields",
        ),
        ("HSETEX h FNX FNX FIELDS 1 q 1", two_conditions),
        ("HSETEX h EX 10 EX 10 FIELDS 1 a 1", two_times),
        ("HSETEX h KEEPTTL EX x FIELDS 1 a 1", two_times),
        ("HSETEX h EX x FOO 1 a b", not_a_number),
        (
            "HSETEX h PERSIST FIELDS 1 a 1",
            "ERR unknown argument: PERSIST",
        ),
    ] {
        assert_eq!(bench.run(line), error(expected), "{line}");
    }
    for line in [
        "HEXPIRE s x FIELDS 1 a",
        "HTTL s FIELDS 5 a",
        "HPERSIST s FIELDS 1 a",
        "HGETEX s EX x FIELDS 1 a",
        "HGETDEL s FIELDS 5 a",
        "HSETEX s FIELDS 1 a b",
    ] {
        assert_eq!(bench.run(line), error(super::WRONG_TYPE), "{line}");
    }
    assert_eq!(
        bench.run("HPEXPIREAT h 70368744177663 FIELDS 1 a"),
        integers(&[1])
    );
}

#[test]
fn long_values_of_expired_fields_go_with_their_chunks() {
    on_both_stores(|bench| {
        let long = vec![b'v'; 200_000];
        let name = vec![b'n'; 2_000];
        bench.run_words(&[b"HSETEX", b"h", b"PX", b"10", b"FIELDS", b"1", &name, &long]);
        let read = bench.run_words(&[b"HGET", b"h", &name]);
        assert_eq!(read, Reply::Bulk(long.clone().into()));
        bench.run_words(&[b"HPEXPIRE", b"h", b"20", b"FIELDS", b"1", &name]);
        let read = bench.run_words(&[b"HGET", b"h", &name]);
        assert_eq!(read, Reply::Bulk(long.into()));
        bench.run("HSET h a 1");
        bench.clock.advance_ms(200);
        run_dry(bench);
        assert_eq!(bench.run("HLEN h"), Reply::Integer(1));
        assert_eq!(rows_in(bench, Space::Data).len(), 1);
    });
}

#[test]
fn a_hash_without_expiries_is_stored_as_before() {
    on_both_stores(|bench| {
        bench.run("HSET small a 1 b 2");
        super::fill(bench, "large");
        let before = (rows_in(bench, Space::Keys), rows_in(bench, Space::Data));
        for key in ["small", "large"] {
            bench.run(&format!("HEXPIRE {key} 10 GT FIELDS 2 a f1"));
            bench.run(&format!("HPERSIST {key} FIELDS 2 a f1"));
            bench.run(&format!("HTTL {key} FIELDS 2 a f1"));
            bench.run(&format!("HEXPIRE {key} 10 FIELDS 1 nosuch"));
        }
        assert_eq!(
            before,
            (rows_in(bench, Space::Keys), rows_in(bench, Space::Data))
        );
        assert_eq!(rows_in(bench, Space::HashTimers), []);
    });
}

/// Whether a pass of background work that runs now conflicts if `meanwhile` commits first.
fn pass_conflicts(bench: &Bench, meanwhile: &str) -> bool {
    pass_at_conflicts(bench, bench.clock.now_ms(), meanwhile)
}

/// [`pass_conflicts`] for a server whose clock shows `now_ms`.
fn pass_at_conflicts(bench: &Bench, now_ms: i64, meanwhile: &str) -> bool {
    let transaction = bench.store.begin_write().unwrap();
    let (namespaces, signals) = (NamespaceCache::default(), Signals::default());
    let environment = bench.executor.environment();
    let context = WriteContext::new(&*transaction, environment, &namespaces, &signals, now_ms, 0);
    assert!(
        bench
            .block_on(timers::run_due(&context, Timers::Hashes, 0, None))
            .unwrap()
            > 0
    );
    bench.run(meanwhile);
    match bench.block_on(transaction.commit()) {
        Ok(()) => false,
        Err(StoreError::Conflict) => true,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn an_expiry_after_the_next_one_does_not_conflict_with_a_removal() {
    let begin = || {
        let bench = Bench::cluster_like();
        bench.run("HSET h a 1 b 2 c 3");
        bench.run("HPEXPIRE h 100 FIELDS 1 a");
        bench.run("HPEXPIRE h 5000 FIELDS 1 c");
        bench.clock.advance_ms(200);
        bench
    };
    assert!(!pass_conflicts(&begin(), "HPEXPIRE h 9000 FIELDS 1 b"));
    assert!(pass_conflicts(&begin(), "HPEXPIRE h 1000 FIELDS 1 b"));
}

#[test]
fn a_hash_whose_time_is_over_by_one_clock_keeps_its_timers_if_another_prolongs_it() {
    let bench = Bench::cluster_like();
    bench.run("HSET h a 1");
    bench.run("HPEXPIRE h 100 FIELDS 1 a");
    bench.run("PEXPIRE h 120");
    let later_ms = bench.clock.now_ms() + 200;
    assert!(pass_at_conflicts(&bench, later_ms, "PERSIST h"));
}

#[test]
fn an_expiry_that_relies_on_the_timer_of_another_conflicts_with_its_removal() {
    let begin = || {
        let bench = Bench::cluster_like();
        bench.run("HSET h a 1 b 2 c 3");
        bench.run("HPEXPIRE h 100 FIELDS 1 a");
        bench.clock.advance_ms(200);
        bench
    };
    // The pass removes `a` and has nothing to set a timer for.
    let bench = begin();
    assert!(bench.race_against(&["HPEXPIRE h 9000 FIELDS 1 b"], false, || run_dry(&bench)));
    let bench = begin();
    assert!(pass_conflicts(&bench, "HPEXPIRE h 9000 FIELDS 1 b"));
    // Whichever comes first, the field is removed.
    for is_first in [true, false] {
        let bench = begin();
        match is_first {
            true => {
                bench.run("HPEXPIRE h 9000 FIELDS 1 b");
                run_dry(&bench);
            }
            false => {
                run_dry(&bench);
                bench.run("HPEXPIRE h 9000 FIELDS 1 b");
            }
        }
        bench.clock.advance_ms(9_200);
        run_dry(&bench);
        assert_eq!(bench.run("HLEN h"), Reply::Integer(1));
    }
}

#[test]
fn commands_on_other_fields_do_not_conflict() {
    let bench = Bench::cluster_like();
    bench.run("HSET h a 1 b 2 c 3 d 4");
    bench.run("HPEXPIRE h 100 FIELDS 1 a");
    for (line, meanwhile) in [
        ("HPEXPIRE h 9000 FIELDS 1 b", "HPEXPIRE h 50 FIELDS 1 c"),
        ("HPEXPIRE h 10 FIELDS 1 b", "HPEXPIRE h 9000 FIELDS 1 d"),
        (
            "HSETEX h PX 9000 FIELDS 1 e 5",
            "HSETEX h PX 8000 FIELDS 1 f 5",
        ),
        ("HSETEX h PX 9000 FIELDS 1 g 5", "HDEL h d"),
        ("HSET h b 5", "HPEXPIRE h 9000 FIELDS 1 c"),
        ("HGETDEL h FIELDS 1 b", "HPERSIST h FIELDS 1 c"),
    ] {
        assert!(!bench.race(line, meanwhile, false), "{line}; {meanwhile}");
    }
    assert!(bench.race(
        "HPEXPIRE h 500 FIELDS 1 e",
        "HPEXPIRE h 600 FIELDS 1 e",
        false
    ));
}

#[test]
fn a_hash_of_which_all_fields_have_expired_is_dumped_as_none() {
    on_both_stores(|bench| {
        bench.run("HSETEX h PX 5000 FIELDS 2 a 1 b 2");
        assert!(matches!(bench.run("DUMP h"), Reply::Bulk(_)));
        bench.clock.advance_ms(5_000);
        assert_eq!(bench.run("DUMP h"), Reply::Null);
        bench.run("HSET h c 3");
        assert!(matches!(bench.run("DUMP h"), Reply::Bulk(_)));
    });
}
