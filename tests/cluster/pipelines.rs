//! Commands that are sent at once through each of the servers.

use futures_util::future::join_all;
use quoin_resp::reply::Reply;

use crate::bench::{Bench, Server, texts};

const ROUNDS: usize = 60;
const CLIENTS: usize = 4;

/// Each of two clients adds something somewhere and checks, in one pipeline, whether the other has.
/// One comes first, so the other sees it: they cannot both find nothing.
pub fn a_read_does_not_overtake_the_write_before_it(bench: &Bench) {
    let [first, second] = &bench.servers;
    let writes_and_reads = [
        (["RPUSH a x", "RPUSH b x"], ["LLEN b", "LLEN a"]),
        (
            ["LPUSH a x", "LPUSH b x"],
            ["LRANGE b 0 -1", "LRANGE a 0 -1"],
        ),
        (["RPUSH a x", "RPUSH b x"], ["EXISTS b", "EXISTS a"]),
        (["ZADD a 1 x", "ZADD b 1 x"], ["ZCARD b", "ZCARD a"]),
        (["ZADD a 1 x", "ZADD b 1 x"], ["ZSCORE b x", "ZSCORE a x"]),
        (["PQ.PUSH a 1 x", "PQ.PUSH b 1 x"], ["PQ.LEN b", "PQ.LEN a"]),
        (
            ["TASK.ADD a 1 x", "TASK.ADD b 1 x"],
            ["TASK.LEN b", "TASK.LEN a"],
        ),
        (["RPUSH a x", "RPUSH b x"], ["DBSIZE", "DBSIZE"]),
    ];
    for round in 0..ROUNDS {
        let (writes, reads) = writes_and_reads[round % writes_and_reads.len()];
        bench.run(0, "DEL a b");
        let (left, right) = bench.block_on(async {
            let lines = [[writes[0], reads[0]], [writes[1], reads[1]]];
            tokio::join!(first.pipeline(&lines[0]), second.pipeline(&lines[1]))
        });
        let has_found = |replies: &[Reply]| match &replies[1] {
            Reply::Integer(count) => *count > i64::from(reads[0] == "DBSIZE"),
            other => !texts(other).is_empty() || matches!(other, Reply::Double(_)),
        };
        assert!(
            has_found(&left) || has_found(&right),
            "{writes:?} {reads:?}: {left:?} {right:?}"
        );
    }
}

/// Reads that conflict repeatedly are still carried out, and in order.
pub fn reads_after_pushes_of_many_clients_see_their_own(bench: &Bench) {
    async fn work(server: Server, client: usize) {
        for round in 0..ROUNDS {
            let value = format!("{client}-{round}");
            let push = format!("RPUSH list {value}");
            let search = format!("LPOS list {value}");
            let replies = server
                .pipeline(&[&push, &search, "LLEN list", &push, "LLEN list"])
                .await;
            let integers: Vec<i64> = replies
                .iter()
                .map(|reply| match reply {
                    Reply::Integer(integer) => *integer,
                    other => panic!("{value}: {other:?}"),
                })
                .collect();
            assert!(integers[1] < integers[2], "{integers:?}");
            assert!(integers[2] < integers[4], "{integers:?}");
        }
    }
    let clients = (0..2 * CLIENTS).map(|client| work(bench.servers[client % 2].clone(), client));
    bench.block_on(join_all(clients));
    let expected = Reply::count(4 * CLIENTS * ROUNDS);
    assert_eq!(bench.run(0, "LLEN list"), expected);
}

/// The conflicts that pipelines of clients of both servers cost.
fn conflicts_of(bench: &Bench, lines: &[&str]) -> u64 {
    let conflicts = || bench.servers.iter().map(Server::conflicts).sum::<u64>();
    // The keys exist from now on, so no client creates them.
    bench.block_on(bench.servers[0].pipeline(lines));
    let before = conflicts();
    let clients = (0..2 * CLIENTS).map(|client| async move {
        for _ in 0..ROUNDS {
            bench.servers[client % 2].pipeline(lines).await;
        }
    });
    bench.block_on(join_all(clients));
    conflicts() - before
}

pub fn pushes_at_once_to_several_lists_do_not_conflict(bench: &Bench) {
    let conflicts = conflicts_of(
        bench,
        &["RPUSH a x", "LPUSH b x", "ZADD c 1 x", "RPUSH a y"],
    );
    if !bench.has_faults {
        assert_eq!(conflicts, 0);
    }
}

pub fn a_read_before_a_push_does_not_conflict(bench: &Bench) {
    let conflicts = conflicts_of(
        bench,
        &["LLEN a", "LRANGE b 0 -1", "RPUSH a x", "LPUSH b x"],
    );
    if !bench.has_faults {
        assert_eq!(conflicts, 0);
    }
}
