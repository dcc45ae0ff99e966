//! The upkeep of the index on a store that behaves as a cluster does.

use bytes::Bytes;
use futures_util::future::join;

use super::*;
use crate::clock::Clock;
use crate::commands::testing::Bench;
use crate::layout::{TaskPlace, ValueType};
use crate::types::context::NamespaceCache;
use crate::types::signals::Signals;

/// In front of all tasks of a priority.
fn place(priority: f64) -> Vec<u8> {
    let place = TaskPlace {
        priority,
        index: 0,
        random: 0,
    };
    place.encode()
}

/// Works within a transaction of its own, and tries to commit it after something else.
fn within<T>(
    bench: &Bench,
    work: impl AsyncFnOnce(&WriteContext<'_>, &ClassPlace) -> T,
    meanwhile: impl FnOnce(),
) -> (T, Result<(), StoreError>) {
    let transaction = bench.store.begin_write().unwrap();
    let done = {
        let namespaces = NamespaceCache::default();
        let signals = Signals::default();
        let environment = bench.executor.environment();
        let now_ms = bench.clock.now_ms();
        let context =
            WriteContext::new(&*transaction, environment, &namespaces, &signals, now_ms, 0);
        bench.block_on(async {
            let name = Bytes::from_static(b"q");
            let key = context.find(&name, ValueType::TaskQueue).await;
            let class = context.class_place(&key.unwrap().unwrap(), 0, 1);
            work(&context, &class).await
        })
    };
    meanwhile();
    (done, bench.block_on(transaction.commit()))
}

fn add(bench: &Bench, count: usize, priority: i64, gb: u64) {
    let line = format!("TASK.ADD q {priority} p NEEDS gb {gb}");
    bench.run_all(&vec![line; count]);
}

#[test]
fn a_cut_beside_it_in_the_same_transaction_makes_no_minimum_too_high() {
    let bench = Bench::cluster_like();
    add(&bench, 30, 40, 100);
    add(&bench, 40, 55, 100);
    add(&bench, 70, 60, 1);
    for pause in 0..16_usize {
        let (minima, _) = within(
            &bench,
            async |context, class| {
                context.put_node(class, 0, &place(0.0), &[1.0]);
                context.put_node(class, 0, &place(90.0), &[0.0]);
                // Begins within what the node below it covers, in front of where that is cut.
                context.put_node(class, 1, &place(50.0), &[0.5]);
                context.put_node(class, 1, &place(90.0), &[0.0]);
                let wait = async |count: usize| {
                    for _ in 0..count {
                        tokio::task::yield_now().await;
                    }
                };
                let (at_40, at_50) = (place(40.0), place(50.0));
                let cut = async {
                    wait(8_usize.saturating_sub(pause)).await;
                    context.tend_level(class, 0, &at_40, Tending::Split).await
                };
                let raise = async {
                    wait(pause.saturating_sub(8)).await;
                    context.tend_level(class, 1, &at_50, Tending::All).await
                };
                let (was_cut, raised) = join(cut, raise).await;
                assert!(was_cut.unwrap());
                raised.unwrap();
                let over = context.node_over(class, 1, &at_50, Isolation::Snapshot);
                over.await.unwrap().unwrap().minima
            },
            || (),
        );
        assert!(minima[0] <= 1.0, "{pause}: {minima:?}");
        // The next begins with the index as it was.
        let (_, ended) = within(
            &bench,
            async |context, class| {
                for level in 0..2 {
                    let prefix = context.level_prefix(class, level);
                    let end = end_key(&prefix, None);
                    context.transaction.clear_range(&prefix, &end);
                }
            },
            || (),
        );
        ended.unwrap();
    }
}
