//! Tests stores whose journal was removed after a kill.

use std::path::Path;

use futures_util::FutureExt;

use crate::table::JOURNAL_KEY;
use crate::{EmbeddedOptions, EmbeddedStore, inspect};
use quoin_store::{Isolation, Store};

const ALL: [&str; 5] = ["data.mdb", "QUOIN", "CHECKPOINT", "JOURNAL.0", "JOURNAL.1"];

fn options() -> EmbeddedOptions {
    EmbeddedOptions {
        map_bytes: 64 << 20,
        ..EmbeddedOptions::default()
    }
}

fn open(folder: &Path) -> Result<EmbeddedStore, String> {
    EmbeddedStore::open(folder, options()).map_err(|error| error.to_string())
}

fn set(store: &EmbeddedStore, key: &[u8]) {
    let transaction = store.begin_write().unwrap();
    transaction.set(key, b"value");
    transaction.commit().now_or_never().unwrap().unwrap();
}

fn has(store: &EmbeddedStore, key: &[u8]) -> bool {
    let snapshot = store.begin_read().unwrap();
    let row = snapshot.get(key, Isolation::Snapshot).now_or_never();
    row.unwrap().unwrap().is_some()
}

/// The files that a process killed now leaves.
fn killed(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ALL {
        std::fs::copy(folder.join(name), copy.path().join(name)).unwrap();
    }
    copy
}

/// Stores that were closed with `old`, and killed after they acknowledged `new`: one without a
/// checkpoint since its start, one in the second file of its journal.
fn stores() -> Vec<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    set(&open(folder.path()).unwrap(), b"old");
    let (store, work, first) = EmbeddedStore::prepare(folder.path(), options()).unwrap();
    set(&store, b"new");
    let in_first = killed(folder.path());
    store.journal.switch(false).unwrap();
    set(&store, b"newer");
    let in_second = killed(folder.path());
    drop((store, work, first));
    vec![in_first, in_second]
}

