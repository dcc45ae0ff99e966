use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use futures_util::FutureExt;
use heed::EnvOpenOptions;

use super::*;
use crate::bulk::create_data_file;
use crate::table::open_database;
use crate::{EmbeddedOptions, EmbeddedStore};
use quoin_base::random::SeededRandom;
use quoin_store::{Isolation, Store};

fn options() -> EmbeddedOptions {
    EmbeddedOptions {
        map_bytes: 16 << 20,
        ..EmbeddedOptions::default()
    }
}

fn open(folder: &Path) -> Result<EmbeddedStore, OpenError> {
    EmbeddedStore::open(folder, options())
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

/// Names and contents of the files in a folder.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        (entry.file_name().to_string_lossy().into_owned(), bytes)
    });
    files.collect()
}

/// The message with which a folder is refused. Refusing it must not change it.
fn refusal(folder: &Path) -> String {
    let before = contents(folder);
    let error = open(folder).err().expect("the folder must be refused");
    assert!(matches!(error, OpenError::Refused { .. }), "{error}");
    assert!(contents(folder) == before, "{error}");
    let text = error.to_string();
    assert!(text.contains(&folder.display().to_string()), "{text}");
    text
}

fn folder_with(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

/// A folder with a store that was closed cleanly.
fn closed() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    set(&open(folder.path()).unwrap(), b"key");
    folder
}

#[test]
fn a_folder_of_another_program_is_refused_and_its_files_are_named() {
    for files in [
        [("PG_VERSION", b"16".as_slice()), ("postgresql.conf", b"")].as_slice(),
        &[("dump.rdb", b"REDIS0011")],
        &[("CURRENT", b"MANIFEST-1"), ("LOCK", b""), ("LOG", b"")],
        &[("lock.mdb", b"?"), ("notes.txt", b"")],
    ] {
        let folder = folder_with(files);
        let text = refusal(folder.path());
        let foreign = files.iter().find(|(name, _)| !HARMLESS.contains(name));
        assert!(text.contains(foreign.unwrap().0), "{text}");
        assert!(text.contains("data-dir"), "{text}");
    }
}

#[test]
fn of_many_files_of_others_some_are_named() {
    let names: Vec<String> = (0..9).map(|number| format!("file-{number}")).collect();
    let files: Vec<(&str, &[u8])> = names
        .iter()
        .map(|name| (name.as_str(), b"".as_slice()))
        .collect();
    let text = refusal(folder_with(&files).path());
    assert!(
        text.contains("file-0, file-1, file-2, file-3, file-4 and 4 more"),
        "{text}"
    );
}

#[test]
fn what_a_mount_point_or_a_refused_start_has_is_no_harm() {
    let folder = folder_with(&[("LOCK", b""), ("lock.mdb", b"")]);
    std::fs::create_dir(folder.path().join("lost+found")).unwrap();
    let store = open(folder.path()).unwrap();
    assert!(store.summary().is_new);
}

#[test]
fn another_programs_lmdb_file_is_refused() {
    for rows in [1, 3000] {
        let folder = tempfile::tempdir().unwrap();
        let mut opening = EnvOpenOptions::new().read_txn_without_tls();
        opening.map_size(16 << 20);
        // SAFETY: nothing else opens it.
        #[allow(unsafe_code)]
        let environment = unsafe { opening.open(folder.path()).unwrap() };
        let theirs = open_database(&environment).unwrap();
        let mut transaction = environment.write_txn().unwrap();
        for row in 0..rows {
            let row = format!("row {row}");
            theirs
                .put(&mut transaction, row.as_bytes(), &[7; 90])
                .unwrap();
        }
        transaction.commit().unwrap();
        environment.prepare_for_closing().wait();
        let text = refusal(folder.path());
        assert!(text.contains("another program"), "{text}");
    }
}

