//! A command that fails after writing leaves none of its writes, and does not affect the rest of
//! its batch.

use bytes::Bytes;
use quoin_data::command::call::Invocation;
use quoin_data::command::row::{Handler, Row};
use quoin_data::error::CommandError;
use quoin_data::unit::context::WriteContext;
use quoin_data::{table, write_handler};
use quoin_engine::Call;
use quoin_resp::reply::Reply;
use quoin_store::Store;
use quoin_store::faults::FaultRates;

use crate::bench::{Bench, call, cluster, embedded, error, invocation, submit_calls, words};

/// RPUSH that fails when it has pushed.
fn push_and_fail(line: &str) -> Call {
    let invocation = invocation(&words(line));
    let row = Box::leak(Box::new(Row {
        handler: write_handler!(push_then_fail),
        coalescing: None,
        ..*invocation.row
    }));
    Call::command(Invocation { row, ..invocation }, true)
}

async fn push_then_fail(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let Some(Handler::Write(push)) = table::find(b"rpush").map(|row| row.handler) else {
        return Err(CommandError::Syntax);
    };
    push(context, arguments).await?;
    Err(CommandError::text("ERR midway"))
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
