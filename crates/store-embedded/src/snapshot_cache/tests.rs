use super::*;
use crate::layer::Layer;
use crate::undo::Log;
use crate::{EmbeddedOptions, EmbeddedStore};
use quoin_base::random::{Random, SeededRandom};
use quoin_store::Store;

const ROWS: u8 = 200;

/// A store whose rows are some of the keys of one byte.
fn store(folder: &tempfile::TempDir) -> EmbeddedStore {
    let options = EmbeddedOptions {
        map_bytes: 16 << 20,
        ..EmbeddedOptions::default()
    };
    let store = EmbeddedStore::open(folder.path(), options).unwrap();
    for part in [0, 1] {
        let transaction = store.begin_write().unwrap();
        for key in (0..ROWS).filter(|key| key % 3 == part) {
            transaction.set(&[key], &[key; 20]);
        }
        futures_util::FutureExt::now_or_never(transaction.commit())
            .unwrap()
            .unwrap();
        store.drain_now();
    }
    store
}

/// Runs a test on a snapshot of [`store`].
fn with_snapshot(test: impl FnOnce(View<'_>)) {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let (layers, transaction) = store
        .shared
        .overlay
        .snapshot(&store.environment, 0)
        .unwrap();
    test(View {
        layers: &layers,
        rows: &store.rows,
        transaction: &transaction,
    });
}

#[test]
fn whatever_was_read_before_a_read_finds_what_the_snapshot_has() {
    with_snapshot(|snapshot| {
        for seed in 0..40 {
            let random = SeededRandom::new(seed);
            let mut cache = SnapshotCache::default();
            cache.reset();
            let mut edge = 0;
            for _ in 0..400 {
                let reverse = random.below(2) == 0;
                // Reads often continue from the last one, as pops do.
                edge = match random.below(4) {
                    0 => random.below(256) as u8,
                    _ if reverse => edge.saturating_sub(2),
                    _ => edge.saturating_add(2),
                };
                let bound = match random.below(3) {
                    0 => random.below(256) as u8,
                    _ if reverse => 0,
                    _ => u8::MAX,
                };
                let (begin, end) = if reverse {
                    (bound, edge)
                } else {
                    (edge, bound)
                };
                let found = match begin < end {
                    true => cache.row(&snapshot, &[edge], &[bound], reverse).unwrap(),
                    false => None,
                };
                let query = RangeQuery {
                    begin: &[begin],
                    end: &[end],
                    limit: 1,
                    reverse,
                    isolation: Isolation::Snapshot,
                };
                assert_eq!(
                    found,
                    snapshot.get_range(&query).unwrap().pop(),
                    "{query:?}"
                );
                let key = [random.below(256) as u8];
                for _ in 0..=random.below(2) {
                    let value = cache.value(&snapshot, &key).unwrap();
                    assert_eq!(value.as_deref(), snapshot.get(&key).unwrap());
                }
                if random.below(50) == 0 {
                    cache.reset();
                }
            }
        }
    });
}

#[test]
fn reads_that_go_on_from_row_to_row_take_more_and_more_ahead() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder);
    let transaction = store.begin_write().unwrap();
    for _ in 0..60 {
        let query = RangeQuery {
            begin: &[0],
            end: &[u8::MAX],
            limit: 1,
            reverse: false,
            isolation: Isolation::Snapshot,
        };
        let rows = futures_util::FutureExt::now_or_never(transaction.get_range(query));
        transaction.clear(&rows.unwrap().unwrap()[0].key);
    }
    drop(transaction);
    let writer = store.shared.writer.lock();
    let windows = writer.cache.windows.iter();
    let taken_ahead: Vec<usize> = windows.map(|window| window.rows.len()).collect();
    assert!(taken_ahead.contains(&WINDOW_ROWS_MAX), "{taken_ahead:?}");
}

#[test]
fn what_was_missing_last_is_not_looked_for_again() {
    with_snapshot(|before| {
        let mut written = Layer::default();
        written.set(&[2], b"new", &mut Log::default());
        let written = [written];
        let after = View {
            layers: &written,
            ..before
        };
        let mut cache = SnapshotCache::default();
        cache.reset();
        assert_eq!(cache.value(&before, &[2]).unwrap(), None);
        // Another key may be found in between.
        assert!(cache.value(&before, &[3]).unwrap().is_some());
        assert_eq!(cache.value(&after, &[2]).unwrap(), None);
        cache.reset();
        let value = Some(Bytes::from_static(b"new"));
        assert_eq!(cache.value(&after, &[2]).unwrap(), value);
    });
}
