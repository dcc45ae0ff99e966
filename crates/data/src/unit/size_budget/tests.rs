use bytes::Bytes;

use quoin_data::list::{End, ListMut};
use quoin_data::unit::context::NamespaceCache;
use quoin_data::unit::context::WriteContext;
use quoin_data::unit::signals::Signals;
use quoin_data::zset::{self, ScoredMember};
use quoin_engine::testing::Bench;
use quoin_layout::ValueType;

/// What the budget shrinks by, and the transaction grows by, for a value of elements or members
/// that each have so many bytes.
fn taken_and_written(bench: &Bench, value_type: ValueType, bytes: usize) -> (usize, usize) {
    const COUNT: usize = 50;
    let transaction = bench.store.begin_write().unwrap();
    let (namespaces, signals) = (NamespaceCache::default(), Signals::default());
    let environment = bench.executor.environment();
    let context = WriteContext::new(&*transaction, environment, &namespaces, &signals, 0, 0);
    let mut budget = context.size_budget();
    let whole_bytes = budget.left_bytes;
    let values: Vec<Bytes> = (0..COUNT)
        .map(|number| format!("{number:03}{}", "x".repeat(bytes - 3)).into())
        .collect();
    bench.block_on(async {
        let name = Bytes::from_static(b"key");
        let key = context.create(&name, value_type, None).await.unwrap();
        let empty_bytes = transaction.size_bytes();
        if value_type == ValueType::List {
            budget.take_elements(bytes, COUNT).unwrap();
            let list = ListMut::open(&context, &key);
            list.push(&values, End::Right).await.unwrap();
        } else {
            let members: Vec<ScoredMember> = values
                .into_iter()
                .inspect(|member| budget.take_member(member.len()).unwrap())
                .map(|member| ScoredMember { member, score: 1.0 })
                .collect();
            zset::store(&context, &name, &members).await.unwrap();
        }
        let taken = whole_bytes - budget.left_bytes;
        (taken, transaction.size_bytes() - empty_bytes)
    })
}

fn for_values_of_all_lengths(bench: &Bench, check: impl Fn(usize, usize) -> bool) {
    for value_type in [ValueType::List, ValueType::SortedSet] {
        for bytes in [3, 100, 900, 5_000, 100_000] {
            let (taken, written) = taken_and_written(bench, value_type, bytes);
            assert!(
                check(taken, written),
                "{value_type:?} of {bytes}: {taken} of {written}"
            );
        }
    }
}

#[test]
fn no_more_is_taken_than_is_written() {
    for bench in [Bench::embedded(), Bench::cluster_like()] {
        for_values_of_all_lengths(&bench, |taken, written| taken <= written);
    }
}

#[test]
fn on_one_server_little_less_is_taken_than_is_written() {
    for_values_of_all_lengths(&Bench::embedded(), |taken, written| {
        3 * taken >= 2 * written
    });
}
