use std::time::Duration;

use bytes::Bytes;

use crate::commands::testing::Bench;
use crate::error::CommandError;
use crate::executor::{Call, Claims, Work};
use crate::limits::BATCH_AGE_MAX_MS;
use crate::reply::Reply;
use crate::store::StoreError;

fn read(work: Work) -> Vec<Call> {
    vec![Call {
        work,
        arguments: Vec::<Bytes>::new(),
        database: 0,
        claims: Claims::Nothing,
        waiter: None,
        pops: None,
        ahead: Vec::new(),
    }]
}

#[test]
fn a_read_that_is_too_slow_fails_alone() {
    let bench = Bench::embedded();
    let too_slow = Work::Read(|_, _| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(BATCH_AGE_MAX_MS)).await;
            Err(CommandError::Store(StoreError::TooOld))
        })
    });
    let good = Work::Read(|_, _| Box::pin(async { Ok(Reply::OK) }));
    // Held up behind the first, so that the others share a snapshot with each other.
    let first = Work::Read(|_, _| {
        Box::pin(async {
            std::thread::sleep(Duration::from_millis(BATCH_AGE_MAX_MS));
            Ok(Reply::OK)
        })
    });
    let executor = &bench.executor;
    let replies = bench.block_on(async {
        let submit = |work| async move {
            let finished = executor.submit(read(work)).await.unwrap();
            finished.replies.into_iter().next().unwrap()
        };
        tokio::join!(submit(first), submit(too_slow), submit(good))
    });
    let line = CommandError::Store(StoreError::TooOld).to_line();
    assert_eq!(replies, (Reply::OK, Reply::Error(line), Reply::OK));
}
