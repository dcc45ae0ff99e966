//! Values with fields beside a model, across the bounds of a body, on both stores.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::*;
use crate::testing::environment;
use crate::unit::Unit;
use crate::unit::changed_bodies::ChangedBodies;
use crate::unit::context::WriteContext;
use quoin_base::random::{Random, SeededRandom};
use quoin_engine::testing::Bench;
use quoin_resp::reply::Reply;

static NAME: Bytes = Bytes::from_static(b"key");

fn on_both_stores(test: impl AsyncFn(&WriteContext<'_>)) {
    for bench in [Bench::embedded(), Bench::cluster_like()] {
        let environment = environment(&bench);
        let transaction = bench.store.begin_write().unwrap();
        let unit = Unit::new(&*transaction, &environment);
        bench.block_on(test(&unit.write_context(0)));
    }
}

fn entry(name: &str, value: &str) -> Entry {
    Entry {
        name: Bytes::from(name.to_owned()),
        value: Bytes::from(value.to_owned()),
    }
}

fn names(entries: &[Entry]) -> Vec<&str> {
    let names = entries.iter();
    names
        .map(|entry| str::from_utf8(&entry.name).unwrap())
        .collect()
}

async fn put(context: &WriteContext<'_>, value_type: ValueType, entries: &[Entry]) -> OpenKey {
    let found = context.find(&NAME, value_type).await.unwrap();
    let changed = context.fields_put(&NAME, value_type, found, entries.to_vec());
    changed.await.unwrap().key
}

/// A name of the model: mostly short, of a few some so long that their rows hold digests.
fn random_name(random: &dyn Random) -> Bytes {
    let number = random.below(90);
    match number {
        89 => Bytes::from(format!("{number}").repeat(600)),
        _ => Bytes::from(format!("{number}")),
    }
}

fn random_value(random: &dyn Random) -> Bytes {
    let length = match random.below(300) {
        0 => 100_000,
        1 => 1_100,
        _ => random.below(40),
    };
    Bytes::from(vec![b'a' + random.below(26) as u8; length as usize])
}

#[test]
fn random_changes_equal_a_model() {
    on_both_stores(async |context| {
        let random = SeededRandom::new(31);
        let (mut bodies, mut rows) = (0, 0);
        for round in 0..12 {
            let value_type = [ValueType::Hash, ValueType::Set][round % 2];
            let name = Bytes::from(format!("key{round}"));
            let mut model: BTreeMap<Bytes, Bytes> = BTreeMap::new();
            for _ in 0..60 {
                let found = context.find(&name, value_type).await.unwrap();
                if random.below(3) > 0 {
                    let entries: Vec<Entry> = (0..=random.below(6))
                        .map(|_| Entry {
                            name: random_name(&random),
                            value: match value_type {
                                ValueType::Hash => random_value(&random),
                                _ => Bytes::new(),
                            },
                        })
                        .collect();
                    let before = model.len();
                    let new = entries.iter().cloned();
                    model.extend(new.map(|entry| (entry.name, entry.value)));
                    let changed = context.fields_put(&name, value_type, found, entries);
                    let added = changed.await.unwrap().added;
                    assert_eq!(added, (model.len() - before) as i64);
                } else if let Some(mut key) = found {
                    let gone: Vec<Bytes> = (0..8).map(|_| random_name(&random)).collect();
                    let before = model.len();
                    model.retain(|name, _| !gone.contains(name));
                    let removed = context.fields_remove(&mut key, &gone).await.unwrap();
                    assert_eq!(removed, (before - model.len()) as i64);
                    context.remove_if_empty(&key).await.unwrap();
                }
                let found = context.find_any(&name).await.unwrap();
                assert_eq!(found.is_some(), !model.is_empty());
                let Some(key) = found else { continue };
                match key.meta.body {
                    Some(_) => bodies += 1,
                    None => rows += 1,
                }
                let length = context.length(&key, context.isolation).await.unwrap();
                assert_eq!(length, model.len() as i64);
                let all = context.fields_all(&key).await.unwrap();
                let all = all.into_iter().map(|entry| (entry.name, entry.value));
                assert_eq!(all.collect::<BTreeMap<_, _>>(), model);
                let asked: Vec<Bytes> = (0..5).map(|_| random_name(&random)).collect();
                let values = context.fields_get(&key, &asked).await.unwrap();
                let expected = asked.iter().map(|name| model.get(name).cloned());
                assert_eq!(values, expected.collect::<Vec<_>>());
            }
        }
        assert!(bodies > 100 && rows > 100, "{bodies} {rows}");
    });
}

#[test]
fn a_small_value_has_one_row_and_keeps_the_order_in_which_it_was_filled() {
    on_both_stores(async |context| {
        let key = put(
            context,
            ValueType::Hash,
            &[entry("z", "1"), entry("a", "2"), entry("z", "3")],
        )
        .await;
        assert!(key.meta.body.is_some());
        let all = context.fields_all(&key).await.unwrap();
        assert_eq!(all, [entry("z", "3"), entry("a", "2")]);
    });
}

#[test]
fn numbers_of_a_small_set_are_in_their_order_until_something_else_comes() {
    on_both_stores(async |context| {
        let members = ["10", "-3", "9"].map(|name| entry(name, ""));
        let key = put(context, ValueType::Set, &members).await;
        let all = context.fields_all(&key).await.unwrap();
        assert_eq!(names(&all), ["-3", "9", "10"]);
        let key = put(context, ValueType::Set, &[entry("x", ""), entry("5", "")]).await;
        let all = context.fields_all(&key).await.unwrap();
        assert_eq!(names(&all), ["-3", "9", "10", "x", "5"]);
    });
}

#[test]
fn what_outgrows_a_body_stays_in_rows() {
    on_both_stores(async |context| {
        let many: Vec<Entry> = (0..=body::BODY_ENTRIES_MAX)
            .map(|number| entry(&number.to_string(), ""))
            .collect();
        let (last, few) = many.split_last().unwrap();
        let key = put(context, ValueType::Set, few).await;
        assert!(key.meta.body.is_some());
        let mut key = put(context, ValueType::Set, std::slice::from_ref(last)).await;
        assert!(key.meta.body.is_none());
        let gone: Vec<Bytes> = few.iter().map(|entry| entry.name.clone()).collect();
        let removed = context.fields_remove(&mut key, &gone).await.unwrap();
        assert_eq!(removed, few.len() as i64);
        let key = put(context, ValueType::Set, &few[..1]).await;
        assert!(key.meta.body.is_none());
        assert_eq!(context.fields_all(&key).await.unwrap().len(), 2);
    });
}

#[test]
fn a_scan_of_rows_meets_every_field_once() {
    on_both_stores(async |context| {
        let many: Vec<Entry> = (0..500)
            .map(|number| entry(&number.to_string(), "value"))
            .collect();
        let key = put(context, ValueType::Hash, &many).await;
        let (mut cursor, mut seen) = (0, Vec::new());
        loop {
            let (next, some) = context.fields_scan(&key, cursor, 10).await.unwrap();
            assert!(some.len() >= 10 || next == 0);
            seen.extend(some);
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        seen.sort_by_key(|entry| str::from_utf8(&entry.name).unwrap().parse::<i64>().unwrap());
        assert_eq!(seen, many);
    });
}

#[test]
fn random_members_are_taken_once_each() {
    on_both_stores(async |context| {
        for size in [10, 3_000] {
            let many: Vec<Entry> = (0..size)
                .map(|number| entry(&number.to_string(), ""))
                .collect();
            let mut key = put(context, ValueType::Set, &many).await;
            let mut taken = Vec::new();
            while context.length(&key, context.isolation).await.unwrap() > 0 {
                let some = context.fields_take_random(&mut key, size / 4 + 1);
                taken.extend(some.await.unwrap());
            }
            context.remove_if_empty(&key).await.unwrap();
            assert!(context.find_any(&NAME).await.unwrap().is_none());
            taken.sort_by_key(|entry| str::from_utf8(&entry.name).unwrap().parse::<i64>().unwrap());
            assert_eq!(taken, many);
        }
    });
}

/// Changes a field in a transaction, runs `meanwhile`, and commits. Answers whether it conflicted,
/// and what the next attempt is to know.
fn change_field(bench: &Bench, before: ChangedBodies, meanwhile: &str) -> (bool, ChangedBodies) {
    let environment = environment(bench);
    let transaction = bench.store.begin_write().unwrap();
    let after = {
        let mut unit = Unit::new(&*transaction, &environment);
        unit.signals.changed_bodies = before;
        bench.block_on(async {
            let context = unit.write_context(0);
            put(&context, ValueType::Hash, &[entry("a", "2")]).await;
        });
        bench.run(meanwhile);
        std::mem::take(&mut unit.signals.changed_bodies).after_conflict()
    };
    (bench.block_on(transaction.commit()).is_err(), after)
}

#[test]
fn a_small_value_that_servers_conflict_on_becomes_rows() {
    let bench = Bench::cluster_like();
    bench.run("HSET key a 1 b 1");
    let (is_conflict, changed) = change_field(&bench, ChangedBodies::default(), "HSET key b 7");
    assert!(is_conflict);
    let (is_conflict, _) = change_field(&bench, changed, "PING");
    assert!(!is_conflict);
    assert_eq!(bench.data_rows(), 2);
    let Reply::Array(values) = bench.run("HMGET key a b") else {
        panic!("no array");
    };
    assert_eq!(values, ["2", "7"].map(Reply::bulk));
    assert_eq!(bench.run("HLEN key"), Reply::Integer(2));
}

#[test]
fn a_small_value_stays_one_where_something_else_conflicts() {
    for meanwhile in ["EXPIRE key 1000", "RENAME other key"] {
        let bench = Bench::cluster_like();
        bench.run("HSET other a 1 b 1");
        bench.run("HSET key a 1 b 1");
        let (is_conflict, changed) = change_field(&bench, ChangedBodies::default(), meanwhile);
        assert!(is_conflict, "{meanwhile}");
        let (is_conflict, _) = change_field(&bench, changed, "PING");
        assert!(!is_conflict, "{meanwhile}");
        assert_eq!(bench.data_rows(), 0, "{meanwhile}");
    }
}
