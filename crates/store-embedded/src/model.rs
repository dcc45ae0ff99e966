//! Compares the store with a map over random sequences of everything that moves its rows: commits,
//! rollbacks, closed generations, drains, evictions and restarts.

use std::collections::BTreeMap;
use std::path::Path;

use futures_util::FutureExt;
use proptest::prelude::*;

use crate::{EmbeddedOptions, EmbeddedStore, FsyncPolicy};
use quoin_store::{Isolation, RangeQuery, ReadTransaction, Store, StoreFuture, Transaction};

/// Less than the rows of a long run take.
const MEMORY_BYTES: usize = 4 * 1024;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Debug, Clone)]
enum Write {
    Set(Vec<u8>, u16),
    Clear(Vec<u8>),
    ClearRange(Vec<u8>, Vec<u8>),
    Add(Vec<u8>, i8),
    /// Writes of single keys that are undone afterwards.
    Undone(Vec<Write>),
    Get(Vec<u8>),
    Page(Page),
}

#[derive(Debug, Clone)]
struct Page {
    begin: Vec<u8>,
    end: Vec<u8>,
    limit: usize,
    reverse: bool,
}

#[derive(Debug, Clone)]
enum Step {
    Write {
        writes: Vec<Write>,
        is_short: bool,
        commits: bool,
    },
    Read {
        pages: Vec<Page>,
        keys: Vec<Vec<u8>>,
        is_short: bool,
    },
    /// A snapshot that is read at the end.
    Keep,
    Close,
    /// Writes the oldest generation into the data file.
    Drain,
    /// Drains half of it.
    DrainPart,
    Restart,
}

fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (0_u8..4, 0_u8..40).prop_map(|(section, number)| vec![section, number]),
        1 => (0_u8..4).prop_map(|section| vec![section]),
        1 => (0_u8..4, 0_u8..40, 0_u8..3).prop_map(|(section, number, end)| vec![section, number, end]),
    ]
}

fn pages() -> impl Strategy<Value = Page> {
    let limits = prop_oneof![Just(1), Just(3), Just(usize::MAX)];
    (keys(), keys(), limits, any::<bool>()).prop_map(|(begin, end, limit, reverse)| Page {
        begin,
        end,
        limit,
        reverse,
    })
}

