//! Commands of several servers that conflict.

use quoin_engine::testing::Bench;

/// Whether a transaction that runs `line` conflicts if `meanwhile` commits first.
fn conflicts(line: &str, meanwhile: &str) -> bool {
    let bench = Bench::cluster_like();
    bench.run("ZADD z 1 a 2 b 3 c 4 d");
    bench.race(line, meanwhile, false)
}

#[test]
fn adding_conflicts_only_with_changes_of_the_same_member() {
    assert!(!conflicts("ZADD z 9 x", "ZADD z 9 y"));
    assert!(!conflicts("ZADD z 0 x", "ZPOPMIN z"));
    assert!(!conflicts("ZINCRBY z 1 a", "ZINCRBY z 1 b"));
    assert!(!conflicts("ZREM z a", "ZREM z b"));
    assert!(conflicts("ZADD z 9 x", "ZADD z 8 x"));
    assert!(conflicts("ZINCRBY z 1 a", "ZINCRBY z 1 a"));
    assert!(conflicts("ZADD z 9 a", "ZPOPMIN z"));
    assert!(conflicts("ZREM z a", "ZADD z 9 a"));
}

#[test]
fn a_pop_conflicts_with_what_changes_what_it_took_or_comes_before_it() {
    assert!(conflicts("ZPOPMIN z", "ZPOPMIN z"));
    assert!(conflicts("ZPOPMIN z", "ZADD z 0 x"));
    assert!(conflicts("ZPOPMIN z", "ZADD z 9 a"));
    assert!(conflicts("ZPOPMAX z 2", "ZADD z 3.5 x"));
    assert!(!conflicts("ZPOPMIN z", "ZPOPMAX z"));
    assert!(!conflicts("ZPOPMIN z 2", "ZADD z 2.5 x"));
    assert!(!conflicts("ZPOPMAX z 2", "ZADD z 2.5 x"));
}

#[test]
fn a_pop_of_all_there_is_does_not_conflict_with_what_comes_behind() {
    assert!(!conflicts("ZPOPMIN z 100", "ZADD z 9 x"));
    assert!(!conflicts("ZPOPMAX z 100", "ZADD z 0 x"));
    assert!(!conflicts("ZPOPMIN empty", "ZADD z 0 x"));
}

#[test]
fn a_range_that_is_removed_conflicts_with_additions_inside_it() {
    assert!(conflicts("ZREMRANGEBYSCORE z 1 2", "ZADD z 1.5 x"));
    assert!(!conflicts("ZREMRANGEBYSCORE z 1 2", "ZADD z 2.5 x"));
    assert!(conflicts("ZREMRANGEBYRANK z 0 -1", "ZADD z 2.5 x"));
}

#[test]
fn a_stored_result_conflicts_with_changes_of_its_sources() {
    assert!(conflicts("ZUNIONSTORE d 1 z", "ZADD z 9 x"));
    assert!(conflicts("ZRANGESTORE d z 0 1", "ZADD z 0 x"));
    assert!(!conflicts("ZUNIONSTORE d 1 z", "ZADD other 9 x"));
}
