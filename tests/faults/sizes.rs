//! A command that is too large fails alone, and changes nothing.

use bytes::Bytes;
use futures_util::future::join_all;
use quoin_resp::reply::Reply;
use quoin_store::faults::OptimisticStore;
use quoin_store_embedded::EmbeddedStore;

use crate::bench::{Bench, Words, error, submit, words};

const TRANSACTION_BYTES_MAX: usize = 20_000;
const TOO_LARGE: &str =
    "ERR command needs more than one transaction of the store can hold; nothing was changed";

type Cluster = Bench<OptimisticStore<EmbeddedStore>>;

fn small_transactions() -> Cluster {
    Bench::new(1, Some(TRANSACTION_BYTES_MAX), OptimisticStore::new)
}

/// A store that refuses transactions as too large although it had said that it would accept them.
fn surprising_transactions() -> Cluster {
    let bench = Bench::new(1, None, OptimisticStore::new);
    bench.store.set_transaction_bytes_max(TRANSACTION_BYTES_MAX);
    bench
}

fn push(key: &str, bytes: usize) -> Words {
    vec![b"RPUSH".to_vec(), key.into(), vec![b'v'; bytes]]
}

fn fails_alone_in_its_pipeline(bench: &Cluster) {
    let commands = [
        words("RPUSH list first"),
        push("large", TRANSACTION_BYTES_MAX * 2),
        words("RPUSH list second"),
    ];
    let replies = bench.runtime.block_on(submit(&bench.servers[0], &commands));
    assert_eq!(replies[0], Reply::Integer(1));
    assert_eq!(error(&replies[1]), Some(TOO_LARGE));
    assert_eq!(replies[2], Reply::Integer(2));
    assert_eq!(bench.run("EXISTS large"), Reply::Integer(0));
    assert_eq!(
        bench.items("LRANGE list 0 -1"),
        [b"first".to_vec(), b"second".to_vec()]
    );
}

fn fails_alone_among_clients(bench: &Cluster) {
    let server = &bench.servers[0];
    let replies = bench
        .runtime
        .block_on(join_all((0..40).map(|number| async move {
            let is_large = number % 8 == 3;
            let bytes = if is_large {
                TRANSACTION_BYTES_MAX * 2
            } else {
                10
            };
            (
                is_large,
                submit(server, &[push("list", bytes)]).await.remove(0),
            )
        })));
    for (is_large, reply) in &replies {
        let expected = is_large.then_some(TOO_LARGE);
        assert_eq!(error(reply), expected);
    }
    assert_eq!(bench.run("LLEN list"), Reply::Integer(35));
    assert_eq!(bench.items("LRANGE list 0 -1").len(), 35);
}

fn together_take_several_transactions(bench: &Cluster) {
    let commands: Vec<Words> = (0..60)
        .map(|_| push("list", TRANSACTION_BYTES_MAX / 5))
        .collect();
    let replies = bench.runtime.block_on(submit(&bench.servers[0], &commands));
    let expected: Vec<Reply> = (1..=60).map(Reply::Integer).collect();
    assert_eq!(replies, expected);
    assert_eq!(bench.items("LRANGE list 0 -1").len(), 60);
}

#[test]
fn a_command_that_is_too_large_fails_alone_in_its_pipeline() {
    fails_alone_in_its_pipeline(&small_transactions());
}

#[test]
fn a_command_that_the_commit_finds_too_large_fails_alone_in_its_pipeline() {
    fails_alone_in_its_pipeline(&surprising_transactions());
}

#[test]
fn a_command_that_is_too_large_fails_alone_among_clients() {
    fails_alone_among_clients(&small_transactions());
}

#[test]
fn a_command_that_the_commit_finds_too_large_fails_alone_among_clients() {
    fails_alone_among_clients(&surprising_transactions());
}

#[test]
fn commands_that_are_too_large_together_take_several_transactions() {
    together_take_several_transactions(&small_transactions());
}

#[test]
fn commands_that_the_commit_finds_too_large_together_take_several_transactions() {
    together_take_several_transactions(&surprising_transactions());
}

#[test]
fn a_large_value_that_fits_is_whole() {
    let bench = crate::bench::cluster(1);
    let value: Vec<u8> = (0..500_000_u32)
        .flat_map(|number| number.to_be_bytes())
        .collect();
    let command = vec![b"RPUSH".to_vec(), b"list".to_vec(), value.clone()];
    let replies = bench
        .runtime
        .block_on(submit(&bench.servers[0], &[command]));
    assert_eq!(replies, [Reply::Integer(1)]);
    assert_eq!(bench.run("LPOP list"), Reply::Bulk(Bytes::from(value)));
}
