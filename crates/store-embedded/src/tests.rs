//! Tests what is specific to the embedded store. The contract suite in `tests/` covers the
//! behaviour of every store.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::shared::guarded;
use super::watch::{Touched, WatchRegistry};
use super::*;
use quoin_base::limits;
use quoin_store::{Isolation, RangeQuery, Store, StoreError, StoreFuture, Watch};

const MIB: usize = 1024 * 1024;

fn small(fsync: FsyncPolicy) -> EmbeddedOptions {
    EmbeddedOptions {
        fsync,
        map_bytes: 16 * MIB,
        ..EmbeddedOptions::default()
    }
}

fn open(folder: &tempfile::TempDir) -> EmbeddedStore {
    EmbeddedStore::open(folder.path(), small(FsyncPolicy::Always)).unwrap()
}

/// The embedded store answers at once, so one poll is enough.
fn now<T: Unpin>(mut future: StoreFuture<'_, T>) -> Result<T, StoreError> {
    match Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the embedded store must answer at once"),
    }
}

fn set(store: &EmbeddedStore, key: &[u8], value: &[u8]) {
    let transaction = store.begin_write().unwrap();
    transaction.set(key, value);
    now(transaction.commit()).unwrap();
}

fn get(store: &EmbeddedStore, key: &[u8]) -> Option<Bytes> {
    let snapshot = store.begin_read().unwrap();
    now(snapshot.get(key, Isolation::Snapshot)).unwrap()
}

fn has_fired(watch: &mut Watch) -> bool {
    watch
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
        .is_ready()
}

#[test]
fn a_second_opening_names_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let _first = open(&folder);
    let Err(error) = EmbeddedStore::open(folder.path(), small(FsyncPolicy::Always)) else {
        panic!("the folder must be locked");
    };
    assert!(matches!(error, OpenError::Locked { .. }));
    assert!(
        error
            .to_string()
            .contains(&folder.path().display().to_string())
    );
}

#[test]
fn the_folder_is_made_with_its_parents() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("a/b");
    let store = EmbeddedStore::open(&inner, small(FsyncPolicy::Always)).unwrap();
    assert!(inner.is_dir());
    assert_eq!(store.folder(), inner);
}

#[test]
fn a_folder_that_cannot_be_created_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let opened = EmbeddedStore::open(&file.join("data"), small(FsyncPolicy::Always));
    assert!(matches!(opened, Err(OpenError::Create { .. })));
}

#[test]
fn files_of_something_else_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("data.mdb"), vec![7; 8192]).unwrap();
    let opened = EmbeddedStore::open(folder.path(), small(FsyncPolicy::Always));
    assert!(matches!(opened, Err(OpenError::Refused { .. })));
}

#[test]
fn what_a_power_failure_left_of_a_first_start_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["data.mdb.new", "QUOIN.new"] {
        std::fs::write(folder.path().join(name), vec![0xa5; 5000]).unwrap();
    }
    let store = open(&folder);
    set(&store, b"key", b"value");
    drop(store);
    for name in ["data.mdb.new", "data.mdb.new-lock", "QUOIN.new"] {
        assert!(!folder.path().join(name).exists(), "{name}");
    }
    assert_eq!(
        get(&open(&folder), b"key").as_deref(),
        Some(b"value".as_slice())
    );
}

#[test]
fn a_checkpoint_without_its_data_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let checkpoint = std::fs::read(folder.path().join("CHECKPOINT")).unwrap();
    drop(store);
    std::fs::remove_file(folder.path().join("data.mdb")).unwrap();
    std::fs::write(folder.path().join("CHECKPOINT"), checkpoint).unwrap();
    let opened = EmbeddedStore::open(folder.path(), small(FsyncPolicy::Always));
    assert!(matches!(opened, Err(OpenError::Refused { .. })));
}

#[test]
fn the_folder_can_be_reopened_after_a_drop() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..3u8 {
        let store = open(&folder);
        set(&store, &[round + 1], &[round]);
        assert_eq!(get(&store, &[1]).as_deref(), Some([0].as_slice()));
    }
}

