//! Values with fields against a model, inline and in rows, on both stores.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::change::INLINE_ENTRIES_MAX;
use super::*;
use crate::hash::{Hash, HashType};
use crate::set::{Set, SetMut, SetType};
use crate::testing::environment;
use crate::unit::Unit;
use crate::unit::context::WriteContext;
use quoin_base::random::{Random, SeededRandom};
use quoin_engine::testing::Bench;

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
    Entry::new(Bytes::from(name.to_owned()), Bytes::from(value.to_owned()))
}

fn names(entries: &[Entry]) -> Vec<&str> {
    let names = entries.iter();
    names
        .map(|entry| str::from_utf8(&entry.name).unwrap())
        .collect()
}

async fn put_entries<T: FieldsType>(context: &WriteContext<'_>, entries: &[Entry]) -> OpenKey {
    let found = context.find(&NAME, T::VALUE_TYPE).await.unwrap();
    let changed = put::<T>(context, &NAME, found, entries.to_vec());
    changed.await.unwrap().key
}

/// A name of the model. A few are so long that their rows hold digests.
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

/// How often a value of the model was inline, and how often it was in rows.
#[derive(Default)]
struct Forms {
    inline: usize,
    rows: usize,
}

async fn change_at_random<T: FieldsType>(
    context: &WriteContext<'_>,
    random: &dyn Random,
    name: &Bytes,
    forms: &mut Forms,
) {
    let mut model: BTreeMap<Bytes, Bytes> = BTreeMap::new();
    for _ in 0..60 {
        let found = context.find(name, T::VALUE_TYPE).await.unwrap();
        if random.below(3) > 0 {
            let entries: Vec<Entry> = (0..=random.below(6))
                .map(|_| {
                    let name = random_name(random);
                    let value = match T::ROW {
                        FieldRow::Hash => random_value(random),
                        FieldRow::Set => Bytes::new(),
                    };
                    Entry::new(name, value)
                })
                .collect();
            let before = model.len();
            let new = entries.iter().cloned();
            model.extend(new.map(|entry| (entry.name, entry.value)));
            let changed = put::<T>(context, name, found, entries).await.unwrap();
            assert_eq!(changed.added, (model.len() - before) as i64);
        } else if let Some(mut key) = found {
            let gone: Vec<Bytes> = (0..8).map(|_| random_name(random)).collect();
            let before = model.len();
            model.retain(|name, _| !gone.contains(name));
            let mut fields = FieldsMut::<T>::open(context, &mut key);
            let removed = fields.remove(&gone).await.unwrap();
            assert_eq!(removed, (before - model.len()) as i64);
            context.remove_if_empty(&key).await.unwrap();
        }
        let found = context.find_any(name).await.unwrap();
        assert_eq!(found.is_some(), !model.is_empty());
        let Some(key) = found else { continue };
        match key.meta.inline {
            Some(_) => forms.inline += 1,
            None => forms.rows += 1,
        }
        let length = context.length(&key, context.isolation).await.unwrap();
        assert_eq!(length, model.len() as i64);
        let fields = Value::<T>::open(context, &key);
        let all = fields.all().await.unwrap();
        let all = all.into_iter().map(|entry| (entry.name, entry.value));
        assert_eq!(all.collect::<BTreeMap<_, _>>(), model);
        let asked: Vec<Bytes> = (0..5).map(|_| random_name(random)).collect();
        let values = fields.get_each(&asked).await.unwrap();
        let expected = asked.iter().map(|name| model.get(name).cloned());
        assert_eq!(values, expected.collect::<Vec<_>>());
    }
}

#[test]
fn random_changes_equal_a_model() {
    on_both_stores(async |context| {
        let random = SeededRandom::new(31);
        let mut forms = Forms::default();
        for round in 0..12 {
            let name = Bytes::from(format!("key{round}"));
            match round % 2 {
                0 => change_at_random::<HashType>(context, &random, &name, &mut forms).await,
                _ => change_at_random::<SetType>(context, &random, &name, &mut forms).await,
            }
        }
        let Forms { inline, rows } = forms;
        assert!(inline > 100 && rows > 100, "{inline} {rows}");
    });
}

#[test]
fn a_small_value_has_one_row_and_keeps_the_order_in_which_it_was_filled() {
    on_both_stores(async |context| {
        let fields = [entry("z", "1"), entry("a", "2"), entry("z", "3")];
        let key = put_entries::<HashType>(context, &fields).await;
        assert!(key.meta.inline.is_some());
        let all = Hash::open(context, &key).all().await.unwrap();
        assert_eq!(all, [entry("z", "3"), entry("a", "2")]);
    });
}

#[test]
fn numbers_of_a_small_set_are_in_their_order_until_something_else_comes() {
    on_both_stores(async |context| {
        let members = ["10", "-3", "9"].map(|name| entry(name, ""));
        let key = put_entries::<SetType>(context, &members).await;
        let all = Set::open(context, &key).all().await.unwrap();
        assert_eq!(names(&all), ["-3", "9", "10"]);
        let key = put_entries::<SetType>(context, &[entry("x", ""), entry("5", "")]).await;
        let all = Set::open(context, &key).all().await.unwrap();
        assert_eq!(names(&all), ["-3", "9", "10", "x", "5"]);
    });
}

#[test]
fn what_outgrows_an_inline_value_stays_in_rows() {
    on_both_stores(async |context| {
        let many: Vec<Entry> = (0..=INLINE_ENTRIES_MAX)
            .map(|number| entry(&number.to_string(), ""))
            .collect();
        let (last, few) = many.split_last().unwrap();
        let key = put_entries::<SetType>(context, few).await;
        assert!(key.meta.inline.is_some());
        let mut key = put_entries::<SetType>(context, std::slice::from_ref(last)).await;
        assert!(key.meta.inline.is_none());
        let gone: Vec<Bytes> = few.iter().map(|entry| entry.name.clone()).collect();
        let mut set = SetMut::open(context, &mut key);
        let removed = set.remove(&gone).await.unwrap();
        assert_eq!(removed, few.len() as i64);
        let key = put_entries::<SetType>(context, &few[..1]).await;
        assert!(key.meta.inline.is_none());
        assert_eq!(Set::open(context, &key).all().await.unwrap().len(), 2);
    });
}

#[test]
fn a_scan_of_rows_meets_every_field_once() {
    on_both_stores(async |context| {
        let many: Vec<Entry> = (0..500)
            .map(|number| entry(&number.to_string(), "value"))
            .collect();
        let key = put_entries::<HashType>(context, &many).await;
        let (mut cursor, mut seen) = (0, Vec::new());
        loop {
            let hash = Hash::open(context, &key);
            let (next, some) = hash.scan(cursor, 10).await.unwrap();
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
            let mut key = put_entries::<SetType>(context, &many).await;
            let mut taken = Vec::new();
            while context.length(&key, context.isolation).await.unwrap() > 0 {
                let mut set = SetMut::open(context, &mut key);
                taken.extend(set.take_random(size / 4 + 1).await.unwrap());
            }
            context.remove_if_empty(&key).await.unwrap();
            assert!(context.find_any(&NAME).await.unwrap().is_none());
            taken.sort_by_key(|entry| str::from_utf8(&entry.name).unwrap().parse::<i64>().unwrap());
            assert_eq!(taken, many);
        }
    });
}
