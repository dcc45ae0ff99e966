//! A command that fails after it has written leaves none of its writes, and costs its batch
//! mates nothing.

use bytes::Bytes;
use quoin::commands;
use quoin::error::CommandError;
use quoin::executor::{Call, Work};
use quoin::reply::Reply;
use quoin::store::Store;
use quoin::store::faults::FaultRates;

use crate::bench::{Bench, call, call_of, cluster, embedded, error, submit_calls, words};

/// RPUSH that fails when it has pushed.
fn push_and_fail(line: &str) -> Call {
    let work = Work::Write(|context, arguments| {
        Box::pin(async move {
            let Some(Work::Write(push)) = commands::find(b"rpush").and_then(|row| row.work())
            else {
                return Err(CommandError::Syntax);
            };
            push(context, arguments).await?;
            Err(CommandError::text("ERR midway"))
        })
    });
    let arguments = words(line).into_iter().map(Bytes::from).collect();
    call_of(work, arguments)
}

fn leaves_nothing_of_itself<S: Store>(bench: &Bench<S>) {
    let calls = vec![
        call(&words("RPUSH list a")),
        push_and_fail("RPUSH list x"),
        push_and_fail("RPUSH other x"),
        call(&words("RPUSH list b")),
    ];
    let replies = bench
        .runtime
        .block_on(submit_calls(&bench.servers[0], calls));
    assert_eq!(replies[0], Reply::Integer(1));
    assert_eq!(error(&replies[1]), Some("ERR midway"));
    assert_eq!(error(&replies[2]), Some("ERR midway"));
    assert_eq!(replies[3], Reply::Integer(2));
    assert_eq!(
        bench.items("LRANGE list 0 -1"),
        [b"a".to_vec(), b"b".to_vec()]
    );
    assert_eq!(bench.run("LLEN list"), Reply::Integer(2));
    assert_eq!(bench.run("EXISTS other"), Reply::Integer(0));
}

#[test]
fn a_command_that_fails_midway_leaves_nothing_with_a_single_writer() {
    leaves_nothing_of_itself(&embedded());
}

#[test]
fn a_command_that_fails_midway_leaves_nothing_with_parallel_batches() {
    leaves_nothing_of_itself(&cluster(1));
}

#[test]
fn a_command_that_fails_midway_leaves_nothing_amid_unknown_results() {
    let bench = cluster(1);
    bench.store.set_rates(FaultRates {
        unknown_applied_ppm: 300_000,
        unknown_not_applied_ppm: 300_000,
        ..FaultRates::default()
    });
    leaves_nothing_of_itself(&bench);
}
