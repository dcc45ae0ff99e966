use std::time::Duration;

use crate::commands::testing::Bench;
use crate::error::CommandError;
use crate::executor::Call;
use crate::limits::BATCH_AGE_MAX_MS;
use crate::reply::Reply;
use crate::store::StoreError;

#[test]
fn a_read_that_is_too_slow_fails_alone() {
    let bench = Bench::embedded();
    let too_slow = Call::read_job(0, |_| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(BATCH_AGE_MAX_MS)).await;
            Err(CommandError::Store(StoreError::TooOld))
        })
    });
    let good = Call::read_job(0, |_| Box::pin(async { Ok(Reply::OK) }));
    // Held up behind the first, so that the others share a snapshot with each other.
    let first = Call::read_job(0, |_| {
        Box::pin(async {
            std::thread::sleep(Duration::from_millis(BATCH_AGE_MAX_MS));
            Ok(Reply::OK)
        })
    });
    let executor = &bench.executor;
    let replies = bench.block_on(async {
        let submit = |call| async move {
            let finished = executor.submit(vec![call]).await.unwrap();
            finished.replies.into_iter().next().unwrap()
        };
        tokio::join!(submit(first), submit(too_slow), submit(good))
    });
    let line = CommandError::Store(StoreError::TooOld).to_line();
    assert_eq!(replies, (Reply::OK, Reply::Error(line), Reply::OK));
}
