//! What `quoin restore` refuses.

use std::path::{Path, PathBuf};

use crate::folders::{backup, bad, fill, good, restore, rows, start_on, stop};
use crate::server::Server;

/// A stopped store and its backup.
fn prepared(folder: &Path) -> PathBuf {
    let server = Server::start_in(folder, &[]).unwrap();
    fill(&mut server.connect(), "");
    let backup = backup(&server);
    stop(server);
    backup
}

fn refused(folder: &Path, backup: &Path, to: &str) -> String {
    let from = backup.to_str().unwrap();
    bad(folder, &["restore", "--from", from, "--data-dir", to])
}

#[test]
fn a_damaged_backup_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let backup = prepared(folder);
    let whole = std::fs::read(&backup).unwrap();
    let copy = folder.join("copy");
    let steps = (0..whole.len()).step_by(whole.len() / 20);
    for at in steps.chain([whole.len() - 1]) {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        std::fs::write(&copy, &damaged).unwrap();
        let complaint = refused(folder, &copy, "restored");
        assert!(complaint.contains("nothing was written"), "{complaint}");
        assert!(!folder.join("restored").exists());
    }
    std::fs::write(&copy, &whole[..whole.len() - 1]).unwrap();
    let complaint = refused(folder, &copy, "restored");
    assert!(complaint.contains("the copy is incomplete"), "{complaint}");
    std::fs::write(&copy, "REDIS0011").unwrap();
    let complaint = refused(folder, &copy, "restored");
    assert!(complaint.contains("not a Quoin backup"), "{complaint}");
}

#[test]
fn a_folder_that_is_not_empty_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let backup = prepared(folder);
    let before = rows(&folder.join("data"));
    let complaint = refused(folder, &backup, "data");
    assert!(
        complaint.contains("there is a store in data"),
        "{complaint}"
    );
    assert!(rows(&folder.join("data")) == before);
    std::fs::create_dir(folder.join("other")).unwrap();
    std::fs::write(folder.join("other/dump.rdb"), "").unwrap();
    let complaint = refused(folder, &backup, "other");
    assert!(complaint.contains("dump.rdb"), "{complaint}");
    assert_eq!(std::fs::read_dir(folder.join("other")).unwrap().count(), 1);
}

#[test]
fn what_a_killed_restore_has_left_is_no_store_and_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let backup = prepared(folder);
    // The state that a kill during writing leaves.
    let unfinished = folder.join("restored/unfinished-restore");
    std::fs::create_dir_all(&unfinished).unwrap();
    std::fs::write(unfinished.join("data.mdb"), "half").unwrap();
    let log = match start_on(folder, "restored") {
        Ok(_) => panic!("a server has started on half a store"),
        Err(log) => log,
    };
    assert!(log.contains("unfinished-restore"), "{log}");
    restore(folder, &backup, "restored", &[]);
    assert!(rows(&folder.join("restored")) == rows(&folder.join("data")));
    assert!(!unfinished.exists());
}

#[test]
fn a_restored_store_is_another_with_the_same_commits() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let backup = prepared(folder);
    restore(folder, &backup, "restored", &[]);
    let marker = |name: &str| std::fs::read_to_string(folder.join(name).join("QUOIN")).unwrap();
    assert_ne!(marker("data"), marker("restored"));
    let (_, commit) = rows(&folder.join("restored"));
    let name = backup.file_name().unwrap().to_str().unwrap();
    assert!(name.ends_with(&format!("-{commit}.backup")), "{name}");
    good(folder, &["doctor", "--deep", "--data-dir", "restored"]);
}
