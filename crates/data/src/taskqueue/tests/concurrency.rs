//! Which commands of two servers conflict.

use super::*;

/// A queue whose index has nodes on two levels.
fn bench() -> Bench {
    let bench = Bench::cluster_like();
    let line = |number: u64| {
        let (priority, gb) = (number * 7 % 100, 1 + number * 13 % 97);
        format!("TASK.ADD q {priority} p ID t{number} NEEDS gb {gb} cards 1")
    };
    for part in 0..6 {
        let lines: Vec<String> = (part * 500..part * 500 + 500).map(line).collect();
        bench.run_all(&lines);
        reap(&bench);
    }
    bench
}

/// Whether a transaction that runs `line` conflicts if `meanwhile` commits first.
fn conflicts(bench: &Bench, line: &str, meanwhile: &str) -> bool {
    bench.race(line, meanwhile, false)
}

#[test]
fn additions_do_not_conflict_wherever_they_go() {
    let bench = bench();
    for (number, priority) in [-5, 0, 33, 50, 99, 1_000].into_iter().enumerate() {
        let line = format!("TASK.ADD q {priority} p NEEDS gb 1 cards 1");
        let other = format!("TASK.ADD q {priority} p ID o{number} NEEDS gb 1.5 cards 1.5");
        assert!(!conflicts(&bench, &line, &other), "{priority}");
        assert!(!conflicts(
            &bench,
            &line,
            "TASK.TAKE q HAVING gb 40 cards 1"
        ));
    }
    assert!(conflicts(
        &bench,
        "TASK.ADD q 1 p ID x",
        "TASK.ADD q 2 p ID x"
    ));
}

#[test]
fn takes_conflict_only_where_they_want_the_same_task() {
    let bench = bench();
    for _ in 0..4 {
        bench.run("TASK.ADD q -10 p NEEDS gb 1 cards 1.5");
        bench.run("TASK.ADD q -10 p NEEDS gb 1.5 cards 1");
    }
    let (one, other) = (
        "TASK.TAKE q HAVING gb 1 cards 1.5 LEASE 1000",
        "TASK.TAKE q HAVING gb 1.5 cards 1",
    );
    assert!(!conflicts(&bench, one, other));
    assert!(!conflicts(&bench, other, one));
    assert!(conflicts(&bench, one, one));
    assert!(conflicts(&bench, other, other));
    assert!(!conflicts(
        &bench,
        other,
        "TASK.ADD q -9 p NEEDS gb 1 cards 1"
    ));
}

#[test]
fn a_purge_conflicts_only_with_changes_of_what_it_removes() {
    let begin = || {
        let bench = Bench::cluster_like();
        for line in [
            "TASK.ADD q 1 p ID a",
            "TASK.ADD q 1 p ID b",
            "TASK.ADD q 1 p ID later DELAY 5000",
        ] {
            bench.run(line);
        }
        bench.run("TASK.TAKE q LEASE 60000");
        bench
    };
    let purge = "TASK.PURGE q DELAYED";
    for meanwhile in [
        "TASK.TAKE q LEASE 1000",
        "TASK.EXTEND q a 5000",
        "TASK.ACK q a",
        "TASK.ADD q 1 p ID other DELAY 9000",
    ] {
        assert!(!conflicts(&begin(), purge, meanwhile), "{meanwhile}");
    }
    assert!(conflicts(&begin(), purge, "TASK.CANCEL q later"));
}
