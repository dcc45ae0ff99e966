//! Which commands conflict if several servers write. Also tests groups on a store whose commits
//! fail.

use super::*;
use quoin_store::faults::FaultRates;

#[test]
fn adders_conflict_with_each_other_and_with_nothing_else() {
    let bench = Bench::cluster_like();
    fill(&bench, "s", 3);
    for (line, meanwhile, conflicts) in [
        ("XADD s * f v", "XADD s * f v", true),
        ("XADD s MAXLEN ~ 1000 * f v", "XADD s * f v", true),
        ("XADD s * f v", "XDEL s 1-0", false),
        ("XADD s MAXLEN ~ 1000 * f v", "XDEL s 2-0", false),
        ("XDEL s 3-0", "XADD s * f v", false),
        ("XTRIM s MAXLEN ~ 1000", "XADD s * f v", false),
        ("XTRIM s MAXLEN 2", "XADD s * f v", true),
        ("XSETID s 99999999999999-0", "XADD s * f v", true),
        ("XREAD STREAMS s 0", "XADD s * f v", false),
    ] {
        assert_eq!(
            bench.race(line, meanwhile, false),
            conflicts,
            "{line}, {meanwhile}"
        );
    }
}

const READ: &str = "XREADGROUP GROUP g a COUNT 1 STREAMS s >";

/// A stream with six entries. In group `g`, consumers `a` and `b` have two each.
fn bench() -> Bench {
    let bench = Bench::cluster_like();
    with_group(&bench, "s", 6);
    bench.run("XGROUP CREATE s h 0");
    bench.run("XREADGROUP GROUP g a COUNT 2 STREAMS s >");
    bench.run("XREADGROUP GROUP g b COUNT 2 STREAMS s >");
    bench.run("XREADGROUP GROUP h a COUNT 1 STREAMS s >");
    bench
}

#[test]
fn readers_of_a_group_conflict_with_each_other_only() {
    for (meanwhile, conflicts) in [
        ("XREADGROUP GROUP g b COUNT 1 STREAMS s >", true),
        ("XGROUP SETID s g 0", true),
        ("XGROUP DESTROY s g", true),
        ("XGROUP DELCONSUMER s g a", true),
        ("DEL s", true),
        ("XADD s * n 7", false),
        ("XADD s MAXLEN 3 * n 7", false),
        ("XDEL s 6-0", false),
        ("XREADGROUP GROUP h a COUNT 1 STREAMS s >", false),
        ("XACK s g 1-0 3-0", false),
        ("XCLAIM s g b 0 1-0", false),
        ("XGROUP CREATECONSUMER s g c", false),
        ("XGROUP CREATE s i 0", false),
        ("XREADGROUP GROUP g b STREAMS s 0", false),
    ] {
        assert_eq!(
            bench().race(READ, meanwhile, false),
            conflicts,
            "{meanwhile}"
        );
    }
}

#[test]
fn changes_of_pending_entries_conflict_where_they_are_of_the_same() {
    for (line, meanwhile, conflicts) in [
        ("XACK s g 1-0", "XACK s g 1-0", true),
        ("XACK s g 1-0", "XACK s g 2-0", false),
        ("XACK s g 1-0", "XCLAIM s g b 0 1-0", true),
        ("XACK s g 1-0", "XAUTOCLAIM s g b 0 2", false),
        ("XACK s g 1-0", "XGROUP DELCONSUMER s g a", true),
        ("XACK s g 1-0", "XGROUP DESTROY s g", true),
        ("XACK s g 1-0", READ, false),
        ("XACK s g 1-0", "XADD s * n 7", false),
        (
            "XAUTOCLAIM s g b 0 0 COUNT 1",
            "XAUTOCLAIM s g c 0 0 COUNT 1",
            true,
        ),
        (
            "XAUTOCLAIM s g b 0 0 COUNT 1",
            "XAUTOCLAIM s g c 0 2 COUNT 1",
            false,
        ),
        ("XAUTOCLAIM s g b 0 0 COUNT 1", "XACK s g 2-0", false),
        ("XCLAIM s g b 0 1-0", "XGROUP DESTROY s g", true),
        (
            "XGROUP DELCONSUMER s g a",
            "XREADGROUP GROUP g a STREAMS s >",
            true,
        ),
        ("XGROUP DELCONSUMER s g a", "XACK s g 1-0", true),
        ("XGROUP DELCONSUMER s g a", "XCLAIM s g a 0 3-0", true),
        ("XGROUP DESTROY s g", READ, true),
    ] {
        let found = bench().race(line, meanwhile, false);
        assert_eq!(found, conflicts, "{line} and {meanwhile}");
    }
}

const ENTRIES: usize = 24;

#[test]
fn an_entry_is_delivered_and_acknowledged_once_whatever_becomes_of_commits() {
    for seed in 1..4 {
        let (bench, faulty) = Bench::faulty(seed);
        with_group(&bench, "s", ENTRIES);
        faulty.set_rates(FaultRates {
            conflict_ppm: 100_000,
            unknown_applied_ppm: 100_000,
            unknown_not_applied_ppm: 100_000,
            too_old_ppm: 10_000,
            ..FaultRates::default()
        });
        for number in 1..=ENTRIES {
            let consumer = number % 3;
            let line = format!("XREADGROUP GROUP g c{consumer} COUNT 1 STREAMS s >");
            assert_eq!(bench.run(&line), read("s", [number]), "seed {seed}");
            if number % 2 == 0 {
                let acknowledged = bench.run(&format!("XACK s g {number}-0"));
                assert_eq!(acknowledged, int(1), "seed {seed}");
            }
        }
        assert!(faulty.counts().total() > 0);
        faulty.set_rates(FaultRates::default());
        let left = (1..=ENTRIES).filter(|number| number % 2 == 1);
        let left = left.map(|number| pending(number, &format!("c{}", number % 3), 0, 1));
        assert_eq!(all_pending(&bench, "s"), Reply::Array(left.collect()));
        assert_eq!(info(&bench, "XINFO GROUPS s", "pending"), int(12));
        assert_eq!(info(&bench, "XINFO GROUPS s", "entries-read"), int(24));
    }
}
