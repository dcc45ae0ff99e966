use quoin_engine::testing::Bench;
use quoin_layout::Space;
use quoin_resp::reply::Reply;
use quoin_store::faults::{Fault, FaultPoint};
use quoin_store::{Isolation, RangeQuery};

fn run(bench: &Bench, words: &[&str]) -> Reply {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    bench.run_words(&words)
}

fn error_of(reply: Reply) -> String {
    match reply {
        Reply::Error(line) => line,
        other => panic!("{other:?}"),
    }
}

/// A library whose function returns this expression.
fn library(name: &str, function: &str, answer: &str) -> String {
    format!(
        "#!lua name={name}\nredis.register_function('{function}', \
         function(keys, args) return {answer} end)"
    )
}

fn load(bench: &Bench, code: &str) {
    assert!(matches!(
        run(bench, &["FUNCTION", "LOAD", "REPLACE", code]),
        Reply::Bulk(_)
    ));
}

#[test]
fn a_function_runs_as_it_was_last_loaded() {
    for bench in [Bench::embedded(), Bench::cluster_like()] {
        load(&bench, &library("lib", "f", "{#keys, args[1]}"));
        let expected = Reply::Array(vec![Reply::Integer(2), Reply::bulk("x")]);
        for name in ["f", "F"] {
            assert_eq!(run(&bench, &["FCALL", name, "2", "a", "b", "x"]), expected);
        }
        load(&bench, &library("lib", "f", "'new'"));
        assert_eq!(run(&bench, &["FCALL", "f", "0"]), Reply::bulk("new"));
        assert_eq!(run(&bench, &["FUNCTION", "DELETE", "lib"]), Reply::OK);
        let line = error_of(run(&bench, &["FCALL", "f", "0"]));
        assert_eq!(line, "ERR Function not found");
    }
}

#[test]
fn another_server_finds_the_libraries_of_the_first() {
    let bench = Bench::cluster_like();
    let other = bench.another_server();
    let ask = |line: &str| {
        let call = quoin_engine::testing::planned(line);
        let finished = bench.block_on(other.submit(vec![call])).unwrap();
        finished.replies.into_iter().next().unwrap()
    };
    load(&bench, &library("lib", "f", "1"));
    assert_eq!(ask("FCALL f 0"), Reply::Integer(1));
    load(&bench, &library("lib", "f", "2"));
    assert_eq!(ask("FCALL f 0"), Reply::Integer(2));
    run(&bench, &["FUNCTION", "FLUSH"]);
    assert!(matches!(ask("FCALL f 0"), Reply::Error(_)));
    other.stop();
}

#[test]
fn a_library_keeps_its_upvalues_until_it_is_loaded_again() {
    // On this store one thread runs all scripts, and upvalues belong to a thread.
    let bench = Bench::cluster_like();
    let code = "#!lua name=lib\nlocal n = 0 \
                redis.register_function('f', function() n = n + 1 return n end)";
    load(&bench, code);
    for count in 1..=3 {
        assert_eq!(run(&bench, &["FCALL", "f", "0"]), Reply::Integer(count));
    }
    // Another library changes nothing.
    load(&bench, &library("other", "g", "1"));
    assert_eq!(run(&bench, &["FCALL", "f", "0"]), Reply::Integer(4));
    load(&bench, code);
    assert_eq!(run(&bench, &["FCALL", "f", "0"]), Reply::Integer(1));
}

#[test]
fn a_long_library_is_stored_in_pieces_and_removed_whole() {
    let bench = Bench::embedded();
    let rows = || {
        let range = bench.executor.environment().layout.rows_of(Space::Scripts);
        let transaction = bench.store.begin_read().unwrap();
        let rows = bench.block_on(transaction.get_range(RangeQuery {
            begin: &range.begin,
            end: &range.end,
            limit: 1_000,
            reverse: false,
            isolation: Isolation::Snapshot,
        }));
        rows.unwrap().len()
    };
    let code = library("lib", "f", &format!("'{}'", "x".repeat(200_000)));
    load(&bench, &code);
    assert_eq!(rows(), 1 + 1 + 3);
    // A server that has forgotten them reads them again.
    bench
        .executor
        .environment()
        .scripts
        .remember_libraries(Default::default());
    let Reply::Bulk(answer) = run(&bench, &["FCALL", "f", "0"]) else {
        panic!("no text");
    };
    assert_eq!(answer.len(), 200_000);
    run(&bench, &["SCRIPT", "FLUSH"]);
    assert_eq!(rows(), 1 + 1 + 3 + 1);
    load(&bench, &library("lib", "f", "1"));
    assert_eq!(rows(), 1 + 1 + 1 + 1);
    run(&bench, &["FUNCTION", "FLUSH"]);
    assert_eq!(rows(), 1 + 1);
}

