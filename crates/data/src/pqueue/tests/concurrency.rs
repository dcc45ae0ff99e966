//! Which commands of two servers conflict.

use super::pairs;
use quoin_engine::testing::Bench;
use quoin_resp::reply::Reply;

/// Runs `line` in a transaction, and `meanwhile` in another one that commits first. Returns whether
/// the first one conflicts, and the queue afterwards.
fn race(line: &str, meanwhile: &str, is_strict: bool) -> (bool, Reply) {
    let bench = Bench::cluster_like();
    bench.run("PQ.PUSH q 1 a 1 b 2 c 2 d 3 e 3 f");
    let conflicted = bench.race(line, meanwhile, is_strict);
    (conflicted, bench.run("PQ.RANGE q 0 -1"))
}

fn conflicts(line: &str, meanwhile: &str) -> bool {
    race(line, meanwhile, false).0
}

#[test]
fn pushes_never_conflict() {
    assert!(!conflicts("PQ.PUSH q 1 x", "PQ.PUSH q 1 y"));
    assert!(!conflicts("PQ.PUSH q 1 x", "PQ.POPMIN q"));
    assert!(!conflicts("PQ.PUSH q 1 x", "PQ.POPMIN q 100"));
    assert!(!conflicts("PQ.PUSH q 3 x", "PQ.POPMAX q"));
    assert!(!conflicts("PQ.PUSH q 9 x 0 y", "PQ.PUSH q 9 x 0 y"));
}

#[test]
fn concurrent_pushes_of_one_priority_are_both_kept() {
    let (conflicted, queue) = race("PQ.PUSH q 9 x 9 y", "PQ.PUSH q 9 v 9 w", false);
    assert!(!conflicted);
    let Reply::Pairs(all) = queue else {
        panic!("no pairs");
    };
    assert_eq!(all.len(), 10);
    let at = |value: &str| {
        let value = Reply::bulk(value.as_bytes().to_vec());
        all.iter().position(|(other, _)| *other == value).unwrap()
    };
    // The values of each push stay in order.
    assert!(at("x") < at("y") && at("v") < at("w"));
}

#[test]
fn a_pop_conflicts_with_pops_of_the_same_values_and_pushes_in_front_of_them() {
    assert!(conflicts("PQ.POPMIN q", "PQ.POPMIN q"));
    assert!(conflicts("PQ.POPMAX q", "PQ.POPMAX q"));
    assert!(conflicts("PQ.POPMIN q", "PQ.PUSH q 0 x"));
    assert!(conflicts("PQ.POPMAX q", "PQ.PUSH q 9 x"));
    // The pop would not take all of the highest priority any more.
    assert!(conflicts("PQ.POPMAX q 3", "PQ.PUSH q 3 x"));
    assert!(conflicts("PQ.POPMIN q 3", "PQ.PUSH q 1 x"));
}

#[test]
fn a_pop_does_not_conflict_with_pushes_behind_nor_with_pops_of_the_other_end() {
    assert!(!conflicts("PQ.POPMIN q", "PQ.POPMAX q"));
    assert!(!conflicts("PQ.POPMAX q", "PQ.POPMIN q"));
    assert!(!conflicts("PQ.POPMIN q", "PQ.PUSH q 1 x"));
    assert!(!conflicts("PQ.POPMAX q", "PQ.PUSH q 3 x"));
    assert!(!conflicts("PQ.POPMAX q 2", "PQ.PUSH q 3 x"));
    assert!(!conflicts("PQ.POPMIN q 3", "PQ.PUSH q 2 x"));
    assert!(!conflicts("PQ.POPMAX q 3", "PQ.PUSH q 2 x"));
}

#[test]
fn a_pop_of_all_there_is_does_not_conflict_with_what_comes_behind() {
    assert!(!conflicts("PQ.POPMIN q 100", "PQ.PUSH q 3 x"));
    assert!(!conflicts("PQ.POPMIN q 100", "PQ.PUSH q 4 x"));
    assert!(!conflicts("PQ.POPMAX q 100", "PQ.PUSH q 1 x"));
    assert!(!conflicts("PQ.POPMAX q 100", "PQ.PUSH q 0 x"));
    assert!(!conflicts("PQ.POPMIN empty", "PQ.PUSH q 0 x"));
}

#[test]
fn within_exec_a_pop_conflicts_with_whatever_it_would_have_seen() {
    assert!(race("PQ.POPMIN q 100", "PQ.PUSH q 4 x", true).0);
    assert!(race("PQ.POPMAX q 100", "PQ.PUSH q 0 x", true).0);
}

#[test]
fn what_the_pops_of_both_ends_leave_is_what_was_between() {
    let (conflicted, queue) = race("PQ.POPMAX q 2", "PQ.POPMIN q 2", false);
    assert!(!conflicted);
    assert_eq!(queue, pairs(&[("c", 2), ("d", 2)]));
}

#[test]
fn a_move_conflicts_as_its_pop_does() {
    assert!(conflicts("PQ.MOVE q r MIN", "PQ.POPMIN q"));
    assert!(conflicts("PQ.MOVE q r MAX", "PQ.PUSH q 9 x"));
    assert!(!conflicts("PQ.MOVE q r MIN", "PQ.PUSH q 1 x"));
}
