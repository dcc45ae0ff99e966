use bytes::Bytes;

use crate::commands::testing::{Bench, bulks, with_handler};
use crate::commands::{Handler, Invocation};
use crate::error::CommandError;
use crate::executor::Call;
use crate::executor::alone::COMMANDS_MAX;
use crate::executor::lone_client::SUBMISSIONS_MIN;
use crate::reply::Reply;
use crate::types::WriteContext;
use crate::types::tracking::Origin;
use crate::write_handler;

/// Does what RPUSH does, and replies with the name of the thread that runs it. (A row of RPUSH would run
/// several at once by other code.)
async fn push(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let Handler::Write(rpush) = crate::commands::find(b"RPUSH").unwrap().handler else {
        panic!("RPUSH writes");
    };
    rpush(context, arguments).await?;
    let name = std::thread::current().name().unwrap_or("").to_owned();
    Ok(Reply::Bulk(Bytes::from(name)))
}

/// The same, but waits before it pushes again.
async fn push_slowly(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    push(context, arguments).await?;
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    push(context, arguments).await
}

fn of_client(client: u64, invocation: Invocation) -> Call {
    let origin = Origin {
        client,
        ..Origin::SERVER
    };
    Call::command(
        Invocation {
            origin,
            ..invocation
        },
        false,
    )
}

/// Whether the commands of a submission run on this thread.
fn runs_here(bench: &Bench, client: u64, count: usize) -> bool {
    let push = with_handler("APPEND list x", write_handler!(push));
    let calls = (0..count)
        .map(|_| of_client(client, push.clone()))
        .collect();
    let finished = bench.block_on(bench.executor.submit(calls)).unwrap();
    assert_eq!(finished.replies.len(), count);
    let lane = Reply::Bulk(Bytes::from_static(b"quoin-write"));
    finished.replies.first() != Some(&lane)
}

/// Runs commands of a client until one runs on this thread. That may take a while: the lane may be at its
/// end of the last batch, and a busy machine makes batches slow.
fn make_alone(bench: &Bench, client: u64) {
    assert!((0..10_000).any(|_| runs_here(bench, client, 1)));
}

#[test]
fn a_client_is_alone_after_a_while_until_another_comes() {
    let bench = Bench::embedded();
    for client in 1..=3 {
        for _ in 0..=SUBMISSIONS_MIN {
            assert!(!runs_here(&bench, client, 1));
        }
        make_alone(&bench, client);
    }
}

#[test]
fn many_commands_at_once_go_to_the_lane() {
    let bench = Bench::embedded();
    make_alone(&bench, 1);
    assert!((0..10_000).any(|_| runs_here(&bench, 1, COMMANDS_MAX)));
    for _ in 0..10 {
        assert!(!runs_here(&bench, 1, COMMANDS_MAX + 1));
    }
}

#[test]
fn a_command_that_waits_goes_to_the_lane_and_is_done_once() {
    let bench = Bench::embedded();
    make_alone(&bench, 1);
    let slow = with_handler("APPEND other x", write_handler!(push_slowly));
    let slow = vec![of_client(1, slow)];
    let finished = bench.block_on(bench.executor.submit(slow)).unwrap();
    let lane = Reply::Bulk(Bytes::from_static(b"quoin-write"));
    assert_eq!(finished.replies, [lane]);
    assert_eq!(bench.run("LLEN other"), Reply::Integer(2));
}

#[test]
fn what_a_lone_client_pushes_wakes_others() {
    let bench = Bench::embedded();
    let waiting = bench.wait("BLPOP other 0");
    make_alone(&bench, 1);
    let push = with_handler("APPEND other x", write_handler!(push));
    let push = vec![of_client(1, push)];
    bench.block_on(bench.executor.submit(push)).unwrap();
    assert_eq!(waiting.reply(&bench), bulks(&["other", "x"]));
    assert_eq!(bench.run("LLEN other"), Reply::Integer(0));
}
