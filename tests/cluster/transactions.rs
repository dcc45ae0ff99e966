//! EXEC on both servers.

use quoin_base::random::{Random, SystemRandom};
use quoin_resp::reply::Reply;

use crate::bench::{Bench, Server, texts};

const ROUNDS: usize = 60;

fn integers(reply: &Reply) -> Vec<i64> {
    let Reply::Array(items) = reply else {
        panic!("{reply:?}")
    };
    let integer = |item: &Reply| match item {
        Reply::Integer(integer) => *integer,
        other => panic!("{other:?}"),
    };
    items.iter().map(integer).collect()
}

/// Moves elements between lists of two databases, and the sum of a sorted set's scores.
async fn transfer(server: Server) {
    for _ in 0..ROUNDS {
        let (from, to) = match SystemRandom.below(2) {
            0 => ("0:", "2:"),
            _ => ("2:", "0:"),
        };
        let count = 1 + SystemRandom.below(3);
        let pop = format!("{from}LPOP account {count}");
        let read = server.run(&format!("{from}LLEN account")).await;
        if matches!(read, Reply::Integer(length) if length < 20) {
            continue;
        }
        let pushed = format!("{to}RPUSH account{}", " x".repeat(count as usize));
        let credit = format!("ZINCRBY scores {count} {to}");
        let debit = format!("ZINCRBY scores -{count} {from}");
        let replies = server.exec(&[&pop, &pushed, &credit, &debit]).await;
        assert_eq!(texts(&replies).len() as u64, count, "{replies:?}");
    }
}

async fn observe(server: Server) {
    for _ in 0..ROUNDS {
        let lines = ["0:LLEN account", "2:LLEN account"];
        let sum: i64 = integers(&server.exec(&lines).await).iter().sum();
        assert_eq!(sum, 200);
        let scores = server.run("ZRANGE scores 0 -1 WITHSCORES").await;
        let Reply::Pairs(scores) = scores else {
            panic!("{scores:?}")
        };
        let score = |(_, score): &(Reply, Reply)| match score {
            Reply::Double(score) => *score,
            other => panic!("{other:?}"),
        };
        assert_eq!(scores.iter().map(score).sum::<f64>(), 0.0);
    }
}

pub fn no_reader_sees_half_of_a_transfer(bench: &Bench) {
    let filled = format!("RPUSH account{}", " x".repeat(100));
    bench.run(0, &filled);
    bench.run(0, &format!("2:{filled}"));
    bench.run(0, "ZADD scores 0 0: 0 2:");
    let [first, second] = &bench.servers;
    bench.block_on(async {
        tokio::join!(
            transfer(first.clone()),
            transfer(second.clone()),
            observe(first.clone()),
            observe(second.clone()),
        )
    });
    let lines = ["0:LLEN account", "2:LLEN account"];
    let sum: i64 = integers(&bench.block_on(first.exec(&lines))).iter().sum();
    assert_eq!(sum, 200);
}

/// Each of two transactions pops from one list and pushes to the other. One comes first, so the
/// other finds what it pushed: they cannot both find nothing.
pub fn pops_of_two_transactions_do_not_miss_each_other(bench: &Bench) {
    let [first, second] = &bench.servers;
    for round in 0..ROUNDS {
        let (left, right) = match round % 4 {
            0 => (["LPOP a", "RPUSH b x"], ["LPOP b", "RPUSH a x"]),
            1 => (["RPOP a 3", "RPUSH b x"], ["LMPOP 1 b LEFT", "LPUSH a x"]),
            2 => (
                ["BLPOP a 0", "RPUSH b x"],
                ["LMOVE b c LEFT LEFT", "RPUSH a x"],
            ),
            _ => (["ZPOPMIN za", "ZADD zb 1 x"], ["ZPOPMAX zb", "ZADD za 1 x"]),
        };
        bench.run(0, "DEL a b za zb");
        let (left, right) =
            bench.block_on(async { tokio::join!(first.exec(&left), second.exec(&right)) });
        let found = |reply: &Reply| !texts(reply).is_empty();
        assert!(found(&left) || found(&right), "{round}: {left:?} {right:?}");
    }
}

pub fn increments_of_two_servers_are_all_counted(bench: &Bench) {
    async fn increment(server: Server) {
        for _ in 0..ROUNDS {
            loop {
                let watch = server.watch(&["counter"]).await;
                let now = texts(&server.run("LINDEX counter 0").await);
                let next = now.first().map_or(0, |now| now.parse::<i64>().unwrap()) + 1;
                let push = format!("LPUSH counter {next}");
                let replies = server
                    .exec_watching(watch, &[&push, "LTRIM counter 0 0"])
                    .await;
                if replies != Reply::NullArray {
                    break;
                }
            }
        }
    }
    let [first, second] = &bench.servers;
    bench.block_on(async { tokio::join!(increment(first.clone()), increment(second.clone())) });
    let expected = crate::bench::bulk(&(2 * ROUNDS).to_string());
    assert_eq!(bench.run(0, "LINDEX counter 0"), expected);
}
