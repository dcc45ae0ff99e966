//! TRACEPARENT: a task tells its consumers which trace it belongs to.

use super::*;

const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn traceparent_of(bench: &Bench, key: &str, id: &str) -> Reply {
    match bench.run(&format!("TASK.GET {key} {id}")) {
        Reply::Map(fields) => field(&fields, "traceparent"),
        other => panic!("{key} {id}: {other:?}"),
    }
}

#[test]
fn a_consumer_gets_the_traceparent_after_the_token() {
    on_both_stores(|bench| {
        bench.run(&format!("TASK.ADD q 1 x ID a TRACEPARENT {TRACEPARENT}"));
        let peeked = parts(&bench.run("TASK.PEEK q"));
        assert_eq!(peeked[0][5..], [Reply::Null, bulk(TRACEPARENT)]);
        let taken = bench.run("TASK.TAKE q LEASE 1000");
        assert_eq!(token(&taken).len(), 16);
        assert_eq!(parts(&taken)[0][6..], [bulk(TRACEPARENT)]);
        bench.run("TASK.NACK q a");
        let taken = parts(&bench.run("TASK.TAKE q"));
        assert_eq!(taken[0][5..], [Reply::Null, bulk(TRACEPARENT)]);
    });
}

#[test]
fn a_task_without_a_traceparent_is_shown_as_before() {
    let bench = Bench::embedded();
    bench.run("TASK.ADD q 1 x ID a");
    let Reply::Map(fields) = bench.run("TASK.GET q a") else {
        panic!("no task");
    };
    assert_eq!(fields.last().unwrap().0, bulk("after"));
    let listed = &listed(&bench, "q", "READY", 9)[0];
    assert_eq!(listed.last().unwrap().0, bulk("after"));
    assert_eq!(parts(&bench.run("TASK.TAKE q LEASE 1000"))[0].len(), 6);
}

#[test]
fn a_task_keeps_its_traceparent_wherever_it_goes() {
    on_both_stores(|bench| {
        bench.run("TASK.SETOPTIONS q DEADLETTER letters");
        bench.run(&format!(
            "TASK.ADD q 1 x ID a MAXTRIES 1 TRACEPARENT {TRACEPARENT}"
        ));
        let in_list = field(&listed(bench, "q", "READY", 9)[0], "traceparent");
        assert_eq!(in_list, bulk(TRACEPARENT));
        let Reply::Bulk(payload) = bench.run("DUMP q") else {
            panic!("no payload");
        };
        bench.run_words(&[b"RESTORE", b"restored", b"0", &payload]);
        super::dumping::load_chunks(bench, bench, "loaded", 1);
        bench.run("COPY q copied");
        for key in ["restored", "loaded", "copied"] {
            assert_eq!(traceparent_of(bench, key, "a"), bulk(TRACEPARENT), "{key}");
        }
        bench.run("TASK.MOVE copied other a");
        assert_eq!(traceparent_of(bench, "other", "a"), bulk(TRACEPARENT));
        bench.run("TASK.TAKE q LEASE 1000");
        bench.run("TASK.NACK q a");
        reap(bench);
        assert_eq!(traceparent_of(bench, "letters", "a"), bulk(TRACEPARENT));
    });
}

#[test]
fn a_malformed_traceparent_is_refused() {
    let bench = Bench::embedded();
    let refusal = error(
        "ERR TRACEPARENT must be version-traceid-parentid-flags in lowercase hexadecimal digits, as \
         W3C Trace Context defines it",
    );
    let malformed = [
        "x".to_owned(),
        TRACEPARENT.to_uppercase(),
        TRACEPARENT.replacen("00", "ff", 1),
        TRACEPARENT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
        TRACEPARENT.replace("00f067aa0ba902b7", &"0".repeat(16)),
        TRACEPARENT.replace("-01", "_01"),
        TRACEPARENT.replace("-01", "-0g"),
        TRACEPARENT[..54].to_owned(),
        format!("{TRACEPARENT}-"),
        format!("{TRACEPARENT}0"),
    ];
    for text in malformed {
        let line = format!("TASK.ADD q 1 x TRACEPARENT {text}");
        assert_eq!(bench.run(&line), refusal, "{text}");
    }
    assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
}

#[test]
fn a_schedule_has_no_traceparent() {
    let bench = Bench::embedded();
    let line = format!("TASK.SCHEDULE q s EVERY 1000 TASK 1 x TRACEPARENT {TRACEPARENT}");
    assert_eq!(bench.run(&line), syntax_error(&line));
}
