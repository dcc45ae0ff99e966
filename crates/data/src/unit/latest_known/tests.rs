use std::sync::Arc;

use quoin_base::limits::DATABASES;
use quoin_base::random::SeededRandom;
use quoin_data::unit::latest_known::*;
use quoin_engine::testing::{Bench, bulk, invocation, words_of};
use quoin_layout::Id;
use quoin_resp::reply::Reply;
use quoin_store::faults::{Fault, FaultPoint, FaultRates, FaultyStore};

const FLUSHES_AND_FAILS: &[u8] =
    b"#!lua flags=atomic\nredis.call('FLUSHDB') return redis.error_reply('no')";
const FAILS: &[u8] =
    b"#!lua flags=atomic\nredis.call('SET', 'other', '1') return redis.error_reply('no')";

fn filled() -> Bench {
    let bench = Bench::embedded();
    bench.run("SET key 0");
    bench.run_in(1, &words_of("SET key 1"));
    bench
}

fn value_in(bench: &Bench, database: u32) -> Reply {
    bench.run_in(database, &words_of("GET key"))
}

fn execute(bench: &Bench, commands: &[&[&[u8]]]) {
    let invocations = commands.iter().map(|words| invocation(0, words));
    bench.exec_all(invocations.collect());
}

#[test]
fn what_a_transaction_has_changed_holds_afterwards() {
    let bench = filled();
    bench.run("SWAPDB 0 1");
    assert_eq!(value_in(&bench, 0), bulk("1"));
    assert_eq!(value_in(&bench, 1), bulk("0"));
    bench.run("FLUSHDB");
    assert_eq!(value_in(&bench, 0), Reply::Null);
    assert_eq!(value_in(&bench, 1), bulk("0"));
}

#[test]
fn a_change_that_was_undone_has_no_effect() {
    let bench = filled();
    bench.run_words(&[b"EVAL", FLUSHES_AND_FAILS, b"0"]);
    assert_eq!(value_in(&bench, 0), bulk("0"));
    bench.run("SET key 2");
    assert_eq!(value_in(&bench, 0), bulk("2"));
}

#[test]
fn a_change_stays_when_a_later_one_of_the_same_transaction_is_undone() {
    for undone in [FAILS, FLUSHES_AND_FAILS] {
        let bench = filled();
        execute(
            &bench,
            &[&[b"SWAPDB", b"0", b"1"], &[b"EVAL", undone, b"0"]],
        );
        assert_eq!(value_in(&bench, 0), bulk("1"));
        assert_eq!(value_in(&bench, 1), bulk("0"));
        execute(&bench, &[&[b"FLUSHDB"], &[b"EVAL", undone, b"0"]]);
        assert_eq!(value_in(&bench, 0), Reply::Null);
        assert_eq!(value_in(&bench, 1), bulk("0"));
    }
}

#[test]
fn a_snapshot_relies_on_what_was_known_before_and_still_is() {
    let latest = LatestKnown::default();
    assert!(latest.unchanged(latest.get()).is_none());
    latest.set(Known::default());
    let before = latest.get();
    assert!(latest.unchanged(before.clone()).is_some());
    // A transaction commits.
    latest.forget();
    assert!(latest.unchanged(before.clone()).is_none());
    latest.set(Known::default());
    assert!(latest.unchanged(before).is_none());
}

#[test]
fn what_is_known_is_completed_by_what_was_known_before() {
    let of = |sequence| Id {
        instance: 1,
        sequence,
    };
    let before = Known {
        namespaces: vec![(0, of(10)), (1, of(11))],
        script_flushes: Some(3),
    };
    let mut known = Known {
        namespaces: vec![(1, of(21))],
        script_flushes: None,
    };
    known.complete(&before);
    let namespaces = [0, 1, 2].map(|database| known.namespace(database));
    assert_eq!(namespaces, [Some(of(10)), Some(of(21)), None]);
    assert_eq!(known.script_flushes, Some(3));
}

#[test]
fn scripts_that_are_flushed_are_not_found() {
    let bench = Bench::embedded();
    let run = |words: &[&[u8]]| bench.run_words(words);
    let sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    let evalsha: [&[u8]; 3] = [b"EVALSHA", sha.as_bytes(), b"0"];
    for _ in 0..3 {
        assert_eq!(run(&[b"EVAL", b"return 1", b"0"]), Reply::Integer(1));
        assert_eq!(run(&evalsha), Reply::Integer(1));
        bench.run("SCRIPT FLUSH");
        assert!(matches!(run(&evalsha), Reply::Error(_)));
    }
}

#[test]
fn before_a_transaction_with_news_commits_the_others_know_nothing() {
    let mut faulty = None;
    let bench = Bench::with(|store| {
        let random = Arc::new(SeededRandom::new(1));
        let store = FaultyStore::new(store, FaultRates::default(), random);
        faulty.insert(Arc::new(store)).clone()
    });
    let faulty = faulty.unwrap();
    let latest = &bench.executor.environment().latest_known;
    bench.run("SET key 0");
    assert!(latest.get().is_some());
    faulty.script(FaultPoint::Commit, [Some(Fault::Unavailable)]);
    assert!(matches!(bench.run("SWAPDB 0 1"), Reply::Error(_)));
    assert!(latest.get().is_none());
    assert_eq!(value_in(&bench, 0), bulk("0"));
}

#[test]
fn a_start_knows_all_of_it() {
    let bench = Bench::embedded();
    let known = bench.executor.environment().latest_known.get().unwrap();
    assert!((0..DATABASES).all(|database| known.namespace(database).is_some()));
    assert_eq!(known.script_flushes, Some(0));
}
