//! Which commands on groups conflict with each other where several servers write.

use super::*;

const READ: &str = "XREADGROUP GROUP g a COUNT 1 STREAMS s >";

/// A stream with six entries: of the group `g` consumer `a` has two, and `b` has two.
fn bench() -> Bench {
    let bench = Bench::cluster_like();
    fill(&bench, "s", 6);
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
