//! Priority queues that two servers push to and pop from at once.

use std::collections::BTreeSet;
use std::time::Instant;

use futures_util::future::join_all;
use quoin_resp::reply::Reply;

use crate::bench::{Bench, Server, texts};

const PUSHES: usize = 100;
const CLIENTS: usize = 4;

/// A client's pushes, one after another: pairs of values of one priority and of two.
async fn push(server: &Server, client: usize) {
    for number in 0..PUSHES {
        let line = format!(
            "PQ.PUSH q 5 {client}-{number}-a {} {client}-{number}-b",
            number % 2
        );
        let reply = server.run(&line).await;
        assert!(matches!(reply, Reply::Integer(_)), "{reply:?}");
    }
}

/// Clients of both servers push.
fn push_all(bench: &Bench) {
    bench.run(0, "PQ.PUSH q 5 first");
    let clients = (0..CLIENTS).map(|client| push(&bench.servers[client % 2], client));
    bench.block_on(join_all(clients));
    bench.run(0, "PQ.POPMAX q");
}

pub fn pushes_of_two_servers_do_not_conflict(bench: &Bench) {
    let conflicts = |bench: &Bench| bench.servers.iter().map(Server::conflicts).sum::<u64>();
    bench.run(0, "PQ.PUSH q 5 first");
    let before = conflicts(bench);
    let started = Instant::now();
    let clients = (0..CLIENTS).map(|client| push(&bench.servers[client % 2], client));
    bench.block_on(join_all(clients));
    if !bench.has_faults {
        assert_eq!(conflicts(bench) - before, 0);
    }
    println!("{} pushes in {:?}", CLIENTS * PUSHES, started.elapsed());
    let length = Reply::count(1 + 2 * CLIENTS * PUSHES);
    assert_eq!(bench.run(1, "PQ.LEN q"), length);
}

pub fn values_of_a_client_stay_in_their_order_within_a_priority(bench: &Bench) {
    push_all(bench);
    let values = texts(&bench.run(1, "PQ.RANGE q 0 -1 REV"));
    assert_eq!(values.len(), 2 * CLIENTS * PUSHES);
    for client in 0..CLIENTS {
        for (offset, step, mark) in [(0, 1, 'a'), (1, 2, 'b'), (0, 2, 'b')] {
            let expected: Vec<String> = (offset..PUSHES)
                .step_by(step)
                .map(|number| format!("{client}-{number}-{mark}"))
                .collect();
            let seen: Vec<&String> = values.iter().filter(|one| expected.contains(one)).collect();
            assert_eq!(seen, expected.iter().collect::<Vec<_>>());
        }
    }
}

pub fn each_value_is_popped_once_at_either_end(bench: &Bench) {
    push_all(bench);
    let clients = (0..CLIENTS).map(|client| async move {
        let server = &bench.servers[client % 2];
        let verb = ["POPMIN", "POPMAX"][client / 2 % 2];
        let mut popped = Vec::new();
        loop {
            let values = texts(&server.run(&format!("PQ.{verb} q {}", 1 + client)).await);
            if values.is_empty() {
                return popped;
            }
            popped.extend(values);
        }
    });
    let popped: Vec<String> = bench.block_on(join_all(clients)).concat();
    assert_eq!(popped.len(), 2 * CLIENTS * PUSHES);
    let distinct: BTreeSet<&String> = popped.iter().collect();
    assert_eq!(distinct.len(), popped.len());
    assert_eq!(bench.run(0, "EXISTS q"), Reply::Integer(0));
}
