use std::pin::pin;
use std::task::{Context, Waker};

use tokio::sync::oneshot;

use super::*;
use crate::commands::testing::{Bench, bulk, planned};
use crate::executor::Call;

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

/// On the store that imitates a cluster a read answers at its second poll.
#[test]
fn on_a_cluster_the_reads_of_a_batch_are_under_way_side_by_side() {
    const COMMANDS: usize = 100;
    let bench = Bench::cluster_like();
    let mut submissions = Vec::new();
    let mut answers = Vec::new();
    for number in 0..COMMANDS {
        bench.run(&format!("SET key:{number} {number}"));
        let (respond, answer) = oneshot::channel();
        answers.push(answer);
        submissions.push(Submission {
            calls: vec![planned(&format!("GET key:{number}"))],
            respond: Some(respond),
        });
    }
    let lane = ReadLane::new(
        Arc::clone(&bench.store),
        Arc::clone(bench.executor.environment()),
        Arc::default(),
        Arc::default(),
    );
    let mut serving = pin!(lane.serve(submissions));
    let mut context = Context::from_waker(Waker::noop());
    let polls = (1..COMMANDS).find(|_| serving.as_mut().poll(&mut context).is_ready());
    assert!(polls.is_some());
    for (number, mut answer) in answers.into_iter().enumerate() {
        let replies = answer.try_recv().unwrap().replies;
        assert_eq!(replies, [bulk(&number.to_string())]);
    }
}
