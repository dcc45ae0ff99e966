//! Commands on keys, and commands on elements that another server runs at the same time:
//! overlapping transactions, on the store that behaves like a cluster.

use super::*;
use quoin_data::command::call::Mode;
use quoin_data::unit::Unit;
use quoin_engine::testing::{invocation, words_of};
use quoin_store::StoreError;

/// Runs `first` in a transaction of its own, then `second` through the executor, and only then
/// commits the first.
fn commit_behind(bench: &Bench, first: &str, second: &str) -> Result<(), StoreError> {
    let transaction = bench.store.begin_write().unwrap();
    let unit = Unit::new(&*transaction, bench.executor.environment());
    let first = invocation(0, &words_of(first));
    let reply = bench.block_on(quoin_data::command::call::call(
        &unit,
        &first,
        Mode::default(),
    ));
    assert!(!matches!(reply.unwrap(), Reply::Error(_)));
    let reply = bench.run(second);
    assert!(!matches!(reply, Reply::Error(_)), "{second}: {reply:?}");
    bench.block_on(transaction.commit())
}

#[test]
fn a_push_conflicts_with_what_took_its_key_away_meanwhile() {
    for taking in [
        "DEL l",
        "RENAME l other",
        "RENAME taken l",
        "MOVE l 1",
        "EXPIRE l -1",
        "FLUSHDB",
        "FLUSHALL",
        "SWAPDB 0 1",
        "COPY taken l REPLACE",
        "SORT taken STORE l",
        "EXPIRE l 100",
    ] {
        let bench = Bench::cluster_like();
        bench.run("RPUSH l 1");
        bench.run("RPUSH taken 2");
        let committed = commit_behind(&bench, "RPUSH l late", taking);
        assert!(
            matches!(committed, Err(StoreError::Conflict)),
            "{taking}: {committed:?}"
        );
    }
}

#[test]
fn what_takes_a_key_away_conflicts_with_a_push_meanwhile() {
    for taking in [
        "DEL l",
        "RENAME l other",
        "MOVE l 1",
        "COPY l other",
        "SORT l STORE other",
    ] {
        let bench = Bench::cluster_like();
        bench.run("RPUSH l 1");
        let committed = commit_behind(&bench, taking, "RPUSH l 9");
        assert!(
            matches!(committed, Err(StoreError::Conflict)),
            "{taking}: {committed:?}"
        );
        assert_eq!(bench.run("LRANGE l 0 -1"), bulks(&["1", "9"]), "{taking}");
    }
}

#[test]
fn expire_conflicts_with_a_pop_of_the_last_element() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH l 1");
    let committed = commit_behind(&bench, "EXPIRE l 100", "LPOP l");
    assert!(
        matches!(committed, Err(StoreError::Conflict)),
        "{committed:?}"
    );
}

#[test]
fn renamenx_conflicts_with_a_key_that_is_made_at_its_destination() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH a 1");
    let committed = commit_behind(&bench, "RENAMENX a b", "RPUSH b 2");
    assert!(
        matches!(committed, Err(StoreError::Conflict)),
        "{committed:?}"
    );
    make_emptied_list(&bench, "g");
    let committed = commit_behind(&bench, "RENAMENX a g", "RPUSH g 2");
    assert!(
        matches!(committed, Err(StoreError::Conflict)),
        "{committed:?}"
    );
}

#[test]
fn flushdb_of_an_empty_database_conflicts_with_its_first_key() {
    let bench = Bench::cluster_like();
    bench.run_in(1, &[b"RPUSH", b"a", b"1"]);
    let committed = commit_behind(&bench, "FLUSHALL", "RPUSH a 1");
    assert!(
        matches!(committed, Err(StoreError::Conflict)),
        "{committed:?}"
    );
}

#[test]
fn commands_on_other_keys_do_not_conflict() {
    let bench = Bench::cluster_like();
    for name in ["a", "b", "c"] {
        bench.run(&format!("RPUSH {name} 1"));
    }
    for command in ["DEL a", "RENAME b d", "EXPIRE d 100", "COPY d e"] {
        commit_behind(&bench, command, "RPUSH c 2").unwrap();
    }
    assert_eq!(bench.run("LLEN c"), Reply::Integer(5));
}
