//! Maintenance of the index on a store with many writers.

use bytes::Bytes;
use futures_util::future::join;

use super::*;
use crate::taskqueue::add::{NewTask, add as add_task};
use crate::taskqueue::index::{Class, LEAF_MAX, Scope, end_key};
use crate::taskqueue::maintenance::Split;
use crate::taskqueue::{TaskQueue, TaskQueueMut};
use crate::testing::environment;
use crate::unit::context::{NamespaceCache, WriteContext};
use crate::unit::signals::Signals;
use quoin_base::clock::Clock;
use quoin_layout::{TaskPlace, TaskSpec, ValueType};
use quoin_store::{Isolation, StoreError};

/// The place before all tasks of a priority.
fn place(priority: f64) -> Vec<u8> {
    let place = TaskPlace {
        priority,
        index: 0,
        random: 0,
    };
    place.encode()
}

/// Runs `work` in a transaction, then `meanwhile`, then commits the transaction.
fn within<T>(
    bench: &Bench,
    work: impl AsyncFnOnce(&TaskQueueMut<'_, '_>, &Class) -> T,
    meanwhile: impl FnOnce(),
) -> (T, Result<(), StoreError>) {
    let environment = &environment(bench);
    let transaction = bench.store.begin_write().unwrap();
    let done = {
        let namespaces = NamespaceCache::default();
        let signals = Signals::default();
        let now_ms = bench.clock.now_ms();
        let context =
            WriteContext::new(&*transaction, environment, &namespaces, &signals, now_ms, 0);
        bench.block_on(async {
            let name = Bytes::from_static(b"q");
            let key = context.find(&name, ValueType::TaskQueue).await;
            let key = key.unwrap().unwrap();
            let queue = TaskQueueMut::open(&context, &key);
            work(&queue, &queue.class(0, 1)).await
        })
    };
    meanwhile();
    (done, bench.block_on(transaction.commit()))
}

async fn places_of(queue: &TaskQueue<'_, '_>, class: &Class, level: u32) -> Vec<Bytes> {
    let nodes = queue
        .nodes_between(class, level, (None, None), 1_000, Isolation::Snapshot)
        .await;
    nodes
        .unwrap()
        .0
        .into_iter()
        .map(|node| node.place)
        .collect()
}

/// The places of the nodes of a level.
fn places(bench: &Bench, level: u32) -> Vec<Bytes> {
    let (places, ended) = within(
        bench,
        async |queue, class| places_of(queue, class, level).await,
        || (),
    );
    ended.unwrap();
    places
}

fn add(bench: &Bench, count: usize, priority: i64, gb: u64) {
    let line = format!("TASK.ADD q {priority} p NEEDS gb {gb}");
    bench.run_all(&vec![line; count]);
}

/// Forty tasks at the head and one at the end that need much, and nodes of two levels. The tasks
/// under the level 1 nodes in between are gone.
fn passed_through() -> Bench {
    let bench = Bench::cluster_like();
    add(&bench, 40, 0, 100);
    add(&bench, 1, 100, 100);
    let (_, ended) = within(
        &bench,
        async |queue, class| {
            queue.put_node(class, 0, &place(0.0), &[100.0]);
            queue.put_node(class, 0, &place(90.0), &[0.0]);
            for priority in [0.0, 10.0, 20.0, 30.0, 40.0] {
                queue.put_node(class, 1, &place(priority), &[1.0]);
            }
            queue.put_node(class, 1, &place(90.0), &[0.0]);
        },
        || (),
    );
    ended.unwrap();
    bench
}

fn take_and_reap(bench: &Bench) {
    bench.run("TASK.TAKE q HAVING gb 50");
    bench.clock.advance_ms(1_000);
    let mut reaper = Reaper::new(&bench.executor);
    while bench.block_on(reaper.pass(&bench.executor)).unwrap() {}
}

#[test]
fn a_range_that_became_very_long_before_maintenance_is_split() {
    const TASKS: usize = 4_000;
    let bench = Bench::cluster_like();
    add(&bench, TASKS, 0, 100);
    bench.clock.advance_ms(1_000);
    let mut reaper = Reaper::new(&bench.executor);
    // The remaining work is done in the next half second.
    for _ in 0..10 {
        while bench.block_on(reaper.pass(&bench.executor)).unwrap() {}
        bench.clock.advance_ms(1_000);
    }
    let (longest, ended) = within(
        &bench,
        async |queue, class| {
            let places = places_of(queue, class, 0).await;
            let ends = places.iter().skip(1).map(Some).chain([None]);
            let mut longest = 0;
            let (nodes, _) = queue
                .nodes_between(class, 0, (None, None), 1_000, Isolation::Snapshot)
                .await
                .unwrap();
            // Tasks that need less may be added after the last node.
            let lowest = nodes.iter().rev().skip(1).map(|node| node.minima[0]);
            assert_eq!(lowest.fold(f64::INFINITY, f64::min), 100.0);
            for (place, end) in places.iter().zip(ends) {
                let range = (Some(place.as_ref()), end.map(AsRef::as_ref));
                let (parts, _) = queue
                    .task_parts(class, range, TASKS, Isolation::Snapshot)
                    .await
                    .unwrap();
                longest = longest.max(parts.len());
            }
            longest
        },
        || (),
    );
    ended.unwrap();
    assert!((1..=2 * LEAF_MAX).contains(&longest), "{longest}");
}