#[test]
fn every_second_keeps_everything_over_a_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let options = small(FsyncPolicy::EverySecond);
    let store = EmbeddedStore::open(folder.path(), options).unwrap();
    set(&store, b"key", b"value");
    drop(store);
    let store = EmbeddedStore::open(folder.path(), options).unwrap();
    assert_eq!(get(&store, b"key").as_deref(), Some(b"value".as_slice()));
}

/// Waits for something that must happen soon.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed().as_secs() < 20);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn with_every_second_the_journal_is_synced_while_a_checkpoint_takes_long() {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(folder.path(), small(FsyncPolicy::EverySecond)).unwrap();
    set(&store, b"key", b"value");
    {
        // The checkpoint waits for this lock after its own sync.
        let _writer = store.shared.writer.lock();
        wait_until(|| !store.shared.is_unsynced.load(Ordering::SeqCst));
        let mut record = journal::Record::new();
        record.push(&journal::Write::Set(b"other", b"value"));
        store.journal.append(&mut record).unwrap();
        wait_until(|| store.journal.is_synced());
    }
    drop(store);
}

#[test]
fn a_thread_that_panics_breaks_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let shared = Arc::clone(&store.shared);
    let thread = std::thread::spawn(move || guarded(&shared, || panic!("on purpose")));
    assert!(thread.join().is_err());
    assert!(matches!(store.begin_write(), Err(StoreError::Fatal(_))));
    assert!(matches!(store.begin_read(), Err(StoreError::Fatal(_))));
}

/// The lines that a closure logs on this thread.
fn logged(work: impl FnOnce()) -> String {
    #[derive(Clone, Default)]
    struct Lines(Arc<std::sync::Mutex<Vec<u8>>>);
    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, work);
    let bytes = lines.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_failed_sync_of_the_journal_is_logged_once_with_its_cause() {
    for fsync in [FsyncPolicy::Always, FsyncPolicy::EverySecond] {
        let folder = tempfile::tempdir().unwrap();
        let (store, _work, _first) = EmbeddedStore::prepare(folder.path(), small(fsync)).unwrap();
        // This file accepts writes and refuses syncs.
        store.journal.use_file(std::path::Path::new("/dev/null"));
        let log = logged(|| {
            for _ in 0..3 {
                let Ok(transaction) = store.begin_write() else {
                    continue;
                };
                transaction.set(b"key", b"value");
                let committed = now(transaction.commit());
                if fsync == FsyncPolicy::Always {
                    let error = committed.unwrap_err().to_string();
                    assert!(error.contains("cannot sync the journal: "), "{error}");
                } else {
                    let error = store.journal.sync().unwrap_err();
                    store.shared.failed(StoreError::Fatal(Arc::new(error)));
                }
            }
        });
        assert_eq!(log.matches("cannot sync the journal: ").count(), 1, "{log}");
        assert!(log.contains("os error"), "{log}");
    }
}

#[test]
fn a_full_map_applies_nothing_and_leaves_the_store_usable() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    set(&store, b"key", b"old");
    let transaction = store.begin_write().unwrap();
    transaction.set(b"key", b"new");
    for index in 0..32u8 {
        transaction.set(&[b'x', index], &vec![0; MIB]);
    }
    transaction.set(b"after the failure", b"");
    let refused = now(transaction.commit());
    assert!(matches!(refused, Err(StoreError::NoRoom(_))));
    assert_eq!(get(&store, b"key").as_deref(), Some(b"old".as_slice()));
    set(&store, b"key", b"newer");
    assert_eq!(get(&store, b"key").as_deref(), Some(b"newer".as_slice()));
    assert_eq!(get(&store, b"after the failure"), None);
}

#[test]
fn a_read_after_a_failed_write_tells_the_failure() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let transaction = store.begin_write().unwrap();
    transaction.set(&vec![1; store.key_bytes_max() + 1], b"");
    let read = now(transaction.get(b"key", Isolation::Serializable));
    assert!(matches!(read, Err(StoreError::TooLarge)));
}

#[test]
fn the_longest_key_is_kept_and_a_longer_one_is_too_large() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let longest = vec![1; store.key_bytes_max()];
    assert!(longest.len() >= 1982);
    set(&store, &longest, b"value");
    assert_eq!(get(&store, &longest).as_deref(), Some(b"value".as_slice()));

    let longer = vec![1; longest.len() + 1];
    let transaction = store.begin_write().unwrap();
    transaction.set(&longer, b"value");
    assert!(matches!(
        now(transaction.commit()),
        Err(StoreError::TooLarge)
    ));
    assert_eq!(get(&store, &longer), None);
}

