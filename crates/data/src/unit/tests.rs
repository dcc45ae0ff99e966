use bytes::Bytes;

use quoin_data::command::call;
use quoin_data::command::call::Mode;
use quoin_data::keyspace::key::ClientKey;
use quoin_data::unit::signals::{Message, Ready};
use quoin_data::unit::tracking::Change;
use quoin_data::unit::*;
use quoin_engine::testing::{Bench, invocation, words_of};
use quoin_resp::reply::Reply;

fn on_both_stores(test: impl Fn(&Bench, &Unit<'_>)) {
    for bench in [Bench::embedded(), Bench::cluster_like()] {
        bench.run("RPUSH l a");
        let transaction = bench.store.begin_write().unwrap();
        let unit = Unit::new(&*transaction, bench.executor.environment());
        test(&bench, &unit);
    }
}

fn run(bench: &Bench, unit: &Unit<'_>, line: &str) -> Reply {
    let invocation = invocation(0, &words_of(line));
    bench
        .block_on(call(unit, &invocation, Mode::default()))
        .unwrap()
}

#[test]
fn a_rollback_undoes_what_commands_wrote_and_nothing_before() {
    on_both_stores(|bench, unit| {
        run(bench, unit, "RPUSH l b");
        let savepoint = unit.savepoint();
        run(bench, unit, "RPUSH l c");
        run(bench, unit, "LPOP l");
        run(bench, unit, "RENAME l other");
        unit.rollback(savepoint);
        assert_eq!(run(bench, unit, "LLEN l"), Reply::Integer(2));
        assert_eq!(run(bench, unit, "EXISTS other"), Reply::Integer(0));
        assert_eq!(run(bench, unit, "LINDEX l 0"), Reply::Bulk("a".into()));
    });
}

#[test]
fn a_rollback_undoes_a_change_of_what_databases_show() {
    on_both_stores(|bench, unit| {
        let savepoint = unit.savepoint();
        run(bench, unit, "SWAPDB 0 1");
        assert_eq!(run(bench, unit, "EXISTS l"), Reply::Integer(0));
        unit.rollback(savepoint);
        assert_eq!(run(bench, unit, "EXISTS l"), Reply::Integer(1));
    });
}

#[test]
fn a_rollback_undoes_what_others_were_to_learn() {
    on_both_stores(|bench, unit| {
        run(bench, unit, "RPUSH first a");
        run(bench, unit, "PUBLISH channel first");
        let outer = unit.savepoint();
        run(bench, unit, "RPUSH second a");
        let inner = unit.savepoint();
        run(bench, unit, "PUBLISH channel second");
        run(bench, unit, "SWAPDB 0 1");
        unit.release(inner);
        unit.rollback(outer);
        let messages: Vec<Bytes> = unit
            .signals
            .take_messages()
            .into_iter()
            .map(|one| one.payload)
            .collect();
        assert_eq!(messages, ["first"]);
        let bytes = "channelfirst".len() + size_of::<Message>();
        assert_eq!(unit.signals.message_bytes(), bytes);
        let key = |key: &'static str| ClientKey {
            database: 0,
            key: Bytes::from_static(key.as_bytes()),
        };
        let changes = unit.signals.changes();
        let touched: Vec<_> = changes.iter().filter_map(Change::watched_key).collect();
        assert_eq!(touched, [&key("first")]);
        let ready = unit.signals.take_ready();
        assert!(
            matches!(&ready[..], [Ready::Key(ready, _)] if *ready == key("first")),
            "{ready:?}"
        );
        assert!(unit.signals.take_exchanged().is_empty());
    });
}

#[test]
fn a_rollback_undoes_which_tasks_became_ready() {
    on_both_stores(|bench, unit| {
        run(bench, unit, "TASK.ADD q 1 first");
        let savepoint = unit.savepoint();
        run(bench, unit, "TASK.ADD q 1 second");
        run(bench, unit, "TASK.TAKE q COUNT 2");
        unit.rollback(savepoint);
        let ready = unit.signals.take_ready();
        let [Ready::Items { locations, .. }] = &ready[..] else {
            panic!("{ready:?}");
        };
        assert_eq!(locations.len(), 1);
        assert!(unit.signals.is_item_there(&locations[0]));
    });
}

#[test]
fn rollbacks_that_undo_something_are_counted() {
    on_both_stores(|bench, unit| {
        let savepoint = unit.savepoint();
        run(bench, unit, "LLEN l");
        unit.rollback(savepoint);
        assert_eq!(unit.rollbacks(), 0);
        let savepoint = unit.savepoint();
        run(bench, unit, "RPUSH l b");
        unit.rollback(savepoint);
        assert_eq!(unit.rollbacks(), 1);
    });
}
