//! How many round trips prefetching takes, on a store that counts them.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;

use quoin_base::random::{Random, SeededRandom};
use quoin_data::keyspace::key::ClientKey;
use quoin_data::keyspace::kind::TypeKind;
use quoin_data::prefetch::{GroupPrefetch, LocationCache, Prefetch, PrefetchPlan};
use quoin_data::unit::context::{NamespaceCache, ReadContext};
use quoin_engine::testing::Bench;
use quoin_layout::{Id, KeyName, Meta, StreamId, ValueType};
use quoin_store::{Isolation, KeyValue, RangeQuery, ReadTransaction, StoreError, StoreFuture};

/// Counts round trips. Reads issued together are one.
#[derive(Default)]
struct Trips {
    under_way: Cell<usize>,
    count: Cell<usize>,
    reads: Cell<usize>,
    /// The number of them that read a range.
    ranges: Cell<usize>,
}

struct Counting<'c> {
    inner: &'c dyn ReadTransaction,
    trips: &'c Trips,
}

/// Resolves at its second poll, after all others have been issued.
struct Later<'c, T> {
    answer: StoreFuture<'c, T>,
    trips: &'c Trips,
    is_asked: bool,
}

impl<T: Unpin> Future for Later<'_, T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let trips = self.trips;
        if !self.is_asked {
            self.is_asked = true;
            if trips.under_way.replace(trips.under_way.get() + 1) == 0 {
                trips.count.set(trips.count.get() + 1);
            }
            trips.reads.set(trips.reads.get() + 1);
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let answer = Pin::new(&mut self.answer).poll(context);
        if answer.is_ready() {
            trips.under_way.set(trips.under_way.get() - 1);
        }
        answer
    }
}

impl ReadTransaction for Counting<'_> {
    fn get<'t>(&'t self, key: &[u8], isolation: Isolation) -> StoreFuture<'t, Option<Bytes>> {
        StoreFuture::Pending(Box::pin(Later {
            answer: self.inner.get(key, isolation),
            trips: self.trips,
            is_asked: false,
        }))
    }

    fn get_range<'t>(&'t self, query: RangeQuery<'_>) -> StoreFuture<'t, Vec<KeyValue>> {
        self.trips.ranges.set(self.trips.ranges.get() + 1);
        StoreFuture::Pending(Box::pin(Later {
            answer: self.inner.get_range(query),
            trips: self.trips,
            is_asked: false,
        }))
    }

    fn cache_value(&self, key: &[u8], value: &Bytes) {
        self.inner.cache_value(key, value);
    }
}

/// Round trips and reads of prefetching.
fn trips(bench: &Bench, plan: &PrefetchPlan, locations: &LocationCache) -> (usize, usize) {
    let trips = prefetch(bench, plan, locations);
    (trips.count.get(), trips.reads.get())
}

fn prefetch(bench: &Bench, plan: &PrefetchPlan, locations: &LocationCache) -> Trips {
    count(bench, async |context| {
        context.prefetch(plan, locations).await
    })
}

