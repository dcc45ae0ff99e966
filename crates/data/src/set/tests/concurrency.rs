//! Commands of several servers.

use std::collections::BTreeSet;

use super::{fill, members};
use quoin_base::random::{Random, SeededRandom};
use quoin_engine::testing::{Bench, planned};

#[test]
fn pops_conflict_on_what_they_take_only() {
    let conflicts = |line: &str, meanwhile: &str, is_strict: bool| {
        let bench = Bench::cluster_like();
        fill(&bench, "s", 100);
        bench.race(line, meanwhile, is_strict)
    };
    for meanwhile in ["SADD s new", "SADD s m1"] {
        assert!(!conflicts("SPOP s", meanwhile, false), "{meanwhile}");
        assert!(!conflicts("SPOP s 1000", meanwhile, false), "{meanwhile}");
    }
    assert!(conflicts("SPOP s 1000", "SREM s m1", false));
    assert!(conflicts("SPOP s 1000", "SPOP s", false));
    // Within EXEC, later commands may depend on the set being empty.
    assert!(conflicts("SPOP s 1000", "SADD s new", true));
    for line in ["SADD s new", "SREM s m1", "SMOVE s t m1"] {
        for meanwhile in ["SADD s other", "SREM s m2", "SMOVE s u m2"] {
            assert!(!conflicts(line, meanwhile, false), "{line} {meanwhile}");
        }
    }
    assert!(conflicts("SREM s m1", "SREM s m1", false));
    assert!(conflicts("SADD s new", "SADD s new", false));
}

#[test]
fn pops_of_two_servers_take_each_member_once() {
    let bench = Bench::cluster_like();
    fill(&bench, "s", 300);
    let other = bench.another_server();
    let random = SeededRandom::new(5);
    let mut popped = BTreeSet::new();
    loop {
        let line = format!("SPOP s {}", random.below(9) + 1);
        let calls = || vec![planned(&line)];
        let (ours, theirs) = bench.block_on(async {
            futures_util::join!(bench.executor.submit(calls()), other.submit(calls()))
        });
        let mut is_over = true;
        for finished in [ours, theirs] {
            for reply in finished.unwrap().replies {
                let some = members(reply);
                is_over &= some.is_empty();
                for one in some {
                    assert!(popped.insert(one));
                }
            }
        }
        if is_over {
            break;
        }
    }
    assert_eq!(popped.len(), 300);
}