/// What is done to a killed store's folder.
enum Loss {
    Removed(&'static [&'static str]),
    Cut(&'static str),
    Zeroed(&'static str),
}

fn lose(folder: &Path, loss: &Loss) {
    match loss {
        Loss::Removed(names) => {
            for name in *names {
                std::fs::remove_file(folder.join(name)).unwrap();
            }
        }
        Loss::Cut(name) => std::fs::write(folder.join(name), b"").unwrap(),
        Loss::Zeroed(name) => std::fs::write(folder.join(name), vec![0; 4 << 20]).unwrap(),
    }
}

#[test]
fn a_store_without_a_file_of_its_journal_is_refused_and_opens_where_the_loss_is_accepted() {
    for loss in [
        Loss::Removed(&["JOURNAL.0"]),
        Loss::Removed(&["JOURNAL.1"]),
        Loss::Removed(&["JOURNAL.0", "JOURNAL.1"]),
        Loss::Removed(&["JOURNAL.0", "CHECKPOINT"]),
        Loss::Removed(&["JOURNAL.1", "CHECKPOINT"]),
        Loss::Removed(&["JOURNAL.0", "JOURNAL.1", "CHECKPOINT"]),
        Loss::Cut("JOURNAL.0"),
        Loss::Cut("JOURNAL.1"),
        Loss::Zeroed("JOURNAL.0"),
        Loss::Zeroed("JOURNAL.1"),
    ] {
        for store in stores() {
            let folder = store.path();
            lose(folder, &loss);
            let found = inspect(folder).unwrap().unwrap();
            assert!(found.journal_damage.is_some());
            for _ in 0..2 {
                let error = open(folder).err().expect("it must be refused");
                assert!(
                    error.contains("the journal is damaged: JOURNAL."),
                    "{error}"
                );
                assert!(error.contains("--accept-journal-loss"), "{error}");
            }
            let accepting = EmbeddedOptions {
                accepts_journal_loss: true,
                ..options()
            };
            let opened = EmbeddedStore::open(folder, accepting).unwrap();
            assert!(has(&opened, b"old"));
            set(&opened, b"later");
            let again = killed(folder);
            drop(opened);
            // The loss is accepted only once.
            for folder in [folder, again.path()] {
                let opened = open(folder).unwrap();
                assert!(has(&opened, b"old") && has(&opened, b"later"));
            }
        }
    }
}

#[test]
fn a_store_whose_journal_was_cut_is_refused_and_opens_where_the_loss_is_accepted() {
    for bytes in [4096, 1 << 20, (4 << 20) - 1] {
        for (store, active) in stores().iter().zip(["JOURNAL.0", "JOURNAL.1"]) {
            let folder = store.path();
            let file = std::fs::File::options()
                .write(true)
                .open(folder.join(active))
                .unwrap();
            file.set_len(bytes).unwrap();
            let found = inspect(folder).unwrap().unwrap();
            let damage = found.journal_damage.unwrap().to_string();
            let expected = format!("{active} was cut");
            assert!(damage.contains(&expected), "{damage}");
            for _ in 0..2 {
                let error = open(folder).err().expect("it must be refused");
                assert!(error.contains("the journal is damaged"), "{error}");
                assert!(error.contains(&expected), "{error}");
            }
            let accepting = EmbeddedOptions {
                accepts_journal_loss: true,
                ..options()
            };
            let opened = EmbeddedStore::open(folder, accepting).unwrap();
            assert!(has(&opened, b"old") && has(&opened, b"new"));
            set(&opened, b"later");
            let again = killed(folder);
            drop(opened);
            for folder in [folder, again.path()] {
                assert!(has(&open(folder).unwrap(), b"later"));
            }
        }
    }
}

#[test]
fn a_start_that_ends_after_it_accepted_a_loss_is_not_asked_again() {
    let [_, store] = <[_; 2]>::try_from(stores()).unwrap();
    std::fs::remove_file(store.path().join("JOURNAL.1")).unwrap();
    let accepting = EmbeddedOptions {
        accepts_journal_loss: true,
        ..options()
    };
    let files = super::super::opening::Files::open(store.path(), &accepting).unwrap();
    drop(files);
    assert!(has(&open(store.path()).unwrap(), b"new"));
}

/// Removes the note, as in a store from a Quoin that did not write one.
fn without_note(folder: &Path) {
    let files = super::super::opening::Files::open(folder, &options()).unwrap();
    super::forget(&files.environment, &files.rows).unwrap();
    drop(files.checkpoints.take(&files.environment).unwrap());
}

#[test]
fn a_store_of_an_earlier_quoin_opens_unless_it_lacks_a_file_with_records() {
    let folder = tempfile::tempdir().unwrap();
    set(&open(folder.path()).unwrap(), b"old");
    let (store, work, first) = EmbeddedStore::prepare(folder.path(), options()).unwrap();
    set(&store, b"new");
    let left = killed(folder.path());
    drop((store, work, first));
    without_note(left.path());
    let first = std::fs::read(left.path().join("JOURNAL.0")).unwrap();
    let lay = |first: Option<&[u8]>, second: Option<&[u8]>| {
        let copy = tempfile::tempdir().unwrap();
        for name in ["data.mdb", "QUOIN", "CHECKPOINT"] {
            std::fs::copy(left.path().join(name), copy.path().join(name)).unwrap();
        }
        for (name, bytes) in [("JOURNAL.0", first), ("JOURNAL.1", second)] {
            if let Some(bytes) = bytes {
                std::fs::write(copy.path().join(name), bytes).unwrap();
            }
        }
        copy
    };
    let unused = vec![0; 4 << 20];
    // The file had no header before its first turn.
    let opened = lay(Some(&first), Some(&unused));
    assert!(has(&open(opened.path()).unwrap(), b"new"));
    // The first start was interrupted.
    let empty = b"".as_slice();
    for (first, second) in [(Some(empty), None), (Some(empty), Some(empty))] {
        open(lay(first, second).path()).unwrap();
    }
    for (first, second) in [
        (None, Some(first.as_slice())),
        (Some(first.as_slice()), None),
        (None, Some(&unused)),
        (None, None),
    ] {
        let error = open(lay(first, second).path()).err().unwrap();
        assert!(
            error.contains("the journal is damaged: JOURNAL."),
            "{error}"
        );
    }
}

#[test]
fn an_orderly_end_removes_the_note_before_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    set(&store, b"key");
    assert!(super::is_noted(&store.environment, &store.rows).unwrap());
    let before = killed(folder.path());
    drop(store);
    // The folder after each of the last steps of a clean close.
    for left in [
        [Some("JOURNAL.0"), Some("JOURNAL.1")],
        [None, Some("JOURNAL.1")],
        [Some("JOURNAL.0"), None],
        [None, None],
    ] {
        let copy = tempfile::tempdir().unwrap();
        for name in ["data.mdb", "QUOIN"] {
            std::fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
        }
        for name in left.into_iter().flatten() {
            std::fs::copy(before.path().join(name), copy.path().join(name)).unwrap();
        }
        assert!(
            inspect(copy.path())
                .unwrap()
                .unwrap()
                .journal_damage
                .is_none()
        );
        assert!(has(&open(copy.path()).unwrap(), b"key"));
    }
}

#[test]
fn the_note_is_after_all_other_rows() {
    use crate::table::{APPLIED_KEY, FORMAT_KEY};
    assert!(JOURNAL_KEY > APPLIED_KEY && JOURNAL_KEY > FORMAT_KEY);
}
