use std::pin::pin;
use std::task::{Context, Waker};

use tokio::sync::oneshot;

use super::*;
use crate::testing::{Bench, bulk, planned};

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
    // Held up by the first submission, so that the others share a snapshot.
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

/// How many polls the lane needs to answer `submissions` of `commands` each. On the store that
/// imitates a cluster, a read completes at its second poll.
fn polls(bench: &Bench, submissions: usize, commands: usize) -> usize {
    let (submitted, answers): (Vec<_>, Vec<_>) = (0..submissions)
        .map(|submission| {
            let (respond, answer) = oneshot::channel();
            let key = |command| format!("GET key:{}", submission * commands + command);
            let submission = Submission {
                calls: (0..commands)
                    .map(|command| planned(&key(command)))
                    .collect(),
                reply_bytes_max: usize::MAX,
                respond: Some(respond),
            };
            (submission, answer)
        })
        .unzip();
    let lane = ReadLane::new(
        Arc::clone(&bench.store),
        Arc::clone(bench.executor.environment()),
        Arc::default(),
        Arc::default(),
    );
    let mut serving = pin!(lane.serve(submitted));
    let mut context = Context::from_waker(Waker::noop());
    let mut polls = 1;
    while serving.as_mut().poll(&mut context).is_pending() {
        polls += 1;
    }
    let replies = { answers.into_iter() }.flat_map(|mut answer| answer.try_recv().unwrap().replies);
    let expected = (0..submissions * commands).map(|number| bulk(&number.to_string()));
    assert!(replies.eq(expected));
    polls
}

#[test]
fn on_a_cluster_the_reads_of_a_batch_are_under_way_side_by_side() {
    let bench = Bench::cluster_like();
    for number in 0..2_000 {
        bench.run(&format!("SET key:{number} {number}"));
    }
    // Sequential reads need a poll each. Concurrent reads advance two per poll, because a set of
    // futures yields to others after that.
    for (submissions, commands) in [(100, 1), (1, 1_000), (20, 100)] {
        let polls = polls(&bench, submissions, commands);
        let all = submissions * commands;
        assert!(polls < all * 2 / 3, "{submissions} of {commands}: {polls}");
    }
}
