use std::path::Path;

use futures_util::FutureExt;

use super::*;
use crate::backup::format::Decoder;
use quoin_base::clock::ManualClock;
use quoin_base::threads::testing::without_threads;
use quoin_store::Store;
use quoin_store_embedded::EmbeddedOptions;

const TIME_MS: i64 = 1_795_328_173_045;

fn open(folder: &Path) -> Arc<EmbeddedStore> {
    let options = EmbeddedOptions {
        map_bytes: 256 << 20,
        ..EmbeddedOptions::default()
    };
    Arc::new(EmbeddedStore::open(folder, options).unwrap())
}

fn backups(store: &Arc<EmbeddedStore>) -> Arc<Backups> {
    let clock = Arc::new(ManualClock::at(TIME_MS));
    Arc::new(Backups::new(Arc::clone(store), clock))
}

fn set(store: &EmbeddedStore, key: &[u8], value: &[u8]) {
    let transaction = store.begin_write().unwrap();
    transaction.set(key, value);
    transaction.commit().now_or_never().unwrap().unwrap();
}

fn save(backups: &Arc<Backups>, keep: u32) -> Result<(), Arc<BackupError>> {
    let keep = Retention {
        backups: keep,
        ..Retention::default()
    };
    backups.start(keep).unwrap().blocking_recv().unwrap()
}

fn keys(path: &Path) -> Vec<Vec<u8>> {
    let mut decoder = Decoder::begin(std::fs::File::open(path).unwrap()).unwrap();
    let mut keys = Vec::new();
    while let Some(rows) = decoder.next_block().unwrap() {
        keys.extend(rows.map(|(key, _)| key.to_vec()));
    }
    keys
}

#[test]
fn a_backup_is_of_the_moment_at_which_it_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let backups = backups(&store);
    set(&store, b"before", b"");
    let ended = backups.start(Retention::default()).unwrap();
    set(&store, b"later", b"");
    ended.blocking_recv().unwrap().unwrap();
    let last = backups.status().last.unwrap();
    assert_eq!(keys(&last.path), [b"before"]);
    assert_eq!((last.commit, last.time_ms), (1, TIME_MS));
    assert_eq!(last.bytes, last.path.metadata().unwrap().len());
    assert_eq!(backups.commits_since(), 1);
}

#[test]
fn one_is_made_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let backups = backups(&store);
    for number in 0..400_u32 {
        set(&store, &number.to_be_bytes(), &vec![7; 16 * 1024]);
    }
    let ended = backups.start(Retention::default()).unwrap();
    // It may have ended, where this thread waited long for a processor.
    if let Err(error) = backups.start(Retention::default()) {
        assert_eq!(error.to_string(), "Background save already in progress");
        assert!(backups.schedule().is_err());
    }
    ended.blocking_recv().unwrap().unwrap();
    backups.stop();
    assert!(backups.current().is_none());
}

#[test]
fn one_without_a_thread_fails_and_the_next_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let backups = backups(&store);
    let refused = without_threads(|| backups.start(Retention::default()).map(drop));
    assert!(matches!(refused, Err(StartError::Thread(_))), "{refused:?}");
    let status = backups.status();
    assert_eq!((status.saves, status.failures), (0, 1));
    assert!(status.last_error.unwrap().contains("thread"));
    save(&backups, 0).unwrap();
    assert_eq!(backups.status().last_error, None);
}

#[test]
fn a_failure_is_told_and_leaves_the_older_ones() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let backups = backups(&store);
    save(&backups, 1).unwrap();
    let good = backups.status().last.unwrap();
    let aside = folder.path().join("aside");
    std::fs::rename(backups.folder(), &aside).unwrap();
    std::fs::write(backups.folder(), "in the way").unwrap();
    let error = save(&backups, 1).unwrap_err().to_string();
    assert!(error.contains("backups"), "{error}");
    let status = backups.status();
    assert_eq!((status.saves, status.failures), (1, 1));
    assert_eq!(status.last_error, Some(error));
    assert_eq!(status.last.unwrap(), good);
    std::fs::remove_file(backups.folder()).unwrap();
    std::fs::rename(&aside, backups.folder()).unwrap();
    save(&backups, 1).unwrap();
    assert_eq!(backups.status().last_error, None);
}

#[test]
fn so_many_are_kept_and_a_restart_knows_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let backups = backups(&store);
    for number in 0..5 {
        set(&store, b"key", &[number]);
        save(&backups, 2).unwrap();
    }
    let left = folder::list(backups.folder()).unwrap();
    assert_eq!(left.len(), 2);
    let before = backups.status().last.unwrap();
    assert_eq!(left.last().unwrap().path, before.path);
    std::fs::write(backups.folder().join("quoin-x.backup.part"), "").unwrap();
    drop(backups);
    let backups = self::backups(&store);
    assert_eq!(backups.status().last.unwrap(), before);
    assert!(!backups.folder().join("quoin-x.backup.part").exists());
}

#[test]
fn a_server_that_stops_gives_it_up() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let backups = backups(&store);
    for number in 0..400_u32 {
        set(&store, &number.to_be_bytes(), &vec![7; 64 * 1024]);
    }
    let ended = backups.start(Retention::default()).unwrap();
    backups.stop();
    // Where it was quicker, it is whole.
    let ended = ended.blocking_recv().unwrap();
    let files = std::fs::read_dir(backups.folder()).unwrap().count();
    assert_eq!(files, usize::from(ended.is_ok()));
}