#[test]
fn a_data_file_that_is_none_is_refused() {
    for bytes in [vec![7; 8192], b"hello".to_vec(), vec![0; 8192]] {
        let text = refusal(folder_with(&[("data.mdb", &bytes)]).path());
        assert!(text.contains("first pages"), "{text}");
    }
}

#[test]
fn an_empty_data_file_is_refused() {
    let text = refusal(folder_with(&[("data.mdb", b"")]).path());
    assert!(
        text.contains("data.mdb") && text.contains("empty"),
        "{text}"
    );
    let folder = closed();
    std::fs::write(folder.path().join(DATA_FILE), b"").unwrap();
    assert!(open(folder.path()).is_err_and(|error| error.to_string().contains("empty")));
    // A checkpoint does not make it a valid file.
    std::fs::write(folder.path().join(CHECKPOINT_FILE), b"quoin-checkpoint").unwrap();
    assert!(open(folder.path()).is_err_and(|error| error.to_string().contains("empty")));
}

#[test]
fn a_store_whose_data_file_is_missing_is_refused() {
    let folder = closed();
    std::fs::remove_file(folder.path().join(DATA_FILE)).unwrap();
    let error = open(folder.path()).err().unwrap().to_string();
    assert!(
        error.contains("missing") && error.contains("mounted"),
        "{error}"
    );
    assert!(!folder.path().join(DATA_FILE).exists());
}

#[test]
fn a_data_folder_that_is_a_file_is_reported() {
    let folder = folder_with(&[("file", b"")]);
    let error = open(&folder.path().join("file")).err().unwrap().to_string();
    assert!(error.contains("this is a file"), "{error}");
}

#[test]
fn a_folder_that_must_not_be_written_is_reported_as_such() {
    let folder = closed();
    // Unlike missing permissions, a folder in place of the file also stops a superuser.
    let lock = folder.path().join(LOCK_FILE);
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    let error = open(folder.path()).err().unwrap();
    assert!(matches!(error, OpenError::Access { .. }), "{error}");
    assert!(!error.to_string().contains("create"), "{error}");
    let source = || io::Error::from_raw_os_error(libc::EROFS);
    let folder = folder.path().to_owned();
    let error = OpenError::Access {
        folder,
        source: source(),
    }
    .to_string();
    assert!(error.contains("mounted read-only"), "{error}");
}

#[test]
fn a_damaged_marker_and_one_of_a_newer_format_are_refused() {
    let folder = closed();
    let marker = folder.path().join("QUOIN");
    let text = std::fs::read_to_string(&marker).unwrap();
    std::fs::write(&marker, text.replace("format 3", "format 4")).unwrap();
    let error = open(folder.path()).err().unwrap().to_string();
    assert!(
        error.contains("format 4") && error.contains("newer Quoin"),
        "{error}"
    );
    std::fs::write(&marker, b"").unwrap();
    let error = open(folder.path()).err().unwrap().to_string();
    assert!(
        error.contains("QUOIN") && error.contains("damaged"),
        "{error}"
    );
    // This is what the message advises.
    std::fs::remove_file(&marker).unwrap();
    assert!(has(&open(folder.path()).unwrap(), b"key"));
    assert!(marker.exists());
}

#[test]
fn a_store_of_an_older_format_is_of_this_one_from_its_start_on() {
    let folder = closed();
    let marker = folder.path().join("QUOIN");
    let text = std::fs::read_to_string(&marker).unwrap();
    std::fs::write(&marker, text.replace("format 3", "format 2")).unwrap();
    assert!(has(&open(folder.path()).unwrap(), b"key"));
    // A program that only knows the older format refuses the store before it changes anything.
    assert_eq!(std::fs::read_to_string(&marker).unwrap(), text);
}

