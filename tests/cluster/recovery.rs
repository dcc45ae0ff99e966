//! The FoundationDB cluster goes away and comes back while clients wait.

use std::time::Duration;

use futures_util::future::join_all;
use quoin_resp::reply::Reply;

use crate::bench::{Server, bulks};
use crate::server::foundationdb::{self, OwnCluster};
use crate::stores::on_cluster;

const KEYS: usize = 10;

/// A cluster that a test may kill. `None` if there can be none.
fn own_cluster() -> Option<OwnCluster> {
    let cluster = OwnCluster::start();
    cluster.map_err(|reason| foundationdb::skip(&reason)).ok()
}

/// Pushes until the push is known to be done.
async fn push(server: &Server, line: &str) {
    for _ in 0..20 {
        match server.run(line).await {
            Reply::Integer(_) => return,
            Reply::Error(line) => assert!(!line.starts_with("ERR"), "{line}"),
            other => panic!("{other:?}"),
        }
    }
    panic!("{line}: never done");
}

#[test]
fn who_waits_while_the_cluster_is_restarted_is_served_behind_it() {
    let Some(mut cluster) = own_cluster() else {
        return;
    };
    let bench = on_cluster(&cluster.file());
    for round in 0..2 {
        let waiting: Vec<_> = (0..KEYS)
            .map(|key| bench.wait(1, &format!("BLPOP list{key} other{key} 0")))
            .collect();
        let pushes = join_all((0..KEYS).map(|key| {
            let pusher = bench.servers[0].clone();
            let line = format!("RPUSH list{key} {round}");
            async move { push(&pusher, &line).await }
        }));
        cluster.kill();
        if round == 0 {
            // Pushes in progress while it is away.
            let pushing = bench.runtime.spawn(pushes);
            std::thread::sleep(Duration::from_secs(1));
            cluster.revive();
            bench.block_on(pushing).unwrap();
        } else {
            std::thread::sleep(Duration::from_secs(1));
            cluster.revive();
            bench.block_on(pushes);
        }
        for (key, waiting) in waiting.into_iter().enumerate() {
            let expected = bulks(&[&format!("list{key}"), &round.to_string()]);
            assert_eq!(bench.served(waiting), expected);
        }
        bench.run(0, "FLUSHALL");
    }
}