#[test]
fn higher_nodes_whose_tasks_are_gone_are_removed_after_a_head_that_stays() {
    let bench = passed_through();
    take_and_reap(&bench);
    assert_eq!(places(&bench, 1), [place(0.0), place(90.0)]);
    add(&bench, 1, 20, 1);
    add(&bench, 1, 80, 1);
    for _ in 0..2 {
        assert!(matches!(
            bench.run("TASK.TAKE q HAVING gb 50"),
            quoin_resp::reply::Reply::Array(_)
        ));
    }
}

#[test]
fn a_higher_node_stays_while_it_has_a_task() {
    let bench = passed_through();
    add(&bench, 1, 20, 60);
    take_and_reap(&bench);
    assert_eq!(places(&bench, 1), [place(0.0), place(20.0), place(90.0)]);
}

#[test]
fn the_removal_of_a_higher_node_conflicts_with_a_task_that_is_added_to_it() {
    let maintain = async |queue: &TaskQueueMut<'_, '_>, class: &Class| {
        queue
            .maintain(class, &place(20.0), Scope::All)
            .await
            .unwrap();
        assert!(
            !places_of(queue, class, 1)
                .await
                .contains(&place(20.0).into())
        );
    };
    let bench = passed_through();
    let (_, ended) = within(&bench, maintain, || add(&bench, 1, 20, 1));
    assert!(matches!(ended, Err(StoreError::Conflict)), "{ended:?}");

    let bench = passed_through();
    let task = NewTask {
        id: None,
        after: Vec::new(),
        traceparent: None,
        spec: TaskSpec {
            priority: 20.0,
            needs: vec![(Bytes::from_static(b"gb"), 1.0)],
            ..TaskSpec::default()
        },
    };
    let (_, ended) = within(
        &bench,
        async |queue, _| {
            add_task(queue.context, &Bytes::from_static(b"q"), &task)
                .await
                .unwrap()
        },
        || within(&bench, maintain, || ()).1.unwrap(),
    );
    assert!(matches!(ended, Err(StoreError::Conflict)), "{ended:?}");
}

#[test]
fn higher_nodes_before_all_tasks_are_removed_even_if_lower_ones_are_not() {
    let bench = Bench::cluster_like();
    add(&bench, 2, 0, 1);
    let (left, ended) = within(
        &bench,
        async |queue, class| {
            queue.put_node(class, 0, &place(50.0), &[0.0]);
            for priority in [-30.0, -20.0, -10.0, 50.0] {
                queue.put_node(class, 1, &place(priority), &[0.0]);
            }
            queue.clear_nodes_before(class, &place(0.0)).await.unwrap();
            places_of(queue, class, 1).await
        },
        || (),
    );
    ended.unwrap();
    assert_eq!(left, [place(-10.0), place(50.0)]);
}

#[test]
fn a_concurrent_split_in_the_same_transaction_makes_no_minimum_too_high() {
    let bench = Bench::cluster_like();
    add(&bench, 30, 40, 100);
    add(&bench, 40, 55, 100);
    add(&bench, 70, 60, 1);
    for pause in 0..16_usize {
        let (minima, _) = within(
            &bench,
            async |queue, class| {
                queue.put_node(class, 0, &place(0.0), &[1.0]);
                queue.put_node(class, 0, &place(90.0), &[0.0]);
                // This node begins within the range of the node below, before the split.
                queue.put_node(class, 1, &place(50.0), &[0.5]);
                queue.put_node(class, 1, &place(90.0), &[0.0]);
                let wait = async |count: usize| {
                    for _ in 0..count {
                        tokio::task::yield_now().await;
                    }
                };
                let (at_40, at_50) = (place(40.0), place(50.0));
                let split = async {
                    wait(8_usize.saturating_sub(pause)).await;
                    queue.maintain_level(class, 0, &at_40, Scope::Split).await
                };
                let raise = async {
                    wait(pause.saturating_sub(8)).await;
                    queue.maintain_level(class, 1, &at_50, Scope::All).await
                };
                let (was_split, raised) = join(split, raise).await;
                assert!(!matches!(was_split.unwrap(), Split::None));
                raised.unwrap();
                let over = queue.node_over(class, 1, &at_50, Isolation::Snapshot);
                over.await.unwrap().unwrap().minima
            },
            || (),
        );
        assert!(minima[0] <= 1.0, "{pause}: {minima:?}");
        // The next round still uses the old index.
        let (_, ended) = within(
            &bench,
            async |queue, class| {
                for level in 0..2 {
                    let prefix = queue.level_prefix(class, level);
                    let end = end_key(&prefix, None);
                    queue.context.transaction.clear_range(&prefix, &end);
                }
            },
            || (),
        );
        ended.unwrap();
    }
}