#[test]
fn a_fatal_failure_refuses_every_later_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let broken = std::io::Error::from_raw_os_error(libc::EIO);
    store
        .shared
        .failed(error::store_error(heed::Error::Io(broken)));
    assert!(matches!(store.begin_read(), Err(StoreError::Fatal(_))));
    assert!(matches!(store.begin_write(), Err(StoreError::Fatal(_))));
    assert!(matches!(
        now(store.watch(b"key")),
        Err(StoreError::Fatal(_))
    ));
}

#[test]
fn what_the_system_lacks_for_a_while_does_not_break_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    for code in [
        libc::ENOSPC,
        libc::EDQUOT,
        libc::ENOMEM,
        libc::EMFILE,
        libc::ENFILE,
        libc::EINTR,
    ] {
        let lacking = std::io::Error::from_raw_os_error(code);
        let error = store
            .shared
            .failed(error::store_error(heed::Error::Io(lacking)));
        assert!(!matches!(error, StoreError::Fatal(_)), "{code}");
    }
    set(&store, b"key", b"value");
}

#[test]
fn a_range_shares_one_buffer() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    set(&store, b"a", b"1");
    set(&store, b"b", b"2");
    let snapshot = store.begin_read().unwrap();
    let query = RangeQuery {
        begin: b"a",
        end: b"z",
        limit: 10,
        reverse: false,
        isolation: Isolation::Snapshot,
    };
    let rows = now(snapshot.get_range(query)).unwrap();
    let [first, second] = rows.as_slice() else {
        panic!("two rows expected");
    };
    assert_eq!(first.value.as_ptr().wrapping_add(1), second.key.as_ptr());
}

#[test]
fn a_watch_fires_for_a_transaction_that_began_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let transaction = store.begin_write().unwrap();
    transaction.set(b"key", b"new");
    let mut watched = now(store.watch(b"key")).unwrap();
    assert_eq!(watched.value, None);
    assert!(!has_fired(&mut watched.changed));
    now(transaction.commit()).unwrap();
    assert!(has_fired(&mut watched.changed));
}

#[test]
fn a_watch_sleeps_through_changes_of_other_keys() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let mut watched = now(store.watch(b"key")).unwrap();
    let transaction = store.begin_write().unwrap();
    transaction.set(b"kex", b"");
    transaction.clear_range(b"l", b"z");
    now(transaction.commit()).unwrap();
    assert!(!has_fired(&mut watched.changed));
}

#[test]
fn a_watch_that_is_dropped_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let watched = now(store.watch(b"key")).unwrap();
    assert!(store.shared.watches.is_used());
    drop(watched);
    assert!(!store.shared.watches.is_used());
}

#[test]
fn a_fired_watch_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let mut watched = now(store.watch(b"key")).unwrap();
    set(&store, b"key", b"value");
    assert!(!store.shared.watches.is_used());
    assert!(has_fired(&mut watched.changed));
}

#[test]
fn more_touched_keys_than_are_remembered_wake_everyone() {
    let mut touched = Touched::new(true);
    let registry = Arc::new(WatchRegistry::default());
    let mut watch: Watch = Box::pin(registry.register(b"key").unwrap());
    let long_key = vec![1; watch::TOUCHED_BYTES_MAX + 1];
    touched.key(&long_key);
    registry.notify(&touched);
    assert!(has_fired(&mut watch));
}

#[test]
fn readers_above_the_limit_get_an_error_and_harm_none() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let mut open = Vec::new();
    let refused = loop {
        match store.begin_read() {
            Ok(snapshot) => open.push(snapshot),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, StoreError::Unavailable(_)));
    assert!(open.len() >= limits::EMBEDDED_READERS_MAX as usize);
    open.pop();
    assert!(store.begin_read().is_ok());
}

#[test]
fn the_size_on_disk_grows_with_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let before = store.disk_bytes().unwrap();
    set(&store, b"key", &vec![0; MIB]);
    store.drain_now();
    assert!(store.disk_bytes().unwrap() >= before + MIB as u64);
}