#[test]
fn what_an_attempt_has_loaded_is_forgotten_with_it() {
    let (bench, faulty) = Bench::faulty(1);
    load(&bench, &library("lib", "f", "1"));
    faulty.script(
        FaultPoint::Commit,
        [Some(Fault::Conflict), Some(Fault::UnknownNotApplied)],
    );
    load(&bench, &library("lib", "f", "3"));
    assert_eq!(run(&bench, &["FCALL", "f", "0"]), Reply::Integer(3));
}

#[test]
fn a_library_that_does_not_end_is_refused() {
    let bench = Bench::embedded();
    let code = "#!lua name=lib\nwhile true do end";
    let line = error_of(run(&bench, &["FUNCTION", "LOAD", code]));
    assert_eq!(
        line,
        "ERR Error registering functions: ERR FUNCTION LOAD timeout"
    );
}

#[test]
fn a_function_may_only_read_or_be_atomic() {
    let bench = Bench::embedded();
    let code = "#!lua name=lib\n\
        redis.register_function{function_name='r', flags={'no-writes'}, \
            callback=function(keys) return redis.call('LLEN', keys[1]) end} \
        redis.register_function{function_name='w', flags={'no-writes'}, \
            callback=function(keys) return redis.call('RPUSH', keys[1], 1) end} \
        redis.register_function{function_name='a', flags={'atomic'}, \
            callback=function(keys) redis.call('RPUSH', keys[1], 1) error('no') end}";
    load(&bench, code);
    assert_eq!(run(&bench, &["FCALL_RO", "r", "1", "q"]), Reply::Integer(0));
    for command in ["FCALL", "FCALL_RO"] {
        let line = error_of(run(&bench, &[command, "w", "1", "q"]));
        assert!(line.starts_with("ERR Write commands are not allowed from read-only scripts."));
    }
    let line = error_of(run(&bench, &["FCALL", "a", "1", "q"]));
    assert!(
        line.contains("user_function:2: no script: a, on @user_function:2."),
        "{line}"
    );
    assert_eq!(run(&bench, &["EXISTS", "q"]), Reply::Integer(0));
}

#[test]
fn a_dump_is_restored_by_every_policy() {
    let bench = Bench::embedded();
    load(&bench, &library("one", "f", "1"));
    let Reply::Bulk(payload) = run(&bench, &["FUNCTION", "DUMP"]) else {
        panic!("no payload");
    };
    let codes = quoin_rdb::read_libraries(&payload).unwrap();
    assert_eq!(codes, [library("one", "f", "1")]);
    load(&bench, &library("one", "f", "2"));
    load(&bench, &library("two", "g", "3"));
    let restore = |policy: &[u8]| bench.run_words(&[b"FUNCTION", b"RESTORE", &payload, policy]);
    assert_eq!(
        error_of(restore(b"APPEND")),
        "ERR Library one already exists"
    );
    assert_eq!(run(&bench, &["FCALL", "f", "0"]), Reply::Integer(2));
    assert_eq!(restore(b"REPLACE"), Reply::OK);
    assert_eq!(run(&bench, &["FCALL", "f", "0"]), Reply::Integer(1));
    assert_eq!(run(&bench, &["FCALL", "g", "0"]), Reply::Integer(3));
    assert_eq!(restore(b"FLUSH"), Reply::OK);
    assert!(matches!(run(&bench, &["FCALL", "g", "0"]), Reply::Error(_)));
    for cut in 0..payload.len() {
        let cut = payload.slice(..cut);
        assert!(matches!(
            bench.run_words(&[b"FUNCTION", b"RESTORE", &cut]),
            Reply::Error(_)
        ));
    }
}