fn writes() -> impl Strategy<Value = Write> {
    let of_key = || {
        prop_oneof![
            8 => (keys(), any::<u16>()).prop_map(|(key, value)| Write::Set(key, value)),
            4 => keys().prop_map(Write::Clear),
            4 => (keys(), any::<i8>()).prop_map(|(key, delta)| Write::Add(key, delta)),
        ]
    };
    let undone = prop::collection::vec(of_key(), 1..8);
    prop_oneof![
        16 => of_key(),
        1 => (keys(), keys()).prop_map(|(begin, end)| Write::ClearRange(begin, end)),
        2 => undone.prop_map(Write::Undone),
        2 => keys().prop_map(Write::Get),
        2 => pages().prop_map(Write::Page),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    let writes = prop::collection::vec(writes(), 1..20);
    let pages = prop::collection::vec(pages(), 0..4);
    let keys = prop::collection::vec(keys(), 0..6);
    prop_oneof![
        10 => (writes, any::<bool>(), prop::bool::weighted(0.8)).prop_map(|(writes, is_short, commits)| Step::Write {
            writes,
            is_short,
            commits,
        }),
        4 => (pages, keys, any::<bool>()).prop_map(|(pages, keys, is_short)| Step::Read {
            pages,
            keys,
            is_short,
        }),
        1 => Just(Step::Keep),
        3 => Just(Step::Close),
        3 => Just(Step::Drain),
        1 => Just(Step::DrainPart),
        1 => prop::bool::weighted(0.3).prop_map(|restarts| match restarts {
            true => Step::Restart,
            false => Step::Close,
        }),
    ]
}

fn now<T: Unpin>(future: StoreFuture<'_, T>) -> T {
    future.now_or_never().unwrap().unwrap()
}

fn assert_page<R: ReadTransaction + ?Sized>(reader: &R, model: &Model, page: &Page) {
    let query = RangeQuery {
        begin: &page.begin,
        end: &page.end,
        limit: page.limit,
        reverse: page.reverse,
        isolation: Isolation::Snapshot,
    };
    let found = now(reader.get_range(query));
    let found: Vec<_> = { found.iter() }
        .map(|row| (row.key.to_vec(), row.value.to_vec()))
        .collect();
    let inside = |key: &Vec<u8>| *key >= page.begin && *key < page.end;
    let mut expected: Vec<_> = { model.iter() }
        .filter(|(key, _)| inside(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if page.reverse {
        expected.reverse();
    }
    expected.truncate(page.limit);
    assert_eq!(found, expected, "{page:?}");
}

fn assert_key<R: ReadTransaction + ?Sized>(reader: &R, model: &Model, key: &[u8]) {
    let found = now(reader.get(key, Isolation::Snapshot));
    assert_eq!(
        found.as_deref(),
        model.get(key).map(Vec::as_slice),
        "{key:?}"
    );
}

fn write(transaction: &dyn Transaction, model: &mut Model, one: &Write) {
    match one {
        Write::Set(key, value) => {
            let value = value.to_be_bytes().repeat(20);
            transaction.set(key, &value);
            model.insert(key.clone(), value);
        }
        Write::Clear(key) => {
            transaction.clear(key);
            model.remove(key);
        }
        Write::ClearRange(begin, end) => {
            transaction.clear_range(begin, end);
            model.retain(|key, _| key < begin || key >= end);
        }
        Write::Add(key, delta) => {
            transaction.atomic_add(key, i64::from(*delta));
            let sum =
                quoin_store::rules::added(model.get(key).map(Vec::as_slice), i64::from(*delta));
            model.insert(key.clone(), sum.to_vec());
        }
        Write::Undone(writes) => {
            let savepoint = transaction.savepoint();
            let mut undone = model.clone();
            for one in writes {
                write(transaction, &mut undone, one);
            }
            transaction.rollback(savepoint);
        }
        Write::Get(key) => assert_key(transaction, model, key),
        Write::Page(page) => assert_page(transaction, model, page),
    }
}

fn open(folder: &Path) -> (EmbeddedStore, impl Sized + use<>) {
    let options = EmbeddedOptions {
        map_bytes: 64 << 20,
        memory_bytes_max: MEMORY_BYTES,
        // Without syncs nothing is lost, because the process survives.
        fsync: FsyncPolicy::EverySecond,
        ..EmbeddedOptions::default()
    };
    // It drains only on request.
    let (store, work, first) = EmbeddedStore::prepare(folder, options).unwrap();
    (store, (work, first))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn the_store_is_a_map_wherever_its_rows_are(steps in prop::collection::vec(steps(), 1..150)) {
        let folder = tempfile::tempdir().unwrap();
        let mut opened = open(folder.path());
        let mut model = Model::new();
        let mut kept: Vec<(crate::Moment, Model)> = Vec::new();
        let all = Page { begin: vec![], end: vec![255], limit: usize::MAX, reverse: false };
        for step in &steps {
            let (store, _) = &opened;
            match step {
                Step::Write { writes, is_short, commits } => {
                    let mut written = model.clone();
                    let transaction = match is_short {
                        true => store.begin_short_write().unwrap(),
                        false => store.begin_write().unwrap(),
                    };
                    for one in writes {
                        write(&*transaction, &mut written, one);
                    }
                    if *commits {
                        now(transaction.commit());
                        model = written;
                    }
                }
                Step::Read { pages, keys, is_short } => {
                    let reader = match is_short {
                        true => store.begin_short_read(true).unwrap().unwrap(),
                        false => store.begin_read().unwrap(),
                    };
                    for page in pages {
                        assert_page(&*reader, &model, page);
                    }
                    for key in keys {
                        assert_key(&*reader, &model, key);
                    }
                }
                Step::Keep => kept.push((store.moment().unwrap(), model.clone())),
                Step::Close => store.close_generation(),
                Step::Drain => store.drain_oldest(true),
                Step::DrainPart => store.drain_oldest(false),
                Step::Restart => {
                    kept.clear();
                    drop(opened);
                    opened = open(folder.path());
                }
            }
        }
        let (store, _) = &opened;
        assert_page(&*store.begin_read().unwrap(), &model, &all);
        assert_page(&*store.begin_short_read(true).unwrap().unwrap(), &model, &all);
        for (moment, model) in &kept {
            let mut rows = Model::new();
            moment.visit(|key, value| -> Result<(), quoin_store::StoreError> {
                rows.insert(key.to_vec(), value.to_vec());
                Ok(())
            }).unwrap();
            prop_assert_eq!(&rows, model);
        }
    }
}