#[test]
fn a_store_keeps_its_id_and_another_has_another() {
    let folder = closed();
    let first = open(folder.path()).unwrap().summary();
    assert!(!first.is_new);
    assert!(first.rows > 0 && first.data_bytes > 0);
    assert_eq!(open(folder.path()).unwrap().summary().id, first.id);
    assert_ne!(open(closed().path()).unwrap().summary().id, first.id);
}

#[test]
fn a_second_server_reports_the_process_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let _first = open(folder.path()).unwrap();
    let error = open(folder.path()).err().unwrap().to_string();
    let process = format!("process {}", std::process::id());
    assert!(error.contains(&process), "{error}");
}

#[test]
fn a_first_start_that_ended_before_its_marker_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mark = |folder: &Path| Marker::read(folder).unwrap();
    create_data_file(folder.path(), 16 << 20).unwrap();
    std::fs::write(folder.path().join(LOCK_FILE), b"").unwrap();
    assert_eq!(mark(folder.path()), MarkerState::Absent);
    drop(open(folder.path()).unwrap());
    assert!(matches!(mark(folder.path()), MarkerState::Present(_)));
}

#[test]
fn only_the_owner_may_read_a_new_folder_or_its_files() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("a/b");
    let store = open(&folder).unwrap();
    set(&store, b"key");
    assert_private(&folder);
    drop(store);
    assert_private(&folder);
}

#[test]
fn what_others_may_do_is_taken_from_them_at_the_start() {
    let folder = closed();
    let set_mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        set_mode(&entry.unwrap().path(), 0o644);
    }
    set_mode(folder.path(), 0o755);
    let _store = open(folder.path()).unwrap();
    assert_private(folder.path());
}

fn assert_private(folder: &Path) {
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder), 0o700);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn a_copy_of_a_store_that_was_open_is_refused_unless_it_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    set(&store, b"key");
    let copy = tempfile::tempdir().unwrap();
    for (name, bytes) in contents(folder.path()) {
        std::fs::write(copy.path().join(name), bytes).unwrap();
    }
    let text = refusal(copy.path());
    assert!(
        text.contains("quoin backup") && text.contains("--accept-copied-data-dir"),
        "{text}"
    );
    let accepting = EmbeddedOptions {
        accepts_copy: true,
        ..options()
    };
    let opened = EmbeddedStore::open(copy.path(), accepting).unwrap();
    assert!(has(&opened, b"key"));
    drop(opened);
    // From now on it is an independent folder.
    assert!(has(&open(copy.path()).unwrap(), b"key"));
}

#[test]
fn a_copy_of_a_store_that_was_closed_cleanly_is_opened() {
    let folder = closed();
    // The state between the last two steps of a clean close.
    super::super::identity::record(folder.path()).unwrap();
    let copy = tempfile::tempdir().unwrap();
    for (name, bytes) in contents(folder.path()) {
        std::fs::write(copy.path().join(name), bytes).unwrap();
    }
    assert!(has(&open(copy.path()).unwrap(), b"key"));
}

#[test]
fn an_orderly_end_leaves_data_marker_and_locks() {
    let folder = closed();
    let names: Vec<String> = contents(folder.path()).into_keys().collect();
    assert_eq!(names, ["LOCK", "QUOIN", "data.mdb", "lock.mdb"]);
}

#[test]
fn a_data_file_without_a_format_is_refused_if_there_is_a_marker() {
    let folder = closed();
    Marker::new(&SeededRandom::new(1))
        .write(folder.path())
        .unwrap();
    let files = super::super::opening::Files::open(folder.path(), &options()).unwrap();
    let mut transaction = files.environment.write_txn().unwrap();
    let removed = files
        .rows
        .delete(&mut transaction, super::super::table::FORMAT_KEY);
    assert!(removed.unwrap());
    transaction.commit().unwrap();
    files.environment.force_sync().unwrap();
    files.checkpoints.remove().unwrap();
    drop(files);
    let error = open(folder.path()).err().unwrap().to_string();
    assert!(error.contains("data.mdb is damaged"), "{error}");
}