/// Runs reads in a context that counts their round trips.
fn count(bench: &Bench, run: impl AsyncFnOnce(&ReadContext<'_>)) -> Trips {
    let transaction = bench.store.begin_read().unwrap();
    let trips = Trips::default();
    let counting = Counting {
        inner: &*transaction,
        trips: &trips,
    };
    let namespaces = NamespaceCache::default();
    let environment = bench.executor.environment();
    let context = ReadContext::new(&counting, environment, &namespaces, 0, 0);
    bench.block_on(run(&context));
    trips
}

fn pops_of(keys: usize) -> PrefetchPlan {
    let mut plan = PrefetchPlan::default();
    for key in 0..keys {
        let pop = Prefetch::End {
            value_type: ValueType::List,
            from_end: false,
            count: 1,
            with_length: false,
        };
        plan.add(&client_key(format!("q{key}")), &pop);
    }
    plan
}

fn filled(keys: usize) -> Bench {
    let bench = Bench::cluster_like();
    for key in 0..keys {
        bench.run(&format!("RPUSH q{key} a b c"));
    }
    bench
}

fn client_key(name: impl Into<Bytes>) -> ClientKey {
    ClientKey {
        database: 0,
        key: name.into(),
    }
}

#[test]
fn keys_are_read_side_by_side_and_at_once_where_they_are_known() {
    let bench = filled(100);
    let locations = LocationCache::default();
    // The namespace, then metadata, then the rows that the metadata refers to.
    let (first, reads) = trips(&bench, &pops_of(100), &locations);
    assert!(first <= 3, "{first}");
    assert_eq!(reads, 1 + 2 * 100);
    // The metadata copies replace reading the metadata.
    assert_eq!(trips(&bench, &pops_of(100), &locations), (1, 1 + 100));
}

#[test]
fn a_queue_without_meta_copies_has_its_metadata_read() {
    let bench = filled(1);
    let transaction = bench.store.begin_write().unwrap();
    let data = meta_of(&bench, "q0").data;
    let layout = &bench.executor.environment().layout;
    for key in ValueType::List.meta_copy_keys(layout, data) {
        transaction.clear(&key);
    }
    bench.block_on(transaction.commit()).unwrap();
    let locations = LocationCache::default();
    for expected in [(3, 3), (1, 3)] {
        assert_eq!(trips(&bench, &pops_of(1), &locations), expected);
    }
    // It gets some with the next change of its metadata.
    bench.run("EXPIRE q0 1000");
    for expected in [(1, 3), (1, 2)] {
        assert_eq!(trips(&bench, &pops_of(1), &locations), expected);
    }
}

fn meta_of(bench: &Bench, key: &str) -> Meta {
    let layout = &bench.executor.environment().layout;
    let nobody = Id {
        instance: 0,
        sequence: 0,
    };
    let name = KeyName::new(&Bytes::copy_from_slice(key.as_bytes()));
    let transaction = bench.store.begin_read().unwrap();
    let row = transaction.get(&layout.meta_key(nobody, &name), Isolation::Snapshot);
    Meta::decode(&bench.block_on(row).unwrap().unwrap()).unwrap()
}

/// A server that remembers where a queue was behaves like one that remembers nothing, even if other
/// servers change the queue.
#[test]
fn whatever_becomes_of_queues_they_are_found() {
    let keys = ["a", "b", "c"];
    let random = SeededRandom::new(20);
    let pick = |count: usize| random.below(count as u64) as usize;
    for _ in 0..20 {
        let (cluster, embedded) = (Bench::cluster_like(), Bench::embedded());
        let mut lines = Vec::new();
        for number in 0..120 {
            let (key, other) = (keys[pick(3)], keys[pick(3)]);
            let line = match pick(24) {
                0..4 => format!("RPUSH {key} {number}"),
                4..6 => format!("LPUSH {key} {number}"),
                6..8 => format!("LPOP {key}"),
                8..10 => format!("RPOP {key} 2"),
                10 => format!("ZADD {key} {number} {number}"),
                11 => format!("ZPOPMIN {key}"),
                12 => format!("ZPOPMAX {key} 2"),
                13 => format!("PQ.PUSH {key} 1 {number}"),
                14 => format!("PQ.POPMIN {key}"),
                15 => format!("RENAME {key} {other}"),
                16 => format!("RENAMENX {key} {other}"),
                17 => format!("COPY {key} {other} REPLACE"),
                18 => format!("MOVE {key} 1"),
                19 => "SWAPDB 0 1".to_owned(),
                20 => format!("EXPIRE {key} {}", pick(2)),
                21 => format!("PERSIST {key}"),
                22 => format!("DEL {key}"),
                _ => match pick(6) {
                    0 => "FLUSHDB".to_owned(),
                    _ => format!("LMOVE {key} {other} LEFT RIGHT"),
                },
            };
            let reply = cluster.run(&line);
            lines.push(line);
            let line = lines.last().unwrap();
            assert_eq!(reply, embedded.run(line), "{lines:#?}");
        }
    }
}

#[test]
fn a_wrong_location_costs_reads_and_is_forgotten() {
    let bench = filled(1);
    let locations = LocationCache::default();
    trips(&bench, &pops_of(1), &locations);
    for change in ["DEL q0", "RPUSH q0 d", "SWAPDB 0 1", "SWAPDB 0 1"] {
        bench.run(change);
        let (first, _) = trips(&bench, &pops_of(1), &locations);
        assert!((2..=3).contains(&first), "{change}: {first}");
        let (again, _) = trips(&bench, &pops_of(1), &locations);
        assert_eq!(again, 1, "{change}");
    }
}

fn metadata_of(keys: usize) -> PrefetchPlan {
    let mut plan = PrefetchPlan::default();
    for key in 0..keys {
        plan.add(&client_key(format!("q{key}")), &Prefetch::Meta);
    }
    plan
}

#[test]
fn metadata_is_read_beside_the_namespace_that_was_there_the_last_time() {
    let bench = filled(100);
    let locations = LocationCache::default();
    assert_eq!(trips(&bench, &metadata_of(1), &locations), (2, 2));
    // Most of these keys are not known.
    assert_eq!(trips(&bench, &metadata_of(100), &locations), (1, 1 + 100));
    bench.run("SWAPDB 0 1");
    assert_eq!(
        trips(&bench, &metadata_of(100), &locations),
        (2, 1 + 2 * 100)
    );
    assert_eq!(trips(&bench, &metadata_of(100), &locations), (1, 1 + 100));
}

#[test]
fn a_place_is_remembered_only_where_data_is_read() {
    let bench = filled(2);
    let locations = LocationCache::default();
    trips(&bench, &metadata_of(2), &locations);
    assert!(locations.known().keys.is_empty());
    trips(&bench, &pops_of(1), &locations);
    assert_eq!(locations.known().keys.len(), 1);
}

#[test]
fn what_several_commands_look_at_is_read_once() {
    let bench = filled(1);
    let locations = LocationCache::default();
    let mut plan = pops_of(1);
    for _ in 0..5 {
        let key = Bytes::from_static(b"q0");
        plan.add(&client_key(key.clone()), &Prefetch::Meta);
        plan.add(
            &client_key(key),
            &Prefetch::End {
                value_type: ValueType::List,
                from_end: false,
                count: 2,
                with_length: true,
            },
        );
    }
    trips(&bench, &plan, &locations);
    // The namespace, the elements with the metadata, the length.
    assert_eq!(trips(&bench, &plan, &locations), (1, 3));
}

#[test]
fn a_push_to_a_known_queue_reads_one_range_and_the_length() {
    let bench = filled(1);
    let locations = LocationCache::default();
    let mut plan = PrefetchPlan::default();
    let push = Prefetch::End {
        value_type: ValueType::List,
        from_end: true,
        count: 0,
        with_length: true,
    };
    plan.add(&client_key("q0"), &push);
    trips(&bench, &plan, &locations);
    let known = prefetch(&bench, &plan, &locations);
    // The namespace, the outermost element with the metadata, the length.
    assert_eq!(known.count.get(), 1);
    assert_eq!((known.reads.get(), known.ranges.get()), (3, 1));
}

#[test]
fn however_many_pushes_look_at_the_outermost_element_only() {
    let mut plan = PrefetchPlan::default();
    for take in [0, 0, 0, 2, 0] {
        let end = Prefetch::End {
            value_type: ValueType::List,
            from_end: true,
            count: take,
            with_length: true,
        };
        plan.add(&client_key("q"), &end);
    }
    let ends = &plan.keys.values().next().unwrap().ends;
    // Two rows to take, and the one after them.
    assert_eq!(ends.iter().map(|end| end.rows(1)).collect::<Vec<_>>(), [3]);
}

#[test]
fn a_key_of_another_type_is_not_read_as_if_it_were_of_the_expected_one() {
    let bench = Bench::cluster_like();
    bench.run("ZADD q0 1 a");
    let locations = LocationCache::default();
    // The namespace and the metadata.
    assert_eq!(trips(&bench, &pops_of(1), &locations), (2, 2));
}

#[test]
fn members_and_fields_in_rows_are_read_with_the_metadata() {
    let words: String = (0..100).map(|number| format!(" m{number} v")).collect();
    for (command, value_type) in [("HSET", ValueType::Hash), ("SADD", ValueType::Set)] {
        let bench = Bench::cluster_like();
        bench.run(&format!("{command} large{words}"));
        bench.run(&format!("{command} small a b"));
        let names = ["m1", "m2", "nosuch"].map(Bytes::from);
        // The namespace and the metadata, and of a value in rows each row.
        for (key, reads) in [("large", 5), ("small", 2)] {
            let mut plan = PrefetchPlan::default();
            let members = Prefetch::members(value_type, &names);
            plan.add(&client_key(key), &members);
            let locations = LocationCache::default();
            trips(&bench, &plan, &locations);
            assert_eq!(trips(&bench, &plan, &locations), (1, reads), "{key}");
        }
        // A value that has moved to rows is found, and remembered.
        let mut plan = PrefetchPlan::default();
        plan.add(&client_key("small"), &Prefetch::members(value_type, &names));
        let locations = LocationCache::default();
        trips(&bench, &plan, &locations);
        bench.run(&format!("{command} small{words}"));
        assert_eq!(trips(&bench, &plan, &locations).0, 3);
        assert_eq!(trips(&bench, &plan, &locations), (1, 5));
        // A command of another type reads the metadata only.
        let mut plan = PrefetchPlan::default();
        let members = Prefetch::members(ValueType::SortedSet, &names);
        plan.add(&client_key("large"), &members);
        assert_eq!(trips(&bench, &plan, &locations).1, 2);
    }
}

#[test]
fn consumers_and_pending_entries_of_a_group_are_read_side_by_side() {
    let bench = Bench::cluster_like();
    bench.run("XGROUP CREATE stream g 0 MKSTREAM");
    let mut plan = PrefetchPlan::default();
    for number in 0..10 {
        bench.run(&format!("XGROUP CREATECONSUMER stream g c{number}"));
        let group = GroupPrefetch {
            name: "g".into(),
            consumer: Some(format!("c{number}").into()),
            pending: vec![StreamId { ms: number, seq: 1 }; 2],
        };
        let prefetch = Prefetch::Stream {
            head: true,
            group: Some(group),
        };
        plan.add(&client_key("stream"), &prefetch);
    }
    let locations = LocationCache::default();
    trips(&bench, &plan, &locations);
    // The namespace, the metadata, the head and the group; then ten consumers and ten entries.
    assert_eq!(trips(&bench, &plan, &locations), (2, 24));
}
