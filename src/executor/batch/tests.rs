use std::time::Duration;

use bytes::Bytes;

use crate::commands::testing::{Bench, bulks};
use crate::error::CommandError;
use crate::executor::{Call, Claims, Work};
use crate::limits::BATCH_AGE_MAX_MS;
use crate::reply::Reply;
use crate::store::StoreError;

fn push(key: &'static str) -> Call {
    let arguments = ["RPUSH", key, "1"].map(|word| Bytes::from_static(word.as_bytes()));
    Call {
        work: crate::commands::find(b"RPUSH").unwrap().work().unwrap(),
        arguments: arguments.to_vec(),
        database: 0,
        claims: Claims::Nothing,
    }
}

/// A command that reads for longer than a transaction of a cluster can.
fn too_slow() -> Call {
    Call {
        work: Work::Write(|_, _| {
            Box::pin(async {
                tokio::time::sleep(Duration::from_millis(BATCH_AGE_MAX_MS)).await;
                Err(CommandError::Store(StoreError::TooOld))
            })
        }),
        arguments: Vec::new(),
        database: 0,
        claims: Claims::Nothing,
    }
}

#[test]
fn a_command_that_is_too_slow_fails_alone() {
    let bench = Bench::cluster_like();
    let calls = vec![push("before"), too_slow(), push("behind")];
    let finished = bench.block_on(bench.executor.submit(calls)).unwrap();
    assert_eq!(finished.replies, [Reply::Integer(1)]);
    let finished = bench.block_on(bench.executor.submit(finished.rest)).unwrap();
    let line = CommandError::Store(StoreError::TooOld).to_line();
    assert_eq!(finished.replies, [Reply::Error(line)]);
    let finished = bench.block_on(bench.executor.submit(finished.rest)).unwrap();
    assert_eq!(finished.replies, [Reply::Integer(1)]);
    assert_eq!(bench.run("LRANGE before 0 -1"), bulks(&["1"]));
    assert_eq!(bench.run("LRANGE behind 0 -1"), bulks(&["1"]));
}
