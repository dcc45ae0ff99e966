use crate::commands::testing::{Bench, bulk, invocation, words_of};
use crate::reply::Reply;

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
